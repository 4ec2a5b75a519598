from __future__ import annotations

from falconmq.errors import FalconMQError
from falconmq.simulation.disk import Disk, Submitted
from falconmq.simulation.world import World
from falconmq.store.interface import WriteBatch


class Bench:
    """A disk, and what it said about each batch."""

    def __init__(self, seed: int = 1) -> None:
        self.world = World(seed)
        self.disk = Disk(self.world, "NODE0")
        self.told: list[str] = []
        self.truth: dict[str, bool] = {}
        self.errors: list[FalconMQError] = []
        self.disk.failed = self.errors.append

    def submit(self, name: str) -> None:
        batch = WriteBatch()
        batch.put("meta", name.encode(), b"value")

        def outcome(is_durable: bool) -> None:
            self.truth[name] = is_durable

        self.disk.submit(Submitted(batch, lambda: self.told.append(name), outcome))

    def has(self, name: str) -> bool:
        return self.disk.store.get("meta", name.encode()) is not None


def test_a_commit_takes_time_and_what_comes_meanwhile_is_the_next_group() -> None:
    # given three batches, two of them submitted while the first is written
    bench = Bench()
    for name in ("a", "b", "c"):
        bench.submit(name)
    assert bench.told == []
    # when time passes
    bench.world.run_until(1.0)
    # then all are durable, in order, in two commits
    assert bench.told == ["a", "b", "c"]
    assert bench.disk.store.commits == 2
    assert bench.disk.is_idle


def test_a_crash_leaves_the_commit_under_way_done_or_not_and_the_truth_is_known() -> None:
    seen = set()
    for seed in range(20):
        # given a batch that is being written, and one behind it
        bench = Bench(seed)
        bench.submit("a")
        bench.submit("b")
        # when the power fails
        bench.disk.crash()
        bench.world.run_until(1.0)
        # then nobody is told, the second is lost, the first is there or not: the ledger knows
        assert bench.told == []
        assert not bench.truth["b"]
        assert not bench.has("b")
        assert bench.truth["a"] is bench.has("a")
        seen.add(bench.truth["a"])
    assert seen == {False, True}


def test_a_full_disk_fails_everything_that_waits() -> None:
    # given a disk without room
    bench = Bench()
    bench.disk.store.is_full = True
    bench.submit("a")
    bench.submit("b")
    # when the commit fails
    bench.world.run_until(10.0)
    # then the host hears of it once, and neither batch happened
    assert len(bench.errors) == 1
    assert bench.truth == {"a": False, "b": False}
    assert bench.told == []


def test_the_power_can_fail_at_a_certain_commit() -> None:
    bench = Bench()
    failures: list[float] = []
    bench.disk.power_failed = lambda: failures.append(bench.world.now)
    bench.disk.crash_in = 2
    bench.submit("a")
    bench.world.run_until(1.0)
    assert failures == []
    bench.submit("b")
    bench.world.run_until(2.0)
    assert len(failures) == 1


def test_a_process_that_ends_in_order_waits_for_its_commits() -> None:
    bench = Bench()
    bench.submit("a")
    bench.submit("b")
    bench.disk.flush()
    assert bench.told == ["a", "b"]
    assert bench.world.now == 0.0
