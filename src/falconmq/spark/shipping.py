"""FalconMQ for executors that do not have it.

Tasks run our code. On this computer they find it where the driver does. On a cluster they get it
as a zip: the part of the package that reads and writes queues, captures and tables, which needs
pyarrow and numpy beside Python itself and Spark. It shadows another version that may be installed
there, so driver and executors always agree. `spark.falconmq.ship=false` switches that off.
"""

from __future__ import annotations

import ast
import hashlib
import io
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from falconmq.spark.java import cache_folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SETTING: Final = "spark.falconmq.ship"
_PACKAGE: Final = Path(__file__).parents[1]
_PARTS: Final = (
    "body",
    "capture",
    "client",
    "message",
    "names",
    "serialization",
    "spark",
    "wire",
    "clock.py",
    "closing.py",
    "errors.py",
)
_LONG_AGO: Final = (1980, 1, 1, 0, 0, 0)  # the same zip each time
# Their own lists of names would import the queue manager and its store.
_LAZY: Final = ("__init__.py", "client/__init__.py")
_LAZY_TEXT: Final = '''"""{name}, as executors need it: names are imported when they are wanted."""

from importlib import import_module

_PLACES = {places!r}


def __getattr__(name):
    if name not in _PLACES:
        raise AttributeError(name)
    return getattr(import_module(_PLACES[name]), name)
'''


def ship(spark: SparkSession) -> bool:
    """Send the package to the executors, if they are elsewhere; whether that was done."""
    if str(spark.conf.get(SETTING, "true")).lower() == "false" or _is_here(spark):
        return False
    file = str(package_file())
    if _is_remote(spark):
        spark.addArtifacts(file, pyfile=True)
    else:
        spark.sparkContext.addPyFile(file)
    return True


def package_file(cache: Path | None = None) -> Path:
    """The zip, in the user's cache; its name says what is in it."""
    content = package_zip()
    name = f"falconmq-{hashlib.sha256(content).hexdigest()[:16]}.zip"
    file = cache_folder(cache) / name
    if not file.is_file():
        with tempfile.NamedTemporaryFile(dir=file.parent, delete=False) as new:
            new.write(content)
        Path(new.name).replace(file)
    return file


def package_zip() -> bytes:
    """The part of the package that tasks need."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in _LAZY:
            archive.writestr(_entry(name), _lazy(name))
        for file in _files():
            name = file.relative_to(_PACKAGE).as_posix()
            if name not in _LAZY:
                archive.writestr(_entry(name), file.read_bytes())
    return buffer.getvalue()


def _files() -> Iterator[Path]:
    for part in _PARTS:
        path = _PACKAGE / part
        yield from [path] if path.is_file() else sorted(path.rglob("*.py"))


def _lazy(name: str) -> str:
    """A list of names that imports nothing until one of them is wanted."""
    places: dict[str, str] = {}
    for statement in ast.parse((_PACKAGE / name).read_text("utf-8")).body:
        if isinstance(statement, ast.ImportFrom) and statement.module != "__future__":
            places |= {alias.name: str(statement.module) for alias in statement.names}
    package = ".".join(("falconmq", *Path(name).parent.parts))
    return _LAZY_TEXT.format(name=package, places=places)


def _entry(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(f"falconmq/{name}", _LONG_AGO)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = 0o644 << 16
    return entry


def _is_remote(spark: Any) -> bool:
    """Whether it is a session of Spark Connect."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def _is_here(spark: SparkSession) -> bool:
    """Whether the tasks run in processes of this computer that find what we find."""
    if _is_remote(spark):
        return False
    master = str(spark.sparkContext.master)
    return master == "local" or master.startswith("local[")
