r"""Makes text safe for a terminal.

Text of models and people may hold control characters, which could move the cursor or paint a prompt. Such characters
are shown as ``\x1b``: C0 (but newline and tab), DEL, C1, the signs that turn the direction of writing or separate
lines, and halves of characters, which no terminal takes.
"""

import json
import logging
from typing import Any

_CONTROLS = [
    *(code for code in range(0x20) if chr(code) not in "\n\t"),
    *range(0x7F, 0xA0),
    *range(0x2028, 0x202F),  # separators of lines and paragraphs; embeddings and overrides of direction
    *range(0x2066, 0x206A),  # isolates
    *range(0xD800, 0xE000),  # lone surrogates
]
_ESCAPES = {code: f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" for code in _CONTROLS}

_JSON_ESCAPES = {code: f"\\u{code:04x}" for code in _CONTROLS if code >= 0x7F}
"""The JSON escapes of those control characters that the JSON encoder leaves unchanged. Only texts can contain them."""


def harmless(text: str) -> str:
    """Return the text with control characters escaped. Carriage returns before a newline are dropped."""
    return text.replace("\r\n", "\n").translate(_ESCAPES)


def one_line(text: str) -> str:
    """Return the text as one line that is safe for a terminal."""
    return harmless(" ".join(text.split()))


def as_json(value: Any, indent: int | None = None) -> str:
    """Return a value as JSON that is safe for a terminal: control characters are escaped."""
    return json.dumps(value, indent=indent, ensure_ascii=False).translate(_JSON_ESCAPES)


class HarmlessFormatter(logging.Formatter):
    """Formats log lines. Control characters in them are escaped, and cannot begin a line."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - as logging calls it
        """Return the message on one line; a traceback has its own lines."""
        record.message = " ".join(record.message.split())
        return super().formatMessage(record)

    def format(self, record: logging.LogRecord) -> str:
        return harmless(super().format(record)).replace("\n", "\n  ")
