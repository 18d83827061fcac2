"""A host says once that its server may lose what it has acknowledged."""

import logging
from contextlib import closing

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from ikigai_actors import ActorSystem, OfflineProvider
from ikigai_actors.store import open_store
from ikigai_actors.store.postgres.durability import MUST_BE_ON, losing
from tests.conftest import NewDatabase
from tests.kit.network import with_settings


def test_only_what_is_off_is_named() -> None:
    assert losing(["on", "on", "on"]) == losing(["on", "on", "remote_apply"]) == losing(["on", None, "local"]) == ""
    assert losing(["on", "on", "off"]).startswith("its server has synchronous_commit = off: what was acknowledged")
    assert losing(["off", "on", "off"]).startswith("its server has fsync = off and synchronous_commit = off: ")


def warnings_in(caplog: pytest.LogCaptureFixture) -> list[str]:
    """The warnings of a host about its server."""
    texts = [record.getMessage() for record in caplog.records if "its server has" in record.getMessage()]
    caplog.clear()
    return texts


@pytest.mark.thorough("a server of other settings")
def test_a_host_says_once_that_its_server_may_lose_commits_and_a_client_says_nothing(
    new_postgres: NewDatabase, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    for value in ("on", "off"):
        url = new_postgres()
        options = conninfo_to_dict(url).get("options", "")
        url = with_settings(url, options=f"{options} -csynchronous_commit={value}")
        with ActorSystem.open(url, OfflineProvider()) as system:
            system.root.fork("hello").reply(timeout=60)
            texts = warnings_in(caplog)
            with closing(open_store(url)), psycopg.connect(url) as connection:
                shown = [connection.execute(f"SHOW {name}").fetchall()[0][0] for name in MUST_BE_ON]
        assert (shown[-1], warnings_in(caplog)) == (value, [])
        assert [text.partition(": ")[2] for text in texts] == ([losing(shown)] if "off" in shown else [])
