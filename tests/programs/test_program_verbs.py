"""Verbs that programs call: each is an act, or is refused with what to do. None is done again by a replay."""

import json
import threading
from typing import Any

import pytest

from ikigai_actors import ActorSystem, Reply, ScriptedProvider, Signal, current_agent
from ikigai_actors.programs import Program, program
from ikigai_actors.records.fsck.check import check
from tests.kit.blocking_provider import DEADLINE
from tests.kit.databases import eventually

SAID = ScriptedProvider(lambda request: Reply("said"))


def opened(database: str, model: Program, **options: Any) -> ActorSystem:
    return ActorSystem.open(database, "offline", {"script": SAID}, programs=[model], **options)


@program
def rules_others(task: str) -> str:
    """Every further verb, and a question at which it waits."""
    me = current_agent()
    kid = me.fork(name="kid", model="script")
    gave = [
        me.note({"begun": task}),
        me.configure(max_steps=7),
        kid.configure(system="Be brief."),
        kid.signal(Signal.STOP, reason="wait"),
        kid.signal(Signal.STOP),
        kid.steer("Look up.").get(),
        me.set_rule("deny", "bash").id,
        kid.set_rule("ask", "write", "*.md").pattern,
    ]
    me.ask("Go on?")
    gave.append(kid.signal(Signal.CONT))
    return json.dumps(gave)


def test_notes_settings_signals_words_and_rules_of_a_program_are_acts_that_a_restart_does_not_repeat(
    durable: str,
) -> None:
    with opened(durable, rules_others) as system:
        boss = system.root.fork(name="boss", model=rules_others)
        boss.prompt("go")
        eventually(lambda: bool(system.questions.pending()), "the question")
        assert system.agent("kid").state == "stopped"
    with opened(durable, rules_others) as system:
        boss, kid = system.agent("boss"), system.agent("kid")
        [question] = system.questions.pending()
        system.questions.answer(question.id, True)
        gave = json.loads(boss.reply(timeout=DEADLINE).text)
        [note] = [message for message in boss.history() if message.kind == "note"]
        [limit] = [message for message in boss.history() if "max_steps" in message.data]
        assert (note.data, limit.data) == ({"begun": "go"}, {"max_steps": 7})
        assert gave == [note.id, limit.id, gave[2], True, False, gave[5], 1, "*.md", True]
        assert kid.reply(timeout=DEADLINE).text == "said"
        assert [message.data for message in kid.history()].count({"system": "Be brief."}) == 1
        assert [message.content for message in kid.history() if message.kind in ("steer", "user")] == ["Look up."]
        assert [(rule.decision, rule.tool) for rule in boss.rules()] == [("deny", "bash")]
        assert [rule.tool for rule in kid.rules() if rule.agent == kid.uuid] == ["write"]
        assert check(system._store) == []


@program
def leaves(task: str) -> str:
    kid = current_agent().fork(name="kid", model="script")
    kid.prompt("Go on alone.", detached=True)
    return "left"


@program
async def leaves_driven(task: str) -> str:
    kid = await current_agent().aio.fork(name="kid", model="script")
    kid.prompt("Go on alone.", detached=True)
    return "left"


@pytest.mark.parametrize("model", [leaves, leaves_driven])
def test_what_a_program_has_asked_for_leaves_before_it_answers(model: Program) -> None:
    with opened(":memory:", model) as system:
        assert system.root.fork(name="boss", model=model).prompt("go").get(timeout=DEADLINE).text == "left"
        kid = system.agent("kid")
        eventually(lambda: "Go on alone." in [message.content for message in kid.history()], "the prompt")


PONDERS, ENOUGH = threading.Event(), threading.Event()


@program
def ponders(task: str) -> str:
    PONDERS.set()
    ENOUGH.wait(DEADLINE)
    current_agent().note({"never": "written"})
    return "never"


def test_a_function_that_ponders_while_its_turn_is_ended_leaves_no_thread() -> None:
    with opened(":memory:", ponders) as system:
        boss = system.root.fork(name="boss", model=ponders)
        boss.prompt("go")
        PONDERS.wait(DEADLINE)
        boss.signal(Signal.INT)
        ENOUGH.set()
        mine = f"program {boss.uuid}"
        eventually(lambda: mine not in [thread.name for thread in threading.enumerate()], "the end of its threads")
        assert "note" not in [message.kind for message in boss.history()]


REFUSED = {
    "note of another": lambda me, kid: kid.note({"a": 1}),
    "own model": lambda me, kid: me.configure(model="script"),
    "own signal": lambda me, kid: me.signal(Signal.INT),
    "own word": lambda me, kid: me.steer("on"),
    "signal upwards": lambda me, kid: me.system.root.signal(Signal.TERM),
    "name": lambda me, kid: kid.rename("kit"),
    "mail": lambda me, kid: me.read_mail(),
    "mark": lambda me, kid: me.mark("here"),
    "group": lambda me, kid: me.join("crew"),
    "fork of another": lambda me, kid: kid.fork(name="grandkid"),
    "budget": lambda me, kid: kid.set_budget({"tokens": 5}),
    "key": lambda me, kid: kid.steer("on", key="one"),
}


@program
def tries(task: str) -> str:
    me = current_agent()
    kid = me.fork(name="kid", model="script")
    try:
        return f"did {REFUSED[task](me, kid)}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"


@pytest.mark.sample(4, "verbs")
@pytest.mark.parametrize("verb", REFUSED)
def test_a_verb_that_would_be_done_again_by_a_replay_is_refused_with_what_to_do(verb: str) -> None:
    with opened(":memory:", tries) as system:
        answer = system.root.fork(name="boss", model=tries).prompt(verb).get(timeout=DEADLINE).text
        kind, _, text = answer.partition(": ")
        assert kind in ("BadInput", "StepFailed")
        assert ("That is" in text or "above you" in text) if kind == "StepFailed" else text.startswith("Expected")
        assert system.agent("kid").name == "kid"
