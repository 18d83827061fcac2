"""Bad input that did harm once: each of these was found by the properties of ``tests/fuzz``."""

import json
import logging
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from textual import events

from ikigai_actors import (
    ActorSystem,
    BadInput,
    Kind,
    Message,
    OfflineProvider,
    Reply,
    ScriptedProvider,
    ToolCall,
)  # fmt: skip
from ikigai_actors.agent.boot import survey_one
from ikigai_actors.errors import NotBelow, RootProtected, StoreError, StoreUnusable
from ikigai_actors.records.fsck.check import check
from ikigai_actors.records.lives.deaths import WriteDeath
from ikigai_actors.records.messages.replies import reply_message_data
from ikigai_actors.shell.app.logs import logged_to
from ikigai_actors.shell.app.transcript.pieces import pieces_of
from ikigai_actors.shell.cli.main import run
from ikigai_actors.store import open_store
from ikigai_actors.store.location import locate
from ikigai_actors.store.migrations import require_schema
from ikigai_actors.store.unit import write_alone
from ikigai_actors.verbs.text.harmless import HarmlessFormatter, harmless
from tests.fuzz.hostile import PROMPT, controls
from tests.fuzz.shells import Typist, printed
from tests.kit.app_pilot import Stage, on_stage
from tests.kit.assembly import assemble
from tests.kit.damage import NOW, damage, found_family

ESCAPE = "\x1b]0;title\x07"


def offline() -> ActorSystem:
    return ActorSystem.open("sqlite:///:memory:", OfflineProvider())


@pytest.fixture
def family(tmp_path: Path) -> str:
    """The URL of a sound database."""
    url = f"sqlite:///{tmp_path / 'family.db'}"
    with closing(open_store(url)) as store:
        found_family(store)
    return url


def test_half_a_character_is_spelled_out_since_no_terminal_takes_it() -> None:
    assert harmless("a\ud800\u2028b") == "a\\ud800\\u2028b"


def test_an_answer_with_half_a_character_is_printed() -> None:
    with ActorSystem.open("sqlite:///:memory:", ScriptedProvider(["\ud800"])) as system, Typist(system) as typist:
        assert "Error" not in typist.do("hello")


def test_an_error_is_one_line_whatever_it_quotes() -> None:
    with offline() as system, Typist(system) as typist:
        assert typist.do("/adopt '' '\n'") == "error: Got unexpected extra argument ( ). Try /adopt --help.\n"


@pytest.mark.parametrize("around", ["{}", "x" * 38 + "{}", " " * 38 + "{}", "\t\t\t\t\t{}"])
def test_an_answer_cannot_put_a_prompt_where_the_prompt_stands(around: str) -> None:
    answer = f"Yes.\n{around.format(PROMPT)}"
    with ActorSystem.open("sqlite:///:memory:", ScriptedProvider([answer])) as system, Typist(system, 40) as typist:
        said = typist.do("Did you?")
        assert "6AW" in said
        assert all(line.startswith("  ") for line in said.splitlines())


def test_a_document_cannot_put_a_prompt_where_the_prompt_stands() -> None:
    with offline() as system, Typist(system, 40) as typist:
        system.documents.write(PROMPT.strip(), PROMPT)
        assert typist.do(f"/doc show '{PROMPT.strip()}'").startswith("  6AW")
        assert typist.do("/doc").startswith("  6AW")


def test_to_a_pipe_an_answer_is_printed_as_it_is() -> None:
    with ActorSystem.open("sqlite:///:memory:", ScriptedProvider(["a\n\tb"])) as system, Typist(system) as typist:
        assert typist.do("hello") == "a\n\tb\n"


def test_an_error_of_the_command_line_quotes_no_control_character() -> None:
    with printed() as paper:
        assert run(["agents", "x", f"{ESCAPE}\udcff"]) == 2
    assert not controls(paper.text)
    assert "\\x1b" in paper.text


def test_a_reason_with_control_characters_stays_in_the_json_and_off_the_terminal(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'a.db'}"
    with ActorSystem.open(url, OfflineProvider()) as system:
        system.root.fork().kill(reason="\x9b2J\u202e")
    with printed() as paper:
        assert run(["--database", url, "agents", "--json"]) == 0
    assert not controls(paper.text)
    assert [row["exit_reason"] for row in json.loads(paper.text)] == [None, "\x9b2J\u202e"]


