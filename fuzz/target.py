"""One target under atheris: `python -m fuzz.target NAME ARGUMENT...`, libFuzzer's or a file."""

from __future__ import annotations

import sys

import atheris

with atheris.instrument_imports(include=["falconmq"]):
    from fuzz.targets import TARGETS


def main() -> None:
    if len(sys.argv) < 2 or sys.argv[1] not in TARGETS:
        sys.exit(
            f"usage: python -m fuzz.target NAME ..., where NAME is one of {', '.join(TARGETS)}"
        )
    target = TARGETS[sys.argv[1]]
    atheris.Setup([sys.argv[0], *sys.argv[2:]], target.check)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
