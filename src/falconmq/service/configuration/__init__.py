"""What the daemon is told: one TOML file, environment variables, or nothing at all.

    [manager]      who we are, where the data lives, which address and port we use
    [transport]    the settings of the protocol, `falconmq.transport.settings`
    [hosts]        names that need no DNS: SALES02 = "10.0.0.7"
    [[computers]]  other queue managers: id, name, address
    [[routes]]     over which of them a queue manager is reached
    [[queues]]     queues that are there after every start
    [log]          how much is told
    [http]         the port of the HTTP API and the web console
    [history]      what is remembered of messages that are gone
    [events]       how long the store keeps what happened to messages
    [telemetry]    where spans go
    [security]     whether permissions are obeyed, and the size of the audit log
    [[principals]] who callers are, as SIDs
    [directory]    who keeps the directory of the enterprise; left out: a workgroup

Without a file everything has a default that works: the name of this computer, all its addresses,
data under the user's data directory. Options of the command line win over variables of the
environment, those over the file, the file over the defaults. `settings` lists every key.
"""

from falconmq.service.configuration.loading import check, load
from falconmq.service.configuration.sections import (
    ALL_INTERFACES,
    CONTROL_SOCKET,
    LEVELS,
    Computer,
    Configuration,
    ConfiguredPrincipal,
    DeclaredQueue,
    DirectorySection,
    EventsSection,
    HistorySection,
    HttpSection,
    ManagerSection,
    Origin,
    SecuritySection,
    Source,
    TelemetrySection,
    default_data_directory,
)

__all__ = [
    "ALL_INTERFACES",
    "CONTROL_SOCKET",
    "LEVELS",
    "Computer",
    "Configuration",
    "ConfiguredPrincipal",
    "DeclaredQueue",
    "DirectorySection",
    "EventsSection",
    "HistorySection",
    "HttpSection",
    "ManagerSection",
    "Origin",
    "SecuritySection",
    "Source",
    "TelemetrySection",
    "check",
    "default_data_directory",
    "load",
]
