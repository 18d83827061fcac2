"""The talk with one agent: what is said, and how it looks."""

import asyncio
from pathlib import Path

import pytest
from textual.widgets import TextArea

from ikigai_actors import ActorSystem, OfflineProvider, Reply, ScriptedProvider, ToolCall, Usage, Workspace, tool
from ikigai_actors.reach.conversation import say
from ikigai_actors.records.mail.words import UNREAD_WORDS, KeepWord
from ikigai_actors.shell.app.widgets.approval_box import QUIET, ApprovalBox
from supervisors.signals import Signal
from tests.kit.app_pilot import Stage, on_stage, open_memory
from tests.kit.blocking_provider import DEADLINE, Gate, Hanging
from tests.kit.dialogue import Dialogue


def test_escape_interrupts_the_turn() -> None:
    async def play(stage: Stage) -> None:
        await stage.say("go on for ever")
        await stage.expect("So it begins")
        await stage.expect("thinking|answering")
        await stage.press("escape")
        await stage.expect(r"\[interrupted\]")
        await stage.expect("So it begins")
        await stage.expect_gone("Esc interrupts")

    with open_memory(Hanging("So it begins")) as system:
        on_stage(system, play)


@pytest.mark.thorough("a second play of the talk")
def test_the_counter_moves_while_an_answer_arrives_and_has_it_once_at_the_end() -> None:
    model = Dialogue()

    async def play(stage: Stage) -> None:
        await stage.say("go on")
        asked = await asyncio.to_thread(model.asked)
        asked.say("so it goes, " * 20)
        await stage.expect(r"0 in · ~60 out")
        asked.answer(Reply("so it goes, " * 20, usage=Usage(7, 61)))
        await stage.expect(r"7 in · 61 out")
        assert "~" not in stage.text

    with open_memory(model) as system:
        on_stage(system, play)


@pytest.mark.thorough("another play of the talk; answers, words and waiting prompts are in every run")
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
        await stage.expect("┄ mark 'later'")
        await stage.expect("› two")
        await stage.expect_gone("… two")
        await stage.until(lambda: stage.text.count("done") == 2)
        await stage.say("/rewind nowhere")
        await stage.expect("✗ the rewind: ")

    with open_memory(gate.provider) as system:
        on_stage(system, play)


@pytest.mark.thorough("another play of the talk; answers, words and waiting prompts are in every run")
def test_a_command_that_waits_for_a_call_to_be_approved_is_told_and_up_takes_it_back() -> None:
    @tool(policy="ask")
    def risk() -> str:
        return "done it"

    async def play(stage: Stage) -> None:
        await stage.say("go")
        await stage.expect("asks you")
        await stage.say("/undo")
        await stage.expect("the undo waits for the end of the turn · Up takes it back")
        await stage.expect("1 waiting · Up takes back")
        stage.watch.seconds += QUIET
        await stage.until(lambda: isinstance(stage.application.focused, ApprovalBox))
        await stage.press("up")
        await stage.expect("› /undo")
        await stage.expect_gone("1 waiting")
        await stage.press("ctrl+u")
        await stage.say("/approve")
        await stage.expect("all is well")
        assert "✗" not in stage.transcript

    model = ScriptedProvider([Reply(tool_calls=(ToolCall("risk", {}),), stop_reason="tool_use"), "all is well"])
    with open_memory(model, tools=[risk], approvals="ask") as system:
        on_stage(system, play)
        assert [message.kind for message in system.root.history()][-1] == "assistant"


@pytest.mark.thorough("another play of the talk; answers, words and waiting prompts are in every run")
def test_calls_are_folded_with_their_results_and_unfold() -> None:
    async def play(stage: Stage) -> None:
        await stage.say('@agents\n@no_such_tool {"a": 1}')
        await stage.expect("▸ agents")
        await stage.expect(r"× no_such_tool .*\n +└ ")
        await stage.press("f8")
        await stage.expect("▾ agents")
        await stage.press("f8")
        await stage.expect("▸ agents")

    with open_memory() as system:
        on_stage(system, play)


def test_a_closed_system_ends_the_application_with_its_error() -> None:
    async def play(stage: Stage) -> None:
        stage.system.close()
        await stage.until(lambda: not stage.application.is_running)

    with open_memory() as system:
        application = on_stage(system, play)
    assert "closed" in str(application.failure)


@pytest.mark.thorough("a second play of the talk")
def test_enter_during_an_answer_steers_alt_enter_queues_and_escape_takes_back_what_is_unread() -> None:
    model = Dialogue()

    async def play(stage: Stage) -> None:
        await stage.say("go")
        await stage.expect("› go")
        asked = await asyncio.to_thread(model.asked)
        await stage.type("queued")
        await stage.press("alt+enter")
        await stage.say("by train")
        await stage.expect("… by train")
        await stage.say("never mind")
        await stage.until(lambda: waiting(system) == 2, "both words")
        asked.answer("by plane")
        asked = await asyncio.to_thread(model.asked)
        assert asked.said == ["by train", "never mind"]
        await stage.say("too late")
        await stage.until(lambda: waiting(system) == 1, "the word")
        await stage.press("escape")
        await stage.expect(r"\[interrupted\]")
        await stage.expect_gone("… too late")
        await stage.expect("too late")
        asked = await asyncio.to_thread(model.asked)
        assert asked.said[-1] == "queued"
        asked.answer("done")
        await stage.expect_gone("Esc interrupts")

    with open_memory(model) as system:
        on_stage(system, play)
        kinds = [message.kind for message in system.root.history()]
        assert kinds == ["user", "assistant", "steer", "steer", "interrupted", "user", "assistant"]


