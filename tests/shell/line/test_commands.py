"""The commands, through a real session over a real system on SQLite; the lines come from a pipe."""

import os
import re
from pathlib import Path

import pytest

from ikigai_actors import (
    ActorSystem,
    AgentRef,
    ProviderError,
    Reply,
    ScriptedProvider,
    Stream,
)
from ikigai_actors.records.agents.words import words_of
from ikigai_actors.shell.slash import commands
from ikigai_actors.verbs.copying import MOST_COPIED
from tests.kit.databases import bury
from tests.kit.sessions import OpenSession, Session, Typist

PATIENCE = 60.0


def short(agent: AgentRef) -> str:
    return words_of(agent.uuid)


@pytest.mark.slow("takes a tenth of a second")
def test_text_is_answered_and_nothing_else_is_printed(open_session: OpenSession) -> None:
    session = open_session(ScriptedProvider(["Hello.", "Good bye."]))
    assert session("hi", "", "  ", "bye") == ["Hello.", "Good bye."]
    assert session.notices == ""


def test_a_text_that_begins_with_a_slash_is_sent_when_a_blank_stands_before_it(open_session: OpenSession) -> None:
    provider = ScriptedProvider(["ok"])
    assert open_session(provider)(" /etc/hosts") == ["ok"]
    assert provider.requests[0].messages[-1]["content"][0]["text"] == " /etc/hosts"


def test_a_streamed_answer_is_printed_once(open_session: OpenSession) -> None:
    session = open_session(ScriptedProvider([Stream(("Hel", "lo", "\n", "there"))]))
    assert session("hi") == ["Hello", "there"]


def test_what_was_not_streamed_of_an_answer_is_printed_at_its_end(open_session: OpenSession) -> None:
    session = open_session(ScriptedProvider([Stream(("Hel",), then="Hello."), Stream((), then="All at once.")]))
    assert session("one", "two") == ["Hello.", "All at once."]


def test_an_answer_that_differs_from_what_was_streamed_is_printed_whole(open_session: OpenSession) -> None:
    session = open_session(ScriptedProvider([Stream(("Wrong",), then="Right.")]))
    assert session("hi") == ["Wrong", "Right."]


def test_an_empty_answer_and_one_that_was_cut_are_marked(open_session: OpenSession) -> None:
    session = open_session(ScriptedProvider([Reply(""), Reply("Half", stop_reason="max_tokens")]))
    assert session("one", "two") == ["[an empty answer]", "Half", "[the answer ends here: max_tokens]"]


def test_an_error_of_the_provider_is_marked_on_its_own_line_and_the_session_goes_on(open_session: OpenSession) -> None:
    session = open_session(ScriptedProvider([Stream(("Hel",), then=ProviderError("overloaded")), "back"]))
    assert session("one", "two") == ["Hel", "[error: overloaded]", "back"]


def test_control_characters_are_spelled_out(open_session: OpenSession) -> None:
    evil = "a\x1b[2Jb\x07\x9b5n\rroot> \u202ex\r\n\ttab"
    session = open_session(ScriptedProvider([evil]))
    printed = session("hi")
    assert printed == ["a\\x1b[2Jb\\x07\\x9b5n\\x0droot> \\u202ex", "\ttab"]
    assert session("/history")[1] == "    2  assistant    " + printed[0]


@pytest.mark.slow("takes a tenth of a second")
def test_bytes_that_are_no_text_are_an_error_of_that_line_alone(open_session: OpenSession) -> None:
    session = open_session(ScriptedProvider(["fine"]))
    assert session(b"\xff\xfe", "hi", b"NUL \0") == [
        "error: Line 1 is not UTF-8 (byte 0xff at 1); it was skipped.",
        "fine",
        "error: The prompt holds a NUL character at 4, which cannot be stored; remove it.",
    ]


@pytest.mark.parametrize("prompt", ['"two words"', "two words"])
def test_a_fork_with_a_prompt_prints_the_answer_of_the_child(session: Session, prompt: str) -> None:
    printed = session("tea", f"/fork {prompt} --name dba")
    assert printed[1] == f"dba: forked from {short(session.system.root)}; inherits 2 messages"
    assert printed[2].startswith("You said “two words”. I remember 2 prompts")


