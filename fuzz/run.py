"""Fuzz every target for its share of the time and count what ran.

`python -m fuzz.run --seconds 60` gives each target an equal share; `--target NAME` picks some;
`--list` names them. A finding is kept under .work/fuzz/findings, shown with the command that
replays it, and makes the run fail. The corpus grows under .work/fuzz/corpus from run to run.
"""

from __future__ import annotations

import argparse
import importlib.util
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fuzz.seeds import seeds
from fuzz.targets import TARGETS

ROOT: Final = Path(__file__).parent.parent
WORK: Final = ROOT / ".work" / "fuzz"
_EXECUTED: Final = re.compile(r"stat::number_of_executed_units:\s*(\d+)")
_START_UP_SECONDS: Final = 120  # past its share a target gets this long to start and to stop


@dataclass
class Outcome:
    target: str
    executions: int
    seconds: float
    findings: list[Path]
    log: str
    exit_code: int

    @property
    def failed(self) -> bool:
        return bool(self.findings) or self.exit_code != 0


def fuzz_target(name: str, seconds: int) -> Outcome:
    """Run one target in a process of its own."""
    corpus, findings = WORK / "corpus" / name, WORK / "findings" / name
    corpus.mkdir(parents=True, exist_ok=True)
    findings.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(seeds(name)):
        (corpus / f"seed-{number:03}").write_bytes(seed)
    before = set(findings.iterdir())
    command = [
        sys.executable,
        "-m",
        "fuzz.target",
        name,
        str(corpus),
        f"-max_total_time={seconds}",
        f"-max_len={TARGETS[name].max_input}",
        f"-artifact_prefix={findings}/",
        "-print_final_stats=1",
        "-rss_limit_mb=2048",
        "-timeout=10",
        "-verbosity=0",
    ]
    start = time.monotonic()
    try:
        done = subprocess.run(
            command,
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=seconds + _START_UP_SECONDS,
            check=False,
        )
        output, exit_code = done.stdout, done.returncode
    except subprocess.TimeoutExpired as error:
        output, exit_code = error.stdout or b"", 1
    log = output.decode("utf-8", "replace")
    executed = _EXECUTED.search(log)
    return Outcome(
        name,
        int(executed[1]) if executed else 0,
        time.monotonic() - start,
        sorted(set(findings.iterdir()) - before),
        log,
        exit_code,
    )


def show(outcome: Outcome) -> None:
    verdict = "FINDING" if outcome.failed else "ok"
    print(f"  {outcome.target:<26}{outcome.executions:>12,}  {verdict}", flush=True)
    if not outcome.failed:
        return
    print(outcome.log[-4000:], file=sys.stderr)
    for path in outcome.findings:
        replay = f".venv/bin/python -m fuzz.target {outcome.target} {path.relative_to(ROOT)}"
        print(f"error: {outcome.target}: {path.read_bytes().hex()}", file=sys.stderr)
        print(f"hint:  replay: {replay}", file=sys.stderr)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="fuzz", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--seconds", type=int, default=60, help="for all targets together (60)")
    parser.add_argument("--jobs", type=int, default=2, help="targets fuzzed at the same time (2)")
    parser.add_argument("--target", action="append", choices=sorted(TARGETS), help="only this one")
    parser.add_argument("--list", action="store_true", help="name the targets")
    options = parser.parse_args(arguments)
    if options.seconds < 1 or options.jobs < 1:
        parser.error("--seconds and --jobs are at least 1")
    if options.list:
        print("\n".join(TARGETS))
        return 0
    if importlib.util.find_spec("atheris") is None:
        print("error: atheris is not installed: it has no build for this Python", file=sys.stderr)
        print("hint:  make setup PYTHON=python3.11 (or 3.12, 3.13) on x86-64", file=sys.stderr)
        return 1
    names = options.target or list(TARGETS)
    share = max(1, options.seconds * options.jobs // len(names))
    print(f"fuzzing {len(names)} targets for {share} s each, {options.jobs} at a time", flush=True)
    outcomes = []
    with ThreadPoolExecutor(options.jobs) as pool:
        for outcome in pool.map(lambda name: fuzz_target(name, share), names):
            show(outcome)
            outcomes.append(outcome)
    findings = [outcome.target for outcome in outcomes if outcome.failed]
    total = sum(outcome.executions for outcome in outcomes)
    print(f"fuzz: {total:,} executions, {len(findings)} targets with findings", flush=True)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
