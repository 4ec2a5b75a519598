"""The configuration says what the daemon does, and what is wrong with it, in one line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from uuid import UUID

import pytest

from falconmq.manager.states import QueuePrivacy
from falconmq.names import QueueKind
from falconmq.service.configuration import (
    Configuration,
    HistorySection,
    HttpSection,
    ManagerSection,
    Source,
    TelemetrySection,
    check,
    default_data_directory,
    load,
)
from falconmq.service.configuration.examples import example
from falconmq.service.configuration.settings import SETTINGS, Kind
from falconmq.service.configuration.showing import effective
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


@pytest.mark.requirement("QB-3.1.1.3-25", "QB-3.1.2.3-01")
@pytest.mark.requirement("QB-3.1.1.3-27", "QB-3.1.1.3-28", "QB-3.1.1.3-29", "QB-3.1.1.3-30")
def test_what_the_file_says_of_time_and_of_nacks_holds_at_every_start(tmp_path: Path) -> None:
    # given a file with other values than those by default
    chosen = {
        "resend_short": 31.0,
        "resend_medium": 301.0,
        "resend_long": 1801.0,
        "resend_final": 21_601.0,
        "try_connect_interval": 6.0,
        "send_insecure_nacks": True,
    }
    lines = [f"{name} = {str(value).lower()}" for name, value in chosen.items()]
    file = tmp_path / "falconmq.toml"
    file.write_text("[transport]\n" + "\n".join(lines), "utf-8")
    # when the service starts, and starts again, then it has them
    for _ in range(2):
        transport = load(file).transport
        assert {name: getattr(transport, name) for name in chosen} == chosen
    file.write_text("", "utf-8")
    assert all(getattr(load(file).transport, name) != value for name, value in chosen.items())


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


def test_all_mistakes_are_found_at_once(tmp_path: Path) -> None:
    file = tmp_path / "falconmq.toml"
    file.write_text(
        "[transprot]\n[manager]\nport = 0\nbnd = 1\n[http]\nport = 'x'\n[[computers]]\nid = 7\n"
        "[[queues]]\nname = '.orders'\n[[queues]]\nname = '.\\private$\\a'\nquota_kilobytes = -1\n"
        "journaling = 3\nlable = 'x'\n",
        "utf-8",
    )
    problems = [str(problem).removeprefix(f"{file}: ") for problem in check(file, {})]
    assert [problem.partition(" is ")[0] for problem in problems] == [
        "transprot",
        "manager.port",
        "manager.bnd",
        "http.port",
        "computers[1].id",
        "queues[1].name",
        "queues[2].journaling",
        "queues[2].quota_kilobytes",
        "queues[2].lable",
    ]


def test_the_first_mistake_says_how_to_see_the_others(loaded: Loader) -> None:
    error = refusal(loaded, "[manager]\nport = 0\nbind = 7\n")
    assert "manager.bind is 7" in str(error)
    assert error.hint.startswith("1 more: falconmq config check /")


def test_a_file_that_cannot_be_read_is_the_one_mistake(tmp_path: Path) -> None:
    (problem,) = check(tmp_path / "nowhere.toml", {})
    assert "cannot read" in str(problem)


def test_variables_of_the_environment_win_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / "falconmq.toml"
    file.write_text('[manager]\nname = "A"\nbind = "127.0.0.2"\n[http]\nport = 1\n', "utf-8")
    environment = {
        "FALCONMQ_MANAGER_NAME": "B",
        "FALCONMQ_MANAGER_LOCAL_NAMES": "one.example.com, two.example.com",
        "FALCONMQ_MANAGER_ADVERTISED_ADDRESS": "203.0.113.9",
        "FALCONMQ_HTTP_PORT": "0",
        "FALCONMQ_HTTP_ENABLED": "no",
        "FALCONMQ_HTTP_BIND": "",  # as an empty variable of a compose file: not set
        "FALCONMQ_TRANSPORT_WINDOW_SIZE": "32",
        "FALCONMQ_TRANSPORT_RESEND_SHORT": "0.5",
        "FALCONMQ_TRANSPORT_SEND_REPORTS": "true",
        "FALCONMQ_LOG_LEVEL": "debug",
        "FALCONMQ_URL": "http://x",
        "FALCONMQ_TOKEN": "secret",
        "FALCONMQ_PORT": "tcp://10.0.0.1:1801",  # Kubernetes; no section has that name
    }
    configuration = load(file, name="C", environment=environment)
    assert configuration.manager.name == "C"  # the option wins over both
    assert configuration.manager.bind == "127.0.0.2"
    assert configuration.manager.local_names == ("one.example.com", "two.example.com")
    assert configuration.transport.advertised_address == "203.0.113.9"
    assert (configuration.http.port, configuration.http.enabled) == (0, False)
    assert configuration.http.bind == ""
    assert configuration.transport.window_size == 32
    assert configuration.transport.resend_short == 0.5
    assert configuration.transport.send_reports is True
    assert configuration.log_level == "debug"


def test_every_value_knows_where_it_comes_from(tmp_path: Path) -> None:
    file = tmp_path / "falconmq.toml"
    file.write_text('[manager]\nname = "A"\nbind = "127.0.0.2"\nport = 7\n', "utf-8")
    environment = {"FALCONMQ_MANAGER_NAME": "B", "FALCONMQ_DATA": str(tmp_path / "data")}
    configuration = load(file, data=tmp_path / "data", bind="127.0.0.9", environment=environment)
    sources = {
        setting["name"]: setting["source"] for setting in effective(configuration)["settings"]
    }
    assert sources["manager.port"] == "file"
    assert sources["manager.name"] == "environment"
    assert sources["manager.bind"] == "option"
    assert sources["manager.data"] == "environment"  # FALCONMQ_DATA reached the option
    assert sources["http.port"] == "default"
    other = load(file, data=tmp_path / "other", environment=environment)
    assert other.sources["manager.data"] is Source.OPTION


def test_a_path_of_a_variable_is_from_where_the_command_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "etc").mkdir()
    file = tmp_path / "etc" / "falconmq.toml"
    file.write_text('[http]\ncertificate = "c.pem"\nkey = "k.pem"\n', "utf-8")
    monkeypatch.chdir(tmp_path)
    configuration = load(file, environment={"FALCONMQ_MANAGER_DATA": "data"})
    assert configuration.manager.data == tmp_path / "data"
    assert configuration.http.certificate == tmp_path / "etc" / "c.pem"


@pytest.mark.parametrize(
    ("name", "value", "problem", "hint"),
    [
        ("FALCONMQ_HTTP_PROT", "1", "FALCONMQ_HTTP_PROT is no setting", "FALCONMQ_HTTP_PORT?"),
        ("FALCONMQ_HTTP_PORT", "many", "FALCONMQ_HTTP_PORT is 'many'; it must be a whole", ""),
        ("FALCONMQ_HTTP_ENABLED", "maybe", "FALCONMQ_HTTP_ENABLED is 'maybe'; it must be", ""),
        ("FALCONMQ_HOSTS_SALES02", "10.0.0.1", "FALCONMQ_HOSTS_SALES02 is no", "the file alone"),
        (
            "FALCONMQ_HTTP_PORT",
            "tcp://10.96.0.1:8018",
            "which Kubernetes puts there",
            "enableServiceLinks",
        ),
    ],
)
def test_a_wrong_variable_is_refused_by_its_name(
    name: str, value: str, problem: str, hint: str
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load(environment={name: value})
    assert problem in str(caught.value)
    assert hint in caught.value.hint


def test_every_setting_has_a_variable_that_sets_it() -> None:
    words = {
        Kind.BOOLEAN: "true",
        Kind.SECONDS: "7",
        Kind.TEXTS: "a",
        Kind.ADDRESS: "10.9.8.7",
        Kind.PATH: "/x",
        Kind.URL: "http://x",
        Kind.NAME: "X",
        Kind.SDDL: "D:(A;;GA;;;WD)",
    }
    environment = {}
    for setting in SETTINGS:
        word = words.get(setting.kind) or str(setting.most)
        environment[setting.variable] = setting.choices[1] if setting.choices else word
    configuration = load(environment=environment)
    assert {setting.name for setting in SETTINGS} == configuration.sources.keys()


def test_declared_queues_have_what_is_given_and_nothing_else(loaded: Loader) -> None:
    configuration = loaded(
        r"""
        [manager]
        name = "SALES01"
        [[queues]]
        name = '.\private$\orders'
        transactional = true
        label = ""
        quota_kilobytes = 10
        privacy_level = "body"
        [[queues]]
        name = 'sales01\private$\late'
        """
    )
    orders, late = configuration.queues
    assert str(orders.name) == r".\private$\orders"
    assert orders.transactional
    assert orders.properties == {
        "label": "",
        "quota_kilobytes": 10,
        "privacy_level": QueuePrivacy.BODY,
    }
    assert (str(late.name), late.transactional, late.properties) == (
        r".\private$\late",
        False,
        {},
    )


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("label = 'x'", "queues[1].name is missing; it must be the path name"),
        ("name = '.orders'", "queues[1].name is '.orders'; it must be the path name"),
        (r"name = 'OTHER\private$\a'", r"it must be the path name of a queue of ours"),
        (r"name = '.\private$\a;journal'", r"it must be the path name of a queue of ours"),
        (r"name = '.\system$;deadletter'", r"it must be the path name of a queue of ours"),
        (
            "name = '.\\private$\\a'\n[[queues]]\nname = '.\\private$\\A'",
            "queues[2].name is '.\\\\private$\\\\A'; it must be named once",
        ),
        (f"name = '.\\private$\\a'\nlabel = '{'x' * 125}'", "a text of up to 124 characters"),
    ],
)
def test_a_wrong_declaration_is_refused(loaded: Loader, text: str, problem: str) -> None:
    assert problem in str(refusal(loaded, f"[[queues]]\n{text}\n"))


def test_a_plain_name_declares_a_public_queue(loaded: Loader) -> None:
    (queue,) = loaded("[[queues]]\nname = 'orders'\n").queues
    assert (str(queue.name), queue.name.kind) == (r".\orders", QueueKind.PUBLIC)


def test_the_example_is_a_file_that_means_the_defaults(loaded: Loader) -> None:
    configuration = loaded(example())
    assert configuration.transport == TransportSettings()
    assert (configuration.http, configuration.sources) == (HttpSection(), {})


def test_every_line_of_the_example_works_when_it_is_used(loaded: Loader) -> None:
    keys = {setting.key for setting in SETTINGS} | {"id", "address", "to", "via", "transactional"}
    keys |= {"sid", "groups", "tokens", "socket"}
    lines = []
    for line in example().splitlines():
        used = line.removeprefix("# ")
        key = used.partition(" = ")[0]
        is_used = key in keys or used.startswith("[[") or key.isupper()
        lines.append(
            used.replace('"PARIS"', '"BERLIN"')
            if (is_used and "=" in used) or used.startswith("[")
            else line
        )
    configuration = loaded("\n".join(lines))
    assert {setting.name for setting in SETTINGS} == configuration.sources.keys()
    assert configuration.hosts["sales02"] == ("10.0.0.8",)
    assert [str(queue.name) for queue in configuration.queues] == [r".\private$\orders"]
    assert [each.principal.name for each in configuration.principals] == ["web-shop"]
    assert configuration.transport.window_size == TransportSettings().window_size


def test_http_needs_certificate_and_key(loaded: Loader) -> None:
    error = refusal(loaded, "[http]\ncertificate = 'x.pem'\n")
    assert "http.key is missing; it must be given too: HTTPS needs both" in str(error)


def test_every_field_of_a_section_is_a_setting() -> None:
    names = {setting.name for setting in SETTINGS}
    sections = {
        "manager": ManagerSection,
        "transport": TransportSettings,
        "http": HttpSection,
        "history": HistorySection,
        "telemetry": TelemetrySection,
    }
    for section, kind in sections.items():
        for field in fields(kind):
            if field.name != "advertised_address":
                assert f"{section}.{field.name}" in names


def test_the_defaults_of_settings_and_sections_are_the_same() -> None:
    configuration = load(environment={})
    assert configuration.http == HttpSection()
    assert configuration.history == HistorySection()
    assert configuration.telemetry == TelemetrySection()
    manager = configuration.manager
    assert manager == ManagerSection(manager.name, manager.data)
