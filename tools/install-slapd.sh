#!/bin/sh
# Install Debian's slapd for the tests of the LDAP directory (tests/directory). Safe to run again.
# Without root it is downloaded and only unpacked, into .work/slapd, where the tests look too.
# Without it those tests are skipped, so this never fails `make test`.
set -eu
cd "$(dirname "$0")/.."

say() { printf 'install-slapd: %s\n' "$*" >&2; }
unpacked=.work/slapd

if [ -x /usr/sbin/slapd ] || [ -x "$unpacked/usr/sbin/slapd" ] || command -v slapd >/dev/null; then
    exit 0
fi
if ! command -v apt-get >/dev/null; then
    say "no slapd: the tests of the LDAP directory are skipped. Install OpenLDAP's server as your system does it."
    exit 0
fi

log=$(mktemp)
give_up() {
    tail -n 20 "$log" >&2
    say "$1, all that was said is in $log; the tests of the LDAP directory are skipped"
    exit 0
}

if [ "$(id -u)" = 0 ]; then
    say "installing Debian's slapd"
    # It must not start by itself: the tests start their own, in a directory of their own.
    { apt-get update && RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive \
        apt-get install --yes --no-install-recommends slapd; } >"$log" 2>&1 || give_up "apt-get failed"
else
    say "unpacking Debian's slapd into $unpacked"
    mkdir -p "$unpacked.new"
    (
        cd "$unpacked.new"
        apt-get download slapd libltdl7 libodbc2
        for package in *.deb; do dpkg-deb --extract "$package" .; done
        rm -f -- *.deb
    ) >"$log" 2>&1 || give_up "the packages could not be had; with root it is: apt-get install slapd"
    mv "$unpacked.new" "$unpacked"
fi
rm -f "$log"
say "done"
