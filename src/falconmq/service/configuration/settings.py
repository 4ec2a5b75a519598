"""Every key of the sections that have one value for each: what it takes, its default, what for.

This table is read by whoever reads a file or the environment, by `falconmq config show` and
`config example`, by the reload, and by the reference page. A key that is not here does not exist.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Final

from falconmq.embedded.actions import default_computer_name
from falconmq.embedded.manager import DEFAULT_QUOTA_KILOBYTES
from falconmq.manager.event_keeping import DEFAULT_BYTES, DEFAULT_DAYS
from falconmq.service.configuration.sections import (
    ALL_INTERFACES,
    AUDIT_BYTES,
    DIRECTORY_KINDS,
    DIRECTORY_ROLES,
    HTTP_PORT,
    LEVELS,
    MANAGER_PERMISSIONS,
    NO_DIRECTORY,
    NO_ROLE,
    ROLES,
    YEAR,
    default_data_directory,
)
from falconmq.transport.settings import PORT, TransportSettings

LONGEST: Final = 30 * 86_400.0  # seconds; a longer time is a mistake of units
KILOBYTES_MAX: Final = 0xFFFFFFFF
_SHORTEST: Final = 0.001


class Kind(Enum):
    """What a key takes, in the words of the reference."""

    TEXT = "text"
    NAME = "name of a computer"
    PATH = "path"
    ADDRESS = "IP address"
    URL = "URL"
    BOOLEAN = "true or false"
    INTEGER = "whole number"
    SECONDS = "seconds"
    CHOICE = "one of"
    TEXTS = "list of texts"
    SDDL = "security descriptor (SDDL)"


@dataclass(frozen=True, slots=True)
class Setting:
    """One key of one section."""

    section: str
    key: str
    kind: Kind
    default: object | Callable[[], object]
    text: str  # what it is for
    least: float = 0
    most: float = 0
    choices: tuple[str, ...] = ()
    unit: str = ""
    reloads: bool = False  # a reload applies it; else a restart is needed
    default_text: str = ""  # where the default depends on the computer

    @property
    def name(self) -> str:
        return f"{self.section}.{self.key}"

    @property
    def variable(self) -> str:
        """The variable of the environment that sets it."""
        return f"FALCONMQ_{self.section}_{self.key}".upper()

    def default_value(self) -> object:
        return self.default() if callable(self.default) else self.default


_MANAGER: Final = (
    Setting(
        "manager", "name", Kind.NAME, default_computer_name, default_text="the host name",
        text="ComputerName: how messages and format names call this queue manager.",
    ),
    Setting(
        "manager", "data", Kind.PATH, default_data_directory,
        default_text="/var/lib/falconmq for root, else ~/.local/share/falconmq",
        text="Directory of queues and messages; a path that is not absolute is beside the file.",
    ),
    Setting(
        "manager", "bind", Kind.ADDRESS, ALL_INTERFACES,
        text="Address to listen on and to connect from; 0.0.0.0 is every interface.",
    ),
    Setting(
        "manager", "port", Kind.INTEGER, PORT, least=1, most=0xFFFF,
        text="TCP port of ours and of our peers; Windows knows 1801 only.",
    ),
    Setting(
        "manager", "advertised_address", Kind.ADDRESS, "",
        text="Address under which peers reach us, if it is not the one we bind: NAT, containers.",
    ),
    Setting(
        "manager", "quota_kilobytes", Kind.INTEGER, DEFAULT_QUOTA_KILOBYTES,
        least=1, most=KILOBYTES_MAX, unit="KiB", reloads=True,
        text="What all messages together may take.",
    ),
    Setting(
        "manager", "local_names", Kind.TEXTS, (),
        text="Other names and addresses under which direct format names mean us.",
    ),
)  # fmt: skip

_HTTP: Final = (
    Setting(
        "http", "enabled", Kind.BOOLEAN, True,
        text="Whether the HTTP API and the web console have a port; commands need none.",
    ),
    Setting(
        "http", "bind", Kind.ADDRESS, "", default_text="manager.bind if that is a loopback "
        "address, else 127.0.0.1",
        text="Address to listen on. Other computers get in only over HTTPS, or with `plain`.",
    ),
    Setting(
        "http", "port", Kind.INTEGER, HTTP_PORT, least=0, most=0xFFFF,
        text="TCP port; 0 takes one that is free, which the log names.",
    ),
    Setting(
        "http", "certificate", Kind.PATH, None, default_text="none, so HTTP",
        text="Certificate chain (PEM) for HTTPS. A reload reads the file anew.",
    ),
    Setting(
        "http", "key", Kind.PATH, None, default_text="none",
        text="Private key (PEM) of the certificate.",
    ),
    Setting(
        "http", "client_ca", Kind.PATH, None, default_text="none, so callers are not asked for any",
        text="Certificates (PEM) of those who issue certificates for callers. Whoever shows one "
        "that `[[principals]]` names needs no token. A reload reads the file anew.",
    ),
    Setting(
        "http", "plain", Kind.BOOLEAN, False,
        text="Allow HTTP without TLS on an address that other computers reach: behind a proxy.",
    ),
    Setting(
        "http", "loopback_role", Kind.CHOICE, "", choices=ROLES, reloads=True,
        text="What callers from this computer may do without a token; empty: nothing.",
    ),
    Setting(
        "http", "strict_transport_seconds", Kind.INTEGER, 0, least=0, most=10 * YEAR,
        unit="seconds", reloads=True,
        text="With a certificate: how long a browser that was here insists on HTTPS for this host "
        "name, whatever the port (Strict-Transport-Security); 0: it does not.",
    ),
    Setting(
        "http", "request_bytes", Kind.INTEGER, 16 << 20, least=1 << 16, most=1 << 30,
        unit="bytes", reloads=True, text="What the body of one request may have.",
    ),
    Setting(
        "http", "staged_bytes", Kind.INTEGER, 1 << 30, least=1 << 20, most=1 << 40,
        unit="bytes", text="What messages may take in memory that wait for the commit of their "
        "batch (ingests, the Spark sink).",
    ),
)  # fmt: skip

_OTHERS: Final = (
    Setting(
        "log", "level", Kind.CHOICE, "info", choices=LEVELS, reloads=True,
        text="How much is told on standard error.",
    ),
    Setting(
        "history", "events", Kind.INTEGER, 100_000, least=0, most=10_000_000,
        text="How many of the last events of messages are kept in memory, for `why`, `trace` and "
        "the live view; 0: none.",
    ),
    Setting(
        "events", "keep", Kind.BOOLEAN, True,
        text="Whether the store keeps a log of what happens to messages, for `falconmq events` and "
        "the pipeline.",
    ),
    Setting(
        "events", "max_age_days", Kind.INTEGER, DEFAULT_DAYS, least=1, most=36_500, unit="days",
        text="Events that are older leave the log.",
    ),
    Setting(
        "events", "max_bytes", Kind.INTEGER, DEFAULT_BYTES, least=1 << 20, most=1 << 50,
        unit="bytes", text="What the log may take; then the oldest events leave it.",
    ),
    Setting(
        "events", "bodies", Kind.TEXTS, (),
        text="Queues whose messages the log keeps whole, as patterns of their path names: "
        "`.\\private$\\orders*`; journals and dead-letter queues by their own names.",
    ),
    Setting(
        "telemetry", "enabled", Kind.BOOLEAN, False,
        text="Whether messages make spans for OpenTelemetry; needs falconmq[telemetry].",
    ),
    Setting(
        "telemetry", "endpoint", Kind.URL, "",
        default_text="as OTEL_EXPORTER_OTLP_ENDPOINT says, else http://localhost:4318/v1/traces",
        text="Where spans are sent: OTLP over HTTP.",
    ),
    Setting(
        "security", "access_control", Kind.BOOLEAN, True, reloads=True,
        text="Whether the permissions of queues are obeyed; off is for emergencies.",
    ),
    Setting(
        "security", "everyone_includes_anonymous", Kind.BOOLEAN, True, reloads=True,
        text="Whether Everyone includes senders that nobody has verified.",
    ),
    Setting(
        "security", "manager_permissions", Kind.SDDL, MANAGER_PERMISSIONS, reloads=True,
        text="What the principals may do with the queue manager itself: create queues, read dead "
        "letters and journals, administer.",
    ),
    Setting(
        "security", "hardened", Kind.BOOLEAN, False,
        text="Hardened mode: no message comes or goes over the MSMQ port, which is not even open. "
        "Local queues, the HTTP API and the commands work.",
    ),
    Setting(
        "security", "weak_algorithms", Kind.TEXTS, (), reloads=True,
        text="Queues (`.\\private$\\orders`) and peers (name or identifier) for which RC2, RC4, "
        "MD5, SHA-1 and RSA keys below 1024 bits may be used: they can be broken.",
    ),
    Setting(
        "security", "encrypt_direct", Kind.BOOLEAN, False, reloads=True,
        text="Encrypt messages to direct names too, for the queue manager that answers there. "
        "MSMQ does not: such a name does not say who that should be.",
    ),
    Setting(
        "security", "audit_bytes", Kind.INTEGER, AUDIT_BYTES, least=1 << 16, most=1 << 40,
        unit="bytes", reloads=True,
        text="What the audit log may take; then the oldest entries leave it.",
    ),
)  # fmt: skip

_DIRECTORY: Final = (
    Setting(
        "directory", "kind", Kind.CHOICE, NO_DIRECTORY, choices=DIRECTORY_KINDS,
        text="Who keeps the directory of the enterprise: nobody (a workgroup), this queue manager "
        "itself (embedded), another FalconMQ (remote), or an LDAP server (ldap). Without the key, "
        "`falconmq directory join` decides; so for all keys of this section.",
    ),
    Setting(
        "directory", "servers", Kind.TEXTS, (),
        text="URLs of the servers, tried in order: https://hq.example.com:8018 for another "
        "FalconMQ, ldap://, ldaps:// or ldapi:// for LDAP.",
    ),
    Setting(
        "directory", "site", Kind.TEXT, "", default_text="the only site there is",
        text="Name of the site that this queue manager is in.",
    ),
    Setting(
        "directory", "domain", Kind.TEXT, "", default_text="none",
        text="Name of the domain that this computer is in, example.com.",
    ),
    Setting(
        "directory", "root", Kind.TEXT, "", default_text="what the server says",
        text="LDAP: the name of the tree, such as DC=example,DC=com.",
    ),
    Setting(
        "directory", "bind_name", Kind.TEXT, "", default_text="none, so anonymous",
        text="LDAP: as whom to log in.",
    ),
    Setting(
        "directory", "password_file", Kind.PATH, None, default_text="none",
        text="LDAP: file with the password of `bind_name`, which only its owner may read.",
    ),
    Setting(
        "directory", "token_file", Kind.PATH, None, default_text="none",
        text="Another FalconMQ: file with the token that it gave us, which only its owner may "
        "read.",
    ),
    Setting(
        "directory", "start_tls", Kind.BOOLEAN, False,
        text="LDAP: turn an ldap:// connection into TLS before anything is said.",
    ),
    Setting(
        "directory", "ca_file", Kind.PATH, None, default_text="whom the system trusts",
        text="Certificates (PEM) of those who sign the certificates of the servers.",
    ),
    Setting(
        "directory", "routing_server", Kind.BOOLEAN, False,
        text="Whether others may route their messages over this queue manager.",
    ),
    Setting(
        "directory", "host_name", Kind.TEXT, "", default_text="the name of the computer",
        text="Name or address under which others reach this queue manager; the directory tells "
        "it to them.",
    ),
    Setting(
        "directory", "cache_seconds", Kind.SECONDS, 300.0, least=0, most=LONGEST, unit="seconds",
        text="How long an answer of the directory is used again without asking.",
    ),
    Setting(
        "directory", "timeout_seconds", Kind.SECONDS, 2.0, least=0.05, most=60, unit="seconds",
        text="How long the queue manager waits for an answer; then the directory counts as away.",
    ),
    Setting(
        "directory", "sites_update_seconds", Kind.SECONDS, 43_200.0, least=1, most=LONGEST,
        unit="seconds", text="How often its own sites are read again.",
    ),
    Setting(
        "directory", "site_gates_update_seconds", Kind.SECONDS, 3_600.0, least=1, most=LONGEST,
        unit="seconds", text="How often the gates of its sites are read again.",
    ),
    Setting(
        "directory", "routing_update_seconds", Kind.SECONDS, 3_600.0, least=1, most=LONGEST,
        unit="seconds", text="How often the map of sites, links and queue managers is read again.",
    ),
    Setting(
        "directory", "foreign_penalty", Kind.BOOLEAN, False,
        text="Whether a way through a foreign site costs more than any other, so that it is taken "
        "only when there is no other.",
    ),
    Setting(
        "directory", "is_directory_service", Kind.BOOLEAN, False,
        text="Tell owners of changes as an MSMQ directory service does: signed, with the new "
        "values (version 1). Needed for queue managers of NT 4.0 and Windows 2000 only.",
    ),
    Setting(
        "directory", "notification_seconds", Kind.SECONDS, 60.0, least=0.01, most=900,
        unit="seconds", text="How long change notifications are collected, after a quiet time, "
        "before the directory is asked what changed.",
    ),
    Setting(
        "directory", "role", Kind.CHOICE, NO_ROLE, choices=DIRECTORY_ROLES,
        text="With kind embedded: what this server is among several that keep the same directory. "
        "The primary enterprise controller (pec), the primary controller of its site (psc), or a "
        "backup controller (bsc), which has a copy and decides nothing. It counts until the first "
        "copy is here; then the directory says it, and `directory replication move` changes it.",
    ),
    Setting(
        "directory", "pec", Kind.TEXT, "", default_text="none",
        text="With role psc or bsc: computer name of the primary enterprise controller, which is "
        "asked for the first copy. It must be one of [[computers]].",
    ),
    Setting(
        "directory", "psc", Kind.TEXT, "", default_text="the pec",
        text="With role bsc: computer name of the primary controller of its site, until the first "
        "copy is here.",
    ),
    Setting(
        "directory", "intersite_seconds", Kind.SECONDS, 10.0, least=0.05, most=LONGEST,
        unit="seconds", text="How long changes are collected for the server of another site.",
    ),
    Setting(
        "directory", "intrasite_seconds", Kind.SECONDS, 2.0, least=0.05, most=LONGEST,
        unit="seconds", text="How long changes are collected for a backup controller.",
    ),
    Setting(
        "directory", "hello_seconds", Kind.SECONDS, 1_200.0, least=1, most=LONGEST,
        unit="seconds", text="How often neighbours are told how far this server is.",
    ),
    Setting(
        "directory", "checks_servers", Kind.BOOLEAN, True,
        text="Believe only what another directory server has signed. Without it whoever reaches "
        "port 1801 can change the directory.",
    ),
)  # fmt: skip

# Of [transport]: what it is for, least and most of whole numbers.
_TRANSPORT_TEXTS: Final[dict[str, str]] = {
    "round_trip_delay": "Added to the time-outs of slow lines (RoundTripDelay).",
    "cleanup_interval": "A session without messages is closed after this time (CleanupInterval).",
    "try_connect_interval": "Between two tries to connect (TryConnectInterval).",
    "ack_wait_timeout": "A peer that acknowledges nothing for so long is given up. For new "
    "sessions.",
    "direct_ack_wait_factor": "That time is multiplied by this on direct sessions "
    "(QosCleanupIntervalMultiplier).",
    "window_size": "Messages under way without an acknowledgement (MaxUnackedPacket). For new "
    "sessions.",
    "window_growth_interval": "A window that shrank doubles so often.",
    "order_ack_timeout": "How long an OrderAck may wait for more messages.",
    "maximum_order_ack_delay": "How long OrderAcks may be put off in all (SeqMaxAckDelay).",
    "resend_short": "Before transactional messages are sent again, tries 1 to 3 (SeqResend13Time).",
    "resend_medium": "The same for tries 4 to 6 (SeqResend46Time).",
    "resend_long": "The same for tries 7 to 9 (SeqResend79Time).",
    "resend_final": "The same for all further tries (SeqResend10Time).",
    "history_size": "Identifiers of recoverable messages that are remembered to find duplicates "
    "(RemoveDuplicateSize).",
    "history_cleanup_interval": "Between two cleanings of that memory (RemoveDuplicateCleanup).",
    "ping_enabled": "Ask with a UDP ping before connecting.",
    "ping_answered": "Answer the UDP pings of peers (EnablePingService).",
    "ping_port": "UDP port of pings (MsmqIpPingPort).",
    "send_insecure_nacks": "Tell senders that a message was refused for reasons of security "
    "(PermitInsecureNacks).",
    "send_reports": "Send trace reports when messages ask for them (EnableReportMessages).",
    "sessions_max": "Connections that are accepted at one time (MaxInSessions).",
}
_LIMITS: Final[dict[str, tuple[int, int]]] = {
    "direct_ack_wait_factor": (1, 100),
    "window_size": (1, 0xFFFF),  # the field has 16 bits
    "history_size": (1, 10_000_000),
    "ping_port": (1, 0xFFFF),
    "sessions_max": (1, 1_000_000),
}
_MAY_BE_ZERO: Final = frozenset({"round_trip_delay", "maximum_order_ack_delay"})
# Read where they are used, every time; the others are copied when the transport starts.
_READ_AT_USE: Final = frozenset(
    {
        "round_trip_delay",
        "cleanup_interval",
        "try_connect_interval",
        "ack_wait_timeout",
        "direct_ack_wait_factor",
        "window_size",
        "window_growth_interval",
        "send_insecure_nacks",
        "send_reports",
        "sessions_max",
    }
)


def _transport(defaults: TransportSettings) -> Iterable[Setting]:
    for key, text in _TRANSPORT_TEXTS.items():
        default, reloads = getattr(defaults, key), key in _READ_AT_USE
        if isinstance(default, bool):
            yield Setting("transport", key, Kind.BOOLEAN, default, text, reloads=reloads)
        elif isinstance(default, int):
            least, most = _LIMITS[key]
            yield Setting("transport", key, Kind.INTEGER, default, text, least, most,
                          reloads=reloads)  # fmt: skip
        else:
            least_time = 0.0 if key in _MAY_BE_ZERO else _SHORTEST
            yield Setting("transport", key, Kind.SECONDS, default, text, least_time, LONGEST,
                          unit="seconds", reloads=reloads)  # fmt: skip


SETTINGS: Final = (*_MANAGER, *_transport(TransportSettings()), *_HTTP, *_OTHERS, *_DIRECTORY)
LISTS: Final = (
    "hosts",
    "computers",
    "routes",
    "queues",
    "principals",
)  # sections with keys of their own
SECTIONS: Final = (*dict.fromkeys(setting.section for setting in SETTINGS), *LISTS)


def settings_of(section: str) -> list[Setting]:
    return [setting for setting in SETTINGS if setting.section == section]
