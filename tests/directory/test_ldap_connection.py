"""Servers that are away, come back, are slow, speak TLS, or send us elsewhere."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from random import Random

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from falconmq.clock import VirtualClock
from falconmq.directory.ldap_connection import SUBTREE, LdapConnections
from falconmq.directory.ldap_directory import LdapDirectory
from falconmq.directory.ldap_settings import LdapSettings
from falconmq.directory.queries import find_all, find_one
from falconmq.errors import DirectoryError, MqStatus
from falconmq.manager.core import QueueManagerCore, Settings
from falconmq.manager.directory import read_directory
from falconmq.manager.directory_backend import equals
from falconmq.manager.lifecycle import initialize
from falconmq.manager.model import QueueProperties
from falconmq.manager.queues import create_queue
from falconmq.manager.states import DirectoryResult
from falconmq.names import PathName
from falconmq.store import MemoryStore
from tests.directory.slapd import ADMINISTRATOR, DOMAIN, PASSWORD, ROOT, Slapd, find_slapd
from tests.directory.worlds import SUCCESS, World
from tests.manager.helpers import commit, pass_time

NOT_CONNECTED = DirectoryResult.DIRECTORY_NOT_CONNECTED


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Slapd]:
    """A server of one's own, to be stopped at will."""
    if find_slapd() is None:
        pytest.skip("no slapd: tools/install-slapd.sh installs one")
    server = Slapd(tmp_path).start()
    yield server
    server.stop()


def settings_of(server: Slapd) -> LdapSettings:
    return LdapSettings((server.url,), ADMINISTRATOR, PASSWORD)


def open_directory(settings: LdapSettings) -> LdapDirectory:
    return LdapDirectory(settings, VirtualClock(), Random(5))


def problem_of(directory: LdapDirectory) -> DirectoryError:
    with pytest.raises(DirectoryError) as caught:
        find_one(directory, "Enterprise", ())
    assert directory.read("Enterprise", (), None)[0] is NOT_CONNECTED
    return caught.value


@pytest.mark.requirement("DM-3.1.1.17-04")
def test_a_server_that_is_killed_and_comes_back(own: Slapd) -> None:
    # given a directory in use, on several connections
    world = World(open_directory(settings_of(own)), VirtualClock(), DOMAIN).begin()
    site = world.add_site("Berlin")
    _, handle = world.directory.begin("Site", (), None, None)
    # when its server is killed: every operation says so
    own.stop()
    for result in (
        world.directory.read("Site", equals("identifier", site), None)[0],
        world.directory.begin("Site", (), None, None)[0],
        world.directory.create("Site", {"name": "Paris"})[0],
        world.directory.write("Site", {"identifier": site, "foreign_site": True}),
        world.directory.delete("Site", site),
    ):
        assert result is NOT_CONNECTED
    assert world.directory.last_problem is not None
    assert world.directory.last_problem.status is MqStatus.NO_DS
    assert "runs" in world.directory.last_problem.hint
    # and when it is back, so are we, with nothing changed
    own.start()
    assert find_all(world.directory, "Site") == [world.get("Site", "identifier", site)]
    # also after a restart that nobody noticed
    own.stop()
    own.start()
    world.write("Site", site, foreign_site=True)
    own.stop()
    own.start()
    world.add_site("Paris")
    assert world.names("Site", "name") == ["Berlin", "Paris"]
    world.directory.end(handle)
    world.directory.close()


def is_offline(core: QueueManagerCore) -> bool:
    return core.is_directory_offline


