"""Fork: the only way to make an agent.

One unit holds the child's row, a ``fork`` message in both logs, and the child's first messages. By command, these are
its settings and its prompt; by a call of the model, see `ikigai_actors.agent.builtin_calls.fork`.
"""

from dataclasses import replace
from typing import Any

from ikigai_actors.agent.turn import events as on
from ikigai_actors.agent.turn.state import Answer, Spawn, State, Step
from ikigai_actors.agent.turn.steps import PendingMessage, advance, messages_of
from ikigai_actors.records.log_unit import Birth, LogUnit
from ikigai_actors.records.messages import Kind


def fork_by_command(state: State, event: on.Fork, now: int) -> Step:
    """The child that a program or a person asked for."""
    drafts: list[PendingMessage] = [(Kind.FORK, "", {"parent": state.uuid})]
    if event.settings:
        drafts.append((Kind.CONFIGURE, "", event.settings))
    if event.prompt is not None:
        drafts.append((Kind.USER, event.prompt, event.data))
    birth = birth_of(state, event.child, event.name, event.restart, drafts, now)
    birth = replace(birth, on_orphan=event.on_orphan)
    if event.prompt is not None:
        birth = replace(birth, turn=birth.messages[-1].id)
    return give_birth(state, birth, now, answer=Answer(event.caller, event.child), caller=event.caller)


def birth_of(state: State, child: str, name: str | None, restart: str, drafts: list[PendingMessage], now: int) -> Birth:
    """A child of this agent, forked at its head. Its log begins with these messages."""
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


def give_birth(
    state: State, birth: Birth, now: int, *drafts: PendingMessage, answer: Answer | None = None, caller: Any = None
) -> Step:
    """The parent's side of a birth."""
    mine = messages_of(state.uuid, state.head, now, ((Kind.FORK, "", {"child": birth.uuid}), *drafts))
    effects = (Spawn(birth), answer) if answer is not None else (Spawn(birth),)
    return Step(advance(state, mine), LogUnit(state.uuid, mine, birth=birth), effects, caller)
