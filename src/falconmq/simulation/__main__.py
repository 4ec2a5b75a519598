"""Run worlds, each from its seed: queue managers, or the servers of a replicated directory.

python -m falconmq.simulation --seed 7281 [--trace]
python -m falconmq.simulation --seeds 1-1000 --jobs 2
python -m falconmq.simulation directory --seeds 1-1000 --jobs 2
"""

from __future__ import annotations

import argparse
import gc
import logging
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from typing import Final

from falconmq.simulation.directory.run import run_directory_seed
from falconmq.simulation.result import Result
from falconmq.simulation.run import run_seed

_WHAT: Final = "Run queue managers in a virtual world with seeded faults, and check their promises."
_WORLDS: Final[Mapping[str, Callable[..., Result]]] = {
    "messages": run_seed,
    "directory": run_directory_seed,
}

_GARBAGE: Final = 100_000  # objects until the collector looks: a run makes much, and is soon over


def main(arguments: list[str] | None = None) -> int:
    """Run what was asked for; 1 if a promise was broken."""
    parser = argparse.ArgumentParser(prog="python -m falconmq.simulation", description=_WHAT)
    parser.add_argument(
        "world",
        nargs="?",
        choices=_WORLDS,
        default="messages",
        help="what is tried: messages (the default), or the replication of the directory",
    )
    parser.add_argument("--seed", type=int, help="replay one seed")
    parser.add_argument(
        "--seeds", type=_range, default="1-100", help="a range of seeds, for example 1-1000"
    )
    parser.add_argument("--jobs", type=int, default=1, help="processes to share the work")
    parser.add_argument("--trace", action="store_true", help="print everything that happens")
    parser.add_argument("--failures", type=int, default=10, help="stop after so many")
    chosen = parser.parse_args(arguments)
    gc.set_threshold(_GARBAGE)
    logging.getLogger("falconmq").addHandler(logging.NullHandler())  # the story tells what counts
    if chosen.seed is not None:
        return _replay(chosen.world, chosen.seed, trace=chosen.trace)
    return _run_many(chosen.world, chosen.seeds, chosen.jobs, chosen.failures)


def _range(text: str) -> range:
    first, _, last = text.partition("-")
    try:
        seeds = range(int(first), int(last or first) + 1)
    except ValueError:
        seeds = range(0)
    if not seeds:
        raise argparse.ArgumentTypeError(f"{text!r} is no range of seeds, for example 1-1000")
    return seeds


def _replay(world: str, seed: int, *, trace: bool) -> int:
    print(f"seed {seed}")
    result = _WORLDS[world](seed, keep_all=trace)
    if trace:
        print(*result.trace, sep="\n")
    if result.problem:
        _print_failure(world, result)
        return 1
    print(_summary([result], 0.0))
    return 0


def _run_many(world: str, seeds: range, jobs: int, failures_max: int) -> int:
    print(f"seeds {seeds[0]}-{seeds[-1]}")
    started = time.perf_counter()
    results: list[Result] = []
    failures = 0
    for result in _results(_WORLDS[world], seeds, jobs):
        results.append(result)
        if result.problem:
            failures += 1
            _print_failure(world, result)
            if failures >= failures_max:
                break
    print(_summary(results, time.perf_counter() - started))
    return 1 if failures else 0


def _results(run: Callable[[int], Result], seeds: range, jobs: int) -> Iterator[Result]:
    if jobs == 1:
        yield from map(run, seeds)
        return
    with ProcessPoolExecutor(jobs) as pool:
        try:
            yield from pool.map(run, seeds, chunksize=20)
        finally:
            pool.shutdown(cancel_futures=True)


def _print_failure(world: str, result: Result) -> None:
    print(f"\nseed {result.seed} FAILED: {result.problem}")
    for line in result.story:
        print(f"  {line}")
    which = "" if world == "messages" else f"{world} "
    replay = f"python -m falconmq.simulation {which}--seed {result.seed} --trace"
    print(f"replay: {replay}", flush=True)


def _summary(results: list[Result], seconds: float) -> str:
    counts: Counter[str] = Counter()
    for result in results:
        counts.update(result.counts)
    hours = sum(result.virtual_seconds for result in results) / 3600
    messages = sum(result.messages for result in results)
    changes = sum(result.changes for result in results)
    failures = sum(bool(result.problem) for result in results)
    what = ", ".join(f"{kind} {count}" for kind, count in sorted(counts.items()))
    speed = f" in {seconds:.0f} s ({len(results) / seconds:.1f} a second)" if seconds else ""
    return (
        f"{len(results)} runs{speed}, {hours:.0f} virtual hours, {messages} messages, "
        f"{f'{changes} changes, ' if changes else ''}{failures} failures\nwhat happened: {what}"
    )


if __name__ == "__main__":
    sys.exit(main())
