"""Messages of MCP as lines of JSON: reads the lines of a server, and writes lines for it. Pure.

JavaScript programs and models may cut a text in the middle of an emoji and escape half of it. JSON allows such an
escape, but UTF-8 cannot encode it, so it becomes U+FFFD. If an answer cannot be read at all, its request gets an error,
because no other answer will come. The id of the request is before or after the result, and the result may be unreadable
or megabytes long. So only the beginning and the end of the line are searched for the id.
"""

import json
import re

from mcp.shared.message import SessionMessage
from mcp.types import PARSE_ERROR, ErrorData, JSONRPCError, JSONRPCMessage, jsonrpc_message_adapter
from pydantic import ValidationError

Heard = SessionMessage | Exception

UNREADABLE_LINE = object()
"""The data of an error that replaces an unreadable answer. No server can send this object."""

_ESCAPE = re.compile(
    r"(?:\\\\)+|(?:\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})+|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
)
"""Matches in JSON: escaped backslashes, escaped surrogate pairs, or a lone escaped surrogate (the group)."""

_MEMBER = r'(?:"jsonrpc"\s*:\s*"[^"\\]*"|"id"\s*:\s*"?(?P<id>\d{1,15})(?:\.0+)?"?)\s*'
_HEAD = re.compile(rf'[\s\[]*\{{\s*(?:{_MEMBER}(?:,\s*|(?=\}})))*(?:"(?:result|error)"\s*:|\}})')
_TAIL = re.compile(rf"(?:,\s*{_MEMBER})+\}}[\s\]]*\Z")
_LONGEST_TAIL = 200
_DEEP = 100
"""The number of objects or lists in a text from which it may be nested too deep for the parser."""


def read_line(line: bytes) -> Heard:
    """Read the message in a line. A line without a message gives an error, which the session handles."""
    text = line.decode(errors="replace")
    try:
        return _message(text)
    except ValueError:
        text = _without_halves(text)
    try:
        return _message(text)
    except ValidationError as error:
        request = _answered(text)
        if request is None:
            return error
        fault = ErrorData(code=PARSE_ERROR, message=_fault(error), data=UNREADABLE_LINE)
        return SessionMessage(JSONRPCError(jsonrpc="2.0", id=request, error=fault))


def write_line(message: JSONRPCMessage) -> bytes:
    """Return the line for a message."""
    try:
        text = message.model_dump_json(by_alias=True, exclude_unset=True)
    except ValueError:
        text = _without_halves(json.dumps(message.model_dump(by_alias=True, exclude_unset=True)))
    return text.encode() + b"\n"


def _message(text: str) -> SessionMessage:
    """Return the message in a text. Raises `ValidationError`."""
    try:
        message: JSONRPCMessage = jsonrpc_message_adapter.validate_json(text, by_name=False)
    except ValidationError:
        if (value := _nested(text)) is None:
            raise
        message = jsonrpc_message_adapter.validate_python(value, by_name=False)
    return SessionMessage(message)


def _nested(text: str) -> object:
    """Return the value of a text that may be nested deeper than pydantic's parser reads (200 levels); else None."""
    if max(text.count("{"), text.count("[")) < _DEEP:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _without_halves(text: str) -> str:
    return _ESCAPE.sub(lambda escape: r"\ufffd" if escape[1] else escape[0], text)


def _answered(text: str) -> int | None:
    """Return the id of the request that an unreadable line answers; None if the line is no answer, or has no id."""
    head = _HEAD.match(text)
    if head is None:
        return None
    number = head["id"]
    if number is None and (tail := _TAIL.search(text[-_LONGEST_TAIL:])) is not None:
        number = tail["id"]
    return None if number is None else int(number)


def _fault(error: ValidationError) -> str:
    """Return a text for people on why an answer cannot be read."""
    first = error.errors(include_url=False, include_input=False)[0]
    return str(first["ctx"]["error"]) if first["type"] == "json_invalid" else "it is no response of JSON-RPC 2.0"
