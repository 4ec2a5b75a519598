"""Records of the store as Arrow columns, all at once.

The work is done in `record_heads` and `client.packet_columns`; numpy and pyarrow are optional and
heavy, so both are imported when the first batch is made.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from falconmq.errors import FalconMQError, MqStatus

if TYPE_CHECKING:
    import pyarrow as pa

    from falconmq.service.requests.records import Rows


def records_to_batch(
    rows: Rows,
    queue: str,
    *,
    locked: Sequence[bool] | None = None,
    columns: Sequence[str] | None = None,
) -> pa.RecordBatch:
    """One record batch: a row for each record of `manager.record`, in their order.

    All columns of `client.columns`, or `columns` alone in their order. `locked` is null if it is
    not given. A record that is damaged raises WireError, which names the row.
    """
    try:
        from falconmq.service.requests import record_heads  # noqa: PLC0415 - see above
    except ModuleNotFoundError as error:
        raise FalconMQError(
            f"Arrow needs the package {error.name}, which is not installed here",
            status=MqStatus.INSUFFICIENT_RESOURCES,
            hint="pip install 'falconmq[arrow]'",
        ) from error
    return record_heads.records_to_batch(rows, queue, locked, columns)
