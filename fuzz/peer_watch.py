"""Whether a daemon under attack is well: alive, in its right mind, no larger than it should be.

What it has read is taken from its own log, which says at the end of each session how many messages
came and why it ended. That is less than was sent to it: nobody reads on behind a packet that closes
a session, and the acknowledgements of a session are not counted.
"""

from __future__ import annotations

import contextlib
import os
import re
import socket
import time
from collections import Counter
from pathlib import Path
from typing import Final

from falconmq.errors import FalconMQError
from tests.conformance_wire import packets
from tests.conformance_wire.exchange import opened, still_open
from tests.conformance_wire.play import PATIENCE, Play
from tests.conformance_wire.stage import Stage
from tests.e2e.estate import path

PING_PORT: Final = 3527
MEMORY_SPARE: Final = 64 << 20  # bytes that it may have more than after its first exchanges
SAFE: Final = [f"safe {number}" for number in range(20)]
_OUTGOING_AT_ONCE: Final = 500  # outgoing queues that are emptied in one look
_CLOSED: Final = re.compile(r'session closed peer=\S+ sent=\d+ received=(\d+) reason="(.*)"')
_VARIES: Final = re.compile(r"[0-9a-fA-F]{8}-[-0-9a-fA-F]{27}|0x[0-9a-fA-F]+|\d+")
_LINE: Final = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} [A-Z]+ [a-z.]+ ")
_ALARMS: Final = re.compile(r"Traceback|Error:|\bERROR\b|\bCRITICAL\b|event failed|never retrieved")


class Watch:
    """Looks at a daemon from time to time; `problems` is what was found."""

    def __init__(self, stage: Stage) -> None:
        self.read = 0  # packets that the daemon says it has read
        self.sessions = 0
        self.reasons: Counter[str] = Counter()
        self.problems: list[str] = []
        self.memory_first = self.memory_most = 0
        self.purged = 0
        self._stage = stage
        self._log_at = 0
        self.memory_limit: int | None = None
        self._cookie = 0
        stage.daemon.create_queue("safe")
        stage.client.send(path("safe"), [{"text": text, "recoverable": True} for text in SAFE])

    def look(self) -> bool:
        """Whether all is well; nobody may be speaking to the daemon meanwhile."""
        try:
            self._ask()
        except (AssertionError, OSError, FalconMQError) as error:
            self.problems.append(f"{type(error).__name__}: {error}")
        self._read_log()
        return not self.problems

    def settle_memory(self) -> None:
        """From now on it may grow by MEMORY_SPARE and no more."""
        if self.memory_limit is None:
            self.memory_first = self.memory
            self.memory_limit = self.memory_first + MEMORY_SPARE

    @property
    def memory(self) -> int:
        """Bytes that belong to the process; pages of the store's file do not count."""
        process = self._stage.daemon.process
        assert process is not None
        return anonymous_bytes(process.pid)

    @property
    def processor_seconds(self) -> float:
        """That the daemon has used: what a busy computer does not change. 0 if it is gone."""
        process = self._stage.daemon.process
        if process is None or process.poll() is not None:
            return 0.0
        fields = Path(f"/proc/{process.pid}/stat").read_text("ascii").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def _ask(self) -> None:
        process = self._stage.daemon.process
        assert process is not None, "it never started"
        assert process.poll() is None, f"it has ended with {process.returncode}"
        self._drain()
        self._meet_an_honest_peer()
        self._ping()
        self.memory_most = max(self.memory_most, memory := self.memory)
        limit = self.memory_limit
        assert limit is None or memory <= limit, f"{memory >> 20} MiB of memory"
        texts = [message.get("text", "") for message in self._stage.daemon.look("safe")]
        assert [text for text in texts if text in SAFE] == SAFE, f"the safe messages are {texts}"

    def _drain(self) -> None:
        """Empty the queues: what they said they hold is what they held."""
        client = self._stage.client
        for queue in client.queues(system=True):
            if queue["messages"] and not queue["name"].endswith("safe"):
                purged = client.purge_queue(queue["name"])
                self.purged += purged
                said = queue["messages"]
                assert purged >= said, f"{queue['name']} said {said} and held {purged}"
        waiting = [queue for queue in client.outgoing() if queue["messages"]]
        for queue in waiting[:_OUTGOING_AT_ONCE]:
            client.request("DELETE", f"/outgoing/{queue['number']}/messages")

    def _meet_an_honest_peer(self) -> None:
        with Play.calling(self._stage) as play:
            opened(2)(play)
            still_open(play)
            self._stage.client.delete_queue(path(play.queue("plain")))

    def _ping(self) -> None:
        self._cookie += 1
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
            datagrams.bind((self._stage.address(), 0))
            datagrams.connect((self._stage.daemon.address, PING_PORT))
            datagrams.settimeout(1.0)
            deadline = time.monotonic() + PATIENCE
            while time.monotonic() < deadline:  # a datagram may get lost, even here
                datagrams.send(packets.ping(0, self._cookie, bytes(16)))
                with contextlib.suppress(TimeoutError):
                    assert datagrams.recv(100) == packets.ping(0, self._cookie, self._stage.guid)
                    return
            raise AssertionError("no ping is answered")

    def _read_log(self) -> None:
        with self._stage.daemon.log.open("rb") as log:
            log.seek(self._log_at)
            new = log.read()
        whole = new[: new.rfind(b"\n") + 1]
        self._log_at += len(whole)
        for line in whole.decode(errors="replace").split("\n")[:-1]:
            if _ALARMS.search(line) or not (_LINE.match(line) and line.isprintable()):
                self.problems.append(repr(line))
            elif closed := _CLOSED.search(line):
                self.sessions += 1
                self.read += int(closed[1]) + 2  # and the two packets of the opening, or one bad
                self.reasons[_VARIES.sub("N", closed[2])] += 1


def anonymous_bytes(pid: int) -> int:
    """RssAnon of a process."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    found = re.search(r"^RssAnon:\s+(\d+) kB$", status, re.MULTILINE)
    assert found is not None, "no Linux"
    return int(found[1]) << 10
