"""The tree of agents in the jar, the units that are drawn for its sessions, and what a run has left in the tables."""

import random
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from ikigai_actors.records.agents.registry import Rename, Touch
from ikigai_actors.records.budgets.budget import Budget
from ikigai_actors.records.budgets.grants import Grant
from ikigai_actors.records.budgets.limits import SetBudget
from ikigai_actors.records.documents import WriteVersion
from ikigai_actors.records.lives.deaths import WriteDeath
from ikigai_actors.records.lives.membership import Demonitor, JoinGroup, LeaveGroup, MonitorAgent, SendToGroup
from ikigai_actors.records.lives.moves import MoveBranch
from ikigai_actors.records.lives.signals import SendSignal, SignalByAgent
from ikigai_actors.records.lives.supervision import AdoptChild, SetGroupSupervision, SetSupervision, StopChildren
from ikigai_actors.records.log.append import Append, AppendCall, FencingToken
from ikigai_actors.records.log.log_unit import Birth, LogUnit
from ikigai_actors.records.mail.mail import Delete, Open, Read, Send
from ikigai_actors.records.mail.prompts import KeepPrompt
from ikigai_actors.records.mail.schedules import Appointment
from ikigai_actors.records.mail.timers import CancelTimer, DueTimer, Fire, SetTimer
from ikigai_actors.records.messages.messages import Message
from ikigai_actors.records.transfer.export import export_file
from ikigai_actors.records.transfer.format import RecordFile, read_file
from ikigai_actors.records.transfer.graft import DOCUMENTS, Import, ImportFile
from ikigai_actors.store.base import Row, SchemaTransaction, Store, Transaction
from ikigai_actors.store.hosts.shards import GiveShards
from ikigai_actors.store.migrations import ensure_schema
from ikigai_actors.store.sqlite.store import SQLiteStore
from ikigai_actors.store.unit import Unit, write_alone
from supervisors.signals import Signal
from supervisors.strategies import Strategy
from tests.kit.trees import HOST, append, change, fork, plant, says

PARENTS = {"a": "root", "b": "root", "c": "a", "d": "b", "e": "a", "f": "c"}
AGENTS = ("root", *PARENTS)

GROUPS = {"team": ("a", "c", "d", "e", "f"), "crew": ("b", "c", "d", "e", "f")}
"""The members of two groups at first. Mails to both lock many rows, and none waits for the other."""

APART = frozenset({"hosts", "listeners", "schema_version"})
"""Tables with the server's own times."""

OF_ITS_CLOCK = frozenset({("budgets", "created_at"), ("former", "until"), ("former", "value")})
"""Columns with the server's own times."""

ELSEWHERE = "elsewhere"
"""The host that has the shards which no session has."""

NOW = 5

STRAYS = 0.2
"""How likely a session writes as the host of any agent: it may have come there."""

DUE = Appointment(4, None, "UTC")
"""When a timer fires: it is due."""

PAIRED = 0.8
"""How likely a run has two kinds of units alone."""

Make = Callable[[], Unit]
"""Makes a unit: each run needs one of its own."""


class Draw:
    """Draws units, so that they collide. Each session is a host; it mostly writes to the logs of its own agents.

    A run has some of the kinds only, so that these meet more often. Most have two, of which one locks what the other
    changes.
    """

    def __init__(self, seed: int, sessions: int) -> None:
        self._random, self._sessions = random.Random(seed), sessions
        pair, some = self._random.choice(PAIRS), self._random.sample(KINDS, self._random.randint(3, 9))
        self._kinds = pair if self._random.random() < PAIRED else some
        self._heads = dict.fromkeys(AGENTS, 0)
        self._born = 0
        self.session = 0
        """Whose unit is drawn."""

    def unit(self, session: int) -> tuple[str, Make]:
        """A unit for a session, with words for it."""
        self.session = session
        kind = self._random.choice(self._kinds)
        first, other = self._random.sample(AGENTS, 2)
        theirs = AGENTS if self._random.random() < STRAYS else agents_of(session, self._sessions)
        return f"{kind.__name__} {first} {other}", kind(self, first, other, self._random.choice(theirs))

    @property
    def host(self) -> str:
        """The host that the session is."""
        return host_of(self.session)

    @property
    def fence(self) -> FencingToken:
        """With which the session writes."""
        return FencingToken(self.host, 1)

    def taker(self) -> str:
        """A host to which agents move."""
        return host_of(self._random.randrange(self._sessions))

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


def host_of(session: int) -> str:
    """The host that a session is."""
    return f"host {session + 1}"


def agents_of(session: int, sessions: int) -> Sequence[str]:
    """The agents that a session runs at first."""
    return AGENTS[session::sessions]


Kind = Callable[[Draw, str, str, str], Make]


def opens_turn(draw: Draw, agent: str, other: str, own: str) -> Make:
    place, fence = draw.place(own), draw.fence
    return lambda: Append(LogUnit(own, says(own, place), turn=place), fence)


