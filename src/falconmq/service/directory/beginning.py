"""The first queue manager of an enterprise: the directory that it keeps begins with it."""

from __future__ import annotations

from falconmq.directory.base import DirectoryBase
from falconmq.directory.queries import find_one, query_error
from falconmq.manager.states import DirectoryResult
from falconmq.service.configuration import DirectorySection

FIRST_ENTERPRISE = "falconmq"
FIRST_SITE = "Default-Site"


def begin(directory: DirectoryBase, section: DirectorySection) -> None:
    """Make the enterprise and its first site, if the directory is empty; DirectoryError."""
    if find_one(directory, "Enterprise", ()) is not None:
        return
    enterprise, site = section.domain or FIRST_ENTERPRISE, section.site or FIRST_SITE
    for type_name, name in (("Enterprise", enterprise), ("Site", site)):
        result, _ = directory.create(type_name, {"name": name})
        if result is not DirectoryResult.SUCCESS:
            raise query_error(directory, type_name, result)
