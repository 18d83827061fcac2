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
    """The child that a program or a person asked for, at the head or at an earlier position.

    The child has the parent's settings of now: at an earlier position tools may be on offer that were withdrawn since.
    """
    at, settings = None, event.settings
    if isinstance(event, on.ForkAt):
        at, now_set, then_set = event.at, state.view.settings, event.then or {}
        since = {name: now_set.get(name) for name in {**then_set, **now_set} if now_set.get(name) != then_set.get(name)}
        settings = {**since, **event.settings}
    drafts: list[PendingMessage] = [_told(state, "parent", state.uuid, at)]
    if settings:
        drafts.append((Kind.CONFIGURE, "", settings))
    if event.prompt is not None:
        drafts.append((Kind.USER, event.prompt, event.data))
    birth = birth_of(state, event.child, event.name, event.restart, drafts, now, at)
    birth = replace(birth, on_orphan=event.on_orphan)
    if event.prompt is not None:
        birth = replace(birth, turn=birth.messages[-1].id)
    return give_birth(state, birth, now, answer=Answer(event.caller, event.child), caller=event.caller)


def _told(state: State, of: str, other: str, at: int | None) -> PendingMessage:
    """The ``fork`` message of parent or child, which names the other one, and the fork point if that is no head."""
    return (Kind.FORK, "", {of: other} if at in (None, state.head) else {of: other, "at": at})


def birth_of(
    state: State,
    child: str,
    name: str | None,
    restart: str,
    drafts: list[PendingMessage],
    now: int,
    at: int | None = None,
) -> Birth:
    """A child of this agent, forked at its head or at an earlier position. Its log begins with these messages."""
    fork = state.head if at is None else at
    return Birth(
        uuid=child,
        name=name,
        parent_uuid=state.uuid,
        fork_message_id=fork,
        turn=0,
        restart=restart,
        created_at=now,
        messages=messages_of(child, fork, now, tuple(drafts)),
        born=state.head + 1,
    )


def give_birth(
    state: State, birth: Birth, now: int, *drafts: PendingMessage, answer: Answer | None = None, caller: Any = None
) -> Step:
    """The parent's side of a birth."""
    told = _told(state, "child", birth.uuid, birth.fork_message_id)
    mine = messages_of(state.uuid, state.head, now, (told, *drafts))
    effects = (Spawn(birth), answer) if answer is not None else (Spawn(birth),)
    return Step(advance(state, mine), LogUnit(state.uuid, mine, birth=birth), effects, caller)
