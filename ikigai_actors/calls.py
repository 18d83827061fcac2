"""The calls of one reply, while they are carried out. Pure: decides which may start, and reads where a crash left them.

A call is *waiting* until it is started or refused, *running* from its committed ``tool_call`` on, and *done* when its
``tool_result`` is committed. Ordinary calls run beside one another, unless their tool runs alone; process calls
(``fork``) are performed by the agent itself, in order, once no ordinary call runs.

What a crash leaves of a call, and what resuming makes of it:

    waiting                       nothing was done          it is started
    running, tool idempotent      perhaps done              it is started again
    running, tool not idempotent  perhaps done              an error result says so, and the model decides
    a process call                done with its result,     it is performed
                                  or not at all
    done                          done                      its result stands
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from ikigai_actors.assembly import reply_of
from ikigai_actors.messages import Kind, Message

FORK = "fork"
"""The process call that makes a child."""

PERHAPS_RUN = (
    "This call was started, and then the process that ran it ended: it may or may not have run. "
    "Find out before you repeat it."
)
"""The result of a call that was cut off, when its tool is not idempotent."""


class Progress(StrEnum):
    """How far a call is."""

    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a reply."""

    id: str
    name: str
    input: Mapping[str, Any]
    progress: Progress = Progress.WAITING


class Policy(StrEnum):
    """Whether a tool may be used."""

    ALLOW = "allow"
    ASK = "ask"
    """A person, or a callback of the program, approves each call or denies it."""
    DENY = "deny"


@dataclass(frozen=True, slots=True)
class Facts:
    """What the machine must know of a tool."""

    idempotent: bool = False
    """Running it twice does what running it once does."""
    alone: bool = False
    """It runs when no other call of the reply does."""
    policy: Policy = Policy.ALLOW
    """Whether its calls may run."""


Calls = tuple[Call, ...]
Book = Mapping[str, Facts]
"""The tools on offer, by name; `FORK` is one of them unless the settings leave it out."""


def calls_of(reply: Message) -> Calls:
    """The calls that an assistant message asks for."""
    return tuple(Call(call.id, call.name, call.input) for call in reply_of(reply).tool_calls)


def recover(messages: Iterable[Message]) -> Calls:
    """The calls of the latest reply among an agent's own messages of a turn, as far as they had come."""
    calls: Calls = ()
    for message in messages:
        match message.kind:
            case Kind.ASSISTANT:
                calls = calls_of(message)
            case Kind.TOOL_CALL:
                calls = progress(calls, (message.data.get("tool_use_id"),), Progress.RUNNING)
            case Kind.TOOL_RESULT:
                calls = progress(calls, (message.data.get("tool_use_id"),), Progress.DONE)
    return calls


def progress(calls: Calls, ids: Iterable[Any], now: Progress) -> Calls:
    """The calls, those with these ids as far as ``now``."""
    changed = set(ids)
    return tuple(replace(call, progress=now) if call.id in changed else call for call in calls)


def running(calls: Calls) -> bool:
    """Whether an ordinary call is outside."""
    return any(call.progress is Progress.RUNNING for call in calls)


def unknown(calls: Calls, book: Book) -> Calls:
    """The waiting calls of tools that are not on offer."""
    return tuple(call for call in calls if _waits(call) and call.name not in book)


def startable(calls: Calls, book: Book) -> Calls:
    """The waiting ordinary calls that may start now, in order; one whose tool runs alone waits for those before it."""
    chosen: list[Call] = []
    busy = running(calls)
    if any(call.progress is Progress.RUNNING and _alone(call, book) for call in calls):
        return ()
    for call in calls:
        if not _waits(call) or call.name == FORK:
            continue
        if _alone(call, book):
            return tuple(chosen) if busy or chosen else (call,)
        chosen.append(call)
    return tuple(chosen)


def next_fork(calls: Calls) -> Call | None:
    """The first process call that waits."""
    return next((call for call in calls if _waits(call)), None)


def settle_cut_off(calls: Calls, book: Book) -> tuple[Calls, Calls]:
    """What resuming makes of calls that a crash cut off: the calls as they go on, and those that get `PERHAPS_RUN`."""
    cut = [call for call in calls if call.progress is Progress.RUNNING]
    again = [call.id for call in cut if call.name in book and book[call.name].idempotent]
    lost = tuple(call for call in cut if call.id not in again)
    going_on = progress(progress(calls, again, Progress.WAITING), (call.id for call in lost), Progress.DONE)
    return going_on, lost


def _waits(call: Call) -> bool:
    return call.progress is Progress.WAITING


def _alone(call: Call, book: Book) -> bool:
    return call.name in book and book[call.name].alone
