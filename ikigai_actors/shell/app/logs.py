"""Logging of the application: to a file, since the terminal is in use; one line of each record is shown as a notice."""

import contextlib
import logging
import os
from collections.abc import Callable, Iterator
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path

from ikigai_actors.agent.subscriptions import is_no_event
from ikigai_actors.verbs.text.harmless import HarmlessFormatter, one_line


class OwnFile(RotatingFileHandler):
    """A log handler for a file that only its user may read."""

    def _open(self) -> TextIOWrapper:
        os.close(os.open(self.baseFilename, os.O_CREAT | os.O_WRONLY, 0o600))
        return super()._open()


class Notices(logging.Handler):
    """A logging handler that shows records as notices on the screen."""

    def __init__(self, notice: Callable[[str], None], path: Path) -> None:
        super().__init__(logging.WARNING)
        self.addFilter(is_no_event)
        self._notice, self._path = notice, path

    def emit(self, record: logging.LogRecord) -> None:
        more = f" (see {self._path})" if record.exc_info else ""
        self._notice(one_line(record.getMessage()) + more)


@contextlib.contextmanager
def logged_to(path: Path, notice: Callable[[str], None]) -> Iterator[None]:
    """Log the library's records to a file, and show them as notices, while the block runs."""
    logger = logging.getLogger("ikigai_actors")
    before = logger.handlers[:]
    with contextlib.suppress(OSError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    file = OwnFile(path, maxBytes=1_000_000, backupCount=1, encoding="utf-8", delay=True)
    file.setFormatter(HarmlessFormatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logger.handlers[:] = [file, Notices(notice, path)]
    try:
        yield
    finally:
        logger.handlers[:] = before
        file.close()
