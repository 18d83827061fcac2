"""What the library logs, as the application shows and keeps it."""

import logging
from pathlib import Path

from ikigai_actors.agent.subscriptions import AS_EVENT
from ikigai_actors.shell.app.logs import logged_to


def test_what_comes_as_an_event_too_is_in_the_file_and_no_notice(tmp_path: Path) -> None:
    notices: list[str] = []
    logger = logging.getLogger("ikigai_actors.somewhere")
    with logged_to(tmp_path / "ikigai.log", notices.append):
        logger.warning("of the library")
        logger.warning("of a tool", extra=AS_EVENT)
    assert notices == ["of the library"]
    assert [line.partition(": ")[2] for line in (tmp_path / "ikigai.log").read_text().splitlines()] == [
        "of the library",
        "of a tool",
    ]
