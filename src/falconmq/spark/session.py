"""Spark sessions: made, given our settings and our source, and ended so that nothing is left.

    with session() as spark:                              # here, on all cores
        spark.read.format("falconmq").option("queue", r".\\private$\\orders").load().show()

    with session(master="spark://cluster:7077") as spark: ...
    with session(remote="sc://cluster:15002") as spark: ...       # Spark Connect

pyspark is imported when a session is made, not before.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from falconmq.errors import FalconMQError, MqStatus
from falconmq.spark.class_archive import archive_options
from falconmq.spark.java import Java, find_java, java_home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOCAL: Final = "local[*]"
_JAVA_OPTIONS: Final = "spark.driver.extraJavaOptions"
_PATIENCE: Final = 10.0  # seconds that a JVM has to end before it is killed
_LOGGING: Final = Path(__file__).with_name("log4j2.properties")
_SETTINGS: Final[Mapping[str, str]] = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.streaming.stopTimeout": "30s",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
# Of a session on this machine: no name of this computer has to be resolved, few rows need few
# pieces, and the checkpoints of small batches are written by Java itself instead of helper programs
# (90 to 205 milliseconds a batch become 12 to 42).
_LOCAL_SETTINGS: Final[Mapping[str, str]] = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "2g",
    "spark.sql.shuffle.partitions": "4",
    "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing."
        "FileSystemBasedCheckpointFileManager"
    ),
}


@contextlib.contextmanager
def session(
    *,
    master: str | None = None,
    remote: str | None = None,
    name: str = "falconmq",
    settings: Mapping[str, str] | None = None,
) -> Iterator[SparkSession]:
    """A session for a `with` block; see `build`. Its Java is gone when the block ends."""
    spark = build(master=master, remote=remote, name=name, settings=settings)
    try:
        yield spark
    finally:
        stop(spark)


def build(
    *,
    master: str | None = None,
    remote: str | None = None,
    name: str = "falconmq",
    settings: Mapping[str, str] | None = None,
) -> SparkSession:
    """A new session, with `format("falconmq")` known to it.

    On this machine without `master`; `remote` is the address of a Spark Connect server, which has
    its own Java and its own settings.
    """
    builder = load().SparkSession.builder.appName(name)
    is_here = (remote or master or LOCAL).startswith("local")
    java = None
    if remote is None or is_here:
        java = find_java()
        os.environ["JAVA_HOME"] = str(java_home(java))
    if is_here:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if remote is not None:
        builder = builder.remote(remote)
        chosen = {"spark.sql.session.timeZone": "UTC", **(settings or {})}
    else:
        builder = builder.master(master or LOCAL)
        chosen = {**_SETTINGS, **(_LOCAL_SETTINGS if is_here else {}), **(settings or {})}
        chosen[_JAVA_OPTIONS] = _java_options(java, chosen.get(_JAVA_OPTIONS, ""))
    for key, value in chosen.items():
        builder = builder.config(key, value)
    spark: SparkSession = builder.getOrCreate()
    from falconmq.spark import register  # noqa: PLC0415 - it needs pyspark

    register(spark)
    return spark


def _java_options(java: Java | None, given: str) -> str:
    """Quiet logging, the archive of classes if there is one, and what the user wants."""
    archive = archive_options(java) if java is not None else ""
    return " ".join(
        filter(None, (f"-Dlog4j2.configurationFile={_LOGGING.as_uri()}", archive, given))
    )


def stop(spark: SparkSession) -> None:
    """End a session and, if it was started here, its Java; one that hangs is killed."""
    gateway = _gateway(spark)
    process: subprocess.Popen[bytes] | None = getattr(gateway, "proc", None)
    with contextlib.suppress(Exception):  # it may be gone already: then there is nothing to stop
        spark.stop()
    if gateway is None or process is None:
        return
    with contextlib.suppress(Exception):
        gateway.shutdown()
    if process.stdin is not None:
        process.stdin.close()  # the sign for it to end
    try:
        process.wait(_PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    from pyspark import SparkContext  # noqa: PLC0415

    SparkContext._gateway = None  # noqa: SLF001 - so that another session gets a Java of its own
    SparkContext._jvm = None  # noqa: SLF001


def _gateway(spark: SparkSession) -> Any:
    """The line to our own Java; None with Spark Connect."""
    with contextlib.suppress(Exception):
        return spark.sparkContext._gateway  # noqa: SLF001 - there is no other way to its process
    return None


def load() -> Any:
    """`pyspark.sql`; FalconMQError says what to install if it is not there."""
    try:
        import pyspark.sql  # noqa: PLC0415 - optional, and slow
    except ImportError as error:
        raise FalconMQError(
            f"the pipeline needs Spark, which cannot be imported here: {error}",
            status=MqStatus.SERVICE_NOT_AVAILABLE,
            hint="pip install 'falconmq[spark]'",
        ) from error
    return pyspark.sql
