"""The reach of a client: all agents of a database, or a part of the tree. Its calls may have an idempotency key.

    access = Access(hosting, under="team")
    access.find("kid")                          # an agent of the team, else `AgentNotFound`
    keyed = access.under(KeyedCall("k1", "send", given))
    keyed.once(unit, gave)                      # committed under the key, or its answer of before

An act (`ikigai_actors.verbs.act`) gets an `Access`. The key is in the access, so no act handles keys.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import cached_property, partial
from threading import Event
from time import monotonic
from typing import Any, Self, TypeVar

from ikigai_actors.errors import AmbiguousAgent, Repeated
from ikigai_actors.reach.turns import TurnReader
from ikigai_actors.records.agents import lists, registry
from ikigai_actors.records.agents.lists import Age, age_of
from ikigai_actors.records.agents.registry import AgentRecord
from ikigai_actors.records.hosts.remote_commands import AddRemoteCommand, Answered, RemoteCommandKey, answer_of
from ikigai_actors.records.once import KeyedCall, Once, answer_under, scoped_key
from ikigai_actors.store.base import Transaction
from ikigai_actors.store.unit import Unit
from ikigai_actors.system.approvals import person
from ikigai_actors.system.handles.ref import AgentRef, System
from ikigai_actors.system.remote.client import Client

U = TypeVar("U", bound=Unit)

ATTACH = 20.0
"""The seconds within which a door must be attached to the database. Its host may have to make the database first."""

EVERY_PROMPT = 2**62
"""A number that exceeds the number of any mail."""

QUICK = 0.8
"""The seconds that a call waits for results that usually come at once."""


class Access:
    """The agents that a client may reach, and calls that are done once under a key.

    The methods wait for the database, so do not call them on an event loop.
    """

    def __init__(
        self,
        attached: Callable[[float], System],
        check_hosted: Callable[[float], object],
        under: str | None,
        quick: float = QUICK,
        by: str = "",
        scope: str = "",
        roles: Collection[str] | None = None,
    ) -> None:
        """Reach all agents, or one agent and the agents below it.

        Args:
            attached: returns the system within some seconds.
            check_hosted: raises `NoHost` unless a host runs the agents within some seconds.
            under: the topmost agent that can be reached, as a text; None for agent 0.
            quick: the seconds that a call waits for results that usually come at once.
            by: the name for decisions in the log; empty for none.
            scope: the scope of keys; empty if all clients share them.
            roles: the roles of the client, each right with those before it; None for the operator of this machine.
        """
        self._scope = scope
        self._attached, self.check_hosted, self._under, self.quick = attached, check_hosted, under, quick
        self.by, self.roles = by, roles
        self._call: KeyedCall | None = None

    @classmethod
    def of(
        cls,
        system: System,
        quick: float = QUICK,
        by: str = "",
        top: str | None = None,
        scope: str = "",
        roles: Collection[str] | None = None,
    ) -> Self:
        """Return the access to a system: to all agents, or to ``top`` and the agents below it."""
        return cls(lambda timeout: system, lambda timeout: None, top, quick, by, scope, roles)

    @classmethod
    def of_person(cls, system: System, quick: float = QUICK) -> Self:
        """Return the access to all agents of a system, for the person at this machine."""
        return cls.of(system, quick, person())

    @property
    def is_whole(self) -> bool:
        """Return whether all agents can be reached."""
        return self._under is None

    def under(self, call: KeyedCall) -> Self:
        """Return a copy of this access for one call with a key; `once` uses the key."""
        assert self.system  # so that the copy shares it
        keyed = copy(self)
        keyed._call = replace(call, key=scoped_key(self._scope, call.key)) if self._scope else call
        return keyed

    def keyed(self, key: str, what: str, arguments: Mapping[str, Any]) -> Self:
        """Return a copy of this access for a call that a door identifies by its name and arguments."""
        return self.under(KeyedCall(key, what, arguments))

    def patient(self, seconds: float) -> Self:
        """Return a copy of this access whose calls wait this long for results that usually come at once."""
        assert self.system  # so that the copy shares it
        waiting = copy(self)
        waiting.quick = seconds
        return waiting

    @cached_property
    def system(self) -> System:
        """Return the attached system. Raises `NoHost` while there is none."""
        return self._attached(ATTACH)

    @cached_property
    def client(self) -> Client:
        """Return the client that reads and writes the database."""
        return Client(self.system._store, self.system._clock)

    @cached_property
    def turns(self) -> TurnReader:
        """Return the reader of turns."""
        return TurnReader(self.system._store, self.system.questions.calls)

    @cached_property
    def top(self) -> str:
        """Return the uuid of the topmost reachable agent. Raises `AgentNotFound`."""
        return self.system.root.uuid if self._under is None else self.system.agent(self._under).uuid

    def find(self, text: str | None) -> AgentRecord:
        """Return the agent that a text names; None names the topmost agent.

        Raises `AmbiguousAgent`, and `AgentNotFound`, also for an agent out of reach, with the same message.
        """
        top = self.top
        return self.client.read(lambda tx: self._find(tx, top, text))

    def ref(self, text: str | None) -> AgentRef:
        """Return the handle of the agent that a text names. Raises the errors of `find`."""
        return self.system.handle(self.find(text).uuid)

    def below(self, text: str | None, most: int, dead_too: bool) -> tuple[list[AgentRecord], int]:
        """Return an agent and the nearest agents below it, each after its supervisor, and how many are left out.

        Raises what `find` does.

        Args:
            most: the most agents to return.
            dead_too: whether to include the dead.
        """
        top = self.find(text)

        def read(tx: Transaction) -> tuple[list[AgentRecord], int]:
            records = lists.some_below(tx, top, most - 1, dead_too)
            more = lists.count_below(tx, top, dead_too) - len(records) if len(records) == most - 1 else 0
            return records, more

        records, more = self.client.read(read)
        return _tree([top, *registry.oldest_first(records)], top.uuid), more

    def living(self, after: Age, most: int) -> list[AgentRecord]:
        """Return living agents in reach, without agent 0, the oldest first: at most ``most``, born after a place."""
        top = self.top
        if self._under is None:
            return self.client.read(lambda tx: lists.living_after(tx, after, most))
        below = self.client.read(lambda tx: [registry.get(tx, top), *registry.descendants(tx, top)])
        mine = [
            child for child in below if child.living and child.supervisor_uuid is not None and age_of(child) > after
        ]
        return sorted(mine, key=age_of)[:most]

    def check(self, uuid: str) -> str:
        """Return the uuid unchanged. Raises `AgentNotFound` unless the agent exists and can be reached."""
        return self.find(uuid).uuid

    def reaches(self, uuid: str) -> bool:
        """Return whether an agent can be reached."""
        top = self.top
        return self.client.read(lambda tx: self._reaches(tx, top, uuid))

    def _reaches(self, tx: Transaction, top: str, uuid: str) -> bool:
        return self._under is None or uuid == top or registry.is_below(tx, uuid, top)

    def _find(self, tx: Transaction, top: str, text: str | None) -> AgentRecord:
        if text is None:
            return registry.get(tx, top)
        try:
            record = registry.find(tx, text)
        except AmbiguousAgent as error:
            if self._under is None:
                raise
            raise registry.nobody_called(text) from error  # its candidates may be out of reach
        if not self._reaches(tx, top, record.uuid):
            raise registry.nobody_called(text)
        return record

    def was_done(self) -> bool:
        """Return whether the call with the key of this access was carried out before."""
        call = self._call
        return call is not None and self.client.read(lambda tx: answer_under(tx, call)) is not None

    def once(
        self, unit: Callable[[], U], gave: Callable[[U, Any], Mapping[str, Any]], *, hosted: bool = False
    ) -> dict[str, Any]:
        """Commit a unit, once if this access has a key; return its result as JSON data.

        Raises the errors of the unit.

        Args:
            unit: makes the unit, if it was not committed before.
            gave: converts the unit and its answer to JSON data.
            hosted: whether a host must carry it out. Then `NoHost` is raised if there is none.
        """
        call = self._call
        if call is not None and (known := self.client.read(lambda tx: answer_under(tx, call))) is not None:
            return known
        act = unit()
        if hosted:
            self.check_hosted(self.quick)
        if call is None:
            return dict(gave(act, self.commit(act)))
        try:
            return dict(gave(act, self.commit(Once(act, call, self.client.now_ms(), partial(gave, act)))))
        except Repeated as repeated:
            return repeated.gave

    def commit(self, unit: Unit) -> Any:
        """Commit a unit, as the system does. Agents that run in this process react to it at once."""
        done = self.system._writer.perform(unit)
        self.system._look_at_rows()
        return done

    def asked(self, unit: Callable[[], AddRemoteCommand]) -> RemoteCommandKey:
        """Send a command to an agent, once if this access has a key; return the key of the command.

        Raises the errors of the unit.
        """
        kept = self.once(unit, lambda unit, number: {"agent": unit.agent, "request": number}, hosted=True)
        return RemoteCommandKey(self.check(kept["agent"]), kept["request"])

    def answer(self, asked: RemoteCommandKey, seconds: float) -> Answered | None:
        """Return the answer of a remote command; None if it has not come within this many seconds."""
        until, pause = monotonic() + seconds, 0.005
        while (answer := self.client.read(lambda tx: answer_of(tx, asked))) is None and monotonic() < until:
            Event().wait(pause)
            pause = min(2 * pause, 0.05)
        return answer


def _tree(records: Sequence[AgentRecord], top: str) -> list[AgentRecord]:
    """Return an agent and the agents below it, each after its supervisor, older agents first.

    An agent comes after the top if its supervisor is not in the list.
    """
    known = {record.uuid for record in records}
    below: dict[str | None, list[AgentRecord]] = {}
    for record in records:
        above = record.supervisor_uuid if record.supervisor_uuid in known else top
        below.setdefault(above, []).append(record)
    ordered, left = list[AgentRecord](), [record for record in records if record.uuid == top]
    while left:
        ordered.append(left.pop())
        left.extend(reversed([child for child in below.pop(ordered[-1].uuid, []) if child.uuid != top]))
    return ordered
