"""The writes of an agent to its log, its turn and its children, which only the host that runs the agent may commit."""

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any, NamedTuple
from zlib import crc32

from ikigai_actors.errors import (
    AgentNotFound,
    AgentStopped,
    Fenced,
    NameTaken,
    StoreConflict,
)
from ikigai_actors.frozen import replace
from ikigai_actors.records.agents.registry import check_free, get, some
from ikigai_actors.records.agents.rules import check_rules, rules_for, write_rule
from ikigai_actors.records.agents.trees import ChildFiles, bear_trees, plan_trees
from ikigai_actors.records.budgets.amounts import NO_CHARGE, Charge, Held, Paused, Settled, whole_hold
from ikigai_actors.records.budgets.holds import keep_hold, pauses_of
from ikigai_actors.records.budgets.ledger import BudgetLedger, hearers
from ikigai_actors.records.budgets.limits import add_budget
from ikigai_actors.records.budgets.purse import Purse, Short
from ikigai_actors.records.budgets.spendings import keep_labels
from ikigai_actors.records.log.branches import check_branch
from ikigai_actors.records.log.chain import HashChain
from ikigai_actors.records.log.left import with_left
from ikigai_actors.records.log.lineage import check_unpruned
from ikigai_actors.records.log.log_unit import Birth, LogUnit
from ikigai_actors.records.log.merges import add_merge
from ikigai_actors.records.log.outside_events import events_of
from ikigai_actors.records.mail.asked import cancel_asked
from ikigai_actors.records.mail.prompts import take_prompt
from ikigai_actors.records.mail.words import check_words, take_words
from ikigai_actors.records.messages.blobs import write_blobs
from ikigai_actors.records.messages.definitions import Definitions
from ikigai_actors.records.messages.messages import Kind, Message
from ikigai_actors.records.messages.principals import principal_in
from ikigai_actors.records.outbox.events import post
from ikigai_actors.records.questions.questions import write_questions
from ikigai_actors.store.base import Transaction
from ikigai_actors.store.unit import Addressed, Around, Locked, LockedRows, RunAlone, TreeLock, Unit
from ikigai_actors.tools.rules.rule import Rules

FIRST_EPOCH = 1
"""The epoch of an agent at its birth."""


class FencingToken(NamedTuple):
    """The writer's token: the host that has the agent's shard, and the epoch of the agent. Stale tokens are refused."""

    host: str
    epoch: int


class CallAppended(NamedTuple):
    """The answer of an `AppendCall`: the result of its act, and the appended message that reports the result."""

    message: Message
    """The message that reports the act."""
    answer: Any
    """The answer of the act."""


class AppendCompleted(NamedTuple):
    """The answer of an `Append` whose unit was filled in within the transaction: the unit as it was written."""

    unit: LogUnit
    """The unit as it was written."""
    answer: Held | Paused | Settled | None
    """The answer about budgets; see `Append`."""


class AppendCall(Around):
    """Carry out an act of an agent, usually a call of its model, and append the message that reports it, in one unit.

    Answered with `CallAppended`. Raises the errors of the act.
    """

    __slots__ = ("_agent", "_fence", "_rules", "_to_message")

    def __init__(
        self,
        agent: str,
        act: Unit,
        to_message: Callable[[Any], Message],
        fence: FencingToken,
        rules: Rules | None = None,
    ) -> None:
        """Make the unit; ``to_message`` makes the message, given the answer of the act. For ``rules`` see `LogUnit`."""
        super().__init__(act)
        self._agent, self._to_message, self._fence, self._rules = agent, to_message, fence, rules

    @property
    def writer(self) -> str:
        return self._agent

    @property
    def touches(self) -> tuple[str, ...]:
        """Return the agent itself, and the agents that the act affects.

        For an act that locks the whole tree the agent itself is left out: no other host can take the agent away
        meanwhile, and such an act locks all its rows itself, in one statement.
        """
        return self._act.touches if self._act.tree is TreeLock.WHOLE else (self._agent, *self._act.touches)

    def write(self, tx: Transaction, locked: LockedRows) -> CallAppended:
        uuid = self._agent
        row = locked.get(uuid) or LockedRows(tx.run("look_at_agent", uuid=uuid)).existing(uuid)
        check_fence(tx, row, self._fence)
        if self._rules is not None:
            check_rules(tx, uuid, self._rules)
        try:
            answer = self._act.write(tx, locked)
        except RunAlone as alone:
            raise RunAlone(self.around(alone.unit)) from None
        message = self._to_message(answer)
        if message.created_at < tx.heard:  # the act has read what another clock stamped
            message = replace(message, created_at=tx.heard)
        tx.append(locked.part(HashChain, HashChain).link(tx, [message.row()], row.head_hash))
        locked.others.add(uuid)
        return CallAppended(message, answer)


