"""Children that go on from any histories: the positions where they begin, and their settings.

    overseer.fork_many([Child(worker, at=41, prompt="B edits that file too."), Child(worker, at=41, go=True)])

The agents whose histories are inherited take no part in this: nothing is asked of them or written to their logs, and
they may be dead. A history that is checked here may be pruned before the children are born, so the unit that writes the
births checks again.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from ikigai_actors.agent.turn import events as on
from ikigai_actors.agent.turn.hooked import dropped_hooks
from ikigai_actors.arguments import check_count, check_flag, check_mapping, check_optional, check_type, shown
from ikigai_actors.errors import BadInput, NotABoundary
from ikigai_actors.records.agents.identity import new_agent_uuid
from ikigai_actors.records.agents.registry import Handle, uuid_of
from ikigai_actors.records.log.heads import heads_of
from ikigai_actors.records.log.lineage import read_lineage
from ikigai_actors.records.log.stored_history import StoredHistory
from ikigai_actors.records.messages.messages import Kind
from ikigai_actors.records.messages.settings import check_settings
from ikigai_actors.store.base import Transaction
from ikigai_actors.system.directory import Directory
from ikigai_actors.text import check_text

MOST_AT_ONCE = 1_000
"""The most children that one unit may make."""
_AT_ONCE = 64
"""The number of messages that are read at once, from the end."""


@dataclass(frozen=True, slots=True)
class Child:
    """A child that continues any agent's history: see `AgentRef.fork_many`."""

    of: Handle | str
    """The agent whose history the child inherits, living or dead: a handle, uuid, name or prefix."""
    at: int | None = None
    """The last position that the child inherits; None for the end of the history."""
    prompt: str | None = None
    """The child's first prompt; None lets the child wait for one."""
    go: bool = False
    """Whether the child begins at once without a prompt. Its history must end with a prompt or with results of calls,
    which the model then answers.
    """
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Settings in which the child differs, as in `configure`; None removes a setting."""


def births_of(directory: Directory, children: Sequence[Child]) -> tuple[on.TrialBirth, ...]:
    """Return the births of these children for the fork command. Each child gets a new uuid."""
    if not isinstance(children, list | tuple):
        raise BadInput(f"Expected children to be a list of Child(…); got {shown(children)}.")
    check_count(len(children), "the number of children", least=1, most=MOST_AT_ONCE)
    end_of = cache(lambda uuid: position(directory, uuid, None))  # it reads all births since the latest turn
    return tuple(_birth(directory, child, end_of) for child in children)


def note_of(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return a dict as the data of a note. Raises `BadInput` if JSON cannot hold it, or if a key is reserved."""
    content = dict(check_mapping(data, "data", "a dict"))
    if taken := content.keys() & {"terms", "verdicts"}:
        raise BadInput(f"Expected a note without {min(taken)!r}: by this name an experiment keeps its book.")
    try:
        return dict(json.loads(json.dumps(content, allow_nan=False)))
    except (TypeError, ValueError, RecursionError) as error:
        raise BadInput(f"Expected a note to be what JSON can hold: {error}.") from error


def position(directory: Directory, uuid: str, at: int | None) -> int:
    """Return the position at which a history is forked: ``at``, or else the last position of its conversation.

    Births and notes at the end of the history are left out. So the position of an agent does not move because it forks
    children, as agent 0 does for experiments.

    Raises `NotABoundary`, `HistoryPruned`, and `AgentNotFound`.
    """
    if at is not None:
        directory._log_cache.settings_at(uuid, check_count(at, "at"))
        return at
    heads = directory._store.read(lambda tx: heads_of(tx, [uuid]))
    head = heads[0].position if heads else 0
    directory._log_cache.settings_at(uuid, head)
    return directory._store.read(lambda tx: _without_births(tx, uuid, head))


def _without_births(tx: Transaction, uuid: str, head: int) -> int:
    history = StoredHistory(tx, read_lineage(tx, uuid, whole=True))
    for end in range(head, 0, -_AT_ONCE):
        for message in reversed(history.between(max(0, end - _AT_ONCE), end)):
            if message.kind != Kind.NOTE and not message.announces_birth:
                return message.id
    return 0


def asked_at(directory: Directory, uuid: str, at: int) -> Mapping[str, Any]:
    """Return the type of value that a model must give when it goes on from a position, as the data of a prompt.

    Raises `BadInput` when nothing waits for an answer there.
    """
    asked = directory._store.read(lambda tx: _asked(tx, uuid, at))
    if asked is None:
        raise BadInput(
            f"Expected a history that ends with a prompt or with results of calls, to go on without a prompt; at "
            f"position {at} of {uuid} nothing waits for an answer."
        )
    return asked


def _birth(directory: Directory, child: Child, end_of: Callable[[str], int]) -> on.TrialBirth:
    check_type(child, Child, "each of children", "a Child")
    uuid = uuid_of(directory._store, child.of)
    at = end_of(uuid) if child.at is None else position(directory, uuid, child.at)
    check_optional(child.prompt, str, "prompt", "text")
    if check_flag(child.go, "go") and child.prompt is not None:
        raise BadInput("Expected a child to have a prompt, or to go on without one; got both.")
    prompt = None if child.prompt is None else check_text(child.prompt, "prompt")
    own = check_settings(check_mapping(child.settings, "settings", "a dict"))
    settings = _settings(directory, uuid, at, own, end_of)
    data = asked_at(directory, uuid, at) if child.go else {}
    return on.TrialBirth(new_agent_uuid(directory._random_bytes), uuid, at, prompt, data, settings, {}, child.go)


def _settings(
    directory: Directory, uuid: str, at: int, settings: Mapping[str, Any], end_of: Callable[[str], int]
) -> Mapping[str, Any]:
    """Return the settings for a child: those passed, over the changes that its history's agent has made since ``at``.

    So a tool that was withdrawn does not come back. A child without effects outside keeps the settings at that
    position.
    """
    then = directory._log_cache.settings_at(uuid, at)
    if {**then, **settings}.get("effects") is not None:
        return settings
    try:
        now = directory._log_cache.settings_at(uuid, end_of(uuid))
    except NotABoundary:  # it is within a step
        now = directory._log_cache.find_in(uuid, lambda log: log.view(log.head).settings)
    if lost := dropped_hooks(now, settings):
        raise BadInput(f"A child can only add hooks: {', '.join(lost)} must be asked, since {uuid} has that.")
    since = {name: now.get(name) for name in {**then, **now} if now.get(name) != then.get(name)}
    return {**since, **settings}


def _asked(tx: Transaction, uuid: str, position: int) -> Mapping[str, Any] | None:
    """Return the type of value for `asked_at`, in the data of a prompt; None if nothing waits for an answer there."""
    history = StoredHistory(tx, read_lineage(tx, uuid, whole=True))
    is_open = False
    for message in history.backwards(position):
        if message.kind == Kind.ASSISTANT and not is_open:
            return None
        born = message.kind == Kind.FORK and "parent" in message.data and (is_open or "go" in message.data)
        if message.kind == Kind.USER or born:
            return {"output": message.data["output"]} if message.data.get("output") else {}
        is_open = is_open or message.kind in (Kind.TOOL_RESULT, Kind.REPAIR, Kind.STEER)
    return {} if is_open else None
