"""The columns that Spark sees: those of messages or of events, chosen by options or by a schema.

Spark cannot tell a Python source which columns a query needs. So the user does, with the option
`columns` or with `.schema("label string, priority int")`: only those are asked for and travel.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from falconmq.client.columns import BINARY, BOOL, COLUMNS, INT32, INT64, STRING, STRINGS, TIME
from falconmq.client.event_columns import EVENT_COLUMNS
from falconmq.spark.bodies import texts
from falconmq.spark.option_table import EVENTS, nearest, refuse
from falconmq.spark.options import SourceOptions

if TYPE_CHECKING:
    import pyarrow as pa

BODY: Final = "body"
BODY_TYPE: Final = "body_type"
PACKET: Final = "packet"
_BINARY: Final = "binary"  # the format of bodies that stay as they are
_TYPES: Final[dict[str, DataType]] = {
    STRING: StringType(),
    BINARY: BinaryType(),
    BOOL: BooleanType(),
    INT32: IntegerType(),
    INT64: LongType(),
    TIME: TimestampType(),
    STRINGS: ArrayType(StringType()),
}


@dataclass(frozen=True)
class Projection:
    """What is read, and how it is shown."""

    schema: StructType
    body_format: str

    @property
    def names(self) -> list[str]:
        return list(self.schema.names)

    @property
    def asked(self) -> list[str]:
        """The columns that the queue manager is asked for."""
        needs_type = self.has_texts and BODY_TYPE not in self.names
        return [*self.names, BODY_TYPE] if needs_type else self.names

    @property
    def has_texts(self) -> bool:
        return BODY in self.names and self.body_format != _BINARY

    @property
    def has_packets(self) -> bool:
        return PACKET in self.names

    def arrow_schema(self) -> pa.Schema:
        """As Spark wants the batches, to the letter."""
        from pyspark.sql.pandas.types import to_arrow_schema  # noqa: PLC0415 - it needs pandas

        return to_arrow_schema(self.schema, timezone="UTC")

    def shape(self, batch: pa.RecordBatch, wanted: pa.Schema) -> pa.RecordBatch:
        """A batch of the queue manager as Spark wants it."""
        arrays = []
        for field in wanted:
            array = batch.column(field.name)
            if field.name == BODY and self.has_texts:
                array = texts(array, batch.column(BODY_TYPE), self.body_format)
            arrays.append(array if array.type == field.type else array.cast(field.type))
        return type(batch).from_arrays(arrays, schema=wanted)


def source_schema(options: SourceOptions) -> StructType:
    """The columns of a query that brings no schema of its own."""
    known = _known(options)
    if options.columns is not None:
        _check_names(options.columns, known.names)
        wanted: Sequence[str] = options.columns
    else:
        wanted = [name for name in known.names if name != PACKET or options.packets]
    if not options.include_body:
        wanted = [name for name in wanted if name != BODY]
    return StructType([known[name] for name in wanted])


def project(options: SourceOptions, schema: StructType) -> Projection:
    """What a schema asks for, the user's or ours; refused if the columns are others."""
    known = _known(options)
    _check_names(schema.names, known.names)
    if options.columns is not None and set(options.columns) != set(schema.names):
        chosen = source_schema(options)
        if list(chosen.names) != list(schema.names):
            raise refuse("columns and the schema name other columns", "give one of them")
    body_format = options.body_format
    for field in schema.fields:
        expected = known[field.name].dataType
        if field.name == BODY and isinstance(field.dataType, StringType):
            body_format = "string" if body_format == _BINARY else body_format
            continue
        if field.dataType != expected:
            raise refuse(
                f"column {field.name} is {expected.simpleString()}, "
                f"not {field.dataType.simpleString()}",
                "read it as it is, and cast it with select",
            )
        if not field.nullable:
            raise refuse(f"column {field.name} may be null", "leave NOT NULL out of the schema")
    return Projection(StructType(list(schema.fields)), body_format)


def _known(options: SourceOptions) -> StructType:
    columns: Any = EVENT_COLUMNS if options.source == EVENTS else COLUMNS
    fields = []
    for column in columns:
        is_text = column.name == BODY and options.body_format != _BINARY
        kind = StringType() if is_text else _TYPES[column.type]
        fields.append(StructField(column.name, kind, True, {"comment": column.description}))
    return StructType(fields)


def _check_names(names: Sequence[str], known: Sequence[str]) -> None:
    for name in names:
        if name not in known:
            raise refuse(f"{name} is no column here", nearest(name, known))
        if list(names).count(name) > 1:
            raise refuse(f"column {name} is there twice")
    if not names:
        raise refuse("no columns are left", "name one at least")