class Append(Unit):
    """A `LogUnit` with its fencing token, as the journal commits it.

    Answered with the amount reserved for the next request (`Held`), or why that request waits (`Paused`); with
    `Settled` when another agent's request may go on now; usually with None. If the messages of births were completed,
    answered with `AppendCompleted`. Raises `BudgetExceeded` if the next request must wait but may not
    (`LogUnit.may_wait`).
    """

    __slots__ = (
        "_fence", "_planned", "_purse", "_rows", "_unit", "alone", "concerns_hosts", "concerns_others", "touches",
        "tree", "writer",
    )  # fmt: skip

    touches: tuple[str, ...]
    writer: str

    def __init__(self, unit: LogUnit, fence: FencingToken) -> None:
        """Encode the rows on the agent's worker, because all agents share the one thread of the journal."""
        self._unit = unit
        self._fence = fence
        self._rows = [message.row() for message in unit.messages]
        self.touches, self.writer = _touched(unit), unit.agent
        rules = unit.rule is not None
        # A merge looks at what another agent has written: that must be in the tables.
        self.alone = rules or unit.merged is not None
        self.tree = TreeLock.WHOLE if rules else TreeLock.SHARED if unit.births else TreeLock.NONE
        self.concerns_hosts = rules
        self.concerns_others = rules or unit.cancels

    def write(self, tx: Transaction, locked: LockedRows) -> Held | Paused | Settled | AppendCompleted | None:
        unit, rows = self._unit, self._rows
        row = locked.get(unit.agent) or locked.existing(unit.agent)
        check_fence(tx, row, self._fence)
        if unit.words:
            check_words(tx, unit.agent, unit.words)
        if unit.rules is not None:
            check_rules(tx, unit.agent, unit.rules)
        trees = plan_trees(tx, list(map(_files_of, unit.births)), unit.copied) if unit.copied else []
        charge = self._charge(row)
        spends = charge is not None or unit.need is not None or bool(unit.births)
        if spends:
            self._prepare(tx, locked, row, charge)
        if unit.merged is not None:
            add_merge(tx, locked, unit.agent, unit.merged)
        if unit.prompt:
            take_prompt(tx, unit.agent, unit.prompt, unit.messages[-1].created_at, ends=unit.turn == 0)
        if unit.rule is not None:
            write_rule(tx, unit.agent, unit.rule, unit.messages[-1].created_at, principal_in(unit.messages[-1]))
            unit = replace(unit, rules=rules_for(tx, unit.agent))
        if unit.births:
            if unit.inherited is not None and self._is_limited(row):
                unit = with_left(tx, unit)
                rows = [message.row() for message in unit.messages]
            _bear(tx, unit.births, row, self._is_counted(row))
            since = {birth.uuid: birth.fork_message_id for birth in unit.births}
            bear_trees(tx, unit.agent, trees, since, unit.births[0].created_at)
            locked.others.update(birth.uuid for birth in unit.births)
        answer = self._spend(row, charge) if spends else None
        if unit.unpaused and not isinstance(answer, Paused):
            tx.run("end_pauses", agents=[unit.agent])
        if charge is not None or isinstance(answer, Held):
            keep_hold(tx, row, charge, answer if isinstance(answer, Held) else None, self._fence.host, unit.turn)
        elif unit.turn is not None:
            tx.defer("set_turn", uuid=unit.agent, turn=unit.turn)
        if unit.cancels and (cancelled := cancel_asked(tx, unit.agent)):
            locked.others.update(cancelled)  # their hosts look
            unit = replace(unit)  # so that the answer says it
        if unit.resumed_at:
            tx.run("go_on_cut_off", uuid=unit.agent, at=0 if unit.rests else unit.resumed_at)
        if unit.words:
            take_words(tx, unit.agent, unit.words, unit.messages[-1].created_at)
        if unit.blobs:
            write_blobs(tx, unit.blobs)
        if unit.questions or unit.settled:
            write_questions(tx, unit.questions, unit.settled, unit.messages[-1].created_at)
        if unit.definitions:
            locked.part(Definitions, Definitions).keep(unit.definitions)
        if unit.labels:
            keep_labels(tx, unit.labels)
        chain = locked.part(HashChain, HashChain)
        rows = chain.link(tx, rows, row.head_hash)
        for birth in unit.births:
            first = [message.row() for message in birth.messages]
            tx.append(chain.bear(tx, birth.parent_uuid, birth.fork_message_id, first))
        tx.append(rows)
        if unit.spent:
            tx.append(unit.spent, "spendings")
        for event in events_of(unit, row.turn, answer if isinstance(answer, Paused) else None):
            post(tx, locked, event)
        return answer if unit is self._unit else AppendCompleted(unit, answer)

    def _charge(self, row: Locked) -> Charge | None:
        """Return the cost of the agent's open request; None when there is none, or it stays open."""
        unit = self._unit
        if not row.held_at:
            return None
        if unit.charge is not None:
            return unit.charge
        if unit.unpaused or (unit.need is not None and row.held_host != self._fence.host):
            return NO_CHARGE  # it has not left, or it goes on without its former host: `settle_left_behind`
        return whole_hold(row) if unit.turn is not None or unit.need is not None else None

    def look_ahead(self, tx: Transaction, locked: LockedRows, agents: Collection[str]) -> None:
        if self._unit.need is not None or self._unit.charge is not None or self._unit.births:
            self._own_purse(tx, locked, agents)

    def _own_purse(self, tx: Transaction, locked: LockedRows, agents: Collection[str]) -> Purse:
        return locked.part(Purse, partial(Purse, tx, self._fence.host, agents))

    def _prepare(self, tx: Transaction, locked: LockedRows, row: Locked, charge: Charge | None) -> None:
        """Check, before anything is written, whether this host's portions of the budgets suffice.

        Raises `RunAlone` if not.
        """
        self._purse = self._own_purse(tx, locked, locked)
        try:
            if self._unit.births:
                self._purse.bear(row.budget)
            self._planned = self._purse.plan(row, charge, self._unit.need)
        except Short:
            raise RunAlone(AppendAlone(self._unit, self._fence)) from None

    def _is_limited(self, row: Locked) -> bool:
        return bool(self._purse.chain(row.budget)) or any(birth.budget is not None for birth in self._unit.births)

    def _is_counted(self, row: Locked) -> bool:
        """Return whether a budget limits the number of living agents, so that a `Purse` is not enough."""
        return False

    def _spend(self, row: Locked, charge: Charge | None) -> Held | Paused | Settled | None:
        held, booked = self._planned
        freed = self._purse.book(booked, charge)
        if held is not None:
            return held._replace(freed=freed) if freed else held
        return Settled(freed) if freed else None