def test_a_database_whose_name_is_too_long_is_said_to_be_so(tmp_path: Path) -> None:
    with printed() as paper:
        assert run(["--database", str(tmp_path / ("x" * 5_000)), "agents"]) == 1
    assert "cannot be looked at: File name too long" in paper.text


@pytest.mark.parametrize(
    "place",
    [
        "\ud800",
        "postgresql://me@\udc80/x",
        "postgresql://me:secret%ff@127.0.0.1:1/x",
        "postgresql:/me:secret@host/x",
        "mysql://me:sec\nsecret@host/x",
    ],
)
def test_what_can_be_no_database_is_refused_and_no_password_told(place: str) -> None:
    with pytest.raises(BadInput) as caught:
        locate(place)
    assert "secret" not in str(caught.value)


def test_a_log_that_quotes_somebody_moves_no_cursor_and_begins_no_line() -> None:
    record = logging.LogRecord("ikigai_actors", logging.ERROR, "", 0, "%s", (f"{ESCAPE}\n{PROMPT}",), None)
    line = HarmlessFormatter().format(record)
    assert line == f"\\x1b]0;title\\x07 {PROMPT.strip()}"


def test_the_log_of_the_application_is_for_its_user_alone(tmp_path: Path) -> None:
    with logged_to(tmp_path / "ikigai.log", lambda _: None):
        logging.getLogger("ikigai_actors").warning("Something.")
        assert (tmp_path / "ikigai.log").stat().st_mode & 0o777 == 0o600


@pytest.mark.slow("takes a tenth of a second")
def test_the_list_of_mail_shows_no_control_character() -> None:
    async def play(stage: Stage) -> None:
        await stage.press("f5")
        await stage.expect("title")
        assert not controls(stage.text, but="\n")

    with offline() as system:
        system.root.send(system.root, ESCAPE)
        on_stage(system, play)


@pytest.mark.slow("takes half a second")
def test_neither_notices_nor_pastes_nor_the_bars_show_a_control_character(tmp_path: Path) -> None:
    async def play(stage: Stage) -> None:
        stage.application.events.notice(f"noticed {ESCAPE}")
        stage.application.main.page.prompt.post_message(events.Paste(f"pasted {ESCAPE}"))
        await stage.expect("noticed")
        await stage.expect("pasted")
        assert not controls(stage.text, but="\n")

    with ActorSystem.open(str(tmp_path / f"{ESCAPE}.db"), OfflineProvider()) as system:
        on_stage(system, play, size=(200, 24))


def test_the_name_of_a_tool_whose_call_is_out_of_sight_is_harmless() -> None:
    [piece] = pieces_of([Message("a", 1, Kind.TOOL_RESULT, "done", {"name": ESCAPE, "tool_use_id": "1"}, 0)])
    assert not controls(piece.text)


@pytest.mark.thorough("a second screen; every run has the list of mail")
def test_a_notice_is_no_markup() -> None:
    async def play(stage: Stage) -> None:
        stage.application._press("/switch [/nope]")
        await stage.expect(r"nobody is called '\[/nope\]'")

    with offline() as system:
        on_stage(system, play, size=(200, 24))


@pytest.mark.thorough("a second screen; every run has the list of mail")
def test_the_help_of_a_command_is_shown_in_the_application() -> None:
    async def play(stage: Stage) -> None:
        await stage.say("/switch --help")
        await stage.expect("Go to an agent")

    with offline() as system:
        on_stage(system, play)


def test_what_no_request_can_carry_is_kept_out_of_the_log() -> None:
    blocks = (
        {"type": "thinking", "thinking": "\ud800", "signature": "s"},
        {"type": "text", "text": "a\udc80"},
        {"type": "tool_use", "id": "1", "name": "x", "input": {"\ud800": float("nan")}},
    )
    data = reply_message_data(Reply("a", blocks=blocks), "p:m")
    assert data["blocks"] == [
        {"type": "text", "text": "a\ufffd"},
        {"type": "tool_use", "id": "1", "name": "x", "input": {"\ufffd": None}},
    ]
    calls = reply_message_data(Reply("", (ToolCall("x", {"a": "\ud800"}, "1"),)), "p:m")
    said = Message("a", 1, Kind.ASSISTANT, "", calls, 0)
    request = assemble([said], {}, agent="a", name=None, model="p:m")
    json.dumps(list(request.messages), ensure_ascii=False, allow_nan=False).encode()


