"""The configuration says what the daemon does, and what is wrong with it, in one line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from uuid import UUID

import pytest

from falconmq.service.configuration import Configuration, default_data_directory, load
from falconmq.service.tables import ConfigurationError
from falconmq.transport.routing import NextHopName
from falconmq.transport.settings import TransportSettings

BERLIN = UUID("6b29fc40-ca47-1067-b31d-00dd010662da")
PARIS = UUID("0f2e8c1a-1111-4222-8333-444455556666")

Loader = Callable[[str], Configuration]


@pytest.fixture
def loaded(tmp_path: Path) -> Loader:
    def load_text(text: str) -> Configuration:
        file = tmp_path / "falconmq.toml"
        file.write_text(text, "utf-8")
        return load(file)

    return load_text


def refusal(loaded: Loader, text: str) -> ConfigurationError:
    with pytest.raises(ConfigurationError) as caught:
        loaded(text)
    return caught.value


def test_without_a_file_everything_has_a_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    monkeypatch.setenv("XDG_DATA_HOME", "/home/anna/data")
    configuration = load()
    assert configuration.manager.data == Path("/home/anna/data/falconmq")
    assert configuration.manager.port == 1801
    assert configuration.manager.bind == "0.0.0.0"
    assert configuration.manager.name
    assert configuration.transport == TransportSettings()
    assert configuration.log_level == "info"


def test_the_data_of_root_are_under_var_lib(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    assert default_data_directory() == Path("/var/lib/falconmq")


def test_a_user_without_a_data_home_has_one_under_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.setenv("HOME", "/home/anna")
    assert default_data_directory() == Path("/home/anna/.local/share/falconmq")


def test_a_full_file_is_read(loaded: Loader, tmp_path: Path) -> None:
    configuration = loaded(
        """
        [manager]
        name = "SALES01"
        data = "queues"
        bind = "127.0.0.2"
        port = 11801
        advertised_address = "203.0.113.9"
        quota_kilobytes = 2048
        local_names = ["sales.example.com"]

        [transport]
        window_size = 32
        ack_wait_timeout = 30
        send_insecure_nacks = true

        [hosts]
        SALES02 = "127.0.0.3"
        cluster = ["10.0.0.1", "10.0.0.2"]

        [log]
        level = "DEBUG"
        """
    )
    manager = configuration.manager
    assert (manager.name, manager.bind, manager.port) == ("SALES01", "127.0.0.2", 11801)
    assert manager.data == tmp_path / "queues"  # beside the file
    assert manager.quota_kilobytes == 2048
    assert manager.local_names == ("sales.example.com",)
    assert configuration.control_socket == tmp_path / "queues" / "control.sock"
    transport = configuration.transport
    assert (transport.window_size, transport.ack_wait_timeout) == (32, 30.0)
    assert transport.send_insecure_nacks is True
    assert transport.advertised_address == "203.0.113.9"
    assert configuration.hosts == {
        "sales02": ("127.0.0.3",),
        "cluster": ("10.0.0.1", "10.0.0.2"),
    }
    assert configuration.log_level == "debug"


def test_routes_name_computers_by_id_or_by_name(loaded: Loader) -> None:
    configuration = loaded(
        f"""
        [[computers]]
        id = "{BERLIN}"
        name = "BERLIN"
        address = "10.0.0.7"

        [[computers]]
        id = "{{{PARIS}}}"
        name = "PARIS"

        [[routes]]
        to = "paris"
        via = ["berlin", "{PARIS}"]

        [[routes]]
        to = "00000000-0000-0000-0000-000000000009"
        via = ["BERLIN"]
        """
    )
    router = configuration.router()
    assert router.get_next_hops(PARIS) == [
        NextHopName(BERLIN, "10.0.0.7"),
        NextHopName(PARIS, "PARIS"),  # without an address, the name is resolved
    ]
    assert router.get_next_hops(UUID(int=9)) == [NextHopName(BERLIN, "10.0.0.7")]
    assert router.get_next_hops(BERLIN) == [NextHopName(BERLIN, "10.0.0.7")]


def test_every_setting_of_the_transport_can_be_set(loaded: Loader) -> None:
    lines = []
    for setting in fields(TransportSettings):
        default = setting.default
        if setting.name == "advertised_address":
            continue
        value = str(not default).lower() if isinstance(default, bool) else "7"
        lines.append(f"{setting.name} = {value}")
    transport = loaded("[transport]\n" + "\n".join(lines)).transport
    for setting in fields(TransportSettings):
        if setting.name != "advertised_address":
            assert getattr(transport, setting.name) != setting.default


def test_what_the_command_line_says_wins(loaded: Loader, tmp_path: Path) -> None:
    file = tmp_path / "falconmq.toml"
    file.write_text('[manager]\nname = "A"\ndata = "a"\nbind = "127.0.0.2"\n', "utf-8")
    manager = load(file, data=tmp_path / "b", bind="127.0.0.9", name="B").manager
    assert (manager.name, manager.data, manager.bind) == ("B", tmp_path / "b", "127.0.0.9")


def test_a_wrong_option_is_named_as_an_option() -> None:
    with pytest.raises(ConfigurationError) as caught:
        load(bind="localhost")
    assert str(caught.value) == "--bind is 'localhost'; it must be an IP address, like 10.0.0.7"


def test_a_misspelt_key_is_refused_with_the_one_that_was_meant(loaded: Loader) -> None:
    error = refusal(loaded, "[transport]\nwindow_sise = 3\n")
    assert str(error).endswith("falconmq.toml: transport.window_sise is no setting")
    assert error.hint == "did you mean window_size?"


def test_a_misspelt_section_is_refused_with_the_one_that_was_meant(loaded: Loader) -> None:
    error = refusal(loaded, "[transprot]\n")
    assert str(error).endswith("falconmq.toml: transprot is no section")
    assert error.hint == "did you mean transport?"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[manager]\nport = 0", "manager.port is 0; it must be a whole number from 1 to 65535"),
        ("[manager]\nport = true", "manager.port is true; it must be a whole number"),
        ('[manager]\nport = "1801"', "manager.port is '1801'; it must be a whole number"),
        ("[manager]\nname = 7", "manager.name is 7; it must be a text"),
        ('[manager]\nname = "a\\\\b"', "it must be the name of a computer"),
        ('[manager]\nname = "a b"', "it must be the name of a computer"),
        ('[manager]\ndata = ""', "manager.data is ''; it must be a text that is not empty"),
        ('[manager]\nbind = "eth0"', "manager.bind is 'eth0'; it must be an IP address"),
        ('[manager]\nlocal_names = "x"', "manager.local_names is 'x'; it must be a list"),
        ('[transport]\nping_enabled = "yes"', "transport.ping_enabled is 'yes'; it must be true"),
        ("[transport]\nwindow_size = 65536", "transport.window_size is 65536; it must be a whole"),
        ("[transport]\nwindow_size = 1.5", "transport.window_size is 1.5; it must be a whole"),
        ("[transport]\nresend_short = 0", "transport.resend_short is 0; it must be seconds, from"),
        ("[transport]\nresend_short = nan", "transport.resend_short is nan; it must be seconds"),
        ("[transport]\nresend_short = inf", "transport.resend_short is inf; it must be seconds"),
        ('[transport]\nresend_short = "5"', "transport.resend_short is '5'; it must be a number"),
        ('[transport]\nadvertised_address = "1.2.3.4"', "advertised_address is no setting"),
        ('[hosts]\nA = "B"', "hosts.A is 'B'; it must be an IP address"),
        ("[hosts]\nA = []", "hosts.A is []; it must be an IP address"),
        ('[log]\nlevel = "loud"', "log.level is 'loud'; it must be one of debug, info"),
        ('[[computers]]\nid = "7"', "computers[1].id is '7'; it must be a GUID"),
        ('[[computers]]\nname = "A"', "computers[1].id is missing; it must be a GUID"),
        ("computers = 7", "computers is 7; it must be a list of sections"),
        ("log = 7", "log is 7; it must be a section"),
        ('[[routes]]\nto = "A"\nvia = ["B"]', "routes[1].to is 'A'; it must be the id or the name"),
        (f'[[routes]]\nto = "{PARIS}"\nvia = []', "routes[1].via is []; it must be a list"),
        (f'[[routes]]\nto = "{PARIS}"\nvia = ["B"]', "routes[1].via is 'B'; it must be the id"),
        ("name = ", "Invalid value"),
    ],
)
def test_a_wrong_value_is_refused_with_what_is_allowed(
    loaded: Loader, text: str, problem: str
) -> None:
    error = refusal(loaded, text)
    assert "falconmq.toml: " in str(error)
    assert problem in str(error)


@pytest.mark.parametrize("key", ["id", "name"])
def test_two_computers_cannot_be_the_same(loaded: Loader, key: str) -> None:
    second = {"id": str(PARIS), "name": "OTHER"} | {key: {"id": str(BERLIN), "name": "a"}[key]}
    error = refusal(
        loaded,
        f'[[computers]]\nid = "{BERLIN}"\nname = "A"\n'
        f'[[computers]]\nid = "{second["id"]}"\nname = "{second["name"]}"\n',
    )
    assert f"computers[2].{key} is" in str(error)


def test_two_routes_cannot_lead_to_the_same_computer(loaded: Loader) -> None:
    route = '[[routes]]\nto = "A"\nvia = ["A"]\n'
    error = refusal(loaded, f'[[computers]]\nid = "{BERLIN}"\nname = "A"\n' + route * 2)
    assert "routes[2].to is 'A'; it must be named once" in str(error)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"cannot read .*nowhere.toml: No such file"):
        load(tmp_path / "nowhere.toml")


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "falconmq.toml"
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigurationError, match=r"falconmq.toml: not a text in UTF-8"):
        load(file)
