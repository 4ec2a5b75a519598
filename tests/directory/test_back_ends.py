"""One suite for all back ends: what a directory does, wherever it is kept (guide, section 10)."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

import pytest

from falconmq.directory.base import DirectoryBase
from falconmq.directory.queries import find_all, find_one
from falconmq.errors import DirectoryError, MqStatus
from falconmq.manager.directory_backend import SortKey, equals
from falconmq.manager.states import (
    DirectoryResult,
    DirectoryServerType,
    OperatingSystemType,
    QueuePrivacy,
)
from falconmq.names import DistributionListFormatName, PublicFormatName, parse_format_name
from falconmq.wire.access_masks import MQSEC_QUEUE_GENERIC_ALL, MQSEC_SITE_GENERIC_READ
from falconmq.wire.ace import access_allowed
from falconmq.wire.acl import Acl
from falconmq.wire.security_descriptor import SecurityDescriptor
from falconmq.wire.sid import EVERYONE, Sid
from falconmq.wire.user_sign_certs import UserSignCert, UserSignCerts
from tests.directory.worlds import SUCCESS, World, where

NOT_FOUND = DirectoryResult.OBJECT_NOT_FOUND
EXISTS = DirectoryResult.OBJECT_ALREADY_EXISTS
GENERIC = DirectoryResult.GENERIC_ERROR
SID = Sid.parse("S-1-5-21-1-2-3-1001").encode()

CHANGES: dict[str, dict[str, Any]] = {
    "Queue": {
        "label": "Neue Aufträge",
        "type": UUID(int=0x1234_5678_9ABC),
        "journaling": True,
        "quota_kilobytes": 17,
        "journal_quota_kilobytes": 0x8000_0000,
        "authentication": True,
        "privacy_level": QueuePrivacy.BODY,
        "multicast_address": "234.1.1.1:8001",
        "base_priority": -7,
        "security": SecurityDescriptor(
            dacl=Acl.of([access_allowed(MQSEC_QUEUE_GENERIC_ALL, EVERYONE)])
        ),
    },
    "QueueManager": {
        "quota_kilobytes": 0xFFFFFFFF,
        "journal_quota_kilobytes": 5,
        "queue_manager_version": "5.1",
        "foreign_system": True,
        "operating_system_type": OperatingSystemType.WIN_SERVER,
        "operating_system_version": "10.0",
        "qualified_computer_name": "alpha.example.com",
        "routing_server": True,
        "directory_server": True,
        "supporting_server": True,
        "remote_access_server": True,
        "server_type": DirectoryServerType.PRIMARY_SITE_CONTROLLER,
        "public_encryption_keys": b"\x00keys\xff",
        "public_signing_keys": b"\x00certificates\xff",
    },
    "Site": {
        "intra_site_replication_interval": 30,
        "inter_site_replication_interval": 0xFFFF,
        "foreign_site": True,
        "migrated_from_msmq10": True,
        "security": SecurityDescriptor(
            dacl=Acl.of([access_allowed(MQSEC_SITE_GENERIC_READ, EVERYONE)])
        ),
    },
    "RoutingLink": {"description": "sea cable", "actual_cost": 999_999},
    "Enterprise": {
        "weakened_security": True,
        "non_ldap_capable_queue_manager_notification": False,
        "default_time_to_live": 60,
        "old_directory": True,
    },
}
DEFAULTS: dict[str, dict[str, Any]] = {
    "Queue": {
        "label": "",
        "type": UUID(int=0),
        "journaling": False,
        "quota_kilobytes": 0xFFFFFFFF,
        "journal_quota_kilobytes": 0xFFFFFFFF,
        "authentication": False,
        "privacy_level": QueuePrivacy.OPTIONAL,
        "transactional": False,
        "multicast_address": None,
        "base_priority": 0,
        "security": None,
    },
    "QueueManager": {
        "quota_kilobytes": 0x100000,
        "journal_quota_kilobytes": 0xFFFFFFFF,
        "foreign_system": False,
        "operating_system_type": OperatingSystemType.OTHER,
        "routing_server": False,
        "server_type": DirectoryServerType.STANDALONE,
        "out_routing_server_identifiers": [],
        "public_encryption_keys": b"",
    },
    "Site": {"intra_site_replication_interval": 2, "inter_site_replication_interval": 10},
    "RoutingLink": {"description": "", "site_gate_identifiers": []},
    "Enterprise": {
        "weakened_security": False,
        "non_ldap_capable_queue_manager_notification": True,
        "default_time_to_live": 345_600,
        "old_directory": False,
    },
}


def add_one(world: World, type_name: str) -> UUID:
    match type_name:
        case "Queue":
            world.add_machine("alpha")
            return world.add("Queue", path_name=r"alpha\orders")
        case "QueueManager":
            return world.add_machine("alpha")
        case "Site":
            return world.add_site("Berlin")
        case "RoutingLink":
            ends = world.add_site("Berlin"), world.add_site("Paris")
            return world.add(
                "RoutingLink", site1_identifier=ends[0], site2_identifier=ends[1], actual_cost=1
            )
    return UUID(str(find_all(world.directory, "Enterprise")[0]["identifier"]))


@pytest.mark.parametrize("type_name", CHANGES)
def test_what_is_written_is_read(world: World, type_name: str) -> None:
    # given a new object, with the defaults of its type
    identifier = add_one(world, type_name)
    row = world.get(type_name, "identifier", identifier)
    assert {name: row[name] for name in DEFAULTS[type_name]} == DEFAULTS[type_name]
    # when every attribute is written, one by one
    for name, value in CHANGES[type_name].items():
        world.write(type_name, identifier, **{name: value})
    # then they are as they were written, and back as they were when that is written
    row = world.get(type_name, "identifier", identifier)
    assert {name: row[name] for name in CHANGES[type_name]} == CHANGES[type_name]
    before = {
        name: value for name, value in DEFAULTS[type_name].items() if name in CHANGES[type_name]
    }
    world.write(type_name, identifier, **before)
    row = world.get(type_name, "identifier", identifier)
    assert {name: row[name] for name in before} == before


@pytest.mark.requirement("DM-3.1.1.17-05")
@pytest.mark.parametrize("type_name", ["Queue", "QueueManager", "Site", "RoutingLink"])
def test_a_deleted_object_is_gone_from_everywhere(world: World, type_name: str) -> None:
    identifier = add_one(world, type_name)
    place = world.get(type_name, "identifier", identifier)["full_path"]
    assert world.get(type_name, "full_path", str(place).upper())["identifier"] == identifier
    assert world.directory.delete(type_name, identifier) is SUCCESS
    assert world.result(type_name, "identifier", identifier) is NOT_FOUND
    assert world.result(type_name, "full_path", place) is NOT_FOUND
    assert find_all(world.directory, type_name, equals("identifier", identifier)) == []
    assert world.directory.delete(type_name, identifier) is NOT_FOUND
    assert world.directory.write(type_name, {"identifier": identifier}) is NOT_FOUND


@pytest.mark.requirement("MQ-2.3.1.22-02")
def test_a_queue_is_found_by_its_path_in_any_letters(world: World) -> None:
    machine = world.add_machine("Alpha", qualified_computer_name="alpha.example.com")
    queue = world.add("Queue", path_name=r"ALPHA\Orders")
    row = world.get("Queue", "path_name", r"alpha\ORDERS")
    assert row["identifier"] == queue
    assert row["path_name"] == r"alpha\orders"
    assert row["qualified_path_name"] == r"alpha.example.com\orders"
    assert row["computer_name"] == "alpha"
    assert row["queue_manager_identifier"] == machine
    assert row["directory_path"] == f"LDAP://{row['full_path']}"
    assert str(row["full_path"]).lower().startswith("cn=orders,cn=msmq,cn=alpha,cn=computers,")
    assert world.result("Queue", "path_name", r"alpha\other") is NOT_FOUND
    assert world.result("Queue", "path_name", "no path name") is NOT_FOUND


def test_the_queues_of_a_queue_manager(world: World) -> None:
    world.add_machine("alpha")
    world.add_machine("beta")
    for path in (r"alpha\a", r"alpha\b", r"beta\c"):
        world.add("Queue", path_name=path)
    of_alpha = world.names("Queue", "path_name", where("computer_name", "=", "ALPHA"))
    assert of_alpha == [r"alpha\a", r"alpha\b"]


@pytest.mark.parametrize("length", [63, 64, 65, 124])
def test_a_queue_name_of_any_length_comes_back(world: World, length: int) -> None:
    name = ("Quite-a-long-name-" * 7)[:length]
    world.add_machine("alpha")
    world.add("Queue", path_name=f"alpha\\{name}")
    row = world.get("Queue", "path_name", f"alpha\\{name}")
    assert row["path_name"] == f"alpha\\{name}".lower()
    component = str(row["full_path"]).split(",")[0].removeprefix("CN=").removeprefix("cn=")
    assert len(component) == min(length, 64)


def test_long_names_that_differ_at_their_end_are_two_queues(world: World) -> None:
    world.add_machine("alpha")
    one = world.add("Queue", path_name=r"alpha" + "\\" + "q" * 79 + "1")
    two = world.add("Queue", path_name=r"alpha" + "\\" + "q" * 79 + "2")
    assert world.get("Queue", "path_name", r"alpha" + "\\" + "q" * 79 + "2")["identifier"] == two
    assert one != two


@pytest.mark.parametrize("name", ["a=b", "#first", "a/b", "a<b>", "=#/<", "(a)*", "a'b&|!"])
def test_signs_that_ldap_has_other_uses_for(world: World, name: str) -> None:
    world.add_machine("alpha")
    queue = world.add("Queue", path_name=f"alpha\\{name}", label=name)
    row = world.get("Queue", "path_name", f"alpha\\{name}")
    assert (row["identifier"], row["path_name"]) == (queue, f"alpha\\{name}")
    assert world.get("Queue", "full_path", row["full_path"])["identifier"] == queue
    assert world.names("Queue", "label", where("label", "=", name)) == [name]


@pytest.mark.requirement("DM-3.1.1.17-08", "DM-3.1.1.7-01")
def test_names_are_taken_once(world: World) -> None:
    world.add_machine("alpha")
    world.add_site("Berlin")
    world.add("Queue", path_name=r"alpha\orders")
    assert world.directory.create("Queue", {"path_name": r"ALPHA\ORDERS"})[0] is EXISTS
    assert world.directory.create("Site", {"name": "BERLIN"})[0] is EXISTS
    assert world.directory.create("Enterprise", {"name": world.domain})[0] is EXISTS
    assert len(find_all(world.directory, "Queue")) == 1


def test_a_guid_is_taken_once(world: World) -> None:
    site = world.add_site("Berlin")
    assert world.directory.create("Site", {"name": "Paris", "identifier": site})[0] is EXISTS, (
        world.directory.last_problem
    )
    assert world.names("Site", "name") == ["Berlin"]


def test_a_site_keeps_the_guid_of_its_creator_and_a_queue_gets_one(world: World) -> None:
    wanted = uuid4()
    assert world.add("Site", name="Berlin", identifier=wanted) == wanted
    world.add_machine("alpha")
    assert world.add("Queue", path_name=r"alpha\q", identifier=wanted) != wanted


def test_a_queue_manager_that_exists_keeps_its_guid(world: World) -> None:
    site = world.add_site()
    first = world.add_machine("alpha", site, quota_kilobytes=5)
    assert world.add_machine("ALPHA", site, quota_kilobytes=6) == first
    assert world.get("QueueManager", "computer_name", "alpha")["quota_kilobytes"] == 5


def test_a_queue_needs_its_queue_manager_and_keeps_it(world: World) -> None:
    assert world.directory.create("Queue", {"path_name": r"alpha\orders"})[0] is NOT_FOUND
    machine = world.add_machine("alpha")
    queue = world.add("Queue", path_name=r"alpha\orders")
    assert world.directory.delete("QueueManager", machine) is GENERIC
    assert world.directory.delete("Queue", queue) is SUCCESS
    assert world.directory.delete("QueueManager", machine) is SUCCESS


def test_a_site_with_servers_stays_and_an_empty_one_goes(world: World) -> None:
    site = world.add_site()
    machine = world.add_machine("alpha", site, routing_server=True)
    assert world.directory.delete("Site", site) is GENERIC
    world.write("QueueManager", machine, routing_server=False)
    assert world.directory.delete("Site", site) is SUCCESS
    assert world.result("Site", "identifier", site) is NOT_FOUND


def test_an_enterprise_cannot_be_deleted(world: World) -> None:
    row = find_all(world.directory, "Enterprise")[0]
    assert row["name"] == world.domain
    assert world.directory.delete("Enterprise", UUID(str(row["identifier"]))) is GENERIC


def test_a_link_needs_two_sites_and_keeps_the_gates_that_exist(world: World) -> None:
    berlin, paris = world.add_site("Berlin"), world.add_site("Paris")
    gate = world.add_machine("gate", berlin)
    ends = {"site1_identifier": berlin, "site2_identifier": paris, "actual_cost": 3}
    unknown = {**ends, "site2_identifier": uuid4()}
    assert world.directory.create("RoutingLink", unknown)[0] is GENERIC
    link = world.add("RoutingLink", **ends, site_gate_identifiers=[uuid4(), gate])
    row = world.get("RoutingLink", "identifier", link)
    assert (row["site1_identifier"], row["site2_identifier"]) == (berlin, paris)
    assert row["site_gate_identifiers"] == [gate]
    assert world.directory.create("RoutingLink", ends)[0] is EXISTS
    for name, site in (("site1_identifier", berlin), ("site2_identifier", paris)):
        assert world.names("RoutingLink", "identifier", where(name, "=", site)) == [link]
    assert world.names("RoutingLink", "identifier", where("site1_identifier", "=", paris)) == []
    world.write("RoutingLink", link, site_gate_identifiers=[gate, uuid4()])
    assert world.get("RoutingLink", "identifier", link)["site_gate_identifiers"] == [gate]
    world.write("RoutingLink", link, site_gate_identifiers=[])
    assert world.get("RoutingLink", "identifier", link)["site_gate_identifiers"] == []


def test_routing_servers_and_sites_of_a_queue_manager(world: World) -> None:
    berlin, paris = world.add_site("Berlin"), world.add_site("Paris")
    router = world.add_machine("router", berlin, routing_server=True)
    alpha = world.add_machine("alpha", berlin, out_routing_server_identifiers=[router, uuid4()])
    world.write("QueueManager", alpha, site_identifiers=[berlin, paris])
    world.write("QueueManager", alpha, in_routing_server_identifiers=[uuid4(), router])
    row = world.get("QueueManager", "identifier", alpha)
    assert row["out_routing_server_identifiers"] == [router]
    assert row["in_routing_server_identifiers"] == [router]
    assert row["site_identifiers"] == [berlin, paris]
    members = where("site_identifiers", "=", berlin)
    assert world.names("QueueManager", "computer_name", members) == ["alpha", "router"]
    routers = where("routing_server", "=", True)
    assert world.names("QueueManager", "computer_name", members, routers) == ["router"]
    others = where("site_identifiers", "!=", paris)
    assert world.names("QueueManager", "computer_name", others) == ["router"]


@pytest.mark.requirement("DM-3.1.7.1.20-02", "DM-3.1.7.1.20-04", "DM-3.1.7.1.20-05")
@pytest.mark.requirement("DM-3.1.7.1.21-02")
@pytest.mark.parametrize(
    ("name", "operator", "value", "expected"),
    [
        ("label", "=", "Two", ["b"]),
        ("label", "=", "two", []),
        ("label", "=", "", ["a"]),
        ("label", "!=", "Two", ["a", "c"]),
        ("label", ">", "Three", ["b"]),
        ("quota_kilobytes", "<", 100, ["a"]),
        ("quota_kilobytes", "<=", 100, ["a", "b"]),
        ("quota_kilobytes", ">", 100, ["c"]),
        ("quota_kilobytes", ">=", 100, ["b", "c"]),
        ("quota_kilobytes", "=", 0xFFFFFFFF, ["c"]),
        ("journaling", "=", False, ["a", "c"]),
        ("transactional", "!=", True, ["a", "b"]),
        ("create_time", ">=", 1_700_000_010, ["b", "c"]),
        ("create_time", "<", 1_700_000_010, ["a"]),
        ("create_time", "=", 1_700_000_010, ["b"]),
        ("multicast_address", "=", None, ["a", "b"]),
        ("multicast_address", "=", "234.1.1.1:80", ["c"]),
        ("type", "=", UUID(int=7), ["b"]),
    ],
)
def test_filters_find_the_same_everywhere(
    world: World, name: str, operator: str, value: object, expected: list[str]
) -> None:
    world.add_machine("alpha")
    world.add("Queue", path_name=r"alpha\a", quota_kilobytes=1)
    world.clock.advance(10)
    world.add(
        "Queue",
        path_name=r"alpha\b",
        label="Two",
        quota_kilobytes=100,
        journaling=True,
        type=UUID(int=7),
    )
    world.clock.advance(10)
    world.add(
        "Queue",
        path_name=r"alpha\c",
        label="Three",
        transactional=True,
        multicast_address="234.1.1.1:80",
    )
    expression = where(name, operator, value)
    found = world.names("Queue", "path_name", expression)
    assert found == [f"alpha\\{letter}" for letter in expected]
    first = find_one(world.directory, "Queue", [expression])
    assert (first is None) == (not expected)
    assert first is None or first["path_name"] in found


@pytest.mark.requirement("DM-3.1.7.1.21-04", "DM-3.1.7.1.21-05", "DM-3.1.7.1.22-01")
@pytest.mark.requirement(
    "DM-3.1.7.1.22-02", "DM-3.1.7.1.23-01", "DM-3.1.7.1.21-03", "DM-3.1.1.17-07"
)
def test_a_query_comes_in_the_order_that_was_asked_for(world: World) -> None:
    world.add_machine("alpha")
    for name, quota in (("a", 2), ("b", 1), ("c", 2)):
        world.add("Queue", path_name=f"alpha\\{name}", quota_kilobytes=quota)
    columns = ("path_name", "quota_kilobytes")
    order = (SortKey(1, ascending=False), SortKey(2))
    result, handle = world.directory.begin("Queue", (), columns, order)
    rows = [world.directory.next(handle) for _ in range(4)]
    assert result is SUCCESS
    assert [row.get("path_name") for _, row in rows] == [r"alpha\b", r"alpha\c", r"alpha\a", None]
    assert [result for result, _ in rows] == [SUCCESS] * 3 + [DirectoryResult.END_OF_DATA]
    assert set(rows[0][1]) == {"identifier", *columns}
    assert world.directory.end(handle) is SUCCESS
    assert world.directory.end(handle) is GENERIC
    assert world.directory.next(handle)[0] is GENERIC


@pytest.mark.requirement("DM-3.1.1.17-02", "DM-3.1.1.17-06", "DM-3.1.7.1.20-03")
def test_only_what_was_asked_for_and_is_there(world: World) -> None:
    world.add_machine("alpha")
    world.add("Queue", path_name=r"alpha\a", label="x")
    by_path = equals("path_name", r"alpha\a")
    result, row = world.directory.read("Queue", by_path, ("label", "create_time"))
    assert result is SUCCESS
    assert set(row) == {"identifier", "label", "create_time"}
    result, row = world.directory.read("Queue", by_path, ("security",))
    assert result is DirectoryResult.ATTRIBUTE_NOT_FOUND
    assert not row


def test_times_are_those_of_the_directory(world: World) -> None:
    world.add_machine("alpha")
    queue = world.add("Queue", path_name=r"alpha\a", create_time=1, modify_time=2)
    world.clock.advance(30)
    world.write("Queue", queue, label="x", create_time=3, modify_time=4)
    row = world.get("Queue", "identifier", queue)
    assert (row["create_time"], row["modify_time"]) == (1_700_000_000, 1_700_000_030)
    world.clock.advance(30)
    world.write("Queue", queue, security=CHANGES["Queue"]["security"])
    assert world.get("Queue", "identifier", queue)["modify_time"] == 1_700_000_060


@pytest.mark.requirement("MQ-2.3.1.3-02")
def test_what_a_queue_is_never_changes(world: World) -> None:
    world.add_machine("alpha")
    queue = world.add("Queue", path_name=r"alpha\a", transactional=True)
    world.write("Queue", queue, transactional=False, path_name=r"alpha\b", full_path="CN=x")
    row = world.get("Queue", "identifier", queue)
    assert (row["transactional"], row["path_name"]) == (True, r"alpha\a")


WRONG: list[tuple[str, dict[str, Any]]] = [
    ("Queue", {}),
    ("Queue", {"path_name": "orders"}),
    ("Queue", {"path_name": r".\orders"}),
    ("Queue", {"path_name": r"alpha\private$\orders"}),
    ("Queue", {"path_name": r"alpha\a", "colour": "red"}),
    ("Queue", {"path_name": r"alpha\a", "site_identifiers": []}),
    ("Queue", {"path_name": r"alpha\a", "label": 7}),
    ("Queue", {"path_name": r"alpha\a", "label": "x" * 125}),
    ("Queue", {"path_name": r"alpha\a", "quota_kilobytes": -1}),
    ("Queue", {"path_name": r"alpha\a", "quota_kilobytes": True}),
    ("Queue", {"path_name": r"alpha\a", "journaling": 1}),
    ("Queue", {"path_name": r"alpha\a", "privacy_level": 3}),
    ("QueueManager", {"computer_name": "beta"}),
    ("QueueManager", {"computer_name": "beta", "site_identifiers": []}),
    ("Site", {"name": ""}),
    ("Site", {"name": "half a \ud800"}),
    ("Site", {}),
    ("RoutingLink", {"actual_cost": 1}),
    ("User", {"security_identifier": SID}),
    ("User", {"security_identifier": b"?", "certificates": b"", "certificate_digests": []}),
    ("Planet", {"name": "Mars"}),
]


@pytest.mark.requirement("DM-3.1.1.17-03", "MQ-2.3.1.3-02")
@pytest.mark.parametrize(("type_name", "row"), WRONG, ids=str)
def test_what_is_wrong_is_refused_and_leaves_nothing(
    world: World, type_name: str, row: dict[str, Any]
) -> None:
    world.add_machine("alpha")
    assert world.directory.create(type_name, row)[0] is GENERIC
    assert world.directory.last_problem is not None
    assert find_all(world.directory, "Queue") == []


@pytest.mark.requirement("DM-3.1.1.8-03")
@pytest.mark.parametrize("cost", [0, 1_000_000, -1])
def test_a_cost_out_of_range_is_refused(world: World, cost: int) -> None:
    link = add_one(world, "RoutingLink")
    assert (
        world.directory.write("RoutingLink", {"identifier": link, "actual_cost": cost}) is GENERIC
    )
    assert world.get("RoutingLink", "identifier", link)["actual_cost"] == 1


@pytest.mark.requirement("DM-3.1.1.7-09")
def test_a_descriptor_with_rights_of_another_kind_is_refused(world: World) -> None:
    foreign = SecurityDescriptor(dacl=Acl.of([access_allowed(0x8, EVERYONE)]))
    assert world.directory.create("Site", {"name": "Berlin", "security": foreign})[0] is GENERIC


@pytest.mark.parametrize(
    "expression",
    [
        where("colour", "=", "red"),
        where("qualified_path_name", "=", "x"),
        where("journaling", "<", True),
        where("label", "=", 7),
        where("quota_kilobytes", ">", "x"),
    ],
    ids=str,
)
def test_a_filter_that_means_nothing_is_an_error_and_matches_nothing(
    world: World, expression: Any
) -> None:
    world.add_machine("alpha")
    world.add("Queue", path_name=r"alpha\a")
    assert world.directory.read("Queue", [expression], None)[0] is GENERIC
    assert world.directory.begin("Queue", [expression], None, None)[0] is GENERIC
    with pytest.raises(DirectoryError):
        find_all(world.directory, "Queue", [expression])


def test_certificates_and_digests_of_a_user_stay_in_order(world: World) -> None:
    # given a user with two certificates
    certificates = [UserSignCert.registered(bytes(16), bytes([n]) * 40) for n in (9, 200, 3)]
    certificates.sort(key=lambda certificate: certificate.digest, reverse=True)
    digests = [certificate.digest for certificate in certificates]
    user = world.add(
        "User",
        security_identifier=SID,
        certificates=UserSignCerts(certificates[:2]).encode(),
        certificate_digests=digests[:2],
    )
    assert world.get("User", "security_identifier", SID)["certificate_digests"] == digests[:2]
    # when a third is added
    packed = UserSignCerts(certificates).encode()
    world.write("User", user, certificates=packed, certificate_digests=digests)
    # then all are there in the same order, and each digest leads to the user
    row = world.get("User", "security_identifier", SID)
    assert (row["certificates"], row["certificate_digests"]) == (packed, digests)
    for digest in digests:
        assert world.get("User", "certificate_digests", digest)["identifier"] == user
    again = {"security_identifier": SID, "certificates": b"", "certificate_digests": []}
    assert world.directory.create("User", again)[0] is EXISTS


def test_a_distribution_list_stands_for_all_its_queues(world: World) -> None:
    # given lists with a queue, an alias, and each other
    world.add_machine("alpha")
    queue, other = (world.add("Queue", path_name=f"alpha\\{name}") for name in "ab")
    world.add("QueueAlias", name="away", format_name=r"DIRECT=OS:beta\q")
    place = {
        name: str(world.get(kind, key, value)["full_path"])
        for name, kind, key, value in (
            ("a", "Queue", "identifier", queue),
            ("b", "Queue", "identifier", other),
            ("away", "QueueAlias", "name", "away"),
            ("machine", "QueueManager", "computer_name", "alpha"),
        )
    }
    inner = world.add("DistributionList", name="inner", members=[place["b"], place["a"]])
    inner_place = str(world.get("DistributionList", "name", "inner")["full_path"])
    outer = world.add(
        "DistributionList", name="outer", members=[place["a"], place["away"], inner_place]
    )
    outer_place = str(world.get("DistributionList", "name", "outer")["full_path"])
    world.write("DistributionList", inner, members=[place["b"], place["a"], outer_place])
    # then each destination comes once, circles or not
    away = parse_format_name(r"DIRECT=OS:beta\q")
    result, members = world.directory.resolve_distribution_list(DistributionListFormatName(outer))
    assert result is SUCCESS
    assert set(members) == {PublicFormatName(queue), PublicFormatName(other), away}
    assert len(members) == 3
    assert world.directory.resolve_queue_alias(place["away"]) == (SUCCESS, away)
    assert world.directory.resolve_queue_alias(place["a"])[0] is GENERIC
    # but a member that is no destination is an error, and so is a list that is not there
    world.write("DistributionList", inner, members=[place["machine"]])
    outer_name = DistributionListFormatName(outer)
    assert world.directory.resolve_distribution_list(outer_name)[0] is GENERIC
    unknown = DistributionListFormatName(uuid4())
    assert world.directory.resolve_distribution_list(unknown)[0] is NOT_FOUND


def pages(world: World, filters: Any, attributes: Any, limit: int) -> list[list[Any]]:
    """All pages of a query, from the first to the last."""
    found, after = [], None
    for _ in range(20):
        result, page = world.directory.page("Queue", filters, attributes, after, limit)
        assert result is SUCCESS, world.directory.last_problem
        assert len(page.rows) <= limit
        found.append(list(page.rows))
        if page.next is None:
            return found
        after = page.next
    raise AssertionError("there is no end")


def test_pages_hold_every_object_once_in_the_order_of_guids(world: World) -> None:
    # given queues of two queue managers
    for computer in ("alpha", "beta"):
        world.add_machine(computer)
        world.directory.create_many("Queue", [{"path_name": f"{computer}\\{n}"} for n in range(5)])
    everything = {row["identifier"]: row for row in find_all(world.directory, "Queue")}
    # when they are asked for three at a time: all, by an index, by another attribute
    for filters, count in (
        ((), 10),
        ([where("computer_name", "=", "BETA")], 5),
        ([where("label", "=", "")], 10),
        ([where("quota_kilobytes", "=", 7)], 0),
    ):
        found = [row for page in pages(world, filters, None, 3) for row in page]
        # then each comes once, whole, in order
        assert len(found) == count
        assert found == sorted(found, key=lambda row: row["identifier"])
        assert all(row == everything[row["identifier"]] for row in found)
    assert [len(page) for page in pages(world, (), None, 5)] == [5, 5]
    (only,) = pages(world, (), ("label",), 100)
    assert all(set(row) == {"identifier", "label"} for row in only)


def test_nothing_comes_behind_the_only_one(world: World) -> None:
    world.add_machine("alpha")
    queue = world.add("Queue", path_name=r"alpha\a")
    place = world.get("Queue", "identifier", queue)["full_path"]
    before, behind = UUID(int=queue.int - 1), queue
    for filters in (
        equals("identifier", queue),
        equals("full_path", place),
        equals("path_name", r"alpha\a"),
    ):
        for after, count in ((None, 1), (before, 1), (behind, 0)):
            result, page = world.directory.page("Queue", filters, None, after, 1)
            assert result is SUCCESS
            assert (len(page.rows), page.next) == (count, None)


def test_a_page_of_what_cannot_be_asked_is_refused(world: World) -> None:
    for type_name, filters, attributes in (
        ("Planet", (), None),
        ("Queue", [where("colour", "=", "red")], None),
        ("Queue", (), ("colour",)),
    ):
        result, page = world.directory.page(type_name, filters, attributes, None, 1)
        assert (result, page.rows, page.next) == (GENERIC, [], None)
        assert world.directory.last_problem is not None


def test_many_objects_are_created_together(world: World) -> None:
    world.add_machine("alpha")
    rows = [{"path_name": f"alpha\\q{number:03}"} for number in range(30)]
    rows.insert(7, {"path_name": r"alpha\q003"})
    rows.insert(9, {"path_name": "wrong"})
    results = world.directory.create_many("Queue", rows)
    assert [result for result, _ in results].count(SUCCESS) == 30
    assert [results[7][0], results[9][0]] == [EXISTS, GENERIC]
    assert len(find_all(world.directory, "Queue")) == 30
    assert world.get("Queue", "path_name", r"alpha\q029")["identifier"] == results[-1][1]


def test_a_connected_network_exists_outside_ldap_only(world: World) -> None:
    result, network = world.directory.create(
        "ConnectedNetwork", {"name": "IP", "network_protocol": 1}
    )
    if type(world.directory).__name__ == "LdapDirectory":
        assert result is GENERIC
        assert world.directory.delete("ConnectedNetwork", network) is GENERIC
        assert world.directory.write("ConnectedNetwork", {"identifier": network}) is GENERIC
        assert world.result("ConnectedNetwork", "name", "IP") is GENERIC
        assert world.directory.begin("ConnectedNetwork", (), None, None)[0] is GENERIC
        return
    assert world.get("ConnectedNetwork", "name", "ip")["identifier"] == network
    assert world.directory.create("ConnectedNetwork", {"name": "ip"})[0] is EXISTS
    assert world.directory.delete("ConnectedNetwork", network) is SUCCESS


def test_an_empty_directory_says_what_to_do_first(world: World) -> None:
    problem = _problem_of_unknown_site(world.directory)
    assert problem.status is MqStatus.MQDS_OBJECT_NOT_FOUND
    assert "Berlin" in str(problem)


def _problem_of_unknown_site(directory: DirectoryBase) -> DirectoryError:
    directory.read("Site", equals("name", "Berlin"), None)
    assert directory.last_problem is not None
    return directory.last_problem