@pytest.mark.slow("takes a tenth of a second")
def test_a_fork_after_a_clear_inherits_what_is_still_there(session: Session) -> None:
    assert session("tea", "/clear", "/fork")[-1].endswith("inherits 0 messages")
    assert session("milk", "/fork")[-1].endswith("inherits 3 messages")


def test_the_tree_has_a_star_at_the_current_agent(session: Session) -> None:
    root = session.system.root
    printed = session("tea", "/fork --name dba", "/agents")
    assert printed[2:] == [
        f"  {short(root)}  idle  0 inherited + 3 own",
        f"* └─ {'dba':<{len(short(root)) - 3}}  idle  2 inherited + 1 own",
        "2 running, 0 dead",
    ]


@pytest.mark.slow("takes a tenth of a second")
def test_the_dead_are_shown_on_request(session: Session) -> None:
    gone = session.system.root.fork(name="gone")
    bury(session.system._store, gone.uuid)
    assert session("/agents")[-1] == "1 running, 1 dead"
    assert any("gone" in line and " dead " in line for line in session("/agents --all"))
    assert session(f"/switch {gone.uuid}")[1] == "it is dead (for the test): its history can be read"


def test_one_can_go_everywhere_in_the_tree(session: Session) -> None:
    for name in ("one", "two", "three"):
        session.system.root.fork(name=name)
    root = short(session.system.root)
    places = [line.split()[2].rstrip(",") for line in session(
        "/switch one", "/next", "/next", "/next", "/prev", "/parent", "/child", "/parent", f"/switch {root}"
    )]  # fmt: skip
    assert places == ["one", "two", "three", "one", "three", root, "three", root, root]


def test_what_is_not_there_is_an_error_and_one_stays(session: Session) -> None:
    *nobody, undo, rewind, tool = session(
        "/parent", "/child", "/next", "/prev", "/switch nobody", "/undo", "/rewind nowhere", "/tools nope"
    )
    assert nobody == [
        "error: This is agent 0: nobody is above it.",
        "error: This agent has no living child. /fork makes one.",
        "error: This agent has no living sibling.",
        "error: This agent has no living sibling.",
        "error: No agent is named 'nobody', and no uuid begins with it. See the list of agents.",
    ]
    assert undo.startswith("error: There is no prompt in the history of agent")
    assert rewind.startswith("error: Expected a mark 'nowhere' to rewind to")
    assert tool == "error: There is no tool 'nope'. /tools lists them."


def test_the_next_session_begins_where_the_last_one_ended(session: Session) -> None:
    session("/fork --name one", "/parent", "/fork --name two", "/prev")
    assert session("/agents")[1].startswith("* ├─")
    assert session("/parent", "/agents")[1].startswith("* ")


def test_a_turn_that_failed_goes_on_by_the_same_prompt(capsys: pytest.CaptureFixture[str]) -> None:
    provider = ScriptedProvider([ProviderError("overloaded"), "Hello."])
    with ActorSystem.open(":memory:", provider=provider) as system:
        assert Session(system, capsys)("hi", "hi") == ["[error: overloaded]", "Hello."]
    assert [len(request.messages[0]["content"]) for request in provider.requests] == [1, 1]


def test_a_reply_that_breaks_off_is_told_and_asked_for_again(capsys: pytest.CaptureFixture[str]) -> None:
    broken = Stream(("Hel",), then=ProviderError("the connection broke", broke_off=True))
    with ActorSystem.open(":memory:", provider=ScriptedProvider([broken, "Hello."])) as system:
        session = Session(system, capsys)
        assert session("hi", "/history") == [
            "Hel",
            "[the reply broke off; asking again]",
            "Hello.",
            "    1  user         hi",
            "    2  retry        [the reply broke off; asking again]",
            "    3  assistant    Hello.",
        ]


@pytest.mark.slow("takes a tenth of a second")
def test_the_context_tells_counts_tokens_settings_marks_and_ranges(session: Session) -> None:
    printed = session("tea", "/mark here", "/fork --name dba", "/model offline", "/system Be brief.", "/context")
    *before, filled, system, tools, summary, kept, results, marks, ranges = printed[-15:]
    rows = dict(line.split(maxsplit=1) for line in (*before, filled, marks, ranges))
    dba, root = session.system.agent("dba"), session.system.root
    parts = dba.context().parts
    whole = sum(parts.values())
    for line, (name, tokens) in zip((system, tools, summary, kept, results), parts.items(), strict=True):
        assert line.split() == [name, f"{tokens:,}", f"{tokens / whole:.0%}"]
    assert rows == {
        "agent": "dba",
        "uuid": dba.uuid,
        "state": "idle",
        "model": "offline",
        "system": "Be brief.",
        "messages": "3 inherited + 3 own in its context",
        "tokens": "1 input, 20 output, as last reported",
        "filled": f"about {whole:,} tokens",
        "marks": "here at 3",
        "ranges": f"{short(root)} 1 to 3, dba 4 to the end",
    }