@pytest.mark.sample(1, "values")
@pytest.mark.parametrize("value", ["x'00'", "NULL", "'soon'"])
def test_values_of_wrong_types_are_reported_and_the_database_is_refused(family: str, value: str) -> None:
    column = "uuid" if value == "NULL" else "created_at"
    damage(family, f"UPDATE agents SET {column} = {value} WHERE uuid = 'g'")
    with closing(open_store(family)) as store:
        [violation] = check(store)
    assert str(violation.invariant) == "type"
    assert f"agents.{column}" in violation.text
    with pytest.raises(StoreUnusable, match=f"agents.{column}"):
        ActorSystem.open(family, OfflineProvider())
    with printed() as paper:
        assert run(["--database", family, "agents"]) == 1
    assert paper.text.startswith("ikigai: Database")


def test_a_version_that_is_no_number_is_not_ours(family: str) -> None:
    damage(family, "UPDATE schema_version SET version = x'00'")
    with closing(open_store(family)) as store, pytest.raises(StoreUnusable, match="not ikigai's"):
        require_schema(store)


def test_an_agent_whose_row_holds_an_unknown_word_does_not_come_back(family: str) -> None:
    damage(family, "UPDATE agents SET status = 'asleep' WHERE uuid = 'g'")
    with closing(open_store(family)) as store:
        [lost] = survey_one(store, NOW, range(64), "g", resting=False).unrestorable
    assert (lost.uuid, "'asleep'" in lost.reason) == ("g", True)


def test_a_table_whose_name_is_no_text_is_refused(family: str) -> None:
    file = Path(family.removeprefix("sqlite:///"))
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.execute("PRAGMA journal_mode = DELETE")
    file.write_bytes(file.read_bytes().replace(b"tablerestarts", b"table\xffestarts"))
    with pytest.raises(StoreError):
        open_store(family)


def test_agent_0_is_not_buried_when_its_row_is_damaged(family: str) -> None:
    damage(family, "UPDATE agents SET parent_uuid = 'nobody' WHERE uuid = 'root'")
    with closing(open_store(family)) as store, pytest.raises(RootProtected):
        write_alone(store, WriteDeath("root", NOW, "for the test", 1))


def test_errors_about_two_agents_name_both(database: str) -> None:
    with ActorSystem.open(database, OfflineProvider()) as system:
        lead = system.root.fork(name="lead")
        kid, other = lead.fork(name="kid"), system.root.fork(name="other")
        for act, message in (
            (lambda: lead.merge(lead), "Agent lead cannot merge itself: an agent merges those"),
            (lambda: kid.merge(lead), "Agent lead is not below kid: an agent merges those"),
            (lambda: other.merge(kid), "Agent kid is not below other: an agent merges those"),
            (lambda: lead.adopt(lead), "Agent lead cannot adopt itself: no agent is below itself"),
            (lambda: kid.adopt(lead), "Agent lead is above agent kid: no agent is below itself"),
        ):
            with pytest.raises((NotBelow, BadInput), match=message):
                act()
        kid.set_budget({"tokens": 10})
        with pytest.raises(BadInput, match="Agent kid descends from agent lead and has a budget of its own"):
            lead.set_budget({"tokens": 10})


def test_a_label_that_no_database_holds_is_named_once(database: str) -> None:
    with ActorSystem.open(database, OfflineProvider()) as system:
        for labels, message in (
            ({"a": "x\0"}, "The label 'a' holds a NUL character at 1"),
            ({"a": "\ud800"}, "The label 'a' holds half of a character"),
            ({"a\0": "x"}, "The key of a label holds a NUL character at 1"),
        ):
            with pytest.raises(BadInput, match=message):
                system.root.fork(labels=labels)
