"""What the documentation shows runs as it stands."""

from __future__ import annotations

import asyncio
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import falconmq
from falconmq import Message, aio

HOWTO = Path(__file__).parents[2] / "docs" / "howto" / "embedded.md"
CODE = re.compile(r"```python\n(.*?)```", re.DOTALL)


def blocks() -> list[str]:
    return CODE.findall(HOWTO.read_text("utf-8"))


@pytest.mark.parametrize("number", range(len(blocks())))
def test_the_howto_runs(number: int, tmp_path: Path) -> None:
    code = blocks()[number]
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def example(thing: object) -> str:
    """The indented block of a docstring."""
    margin = " " * (4 if inspect.ismodule(thing) else 8)
    lines = (thing.__doc__ or "").splitlines()
    found = [line.removeprefix(margin) for line in lines if line.startswith(margin)]
    assert found
    return "\n".join(found)


def test_the_example_of_the_package_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(example(falconmq), "falconmq", "exec"), {})
    assert capsys.readouterr().out == "hello\n"


def test_the_example_of_aio_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    exec(compile(example(aio), "aio", "exec"), names)
    main = names["main"]
    assert callable(main)
    asyncio.run(main())
    with falconmq.open(tmp_path / "data") as manager:
        assert [queue.count for queue in manager.queues()] == [0]


def test_the_examples_of_transaction_and_cursor_run(tmp_path: Path) -> None:
    with falconmq.open(tmp_path) as manager:
        orders = manager.create_queue(r".\private$\orders", transactional=True)
        invoices = manager.create_queue(r".\private$\invoices", transactional=True)
        with manager.transaction() as transaction:
            orders.send_many([Message("a"), Message("b", label="urgent")], transaction)
        names = {"manager": manager, "orders": orders, "invoices": invoices, "falconmq": falconmq}
        exec(compile(example(falconmq.Cursor), "cursor", "exec"), names)
        assert [message.text for message in orders] == ["a"]
        exec(compile(example(falconmq.Transaction), "transaction", "exec"), names)
        assert [message.body for message in invoices] == ["a".encode("utf-16-le")]