@pytest.mark.requirement("DM-3.1.7.1.20-11", "DM-3.1.7.1.25-02", "DM-3.1.7.1.25-03")
def test_a_queue_manager_lives_through_the_absence_of_its_directory(own: Slapd) -> None:
    # given a queue manager in a directory, with a public queue
    clock = VirtualClock()
    world = World(LdapDirectory(settings_of(own), clock, Random(5)), clock, DOMAIN).begin()
    identifier = world.add_machine("alpha")
    settings = Settings(computer_name="alpha")
    core = QueueManagerCore(identifier, MemoryStore(), clock, Random(7), settings, world.directory)
    initialize(core)
    commit(core)
    queue = create_queue(core, PathName.parse(r".\orders"), QueueProperties(label="here"))
    by_guid = equals("identifier", queue.identifier)
    assert world.get("Queue", "path_name", r"alpha\orders")["identifier"] == queue.identifier
    assert queue.full_path == world.get("Queue", "identifier", queue.identifier)["full_path"]
    # when the server stops: the queue manager answers from what it knows
    own.stop()
    assert read_directory(core, "Queue", by_guid)[0] is NOT_CONNECTED
    assert is_offline(core)
    result, row = read_directory(core, "Queue", by_guid)
    assert (result, row["label"]) == (SUCCESS, "here")
    pass_time(core, 60)
    assert is_offline(core)
    # and when it is back, within a minute it is asked again, and what changed is taken over
    own.start()
    world.write("Queue", queue.identifier, label="there")
    pass_time(core, 60)
    assert not is_offline(core)
    assert queue.properties.label == "there"
    world.directory.close()


def test_a_second_server_answers_when_the_first_does_not(slapd: Slapd) -> None:
    with closing(socket.socket()) as nobody:
        nobody.bind(("127.0.0.1", 0))
        port = nobody.getsockname()[1]
        settings = replace(settings_of(slapd), urls=(f"ldap://127.0.0.1:{port}", slapd.url))
        directory = open_directory(settings)
        assert find_all(directory, "Enterprise")[0]["name"] == DOMAIN
        directory.close()


def test_a_server_that_never_answers_is_a_time_out(slapd: Slapd) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as silent:
        url = f"ldap://127.0.0.1:{silent.getsockname()[1]}"
        settings = replace(settings_of(slapd), urls=(url,), operation_timeout_seconds=0.5)
        with pytest.raises(DirectoryError) as caught:
            find_one(open_directory(settings), "Enterprise", ())
    assert "in time" in str(caught.value)
    assert "operation_timeout_seconds" in caught.value.hint


def test_a_wrong_password_is_named(slapd: Slapd) -> None:
    problem = problem_of(open_directory(replace(settings_of(slapd), password="wrong")))
    assert "bind_name" in problem.hint
    assert problem.status is MqStatus.NO_DS


def test_who_may_not_write_gets_a_named_error(slapd: Slapd) -> None:
    directory = open_directory(LdapSettings((slapd.url,)))
    assert directory.create("Site", {"name": "Rome"})[0] is DirectoryResult.GENERIC_ERROR
    assert directory.last_problem is not None
    assert directory.last_problem.hint
    directory.close()