class AppendAlone(Append, Addressed):
    """An `Append` that locks all budgets above the agent, because the portions of this host are too small."""

    __slots__ = ("_hearers", "_ledger", "_waited")

    def __init__(self, unit: LogUnit, fence: FencingToken) -> None:
        super().__init__(unit, fence)
        self.alone = self.concerns_others = True

    def look_up(self, tx: Transaction) -> None:
        self._hearers = hearers(tx, [self._unit.agent])
        self.touches = (*_touched(self._unit), *(hearer.uuid for hearer in self._hearers.values()))

    def look_ahead(self, tx: Transaction, locked: LockedRows, agents: Collection[str]) -> None:
        """Do nothing, because the whole budgets are locked later, from the top."""

    def _prepare(self, tx: Transaction, locked: LockedRows, row: Locked, charge: Charge | None) -> None:
        if any(locked[hearer.uuid].status == "dead" for hearer in self._hearers.values()):
            raise RunAlone(AppendAlone(self._unit, self._fence))  # it has died since the look-up
        self._ledger = BudgetLedger(tx, locked, [row.budget], self._hearers)
        pauses = pauses_of(tx, [row.uuid]) if self._unit.unpaused else {}
        self._waited = pauses[row.uuid].budget if pauses else None
        if self._unit.births:
            self._ledger.bear(row.budget, len(self._unit.births))

    def _is_limited(self, row: Locked) -> bool:
        return True

    def _is_counted(self, row: Locked) -> bool:
        return any("agents" in level.limits for level in self._ledger.chain(row.budget))

    def _spend(self, row: Locked, charge: Charge | None) -> Held | Paused | Settled | None:
        ledger, freed = self._ledger, tuple[str, ...]()
        if charge is not None:
            ledger.settle_request(row, charge)
            freed = ledger.freed
        answer: Held | Paused | Settled | None = None
        if (need := self._unit.need) is not None:
            answer = ledger.place(row, need, self._fence.host, self._waited, self._unit.may_wait)
        ledger.write()
        notified = tuple(ledger.notified)
        if answer is None:
            return Settled(freed, notified) if freed or notified else None
        return answer._replace(freed=freed, notified=notified)