def test_the_history_shows_the_latest_messages_and_which_are_inherited(session: Session) -> None:
    printed = session("tea", "/fork --name dba", "coffee", "/history 3")[3:]
    assert printed[0] == "(2 earlier; /history 5 shows all)"
    assert printed[1] == f"    3  fork         forked from {short(session.system.root)}"
    assert printed[2] == "    4  user         coffee"
    assert session("/history")[0] == "<   1  user         tea"
    assert session("/parent", "/clear", "/history")[-1] == "Nothing was said yet."


def test_a_prompt_that_calls_tools_shows_their_results_and_so_does_the_history(session: Session) -> None:
    printed = session('@fork {"name": "kid"}', "/history 4")
    result = "Forked: the child is kid."
    assert printed == [
        f"[fork: {result}]",
        f"fork gave: {result}",
        "(1 earlier; /history 5 shows all)",
        '    2  assistant    fork {"name": "kid"}',
        "    3  fork         forked kid",
        f"    4  tool_result  fork: {result}",
        f"    5  assistant    fork gave: {result}",
    ]


def test_settings_are_shown_set_and_removed(session: Session) -> None:
    printed = session("/model", "/model offline:slow", "/model", '/model ""', "/model", '/system "a b"  c', "/system")
    assert printed == [
        "model: not set",
        "model set to offline:slow",
        "model: offline:slow",
        "model removed",
        "model: not set",
        "system set to a b c",
        "system: a b c",
    ]


@pytest.mark.sample(3, "lines")
@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("/", "error: There is no command '/'. /help lists the commands."),
        ("/agents two words", "error: Got unexpected extra argument (words). Try /agents --help."),
        ("/switch", "error: Missing argument 'ID'. Try /switch --help."),
        ('/fork "half', "error: No closing quotation. Put text with quotes in it between quotes of the other kind."),
        ("/fork ''", "error: Expected a prompt for the child, got blank text. Leave it out to fork without one."),
        ("/fork --name 'no way'", "error: A name is 1 to 64 letters, digits or . _ + @ - and begins"),
        (
            "/switch abc",
            "error: Expected a name, two words, or a uuid or its first 4 or more characters; nobody is called 'abc'.",
        ),
    ],
)
def test_a_wrong_line_is_told_and_the_session_goes_on(session: Session, line: str, message: str) -> None:
    printed = session(line, "/agents")
    assert printed[0].startswith(message)
    assert printed[-1] == "1 running, 0 dead"


@pytest.mark.parametrize("line", ["/history 0", "/fork --nam x"])
def test_an_error_of_click_is_told_on_one_line(session: Session, line: str) -> None:
    printed = session(line, "/agents")
    assert printed[0].startswith("error: ")
    assert printed[0].endswith(f"Try {line.split()[0]} --help.")
    assert printed[-1] == "1 running, 0 dead"


def test_a_question_in_an_error_ends_with_its_own_mark(session: Session) -> None:
    assert session("/swich x") == ["error: There is no command '/swich'. Did you mean /switch?"]


def test_help_all_explains_every_command_on_a_line(session: Session) -> None:
    printed = session("/help all")
    for name in commands.commands:
        assert sum(line.startswith(f"  {name} ") for line in printed) == 1, name


def test_help_explains_the_first_commands_and_names_the_others(session: Session) -> None:
    printed = session("/help")
    names = re.findall(r"(?<=\s)/[a-z-]+(?=\s)", "\n".join([*printed[printed.index("First commands:") :], ""]))
    assert sorted({*names} - {"/help"}) == sorted(commands.commands.keys() - {"/help"})
    assert sum(bool(re.match("  /[a-z]", line)) for line in printed) == 10