# TLS


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A key, and a certificate for 127.0.0.1 that signs itself."""
    place = tmp_path_factory.mktemp("tls")
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "directory")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=30))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    files = {
        "TLSCertificateFile": place / "certificate.pem",
        "TLSCertificateKeyFile": place / "key.pem",
        "TLSCACertificateFile": place / "certificate.pem",
    }
    files["TLSCertificateFile"].write_bytes(made.public_bytes(serialization.Encoding.PEM))
    files["TLSCertificateKeyFile"].write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return files


@pytest.fixture(scope="module")
def secure(
    tmp_path_factory: pytest.TempPathFactory, certificate: dict[str, Path]
) -> Iterator[Slapd]:
    if find_slapd() is None:
        pytest.skip("no slapd: tools/install-slapd.sh installs one")
    more = "security tls=128"  # nothing is said in the open
    server = Slapd(tmp_path_factory.mktemp("slapd"), tls=certificate, more=more).start()
    yield server
    server.stop()


@pytest.mark.parametrize("way", ["StartTLS", "ldaps"])
def test_tls_is_spoken_and_the_server_checked(
    secure: Slapd, certificate: dict[str, Path], way: str
) -> None:
    # given a server that talks to nobody without TLS
    assert (
        open_directory(settings_of(secure)).create("Enterprise", {"name": DOMAIN})[0] is not SUCCESS
    )
    # when we know who signed its certificate, it is trusted
    settings = replace(
        settings_of(secure),
        urls=(secure.url if way == "StartTLS" else f"ldaps://127.0.0.1:{secure.tls_port}",),
        start_tls=way == "StartTLS",
        ca_file=str(certificate["TLSCertificateFile"]),
    )
    directory = open_directory(settings)
    result, _ = directory.create("Enterprise", {"name": DOMAIN})
    assert result in (SUCCESS, DirectoryResult.OBJECT_ALREADY_EXISTS)
    directory.close()
    # and when we do not, or it has another name, nothing is said to it
    for wrong in (
        replace(settings, ca_file=""),
        replace(settings, urls=(settings.urls[0].replace("127.0.0.1", "127.0.0.2"),)),
    ):
        problem = problem_of(open_directory(wrong))
        assert "ca_file" in problem.hint
    with pytest.raises(DirectoryError):
        find_one(open_directory(replace(settings, ca_file="/nowhere")), "Enterprise", ())


def test_certificates_are_always_checked(certificate: dict[str, Path]) -> None:
    settings = LdapSettings(("ldaps://a",), ca_file=str(certificate["TLSCertificateFile"]))
    context = settings.tls_context()
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)


# Referrals


def add_referral(server: Slapd, place: str, target: str) -> None:
    connections = LdapConnections(settings_of(server))
    values = {"objectClass": [b"extensibleObject"], "ref": [target.encode()], "cn": [b"away"]}
    connections.add(place, "referral", values)
    connections.close()


def test_another_server_is_asked_where_the_first_one_points(own: Slapd, slapd: Slapd) -> None:
    # given a server that has a part of the tree on another one
    world = World(open_directory(settings_of(own)), VirtualClock(), DOMAIN).begin()
    world.add_site("Berlin")
    there = World(
        LdapDirectory(
            replace(settings_of(slapd), root=f"DC=referred,{ROOT}"), VirtualClock(), Random(600)
        ),
        VirtualClock(),
        f"referred.{DOMAIN}",
    ).begin()
    there.add_machine("beta")
    add_referral(own, f"CN=away,{ROOT}", f"{slapd.url}/CN=Computers,DC=referred,{ROOT}??sub")
    # then a search finds what is there
    assert world.names("QueueManager", "computer_name") == ["beta"]
    # but a host that is not named gets neither questions nor passwords
    add_referral(own, f"CN=far,{ROOT}", "ldap://elsewhere.invalid/DC=x")
    assert world.names("QueueManager", "computer_name") == ["beta"]
    # and an entry that lives elsewhere is read there, but not changed there
    moved = f"CN=moved,CN=Sites,CN=Configuration,{ROOT}"
    add_referral(own, moved, f"{slapd.url}/CN=Sites,CN=Configuration,{ROOT}")
    connections = LdapConnections(settings_of(own))
    found = list(connections.search(moved, SUBTREE, "(objectClass=*)", ["cn"]))
    assert any("cn=sites" in entry.name.lower() for entry in found)
    with pytest.raises(DirectoryError) as caught:
        connections.modify(moved, {"description": [b"x"]})
    assert slapd.url in str(caught.value)
    assert "urls" in caught.value.hint
    stranger = f"CN=stranger,{ROOT}"
    add_referral(own, stranger, "ldap://elsewhere.invalid/DC=x")
    with pytest.raises(DirectoryError) as caught:
        connections.read(stranger, ["cn"])
    assert "elsewhere.invalid" in str(caught.value)
    assert "referral_hosts" in caught.value.hint
    connections.close()
    for each in (world, there):
        each.directory.close()