@pytest.mark.thorough("a mailbox is filled")
def test_a_word_for_an_agent_that_takes_no_more_comes_back_into_the_input() -> None:
    model = Dialogue()

    async def play(stage: Stage) -> None:
        await stage.say("go")
        await stage.expect("› go")
        asked = await asyncio.to_thread(model.asked)
        now, root = stage.system._clock.now_ms(), stage.system.root
        words = [KeepWord(root.uuid, "on", now, at_once=False) for _ in range(UNREAD_WORDS)]
        for kept in [stage.system._writer.ask(word) for word in words]:
            await kept
        await stage.say("one too many")
        await stage.expect("1,000 words")
        await stage.until(lambda: stage.application.query_one(TextArea).text == "one too many", "the text")
        root.signal(Signal.INT)
        asked.answer("done")

    with open_memory(model) as system:
        on_stage(system, play)


def waiting(system: ActorSystem) -> int:
    """How many words wait for agent 0."""
    return len(system._actor(system.root.uuid).backlog.words)


@pytest.mark.thorough("a second play of the talk")
def test_what_waits_is_counted_and_up_takes_it_back_into_the_prompt_the_latest_first() -> None:
    gate = Gate()

    async def play(stage: Stage) -> None:
        prompt = stage.application.main.page.prompt
        await stage.say("one")
        await stage.expect("› one")
        await stage.expect("Alt\\+Enter queues")
        await stage.type("two")
        await stage.press("alt+enter")
        await stage.say("/queue three")
        await stage.expect("2 waiting · Up takes back")
        await stage.expect("… three")
        await stage.press("up")
        await stage.until(lambda: prompt.text == "three", "the text in the prompt")
        await stage.expect("1 waiting")
        await stage.expect_gone("… three")
        await stage.type(", and four")
        await stage.press("alt+enter")
        await stage.say("/queue")
        await stage.expect(r"\d  three, and four")
        gate.open()
        await stage.until(lambda: stage.text.count("done") == 3)
        await stage.expect_gone("waiting")

    with open_memory(gate.provider) as system:
        on_stage(system, play)
        asked = [message.content for message in system.root.history() if message.kind == "user"]
        assert asked == ["one", "two", "three, and four"]


@pytest.mark.thorough("a second play of the talk")
def test_prompts_that_waited_before_the_program_began_are_shown_and_taken_back(tmp_path: Path) -> None:
    async def play(stage: Stage) -> None:
        await stage.expect("… later")
        await stage.press("up")
        await stage.until(lambda: stage.application.main.page.prompt.text == "later", "the text in the prompt")
        await stage.expect_gone("… later")

    database = str(tmp_path / "team.db")
    with ActorSystem.open(database, OfflineProvider()) as system:
        system.root.signal(Signal.STOP)
        say(system.root, "later").stored.get()
    with ActorSystem.open(database, OfflineProvider()) as system:
        on_stage(system, play)
        system.root.signal(Signal.CONT)
        assert system.root.prompt("now").get(timeout=DEADLINE).text.startswith("You said “now”. That is all")


@pytest.mark.thorough("another play of the talk; answers, words and waiting prompts are in every run")
def test_an_answer_or_its_code_is_copied_to_the_clipboard() -> None:
    answer = "Like this:\n\n```python\none\n```\n\nor\n\n~~~\ntwo\n~~~"

    async def play(stage: Stage) -> None:
        await stage.say("/copy")
        await stage.expect("There is no answer to copy yet")
        await stage.say("how?")
        await stage.expect("two")
        await stage.until(lambda: not stage.application.main.page.transcript.answering, "the whole answer")
        await stage.press("ctrl+y")
        await stage.until(lambda: stage.application.clipboard == answer, "the answer")
        await stage.say("/copy --code")
        await stage.until(lambda: stage.application.clipboard == "two\n", "the code")
        await stage.say("/copy 2")
        await stage.expect("There is one answer to copy")

    with open_memory(ScriptedProvider([answer])) as system:
        on_stage(system, play)


@pytest.mark.thorough("a second play of the talk")
def test_the_first_screen_says_what_the_program_is_until_something_is_said() -> None:
    async def play(stage: Stage) -> None:
        await stage.expect(r"╭─ ikigai ─[\s\S]*Our shop sells tea\. +say something")
        await stage.say("Our shop sells tea.")
        await stage.expect("You said")
        await stage.expect_gone("╭─ ikigai ─")

    with open_memory() as system:
        on_stage(system, play)


