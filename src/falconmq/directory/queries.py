"""Ask a directory and get plain rows, or an error that says what to do."""

from __future__ import annotations

from collections.abc import Sequence

from falconmq.directory.base import DirectoryRefusedError
from falconmq.errors import DirectoryError
from falconmq.manager.directory_backend import DirectoryBackend, Filters
from falconmq.manager.directory_objects import Row
from falconmq.manager.states import DirectoryResult


def find_all(
    directory: DirectoryBackend,
    type_name: str,
    filters: Filters = (),
    attributes: Sequence[str] | None = None,
) -> list[Row]:
    """All objects of a type that pass the filters."""
    result, handle = directory.begin(type_name, filters, attributes, None)
    if result is not DirectoryResult.SUCCESS:
        raise query_error(directory, type_name, result)
    rows = []
    try:
        result, row = directory.next(handle)
        while result is DirectoryResult.SUCCESS:
            rows.append(row)
            result, row = directory.next(handle)
    finally:
        directory.end(handle)
    if result is not DirectoryResult.END_OF_DATA:
        raise query_error(directory, type_name, result)
    return rows


def find_one(
    directory: DirectoryBackend,
    type_name: str,
    filters: Filters,
    attributes: Sequence[str] | None = None,
) -> Row | None:
    """The first object of a type that passes the filters; None when there is none."""
    result, row = directory.read(type_name, filters, attributes)
    if result is DirectoryResult.OBJECT_NOT_FOUND:
        return None
    if result is not DirectoryResult.SUCCESS:
        raise query_error(directory, type_name, result)
    return row


def query_error(
    directory: DirectoryBackend, type_name: str, result: DirectoryResult
) -> DirectoryError:
    """Why a directory did not do what it was asked: its own words, if it said any.

    Another thread may have asked since; words that fit another result are not about this one.
    """
    problem = getattr(directory, "last_problem", None)
    if isinstance(problem, DirectoryError):
        about = getattr(problem, "result", DirectoryResult.GENERIC_ERROR)
        if about is result:
            return problem
    if result is DirectoryResult.DIRECTORY_NOT_CONNECTED:
        words = f"no directory can be asked for a {type_name}"
        hint = "it can be tried again when the directory is there"
        return DirectoryRefusedError(result, words, hint=hint)
    return DirectoryRefusedError(result, f"the answer for a {type_name} is: {result.value}")
