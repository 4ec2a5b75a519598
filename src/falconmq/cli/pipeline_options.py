"""Options that the commands of `falconmq pipeline` share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from falconmq.cli.connection import UnreachableServiceError, directory_of
from falconmq.cli.options import Place
from falconmq.cli.problems import WrongUsageError

LakeOption = Annotated[
    Path,
    typer.Option("--lake", help="Folder of the tables.", metavar="DIR", envvar="FALCONMQ_LAKE"),
]
DEFAULT_LAKE = Path("lake")


@dataclass(frozen=True, slots=True)
class Engine:
    """Which tables, and which Spark works on them."""

    lake: LakeOption = DEFAULT_LAKE
    master: Annotated[
        str | None,
        typer.Option(
            "--master",
            help="A Spark cluster: spark://host:7077. Left out: this computer, all its cores.",
            metavar="URL",
            show_default=False,
        ),
    ] = None
    remote: Annotated[
        str | None,
        typer.Option(
            "--remote",
            help="A Spark Connect server: sc://host:15002.",
            metavar="URL",
            show_default=False,
        ),
    ] = None
    conf: Annotated[
        list[str] | None,
        typer.Option(
            "--conf",
            help="A setting of Spark; may be given several times.",
            metavar="KEY=VALUE",
            show_default=False,
        ),
    ] = None
    table_format: Annotated[
        str | None,
        typer.Option(
            "--format",
            help="delta: the tables are Delta tables as well, from now on; it needs "
            "falconmq[delta]. Left out: as the lake is, a new one has Parquet files.",
            metavar="parquet|delta",
            show_default=False,
        ),
    ] = None
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")] = False
    quiet: Annotated[bool, typer.Option("--quiet", help="Show no progress.")] = False

    def check(self) -> None:
        if self.master and self.remote:
            raise WrongUsageError("--master and --remote are two Sparks", "give one of them")
        if self.table_format not in (None, "parquet", "delta"):
            raise WrongUsageError(
                f"--format {self.table_format} is no format of tables", "parquet or delta"
            )
        self.settings()

    def settings(self) -> dict[str, str]:
        """What --conf says."""
        pairs = {}
        for given in self.conf or ():
            key, equals, value = given.partition("=")
            if not equals or not key.strip():
                raise WrongUsageError(
                    f"--conf {given} is no setting", "write --conf spark.driver.memory=4g"
                )
            pairs[key.strip()] = value.strip()
        return pairs


@dataclass(frozen=True, slots=True)
class Managers:
    """Queue managers whose event logs are read."""

    manager: Annotated[
        list[str] | None,
        typer.Option(
            "--manager",
            help="A queue manager: http://sales02:8018, or unix:/var/lib/falconmq for one on this "
            "computer. May be given several times.",
            metavar="URL",
            show_default=False,
        ),
    ] = field(default=None)


def manager_urls(managers: Managers, place: Place) -> tuple[str, ...]:
    """Those of --manager, or the one that the other options mean."""
    if managers.manager:
        if place.is_named:
            raise WrongUsageError(
                "--manager and --url, --data or --config are two ways to say it",
                "give --manager for each of them",
            )
        from falconmq.client.doors import from_anywhere  # noqa: PLC0415 - `--help` is quick

        return tuple(from_anywhere(url) for url in managers.manager)
    return (manager_url(place),)


def manager_url(place: Place) -> str:
    """Where the queue manager is that the options mean."""
    chosen = place.with_environment()
    return chosen.url or f"unix:{directory_of(chosen).absolute()}"


def check_reachable(urls: Sequence[str], token: str | None) -> None:
    """Before Spark starts: whoever mistypes an address need not wait for it."""
    from falconmq.client import ControlClient, UnreachableError  # noqa: PLC0415 - `--help` is quick
    from falconmq.errors import FalconMQError  # noqa: PLC0415

    for url in urls:
        try:
            with ControlClient.connect(url, token) as client:
                client.request("GET", "/ready")
        except UnreachableError as error:
            raise UnreachableServiceError(str(error), error.hint) from error
        except FalconMQError:
            pass  # somebody is there; the job says what is wrong


def moment(text: str | None, name: str) -> datetime | None:
    """An ISO time; one without a zone is UTC, as everything in the lake is."""
    if text is None:
        return None
    try:
        at = datetime.fromisoformat(text)
    except ValueError as error:
        raise WrongUsageError(
            f"{name} {text} is no time", f"write {name} 2026-11-16 or {name} 2026-11-16T10:00"
        ) from error
    return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)


SinceOption = Annotated[
    str | None,
    typer.Option(
        "--since",
        help="From then on: 2026-11-16, 2026-11-16T10:00.",
        metavar="TIME",
        show_default=False,
    ),
]
UntilOption = Annotated[
    str | None,
    typer.Option("--until", help="Before then; UTC.", metavar="TIME", show_default=False),
]
