#!/bin/sh
# Install Debian's Chromium for the tests of the web console (tests/console), and the library that the
# driver of Playwright needs and does not bring. Safe to run again.
# Without it those tests are skipped, so this never fails `make test`.
set -eu
cd "$(dirname "$0")/.."

say() { printf 'install-chromium: %s\n' "$*" >&2; }

if command -v chromium >/dev/null && .venv/bin/python -m playwright --version >/dev/null 2>&1; then
    exit 0
fi
if ! command -v apt-get >/dev/null; then
    say "no chromium, or no libatomic: the tests of the web console are skipped. Install both as your system does it."
    exit 0
fi
if [ "$(id -u)" != 0 ]; then
    say "no chromium, or no libatomic: the tests of the web console are skipped. To run them: sudo apt-get install chromium libatomic1"
    exit 0
fi

log=$(mktemp)
say "installing Debian's chromium"
if ! { apt-get update && DEBIAN_FRONTEND=noninteractive \
    apt-get install --yes --no-install-recommends chromium libatomic1; } >"$log" 2>&1; then
    tail -n 20 "$log" >&2
    say "apt-get failed, all it said is in $log; the tests of the web console are skipped"
    exit 0
fi
rm -f "$log"
say "done: $(dpkg-query --show --showformat='${Package} ${Version}' chromium)"
