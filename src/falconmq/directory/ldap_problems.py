"""What LDAP servers refuse, and what keeps us from reaching them, as MSMQ's results with a hint."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from falconmq.directory.base import DirectoryRefusedError
from falconmq.directory.ldap_settings import LdapSettings
from falconmq.manager.states import DirectoryResult

SUCCESS: Final = 0
REFERRAL: Final = 10
CONSTRAINT_VIOLATION: Final = 19
NO_SUCH_OBJECT: Final = 32
_RESULTS: Final = {
    16: DirectoryResult.ATTRIBUTE_NOT_FOUND,
    32: DirectoryResult.OBJECT_NOT_FOUND,
    51: DirectoryResult.DIRECTORY_NOT_CONNECTED,  # busy
    52: DirectoryResult.DIRECTORY_NOT_CONNECTED,  # unavailable: it is going down
    68: DirectoryResult.OBJECT_ALREADY_EXISTS,
}
_HINTS: Final = {
    8: "say who asks: give bind_name and password",
    10: "name that host in referral_hosts to search there, or in urls to change something there",
    49: "check bind_name and password",
    50: "the server does not let bind_name do this; see its access rules",
    66: "delete what stands below it first",
}


def check_result(result: Mapping[str, Any], what: str) -> None:
    """Raise what a server answered, unless it is success."""
    code = result["result"]
    if code == SUCCESS:
        return
    said = f"{result['description']} ({code})"
    if result.get("message"):
        said += f": {result['message']}"
    if code == REFERRAL:
        said += f" to {', '.join(result.get('referrals') or ())}"
    is_bind = what.startswith("bind")
    not_connected = DirectoryResult.DIRECTORY_NOT_CONNECTED
    outcome = not_connected if is_bind else _RESULTS.get(code, DirectoryResult.GENERIC_ERROR)
    if code == CONSTRAINT_VIOLATION and "unique" in said:  # slapd's overlay: somebody has this GUID
        outcome = DirectoryResult.OBJECT_ALREADY_EXISTS
    raise DirectoryRefusedError(
        outcome, f"the LDAP server refused to {what}: {said}", hint=_HINTS.get(code, "")
    )


def unreachable(url: str, error: Exception, settings: LdapSettings) -> DirectoryRefusedError:
    """Why no answer came: nobody there, nobody we may trust, or nobody in time."""
    text = str(error) or type(error).__name__
    hint = "check that the server runs and that its address is right"
    if "certificate" in text.lower() or "ssl" in text.lower() or "tls" in text.lower():
        hint = "check ca_file, and that the certificate names the host as the url does"
    elif _is_timeout(error):
        text = (
            f"no answer in time ({settings.operation_timeout_seconds:g} seconds for an operation)"
        )
        hint = "the server is busy or cut off; operation_timeout_seconds says how long to wait"
    return DirectoryRefusedError(
        DirectoryResult.DIRECTORY_NOT_CONNECTED, f"the directory at {url}: {text}", hint=hint
    )


def _is_timeout(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, TimeoutError | BlockingIOError) or "timed out" in str(error):
            return True
        error = error.__cause__ or error.__context__
    return False