@pytest.mark.slow("takes a tenth of a second")
def test_every_command_has_help_that_reads_the_same_in_both_ways(session: Session) -> None:
    for name in sorted(commands.commands):
        printed = session(f"{name} --help", f"/help {name}", f"/help {name[1:]}")
        by_option = printed[: len(printed) // 3]
        assert printed == by_option * 3
        assert by_option[0].startswith(f"Usage: {name}")
        assert len(by_option) > 4, name


def test_what_was_said_is_found(open_session: OpenSession) -> None:
    session = open_session(ScriptedProvider([f"A mast of pine, {'and more of it, ' * 9}", "No."]))
    session("Which wood?", "really?")
    assert session("/find PINE") == [
        "    2  assistant    A mast of pine, and more of it, and more of it, and mo…",
    ]
    assert session("/find -n 1 o") == ["The latest 1 message with it; --number lists more:", "    4  assistant    No."]
    assert session("/find oak") == ["Nothing that was said has “oak” in it."]
    assert session("/find") == ["error: Say what to find: /find TEXT. Try /find --help."]


def test_an_answer_that_is_too_long_for_a_clipboard_goes_to_a_file(open_session: OpenSession) -> None:
    answer = "é" * (MOST_COPIED // 2 + 1)
    session = open_session(ScriptedProvider([answer]))
    [_, line] = session("hi", "/copy")
    path = Path(line.removeprefix("Terminals copy 74,000 bytes at most. All of it is in "))
    try:
        assert path.read_text(encoding="utf-8") == answer
        assert path.stat().st_mode & 0o777 == 0o600
    finally:
        path.unlink()


def test_a_command_of_the_person_goes_along_with_the_next_prompt_and_a_script_has_none(
    open_session: OpenSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    provider = ScriptedProvider(["one", "two"])
    session = open_session(provider)
    lines = session.by(Typist("!echo tea", "!!echo mine", "!", "Which?"))
    assert lines == [
        "tea", "[goes along with your next prompt; !! keeps it to yourself]", "mine",
        "error: Say what to run: !COMMAND. A text that begins with ! needs a blank before it.", "one",
    ]  # fmt: skip
    assert session("!echo tea") == ["two"]
    asked = [request.messages[-1]["content"][-1]["text"] for request in provider.requests]
    assert asked == [f"Which?\n\nI ran this in {tmp_path}:\n\n$ echo tea\ntea", "!echo tea"]


def test_ctrl_c_ends_a_command_of_the_person(open_session: OpenSession) -> None:
    session = open_session(ScriptedProvider([]))
    assert session.by(Typist(f"!!kill -INT {os.getpid()}; sleep 60", "/exit")) == ["[ended by SIGTERM]"]


def test_a_prompt_is_written_in_an_editor(
    open_session: OpenSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    editor = tmp_path / "editor"
    editor.write_text("#!/bin/sh\necho 'Which wood?' > $1\n")
    editor.chmod(0o700)
    monkeypatch.setenv("VISUAL", str(editor))
    session = open_session(ScriptedProvider(["Pine."]))
    assert session.by(Typist("/editor")) == [f"{short(session.system.root)}> Which wood?", "Pine."]
    assert session("/editor") == ["error: There is no terminal here to give to an editor."]


def test_a_talk_is_exported_as_markdown_without_the_agents_below(open_session: OpenSession, tmp_path: Path) -> None:
    session = open_session(ScriptedProvider(["Pine.", "Yes."]))
    name, file = short(session.system.root), tmp_path / "talk.md"
    session("Which wood?", "/fork --name kid really?")
    assert session(f"/export {file} kid") == [f"kid: 5 messages to {file}"]
    text = file.read_text(encoding="utf-8")
    assert text.startswith("# kid\n\n**1 user** ")
    assert [line for line in text.split("\n") if line and not line.startswith(("**", "#"))] == [
        "> Which wood?", "Pine.", f"> forked from {name}", "> really?", "Yes.",
    ]  # fmt: skip
    assert "overwrites nothing" in session(f"/export {file}")[0]


def test_a_rule_is_set_for_another_agent_and_lines_have_no_theme(open_session: OpenSession) -> None:
    session = open_session(ScriptedProvider([]))
    session.system.root.fork(name="kid")
    assert session('/rules --of kid add deny bash "git push"') == ["kid has rule 1: deny bash git push"]
    assert session.system.root.rules() == []
    assert session("/settings theme dark") == [
        "error: Lines have the colours of the terminal. Only the whole screen has a theme.",
    ]
