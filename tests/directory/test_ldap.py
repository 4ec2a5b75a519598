"""What only LDAP does: how values look there, pages, and other queue managers' entries."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from random import Random
from typing import Any
from uuid import UUID

import pytest

from falconmq.clock import VirtualClock
from falconmq.directory.ldap_connection import SUBTREE, LdapConnections
from falconmq.directory.ldap_directory import LdapDirectory
from falconmq.directory.ldap_settings import LdapSettings
from falconmq.directory.queries import find_all
from falconmq.errors import DirectoryError
from falconmq.manager.directory_backend import equals
from falconmq.manager.states import DirectoryResult, QueueScope
from falconmq.names import DistributionListFormatName
from falconmq.wire.sid import Sid
from tests.directory.slapd import Slapd
from tests.directory.worlds import SUCCESS, World, where

GENERIC = DirectoryResult.GENERIC_ERROR


class Raw:
    """The entries themselves."""

    def __init__(self, directory: LdapDirectory) -> None:
        self.directory = directory
        self.settings: LdapSettings = directory._settings
        self.connections: LdapConnections = directory._connections

    @property
    def root(self) -> str:
        return self.settings.root

    def values(self, place: object, attribute: str) -> list[bytes]:
        entry = self.connections.read(str(place), [attribute])
        assert entry is not None
        return entry.values.get(attribute.lower(), [])

    def settings_entries(self) -> list[tuple[str, bool]]:
        wanted = ["mSMQServices", "mSMQRoutingService", "mSMQQMID"]
        found = self.connections.search(self.root, SUBTREE, "(objectClass=mSMQSettings)", wanted)
        return sorted((entry.name, entry.first("mSMQRoutingService") == b"TRUE") for entry in found)

    def again(self, **changes: Any) -> LdapDirectory:
        return LdapDirectory(replace(self.settings, **changes), VirtualClock(), Random(99))


@pytest.fixture
def raw(ldap: World) -> Raw:
    assert isinstance(ldap.directory, LdapDirectory)
    return Raw(ldap.directory)


@pytest.mark.requirement("CN-2.3-01", "CN-2.3-03", "QB-2.3-01", "QB-2.3-02", "DM-2.3-02")
def test_values_are_written_as_active_directory_has_them(ldap: World, raw: Raw) -> None:
    ldap.add_machine("alpha")
    queue = ldap.add("Queue", path_name=r"alpha\a", label="x", journaling=True)
    place = ldap.get("Queue", "identifier", queue)["full_path"]
    assert raw.values(place, "mSMQQueueQuota") == [b"-1"]
    assert raw.values(place, "mSMQJournal") == [b"TRUE"]
    assert raw.values(place, "mSMQAuthenticate") == [b"FALSE"]
    assert raw.values(place, "objectGUID") == [queue.bytes_le]
    assert raw.values(place, "whenCreated") == [b"20231114221320.0Z"]
    assert raw.values(place, "mSMQLabelEx") == [b"x"]
    ldap.write("Queue", queue, label="", quota_kilobytes=0x80000000)
    assert raw.values(place, "mSMQLabelEx") == []
    assert raw.values(place, "mSMQQueueQuota") == [b"-2147483648"]


def test_the_rest_of_a_long_name_stands_in_its_own_attribute(ldap: World, raw: Raw) -> None:
    ldap.add_machine("alpha")
    ldap.add("Queue", path_name="alpha\\" + "q" * 80)
    row = ldap.get("Queue", "path_name", "alpha\\" + "q" * 80)
    assert str(row["full_path"]).startswith("cn=" + "q" * 55 + "-6e29c24c,")
    assert raw.values(row["full_path"], "mSMQQueueNameExt") == [b"q" * 25]


def test_a_server_is_announced_in_each_of_its_sites(ldap: World, raw: Raw) -> None:
    # given a routing server in two sites
    sites = [ldap.add_site("Berlin"), ldap.add_site("Paris")]
    machine = ldap.add(
        "QueueManager", computer_name="alpha", site_identifiers=sites, routing_server=True
    )
    places = [
        f"cn=MSMQ Settings,cn=alpha,cn=Servers,cn={site},cn=Sites,cn=Configuration,"
        + raw.root.lower()
        for site in ("Berlin", "Paris")
    ]
    # then it is announced in both, with equal values
    assert raw.settings_entries() == [(place, True) for place in places]
    assert {tuple(raw.values(place, "mSMQQMID")) for place in places} == {(machine.bytes_le,)}
    assert {tuple(raw.values(place, "mSMQServices")) for place in places} == {(b"1",)}
    # and what changes, changes there; what ends, ends there
    ldap.write("QueueManager", machine, supporting_server=True, routing_server=False)
    assert raw.settings_entries() == [(place, False) for place in places]
    ldap.write("QueueManager", machine, site_identifiers=sites[1:])
    assert raw.settings_entries() == [(places[1], False)]
    ldap.write("QueueManager", machine, supporting_server=False)
    assert raw.settings_entries() == []
    ldap.write("QueueManager", machine, directory_server=True)
    assert ldap.directory.delete("QueueManager", machine) is SUCCESS
    assert raw.settings_entries() == []


@pytest.mark.parametrize(
    ("version", "expected"), [([b"3"], True), ([b"200"], False), ([], True)], ids=str
)
def test_an_old_directory_is_known_by_its_version(
    ldap: World, raw: Raw, version: list[bytes], expected: bool
) -> None:
    place = f"CN=MsmqServices,CN=Services,CN=Configuration,{raw.root}"
    raw.connections.modify(place, {"mSMQVersion": version, "mSMQCSPName": [], "mSMQLongLived": []})
    row = find_all(ldap.directory, "Enterprise")[0]
    assert row["old_directory"] is expected
    assert row["non_ldap_capable_queue_manager_notification"] is True
    assert row["default_time_to_live"] == 345_600


def test_an_entry_with_nothing_in_it_reads_as_the_defaults(ldap: World, raw: Raw) -> None:
    ldap.add_machine("alpha")
    place = f"CN=bare,CN=msmq,CN=alpha,CN=Computers,{raw.root}"
    raw.connections.add(place, "mSMQQueue", {"objectGUID": [UUID(int=77).bytes_le]})
    row = ldap.get("Queue", "path_name", r"alpha\bare")
    assert (row["identifier"], row["label"]) == (UUID(int=77), "")
    assert row["quota_kilobytes"] == 0xFFFFFFFF
    assert row["create_time"] is None
    assert ldap.names("Queue", "path_name", where("journaling", "=", False)) == [r"alpha\bare"]
    by_path = equals("path_name", r"alpha\bare")
    result, _ = ldap.directory.read("Queue", by_path, ("create_time",))
    assert result is DirectoryResult.ATTRIBUTE_NOT_FOUND


def test_more_entries_than_a_page_come_all_and_once(ldap: World, raw: Raw) -> None:
    ldap.add_machine("alpha")
    ldap.directory.create_many("Queue", [{"path_name": f"alpha\\q{n}"} for n in range(23)])
    for page_size in (1, 5, 23, 1000):
        directory = raw.again(page_size=page_size)
        paths = [row["path_name"] for row in find_all(directory, "Queue")]
        assert sorted(map(str, paths)) == sorted(f"alpha\\q{n}" for n in range(23))
        directory.close()
    # a query that is left in the middle does no harm
    directory = raw.again(page_size=4)
    _, handle = directory.begin("Queue", (), None, None)
    assert directory.next(handle)[0] is SUCCESS
    assert directory.end(handle) is SUCCESS
    assert len(find_all(directory, "Queue")) == 23
    directory.close()


def test_a_filter_is_never_more_than_a_value(ldap: World) -> None:
    ldap.add_machine("alpha")
    for number, label in enumerate(["*", "x)(cn=*", "a\\2ab", "\0", "ü(", "plain"]):
        ldap.add("Queue", path_name=f"alpha\\q{number}", label=label)
        assert ldap.names("Queue", "label", where("label", "=", label)) == [label]
    assert ldap.result("QueueManager", "computer_name", "*") is DirectoryResult.OBJECT_NOT_FOUND
    assert ldap.result("Site", "name", "x,CN=Sites") is DirectoryResult.OBJECT_NOT_FOUND


@pytest.mark.parametrize(
    ("type_name", "row"),
    [
        ("Queue", {"path_name": r"alpha\a", "scope": QueueScope.SITE}),
        ("QueueManager", {"computer_name": "b", "connected_network_identifiers": [UUID(int=1)]}),
        ("QueueManager", {"computer_name": "b", "network_addresses": b"\1"}),
        ("Site", {"name": "Paris", "primary_site_controller": "alpha"}),
        ("Site", {"name": "Paris", "public_signing_keys": b"\1"}),
    ],
)
def test_what_active_directory_has_no_place_for_is_refused(
    ldap: World, type_name: str, row: dict[str, Any]
) -> None:
    site = ldap.add_site()
    machine = ldap.add_machine("alpha", site)
    if type_name == "QueueManager":
        row = {"site_identifiers": [site], **row}
    assert ldap.directory.create(type_name, row)[0] is GENERIC
    changed = {"identifier": machine, "network_addresses": b"\1"}
    assert ldap.directory.write("QueueManager", changed) is GENERIC


def test_a_member_of_another_class_is_an_error(ldap: World, raw: Raw) -> None:
    place = f"CN=Computers,{raw.root}"
    name = ldap.add("DistributionList", name="odd", members=[place])
    result, members = ldap.directory.resolve_distribution_list(DistributionListFormatName(name))
    assert (result, members) == (GENERIC, ())


def test_the_sid_of_a_computer_is_that_of_its_account(ldap: World, raw: Raw) -> None:
    ldap.add_machine("alpha")
    assert ldap.directory.computer_sid("alpha") is None
    sid = Sid.parse("S-1-5-21-1-2-3-1001")
    raw.connections.modify(f"CN=alpha,CN=Computers,{raw.root}", {"objectSid": [sid.encode()]})
    assert ldap.directory.computer_sid("alpha") == sid
    assert ldap.directory.computer_sid("beta") is None
    assert list(ldap.directory.find_servers("example.com")) == ["127.0.0.1"]


def test_a_clustered_queue_manager_is_known_by_its_account(ldap: World) -> None:
    ldap.add_machine("alpha", clustered=True)
    assert ldap.get("QueueManager", "computer_name", "alpha")["clustered"] is True


def test_an_enterprise_has_the_name_of_its_directory(ldap: World, raw: Raw) -> None:
    result, _ = ldap.directory.create("Enterprise", {"name": "other.org"})
    assert result is GENERIC
    assert ldap.directory.last_problem is not None
    assert ldap.domain in ldap.directory.last_problem.hint


def test_many_threads_may_ask_at_once(ldap: World) -> None:
    ldap.add_machine("alpha")
    for number in range(8):
        ldap.add("Queue", path_name=f"alpha\\q{number}", label=str(number))

    def labels(number: int) -> list[object]:
        path = f"alpha\\q{number}"
        return [ldap.get("Queue", "path_name", path)["label"] for _ in range(5)]

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(labels, range(8))) == [[str(number)] * 5 for number in range(8)]


def test_an_addition_whose_answer_was_lost_is_known_by_its_guid(
    ldap: World, raw: Raw, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given a connection that breaks behind every addition, so that each is tried twice
    add = LdapConnections.add

    def twice(self: LdapConnections, *arguments: Any) -> None:
        add(self, *arguments)
        add(self, *arguments)

    ldap.add_machine("alpha")
    monkeypatch.setattr(LdapConnections, "add", twice)
    # then the first of the two counts
    queue = ldap.add("Queue", path_name=r"alpha\a")
    monkeypatch.undo()
    assert ldap.get("Queue", "path_name", r"alpha\a")["identifier"] == queue
    # but a name that somebody else has taken stays taken
    assert ldap.directory.create("Queue", {"path_name": r"alpha\a"})[0] is not SUCCESS


def test_a_server_is_reached_through_its_socket_file(ldap: World, raw: Raw, slapd: Slapd) -> None:
    ldap.add_site("Berlin")
    directory = raw.again(urls=(slapd.socket_url,))
    assert [row["name"] for row in find_all(directory, "Site")] == ["Berlin"]
    directory.close()


def test_the_server_says_where_its_tree_is(slapd: Slapd, raw: Raw) -> None:
    directory = raw.again(root="")
    row = find_all(directory, "Enterprise")[0]
    assert row["name"] == "example.com"
    directory.close()


@pytest.mark.parametrize(
    ("urls", "name"), [((), ""), (("http://host",), ""), (("host",), ""), (("ldap://h",), "cn=a")]
)
def test_settings_that_cannot_be_right_are_refused(urls: tuple[str, ...], name: str) -> None:
    with pytest.raises(DirectoryError) as caught:
        LdapSettings(urls, name)
    assert caught.value.hint


def test_a_password_is_never_shown() -> None:
    assert "geheim" not in repr(LdapSettings(("ldap://a",), "cn=a", "geheim"))
