from __future__ import annotations

import pytest

from falconmq.simulation.world import World
from tests.simulation.helpers import Town, Wire


@pytest.fixture
def town() -> Town:
    return Town()


def test_bytes_arrive_in_order_in_pieces_of_any_size(town: Town) -> None:
    # given a network that splits what is written, and delays every piece differently
    town.network.weather.split, town.network.weather.jitter = 1.0, 5.0
    wire = Wire(town)
    # when much is written at once
    sent = b"".join(number.to_bytes(2, "big") for number in range(500))
    for start in range(0, len(sent), 100):
        wire.connection.client.write([sent[start : start + 60], sent[start + 60 : start + 100]])
    town.world.run_until(100.0)
    # then all of it arrives, in order, in more pieces than were written
    assert wire.received == sent
    assert wire.pieces > 10


@pytest.mark.parametrize("place", [0, 1, 9, 10, 15])
def test_a_connection_is_cut_at_the_very_byte(town: Town, place: int) -> None:
    # given a connection that lets so many bytes through
    wire = Wire(town)
    wire.connection.client.cut_at = place
    # when more is written, at once and later
    wire.connection.client.write([b"0123456789"])
    town.world.run_until(1.0)
    wire.connection.client.write([b"0123456789"])
    town.world.run_until(1000.0)
    # then what was written before the cut arrived, and nothing behind it
    assert wire.received == b"01234567890123456789"[:place]
    assert wire.connection.is_cut


def test_some_sides_of_a_cut_connection_never_learn_of_it() -> None:
    # given many connections that are cut
    town, told = Town(), 0
    for _ in range(200):
        wire = Wire(town)
        wire.connection.cut("a test")
        town.world.run_until(town.world.now + 1000.0)
        told += len(wire.problems)
    # then about a quarter of their sides is half open
    assert 250 < told < 350


def test_what_was_written_before_a_close_arrives_before_it(town: Town) -> None:
    wire = Wire(town)
    wire.connection.client.write([b"goodbye"])
    wire.connection.client.close()
    town.world.run_until(1.0)
    assert wire.received == b"goodbye"
    assert wire.problems == ["NODE1: the peer closed the connection"]
    assert not town.network.open_endpoints()


def test_bytes_wait_while_two_nodes_are_parted(town: Town) -> None:
    # given two nodes that cannot reach each other for a minute
    wire = Wire(town)
    town.network.part(town.nodes[0], town.nodes[1], 60.0)
    # when something is written
    wire.connection.client.write([b"hello"])
    town.world.run_until(59.0)
    # then it arrives when they can again, as TCP would repeat it
    assert wire.received == b""
    town.world.run_until(61.0)
    assert wire.received == b"hello"


def test_a_crash_ends_the_connections_of_a_node(town: Town) -> None:
    wire = Wire(town)
    town.nodes[1].crash(silently=False)
    town.world.run_until(10.0)
    assert wire.problems == ["NODE0: connection reset by peer"]
    assert not town.network.open_endpoints()


def test_a_silent_crash_leaves_the_peer_half_open(town: Town) -> None:
    wire = Wire(town)
    town.nodes[1].crash(silently=True)
    town.world.run_until(10_000.0)
    assert wire.problems == []
    assert town.network.open_endpoints() == [wire.connection.client]


def test_the_weather_clears() -> None:
    town = Town()
    weather = town.network.weather
    weather.cut, weather.latency, weather.refuse = 0.5, 3.0, 0.9
    weather.clear()
    assert (weather.cut, weather.latency, weather.refuse) == (0.0, 0.002, 0.0)


def test_worlds_of_one_seed_draw_the_same_lots() -> None:
    assert [World(5).random.random() for _ in range(2)] == [World(5).random.random()] * 2
