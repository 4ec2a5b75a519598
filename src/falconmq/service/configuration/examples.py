"""The configuration for people who write one: an example file, and the page of the reference."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import Final

from falconmq.service.configuration.lists import QUEUE_PROPERTIES
from falconmq.service.configuration.settings import SETTINGS, Kind, Setting, settings_of

_EXAMPLE_HEAD: Final = """\
# FalconMQ's configuration: every setting, at its default. Take the # away to change one.
# Variables of the environment win over this file: FALCONMQ_HTTP_PORT sets http.port.
"""
_WIDTH: Final = 96  # columns of a comment
_LISTS: Final = r"""
# Names that need no DNS.
[hosts]
# SALES02 = "10.0.0.8"
# CLUSTER = ["10.0.0.20", "10.0.0.21"]        # tried in this order

# Queue managers that are named by their identifier.
# [[computers]]
# id = "6b29fc40-ca47-1067-b31d-00dd010662da"
# name = "BERLIN"
# address = "10.1.0.4"                        # or a host name; left out: the name

# Over which of them a queue manager is reached, the best first.
# [[routes]]
# to = "PARIS"                                # id or name of one of [[computers]]
# via = ["BERLIN"]

# Queues that are there after every start. What is left out is not touched; nothing is deleted.
# [[queues]]
# name = '.\private$\orders'
# transactional = true                        # cannot be changed later
# label = "orders of the web shop"

# Who callers are: what the permissions of queues say of these SIDs holds for them, beside the role
# of their token. A token that no principal names is bound by its role alone.
# [[principals]]
# name = "web-shop"
# sid = "S-1-5-21-1004336348-1177238915-682003330-1601"
# groups = ["Users"]                          # SIDs, or the names of well-known ones
# tokens = ["web-shop"]                       # whoever shows one of these
# socket = false                              # whoever uses the control socket
# certificates = ["AB:CD:..."]                # whoever shows one of these: SHA-256 fingerprints
# roles = ["send"]                            # of those; tokens have roles of their own
"""


def toml(value: object) -> str:
    """A value as the file has it."""
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            return f"{value:g}" if value < 1e6 else str(int(value))
        case tuple() | list():
            return f"[{', '.join(toml(entry) for entry in value)}]"
        case None:
            return '""'
        case _:
            text = str(value).replace("\\", "\\\\").replace('"', '\\"')
            return f'"{text}"'


def example() -> str:
    """A file with every key, commented out at its default."""
    parts = [_EXAMPLE_HEAD]
    for section in dict.fromkeys(setting.section for setting in SETTINGS):
        parts.append(f"\n[{section}]\n")
        parts += [_commented(setting) for setting in settings_of(section)]
    return "".join([*parts, _LISTS])


def _commented(setting: Setting) -> str:
    lines = _wrapped(
        setting.text + (f" Default: {setting.default_text}." if setting.default_text else "")
    )
    return f"{lines}# {setting.key} = {_sample(setting)}\n"


def _sample(setting: Setting) -> str:
    samples: Mapping[str, str] = {
        "manager.name": '"SALES01"',
        "manager.data": '"/var/lib/falconmq"',
        "manager.advertised_address": '"203.0.113.9"',
        "http.bind": '"127.0.0.1"',
        "http.certificate": '"/etc/falconmq/certificate.pem"',
        "http.key": '"/etc/falconmq/key.pem"',
        "http.client_ca": '"/etc/falconmq/callers.pem"',
        "directory.servers": '["https://hq.example.com:8018"]',
        "directory.site": '"Berlin"',
        "directory.domain": '"example.com"',
        "directory.root": '"DC=example,DC=com"',
        "directory.bind_name": '"CN=falconmq,CN=Users,DC=example,DC=com"',
        "directory.password_file": '"/etc/falconmq/directory-password"',
        "directory.token_file": '"/etc/falconmq/directory-token"',
        "directory.ca_file": '"/etc/falconmq/directory-ca.pem"',
        "directory.host_name": '"sales01.example.com"',
        "directory.pec": '"HQ01"',
        "directory.psc": '"SALES01"',
        "telemetry.endpoint": '"http://localhost:4318/v1/traces"',
    }
    return samples.get(setting.name) or toml(setting.default_value())


def _wrapped(text: str) -> str:
    return "".join(f"# {line}\n" for line in textwrap.wrap(text, _WIDTH))


def allowed(setting: Setting) -> str:
    """What a key takes, in words."""
    match setting.kind:
        case Kind.INTEGER:
            return f"{setting.kind.value}, {int(setting.least)} to {int(setting.most)}"
        case Kind.SECONDS:
            return f"{setting.least:g} to {setting.most:.0f}"
        case Kind.CHOICE:
            return f"{setting.kind.value} {', '.join(word or 'empty' for word in setting.choices)}"
        case kind:
            return str(kind.value)


def reference() -> str:
    """The page docs/reference/configuration.md."""
    parts = [_REFERENCE_HEAD]
    for section in dict.fromkeys(setting.section for setting in SETTINGS):
        parts.append(f"\n## [{section}]\n\n| key | takes | default | reload | what it is for |\n")
        parts.append("|---|---|---|---|---|\n")
        parts += [_row(setting) for setting in settings_of(section)]
    parts.append(_REFERENCE_LISTS)
    parts.append("| key | takes | what it is for |\n|---|---|---|\n")
    parts.append("| `name` | path name | Which queue: `'.\\private$\\orders'`. Needed. |\n")
    parts.append("| `transactional` | true or false | Its kind; false if left out. |\n")
    for key, (_, takes, text) in QUEUE_PROPERTIES.items():
        parts.append(f"| `{key}` | {takes} | {text} |\n")
    return "".join([*parts, _REFERENCE_PRINCIPALS])


def _row(setting: Setting) -> str:
    unit = f", {setting.unit}" if setting.unit else ""
    default = setting.default_text or f"`{toml(setting.default_value())}`"
    if setting.default_value() in ("", ()) and not setting.default_text:
        default = "none"
    reloads = "yes" if setting.reloads else "restart"
    return (
        f"| `{setting.key}` | {allowed(setting)}{unit} | {default} | {reloads} | {setting.text} |\n"
    )


_REFERENCE_HEAD: Final = """# Configuration

