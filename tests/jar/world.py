"""The tree of agents in the jar, the units that are drawn for its sessions, and what a run has left in the tables."""

import random
from collections.abc import Callable, Mapping, Sequence

from ikigai_actors.records.agents.registry import Rename, Touch
from ikigai_actors.records.budgets.budget import Budget
from ikigai_actors.records.budgets.grants import Grant
from ikigai_actors.records.budgets.limits import SetBudget
from ikigai_actors.records.documents import WriteVersion
from ikigai_actors.records.lives.deaths import WriteDeath
from ikigai_actors.records.lives.membership import Demonitor, JoinGroup, LeaveGroup, MonitorAgent, SendToGroup
from ikigai_actors.records.lives.signals import KillByAgent, SendSignal
from ikigai_actors.records.lives.supervision import AdoptChild, SetSupervision, StopChildren
from ikigai_actors.records.log.append import Append, AppendCall, FencingToken
from ikigai_actors.records.log.log_unit import Birth, LogUnit
from ikigai_actors.records.mail.mail import Delete, KeepPrompt, Open, Read, Send
from ikigai_actors.records.mail.schedules import Appointment
from ikigai_actors.records.mail.timers import CancelTimer, DueTimer, Fire, SetTimer
from ikigai_actors.records.messages.messages import Message
from ikigai_actors.store.base import Row, SchemaTransaction, Store, Transaction
from ikigai_actors.store.unit import Unit, write_alone
from supervisors.signals import Signal
from tests.kit.trees import HOST, plant, says

PARENTS = {"a": "root", "b": "root", "c": "a", "d": "b", "e": "a", "f": "c"}
AGENTS = ("root", *PARENTS)

APART = frozenset({"hosts", "listeners", "schema_version", "shards"})
"""Tables with the server's own times, or of which a server has more rows."""

NOW = 5

DUE = Appointment(4, None, "UTC")
"""When a timer fires: it is due."""

FENCE = FencingToken(HOST, 1)

Make = Callable[[], Unit]
"""Makes a unit: each run needs one of its own."""


class Draw:
    """Draws units, so that they collide. Each agent's log is written by one session, as each agent has one host."""

    def __init__(self, seed: int, sessions: int) -> None:
        self._random, self._sessions = random.Random(seed), sessions
        self._heads = dict.fromkeys(AGENTS, 0)
        self._born = 0

    def unit(self, session: int) -> tuple[str, Make]:
        """A unit for a session, with words for it."""
        kind = self._random.choice(KINDS)
        one, other = self._random.sample(AGENTS, 2)
        own = [agent for place, agent in enumerate(AGENTS) if place % self._sessions == session]
        return f"{kind.__name__} {one} {other}", kind(self, one, other, self._random.choice(own))

    def place(self, own: str) -> int:
        """The next position in the log of an agent of the session."""
        self._heads[own] += 1
        return self._heads[own]

    def child(self) -> str:
        """The uuid of a new agent."""
        self._born += 1
        return f"child{self._born}"

    def choose(self, *among: str) -> str:
        """One of these."""
        return self._random.choice(among)


Kind = Callable[[Draw, str, str, str], Make]


def opens_turn(draw: Draw, one: str, other: str, own: str) -> Make:
    place = draw.place(own)
    return lambda: Append(LogUnit(own, says(own, place), turn=place), FENCE)


def closes_turn(draw: Draw, one: str, other: str, own: str) -> Make:
    place = draw.place(own)
    return lambda: Append(LogUnit(own, says(own, place), turn=0), FENCE)


def forks(draw: Draw, one: str, other: str, own: str) -> Make:
    place, child = draw.place(own), draw.child()
    name = draw.choose("tea", "gum", child)
    born = says(child, place, kind="fork")
    birth = Birth(child, name, own, place - 1, 0, "transient", NOW, born, place)
    return lambda: Append(LogUnit(own, says(own, place, kind="fork"), births=(birth,)), FENCE)


def calls(draw: Draw, one: str, other: str, own: str) -> Make:
    place, acts = draw.place(own), draw.choose("kill", "send", "group")

    def act() -> Unit:
        if acts == "kill":
            return KillByAgent(one, own, NOW, "because", spread=False)
        return Send(one, own, "by a call", NOW) if acts == "send" else SendToGroup("team", own, "all", NOW)

    return lambda: AppendCall(own, act(), lambda answer: Message(own, place, "note", "done", {}, NOW), FENCE)


def signals(draw: Draw, one: str, other: str, own: str) -> Make:
    name, spread = Signal(draw.choose(*Signal)), draw.choose("alone", "all") == "all"
    return lambda: SendSignal(one, name, NOW, spread=spread, sender=other)


def dies(draw: Draw, one: str, other: str, own: str) -> Make:
    return lambda: WriteDeath(one, HOST, "test", NOW)


