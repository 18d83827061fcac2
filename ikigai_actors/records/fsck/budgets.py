"""The checks of fsck for budgets: the sums of a budget are those of its agents, and of the portions of hosts."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from ikigai_actors.records.agents.registry import AgentRecord
from ikigai_actors.records.budgets.budget import amount_text
from ikigai_actors.records.budgets.ceilings import MONEY
from ikigai_actors.records.fsck.invariants import Invariant, Note, Violation
from ikigai_actors.store.base import Transaction


class _Hold(NamedTuple):
    agent: str
    tokens: int
    usd: int
    host: str | None


class _Limit(NamedTuple):
    budget: str
    unit: str
    granted: int
    base: int
    used: int
    risk: int


class _Portion(NamedTuple):
    budget: str
    unit: str
    host: str
    allotted: int
    held: int
    spent: int
    risk: int


def check_budgets(tx: Transaction, records: Mapping[str, AgentRecord]) -> Iterator[Violation]:
    """Return the faults of budgets, from all of their rows."""
    above = {owner: (over, bool(strict)) for owner, over, strict in tx.run("all_budgets")}
    roots = [record.uuid for record in records.values() if record.parent_uuid is None]
    if len(roots) != 1:
        return
    standing = [*_standing(above, roots, records)]
    yield from standing
    if standing:
        return  # what follows is judged by the chains
    chains = {uuid: _chain(above, record.budget or roots[0]) for uuid, record in records.items()}
    holds = [_Hold._make(row) for row in tx.run("open_holds")]
    limits = {(limit.budget, limit.unit): limit for limit in (_Limit._make(row) for row in tx.run("all_limits"))}
    portions = [_Portion._make(row) for row in tx.run("all_portions")]
    yield from _held(holds, chains, limits, portions, records)
    yield from _spent(records, chains, limits, portions)
    yield from _strict(above, limits, portions)
    yield from _pauses(tx, records, {hold.agent for hold in holds})


def _standing(
    above: Mapping[str, tuple[str | None, bool]], roots: list[str], records: Mapping[str, AgentRecord]
) -> Iterator[Violation]:
    for owner, (over, _) in above.items():
        if owner not in records:
            yield Violation(Invariant.BUDGET, owner, "expected the owner of a budget to exist, there is no such agent")
        elif (over is None) != (owner in roots):
            yield Violation(Invariant.BUDGET, owner, "expected agent 0 alone to have no budget above its own")
        elif roots[0] in above and _chain(above, owner)[-1:] != roots:
            yield Violation(Invariant.BUDGET, owner, "expected the budgets above this one to lead to agent 0")
    for record in records.values():
        if record.parent_uuid is None and record.uuid not in above:
            yield Violation(Invariant.BUDGET, record.uuid, "expected agent 0 to have a budget")
        if record.budget is not None and record.budget not in above:
            yield Violation(Invariant.BUDGET, record.uuid, f"expected budget {record.budget} to exist, it does not")


def _chain(above: Mapping[str, tuple[str | None, bool]], budget: str) -> list[str]:
    """Return a budget and the budgets above it. If they form a circle, the list ends where it closes."""
    chain: list[str] = []
    current: str | None = budget
    while current is not None and current in above and current not in chain:
        chain.append(current)
        current = above[current][0]
    return chain


def _held(
    holds: list[_Hold],
    chains: Mapping[str, list[str]],
    limits: Mapping[tuple[str, str], _Limit],
    portions: list[_Portion],
    records: Mapping[str, AgentRecord],
) -> Iterator[Violation]:
    wanted: Counter[tuple[str, str, str]] = Counter()
    for hold in holds:
        record = records[hold.agent]
        if not record.living or hold.host is None:
            text = "expected only a living agent to hold what a request may cost, at a host"
            yield Violation(Invariant.HOLD, hold.agent, text)
        for budget in chains[hold.agent]:
            wanted[budget, "tokens", hold.host or ""] += hold.tokens
            wanted[budget, "usd", hold.host or ""] += hold.usd
    there = {(portion.budget, portion.unit, portion.host): portion.held for portion in portions}
    for key in sorted({*wanted, *there}):
        if key[:2] in limits and wanted[key] != there.get(key, 0):
            text = f"expected host {key[2]} to hold {wanted[key]} {key[1]}, as its agents do; got {there.get(key, 0)}"
            yield Violation(Invariant.HOLD, key[0], text)


def _spent(
    records: Mapping[str, AgentRecord],
    chains: Mapping[str, list[str]],
    limits: Mapping[tuple[str, str], _Limit],
    portions: list[_Portion],
) -> Iterator[Violation]:
    below: dict[tuple[str, str], int] = defaultdict(int)
    for uuid, record in records.items():
        for budget in chains[uuid]:
            below[budget, "tokens"] += record.spent_tokens
            below[budget, "usd"] += record.spent_usd
            if budget != uuid:
                below[budget, "agents"] += record.living
    counted: dict[tuple[str, str], int] = defaultdict(int)
    for portion in portions:
        counted[portion.budget, portion.unit] += portion.spent
    for (budget, unit), limit in limits.items():
        if unit not in (*MONEY, "agents"):
            continue
        wanted, got = below[budget, unit] - limit.base, counted[budget, unit] + limit.used
        if wanted != got:
            text = f"expected its agents to have used {got} {unit}, as the budget counts; they have used {wanted}"
            yield Violation(Invariant.SPENDING, budget, text)


def _strict(
    above: Mapping[str, tuple[str | None, bool]],
    limits: Mapping[tuple[str, str], _Limit],
    portions: list[_Portion],
) -> Iterator[Violation]:
    for (budget, unit), limit in limits.items():
        if not above[budget][1] or unit not in MONEY:
            continue
        own = [portion for portion in portions if (portion.budget, portion.unit) == (budget, unit)]
        beyond = limit.risk + sum(portion.risk for portion in own)  # nobody could hold that: it was reported afterwards
        if (taken := limit.used + sum(portion.held + portion.spent for portion in own)) > limit.granted + beyond:
            yield Violation(Invariant.STRICT, budget, f"expected at most {limit.granted + beyond} {unit}, got {taken}")
        elif (allotted := limit.used + sum(portion.allotted for portion in own)) > limit.granted + beyond:
            text = f"expected at most {limit.granted + beyond} {unit} to be allotted to hosts, got {allotted}"
            yield Violation(Invariant.STRICT, budget, text)


def note_budgets(tx: Transaction) -> Iterator[Note]:
    """Return notes on strict budgets of which providers have counted more than the limit."""
    risks: Counter[tuple[str, str]] = Counter()
    for limit in map(_Limit._make, tx.run("all_limits")):
        risks[limit.budget, limit.unit] += limit.risk
    for portion in map(_Portion._make, tx.run("all_portions")):
        risks[portion.budget, portion.unit] += portion.risk
    strict = {owner for owner, _, is_strict in tx.run("all_budgets") if is_strict}
    for (budget, unit), beyond in risks.items():
        if beyond and budget in strict:
            text = (
                f"providers have reported {amount_text(unit, beyond)} more than they were allowed; all of it is counted"
            )
            yield Note(budget, text)


def _pauses(tx: Transaction, records: Mapping[str, AgentRecord], holding: set[str]) -> Iterator[Violation]:
    numbers: set[tuple[str, int]] = set()
    for agent, budget, number, turn, latest in tx.run("all_pauses"):
        record = records.get(agent)
        if record is None or not record.living or not record.turn or agent in holding:
            text = f"expected who waits for a budget to live, in its turn {turn}, and to hold nothing"
            yield Violation(Invariant.PAUSE, agent, text)
        if (budget, number) in numbers or not 0 < number <= latest:
            yield Violation(Invariant.PAUSE, agent, f"expected a number of its own, up to {latest}; got {number}")
        numbers.add((budget, number))
