"""A quicker start: the classes of Spark as Java's class-data archive.

Java reads and checks some 20,000 classes each time Spark starts. It can write down what it made of
them, once, and map that file into memory from then on: the session is ready in half the time. The
file is 180 MB, in the user's cache, and made only when somebody asks for it (`falconmq pipeline
warm-up`, half a minute). Java itself checks that it still fits, and does without if it does not.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Final

from falconmq.errors import FalconMQError, MqStatus
from falconmq.spark.java import Java, cache_folder, find_java

# A session that does a little of everything: what it loads is what the archive holds.
_PRACTICE: Final = """
import sys
from falconmq.spark.session import build
spark = build(master="local[2]", settings={"spark.driver.extraJavaOptions": sys.argv[1]})
folder = sys.argv[2]
spark.range(1000).selectExpr("id", "id % 7 as seven", "cast(id as string) as text").write.mode(
    "overwrite"
).partitionBy("seven").parquet(folder + "/rows")
rows = spark.read.parquet(folder + "/rows")
rows.groupBy("seven").agg({"id": "max"}).join(rows, "seven").orderBy("id").toArrow()
stream = spark.readStream.schema(rows.schema).parquet(folder + "/rows").writeStream
stream = stream.format("parquet").option("path", folder + "/out")
stream = stream.option("checkpointLocation", folder + "/log").trigger(availableNow=True)
stream.start().awaitTermination()
spark.stop()  # Java writes the archive when it ends, which takes its time
"""


def archive_file(java: Java, cache: Path | None = None) -> Path:
    """Where the archive for this Java and this Spark is, if there is one."""
    return cache_folder(cache) / f"spark-{version('pyspark')}-java-{java.version}.jsa"


def archive_options(java: Java) -> str:
    """What Java has to be told to use the archive; nothing if there is none."""
    file = archive_file(java)
    if not file.is_file():
        return ""
    return f"-XX:SharedArchiveFile={file} -Xshare:auto -Xlog:disable -Xlog:all=off"


def make_archive() -> Path:
    """Write the archive anew, in half a minute; FalconMQError if Java could not."""
    java = find_java()
    file = archive_file(java)
    file.unlink(missing_ok=True)
    new = file.with_suffix(".new")
    with tempfile.TemporaryDirectory(prefix="falconmq-") as folder:
        command = [sys.executable, "-c", _PRACTICE, f"-XX:ArchiveClassesAtExit={new}", folder]
        run = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    if not new.is_file():
        raise FalconMQError(
            f"Java {java.version} wrote no archive: {(run.stderr or run.stdout)[-500:].strip()}",
            status=MqStatus.SERVICE_NOT_AVAILABLE,
            hint="the pipeline works without it, and starts a few seconds later",
        )
    new.replace(file)
    return file
