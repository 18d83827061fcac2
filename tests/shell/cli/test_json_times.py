"""Times in JSON output are ISO 8601 in UTC."""

import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from ikigai_actors import ActorSystem, OfflineProvider
from ikigai_actors.shell.cli.main import cli
from ikigai_actors.text import iso_time
from tests.kit.program import PATIENCE

SINCE_2020 = 1_577_836_800_000


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database that has a time of every kind."""
    path = tmp_path_factory.mktemp("times") / "team.db"
    with ActorSystem.open(path, OfflineProvider()) as system:
        system.root.prompt("tea").get(timeout=PATIENCE)
        kid, other = system.root.fork(name="kid"), system.root.fork(name="other")
        kid.prompt("milk").get(timeout=PATIENCE)
        kid.remind("tea", after=9_000)
        system.documents.write("plan.md", "# Mast", author=kid)
        other.kill()
    return path


def times_in(value: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    """What looks like a time in a JSON value, by its key; not in the data of messages, which is as it is stored."""
    if isinstance(value, dict):
        for name, member in value.items():
            yield from times_in(member, name) if name != "data" else ()
    elif isinstance(value, list):
        for member in value:
            yield from times_in(member, key)
    elif (key.endswith("_at") and value is not None) or (isinstance(value, int) and value > SINCE_2020):
        yield key, value


@pytest.mark.sample(5, "commands")
@pytest.mark.parametrize(
    ("words", "has"),
    [
        ("agents", {"created_at", "ended_at"}),
        ("agents --tree", {"created_at", "ended_at"}),
        ("log kid", {"created_at"}),
        ("diff kid other", {"created_at"}),
        ("hosts", {"started_at", "ended_at"}),
        ("timers", {"due_at"}),
        ("doc list", {"created_at"}),
        ("doc show plan.md", {"created_at"}),
        ("doc log plan.md", {"created_at"}),
        ("stats --tokens", set()),
        ("budget", set()),
        ("fsck", set()),
    ],
)
def test_every_time_in_json_is_iso_8601_in_utc(place: Path, words: str, has: set[str]) -> None:
    done = CliRunner().invoke(cli, ["--database", str(place), *words.split(), "--json"], catch_exceptions=False)
    values = map(json.loads, done.stdout.splitlines()) if words.startswith("log") else [json.loads(done.stdout)]
    pairs = [pair for value in values for pair in times_in(value)]
    assert {key for key, _ in pairs} == has
    for key, text in pairs:
        assert isinstance(text, str), f"{key}: {text}"
        assert text.endswith("Z")
        assert datetime.fromisoformat(text).timestamp() * 1000 > SINCE_2020


def test_a_time_keeps_its_milliseconds() -> None:
    assert iso_time(1_795_615_852_953) == "2026-11-25T14:10:52.953Z"
    assert iso_time(0) == "1970-01-01T00:00:00.000Z"