Made by `make reference`; do not edit. How to use it: [Configure FalconMQ](../howto/configure.md).

One TOML file (`falconmq serve --config FILE`, or `FALCONMQ_CONFIG`). Every key has a default. A
key of a section in single brackets, `[hosts]` excepted, can also be set by a variable of the
environment, `FALCONMQ_<SECTION>_<KEY>` in capitals: `FALCONMQ_HTTP_PORT` sets `http.port`; lists
have commas, an empty variable is none. Options win over variables, variables over the file. The
column `reload` says whether `falconmq config reload` (or SIGHUP) applies a change, or a restart is
needed.
"""
_REFERENCE_LISTS: Final = """
## [hosts]

Names that need no DNS: `NAME = "10.0.0.8"`, or a list of addresses that are tried in order. A
reload applies it.

## [[computers]]

Other queue managers, named by their identifier. A reload applies it.

| key | takes | what it is for |
|---|---|---|
| `id` | GUID | The identifier of the queue manager. Needed. |
| `name` | text | How routes call it; the id if left out. |
| `address` | IP address or host name | Where it is; the name if left out. |

## [[routes]]

Over which queue managers another one is reached; without a route it is reached directly. A reload
applies it.

| key | takes | what it is for |
|---|---|---|
| `to` | id or name of a computer | Who is reached. Needed. |
| `via` | list of ids or names of `[[computers]]` | Over whom, the best first. Needed. |

## [[queues]]

Queues that are there after every start and every reload. One that is missing is created; one that
is there gets the properties that are declared, and keeps the others. Another kind
(`transactional`) is refused. Nothing is deleted.

"""
_REFERENCE_PRINCIPALS: Final = """
## [[principals]]

Who callers are, as SIDs. Both the role of a caller and the permissions of the queue must allow what
it wants. A token that is named by no principal is bound by its role alone. A reload applies it.

| key | takes | what it is for |
|---|---|---|
| `name` | text | How people, and `falconmq queue permissions`, call it. Needed. |
| `sid` | SID | Who it is. Needed. |
| `groups` | list of SIDs or names such as `Administrators` | What it is a member of. |
| `tokens` | list of names of tokens | Whoever shows one of these is this principal. |
| `socket` | true or false | Whoever uses the control socket is this principal. |
| `certificates` | list of SHA-256 fingerprints | Whoever shows one of these over HTTPS. |
| `roles` | list of `read`, `send`, `receive`, `manage` | What whoever shows a certificate may do. |

Certificates are shown over HTTPS if `http.client_ca` says who issues them; `certificates` and
`roles` go together.
"""
