"""Requests of programs to other agents: a row from the commit of a prompt until the end of its turn.

    asked      one unit writes the prompt and the row
    cancelled  the last unit of the program's turn cancels its open rows, except ``detached`` rows, if the turn ends
               without an answer. The asked agent's host then withdraws the prompt, or interrupts the prompt's turn
    ended      the last unit of the prompt's turn, or the death of the asked agent, ends the row, which gets the
               asking program's next number

The numbers of one program's rows have the order in which its prompts were answered. They are assigned under the lock of
the program's row, so no two rows get the same number. The last unit of a turn looks up the programs that await the
turn, and locks the agent rows of these programs, too. If a further program has begun to wait since the look-up, the
unit runs once more. A death takes the lock of the tree exclusively, and prompts of programs share it, so no prompt
comes between the look-up and the commit of a death.

A program may wait for a prompt that another agent has sent, as a fork in mid-turn does. Then the unit that begins the
wait adds a row for the program, under the lock of the asked agent's row. This row is detached: if the program's turn
ends, the prompt is not withdrawn.
"""

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

from ikigai_actors.errors import BadInput
from ikigai_actors.records.agents.identity import is_agent_uuid
from ikigai_actors.records.mail.mail import PROMPT, Mail, Send
from ikigai_actors.records.messages.forms import ASKER
from ikigai_actors.store.base import Transaction
from ikigai_actors.store.unit import Around, Locked, LockedRows, RunAlone, TreeLock, Unit

_TURN = re.compile(r"(.+)/m([1-9][0-9]{0,14})")


class AskedTurn(NamedTuple):
    """The turn of an agent that opens with a prompt by mail."""

    agent: str
    """The uuid of the agent."""
    prompt: int
    """The number of the mail."""


def turn_name(turn: AskedTurn) -> str:
    """Return the text that names a turn; `turn_named` reads it."""
    return f"{turn.agent}/m{turn.prompt}"


def turn_named(text: str) -> AskedTurn:
    """Return the turn that a text names. Raises `BadInput`."""
    match = _TURN.fullmatch(text)
    if match is None or not is_agent_uuid(match[1]):
        raise BadInput(f"Expected a turn as a prompt gives it, such as {'A' * 22}/m7; got {text[:80]!r}.")
    return AskedTurn(match[1], int(match[2]))


class Ask(Send):
    """Send the prompt of a program to an agent; answered with the `Mail`. Raises the errors of `Send`."""

    __slots__ = ("_asker", "_detached")

    tree = TreeLock.SHARED

    def __init__(
        self, asker: str, agent: str, text: str, now: int, data: Mapping[str, Any], *, detached: bool = False
    ) -> None:
        super().__init__(agent, None, text, now, PROMPT, {**data, ASKER: asker})
        self._asker, self._detached = asker, int(detached)

    def write(self, tx: Transaction, locked: LockedRows) -> Mail:
        mail: Mail = super().write(tx, locked)
        tx.run("add_asked", agent=mail.recipient, prompt=mail.id, asker=self._asker, detached=self._detached)
        return mail


class Woken(NamedTuple):
    """The answer of a unit that has woken parked agents (`records.log.parking`), with the inner unit's answer."""

    answer: Any
    agent: str = ""
    """The agent of whose turn nobody else says that it ends, since none was opened; programs may wait for it."""


class EndAsked(Around):
    """Commit the last unit of a turn that a program has asked for, and end the program's request.

    Answered as the inner unit; with `Woken` if a parked program waited only for this end.
    """

    __slots__ = ("_agent", "_askers", "_prompts")

    def __init__(self, act: Unit, agent: str, prompts: Sequence[int]) -> None:
        super().__init__(act)
        self.concerns_others = True
        self._agent, self._prompts, self._askers = agent, tuple(prompts), set[str]()

    def around(self, act: Unit) -> Self:
        again = super().around(act)
        again.concerns_others = True
        return again

    @property
    def touches(self) -> tuple[str, ...]:
        return (*self._act.touches, *sorted(self._askers - set(self._act.touches)))

    def look_up(self, tx: Transaction) -> None:
        super().look_up(tx)
        self._askers = self._asking(tx)

    def write(self, tx: Transaction, locked: LockedRows) -> Any:
        askers = self._asking(tx)
        if not askers <= locked.keys():  # one has begun to wait since the look-up
            raise RunAlone(self.around(self._act))
        try:
            done = self._act.write(tx, locked)
        except RunAlone as alone:
            raise RunAlone(self.around(alone.unit)) from None
        ends = [(asker, self._agent, prompt) for prompt in self._prompts for asker in sorted(askers)]
        return Woken(done) if end_asked(tx, ends) else done

    def _asking(self, tx: Transaction) -> set[str]:
        return set[str]().union(*(askers_of(tx, self._agent, prompt) for prompt in self._prompts))


