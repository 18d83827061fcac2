"""The application: what a person sees, and what the keys do."""

import re
from pathlib import Path
from typing import Any

import pytest

from ikigai_actors import ActorSystem, AgentRef, OfflineProvider, Reply, ScriptedProvider, ToolCall, tool
from ikigai_actors.deaths import Bury
from tests.gate import Gate, Hanging
from tests.stage import Stage, on_stage


def short(agent: AgentRef) -> str:
    return agent.uuid[:6]


def open_memory(provider: Any = None, **options: Any) -> ActorSystem:
    return ActorSystem.open("sqlite:///:memory:", provider or OfflineProvider(), **options)


def test_a_prompt_is_answered_and_both_stand_in_the_transcript() -> None:
    async def play(stage: Stage) -> None:
        await stage.say("Our shop sells tea.")
        await stage.expect(r"› Our shop sells tea\.")
        await stage.expect("You said “Our shop sells tea.”")
        await stage.expect(r"\[\w[\w-]+\].*idle")

    with open_memory() as system:
        on_stage(system, play)
        assert [message.kind for message in system.root.history()] == ["user", "assistant"]


def test_a_fork_goes_to_the_child_which_shows_what_it_inherited() -> None:
    async def play(stage: Stage) -> None:
        await stage.say("first")
        await stage.expect("You said “first”")
        await stage.say("/fork --name buyer")
        await stage.expect(r"\[buyer\]")
        await stage.expect(rf"inherited: 2 messages from {short(stage.system.root)}")
        assert "› first" in stage.text
        assert f"↑{short(stage.system.root)}" in stage.text
        await stage.press("ctrl+up")
        await stage.expect(rf"\[{short(stage.system.root)}\].*↓1")
        await stage.expect(f"forked {short(stage.system.agent('buyer'))}")

    with open_memory() as system:
        on_stage(system, play)


@pytest.mark.parametrize(("follow", "option"), [(False, ""), (True, " --no-follow")])
def test_without_following_a_fork_stays_with_the_parent(follow: bool, option: str) -> None:
    async def play(stage: Stage) -> None:
        await stage.say(f"/fork --name buyer{option}")
        await stage.expect("↓1")
        assert stage.current == stage.system.root.uuid

    with open_memory() as system:
        on_stage(system, play, follow=follow)


def test_a_fork_by_the_model_never_moves_the_screen() -> None:
    async def play(stage: Stage) -> None:
        await stage.say('@fork {"name": "kid", "prompt": "go"}')
        await stage.expect("↓1")
        await stage.expect("fork gave")
        assert stage.current == stage.system.root.uuid

    with open_memory() as system:
        on_stage(system, play)


def test_the_arrows_with_ctrl_or_alt_go_around_the_family() -> None:
    async def play(stage: Stage) -> None:
        for key, name in [
            ("ctrl+down", "third"), ("ctrl+right", "first"), ("alt+right", "second"), ("ctrl+left", "first"),
            ("alt+left", "third"), ("ctrl+up", short(root)), ("alt+down", "third"), ("alt+up", short(root)),
        ]:  # fmt: skip
            await stage.press(key)
            await stage.expect(rf"─ .*\[{name}\]")
        assert "←" in stage.text
        await stage.press("ctrl+up")
        await stage.expect("This is agent 0")
        await stage.press("ctrl+left")
        await stage.expect("no living sibling")

    with open_memory() as system:
        root = system.root
        for name in ("first", "second", "third"):
            root.fork(name=name)
        on_stage(system, play)


def test_text_cursor_and_scroll_position_are_kept_for_each_agent() -> None:
    async def play(stage: Stage) -> None:
        await stage.expect("line 59")
        await stage.type("half a thou")
        await stage.press("left", "pageup", "pageup")
        transcript = stage.application.main.page.transcript
        await stage.until(lambda: not transcript.following)
        place = transcript.scroll_offset
        await stage.press("ctrl+down")
        await stage.expect(r"\[kid\]")
        await stage.type("another")
        await stage.press("ctrl+up")
        await stage.expect(rf"\[{short(stage.system.root)}\]")
        prompt = stage.application.main.page.prompt
        assert prompt.text == "half a thou"
        assert prompt.cursor_location == (0, len("half a tho"))
        assert stage.application.main.page.transcript.scroll_offset == place
        await stage.press("ctrl+down")
        await stage.expect("another")

    script = ScriptedProvider(["\n".join(f"- line {number}" for number in range(60))])
    with open_memory(script) as system:
        system.root.prompt("many lines").get(timeout=20)
        system.root.fork(name="kid")
        system.touch(system.root)
        on_stage(system, play)


