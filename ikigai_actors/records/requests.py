"""Requests: what other processes ask an agent to do itself, as rows, each with its answer.

    asked      a row with the next id of its agent, under the lock of the agent's row
    answered   by the transaction that did what was asked (`CarryOut`), or by one of its own when nothing was to be
               written: the agent refused, or there was nothing to do (`AnswerRequest`)
    withdrawn  answered with `NoHost` by the one who asked, when no process runs the agent

A row is answered once, and stays. So a request is carried out once: whoever is at it a second time, after a crash or
beside another host, finds it answered, and writes nothing.

An answer is a value, or an error of ours: its class by name, its message, and what else it is made of.
"""

import inspect
import json
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass
from typing import Any, NamedTuple

from ikigai_actors import errors
from ikigai_actors.attachments import Attachment
from ikigai_actors.errors import AgentDead, AgentError, AgentNotFound, IkigaiError
from ikigai_actors.records.blobs import write_blobs
from ikigai_actors.store.base import Transaction
from ikigai_actors.store.unit import Around, LockedRows, RunAlone, Unit


class RequestKey(NamedTuple):
    """The primary key of a request."""

    agent: str
    """The uuid of the agent that is asked."""
    id: int
    """Its number among the requests of that agent."""


class NewRequest(NamedTuple):
    """A request that nobody has answered. A row of the query ``new_requests``."""

    agent: str
    """The uuid of the agent that is asked."""
    id: int
    """Its number among the requests of that agent."""
    kind: str
    body: str
    """The arguments, as a JSON object."""
    mailed: int
    """The number of the agent's latest mail then: prompts up to this one were sent before the request."""

    @property
    def key(self) -> RequestKey:
        """Its primary key."""
        return RequestKey(self.agent, self.id)


class Answered(NamedTuple):
    """The answer of a request."""

    value: Any
    """The value, or an `IkigaiError`."""


class RequestAnswered(AgentError):
    """The request was answered before, perhaps by withdrawing it. Nothing was written."""


@dataclass(frozen=True, slots=True)
class AddRequest(Unit):
    """Ask an agent to do something itself; answered with the number of the request.

    Raises `AgentNotFound`, `AgentDead`.
    """

    agent: str
    kind: str
    body: str
    """The arguments, as a JSON object."""
    now: int
    blobs: tuple[Attachment, ...] = ()
    """What the arguments refer to."""

    @property
    def touches(self) -> tuple[str, ...]:
        return (self.agent,)

    def write(self, tx: Transaction, locked: LockedRows) -> int:
        row = locked.get(self.agent)
        if row is None:
            raise AgentNotFound(f"There is no agent {self.agent}. See the list of agents.", self.agent)
        if row.status == "dead":
            raise AgentDead(f"Agent {self.agent} is dead: it reads, but never acts again.", self.agent)
        write_blobs(tx, self.blobs)
        [(number,)] = tx.run(
            "add_request", agent=self.agent, kind=self.kind, body=self.body, mailed=row.mailed, now=self.now
        )
        return int(number)


class CarryOut(Around):
    """A unit that does what a request asks for, and the answer of the request, in one transaction.

    Answered as the unit itself is. Raises what that raises, and `RequestAnswered`.
    """

    __slots__ = ("_answer", "_key", "_now")

    def __init__(self, key: RequestKey, act: Unit, value: Any, now: int) -> None:
        """Make the unit.

        Args:
            key: the request.
            act: does what is asked.
            value: the answer of the request.
            now: milliseconds since 1970.
        """
        super().__init__(act)
        self._key, self._answer, self._now = key, encode_answer(value), now

    def write(self, tx: Transaction, locked: LockedRows) -> Any:
        agent, number = self._key
        if not tx.run("lock_request", agent=agent, id=number):
            raise RequestAnswered(f"Request {number} of agent {agent} was answered before.", agent)
        try:
            done = self._act.write(tx, locked)
        except RunAlone as alone:
            again = copy(self)
            Around.__init__(again, alone.unit)
            raise RunAlone(again) from None
        tx.run("answer_request", agent=agent, id=number, answer=self._answer, now=self._now)
        return done


class AnswerRequest(Unit):
    """Answer a request for which nothing is written; answered with whether it was unanswered."""

    __slots__ = ("_answer", "_key", "_now")

    def __init__(self, key: RequestKey, value: Any, now: int) -> None:
        """Make the unit.

        Args:
            key: the request.
            value: the answer; an `IkigaiError` is raised where the request came from.
            now: milliseconds since 1970.
        """
        self._key, self._answer, self._now = key, encode_answer(value), now

    def write(self, tx: Transaction, locked: LockedRows) -> bool:
        agent, number = self._key
        locked.others.add(agent)
        return bool(tx.run("answer_request", agent=agent, id=number, answer=self._answer, now=self._now))


def new_requests(tx: Transaction) -> list[NewRequest]:
    """The requests of living agents that nobody has answered, those of one agent in their order."""
    return [NewRequest._make(row) for row in tx.run("new_requests")]


def answer_of(tx: Transaction, key: RequestKey) -> Answered | None:
    """The answer of a request; None while there is none. `AgentDead` for an agent that died before it answered."""
    for answer, status, reason in tx.run("request_answer", agent=key.agent, id=key.id):
        if answer is not None:
            return decode_answer(answer)
        if status != "dead":
            return None
        return Answered(AgentDead(f"Agent {key.agent} is dead: {reason or 'no reason is known'}.", key.agent))
    gone = f"Request {key.id} of agent {key.agent} is not in the database any more: an older copy took its place."
    return Answered(RequestAnswered(gone, key.agent))


def encode_answer(value: Any) -> str:
    """The text under which an answer is stored: a value that JSON knows, or an `IkigaiError`."""
    if not isinstance(value, IkigaiError):
        return json.dumps({"value": value})
    kind = next(one for one in type(value).__mro__ if _error(one.__name__) is one)
    known = inspect.signature(kind.__init__).parameters
    further = {name: part for name, part in vars(value).items() if name in known}
    return json.dumps({"error": kind.__name__, "message": str(value), "further": further})


def decode_answer(text: str) -> Answered:
    """The answer that a stored text tells. An error of a class that this program does not know is an `IkigaiError`."""
    try:
        stored = json.loads(text)
        if "error" not in stored:
            return Answered(stored["value"])
        kind = _error(stored["error"]) or IkigaiError
        further: Mapping[str, Any] = stored["further"] if kind is not IkigaiError else {}
        return Answered(kind(stored["message"], **further))
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        return Answered(IkigaiError(f"The answer cannot be read: {error}. It may have been carried out."))


def _error(name: str) -> type[IkigaiError] | None:
    found = getattr(errors, name, None)
    return found if isinstance(found, type) and issubclass(found, IkigaiError) else None
