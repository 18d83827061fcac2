"""Fork: the only way to make an agent. One unit: the child's row, ``fork`` in both logs, and what the child begins
with.

By command, the child begins with its settings and its prompt. As a call of the model it is Unix fork: parent and child
both return from the same call, the parent with the child's uuid, the child with the news that it is the child; the turn
goes on in both.
"""

from dataclasses import replace
from typing import Any

from ikigai_actors.agent.turn import events as on
from ikigai_actors.agent.turn.calls import Call, Progress, progress
from ikigai_actors.agent.turn.state import Answer, Spawn, State, Step
from ikigai_actors.agent.turn.steps import PendingMessage, advance, messages_of
from ikigai_actors.records.identity import check_name
from ikigai_actors.records.log_unit import Birth, LogUnit
from ikigai_actors.records.messages import NO_DATA, Kind
from ikigai_actors.text import storable

LIVING_LIMIT = 1_000
"""How many agents may live when a model forks one more: it stops a fork bomb."""


def fork_by_command(state: State, event: on.Fork, now: int) -> Step:
    """The child that a program or a person asked for."""
    drafts: list[PendingMessage] = [(Kind.FORK, "", {"parent": state.uuid})]
    if event.settings:
        drafts.append((Kind.CONFIGURE, "", event.settings))
    if event.prompt is not None:
        drafts.append((Kind.USER, event.prompt, NO_DATA))
    birth = _birth(state, event.child, event.name, event.restart, drafts, now)
    birth = replace(birth, on_orphan=event.on_orphan)
    if event.prompt is not None:
        birth = replace(birth, turn=birth.messages[-1].id)
    return _step(state, birth, now, answer=Answer(event.caller, event.child), caller=event.caller)


def fork_by_call(state: State, call: Call, child: str, now: int, has_shell: bool) -> Step:
    """The child that the model asked for; its turn goes on, with the prompt if the call has one."""
    name, prompt = call.input.get("name"), call.input.get("prompt")
    news = f"You are the child {child}, forked from {state.uuid}."
    if has_shell:
        news += " Your shell is new; what the parent runs is not yours."
    drafts: list[PendingMessage] = [(Kind.FORK, "", {"parent": state.uuid}), _result(call, news)]
    if prompt:
        drafts.append((Kind.USER, storable(prompt), NO_DATA))
    birth = _birth(state, child, check_name(name) if name else None, "transient", drafts, now)
    birth = replace(birth, turn=birth.messages[-1].id, limit=LIVING_LIMIT)
    told = _result(call, f"Forked: the child is {child}.")
    after = replace(state, calls=progress(state.calls, (call.id,), Progress.DONE))
    return replace(_step(after, birth, now, told), call=call.id)


def _birth(state: State, child: str, name: str | None, restart: str, drafts: list[PendingMessage], now: int) -> Birth:
    return Birth(
        uuid=child,
        name=name,
        parent_uuid=state.uuid,
        fork_message_id=state.head,
        turn=0,
        restart=restart,
        created_at=now,
        messages=messages_of(child, state.head, now, tuple(drafts)),
    )


def _step(
    state: State, birth: Birth, now: int, *drafts: PendingMessage, answer: Answer | None = None, caller: Any = None
) -> Step:
    """The parent's side of a birth."""
    mine = messages_of(state.uuid, state.head, now, ((Kind.FORK, "", {"child": birth.uuid}), *drafts))
    effects = (Spawn(birth), answer) if answer is not None else (Spawn(birth),)
    return Step(advance(state, mine), LogUnit(state.uuid, mine, birth=birth), effects, caller)


def _result(call: Call, text: str) -> PendingMessage:
    return (Kind.TOOL_RESULT, text, {"tool_use_id": call.id, "name": call.name})