def test_escape_interrupts_the_turn() -> None:
    async def play(stage: Stage) -> None:
        await stage.say("go on for ever")
        await stage.expect("So it begins")
        await stage.expect("waiting for the model")
        await stage.press("escape")
        await stage.expect(r"\[interrupted\]")
        await stage.expect("So it begins")
        await stage.expect("─ idle")

    with open_memory(Hanging("So it begins")) as system:
        on_stage(system, play)


def test_a_prompt_to_a_busy_agent_waits_in_sight() -> None:
    gate = Gate()

    async def play(stage: Stage) -> None:
        await stage.say("one")
        await stage.expect("› one")
        await stage.say("two")
        await stage.expect("… two")
        await stage.say("/mark later")
        await stage.expect("the mark waits for the end of the turn")
        gate.open()
        await stage.expect("── mark 'later'")
        await stage.expect("› two")
        await stage.expect_gone("… two")
        await stage.until(lambda: stage.text.count("done") == 2)

    with open_memory(gate.provider) as system:
        on_stage(system, play)


def test_a_switch_in_the_middle_of_an_answer_loses_no_piece() -> None:
    text = "So it began, and it went on"

    async def play(stage: Stage) -> None:
        await stage.press("ctrl+down")
        await stage.expect(r"\[kid\]")
        await stage.expect(text)
        await stage.press("ctrl+up")
        await stage.expect(rf"\[{short(stage.system.root)}\]")
        await stage.press("ctrl+down")
        await stage.expect(text)
        assert stage.text.count(text) == 1

    hanging = Hanging(text)
    with open_memory(hanging) as system:
        kid = system.root.fork(name="kid")
        system.touch(system.root)

        async def begin(stage: Stage) -> None:
            kid.prompt("go")
            hanging.wait_until_asked()
            await play(stage)

        on_stage(system, begin)


def test_the_death_of_the_current_agent_goes_to_the_nearest_living_ancestor() -> None:
    async def play(stage: Stage) -> None:
        await stage.expect(r"─ .*\[kid\]")
        bury(stage.system, "parent")
        bury(stage.system, "kid")
        await stage.expect(rf"\[{short(stage.system.root)}\]")
        await stage.expect(r"kid \([\w-]+.*\) is dead \(of old age\)")
        await stage.say(f"/switch {kid.uuid}")
        await stage.expect(r"─ .*\[kid\].* dead")  # by intent: there one stays

    with open_memory() as system:
        kid = system.root.fork(name="parent").fork(name="kid")
        system.touch(kid)
        on_stage(system, play)


def bury(system: ActorSystem, name: str) -> None:
    """End an agent as the registry sees it, whatever the cause."""
    agent = system.agent(name)
    unit = Bury(agent.uuid, system._runtime.host.id, "of old age", 1)
    system._runtime.journal.perform(unit)


@tool(policy="ask")
def erase(path: str) -> str:
    """Erase something."""
    return f"{path} is gone"


CALL = Reply(tool_calls=(ToolCall("erase", {"path": "a.txt"}),), stop_reason="tool_use")


@pytest.mark.parametrize(
    ("key", "result"), [("y", "a.txt is gone"), ("n", "denied"), ("a", "a.txt is gone")], ids=["yes", "no", "always"]
)
def test_a_question_is_answered_by_a_key(key: str, result: str) -> None:
    async def play(stage: Stage) -> None:
        await stage.say("erase it")
        await stage.expect(r"\[1\] erase .*a\.txt.*y run  n deny")
        await stage.expect("1 to approve")
        await stage.type(key)  # to the prompt: no question is answered by chance
        await stage.press("backspace", "f2", key)
        await stage.expect(f"└ .*{result}")
        await stage.expect_gone("y run")
        await stage.expect("well")
        await stage.type("x")
        assert stage.application.main.page.prompt.text == "x"

    with open_memory(ScriptedProvider([CALL, "well"]), tools=[erase], approvals="ask") as system:
        on_stage(system, play)


def test_a_question_of_another_agent_is_shown_with_its_name_and_answered_by_command() -> None:
    async def play(stage: Stage) -> None:
        await stage.expect(r"\[1\] kid: erase")
        await stage.say("/deny 1 not today")
        await stage.expect(r"1: kid \([\w-]+.*\) does not run erase")
        await stage.expect_gone("y run")

    with open_memory(ScriptedProvider([CALL, "well"]), tools=[erase], approvals="ask") as system:
        system.root.fork("erase it", name="kid")
        system.touch(system.root)
        on_stage(system, play)


def test_calls_are_folded_with_their_results_and_unfold() -> None:
    async def play(stage: Stage) -> None:
        await stage.say('@agents\n@no_such_tool {"a": 1}')
        await stage.expect("▸ agents")
        await stage.expect(r"▸ no_such_tool .*\n +└ ")
        await stage.press("f8")
        await stage.expect("▾ agents")
        await stage.press("f8")
        await stage.expect("▸ agents")

    with open_memory() as system:
        on_stage(system, play)


