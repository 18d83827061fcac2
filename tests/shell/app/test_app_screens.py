"""The screens beside the transcript: tree, processes, mail, documents, keys, find; and how they look."""

import random
import re
from pathlib import Path

import pytest
from textual.containers import VerticalScroll

from ikigai_actors import (
    ActorSystem,
    OfflineProvider,
    Reply,
    ScriptedProvider,
    ToolCall,
)
from tests.kit.app_pilot import Stage, on_stage, open_memory
from tests.kit.blocking_provider import DEADLINE, Hanging
from tests.kit.databases import eventually

pytestmark = pytest.mark.slow("every screen of the application")


def crew(provider: object = None, prices: Path | None = None) -> ActorSystem:
    system = ActorSystem.open("sqlite:///:memory:", provider or OfflineProvider(), prices=prices)  # type: ignore[arg-type]
    for name in ("buyer", "seller"):
        system.root.fork(name=name)
    system.agent("seller").fork(name="clerk")
    system._touch(system.root)
    return system


@pytest.mark.thorough("a second play of a screen")
def test_mail_is_listed_opened_and_deleted() -> None:
    async def play(stage: Stage) -> None:
        await stage.expect("2 new mail")
        await stage.press("f5")
        await stage.expect("2, 2 unread")
        await stage.expect(r"\* +2  a person +The fair is on Monday")
        await stage.press("enter")
        await stage.expect("mail 2 from a person")
        await stage.expect("2, 1 unread")
        await stage.press("d")
        await stage.expect("1, 1 unread")
        await stage.press("escape")
        await stage.expect("1 new mail")

    with crew() as system:
        system.agent("buyer").send(system.root, "Assam is dear.")
        system.send(system.root, "The fair is on Monday.")
        on_stage(system, play)
        assert [(mail.body, mail.read_at) for mail in system.root.mails()] == [("Assam is dear.", None)]


def test_the_inbox_shows_questions_whole_and_takes_their_answers() -> None:
    async def play(stage: Stage) -> None:
        await stage.press("ctrl+p")
        await stage.type("Inbox")
        await stage.press("enter")
        await stage.expect("Inbox: 1 waiting")
        await stage.press("enter")
        await stage.expect("The answer: number")
        await stage.type("many")
        await stage.press("enter")
        await stage.expect("Expected the answer")
        await stage.press("backspace", "backspace", "backspace", "backspace")
        await stage.type("2")
        await stage.press("enter")
        await stage.expect("answered")
        await stage.press("escape")

    asks = Reply("", (ToolCall("ask_person", {"question": "How many chests?", "form": {"type": "number"}}),))
    provider = ScriptedProvider([asks, "Two, then."])
    with ActorSystem.open("sqlite:///:memory:", provider, approvals="ask") as system:
        reply = system.root.prompt("Buy tea.")
        eventually(lambda: len(system.questions.pending()) == 1, "the question")
        on_stage(system, play)
        assert reply.get(timeout=DEADLINE).text == "Two, then."
        [result] = [message for message in system.root.history() if message.kind == "tool_result"]
        assert result.content == "2"


@pytest.mark.thorough("a second play of a screen")
def test_empty_screens_say_what_comes_there() -> None:
    async def play(stage: Stage) -> None:
        await stage.press("f5")
        await stage.expect("Mail that other agents, programs or you send to this agent comes here")
        await stage.press("escape", "f6")
        await stage.expect("What agents write for all to read comes here")

    with crew() as system:
        on_stage(system, play)


@pytest.mark.thorough("another play of a screen; mail and documents are in every run")
def test_a_foot_says_that_new_text_comes_below_what_is_read() -> None:
    async def play(stage: Stage) -> None:
        await stage.say("go on")
        await stage.expect("line 39")
        await stage.press("pageup")
        await stage.expect("^End new text below".replace("^", r"\^"))
        await stage.press("ctrl+end")
        await stage.expect_gone("new text below")

    text = "\n\n".join(f"line {number}" for number in range(40))
    with open_memory(Hanging(text)) as system:
        on_stage(system, play)


