"""Six servers that lose messages and die, while everybody changes things; then it is quiet.

One seed decides everything. In the end all copies are the same, and whoever was told that his
change was made finds it.
"""

from __future__ import annotations

from random import Random
from uuid import UUID

from falconmq.directory.replication.properties import PATHS, deletion_properties, properties_for
from falconmq.directory.replication.settings import ReplicationSettings, Role
from falconmq.directory.replication.status import fingerprints
from falconmq.directory.replication.writes import PendingWrite, RequestedChange
from falconmq.directory.tables import TABLES
from falconmq.store.memory_engine import ProcessCrash
from falconmq.wire.directory_change import DELETE, UPDATE
from tests.directory.replication.estates import Estate, Node, estate_of_six, site_of

SETTINGS = ReplicationSettings(
    intersite_seconds=10.0,
    intrasite_seconds=5.0,
    hello_seconds=120.0,
    sync_resend_seconds=60.0,
    purge_step=4,
    purge_buffer=8,
    pending_changes_max=6,
    message_changes_max=5,
)
QUIET_SECONDS = 1000.0


class Soak:
    """One run."""

    def __init__(self, seed: int, *, changes: int = 120, loss: float = 0.05) -> None:
        self.random = Random(seed)
        self.changes = changes
        self.loss = loss
        self.estate: Estate = estate_of_six(SETTINGS)
        self.machines: list[tuple[UUID, str, UUID]] = []
        self.labels: dict[UUID, set[object]] = {}  # what a queue may be like now
        self.asked: dict[UUID, set[object]] = {}
        self.gone: set[UUID] = set()
        self.doubtful: set[UUID] = set()  # nobody knows whether the change was made
        self.waiting: list[tuple[PendingWrite, UUID, object]] = []
        self.full_syncs = 0

    def run(self) -> Soak:
        random, estate = self.random, self.estate
        for name in ("PEC0", "PSC1", "PSC2"):
            self._add_machine(estate[name])
        estate.lose = lambda _machine, _send: random.random() < self.loss
        estate.delay = lambda: random.choice((0.0, 0.1, 1.0, 15.0))
        estate.repeat = lambda: random.random() < 0.05
        for _ in range(self.changes):
            self._step()
            estate.run(random.choice((0.0, 0.5, 3.0, 20.0)))
            if random.random() < 0.05:
                self._toggle()
        estate.lose = lambda _machine, _send: False
        estate.delay = lambda: 0.1
        estate.repeat = lambda: False
        for name in list(estate.off):
            self._wake(name)
        estate.run(QUIET_SECONDS)
        return self

    def problems(self) -> list[str]:
        """What is not as it should be, in words."""
        nodes = list(self.estate.nodes.values())
        purged = {
            partition: max(node.partition(partition).purged for node in nodes)
            for partition in nodes[0].partitions
        }
        first, found = _lines(nodes[0], purged), []
        for node in nodes[1:]:
            lines = _lines(node, purged)
            if node.lasts() != nodes[0].lasts():
                found.append(f"{node.name} is at {node.lasts()}, {nodes[0].name} at other numbers")
            found += [
                f"{key}: {first.get(key)} at {nodes[0].name}, {lines.get(key)} at {node.name}"
                for key in first.keys() | lines.keys()
                if first.get(key) != lines.get(key)
            ]
        return found + self._broken_promises()

    def _broken_promises(self) -> list[str]:
        pec, found = self.estate["PEC0"], []
        for queue, labels in self.labels.items():
            row = pec.get("Queue", queue)
            if queue not in self.doubtful and row is None:
                found.append(f"queue {queue} was made and is not there")
            elif row is not None and row["label"] not in labels:
                found.append(f"queue {queue} is {row['label']!r} and not one of {labels}")
        found += [
            f"queue {queue} was deleted and is there"
            for queue in self.gone - self.doubtful
            if pec.get("Queue", queue) is not None
        ]
        return found

    def _step(self) -> None:
        self._collect()
        node = self.estate[self.random.choice(("PEC0", "PSC1", "PSC2"))]
        if node.name in self.estate.off:
            return
        match self.random.randrange(12):
            case 0:
                self._add_machine(node)
            case 1 if node.role is Role.PEC:
                self._change_enterprise(node)
            case 2 | 3 | 4:
                self._delete(node)
            case 5 | 6 | 7:
                self._change(node)
            case 8 | 9:
                self._ask_elsewhere()
            case _:
                self._add_queue(node)

    def _add_machine(self, node: Node) -> None:
        name = f"{node.name}-m{len(self.machines)}"
        identifier = node.add_machine(name)
        self.machines.append((identifier, name, site_of(node.name)))

    def _add_queue(self, node: Node) -> None:
        at_home = [each for each in self.machines if each[2] == site_of(node.name)]
        machine = self.random.choice(at_home)[1]
        label = f"new {self.random.random()}"
        path = f"{machine}\\q{self.random.randrange(1_000_000_000)}"
        self.labels[node.add_queue(path, label=label)] = {label}

    def _queues_of(self, node: Node) -> list[UUID]:
        return [
            queue
            for queue in self.labels
            if (row := node.get("Queue", queue)) is not None
            and str(row["path_name"]).startswith(node.name.lower())
        ]

    def _delete(self, node: Node) -> None:
        queues = self._queues_of(node)
        if queues:
            queue = self.random.choice(queues)
            node.delete("Queue", queue)
            del self.labels[queue]
            self.gone.add(queue)

    def _change(self, node: Node) -> None:
        queues = self._queues_of(node)
        if queues:
            queue, label = self.random.choice(queues), f"changed {self.random.random()}"
            node.write("Queue", queue, label=label)
            # What was asked for elsewhere may come after this.
            self.labels[queue] = {label} | self.asked.get(queue, set())

    def _change_enterprise(self, node: Node) -> None:
        if self.random.random() < 0.5:
            node.add("ConnectedNetwork", name=f"net{self.random.randrange(1_000_000_000)}")
            return
        enterprise = node.directory.read("Enterprise", (), None)[1]["identifier"]
        assert isinstance(enterprise, UUID)
        node.write("Enterprise", enterprise, default_time_to_live=self.random.randrange(1, 9999))

    def _ask_elsewhere(self) -> None:
        """A change of a queue through a server that does not decide about it."""
        node = self.random.choice(list(self.estate.nodes.values()))
        queues = [queue for queue in self.labels if node.get("Queue", queue) is not None]
        if node.name in self.estate.off or not queues:
            return
        queue = self.random.choice(queues)
        row = node.get("Queue", queue)
        assert row is not None
        table, label = TABLES["Queue"], f"asked {self.random.random()}"
        machine = str(row["path_name"]).partition("\\")[0]
        site = next(each[2] for each in self.machines if each[1].lower() == machine)
        if self.random.random() < 0.3:
            command, properties, outcome = DELETE, deletion_properties(1, table.code), None
        else:
            wanted = {**row, "label": label}
            properties = properties_for(table, wanted, later=True, names={"label"})
            command, outcome = UPDATE, label
        name = str(row[PATHS[table.code]])
        write = node.engine.request(RequestedChange(command, name, site, properties))
        node.carry(node.engine.take_effects())
        self.doubtful.add(queue)  # until the answer is there
        if outcome is not None:
            self.labels[queue].add(outcome)
            self.asked.setdefault(queue, set()).add(outcome)
        self.waiting.append((write, queue, outcome))

    def _collect(self) -> None:
        """What came back of the requests: whoever was told of success must be right."""
        for write, queue, outcome in list(self.waiting):
            if write.status is None:
                continue
            self.waiting.remove((write, queue, outcome))
            others = [each for each in self.waiting if each[1] == queue]
            if write.status == 0 and outcome is None and not others:
                self.labels.pop(queue, None)
                self.gone.add(queue)

    def _toggle(self) -> None:
        """A server goes away, comes back, or dies and is back at once."""
        name = self.random.choice(sorted(self.estate.nodes))
        if name in self.estate.off:
            self._wake(name)
        elif self.random.random() < 0.5:
            self.estate.off.add(name)
        else:
            self._die_in_a_commit(self.estate[name])
            self._wake(name)

    def _die_in_a_commit(self, node: Node) -> None:
        node.store.fail_commit(1, ProcessCrash(), durable=self.random.random() < 0.5)
        try:
            node.directory.create("ConnectedNetwork", {"name": f"last words {node.starts}"})
        except ProcessCrash:
            return

    def _wake(self, name: str) -> None:
        self.full_syncs += self.estate[name].engine.counters.get("sync0", 0)
        self.estate.off.discard(name)
        self.estate.restart(name)


def _lines(node: Node, purged: dict[UUID, int]) -> dict[str, str]:
    """Objects, and the deletions that nobody may have forgotten yet."""
    lines = {}
    for key, value in fingerprints(node.directory).items():
        partition, kind, _ = key.split("/")
        if kind != "deleted" or int(value.split()[0]) > purged[UUID(partition)]:
            lines[key] = value
    return lines