def test_clear_mark_and_rewind_are_rules_and_errors_are_marked() -> None:
    async def play(stage: Stage) -> None:
        await stage.say("/mark here")
        await stage.expect("── mark 'here' ─")
        await stage.say("/rewind here")
        await stage.expect("── rewound to mark 'here' ─")
        await stage.say("/clear")
        await stage.expect("── cleared: it begins anew ─")
        await stage.say("/rewind nowhere")
        await stage.expect("✗ the rewind: ")
        await stage.say("/no-such-thing")
        await stage.expect("✗ There is no command '/no-such-thing'")
        await stage.say("/model")
        await stage.expect("model: not set")

    with open_memory() as system:
        on_stage(system, play)


def test_tab_completes_commands_agents_marks_and_documents() -> None:
    async def play(stage: Stage) -> None:
        prompt = stage.application.main.page.prompt
        for typed, whole in [
            ("/sw", "/switch "), ("/switch buy", "/switch buyer"), ("/rewind befo", "/rewind before"),
            ("/doc show pl", "/doc show plan/mast.md"), ("/do", "/doc "),
        ]:  # fmt: skip
            await stage.type(typed)
            await stage.press("tab")
            await stage.until(lambda whole=whole: prompt.text == whole, whole)  # type: ignore[misc]
            prompt.clear()
        await stage.type("/re")
        await stage.press("tab")
        await stage.expect("/read-mail  /resume  /rewind")

    with open_memory() as system:
        system.root.fork(name="buyer")
        system.root.mark("before")
        system.documents.write("plan/mast.md", "# Mast")
        system.touch(system.root)
        on_stage(system, play)


def test_several_lines_are_one_prompt_and_what_was_submitted_can_be_recalled(tmp_path: Path) -> None:
    async def play(stage: Stage) -> None:
        prompt = stage.application.main.page.prompt
        await stage.say("one\ntwo")
        await stage.expect("You said “one two”")
        await stage.say("three")
        await stage.expect("You said “three”")
        await stage.type("unsent")
        await stage.press("up")
        assert prompt.text == "three"
        await stage.press("up", "up")
        assert prompt.text == "one\ntwo"
        prompt.clear()
        await stage.press("ctrl+r")
        await stage.type("TW")
        await stage.expect("one two")
        await stage.press("enter")
        await stage.until(lambda: prompt.text == "one\ntwo")

    with open_memory() as system:
        on_stage(system, play, history=tmp_path / "history")
        assert system.root.history()[0].content == "one\ntwo"
    assert (tmp_path / "history").read_text() == "one\u2028two\nthree\n"


def test_a_large_paste_is_one_token_and_is_sent_whole() -> None:
    pasted = "word " * 200_000

    async def play(stage: Stage) -> None:
        from textual.events import Paste

        prompt = stage.application.main.page.prompt
        await stage.type("look: ")
        prompt.post_message(Paste(pasted))
        await stage.expect(r"look: \[pasted 1\.0 MB\]")
        await stage.press("enter")
        await stage.expect("characters in all")

    with open_memory(ScriptedProvider(["seen"])) as system:
        on_stage(system, play)
        assert system.root.history()[0].content == f"look: {pasted}"


def test_ctrl_c_twice_leaves_and_ctrl_d_only_from_an_empty_prompt() -> None:
    async def twice(stage: Stage) -> None:
        await stage.type("something")
        await stage.press("ctrl+c")
        await stage.expect("Ctrl-C again leaves")
        assert stage.application.main.page.prompt.text == ""
        await stage.press("ctrl+c")

    async def once(stage: Stage) -> None:
        await stage.type("ab")
        await stage.press("left", "ctrl+d")
        assert stage.application.main.page.prompt.text == "a"
        await stage.press("backspace", "ctrl+d")

    async def by_command(stage: Stage) -> None:
        await stage.say("/exit")
        await stage.until(lambda: not stage.application.is_running)

    with open_memory() as system:
        assert on_stage(system, twice).return_value == 130
        assert on_stage(system, once).return_value == 0
        assert on_stage(system, by_command).return_value == 0


def test_a_closed_system_ends_the_application_with_its_error() -> None:
    async def play(stage: Stage) -> None:
        stage.system.close()
        await stage.until(lambda: not stage.application.is_running)

    with open_memory() as system:
        application = on_stage(system, play)
    assert "closed" in str(application.failure)


def test_control_characters_of_a_model_do_no_harm() -> None:
    async def play(stage: Stage) -> None:
        await stage.say("go")
        await stage.expect(re.escape("red\\x1b[31m"))

    with open_memory(ScriptedProvider(["red\x1b[31m"])) as system:
        on_stage(system, play)
