"""A real OpenLDAP server for the tests: Debian's slapd in a directory of its own, on loopback."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from contextlib import closing
from pathlib import Path
from typing import Final, Self

from falconmq import directory

ROOT: Final = "DC=example,DC=com"
DOMAIN: Final = "example.com"
ADMINISTRATOR: Final = f"cn=admin,{ROOT}"
PASSWORD: Final = "secret"
SCHEMA: Final = Path(directory.__file__).parent / "falconmq.schema"
_EXTRACTED: Final = Path(".work/slapd").resolve()  # what tools/install-slapd.sh makes without root
_PATIENCE_SECONDS: Final = 120
_TRIES: Final = 10

_CONFIGURATION: Final = """\
include {core}
include {schema}
pidfile {place}/slapd.pid
modulepath {modules}
moduleload back_mdb
moduleload unique
{tls}
rootDSE {place}/root.ldif
defaultsearchbase "{root}"
sizelimit 200
sizelimit size.prtotal=unlimited
database mdb
suffix "{root}"
rootdn "{administrator}"
rootpw {password}
directory {place}/data
{sync}
maxsize 268435456
index objectClass,cn,objectGUID,objectSid,mSMQSites,mSMQDigests,mSMQQueueType eq
index mSMQLabelEx,mSMQSite1,mSMQSite2,mSMQQMID eq
overlay unique
unique_uri ldap:///?objectGUID?sub
{more}
"""
_ROOT_ENTRY: Final = """\
dn:
configurationNamingContext: CN=Configuration,{root}
rootDomainNamingContext: {root}
"""


def find_slapd() -> Path | None:
    """Debian's slapd, installed or only unpacked."""
    for place in (Path("/usr/sbin/slapd"), _EXTRACTED / "usr/sbin/slapd"):
        if place.exists():
            return place
    found = shutil.which("slapd")
    return None if found is None else Path(found)


class Slapd:
    """One server. `stop` kills it as a power cut would; `start` brings it back with its data."""

    def __init__(
        self,
        place: Path,
        *,
        tls: dict[str, Path] | None = None,
        more: str = "",
        is_durable: bool = False,
    ) -> None:
        program = find_slapd()
        assert program is not None
        self._program = program
        self._place = place
        self._process: subprocess.Popen[bytes] | None = None
        self._was_started = False
        base = program.parent.parent.parent
        (place / "data").mkdir()
        (place / "root.ldif").write_text(_ROOT_ENTRY.format(root=ROOT))
        settings = _CONFIGURATION.format(
            core=_first(base / "etc/ldap/schema/core.schema", "/etc/ldap/schema/core.schema"),
            schema=SCHEMA,
            modules=_first(base / "usr/lib/ldap", "/usr/lib/ldap"),
            place=place,
            root=ROOT,
            administrator=ADMINISTRATOR,
            password=PASSWORD,
            tls="\n".join(f"{name} {path}" for name, path in (tls or {}).items()),
            more=more,
            sync="" if is_durable else "dbnosync",
        )
        (place / "slapd.conf").write_text(settings)
        self.port = _free_port()
        self.tls_port = _free_port()
        self._has_tls = tls is not None

    @property
    def url(self) -> str:
        return f"ldap://127.0.0.1:{self.port}"

    @property
    def socket_url(self) -> str:
        return "ldapi://" + str(self._place / "socket").replace("/", "%2F")

    def start(self) -> Self:
        """Start it; another process may have taken the port meanwhile, so there are some tries."""
        for _ in range(_TRIES):
            if self._try():
                self._was_started = True
                return self
            if not self._was_started:  # nobody knows the ports yet
                self.port, self.tls_port = _free_port(), _free_port()
            time.sleep(0.2)
        raise RuntimeError(f"slapd did not start: {(self._place / 'log').read_text()}")

    def _try(self) -> bool:
        urls = [self.url, self.socket_url]
        if self._has_tls:  # the certificate names the first address, not the second
            urls.append(f"ldap://127.0.0.2:{self.port}")
            urls.extend(f"ldaps://{host}:{self.tls_port}" for host in ("127.0.0.1", "127.0.0.2"))
        environment = dict(os.environ)
        if self._program.is_relative_to(_EXTRACTED):
            libraries = sorted({str(found.parent) for found in _EXTRACTED.rglob("*.so*")})
            environment["LD_LIBRARY_PATH"] = ":".join(libraries)
        with (self._place / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [self._program, "-d", "0", "-h", " ".join(urls), "-f", "slapd.conf"],
                cwd=self._place,
                env=environment,
                stdout=log,
                stderr=log,
            )
        return self._is_up()

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def _is_up(self) -> bool:
        """Wait until it listens; False if it ended."""
        assert self._process is not None
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while self._process.poll() is None and time.monotonic() < deadline:
            with closing(socket.socket()) as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return True
            time.sleep(0.02)
        self.stop()
        return False


def _first(*places: Path | str) -> Path:
    return next(Path(place) for place in places if Path(place).exists())


def _free_port() -> int:
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
