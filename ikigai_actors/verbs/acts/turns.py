"""Acts that open turns or wait for them. Each act returns handles of turns, also when a call is repeated with its key.

The acts themselves do not wait for turns: the caller waits for the turns of `Begun`.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, TypedDict

from pydantic import Field, WithJsonSchema

from ikigai_actors.agent.remote_commands import encode
from ikigai_actors.agent.turn.events import Fork
from ikigai_actors.attachments import Attachment
from ikigai_actors.errors import BadInput, IkigaiError, NameTaken
from ikigai_actors.reach.access import EVERY_PROMPT, Access
from ikigai_actors.reach.turns import MAIL, REQUEST, AskingCall, SpentAmounts, TurnHandle, first_turn
from ikigai_actors.records.agents.identity import new_agent_uuid
from ikigai_actors.records.hosts.remote_commands import AddRemoteCommand, RemoteCommandKey, answer_of
from ikigai_actors.records.mail.prompts import EndPrompt, KeepPrompt, WithdrawPrompt
from ikigai_actors.system.lifecycle import new_children, new_fork, prompt_text
from ikigai_actors.verbs.act import ONLY_READS, act

LONGEST_TURN_WAIT = 45.0
"""The most seconds of a wait, because clients drop answers that take a minute."""

MOST_HANDLES = 100
"""The most handles of a wait, and the most children of a fork."""

MOST_POSITION = 2**53
"""The largest position that a client may pass, because every client can represent this number."""

NamedAgent = Annotated[
    str, Field(description="An agent: its name, its two words, or its uuid or the beginning of that.")
]
Name = str | None
Position = Annotated[int, Field(ge=0, le=MOST_POSITION)]


class TurnAnswer(TypedDict):
    """The state of a turn at one moment, in the answer to `wait`, `prompt` and `fork`."""

    handle: str
    agent: str
    name: Name
    status: Literal["working", "asks", "waiting_for_budget", "done", "failed"]
    text: NotRequired[str]
    error: NotRequired[str]
    asks: NotRequired[list[AskingCall]]
    spent: SpentAmounts
    existed: NotRequired[bool]


class Begun(NamedTuple):
    """The turns that an act has opened or waits for, and how to make the answer from their states."""

    handles: Sequence[TurnHandle]
    give: Callable[[list[dict[str, Any]]], Any]
    """Makes the answer of the act from the states of the turns, which are in the order of the handles."""
    seconds: float
    any: bool = False
    """Whether the wait is over when the first of the turns has ended; else when all have."""
    is_task: bool = False
    """Whether the act has opened a single turn, which may be a task of MCP."""
    is_silent: bool = False
    """Whether the act has forked a child without a prompt, so that no turn is opened."""


class LeftWord(TypedDict):
    """The answer to `steer`: the mail of the steering message."""

    agent: str
    mail: int


Grants = Annotated[
    Mapping[str, float],
    WithJsonSchema(
        {
            "type": "object",
            "properties": {
                "usd": {"type": "number", "minimum": 0},
                "tokens": {"type": "integer", "minimum": 0},
                "agents": {"type": "integer", "minimum": 0},
            },
            "additionalProperties": False,
        }
    ),
]


@act("fork", "Fork an agent", verb="fork", gives=TurnAnswer | list[TurnAnswer], keyed=True, required=("prompt",))
def fork(
    reach: Access,
    prompt: str | None = None,
    name: str | None = None,
    of: str | None = None,
    at: Position | None = None,
    model: str | None = None,
    system: str | None = None,
    budget: Grants | None = None,
    count: Annotated[int, Field(ge=1, le=MOST_HANDLES)] | None = None,
) -> Begun:
    """Make a child that inherits the history of an agent, and prompt it.

    Answers at once with the handle of its turn; wait for it. A living child of the same name and prompt is returned
    instead, with existed: true.

    Args:
        prompt: What the child is to do.
        name: A name for the child, unique among the living.
        of: The agent to fork. Default: the topmost one.
        at: The child inherits the history up to this position. Default: all of it.
        model: Its model, as provider:model. Default: its parent's.
        system: Its system prompt. Default: its parent's.
        budget: The most that the child and all below it may spend.
        count: How many such children to make; then the answer is a list.
    """
    said = None if prompt is None else prompt_text(prompt)
    asked = asked_fork(reach, of, said, name=name, count=count, model=model, system=system, at=at, budget=budget)
    handles = [TurnHandle(asked.agent, REQUEST, asked.id, child) for child in range(count or 1)]

    def give(seen: list[dict[str, Any]]) -> Any:
        answer = reach.client.read(lambda tx: answer_of(tx, asked))
        if answer is not None and isinstance(answer.value, IkigaiError):
            return {**reach.turns.look_at(_existing(reach, asked.agent, answer.value, said)), "existed": True}
        known = [
            {**turn, "handle": str(reach.turns.settled(handle))} for turn, handle in zip(seen, handles, strict=True)
        ]
        return known[0] if count is None else known

    return Begun(handles, give, reach.quick, is_task=count is None, is_silent=said is None)


def asked_fork(
    reach: Access,
    of: str | None,
    prompt: str | None = None,
    *,
    name: str | None = None,
    count: int | None = None,
    child: str | None = None,
    blobs: tuple[Attachment, ...] = (),
    changed: Callable[[Fork], Fork] = lambda fork: fork,
    **how: Any,
) -> RemoteCommandKey:
    """Send a command to fork to an agent, once for its key; ``how`` is as for `new_fork`.

    ``child``: the uuid of the child. ``changed`` adapts the command; ``blobs`` are stored with it.
    """

    def unit() -> AddRemoteCommand:
        parent, random_bytes = reach.find(of), reach.system._random_bytes
        children = new_children(lambda: child or new_agent_uuid(random_bytes), prompt, name, count=count)
        kind, body = encode(changed(new_fork(children, **how)(None)))
        return AddRemoteCommand(parent.uuid, kind, body, reach.client.now_ms(), blobs)

    return reach.asked(unit)


def born(reach: Access, asked: RemoteCommandKey, seconds: float) -> str:
    """Return the uuid of a fork's child, once it is born.

    Raises the error of the fork, or `BadInput` after ``seconds``.
    """
    answer = reach.answer(asked, seconds)
    if answer is None:
        raise BadInput("The agent is busy: the fork happens after its step. List the agents later.")
    if isinstance(answer.value, IkigaiError):
        raise answer.value
    return str(answer.value)


class OpenedTurn(TypedDict):
    """A turn that an act has opened, for a caller that does not wait for its end."""

    agent: str
    handle: str | None
    """The handle of the turn; None for a child without a prompt."""


def begun_turn(reach: Access, begun: Begun) -> OpenedTurn:
    """Return the first turn of an act, once its agent is born. Raises the error if the agent cannot be born."""
    handle = begun.handles[0]
    if handle.kind != REQUEST:
        return {"agent": handle.agent, "handle": str(handle)}
    child = born(reach, RemoteCommandKey(handle.agent, handle.number), reach.quick)
    return {"agent": child, "handle": None if begun.is_silent else str(reach.turns.settled(handle))}


def _existing(reach: Access, parent: str, refusal: IkigaiError, prompt: str | None) -> TurnHandle:
    """Return the first turn of the living child with this name and prompt; if there is none, raise the refusal."""
    if not isinstance(refusal, NameTaken) or parent not in refusal.above:
        raise refusal
    try:
        handle, said = reach.client.read(lambda tx: first_turn(tx, refusal.holder))
    except IkigaiError:
        raise refusal from None
    if said != prompt:
        raise refusal
    return handle


@act("prompt", "Prompt an agent", verb="prompt", gives=TurnAnswer, keyed=True)
def prompt(reach: Access, agent: NamedAgent, text: str) -> Begun:
    """Open a turn of an agent; a busy one takes the prompt up after its turn. Answers at once with a handle.

    Args:
        text: The prompt.
    """
    return Begun([kept_prompt(reach, agent, text)], lambda seen: seen[0], reach.quick, is_task=True)


def kept_prompt(reach: Access, agent: str, text: str, **further: Any) -> TurnHandle:
    """Store a prompt for an agent, once for its key; return the handle of its turn.

    ``further``: data and blobs of the message that the prompt will become.
    """
    said = prompt_text(text)

    def unit() -> KeepPrompt:
        return KeepPrompt(reach.find(agent).uuid, said, reach.client.now_ms(), EVERY_PROMPT, **further)

    kept = reach.once(unit, lambda unit, kept: {"agent": unit.recipient, "mail": kept.mail})
    return TurnHandle(reach.check(kept["agent"]), MAIL, kept["mail"])


def take_back(reach: Access, handle: TurnHandle) -> bool:
    """Withdraw the prompt of a turn that has not begun; return whether it was withdrawn."""
    return handle.kind == MAIL and bool(reach.commit(WithdrawPrompt(handle.agent, handle.number)))


def end_or_take_back(reach: Access, handle: TurnHandle) -> bool:
    """End a turn, or withdraw its prompt; return whether the prompt was withdrawn."""
    if take_back(reach, handle):
        return True
    if (seen := reach.turns.seen(handle)).is_open:
        reach.client.interrupt(handle.agent, seen.record.turn)
    return False


def end_this_turn(reach: Access, handle: TurnHandle) -> bool:
    """End one turn; a turn that has not begun ends when it begins. Return whether there was a turn to end."""
    if handle.kind == MAIL and reach.commit(EndPrompt(handle.agent, handle.number)):
        return True
    if not (opening := reach.turns.opening(handle)) or not reach.turns.seen(handle).is_open:
        return False
    reach.client.interrupt(handle.agent, opening)
    return True


@act("steer", "Say a word to an agent", verb="prompt", gives=LeftWord)
def steer(reach: Access, agent: NamedAgent, text: str) -> LeftWord:
    """Say something to an agent within the turn that it is in: its model reads it before its next request.

    An idle agent begins a turn with it.

    Args:
        text: The word, at most 64 KiB.
    """
    uuid = reach.find(agent).uuid
    return {"agent": uuid, "mail": reach.system._steer(uuid, text, False, None).kept.get()}


@act("wait", "Wait for turns", verb="wait", gives=list[TurnAnswer], hints=ONLY_READS)
def wait(
    reach: Access,
    handles: Annotated[list[str], Field(min_length=1, max_length=MOST_HANDLES)],
    seconds: Annotated[float, Field(ge=0, le=LONGEST_TURN_WAIT)] = 30,
    any: bool = False,  # noqa: A002 (the name that clients know)
) -> Begun:
    """Wait until turns are over, or ask something, or the time is over; working means: wait again.

    A wait of 0 seconds shows how they are. Handles are valid forever, also after a restart.

    Args:
        handles: What fork and prompt gave.
        seconds: Seconds to wait. Default: 30.
        any: True: return when one turn is over. Default: wait for all.
    """
    known = [TurnHandle.parse(text) for text in handles]
    for uuid in {handle.agent for handle in known}:
        reach.check(uuid)
    return Begun(known, lambda seen: seen, min(float(seconds), LONGEST_TURN_WAIT), any)
