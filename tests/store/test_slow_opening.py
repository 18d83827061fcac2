"""A server that answers slowly is named."""

import logging
import threading
from pathlib import Path

import pytest

from ikigai_actors.store.slow_opening import says_if_slow
from tests.kit.databases import eventually


def test_who_waits_for_a_server_hears_so_once_without_its_password(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING), says_if_slow("postgresql://bob:secret@db/team", after=0.001):
        eventually(lambda: caplog.messages, "a word")
    [said] = caplog.messages
    assert said.startswith("Database postgresql://bob:***@db/team is being opened for 0.001 s now: its server answers")


def test_nothing_is_said_of_what_opens_in_time_or_is_a_file(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    before = threading.active_count()
    with says_if_slow(tmp_path / "team.db", after=0.0):
        assert threading.active_count() == before
    with says_if_slow("postgresql://db/team", after=99.0):
        assert threading.active_count() == before + 1
    eventually(lambda: threading.active_count() == before, "the end of the timer")
    assert caplog.messages == []
