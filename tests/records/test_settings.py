"""Settings: what each may be, how a person writes them, whence they are, and what a process gives to agents without."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from ikigai_actors import ActorSystem, BadInput, OfflineProvider, Reply, Request, ScriptedProvider
from ikigai_actors.records.agents.words import words_of
from ikigai_actors.records.messages import settings
from ikigai_actors.records.messages.settings import SETTINGS, parse_setting
from ikigai_actors.shell.slash import commands
from tests.kit.blocking_provider import DEADLINE
from tests.kit.program import run
from tests.kit.sessions import OpenSession, Session

WRONG: list[tuple[str, Any]] = [
    ("max_tokens", 0), ("max_tokens", -1), ("max_tokens", True), ("max_tokens", 1.5), ("max_tokens", 10**30),
    ("temperature", float("nan")), ("temperature", -0.1), ("temperature", 2.1), ("temperature", "0.5"),
    ("top_p", 1.1), ("top_p", float("inf")), ("stop_sequences", "END"), ("stop_sequences", [" "]),
    ("options", "top_k"), ("options", ["top_k"]),
    ("stop_sequences", [1]), ("thinking", "much"), ("thinking", {}), ("thinking", {"type": 1}),
    ("thinking", {"type": "enabled", "budget_tokens": "9"}),
    ("thinking", {"type": "enabled", "budget_tokens": float("nan")}), ("thinking", {"type": "x", "more": float("nan")}),
    ("stuck_after", -1), ("stuck_after", float("nan")),
    ("stream_retries", -1), ("max_steps", 0), ("compact", "perhaps"), ("notify", 1), ("no_such", 1),
]  # fmt: skip


def test_a_wrong_value_is_refused_and_nothing_is_stored() -> None:
    with ActorSystem.open(":memory:", OfflineProvider()) as system:
        for name, value in WRONG:
            with pytest.raises(BadInput, match=f"setting '?{name}"):
                system.root.configure(**{name: value})
            assert system.root.history() == [], (name, value)


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("max_tokens", "500", 500), ("temperature", "0.5", 0.5), ("temperature", "1", 1), ("top_p", " 0.9 ", 0.9),
        ("thinking", '{"type": "adaptive"}', {"type": "adaptive"}), ("notify", "on", True), ("notify", "false", False),
        ("tools", "read, grep", ["read", "grep"]), ("tools", '["read"]', ["read"]), ("stop_sequences", "END", ["END"]),
        ("options", '{"top_k": 4}', {"top_k": 4}), ("system", "5", "5"), ("model", "offline", "offline"),
        ("max_tokens", "", None), ("thinking", "null", None), ("system", "", None),
        ("stop_sequences", '"END"', ["END"]),
    ],
)  # fmt: skip
def test_what_a_person_writes_becomes_a_value(name: str, text: str, value: Any) -> None:
    assert parse_setting(name, text) == value


@pytest.mark.parametrize(
    ("name", "text"),
    [("max_tokens", "many"), ("max_tokens", "NaN"), ("thinking", "much"), ("temperature", "warm"), ("x", "1")],
)  # fmt: skip
def test_what_is_none_is_refused(name: str, text: str) -> None:
    with pytest.raises(BadInput, match=f"setting '?{name}"):
        parse_setting(name, text)


@pytest.mark.parametrize("page", [settings.__doc__, commands.commands["/set"].help], ids=["settings.py", "/set"])
def test_the_pages_about_settings_name_each(page: str) -> None:
    assert [name for name in SETTINGS if not re.search(rf"\b{name}\b", page)] == []


def test_settings_are_set_shown_with_their_source_and_removed(session: Session) -> None:
    printed = session(
        "/settings", "/set max_tokens 500", '/set thinking {"type": "adaptive"}', "/set temperature 0.5",
        "/set max_tokens", "/fork --name kid",
        "/set stop_sequences END,STOP", '/set temperature ""', "/settings", "/set max_tokens -1",
        "/set colour red", "/set tools", "/set",
    )  # fmt: skip
    root = words_of(session.system.root.uuid)
    assert printed[0].startswith("No setting is in force")
    assert printed[1:5] == [
        "max_tokens set to 500",
        'thinking set to {"type": "adaptive"}',
        "temperature set to 0.5",
        "max_tokens: 500",
    ]
    assert printed[6:11] == [
        'stop_sequences set to ["END", "STOP"]',
        "temperature removed",
        f"max_tokens: 500   (inherited from {root})",
        'stop_sequences: ["END", "STOP"]   (its own)',
        f'thinking: {{"type": "adaptive"}}   (inherited from {root})',
    ]
    assert printed[11] == "error: Expected setting max_tokens to be a whole number of tokens, 1 or more, got -1."
    assert printed[12].startswith(f"error: There is no setting 'colour'; expected one of {', '.join(SETTINGS)}")
    assert printed[13] == "tools: not set"
    assert "Missing argument 'NAME'" in printed[14]
    assert session.system.agent("kid").context().settings == {
        "max_tokens": 500, "thinking": {"type": "adaptive"}, "stop_sequences": ["END", "STOP"],
    }  # fmt: skip


def test_a_clear_carries_settings_over_as_its_own(session: Session) -> None:
    printed = session(
        "/set max_tokens 500", "/fork --name kid", "/clear", "/settings", "/set max_tokens null", "/settings"
    )
    assert printed[3:] == ["max_tokens: 500   (its own)", "max_tokens removed", printed[-1]]
    assert printed[-1].startswith("No setting is in force")


def test_what_a_process_gives_reaches_models_and_no_log(database: str) -> None:
    asked: list[Request] = []

    def note(request: Request) -> Reply:
        asked.append(request)
        return Reply("ok")

    settings = {"max_tokens": 300, "temperature": 0.2, "system": "Be brief.", "top_p": None}
    with ActorSystem.open(database, ScriptedProvider(note), settings=settings) as system:
        system.root.prompt("one").get(timeout=DEADLINE)
        system.root.configure(max_tokens=400)
        system.root.prompt("two").get(timeout=DEADLINE)
        assert [dict(request.settings) for request in asked] == [
            {"max_tokens": 300, "temperature": 0.2}, {"max_tokens": 400, "temperature": 0.2},
        ]  # fmt: skip
        assert [request.system for request in asked] == ["Be brief."] * 2
        assert system.root.context().settings == {"max_tokens": 400}


@pytest.mark.parametrize("settings", [{"max_tokens": 0}, {"colour": 1}, {"tools": ["read"]}, {"model": "offline"}])
def test_what_a_process_cannot_give_is_refused_at_open(settings: dict[str, Any]) -> None:
    with pytest.raises(BadInput):
        ActorSystem.open(":memory:", OfflineProvider(), settings=settings)


@pytest.mark.slow("takes half a second")
def test_the_program_takes_defaults_and_tells_of_them(tmp_path: Path, open_session: OpenSession) -> None:
    place = ("--database", str(tmp_path / "s.db"), "--provider", "offline")
    done = run(*place, "--set", "max_tokens=900", "--set", "temperature=0.1", lines="/settings\n")
    assert done.stdout.splitlines() == [
        "max_tokens: 900   (as ikigai was started)", "temperature: 0.1   (as ikigai was started)",
    ]  # fmt: skip
    for wrong, message in (("max_tokens=0", "1 or more"), ("max_tokens", "NAME=VALUE"), ("notify=on", "/set notify")):
        done = run(*place, "--set", wrong, lines="/settings\n")
        assert (done.stdout, done.returncode) == ("", 1)
        assert message in done.stderr


def test_exit_and_quit_leave(session: Session) -> None:
    assert session("/exit", "/agents") == session("/quit", "/agents") == []


def test_a_global_option_behind_the_command_is_shown_its_place(tmp_path: Path) -> None:
    for arguments, right in (
        (("serve", "--provider", "offline"), "ikigai --provider offline serve"),
        (("agents", "--all", "--database=x.db"), "ikigai --database=x.db agents --all"),
        (("serve", "--yes", "--port", "1"), "ikigai --yes serve --port 1"),
    ):
        done = run(*arguments)
        assert done.returncode == 2
        assert f"before the command: {right}" in " ".join(done.stderr.split())
    done = run("--database", str(tmp_path / "none.db"), "send", "kid", "--", "--provider")
    assert "There is no database" in done.stderr


def test_a_document_is_written_from_standard_input(tmp_path: Path) -> None:
    place = ("--database", str(tmp_path / "d.db"))
    run(*place, "--provider", "offline")
    assert run(*place, "doc", "write", "a.md", "-", lines="# A\n").returncode == 0
    assert run(*place, "doc", "show", "a.md").stdout == "# A\n"


def test_a_model_without_its_provider_is_told_how_it_is_written(tmp_path: Path) -> None:
    done = run("--database", str(tmp_path / "m.db"), "--model", "smollm2")
    assert "There is no provider 'smollm2'" in done.stderr
    assert "anthropic:smollm2" in done.stderr


def test_a_log_of_settings_is_json(session: Session) -> None:
    session('/set options {"top_k": 4}')
    [message] = session.system.root.history()
    assert json.loads(json.dumps(dict(message.data), allow_nan=False)) == {"options": {"top_k": 4}}
