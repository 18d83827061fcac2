"""Logs of the application: in a file, since the terminal is drawn upon; and one line of each as a notice."""

import contextlib
import logging
from collections.abc import Callable, Iterator
from logging.handlers import RotatingFileHandler
from pathlib import Path

from ikigai_actors.shell.screen import one_line


class Notices(logging.Handler):
    """Tells the person what is logged."""

    def __init__(self, notice: Callable[[str], None], path: Path) -> None:
        super().__init__(logging.WARNING)
        self._notice, self._path = notice, path

    def emit(self, record: logging.LogRecord) -> None:
        """See `logging.Handler.emit`."""
        more = f" (see {self._path})" if record.exc_info else ""
        self._notice(one_line(record.getMessage()) + more)


@contextlib.contextmanager
def logged_to(path: Path, notice: Callable[[str], None]) -> Iterator[None]:
    """Log what the library tells to a file, for the length of a block, and to nowhere else but the notices."""
    logger = logging.getLogger("ikigai_actors")
    before = logger.handlers[:]
    with contextlib.suppress(OSError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    file = RotatingFileHandler(path, maxBytes=1_000_000, backupCount=1, encoding="utf-8", delay=True)
    file.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logger.handlers[:] = [file, Notices(notice, path)]
    try:
        yield
    finally:
        logger.handlers[:] = before
        file.close()
