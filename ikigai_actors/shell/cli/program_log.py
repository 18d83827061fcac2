"""The lines on standard error beside the answers: notices of the program, and the log of the library.

`log_as` chooses their form, by ``--log`` or ``$IKIGAI_LOG``.
"""

import logging
import sys
import warnings
from typing import TextIO

import click

from ikigai_actors.shell import start
from ikigai_actors.verbs.text.harmless import harmless
from ikigai_actors.verbs.text.logs import log_formatter

TEXT, JSON = "text", "json"
"""The forms of a log line."""

_OURS = "ikigai_actors"


class _LineHandler(logging.StreamHandler[TextIO]):
    """Prints log lines on standard error, after leaving the screen of the first picture."""

    def emit(self, record: logging.LogRecord) -> None:
        start.leave_screen()
        self.stream = sys.stderr  # a bar, or a capture, puts another one in its place
        super().emit(record)


_FORMATS = {form: log_formatter("ikigai: %(message)s", as_json=form == JSON) for form in (TEXT, JSON)}
_handler = _LineHandler()
_handler.setFormatter(_FORMATS[TEXT])
_handler.setLevel(logging.WARNING)


def log_in_lines() -> None:
    """Print the library's log records as lines of the program; an internal error keeps its traceback.

    Errors of tool servers are not printed: their results report them.
    """
    logging.getLogger(_OURS).addHandler(_handler)
    logging.getLogger("mcp").addHandler(logging.NullHandler())
    warnings.filterwarnings("ignore", "Pydantic serializer warnings")  # from anthropic's client, for a broken event


def log_as(form: str) -> None:
    """Choose the form of all later lines. With JSON, the records of other libraries are lines, too."""
    is_json = form == JSON
    _handler.setFormatter(_FORMATS[form])
    if _handler in (*logging.getLogger(_OURS).handlers, *logging.getLogger().handlers):
        of, other = (None, _OURS) if is_json else (_OURS, None)
        logging.getLogger(other).removeHandler(_handler)
        logging.getLogger(of).addHandler(_handler)
        logging.getLogger("mcp").propagate = not is_json
        logging.captureWarnings(is_json)


def announce(text: str, level: int = logging.INFO) -> None:
    """Print a message of the program for the person or program that has started it."""
    line = f"ikigai: {harmless(text)}"
    if _handler.formatter is _FORMATS[JSON]:
        line = _FORMATS[JSON].format(logging.LogRecord("ikigai", level, "", 0, "%s", (text,), None))
    # by name: click itself would write to the stream beneath the one that a bar has put in its place
    click.echo(line, file=sys.stderr, err=True)