@pytest.mark.thorough("another play of the talk; answers, words and waiting prompts are in every run")
def test_a_text_is_found_in_the_talk_by_ctrl_f_and_by_a_command() -> None:
    async def play(stage: Stage) -> None:
        await stage.say("a mast of pine")
        await stage.expect("You said")
        await stage.press("ctrl+f")
        await stage.type("PINE")
        await stage.expect("2 found · ↑↓ Esc")
        await stage.press("enter")
        await stage.expect("2 of 2 · n earlier")
        await stage.press("n")
        await stage.expect("1 of 2")
        await stage.press("N")
        await stage.expect("2 of 2")
        await stage.press("escape")
        await stage.expect_gone("of 2")
        await stage.say("/find mast")
        await stage.expect("find mast .*2 of 2")
        await stage.type("hello")  # no keys of a search
        assert stage.application.main.page.prompt.text == "hello"

    with open_memory() as system:
        on_stage(system, play)


@pytest.mark.thorough("another play of the talk; answers, words and waiting prompts are in every run")
def test_a_result_is_read_whole_in_the_pager_and_searched_there() -> None:
    result = "\n".join(f"line {number}" for number in range(1, 900)) + "x" * 9_000 + "the end"

    @tool(policy="allow")
    def look() -> str:
        """Look."""
        return result

    async def play(stage: Stage) -> None:
        await stage.say("look")
        await stage.expect("898 more lines")
        await stage.press("shift+tab")
        await stage.expect("Enter opens")
        await stage.press("enter")
        await stage.expect(r"look\n\n +line 1\n +line 2\n")
        await stage.press("slash")
        await stage.type("line 777")
        await stage.press("enter")
        await stage.expect("1 of 1")
        await stage.expect("line 777")
        await stage.press("escape", "end")
        await stage.expect("xxthe end")
        await stage.press("escape")
        await stage.expect("╭─")

    calls = Reply(tool_calls=(ToolCall("look", {}),), stop_reason="tool_use")
    with open_memory(ScriptedProvider([calls, "well"]), tools=[look]) as system:
        on_stage(system, play)


@pytest.mark.thorough("another play of the talk; answers, words and waiting prompts are in every run")
def test_the_last_lines_of_a_command_are_shown_while_it_runs(tmp_path: Path) -> None:
    command = "echo one; echo two; until [ -e go ]; do sleep 0.05; done; echo three"
    calls = Reply(tool_calls=(ToolCall("bash", {"command": command}),), stop_reason="tool_use")

    async def play(stage: Stage) -> None:
        await stage.say("make it")
        await stage.expect(r"▶ bash +echo one[^\n]*\n +│ one\n +│ two")
        (tmp_path / "go").touch()
        await stage.expect(r"▸ bash[^\n]*\n +└ .* · \d more lines")
        await stage.expect_gone("│ two")

    tools = [Workspace(tmp_path, fence="none")]
    with open_memory(ScriptedProvider([calls, "well"]), tools=tools, approvals="allow") as system:
        on_stage(system, play)


@pytest.mark.thorough("a second play of the talk")
def test_a_command_of_the_person_runs_in_the_workspace_and_goes_along_with_the_next_prompt(tmp_path: Path) -> None:
    shop = tmp_path / "shop"
    shop.mkdir()
    (shop / "tea.png").touch()

    async def play(stage: Stage) -> None:
        await stage.say("!echo /tea.png @nowhere.png; ls")
        await stage.expect(r"! echo [\s\S]*@nowhere.png\n +tea.png")
        await stage.expect(r"1 output with your next prompt · Ctrl\+U drops")
        await stage.say("!! echo mine")
        await stage.expect("\n +mine\n")
        await stage.say("!false")
        await stage.expect(r"\[exit code 1\][\s\S]*2 outputs with")
        await stage.say("/mark here")
        await stage.say("Why?")
        await stage.expect_gone("with your next prompt")
        await stage.say("!echo unwanted")
        await stage.expect("1 output with")
        await stage.press("ctrl+u")
        await stage.expect_gone("1 output with")
        await stage.say("!touch begun; sleep 60")
        await stage.until((shop / "begun").exists, "the command")
        await stage.say("!echo")
        await stage.expect("before still runs")
        await stage.press("escape")
        await stage.expect("ended by SIGTERM")
        await stage.say("And?")
        await stage.until(lambda: len(asked(system)) == 2, "the second prompt")

    def asked(system: ActorSystem) -> list[str]:
        return [message.content for message in system.root.history() if message.kind == "user"]

    with open_memory(tools=[Workspace(shop, fence="none")]) as system:
        on_stage(system, play)
        ran = f"I ran this in {shop}:\n\n$ "
        first, second = asked(system)
        output = "/tea.png @nowhere.png\ntea.png"
        assert first == f"Why?\n\n{ran}echo /tea.png @nowhere.png; ls\n{output}\n\n{ran}false\n[exit code 1]"
        assert second == f"And?\n\n{ran}touch begun; sleep 60\n[ended by SIGTERM]"
        assert not [message for message in system.root.history() if message.data.get("attachments")]
