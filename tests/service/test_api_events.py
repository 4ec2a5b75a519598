"""Live events: what is told, to whom, from when on, and to slow readers."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest

from falconmq import Message
from falconmq.manager.events import EventLog
from falconmq.message import Journal
from falconmq.service.configuration import HistorySection
from falconmq.service.daemon import Service
from falconmq.service.observation import live
from tests.service.observed import Events, at, following, observed
from tests.service.services import ORDERS, run, until

OTHERS = r".\private$\others"


def log_of(service: Service) -> EventLog:
    log = service.engine.core.events
    assert log is not None
    return log


def test_an_event_says_what_happened_to_which_message(tmp_path: Path) -> None:
    async def main() -> None:
        async with observed(tmp_path) as (service, http):
            orders = await service.manager.create_queue(ORDERS)
            async with following(http) as events:
                assert events.response.headers["content-type"].startswith("text/event-stream")
                await orders.send(message := Message("hello"))
                event = await events.next()
                assert event.event == "ARRIVED"
                assert event.id == event.data["number"] == log_of(service).number
                assert event.data["message_id"] == str(message.id)
                assert event.data["queue"] == ORDERS
                assert event.data["size"] > 10
                assert event.data["reason"] is None
                received = await orders.receive(timeout=0)
                assert event.data["lookup_id"] == str(received.lookup_id)
                event = await events.next()
                assert event.event == "RECEIVED"
                assert event.data["reason"] == "ACK_RECEIVE"

    run(main())


@pytest.mark.parametrize("name", [ORDERS, "the format name", "the long name"])
def test_only_events_of_one_queue(tmp_path: Path, name: str) -> None:
    async def main() -> None:
        async with observed(tmp_path) as (service, http):
            orders = await service.manager.create_queue(ORDERS)
            others = await service.manager.create_queue(OTHERS)
            names = {
                "the format name": str(orders.format_name),
                "the long name": rf"{service.manager.computer_name}\private$\Orders",
            }
            async with following(http, queue=names.get(name, name)) as events:
                await others.send(Message("no"))
                await orders.send(Message("yes"))
                assert (await events.next()).data["queue"] == ORDERS

    run(main())


def test_only_events_of_one_kind_or_message(tmp_path: Path) -> None:
    async def main() -> None:
        async with observed(tmp_path) as (service, http):
            orders = await service.manager.create_queue(ORDERS)
            await orders.send(first := Message("1"))
            await orders.send(Message("2"))
            async with (
                following(http, kind=["received", "PURGED,DEAD-LETTERED"]) as taken,
                following(http, message=str(first.id)) as one,
            ):
                await orders.send(Message("3"))
                await orders.receive(timeout=0)
                await orders.purge()
                assert (await taken.next()).event == "RECEIVED"
                assert (await taken.next()).event == "PURGED"
                event = await one.next()
                assert (event.event, event.data["message_id"]) == ("RECEIVED", str(first.id))

    run(main())


def test_a_wish_that_cannot_be_is_refused(tmp_path: Path) -> None:
    async def main() -> None:
        async with observed(tmp_path) as (_, http):
            unknown = await http.get("/events", params={"kind": "RECEIVD"})
            assert unknown.status_code == 400
            assert "RECEIVED" in unknown.json()["hint"]
            nowhere = await http.get("/events", params={"queue": ORDERS})
            assert nowhere.status_code == 404
            remote = await http.get("/events", params={"queue": r"DIRECT=OS:b\private$\q"})
            assert remote.status_code == 404
            assert (await http.get("/events", params={"message": "7"})).status_code == 400

    run(main())


def test_a_reader_begins_behind_the_last_event_that_it_saw(tmp_path: Path) -> None:
    async def main() -> None:
        async with observed(tmp_path) as (service, http):
            orders = await service.manager.create_queue(ORDERS)
            for number in range(1, 4):
                await orders.send(Message(str(number)))
            async with following(http, after=1) as events:
                assert [(await events.next()).id for _ in range(2)] == [2, 3]
                await orders.send(Message("4"))
                assert (await events.next()).id == 4
            headers = {"Last-Event-ID": "3"}
            async with http.stream("GET", "/events", headers=headers) as response:
                events = Events(response)
                assert (await events.next()).data["number"] == 4
                assert (await events.next()).id == 4

    run(main())


def test_what_is_forgotten_is_a_gap(tmp_path: Path) -> None:
    async def main() -> None:
        async with observed(tmp_path, history=HistorySection(events=3)) as (service, http):
            orders = await service.manager.create_queue(ORDERS)
            for number in range(1, 8):
                await orders.send(Message(str(number)))
            async with following(http, after=1) as events:
                gap = await events.next()
                assert (gap.event, gap.data) == ("gap", {"from": 2, "to": 4})
                assert gap.id is None
                assert [(await events.next()).id for _ in range(3)] == [5, 6, 7]

    run(main())


def test_numbers_of_an_earlier_run_are_a_gap(tmp_path: Path) -> None:
    async def main() -> None:
        async with observed(tmp_path) as (service, http):
            orders = await service.manager.create_queue(ORDERS)
            await orders.send(Message("1"))
            async with following(http, after=900) as events:
                assert (await events.next()).data == {"from": 901, "to": None}
                assert (await events.next()).id == 1
            async with following(http, after=1, run=str(uuid4())) as events:
                assert (await events.next()).id == 1

    run(main())


def test_messages_on_their_way_are_told_of_too(tmp_path: Path) -> None:
    async def main() -> None:
        async with (
            observed(tmp_path / "a") as (here, http),
            observed(tmp_path / "b") as (there, _),
        ):
            await there.manager.create_queue(ORDERS)
            name = rf"DIRECT=TCP:{there.configuration.manager.bind}\private$\orders"
            async with following(http) as events:
                away = await here.manager.queue(name)
                await away.send(Message("hello", journal=Journal.JOURNAL))
                queued = await events.until("QUEUED")
                assert queued.data["queue"] == name
                delivered = await events.until("DELIVERED")
                assert delivered.data["detail"] == there.configuration.manager.bind
                async with following(http, queue=name, after=0) as only:
                    assert (await only.next()).event == "QUEUED"

    run(main())


def test_the_status_comes_at_once_and_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "STATUS_SECONDS", 0.05)

    async def main() -> None:
        async with observed(tmp_path) as (service, http):
            orders = await service.manager.create_queue(ORDERS)
            async with following(http, status=True) as events:
                first = await events.next()
                assert first.event == "status"
                assert first.data["messages"] == 0
                await orders.send(Message("hello"))
                while (event := await events.until("status")).data["messages"] != 1:
                    pass
                assert event.data["arrived"] == 1
                assert event.data["queues"] == 1

    run(main())


def test_silence_is_broken_by_a_comment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live.Reader.chunks, "__defaults__", (0.02,))

    async def main() -> None:
        async with (
            observed(tmp_path) as (_, http),
            http.stream("GET", "/events") as response,
        ):
            lines = response.aiter_lines()
            comments = 0
            while comments < 2:
                comments += (await anext(lines)).startswith(":")

    run(main())


def test_a_reader_that_goes_is_forgotten(tmp_path: Path) -> None:
    async def main() -> None:
        async with observed(tmp_path) as (service, http):
            assert service._control is not None
            followed = service._control.watch.live
            async with following(http), following(http, status=True):
                assert followed.readers == 2
            await until(lambda: followed.readers == 0)
            assert not log_of(service).listeners

    run(main())


def test_a_service_that_stops_ends_the_streams(tmp_path: Path) -> None:
    async def main() -> None:
        async with observed(tmp_path) as (service, http), following(http) as events:
            stopping = asyncio.create_task(service.stop())
            with pytest.raises(EOFError):
                await events.next()
            await stopping

    run(main())


def test_a_failed_write_is_told_to_every_reader(tmp_path: Path) -> None:
    async def main() -> None:
        async with observed(tmp_path) as (service, http):
            await service.manager.create_queue(ORDERS)
            async with following(http, kind="PURGED") as events:
                log_of(service).restored()
                event = await events.next()
                assert (event.event, event.data["message_id"]) == ("RESTORED", None)

    run(main())


def test_sending_over_http_is_seen_live(tmp_path: Path) -> None:
    async def main() -> None:
        async with observed(tmp_path) as (service, http):
            await service.manager.create_queue(ORDERS)
            async with following(http) as events:
                sent = await http.post(at(ORDERS, "messages"), json={"messages": [{"text": "hi"}]})
                assert (await events.next()).data["message_id"] == sent.json()["ids"][0]

    run(main())


def test_samples_say_how_much_came_and_went(tmp_path: Path) -> None:
    async def main() -> None:
        async with observed(tmp_path) as (service, http):
            orders = await service.manager.create_queue(ORDERS)
            assert service._control is not None
            sampler = service._control.watch.sampler
            for _ in range(3):
                await orders.send(Message("x"))
            await orders.receive(timeout=0)
            sampler.take()
            answer = (await http.get("/samples")).json()
            assert answer["interval_seconds"] == 5
            [sample] = answer["samples"]
            assert (sample["arrived"], sample["received"], sample["messages"]) == (3, 1, 2)
            assert sample["in_per_second"] > sample["out_per_second"] > 0
            assert answer["now"]["queues"] == 1
            assert (await http.get("/samples", params={"minutes": 61})).status_code == 422

    run(main())


def test_samples_reach_as_far_back_as_is_asked(tmp_path: Path) -> None:
    async def main() -> None:
        async with observed(tmp_path) as (service, http):
            assert service._control is not None
            sampler = service._control.watch.sampler
            [first] = sampler._samples
            sampler._samples.clear()
            for second in range(0, 600, 5):
                sampler._samples.append(replace(first, time=1000.0 + second, arrived=second))
            lately = (await http.get("/samples", params={"minutes": 1})).json()["samples"]
            assert len(lately) == 12
            assert {sample["arrived_per_second"] for sample in lately} == {1.0}
            assert len((await http.get("/samples")).json()["samples"]) == 119

    run(main())
