"""Log lines as JSON, one object a line, for programs that collect them.

    {"time": "2026-11-29T06:00:00.123+00:00", "level": "warning", "logger": "ikigai_actors.store", "message": "…"}

An unexpected error has its traceback in ``error``. Lines of the program ``ikigai`` itself have the logger ``ikigai``.
"""

import json
import logging
from datetime import UTC, datetime


class JsonFormatter(logging.Formatter):
    """Formats log records as lines of JSON. Control characters in texts are escaped."""

    def format(self, record: logging.LogRecord) -> str:
        fields = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            "process": record.process,
        }
        if record.exc_info and record.exc_info[0] is not None:
            fields["error"] = self.formatException(record.exc_info)
        return json.dumps(fields)
