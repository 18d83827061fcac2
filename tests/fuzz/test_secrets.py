"""Keys, passwords and what a person wrote: for those alone whom they concern."""

import asyncio
import logging
import os
import traceback
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given

from ikigai_actors import ActorSystem, AnthropicProvider, IkigaiError, OfflineProvider, ProviderError
from ikigai_actors.providers.base import Request
from ikigai_actors.shell.app.input_history import Recall
from ikigai_actors.shell.app.logs import logged_to
from ikigai_actors.shell.cli.main import run
from tests.fuzz.hostile import fuzzed, texts
from tests.fuzz.shells import printed
from tests.kit.databases import Admin
from tests.kit.messages_server.server import Ending, MessagesServer, Refuses, Says, Sends
from tests.kit.network import with_settings
from tests.kit.program import COMMAND, completed, environment

pytestmark = pytest.mark.slow("starts programs")

DISTINCT = "Zq7Kx0Wv"
"""What is in every secret here, and in nothing else."""

ASKED = Request("uuid", None, "", "", ({"role": "user", "content": [{"type": "text", "text": "Hello"}]},))


@pytest.fixture(scope="module")
def server() -> Iterator[MessagesServer]:
    with MessagesServer() as running:
        yield running


def sentence_of(error: BaseException) -> str:
    """All that can be seen of an error."""
    return f"{error} {error!r} {vars(error)} {''.join(traceback.format_exception(error))}"


@fuzzed(12)
@given(texts)
def test_no_password_of_a_database_is_shown(text: str) -> None:
    password = quote(f"{DISTINCT}{text}", safe="", errors="surrogatepass")
    for url in (
        f"postgresql://me:{password}@127.0.0.1:1/x?connect_timeout=1",
        f"postgresql://127.0.0.1:1/x?user=me&password={password}&connect_timeout=1",
        f"mysql://me:{DISTINCT}{text}@host/x",
        f"postgresql://me:{DISTINCT}{text}@127.0.0.1:1/x",
    ):
        with pytest.raises(IkigaiError) as caught:
            ActorSystem.open(url)
        assert DISTINCT not in sentence_of(caught.value)
        if "\0" not in url:
            with printed() as paper:
                assert run(["--database", url, "agents"]) == 1
            assert DISTINCT not in paper.text


@fuzzed(3)
@given(texts)
def test_no_key_of_a_provider_is_shown(server: MessagesServer, text: str) -> None:
    key = f"{DISTINCT}{text}"
    server.script[:] = [
        Refuses(401, "authentication_error", f"The key {key} is wrong.", {}),
        Refuses(401, "authentication_error", f"The key {key[: len(DISTINCT) + 2]}... is wrong.", {}),
        Refuses(500, "api_error", f"{key}", {}),
        Sends(f"What is {key}?".encode(errors="replace"), 400, "text/plain"),
    ]

    async def ask() -> list[ProviderError]:
        provider = AnthropicProvider(base_url=server.url, api_key=key)
        assert DISTINCT not in repr(provider)
        failures = []
        for _ in range(4):
            with pytest.raises(ProviderError) as caught:
                await provider.respond(ASKED, lambda _: None)
            failures.append(caught.value)
        await provider.close()
        return failures

    for failure in asyncio.run(ask()):
        assert DISTINCT not in sentence_of(failure)


def test_a_run_leaves_the_key_nowhere(server: MessagesServer, tmp_path: Path) -> None:
    key = f"{DISTINCT}-of-no-known-form"
    server.script[:] = [
        Says.text("Hello."),
        Refuses(401, "authentication_error", f"The key {key} is wrong."),
        Sends(f"{key}".encode(), 400, "text/plain"),
        Says.text("Half", Ending.BROKEN_JSON),
    ]
    ours = {"ANTHROPIC_API_KEY": key, "ANTHROPIC_BASE_URL": server.url, "IKIGAI_HOME": str(tmp_path / "home")}

    def said(*arguments: str, lines: str = "") -> str:
        done = completed([*COMMAND, *arguments], lines=lines, env={**environment(), **ours})
        return done.stdout + done.stderr

    (tmp_path / "work").mkdir()
    workspace = ("--workspace", str(tmp_path / "work"), "--yes")
    shown = said(
        *workspace, lines="one\ntwo\nthree\nfour\n/context\n/history\n/tools\n/agents\n/model nobody:x\nfive\n"
    )
    assert "Hello." in shown
    assert "[key]" in shown
    shown += said("agents", "--json") + said("fsck", "--json")
    assert DISTINCT not in shown
    for file in (tmp_path / "home").rglob("*"):
        assert file.is_dir() or DISTINCT.encode() not in file.read_bytes(), file


def test_a_system_on_a_server_shows_its_password_nowhere(postgres_url: str, postgres_admin: Admin) -> None:
    postgres_admin.execute(b"DROP SCHEMA IF EXISTS secrets CASCADE; CREATE SCHEMA secrets")
    url = with_settings(postgres_url, password=DISTINCT, options="-csearch_path=secrets")
    try:
        with ActorSystem.open(url, OfflineProvider()) as system:
            system.root.prompt("hello").get(timeout=60)
            for part in (system, system._store, system._store.location, system.root):
                assert DISTINCT not in f"{part!r} {part}"
            with pytest.raises(IkigaiError) as caught:
                ActorSystem.open(url, OfflineProvider())
            assert DISTINCT not in sentence_of(caught.value)
        for table in (b"hosts", b"agents", b"messages"):
            rows = postgres_admin.execute(b"SELECT t::text FROM secrets.%s t" % table)
            assert DISTINCT not in str(rows.fetchall())
    finally:
        postgres_admin.execute(b"DROP SCHEMA secrets CASCADE")


def test_only_the_user_may_read_what_is_written_whatever_the_umask(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    monkeypatch.setenv("IKIGAI_HOME", str(home))
    before = os.umask(0)
    try:
        with logged_to(home / "ikigai.log", lambda _: None), ActorSystem.open(provider=OfflineProvider()) as system:
            system.root.prompt("hello").get(timeout=60)
            Recall(home / "history").remember("hello")
            logging.getLogger("ikigai_actors").warning("Something.")
            modes = {path.name: oct(path.stat().st_mode & 0o777) for path in home.iterdir()}
    finally:
        os.umask(before)
    assert oct(home.stat().st_mode & 0o777) == "0o700"
    names = ("history", "ikigai.db", "ikigai.db-shm", "ikigai.db-wal", "ikigai.db.lock", "ikigai.log")
    assert modes == dict.fromkeys(names, "0o600")
