"""The directory of another FalconMQ, over its HTTP API.

How to think about it. It is a back end like any other: rows go over exactly as the other queue
manager keeps them (`service.api.directory_rows`), and its refusals come back as the results that
they are there. What is wrong by itself is refused here, before anybody is asked.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice
from typing import Final
from urllib.parse import urlencode
from uuid import UUID

from falconmq.client.directory_servers import DirectoryServers, Json
from falconmq.directory.base import DirectoryBase, DirectoryRefusedError, Page
from falconmq.directory.records import exact_row, from_exact, to_exact
from falconmq.directory.schema import ObjectTable
from falconmq.directory.tables import table_of
from falconmq.directory.texts import WORDS, table_for
from falconmq.errors import FalconMQError
from falconmq.manager.directory_backend import AttributeFilter, Filters
from falconmq.manager.directory_objects import NULL_UUID, Row
from falconmq.manager.states import DirectoryResult
from falconmq.names import (
    DistributionListFormatName,
    MultipleElementFormatName,
    SingleFormatName,
    parse_format_name,
)

ANSWER_SECONDS: Final = 10.0
FIRST_PAGE: Final = 50  # most questions have one answer
NEXT_PAGES: Final = 1000
TOGETHER: Final = 500  # rows of one request
_ROWS: Final = "/directory/rows"
_WORD_OF: Final = {type_name: word for word, type_name in WORDS.items()}
_SUCCESS: Final = DirectoryResult.SUCCESS


class RemoteDirectory(DirectoryBase):
    """A directory that another queue manager keeps. Any number of threads may use it."""

    def __init__(
        self,
        urls: Sequence[str],
        token: str = "",
        *,
        ca_file: str = "",
        timeout_seconds: float = ANSWER_SECONDS,
    ) -> None:
        super().__init__()
        self._servers = DirectoryServers(urls, token, ca_file, timeout_seconds)

    def create_many(
        self, type_name: str, rows: Iterable[Row]
    ) -> list[tuple[DirectoryResult, UUID]]:
        """In pieces: each is one commit there."""
        results: list[tuple[DirectoryResult, UUID]] = []
        waiting = iter(rows)
        while piece := list(islice(waiting, TOGETHER)):
            if len(piece) == 1:
                results += super().create_many(type_name, piece)
            else:
                results += self._create_piece(type_name, piece)
        return results

    def find_servers(self, domain_name: str) -> Sequence[str]:
        """The queue managers that serve the directory; none if nobody can be asked."""
        path = f"/directory/servers?{urlencode({'domain': domain_name})}"
        try:
            return self._servers.ask(
                "GET", path, lambda found: [str(name) for name in found["servers"]]
            )
        except FalconMQError as error:
            self._refused(error)
            return ()

    def resolve_distribution_list(
        self, name: DistributionListFormatName
    ) -> tuple[DirectoryResult, Sequence[SingleFormatName]]:
        """In one question: a list may have many members."""
        path = f"/directory/members/{name.guid.hex}"
        try:
            return _SUCCESS, self._servers.ask(
                "GET", path, lambda found: _singles(found["members"])
            )
        except FalconMQError as error:
            return self._refused(error), ()

    def close(self) -> None:
        self._servers.close()

    def at(self, place: str) -> tuple[ObjectTable, Row]:
        return self._servers.ask("GET", f"/directory/place?{urlencode({'at': place})}", _placed)

    def _create(self, table: ObjectTable, row: dict[str, object]) -> UUID:
        body = {"rows": [_said(table, row)]}
        return self._servers.ask("POST", _path(table), lambda made: _results(made, 1)[0][1], body)

    def _create_piece(self, type_name: str, rows: list[Row]) -> list[tuple[DirectoryResult, UUID]]:
        """What is wrong stays here; the others go together, and their results come back."""
        results: list[tuple[DirectoryResult, UUID] | None] = []
        sent: list[Json] = []
        for row in rows:
            try:
                table = table_of(type_name)
                sent.append(_said(table, table.complete(row)))
                results.append(None)
            except FalconMQError as error:
                results.append((self._refused(error), NULL_UUID))
        made = iter(self._create_all(type_name, sent) if sent else ())
        return [next(made) if result is None else result for result in results]

    def _create_all(self, type_name: str, rows: list[Json]) -> list[tuple[DirectoryResult, UUID]]:
        def made(answer: Json) -> tuple[list[tuple[DirectoryResult, UUID]], str, str]:
            return _results(answer, len(rows)), str(answer["problem"]), str(answer["hint"])

        try:
            path = _path(table_of(type_name))
            results, problem, hint = self._servers.ask("POST", path, made, {"rows": rows})
        except FalconMQError as error:
            return [(self._refused(error), NULL_UUID)] * len(rows)
        failed = [result for result, _ in results if result is not _SUCCESS]
        if failed:
            self._refused(DirectoryRefusedError(failed[-1], problem, hint=hint))
        return results

    def _write(self, table: ObjectTable, identifier: UUID, changes: dict[str, object]) -> None:
        path = f"{_path(table)}/{identifier.hex}"
        self._servers.ask("PATCH", path, _nothing, {"row": exact_row(table, changes)})

    def _delete(self, table: ObjectTable, identifier: UUID) -> None:
        self._servers.ask("DELETE", f"{_path(table)}/{identifier.hex}", _nothing)

    def _find(
        self, table: ObjectTable, filters: Filters, attributes: Collection[str] | None
    ) -> Iterator[Row]:
        return self._find_after(table, filters, attributes, None)

    def _find_after(
        self,
        table: ObjectTable,
        filters: Filters,
        attributes: Collection[str] | None,
        after: UUID | None,
    ) -> Iterator[Row]:
        """Page after page, as they are wanted."""
        asked = [("filter", _filter(table, expression)) for expression in filters]
        asked += [("attributes", name) for name in attributes or ()]
        place = {"limit": str(FIRST_PAGE)} | ({} if after is None else {"after": after.hex})
        while True:
            path = f"{_path(table)}?{urlencode([*asked, *place.items()])}"
            page = self._servers.ask("GET", path, lambda answer: _page(table, answer))
            yield from page.rows
            if page.next is None:
                return
            place = {"limit": str(NEXT_PAGES), "after": page.next.hex}


def _path(table: ObjectTable) -> str:
    return f"{_ROWS}/{_WORD_OF[table.type_name]}"


def _said(table: ObjectTable, row: Row) -> Json:
    """A new row without what every new one has, unless that has to be said."""
    said = {
        attribute.name: row[attribute.name]
        for attribute in table.attributes
        if attribute.name in table.required or row[attribute.name] != attribute.default
    }
    return exact_row(table, said)


def _filter(table: ObjectTable, expression: AttributeFilter) -> str:
    value = to_exact(table.find(expression.name), expression.value)
    return json.dumps([expression.name, expression.operator.value, value], separators=(",", ":"))


def _page(table: ObjectTable, answer: Json) -> Page:
    rows = [_row(table, fields) for fields in answer["rows"]]
    return Page(rows, None if answer["next"] is None else UUID(answer["next"]))


def _placed(answer: Json) -> tuple[ObjectTable, Row]:
    table = table_for(str(answer["type"]))
    return table, _row(table, answer["row"])


def _row(table: ObjectTable, fields: Json) -> Row:
    """The attributes that are known here; a newer FalconMQ may have others."""
    return {
        attribute.name: from_exact(attribute, fields[attribute.name])
        for attribute in table.attributes
        if attribute.name in fields
    }


def _results(answer: Json, count: int) -> list[tuple[DirectoryResult, UUID]]:
    """One for each row that was sent."""
    results = [(DirectoryResult[each["result"]], each["identifier"]) for each in answer["results"]]
    if len(results) != count:
        raise ValueError(f"{len(results)} results for {count} rows")
    return [(result, NULL_UUID if text is None else UUID(text)) for result, text in results]


def _singles(texts: Iterable[str]) -> list[SingleFormatName]:
    names = [parse_format_name(text) for text in texts]
    return [name for name in names if not isinstance(name, MultipleElementFormatName)]


def _nothing(_: Json) -> None:
    """The answer says no more than that it was done."""