@dataclass(frozen=True, slots=True)
class EndCancelled(Unit):
    """End a cancelled request to an agent: withdraw its prompt.

    Answered with the turn to interrupt if the prompt has opened the turn in progress, else with 0.
    """

    agent: str
    prompt: int
    asker: str

    locks = ("agent", "asker")

    def write(self, tx: Transaction, locked: LockedRows) -> int:
        row = locked.existing(self.agent)
        if not tx.run("withdraw_prompt", recipient=self.agent, id=self.prompt) and _has_opened(tx, row, self.prompt):
            return row.turn
        end_asked(tx, [(self.asker, self.agent, self.prompt)])
        return 0


def askers_of(tx: Transaction, agent: str, prompt: int) -> set[str]:
    """Return the programs that wait for the end of the turn that a prompt opens."""
    return {asker for (asker,) in tx.run("askers", agent=agent, prompt=prompt)}


def cancel_asked(tx: Transaction, asker: str) -> set[str]:
    """Cancel the requests of a program whose turn ends without an answer; return the agents that it had asked."""
    return {agent for (agent,) in tx.run("cancel_asked", asker=asker)}


def cancelled_of(tx: Transaction, host: str) -> list[EndCancelled]:
    """Return the units that end the cancelled requests to the agents of a host."""
    return [EndCancelled(agent, prompt, asker) for agent, prompt, asker in tx.run("cancelled", host=host)]


def end_asked(tx: Transaction, rows: Iterable[tuple[str, str, int]]) -> bool:
    """End requests of programs, given as asker, agent and prompt. The rows of the askers are locked.

    Return whether this wakes a parked asker.
    """
    woken = False
    for asker, agent, prompt in rows:
        ended = tx.run("end_asked", asker=asker, agent=agent, prompt=prompt)
        if any(awaited for (awaited,) in ended):
            woken |= any(lack < 0 for (lack,) in tx.run("count_end", uuid=asker))
    return woken


def asked_of(tx: Transaction, agents: Collection[str]) -> list[tuple[str, str, int]]:
    """Return the open requests of programs to these agents: asker, agent and prompt of each."""
    return [(asker, agent, prompt) for asker, agent, prompt in tx.run("asked_of", agents=list(agents))]


def bury_asked(tx: Transaction, dead: Collection[str]) -> None:
    """End the requests to agents that die, in the unit of their deaths, and remove the requests that they have made.

    The rows of the living askers are locked.
    """
    tx.run("forget_asked", agents=list(dead))
    end_asked(tx, asked_of(tx, dead))


def asked_by_others(tx: Transaction, asker: str, turns: Collection[AskedTurn]) -> list[AskedTurn]:
    """Return those of these turns that a program has not opened by its own prompts, in their order."""
    own = {AskedTurn(agent, prompt) for agent, prompt in tx.run("asked_by", asker=asker)}
    return [turn for turn in turns if turn not in own]


def join_asked(tx: Transaction, asker: str, turns: Iterable[AskedTurn], locked: LockedRows) -> None:
    """Let a program wait for turns that another program has asked for. The rows of the agents are locked."""
    for agent, prompt in turns:
        tx.run("add_asked", agent=agent, prompt=prompt, asker=asker, detached=1)
        if _is_over(tx, locked.existing(agent), prompt):
            tx.run("end_asked", asker=asker, agent=agent, prompt=prompt)


def _is_over(tx: Transaction, row: Locked, prompt: int) -> bool:
    """Return whether the turn of a prompt by mail is over, or the prompt was withdrawn."""
    times = tx.run("prompt_times", recipient=row.uuid, id=prompt)
    if row.status == "dead" or not times:
        return True
    [(_, read_at)] = times
    return read_at is not None and not _has_opened(tx, row, prompt)


def _has_opened(tx: Transaction, row: Locked, prompt: int) -> bool:
    opening = tx.run("data_of_message", agent=row.uuid, id=row.turn) if row.turn else []
    return any(json.loads(data or "{}").get("mail") == prompt for (data,) in opening)


def turns_over(tx: Transaction, asker: str, turns: Collection[AskedTurn]) -> list[AskedTurn]:
    """Return those of these turns that have ended, in the order of their ends."""
    ended = (AskedTurn(agent, prompt) for agent, prompt in tx.run("ends_of_asked", asker=asker))
    return [turn for turn in ended if turn in turns]