def closes_turn(draw: Draw, agent: str, other: str, own: str) -> Make:
    place, fence = draw.place(own), draw.fence
    return lambda: Append(LogUnit(own, says(own, place), turn=0), fence)


def forks(draw: Draw, agent: str, other: str, own: str) -> Make:
    place, child, fence = draw.place(own), draw.child(), draw.fence
    name = draw.choose("tea", "gum", child)
    born = says(child, place, kind="fork")
    birth = Birth(child, name, own, place - 1, 0, "transient", NOW, born, place)
    return lambda: Append(LogUnit(own, says(own, place, kind="fork"), births=(birth,)), fence)


def calls(draw: Draw, agent: str, other: str, own: str) -> Make:
    place, fence, acts, group = draw.place(own), draw.fence, draw.choose("kill", "send", "group"), draw.choose(*GROUPS)

    def act() -> Unit:
        if acts == "kill":
            return SignalByAgent(agent, own, NOW, "because", spread=False)
        return Send(agent, own, "by a call", NOW) if acts == "send" else SendToGroup(group, own, "all", NOW)

    return lambda: AppendCall(own, act(), lambda answer: Message(own, place, "note", "done", {}, NOW), fence)


def signals(draw: Draw, agent: str, other: str, own: str) -> Make:
    name, spread = Signal(draw.choose(*Signal)), draw.choose("alone", "all") == "all"
    return lambda: SendSignal(agent, name, NOW, spread=spread, sender=other)


def kills(draw: Draw, agent: str, other: str, own: str) -> Make:
    top = draw.choose("a", "b", "c")
    return lambda: SendSignal(top, Signal.KILL, NOW, spread=True, sender=None)


def dies(draw: Draw, agent: str, other: str, own: str) -> Make:
    host = draw.host
    return lambda: WriteDeath(own, host, "test", NOW)


def adopts(draw: Draw, agent: str, other: str, own: str) -> Make:
    return lambda: AdoptChild(agent, other, 9)


def stops_children(draw: Draw, agent: str, other: str, own: str) -> Make:
    return lambda: StopChildren(agent, 9)


def supervises(draw: Draw, agent: str, other: str, own: str) -> Make:
    policy, strategy = draw.choose("cascade", "stop", "reparent"), Strategy(draw.choose(*Strategy))
    kind = SetSupervision if strategy is Strategy.ONE_FOR_ONE else SetGroupSupervision
    return lambda: kind(agent, NOW, policy=policy, strategy=strategy)


def renames(draw: Draw, agent: str, other: str, own: str) -> Make:
    name = draw.choose("tea", "gum")
    return lambda: Rename(agent, name, 9)


def sends(draw: Draw, agent: str, other: str, own: str) -> Make:
    return lambda: Send(agent, other, "hello", NOW)


def prompts(draw: Draw, agent: str, other: str, own: str) -> Make:
    return lambda: KeepPrompt(agent, "do it", NOW, 0)


def reads(draw: Draw, agent: str, other: str, own: str) -> Make:
    return lambda: Read(agent, NOW)


def opens(draw: Draw, agent: str, other: str, own: str) -> Make:
    return lambda: Open(agent, 1, NOW)


def deletes(draw: Draw, agent: str, other: str, own: str) -> Make:
    return lambda: Delete(agent, 1)


def joins(draw: Draw, agent: str, other: str, own: str) -> Make:
    group = draw.choose(*GROUPS)
    return lambda: JoinGroup(agent, group, NOW)


def leaves(draw: Draw, agent: str, other: str, own: str) -> Make:
    group = draw.choose(*GROUPS)
    return lambda: LeaveGroup(agent, group, 9)


def sends_to_all(draw: Draw, agent: str, other: str, own: str) -> Make:
    group = draw.choose(*GROUPS)
    return lambda: SendToGroup(group, None, "all", NOW)


def monitors(draw: Draw, agent: str, other: str, own: str) -> Make:
    return lambda: MonitorAgent(agent, other, NOW)


def demonitors(draw: Draw, agent: str, other: str, own: str) -> Make:
    return lambda: Demonitor(agent, other)


def writes_document(draw: Draw, agent: str, other: str, own: str) -> Make:
    return lambda: WriteVersion("plan.md", "text", agent, None, NOW)


def sets_timer(draw: Draw, agent: str, other: str, own: str) -> Make:
    return lambda: SetTimer(agent, other, "wake up", DUE, NOW, "mail")


def cancels_timer(draw: Draw, agent: str, other: str, own: str) -> Make:
    return lambda: CancelTimer("a", 1, 9)


def fires(draw: Draw, agent: str, other: str, own: str) -> Make:
    return lambda: Fire(DueTimer("a", 1, DUE.due_at, "b"), NOW)


def grants(draw: Draw, asker: str, other: str, own: str) -> Make:
    agent, sets = draw.choose("a", "c", "e"), draw.choose("more", "all") == "all"
    return lambda: Grant(agent, {"agents": 1}, sets=sets)


