"""The lines of logs: for people, or as JSON."""

import logging

from ikigai_actors.system.json_log import JsonFormatter
from ikigai_actors.verbs.text.harmless import HarmlessFormatter


def log_formatter(form: str, *, as_json: bool) -> logging.Formatter:
    """Return the formatter of a log.

    Args:
        form: the form of a line for people, as for `logging`.
        as_json: whether each line is a JSON object.
    """
    return JsonFormatter() if as_json else HarmlessFormatter(form)
