"""Turns that wait, whatever happens around the wait and wherever the process ends: it is answered once and truly, no
mail is lost or read twice, and a model accepts whatever it is sent of it.
"""

import asyncio
import json
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from ikigai_actors import ActorSystem, AgentRef, IkigaiError, Message, Reply, Request, ScriptedProvider, Signal
from ikigai_actors.records.agents import registry
from ikigai_actors.records.fsck import check as fsck
from ikigai_actors.store import open_store
from tests.agent.test_tool_properties import check_prefixes
from tests.kit.blocking_provider import DEADLINE
from tests.kit.databases import eventually
from tests.kit.faults import Ending
from tests.kit.open_on import open_on
from tests.kit.tool_scripts import calling, faults, prompts

KIDS = ("ann", "bob")
LONG = 600.0
"""Seconds of a wait that does not end by itself."""


class Event(NamedTuple):
    """Something that happens to a child, or that it does."""

    what: str
    kid: str


class Plan(NamedTuple):
    """What happens around a wait."""

    agents: str
    """Whom it names."""
    timeout: float
    before: list[Event]
    """What is committed before the turn begins."""
    during: list[Event]
    """What happens while it goes on: before the wait, between its look and its sleep, or after it."""
    commits: int
    """How many commits of all that come true before the process ends."""


events = st.builds(Event, st.sampled_from(["send", "send", "kill", "stop", "work", "hang"]), st.sampled_from(KIDS))
plans = st.builds(
    Plan,
    st.sampled_from(["by name", "children", "anybody"]),
    st.sampled_from([0.0, 0.02, LONG]),
    st.lists(events, max_size=3),
    st.lists(events, max_size=4),
    st.integers(0, 9) | st.just(1_000),
)


@pytest.mark.slow("takes a second")
@example(Plan("anybody", LONG, [], [], 1_000))
@example(Plan("anybody", LONG, [], [], 4))
@example(Plan("by name", 0.02, [Event("hang", "ann"), Event("send", "bob")], [], 4))
@example(Plan("children", LONG, [Event("hang", "ann"), Event("kill", "bob")], [Event("stop", "ann")], 1_000))
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(plan=plans)
def test_a_wait_is_answered_truly_and_no_mail_is_lost_whatever_happens(
    new_sqlite: Callable[[], str], plan: Plan
) -> None:
    url, script = new_sqlite(), ScriptedProvider(lambda request: answer(request, plan))
    store = Ending(open_store(url))
    with open_on(store, script) as system:
        boss = system.root.fork(name="boss")
        kids = {name: boss.fork(name=name) for name in KIDS}
        for event in plan.before:
            happen(event, kids[event.kid], boss)
        boss.mark(timeout=DEADLINE)  # behind all of that
        store.left = plan.commits
        turn = boss.prompt("go")
        for event in plan.during:
            happen(event, kids[event.kid], boss)
        eventually(lambda: turn.done() or system.statistics().waits or store.left < 0, "the wait, or an end")
    with ActorSystem.open(url, script, resume=True) as system:
        boss = system.agent("boss")
        system.send(boss, "from outside")
        for kid in boss.children():
            kid.send(boss, "the last word")
        assert system.root.wait([boss], timeout=DEADLINE) == {boss: "idle"}
        assert boss.prompt("and then?").get(timeout=DEADLINE).text == "done"
        judge(boss, plan)
        assert list(fsck.check(system._store)) == []
    assert [faults(request) for request in script.requests] == [[]] * len(script.requests)


async def answer(request: Request, plan: Plan) -> str | Reply:
    """The boss waits in its first turn, and reads what came; a child says that it is done, or nothing for ever."""
    if prompts(request) == ["hang"]:
        await asyncio.Event().wait()
    if request.name != "boss" or prompts(request) != ["go"]:
        return "done"
    named: dict[str, dict[str, object]] = {"by name": {"agents": [*KIDS]}, "children": {"children": True}}
    return calling("check_mail", ("wait", {**named.get(plan.agents, {}), "timeout": plan.timeout}), "read_mail")


def happen(event: Event, kid: AgentRef, boss: AgentRef) -> None:
    """Let it begin; whether it comes true is left open, unless the store is sound."""
    with suppress(IkigaiError):  # the child is dead by now
        match event.what:
            case "send":
                kid.aio.send(boss, f"{event.kid} writes")
            case "kill":
                kid.aio.kill()
            case "stop":
                kid.aio.signal(Signal.STOP)
            case text:
                kid.prompt(text)


def judge(boss: AgentRef, plan: Plan) -> None:
    """Look at what a turn has left, at its end."""
    log = boss.history(all=True)
    check_prefixes(log)
    if not any(message.kind == "assistant" and message.data.get("tool_calls") for message in log):
        return  # the process ended before the prompt or the reply was there, and the turn was not resumed
    gave = {message.data["tool_use_id"]: message for message in log if message.kind == "tool_result"}
    assert len([message for message in log if message.kind == "tool_result"]) == len(gave) == 3
    [begun] = [message for message in log if message.kind == "tool_call"]
    assert begun.data["deadline"] - begun.created_at == round(plan.timeout * 1000)
    read = [int(number) for number in re.findall(r"^mail (\d+) from ", gave["3"].content, re.MULTILINE)]
    unread = [mail.id for mail in boss.mails() if mail.read_at is None]
    assert sorted(read + unread) == list(range(1, boss.record.mailed + 1))
    names = {record.uuid: record.short for record in boss.system._store.read(registry.every)}
    is_true(begun, gave["2"], gave["3"].content, names)


def is_true(begun: Message, message: Message, read: str, names: Mapping[str, str]) -> None:
    """Whether the answer of a wait agrees with what was read right after it, and with the time."""
    if message.content == "No mail came in that time.":
        answers: dict[str, str] = {"": "timeout"}
    else:
        answers = json.loads(message.content)
    if "timeout" in answers.values():
        assert message.created_at >= begun.data["deadline"]
        assert begun.data["deadline"] - begun.created_at < LONG * 1000
    for called, what in answers.items():
        assert what in ("mail", "idle", "stopped", "dead", "unknown", "timeout")
        if what == "mail":
            assert re.search(rf"^mail \d+ from .*{re.escape(names.get(called, called))}", read, re.MULTILINE)