def limits(draw: Draw, asker: str, other: str, own: str) -> Make:
    agent, most = draw.choose("a", "b", "d"), int(draw.choose("1", "2"))
    return lambda: SetBudget(agent, Budget(agents=most))


def touches(draw: Draw, agent: str, other: str, own: str) -> Make:
    return lambda: Touch(agent, NOW)


def moves(draw: Draw, agent: str, other: str, own: str) -> Make:
    host, taker = draw.host, draw.taker()
    return lambda: MoveBranch(own, host, taker)


def gives_shard(draw: Draw, agent: str, other: str, own: str) -> Make:
    shard, host, taker = draw.session, draw.host, draw.taker()
    return lambda: GiveShards((shard,), host, taker, lambda: (own,))


def imports(draw: Draw, agent: str, other: str, own: str) -> Make:
    file = ImportFile.of(exported(), draw.choose(*DOCUMENTS), stopped=draw.choose("stopped", "as it is") == "stopped")
    host, made = draw.host, draw.child()
    return lambda: Import(file, own, host, NOW, random.Random(made).randbytes)


KINDS: Sequence[Kind] = (
    opens_turn, opens_turn, closes_turn, forks, forks, calls, calls, signals, signals, signals, kills, dies, adopts,
    stops_children, supervises, renames, sends, sends, prompts, reads, opens, deletes, joins, leaves, sends_to_all,
    sends_to_all, monitors, demonitors, writes_document, touches, sets_timer, cancels_timer, fires, grants, limits,
    moves, moves, gives_shard, imports, imports,
)  # fmt: skip
"""What is drawn; what is there twice comes twice as often."""

PAIRS: Sequence[Sequence[Kind]] = (
    (forks, kills), (forks, kills), (forks, moves), (moves, signals), (imports, moves),
    (sends_to_all, sends), (sends_to_all, calls), (sends_to_all, calls),
)  # fmt: skip
"""Kinds of which one changes what the other one locks: the tree, and many rows at once."""


def begin(store: Store, sessions: int) -> None:
    """Agent 0 and six more; most are in two groups, one monitors another, some have mail, one a timer and a budget.

    Each session is a host with one shard, which has the number of the session, and lives there with some agents.
    """
    plant(store, **PARENTS)
    for place, agent in enumerate(PARENTS, -len(PARENTS)):
        change(store, agent, f"born = {place}")  # no two in one place, or their order would be any
    store.write(lambda tx: _settle(tx, sessions))
    units: list[Unit] = [JoinGroup(agent, group, 1) for group, agents in GROUPS.items() for agent in agents]
    units += [MonitorAgent("c", "b", 1), Send("a", "root", "one", 1), Send("b", None, "two", 1)]
    units += [SetTimer("a", "b", "wake up", DUE, 1, "mail"), SetBudget("a", Budget(agents=3))]
    for unit in units:
        write_alone(store, unit)


def _settle(tx: Transaction, sessions: int) -> None:
    shards = [shard for shard, _ in tx.run("shards")]
    for host in (*map(host_of, range(1, sessions)), ELSEWHERE):
        tx.run("register_host", id=host, hostname="here", pid=1, lease=0)
    for session in range(1, sessions):
        tx.run("give_shards", shards=[str(session)], host=HOST, to=host_of(session))
    for session in range(sessions):
        tx.run("move_agents", uuids=list(agents_of(session, sessions)), shard=session)
    tx.run("give_shards", shards=[str(shard) for shard in shards if shard >= sessions], host=HOST, to=ELSEWHERE)


@cache
def exported() -> RecordFile:
    """An agent with a child, some mail and a document, as the file of another database has them."""
    top, below = ("a" * 21 + "A", "b" * 21 + "A")
    with closing(SQLiteStore(None, now_ms=lambda: 9)) as store, TemporaryDirectory() as made:
        ensure_schema(store)
        plant(store)
        units: Sequence[Unit] = (
            append("root", 1), fork("root", top, 2, name="tea"), append(top, 3), fork(top, below, 4, name="gum"),
            Send(below, top, "hello", 2), WriteVersion("plan.md", "another text", top, None, 2),
        )  # fmt: skip
        for unit in units:
            write_alone(store, unit)
        file = Path(made, "branch.jsonl")
        export_file(store, top, file, now=3)
        return RecordFile(file, tuple(read_file(file)))


def contents(store: Store) -> Mapping[str, list[Row]]:
    """All tables but those with the server's times, and all shards but those elsewhere, of which a server has more."""

    def look(tx: Transaction) -> Mapping[str, list[Row]]:
        schema = tx.schema
        return {
            table: sorted(
                (row for some in schema.scan(table, _compared(schema, table)) for row in some if ELSEWHERE not in row),
                key=repr,
            )
            for table in sorted(schema.tables() - APART)
        }

    return store.read(look)


def _compared(schema: SchemaTransaction, table: str) -> list[str]:
    """The columns that are compared: a server has its own clock for budgets."""
    return [name for name in schema.columns(table) if (table, name) not in OF_ITS_CLOCK]
