"""The form for a message to send, as the API takes it."""

from __future__ import annotations

import base64
import json
from typing import Any

from falconmq.errors import MessageError
from falconmq.service.console.view import View


def message_of(view: View) -> dict[str, Any]:
    """What `schemas.MessageIn` is made of; MessageError if the body is not what it claims to be."""
    message: dict[str, Any] = {
        "label": view.field("label"),
        "recoverable": bool(view.field("recoverable")),
        "trace": bool(view.field("trace")),
        **_body(view.field("format"), view.field("body")),
    }
    for key in ("priority", "time_to_be_received", "correlation_id"):
        if text := view.field(key).strip():
            message[key] = text
    if view.field("deadletter"):
        message["journal"] = ["DEAD_LETTER"]
    return message


def _body(format: str, text: str) -> dict[str, Any]:
    if format == "json":
        try:
            json.loads(text)
        except (ValueError, RecursionError) as error:
            raise MessageError(
                "body", f"no JSON: {error}", hint="choose text, or correct it"
            ) from error
        return _bytes(text.encode())  # as it was written, not as we would write it
    if format == "hex":
        try:
            return _bytes(bytes.fromhex(text))
        except ValueError as error:
            hint = "two digits for each byte, such as 00 ff 41"
            raise MessageError("body", f"no hexadecimal bytes: {error}", hint=hint) from error
    if format == "xml":
        return _bytes(text.encode())
    return {"text": text}


def _bytes(data: bytes) -> dict[str, Any]:
    return {"body": base64.b64encode(data).decode("ascii")}
