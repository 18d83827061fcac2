"""Remote commands: commands of other processes to an agent, as rows, each with its answer.

    asked      a row with the agent's next id of a command, written under the lock of the agent's row
    answered   the transaction that carries the command out writes the answer (`CarryOut`). If the agent refused, or had
               nothing to write, a separate transaction does (`AnswerRemoteCommand`)
    withdrawn  the asking process writes the answer `NoHost`, because no process runs the agent

A row gets one answer, and stays. So the command is carried out once: a second attempt, after a crash or by another
host, finds the answer, and writes nothing.

An answer is a value, or an `IkigaiError`: the name of its class, its message, and its other arguments.
"""

import inspect
import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

from ikigai_actors import errors
from ikigai_actors.attachments import Attachment
from ikigai_actors.errors import AgentDead, AgentError, IkigaiError
from ikigai_actors.records.messages.blobs import write_blobs
from ikigai_actors.store.base import Transaction
from ikigai_actors.store.unit import Around, LockedRows, RunAlone, Unit


class RemoteCommandKey(NamedTuple):
    """The primary key of a remote command."""

    agent: str
    """The uuid of the agent that gets the command."""
    id: int
    """The number of the command among those of the agent."""


class NewRemoteCommand(NamedTuple):
    """A command of another process without an answer: a row of the query ``new_remote_commands``."""

    agent: str
    """The uuid of the agent that gets the command."""
    id: int
    """The number of the command among those of the agent."""
    kind: str
    body: str
    """The arguments, as a JSON object."""
    mailed: int
    """The number of the agent's latest mail when the command was sent. Prompts up to it were sent before."""

    @property
    def key(self) -> RemoteCommandKey:
        """Return the primary key."""
        return RemoteCommandKey(self.agent, self.id)


class Answered(NamedTuple):
    """The answer of a remote command: a value, or an error to raise."""

    value: Any
    """The value, or an `IkigaiError`."""


class RemoteCommandAnswered(AgentError):
    """The error when a remote command already has an answer, for example because it was withdrawn.

    Nothing was written.
    """


@dataclass(frozen=True, slots=True)
class AddRemoteCommand(Unit):
    """Write a command for an agent that another process runs; answered with the number of the command.

    Raises `AgentNotFound`, `AgentDead`.
    """

    agent: str
    kind: str
    body: str
    """The arguments, as a JSON object."""
    now: int
    blobs: tuple[Attachment, ...] = ()
    """The attachments to which the arguments refer."""

    locks = ("agent",)

    def write(self, tx: Transaction, locked: LockedRows) -> int:
        row = locked.living(self.agent, ": it reads, but never acts again")
        write_blobs(tx, self.blobs)
        [(number,)] = tx.run(
            "add_remote_command", agent=self.agent, kind=self.kind, body=self.body, mailed=row.mailed, now=self.now
        )
        return int(number)


class CarryOut(Around):
    """Commit the unit of a remote command and store the command's answer, in one transaction.

    Answered as the inner unit. Raises the errors of the inner unit, and `RemoteCommandAnswered`.
    """

    __slots__ = ("_answer", "_key", "_now")

    def __init__(self, key: RemoteCommandKey, act: Unit, value: Any, now: int) -> None:
        super().__init__(act)
        self._key, self._answer, self._now = key, encode_answer(value), now

    def write(self, tx: Transaction, locked: LockedRows) -> Any:
        agent, number = self._key
        if not tx.run("lock_remote_command", agent=agent, id=number):
            raise RemoteCommandAnswered(f"Remote command {number} of agent {agent} was answered before.", agent)
        try:
            done = self._act.write(tx, locked)
        except RunAlone as alone:
            raise RunAlone(self.around(alone.unit)) from None
        tx.run("answer_remote_command", agent=agent, id=number, answer=self._answer, now=self._now)
        return done


class AnswerRemoteCommand(Unit):
    """Store the answer of a remote command, and write nothing else; answered with whether it had no answer yet."""

    __slots__ = ("_answer", "_key", "_now")

    def __init__(self, key: RemoteCommandKey, value: Any, now: int) -> None:
        """Make the unit. If ``value`` is an `IkigaiError`, the caller of the command gets this error."""
        self._key, self._answer, self._now = key, encode_answer(value), now

    def write(self, tx: Transaction, locked: LockedRows) -> bool:
        agent, number = self._key
        locked.others.add(agent)
        return bool(tx.run("answer_remote_command", agent=agent, id=number, answer=self._answer, now=self._now))


def new_remote_commands(tx: Transaction, host: str | None = None) -> list[NewRemoteCommand]:
    """Return the unanswered remote commands of living agents, for one host or all; each agent's commands in order."""
    return ask_new_remote_commands(tx, host)()


def ask_new_remote_commands(tx: Transaction, host: str | None) -> Callable[[], list[NewRemoteCommand]]:
    """Send the query of `new_remote_commands` in one round trip with other queries.

    Return a function that reads the rows.
    """
    rows = tx.ask("new_remote_commands", host=host)
    return lambda: [NewRemoteCommand._make(row) for row in rows()]


def body_of(tx: Transaction, key: RemoteCommandKey) -> dict[str, Any]:
    """Return the arguments of a command; empty when there is no such command, or it cannot be read."""
    for (body,) in tx.run("remote_command_body", agent=key.agent, id=key.id):
        with suppress(ValueError, RecursionError):
            fields = json.loads(body)
            return fields if isinstance(fields, dict) else {}
    return {}


def answer_of(tx: Transaction, key: RemoteCommandKey) -> Answered | None:
    """Return the answer of a command; None while there is none. If the agent died first, the answer is `AgentDead`."""
    for answer, status, reason in tx.run("remote_command_answer", agent=key.agent, id=key.id):
        if answer is not None:
            return decode_answer(answer)
        if status != "dead":
            return None
        return Answered(AgentDead(f"Agent {key.agent} is dead: {reason or 'no reason is known'}.", key.agent))
    gone = f"Remote command {key.id} of agent {key.agent} is not in the database any more: it is an older copy."
    return Answered(RemoteCommandAnswered(gone, key.agent))


def encode_answer(value: Any) -> str:
    """Return the text in which an answer is stored: a JSON value, or an `IkigaiError`."""
    if not isinstance(value, IkigaiError):
        return json.dumps({"value": value})
    kind = next(base for base in type(value).__mro__ if _error(base.__name__) is base)
    known = inspect.signature(kind.__init__).parameters
    further = {name: part for name, part in vars(value).items() if name in known}
    return json.dumps({"error": kind.__name__, "message": str(value), "further": further})


def decode_answer(text: str) -> Answered:
    """Return the answer from a text of `encode_answer`. An error of an unknown class becomes an `IkigaiError`."""
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
    kind = getattr(errors, name, None)
    return kind if isinstance(kind, type) and issubclass(kind, IkigaiError) else None