@pytest.mark.thorough("another play of a screen; mail and documents are in every run")
def test_the_keys_are_listed_and_a_few_letters_find_what_there_is() -> None:
    async def play(stage: Stage) -> None:
        application = stage.application
        await stage.press("f1")
        await stage.expect("Ctrl\\+Up, Alt\\+Up +Parent")
        await stage.press("escape")
        await stage.press("ctrl+p")
        await stage.expect("▪ Agents +all of them")
        await stage.expect("○ clerk +idle")
        await stage.type("check-mail")
        await stage.expect("> /check-mail +Show how much mail")
        await stage.press("enter")
        await stage.until(lambda: application.main.page.prompt.text == "/check-mail ")
        await stage.press("f4", "ctrl+p")
        await stage.type("@cl")
        await stage.expect("○ clerk")
        await stage.press("enter")
        await stage.until(lambda: stage.current == stage.system.agent("clerk").uuid)
        assert application.screen is application.main
        await stage.press("ctrl+p")
        await stage.type("#plan")
        await stage.expect("plan/mast")
        await stage.press("enter")
        await stage.expect("Of oak")
        await stage.press("tab")
        assert isinstance(application.focused, VerticalScroll)
        await stage.press("ctrl+p")
        await stage.type("tree")
        await stage.expect("▪ Tree")
        await stage.press("enter")
        await stage.expect("└─ ○ clerk")

    with crew() as system:
        system.documents.write("plan/mast", "Of oak", author=system.root)
        on_stage(system, play)


ANSWER = """# Plan

A *mast* of oak, 茶.

| part | length |
|------|-------:|
| mast |     12 |

```python
def mast() -> int:
    return 12
```"""


async def ask(stage: Stage) -> None:
    """Have the question answered. The answer is in the log by then: while it arrives, its end looks otherwise."""
    await stage.say("What is the plan?")
    await stage.expect("return 12")
    await stage.until(lambda: not stage.application.main.page.transcript.answering, "the whole answer")


@pytest.mark.thorough("a history of hundreds; the parts are in every run")
def test_a_long_history_is_read_in_parts_as_one_scrolls_up() -> None:
    async def play(stage: Stage) -> None:
        transcript = stage.application.main.page.transcript
        await stage.expect("answer 119")
        assert transcript._first > 150
        await stage.press("pageup", "pageup", "pageup", "pageup")
        while (first := transcript._first) > 1:
            transcript.scroll_home(animate=False, immediate=True)
            await stage.until(lambda first=first: transcript._first < first)  # type: ignore[misc]
        transcript.scroll_home(animate=False, immediate=True)
        await stage.expect("› prompt 0\n")
        whole = [line for line in stage.transcript.split("\n") if "prompt" in line]
        assert whole == [f"› prompt {number}" for number in range(120)]

    answers = (f"answer {number}" for number in range(120))
    with ActorSystem.open("sqlite:///:memory:", ScriptedProvider(answers)) as system:
        for number in range(120):
            system.root.prompt(f"prompt {number}").get(timeout=60)
        on_stage(system, play)


def lines(stage: Stage) -> list[str]:
    """The transcript, without its scroll bar, and without what is below it."""
    return [re.sub("[▁-█ ]+$", "", line) for line in stage.text.split("\n")[:-5]]


@pytest.mark.thorough("another play of a screen; mail and documents are in every run")
def test_what_is_drawn_in_parts_looks_as_if_it_were_drawn_whole() -> None:
    async def play(stage: Stage) -> None:
        await ask(stage)
        transcript, chance = stage.application.main.page.transcript, random.Random(1)
        words = [f"{word} " for word in ANSWER.replace("\n", " \n").split(" ")]
        moves = [
            *([lambda: transcript.stream([("text", words[chance.randrange(len(words))])])] * 8),
            lambda: transcript.stream([("thinking", "so ")]),
            lambda: transcript.forget_answer(),
            lambda: transcript.wait_with("later"),
            lambda: transcript.dismiss("later"),
            lambda: transcript.tell("told"),
            lambda: transcript.fold(thinking=True),
            lambda: transcript.scroll_relative(y=-3, animate=False, immediate=True),
            stage.application.main.action_scroll_to_end,
        ]
        for _ in range(20):
            chance.choice(moves)()
            await stage.until(lambda: len(transcript._starts) > len(transcript._blocks), "the layout")
            await stage.pilot.pause(0)
            parts = lines(stage)
            transcript.refresh()
            await stage.pilot.pause(0)
            assert parts == lines(stage)

    with ActorSystem.open("sqlite:///:memory:", ScriptedProvider([ANSWER])) as system:
        on_stage(system, play)