def _files_of(birth: Birth) -> ChildFiles:
    """Return the files with which a child begins: those of its parent, at its birth or at an earlier position."""
    is_at_head = birth.supervisor_uuid is None and birth.fork_message_id + 1 == birth.born
    effects = [message.data.get("effects") or {} for message in birth.messages if message.kind == Kind.CONFIGURE]
    at = None if is_at_head else birth.fork_message_id
    return ChildFiles(birth.uuid, birth.parent_uuid, at, any(effect.get("files") for effect in effects))


def _touched(unit: LogUnit) -> tuple[str, ...]:
    return (unit.agent,) if unit.merged is None else (unit.agent, unit.merged.child)


def check_fence(tx: Transaction, row: Locked, fence: FencingToken) -> None:
    """Refuse the write of a dead agent, of another host, or of an earlier epoch. Raises `Fenced`."""
    if row.status == "dead":
        why = get(tx, row.uuid).exit_reason or "no reason is known"
        raise Fenced(f"Agent {row.uuid} is dead: {why}; what it still did is dropped.", row.uuid, dead=True)
    if row.owner != fence.host or row.epoch != fence.epoch:
        raise Fenced(f"Agent {row.uuid} now belongs to another host; what it still did here is dropped.", row.uuid)


class StoppedBefore(AgentStopped):
    """The error when an agent that was to make children has been stopped meanwhile. Nothing was written.

    ``changed`` is the version of the tree after the stop.
    """

    def __init__(self, message: str, agent: str, changed: int) -> None:
        super().__init__(message, agent)
        self.changed = changed


def _bear(tx: Transaction, births: Sequence[Birth], parent: Locked, counted: bool) -> None:
    """Write the children's rows, all or none. ``counted``: whether a budget counts the living."""
    if parent.status != "running":
        why = f"Agent {parent.uuid} is {parent.status}: only a running agent forks. Continue it first."
        if parent.status == "stopped":
            [(changed,)] = tx.run("changed_at", uuid=parent.uuid)
            raise StoppedBefore(why, parent.uuid, changed)
        raise AgentStopped(why, parent.uuid)
    inherited = sorted({birth.parent_uuid for birth in births} - {parent.uuid})
    pruned = {record.uuid: record.pruned_at for record in some(tx, inherited)} if inherited else {}
    for uuid in inherited:
        if uuid not in pruned:
            raise AgentNotFound(f"There is no agent {uuid}.", uuid)
        check_unpruned(uuid, pruned[uuid])  # nobody prunes meanwhile, since births share the tree
    taken: set[str] = set()
    for name in (birth.name for birth in births if birth.name is not None):
        if name in taken:
            raise NameTaken(f"Two of the children are to be named {name!r}; choose another name.", name)
        taken.add(name)
        check_free(tx, name)
    if (limit := births[0].limit) is not None and (births[0].limit_is_set or not counted):
        check_branch(tx, parent.uuid, len(births), limit, births[0].limit_is_set)
    if len(births) > 1 and not taken:
        _register_unnamed(tx, births)
    else:
        _register(tx, births)
    for birth in births:
        if birth.labels:
            keep_labels(tx, birth.labels)
        if birth.budget is not None:
            add_budget(tx, birth.uuid, birth.parent_uuid, birth.budget, birth.created_at)


def _register(tx: Transaction, births: Sequence[Birth]) -> None:
    """Write the rows of children. If two transactions use a name at once, the database refuses the second one."""
    for place, birth in enumerate(births):
        if not tx.run("register", **_row_of(birth)):
            if place:  # a refusal leaves no trace
                tx.run("unregister", uuids=[sibling.uuid for sibling in births[:place]])
            if birth.name is not None:
                check_free(tx, birth.name)
            raise StoreConflict(f"There is an agent {birth.uuid} already.")


def _register_unnamed(tx: Transaction, births: Sequence[Birth]) -> None:
    """Write the rows of children, none of which has a name, in one go.

    This takes half of the time of `_register`, which waits for an answer of the database to each row.
    """
    if there := some(tx, [birth.uuid for birth in births]):
        raise StoreConflict(f"There is an agent {there[0].uuid} already.")
    tx.run_all("register", list(map(_row_of, births)))


def _row_of(birth: Birth) -> dict[str, Any]:
    return {
        "uuid": birth.uuid,
        "name": birth.name,
        "parent": birth.parent_uuid,
        "supervisor": birth.supervisor_uuid or birth.parent_uuid,
        "fork": birth.fork_message_id,
        "born": birth.born,
        "turn": birth.turn,
        "restart": birth.restart,
        "policy": birth.on_orphan,
        "now": birth.created_at,
        "epoch": FIRST_EPOCH,
        "budget": None if birth.budget is None else birth.uuid,
        "labels": birth.labels,
        "place": crc32(birth.uuid.encode()),
    }
