"""Messages as Arrow tables and back: the bulk door of the HTTP API, and Parquet files.

    from falconmq.client import arrow
    table = arrow.messages_to_table(messages, queue=r".\\private$\\orders")
    messages = arrow.table_to_messages(table)

A table that is read has all columns of `client.columns`, in their order. A table that is sent needs
`body` alone: a column that is missing, or null in a row, means what `Message(...)` means without
that property. Columns that only queue managers fill in are ignored, so that what was read can be
sent; a name that is no column is refused.

pyarrow is imported when it is first needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import IntEnum, IntFlag
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from falconmq.body import BodyType
from falconmq.client.columns import BODY, BY_NAME, COLUMNS
from falconmq.errors import FalconMQError, MessageError, MqStatus
from falconmq.message import (
    Acknowledge,
    CryptographicProvider,
    Delivery,
    EncryptionAlgorithm,
    HashAlgorithm,
    Journal,
    Message,
    MessageClass,
    PrivacyLevel,
    SenderIdType,
)
from falconmq.names import MultipleElementFormatName, SingleFormatName, parse_format_name
from falconmq.names.syntax import did_you_mean

if TYPE_CHECKING:
    import pyarrow as pa

MEDIA_TYPE: Final = "application/vnd.apache.arrow.stream"
_CHOICES: Final[Mapping[str, type[IntEnum]]] = {
    "message_class": MessageClass,
    "delivery": Delivery,
    "privacy_level": PrivacyLevel,
    "encryption_algorithm": EncryptionAlgorithm,
    "hash_algorithm": HashAlgorithm,
    "sender_id_type": SenderIdType,
}
_FLAGS: Final[Mapping[str, type[IntFlag]]] = {"acknowledgements": Acknowledge, "journal": Journal}
_LISTS: Final = ("administration_queues", "response_queues")
_GUIDS: Final = ("report_queue", "connector_type")


@lru_cache(maxsize=1)
def load() -> Any:
    """pyarrow; FalconMQError says what to install if it is not there."""
    try:
        import pyarrow as pa  # noqa: PLC0415 - optional, and a tenth of a second
        import pyarrow.ipc  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise FalconMQError(
            "Arrow needs the package pyarrow, which is not installed here",
            status=MqStatus.INSUFFICIENT_RESOURCES,
            hint="pip install 'falconmq[arrow]'",
        ) from error
    return pa


@lru_cache(maxsize=1)
def schema() -> pa.Schema:
    """The columns, each with its description as metadata."""
    arrow = load()
    types = {
        "string": arrow.string(),
        "binary": arrow.binary(),
        "bool": arrow.bool_(),
        "int32": arrow.int32(),
        "int64": arrow.int64(),
        "timestamp[us, tz=UTC]": arrow.timestamp("us", "UTC"),
        "list<string>": arrow.list_(arrow.string()),
    }
    return arrow.schema(
        [
            arrow.field(
                column.name, types[column.type], metadata={"description": column.description}
            )
            for column in COLUMNS
        ]
    )


def schema_of(columns: Sequence[str] | None) -> pa.Schema:
    """The schema of some columns, in their order; of all if there is no such wish."""
    if columns is None:
        return schema()
    for name in columns:
        _check_name(name, columns)
    return load().schema([schema().field(name) for name in columns])


def array_of(values: Sequence[Any], type_: Any) -> Any:
    """An Arrow array of Python values. Texts may hold half a character of UTF-16."""
    arrow = load()
    try:
        return arrow.array(values, type_)
    except UnicodeEncodeError:  # a peer may send that in a label or in the name of a queue
        return arrow.array([_whole(value) for value in values], type_)


def _whole(value: Any) -> Any:
    """A text, or those of a list, with a replacement character in place of half a character."""
    if isinstance(value, list):
        return [_whole(text) for text in value]
    return value and value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def messages_to_batch(
    messages: Sequence[Message],
    queue: str | None = None,
    *,
    beside: Mapping[str, Sequence[Any]] | None = None,
    columns: Sequence[str] | None = None,
) -> pa.RecordBatch:
    """One record batch. `beside` has columns that the messages do not know, or know less well.

    All columns, or `columns` alone in their order.
    """
    given, wanted = beside or {}, schema_of(columns)
    arrays = []
    for field in wanted:
        column = BY_NAME[field.name]
        if column.name in given:
            values: Sequence[Any] = given[column.name]
        elif column.name == "queue":
            values = [queue] * len(messages)
        elif column.values is None:
            values = [None] * len(messages)
        else:
            values = column.values(messages)
        arrays.append(array_of(values, field.type))
    return load().RecordBatch.from_arrays(arrays, schema=wanted)


def messages_to_table(messages: Sequence[Message], queue: str | None = None) -> pa.Table:
    """A table with all columns, even of no messages."""
    return load().Table.from_batches([messages_to_batch(messages, queue)], schema=schema())


def table_to_messages(table: pa.Table | pa.RecordBatch, first_row: int = 0) -> list[Message]:
    """The messages that a table describes; MessageError names the column and the row."""
    check_columns(table.schema)
    columns = {
        name: sent_column(table, name).to_pylist()
        for name in table.schema.names
        if BY_NAME[name].is_sent
    }
    has_texts = has_text_bodies(table.schema)
    messages: list[Message] = []
    for row in _rows(columns, table.num_rows):
        try:
            messages.append(_message(row, has_texts=has_texts))
        except FalconMQError as error:
            error.args = (f"row {first_row + len(messages)}: {error}",)
            raise
    return messages


def check_columns(given: pa.Schema) -> None:
    """Refuse columns that do not exist, that come twice, or whose types hold something else."""
    for name in given.names:
        _check_name(name, given.names)
    if BODY not in given.names:
        raise MessageError(BODY, "the column is missing", hint="it is the only one that is needed")


def _check_name(name: str, names: Sequence[str]) -> None:
    if name not in BY_NAME:
        hint = did_you_mean(name, BY_NAME) or "leave it out"
        raise MessageError(name, "is no column of a message", hint=hint)
    if names.count(name) > 1:
        raise MessageError(name, "is there twice")


# From Arrow to values


def has_text_bodies(given: pa.Schema) -> bool:
    return _is_text(_plain(given.field(BODY).type))


def sent_column(table: pa.Table | pa.RecordBatch, name: str) -> Any:
    """A column in the type that it must have; what its own type cannot mean is refused."""
    array, wanted = table.column(name), schema().field(name).type
    if name == BODY and has_text_bodies(table.schema):
        wanted = load().string()
    elif not _is_meant(array.type, wanted):
        raise MessageError(name, f"the column is {array.type}, it must be {wanted}")
    try:
        return array.cast(wanted)
    except (load().ArrowException, ValueError) as error:
        problem = f"{array.type} does not fit into {wanted}: {error}"
        raise MessageError(name, problem) from error


def _is_meant(given: Any, wanted: Any) -> bool:
    """Whether a type holds the same things, whatever its size or encoding."""
    types = load().types
    given = _plain(given)
    if types.is_null(given):
        return True
    for is_kind in (types.is_integer, types.is_boolean, _is_text, _is_bytes):
        if is_kind(wanted):
            return bool(is_kind(given))
    is_list = types.is_list(given) or types.is_large_list(given)
    return bool(is_list) and (_is_text(given.value_type) or bool(types.is_null(given.value_type)))


def _plain(given: Any) -> Any:
    return given.value_type if load().types.is_dictionary(given) else given


def _is_text(given: Any) -> bool:
    types = load().types
    return bool(
        types.is_string(given) or types.is_large_string(given) or types.is_string_view(given)
    )


def _is_bytes(given: Any) -> bool:
    types = load().types
    return bool(
        types.is_binary(given)
        or types.is_large_binary(given)
        or types.is_fixed_size_binary(given)
        or types.is_binary_view(given)
    )


def _rows(columns: Mapping[str, list[Any]], count: int) -> Iterator[dict[str, Any]]:
    """What each row says; nulls say nothing."""
    names = list(columns)
    for values in zip(*columns.values(), strict=True) if columns else [()] * count:
        yield {name: value for name, value in zip(names, values, strict=True) if value is not None}


# From values to messages


def _message(row: dict[str, Any], *, has_texts: bool) -> Message:
    for name in row.keys() & _CONVERTERS.keys():
        row[name] = _CONVERTERS[name](name, row[name])
    body = row.pop(BODY, None)
    if body is None:
        raise MessageError(BODY, "is null", hint="an empty body is an empty value")
    provider_name, provider_type = row.pop("provider_name", None), row.pop("provider_type", None)
    if provider_name is not None:
        row["provider"] = CryptographicProvider(
            provider_name, 1 if provider_type is None else provider_type
        )
    if has_texts and row.get("body_type") == BodyType.VT_EMPTY:
        body = body.encode()
    return Message(body, **row)


def _choice(name: str, value: str) -> int:
    choices = _CHOICES[name]
    word = value.upper().replace("-", "_")
    if word in choices.__members__:
        return choices[word]
    try:
        return int(value, 0)
    except ValueError as error:
        hint = did_you_mean(word, choices.__members__)
        raise MessageError(name, f"{value!r} is not known", hint=hint) from error


def _delivery(name: str, value: str) -> Delivery:
    number = _choice(name, value)
    if number not in list(Delivery):
        raise MessageError(name, f"{value!r} is neither EXPRESS nor RECOVERABLE")
    return Delivery(number)


def _flags(name: str, words: Iterable[str | None]) -> IntFlag:
    flags = _FLAGS[name]
    result = flags(0)
    for given in words:
        word = "" if given is None else given.upper().replace("-", "_")
        if word not in flags.__members__:
            hint = did_you_mean(word, flags.__members__)
            raise MessageError(name, f"{given!r} is not known", hint=hint)
        result |= flags[word]
    return result


def _names(name: str, texts: Iterable[str | None]) -> tuple[SingleFormatName, ...]:
    return tuple(_name(name, text or "") for text in texts)


def _name(name: str, text: str) -> SingleFormatName:
    parsed = parse_format_name(text)
    if isinstance(parsed, MultipleElementFormatName):
        raise MessageError(name, f"{text} is several queues", hint="make them entries of a list")
    return parsed


def _guid(name: str, text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError as error:
        raise MessageError(name, f"{text!r} is no GUID") from error


_CONVERTERS: Final[Mapping[str, Callable[[str, Any], Any]]] = {
    **dict.fromkeys(_CHOICES, _choice),
    "delivery": _delivery,
    **dict.fromkeys(_FLAGS, _flags),
    **dict.fromkeys(_LISTS, _names),
    **dict.fromkeys(_GUIDS, _guid),
}
