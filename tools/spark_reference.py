"""The pages docs/reference/spark-options.md and lake-tables.md, from the tables in the code."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from falconmq.client.event_columns import EVENT_COLUMNS
from falconmq.spark.jobs import capture, directory
from falconmq.spark.jobs.lake_tables import ALL as LAKE_TABLES
from falconmq.spark.jobs.running import rejects_of
from falconmq.spark.option_table import OPTIONS, Option
from falconmq.spark.sink_options import SINK_OPTIONS
from falconmq.spark.tables import TableSpec


def spark_options() -> str:
    """Every option of the source and of the sink."""
    lines = [
        '# Options of `format("falconmq")`\n',
        "Made by `make reference`; do not edit. Names are read without regard to upper and lower",
        "case; one that does not exist is refused. The columns of messages are those of the",
        "[Arrow schema](arrow-schema.md).\n",
        "## Reading: `spark.read`, `spark.readStream`\n",
        *_options(OPTIONS),
        "\nA read is a snapshot of the moment of `load()`: the same DataFrame never sees later",
        "messages. Filters are applied by Spark, not by the queue manager; `columns` or a schema",
        "of your own make the read cheaper.\n",
        "## Writing: `frame.write`, `frame.writeStream`\n",
        *_options(SINK_OPTIONS),
        "\nThe columns of the frame are those of a message; `body` is needed, unknown ones are",
        "refused by name, those that only queue managers fill in are ignored.\n",
        "## Columns of `source` = `events`\n",
        "| column | type | meaning |",
        "|---|---|---|",
        *(f"| {c.name} | {c.type} | {c.description} |" for c in EVENT_COLUMNS),
    ]
    return "\n".join(lines) + "\n"


def _options(options: Iterable[Option]) -> Iterator[str]:
    yield "| option | default | meaning |"
    yield "|---|---|---|"
    for option in options:
        yield f"| {' or '.join(option.names)} | {option.default} | {option.description} |"


def lake_tables() -> str:
    """Every table of a lake, with its columns."""
    lines = [
        "# Tables of a lake\n",
        "Made by `make reference`; do not edit. `falconmq pipeline` writes them below its folder",
        "(`--lake`). Each batch is a folder `data/batch=.../` of Parquet files, and counts when",
        "`_commits` has a file that says so. A table gains columns and loses none; in older files",
        "a new column is null. The column `batch` says with which batch a row came.",
    ]
    rejects = rejects_of("JOB")
    for spec in (*LAKE_TABLES, *capture.TABLES, *directory.TABLES, rejects):
        if spec is rejects or not spec.name.startswith("rejects/"):
            lines += _table(spec)
    return "\n".join(lines) + "\n"


def _table(spec: TableSpec) -> Iterator[str]:
    yield f"\n## {spec.name}\n"
    yield spec.description
    if spec.partition_by:
        yield f"Partitioned by {' and '.join(spec.partition_by)}."
    yield "\n```"
    yield from split_schema(spec.schema)
    yield "```"


def split_schema(schema: str) -> Iterator[str]:
    """The columns of a schema; commas inside angle brackets belong to a type."""
    depth, column = 0, ""
    for sign in schema:
        depth += (sign == "<") - (sign == ">")
        if sign == "," and not depth:
            yield column.strip()
            column = ""
        else:
            column += sign
    yield column.strip()
