"""The reach of a door: the agents of a database, or a part of the tree; and how it asks for something once.

    access = Access(hosting, under="team")
    access.find("kid")                          # an agent of the team, else `AgentNotFound`
    keyed = access.under(KeyedCall("k1", "send", given))
    keyed.once(unit, gave)                      # committed under the key, or its answer of before

An act (`ikigai_actors.verbs.act`) gets one, and knows of no key.
"""

from collections.abc import Callable, Mapping, Sequence
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
"""Seconds within which a door that has just started is attached: its host may have to make the database."""

EVERY_PROMPT = 2**62
"""A number that no mail has."""

QUICK = 0.8
"""Seconds that a call waits for what is usually done at once."""


class Access:
    """Reaches agents for a door. Its methods wait for the database, so no event loop calls them."""

    def __init__(
        self,
        attached: Callable[[float], System],
        check_hosted: Callable[[float], object],
        under: str | None,
        quick: float = QUICK,
        by: str = "",
        scope: str = "",
    ) -> None:
        """Reach all agents, or one and those below it.

        Args:
            attached: gives the system within some seconds.
            check_hosted: raises `NoHost` unless a host runs the agents within some seconds.
            under: what the topmost agent is called that can be reached; None for agent 0.
            quick: seconds that a call waits for what is usually done at once.
            by: who decides on calls, for the log; empty where nobody is named.
            scope: whose keys those of calls are; empty where all who come in share them.
        """
        self._scope = scope
        self._attached, self.check_hosted, self._under, self.quick = attached, check_hosted, under, quick
        self.by = by
        self._call: KeyedCall | None = None

    @classmethod
    def of(cls, system: System, quick: float = QUICK, by: str = "", top: str | None = None, scope: str = "") -> Self:
        """Reach the agents of a system that runs them, or knows who does: all, or ``top`` and those below it."""
        return cls(lambda timeout: system, lambda timeout: None, top, quick, by, scope)

    @classmethod
    def of_person(cls, system: System, quick: float = QUICK) -> Self:
        """Reach all agents of a system as the person at this machine."""
        return cls.of(system, quick, person())

    @property
    def is_whole(self) -> bool:
        """Whether all agents can be reached."""
        return self._under is None

    def under(self, call: KeyedCall) -> Self:
        """The same reach for one call under a key, which `once` heeds."""
        assert self.system  # so that the copy shares it
        keyed = copy(self)
        keyed._call = replace(call, key=scoped_key(self._scope, call.key)) if self._scope else call
        return keyed

    def keyed(self, key: str, what: str, arguments: Mapping[str, Any]) -> Self:
        """The same for a call that a door names by itself: what it does, and with what."""
        return self.under(KeyedCall(key, what, arguments))

    def patient(self, seconds: float) -> Self:
        """The same reach for calls that wait this long for what is usually done at once."""
        assert self.system  # so that the copy shares it
        waiting = copy(self)
        waiting.quick = seconds
        return waiting

    @cached_property
    def system(self) -> System:
        """The system. Raises `NoHost` while there is none."""
        return self._attached(ATTACH)

    @cached_property
    def client(self) -> Client:
        """Reads and writes its database."""
        return Client(self.system._store, self.system._clock)

    @cached_property
    def turns(self) -> TurnReader:
        """How turns are."""
        return TurnReader(self.system._store, self.system.questions.calls)

    @cached_property
    def top(self) -> str:
        """The topmost agent that can be reached, by uuid. Raises `AgentNotFound`."""
        return self.system.root.uuid if self._under is None else self.system.agent(self._under).uuid

    def find(self, text: str | None) -> AgentRecord:
        """The agent that a text means; None is the topmost one.

        Raises `AgentNotFound`, in the same words for one that cannot be reached, and `AmbiguousAgent`.
        """
        top = self.top
        return self.client.read(lambda tx: self._find(tx, top, text))

    def ref(self, text: str | None) -> AgentRef:
        """The handle of that agent. Raises what `find` does."""
        return self.system.handle(self.find(text).uuid)

    def below(self, text: str | None, most: int, dead_too: bool) -> tuple[list[AgentRecord], int]:
        """An agent and the nearest of those below it, each after its supervisor; and how many more there are.

        Raises what `find` does.

        Args:
            most: how many at most.
            dead_too: the dead too.
        """
        top = self.find(text)

        def read(tx: Transaction) -> tuple[list[AgentRecord], int]:
            records = lists.some_below(tx, top, most - 1, dead_too)
            more = lists.count_below(tx, top, dead_too) - len(records) if len(records) == most - 1 else 0
            return records, more

        records, more = self.client.read(read)
        return _tree([top, *registry.oldest_first(records)], top.uuid), more

    def living(self, after: Age, most: int) -> list[AgentRecord]:
        """The living that can be reached but agent 0, the oldest first, at most this many that come after a place."""
        top = self.top
        if self._under is None:
            return self.client.read(lambda tx: lists.living_after(tx, after, most))
        below = self.client.read(lambda tx: [registry.get(tx, top), *registry.descendants(tx, top)])
        mine = [
            child for child in below if child.living and child.supervisor_uuid is not None and age_of(child) > after
        ]
        return sorted(mine, key=age_of)[:most]

    def check(self, uuid: str) -> str:
        """Return a uuid. Raises `AgentNotFound` unless that agent exists and can be reached."""
        return self.find(uuid).uuid

    def reaches(self, uuid: str) -> bool:
        """Whether an agent can be reached."""
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
        """Whether the call was done before under whose key this reach is."""
        call = self._call
        return call is not None and self.client.read(lambda tx: answer_under(tx, call)) is not None

    def once(
        self, unit: Callable[[], U], gave: Callable[[U, Any], Mapping[str, Any]], *, hosted: bool = False
    ) -> dict[str, Any]:
        """Commit a unit, once if this reach is `under` a key; return what it gave. Raises what the unit raises.

        Args:
            unit: makes the unit, if it is not committed already.
            gave: makes of the unit and its answer what JSON can hold of it.
            hosted: whether it must be carried out by a host; then it raises `NoHost` where there is none.
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
        """Commit a unit as the system does; what it leaves for an agent that runs here is looked at now."""
        done = self.system._writer.perform(unit)
        self.system._look_at_rows()
        return done

    def asked(self, unit: Callable[[], AddRemoteCommand]) -> RemoteCommandKey:
        """Ask an agent to do something itself, once if this reach is `under` a key. Raises what the unit raises."""
        kept = self.once(unit, lambda unit, number: {"agent": unit.agent, "request": number}, hosted=True)
        return RemoteCommandKey(self.check(kept["agent"]), kept["request"])

    def answer(self, asked: RemoteCommandKey, seconds: float) -> Answered | None:
        """The answer of a remote command; None when it has not come within this many seconds."""
        until, pause = monotonic() + seconds, 0.005
        while (answer := self.client.read(lambda tx: answer_of(tx, asked))) is None and monotonic() < until:
            Event().wait(pause)
            pause = min(2 * pause, 0.05)
        return answer


def _tree(records: Sequence[AgentRecord], top: str) -> list[AgentRecord]:
    """An agent and those below it, each after its supervisor, the older one first.

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