def adopts(draw: Draw, one: str, other: str, own: str) -> Make:
    return lambda: AdoptChild(one, other)


def stops_children(draw: Draw, one: str, other: str, own: str) -> Make:
    return lambda: StopChildren(one)


def supervises(draw: Draw, one: str, other: str, own: str) -> Make:
    policy = draw.choose("cascade", "stop", "reparent")
    return lambda: SetSupervision(one, policy=policy)


def renames(draw: Draw, one: str, other: str, own: str) -> Make:
    name = draw.choose("tea", "gum")
    return lambda: Rename(one, name)


def sends(draw: Draw, one: str, other: str, own: str) -> Make:
    return lambda: Send(one, other, "hello", NOW)


def prompts(draw: Draw, one: str, other: str, own: str) -> Make:
    return lambda: KeepPrompt(one, "do it", NOW, 0)


def reads(draw: Draw, one: str, other: str, own: str) -> Make:
    return lambda: Read(one, NOW)


def opens(draw: Draw, one: str, other: str, own: str) -> Make:
    return lambda: Open(one, 1, NOW)


def deletes(draw: Draw, one: str, other: str, own: str) -> Make:
    return lambda: Delete(one, 1)


def joins(draw: Draw, one: str, other: str, own: str) -> Make:
    return lambda: JoinGroup(one, "team", NOW)


def leaves(draw: Draw, one: str, other: str, own: str) -> Make:
    return lambda: LeaveGroup(one, "team")


def sends_to_all(draw: Draw, one: str, other: str, own: str) -> Make:
    return lambda: SendToGroup("team", None, "all", NOW)


def monitors(draw: Draw, one: str, other: str, own: str) -> Make:
    return lambda: MonitorAgent(one, other, NOW)


def demonitors(draw: Draw, one: str, other: str, own: str) -> Make:
    return lambda: Demonitor(one, other)


def writes_document(draw: Draw, one: str, other: str, own: str) -> Make:
    return lambda: WriteVersion("plan.md", "text", one, None, NOW)


def sets_timer(draw: Draw, one: str, other: str, own: str) -> Make:
    return lambda: SetTimer(one, other, "wake up", DUE, NOW, "mail")


def cancels_timer(draw: Draw, one: str, other: str, own: str) -> Make:
    return lambda: CancelTimer("a", 1)


def fires(draw: Draw, one: str, other: str, own: str) -> Make:
    return lambda: Fire(DueTimer("a", 1, DUE.due_at, "b"), NOW)


def grants(draw: Draw, one: str, other: str, own: str) -> Make:
    agent, sets = draw.choose("a", "c", "e"), draw.choose("more", "all") == "all"
    return lambda: Grant(agent, {"agents": 1}, sets=sets)


def limits(draw: Draw, one: str, other: str, own: str) -> Make:
    agent, most = draw.choose("a", "b", "d"), int(draw.choose("1", "2"))
    return lambda: SetBudget(agent, Budget(agents=most))


def touches(draw: Draw, one: str, other: str, own: str) -> Make:
    return lambda: Touch(one, NOW)


KINDS: Sequence[Kind] = (
    opens_turn, opens_turn, closes_turn, forks, forks, calls, calls, signals, signals, signals, dies, adopts,
    stops_children, supervises, renames, sends, sends, prompts, reads, opens, deletes, joins, leaves, sends_to_all,
    sends_to_all, monitors, demonitors, writes_document, touches, sets_timer, cancels_timer, fires, grants, limits,
)  # fmt: skip
"""What is drawn; what is there twice comes twice as often."""


def found(store: Store) -> None:
    """Agent 0 and six more; some are in a group, one monitors another, some have mail, one a timer and a budget."""
    plant(store, **PARENTS)

    units: list[Unit] = [JoinGroup(agent, "team", 1) for agent in ("a", "c", "d")]
    units += [MonitorAgent("c", "b", 1), Send("a", "root", "one", 1), Send("b", None, "two", 1)]
    units += [SetTimer("a", "b", "wake up", DUE, 1, "mail"), SetBudget("a", Budget(agents=2))]
    for unit in units:
        write_alone(store, unit)


def contents(store: Store) -> Mapping[str, list[Row]]:
    """All tables but those with the server's times."""

    def look(tx: Transaction) -> Mapping[str, list[Row]]:
        schema = tx.schema
        return {
            table: sorted((row for some in schema.scan(table, _compared(schema, table)) for row in some), key=repr)
            for table in sorted(schema.tables() - APART)
        }

    return store.read(look)


def _compared(schema: SchemaTransaction, table: str) -> list[str]:
    """The columns that are compared: a server has other shards, and its own clock for budgets."""
    return [name for name in schema.columns(table) if name != "shard" and (table, name) != ("budgets", "created_at")]
