#!/bin/sh
# Install Debian's RabbitMQ for `python -m benchmarks.transport`, without starting its service: the
# benchmark starts a node of its own. Safe to run again.
set -eu

say() { printf 'install-rabbitmq: %s\n' "$*" >&2; }

server=/usr/lib/rabbitmq/bin/rabbitmq-server

if [ -x "$server" ]; then
    say "already there: $(dpkg-query --show --showformat='${Package} ${Version}' rabbitmq-server 2>/dev/null || echo "$server")"
    exit 0
fi
if ! command -v apt-get >/dev/null; then
    say "this needs apt-get; elsewhere, install RabbitMQ as your system does it."
    exit 1
fi
if [ "$(id -u)" != 0 ]; then
    say "this needs root: sudo tools/install-rabbitmq.sh"
    exit 1
fi

# 101 says "do not start"; apt asks this file before it starts what it installed.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod 755 "$policy"
    trap 'rm -f "$policy"' EXIT
fi

log=$(mktemp)
say "installing Debian's rabbitmq-server (its service is not started)"
if ! { apt-get update && DEBIAN_FRONTEND=noninteractive \
    apt-get install --yes --no-install-recommends rabbitmq-server; } >"$log" 2>&1; then
    tail -n 20 "$log" >&2
    say "apt-get failed; all it said is in $log"
    exit 1
fi
rm -f "$log"
say "done: $(dpkg-query --show --showformat='${Package} ${Version}' rabbitmq-server)"
