"""One Spark session for all tests of a run, and daemons for it to read from and write to."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from falconmq.spark.session import build, stop
from tests.e2e.estate import Estate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Starting Java takes ten seconds: once is enough. Tests leave it as they found it."""
    warehouse = tmp_path_factory.mktemp("warehouse")
    session = build(
        master="local[2,3]",
        name="falconmq tests",
        settings={
            "spark.driver.memory": "1g",
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.warehouse.dir": str(warehouse),
        },
    )
    yield session
    stop(session)


@pytest.fixture
def estate(tmp_path: Path) -> Iterator[Estate]:
    """Real queue managers as processes: see tests/e2e/estate.py."""
    with Estate(tmp_path) as estate:
        yield estate
