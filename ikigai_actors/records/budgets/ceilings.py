"""The arithmetic of budgets: what is left, what a request may reserve, which notices are due. Pure.

A `Level` is one budget of a chain, with its limits and the known portions of hosts. The free part of a limit is the
granted amount without the amounts spent or held in any portion. The free part of a portion is the allotted amount
without the amounts spent or held in it. The free parts of a limit's portions are together at most the free part of the
limit.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ikigai_actors.records.budgets.amounts import LEAST_OUTPUT, Amount, Held, Need, affordable
from ikigai_actors.records.budgets.budget import amount_text

MONEY = ("tokens", "usd")
"""The units of which each host has a portion."""

LINE = 80
"""The percentage of a limit at which the owner of the budget gets a notice."""

NOTIFIED_NEARLY, NOTIFIED_PAUSE = 1, 2
"""The notices about a limit that the owner has got."""

SLOT_TIME = 60_000
"""The milliseconds after which a request does not count for the rate any more; also if the clock was set back."""


@dataclass(slots=True)
class BudgetLimit:
    """A row of table ``limits``: one limit of a budget."""

    granted: int
    used: int = 0
    risk: int = 0
    notified: int = 0
    changed: bool = False


@dataclass(slots=True)
class Portion:
    """A row of table ``portions``: the part of a limit that one host may spend."""

    allotted: int = 0
    held: int = 0
    spent: int = 0
    risk: int = 0
    """The amount that may have been spent in addition; for a strict budget, how much of it exceeds the reserved
    amount.
    """
    wanted: int = 0
    changed: bool = False

    @property
    def taken(self) -> int:
        """Return the amount that is reserved or spent."""
        return self.held + self.spent

    def book(self, held: int = 0, spent: int = 0, risk: int = 0) -> None:
        """Add these amounts to the portion."""
        if held or spent or risk:
            self.held, self.spent, self.risk, self.changed = (
                self.held + held,
                self.spent + spent,
                self.risk + risk,
                True,
            )


@dataclass(slots=True)
class Level:
    """One budget in the chain above an agent, with its limits and portions."""

    owner: str
    above: str | None = None
    strict: bool = False
    created_at: int = 0
    limits: dict[str, BudgetLimit] = field(default_factory=dict)
    portions: dict[tuple[str, str], Portion] = field(default_factory=dict)
    """The portions, by unit and host."""
    slot_due: int | None = None
    """The time when the next request is allowed, for a budget that limits requests a minute; None for now, or no such
    limit.
    """

    def of(self, unit: str) -> Iterable[Portion]:
        """Return the portions of the limit of a unit."""
        return (portion for (of, _), portion in self.portions.items() if of == unit)

    def portion(self, unit: str, host: str) -> Portion:
        """Return a host's portion of the limit of a unit. A missing portion is made."""
        if (unit, host) not in self.portions:
            wanted = max((portion.wanted for portion in self.portions.values()), default=0)
            self.portions[unit, host] = Portion(wanted=wanted, changed=True)
        return self.portions[unit, host]

    def spent(self, unit: str) -> int:
        """Return the amount that is spent of the limit of a unit."""
        return self.limits[unit].used + sum(portion.spent for portion in self.of(unit))

    def free(self, unit: str) -> int:
        """Return the amount that is left of the limit of a unit; negative when more was spent than it grants."""
        limit = self.limits[unit]
        return limit.granted - limit.used - sum(portion.taken for portion in self.of(unit))

    def beyond(self, held: int, spent: int) -> int:
        """Return by how much a request has cost more than was reserved for it; 0 unless the budget is strict.

        Under a strict budget this is an error of the provider.
        """
        return max(0, spent - held) if self.strict else 0

    @property
    def money(self) -> list[str]:
        """Return the units of the limits on tokens and dollars that the budget has."""
        return [unit for unit in MONEY if unit in self.limits]

    def nearly_used(self, unit: str) -> bool:
        """Return whether the used part of a limit has passed the line at which the owner gets a notice.

        False after the notice.
        """
        limit = self.limits[unit]
        return not limit.notified and (limit.granted - self.free(unit)) * 100 >= limit.granted * LINE

    def want(self, wanted: bool) -> None:
        """Set in all portions whether this budget is to be checked again when an amount in it is freed."""
        for portion in self.portions.values():
            if portion.wanted != wanted:
                portion.wanted, portion.changed = int(wanted), True


def time_line(created_at: int, granted: int) -> int:
    """Return when the owner gets the notice that a time limit is nearly over, in milliseconds since 1970."""
    return created_at + granted * LINE // 100


Chain = Sequence[Level]
"""The budgets above an agent, agent 0's first."""


def is_strict(chain: Chain) -> bool:
    """Return whether a request under this chain must never cost more than is reserved for it."""
    return bool(chain) and any(level.strict for level in chain)


def whole(chain: Chain, need: Need) -> Held:
    """Return the amount to reserve for a request when all budgets in the chain have enough left."""
    strict = is_strict(chain)
    wanted = need.strict if strict else need.expected
    return _held(need, wanted, wanted.tokens, wanted.usd, wanted.output, strict)


def decide_hold(chain: Chain, need: Need, now: int) -> Held | tuple[Level, str]:
    """Decide the amount to reserve for a request, or find the first budget with too little left.

    Args:
        chain: the budgets above the agent, with the portions of all hosts.
        need: the need of the request.
        now: the time, in milliseconds since 1970.

    Returns:
        The reserved amount; or the budget, and the unit of which too little is left.
    """
    if need.is_nothing:
        return whole(chain, need)
    strict = is_strict(chain)
    wanted = need.strict if strict else need.expected
    for level in chain:
        if (unit := _short(level, need, wanted, strict, now)) is not None:
            return level, unit
    left = {unit: min((level.free(unit) for level in chain if unit in level.limits), default=None) for unit in MONEY}
    tokens, usd = left["tokens"], left["usd"]
    if not strict:
        held_tokens = wanted.tokens if tokens is None else min(wanted.tokens, tokens)
        held_usd = wanted.usd if usd is None else min(wanted.usd, usd)
        return _held(need, wanted, held_tokens, held_usd, max(0, held_tokens - wanted.input), strict)
    output = _output(wanted, tokens, usd)
    cut = wanted._replace(output=output)
    return _held(need, cut, cut.tokens, cut.usd, output, strict)


def _held(need: Need, wanted: Amount, tokens: int, usd: int, output: int, strict: bool) -> Held:
    if strict:
        return Held(need.at, tokens, usd, output, output)
    risk = max(0, need.strict.tokens - tokens), max(0, need.strict.usd - usd)
    return Held(need.at, tokens, usd, output, None, *risk)


def _output(wanted: Amount, tokens: int | None, usd: int | None) -> int:
    """Return the number of tokens to which a reply is cut, so that the left tokens and micro-dollars suffice."""
    output = wanted.output
    if tokens is not None:
        output = min(output, tokens - wanted.input)
    if usd is not None:
        output = affordable(usd - wanted.input_usd, wanted.output_price, output) if usd >= wanted.input_usd else 0
    return output


def _short(level: Level, need: Need, wanted: Amount, strict: bool, now: int) -> str | None:
    """Return the unit of which a budget has too little left for a request; None if it has enough."""
    if "ms" in level.limits and now >= level.created_at + level.limits["ms"].granted:
        return "ms"
    if level.slot_due is not None:
        return "requests"
    for unit in level.money:
        free, granted = level.free(unit), level.limits[unit].granted
        if free < 1:
            return unit
        if not strict:
            counting = wanted.least >= wanted.input
            if free < (wanted.least if unit == "tokens" else wanted.input_usd if counting else 1):
                return unit
            continue
        if unit == "usd" and level.strict and not need.priced:
            return unit
        tenth = granted // 10 if unit == "tokens" else affordable(granted // 10, wanted.output_price, LEAST_OUTPUT)
        least = max(1, need.thinking + 1 if need.thinking else 0, min(LEAST_OUTPUT, wanted.output, tenth))
        output = _output(wanted, free, None) if unit == "tokens" else _output(wanted, None, free)
        if output < least:
            return unit
    return None


def allot(level: Level, unit: str, host: str, amount: int, hosts: int) -> None:
    """Enlarge a host's portion of a limit, so that the host can reserve an amount that the limit still has.

    Below the line at which the owner gets a notice, the host gets more than it needs, so that its next requests need no
    other host. When nearly everything up to that line is allotted, the unused amounts of other hosts are taken back.
    Those hosts need not agree, because a host checks its portion whenever it uses it. Taken back earlier, amounts would
    only move between hosts that need them next.

    Args:
        level: the budget, with the portions of all hosts.
        unit: tokens or usd.
        amount: how much is to be held.
        hosts: how many hosts live.
    """
    own, limit = level.portion(unit, host), level.limits[unit]
    if own.allotted - own.taken >= amount:
        return
    least = own.taken + amount
    most = limit.granted if limit.notified else limit.granted * LINE // 100

    def spare() -> int:
        others = sum(max(portion.allotted, portion.taken) for portion in level.of(unit) if portion is not own)
        return most - limit.used - others - least

    if spare() < amount:
        for portion in level.of(unit):
            if portion is not own and portion.allotted > portion.taken:
                portion.allotted, portion.changed = portion.taken, True
    more = max(0, spare())
    own.allotted, own.changed = max(own.allotted, least + (more if hosts <= 1 else more // (2 * hosts))), True


class Owner(NamedTuple):
    """The owner of a budget, as a notice names it."""

    name: str
    """The name of the owner, as people type it."""
    is_root: bool
    """Whether the owner is agent 0, whose budget limits all agents."""

    def __str__(self) -> str:
        return "everybody" if self.is_root else self.name


def nearly_notice(level: Level, unit: str, owner: Owner) -> str:
    """Return the text of the notice that the limit of a unit is nearly used."""
    granted = amount_text(unit, level.limits[unit].granted)
    if unit == "ms":
        return f"{LINE} % of the {granted} of {owner} are over."
    return f"{LINE} % of the budget of {owner} is used: {amount_text(unit, level.spent(unit))} of {granted}."


def pause_notice(level: Level, unit: str, need: Need, owner: Owner, strict: bool, waits: bool = True) -> str:
    """Return the text of the notice that a request waits or is refused, with what to do.

    ``strict``: whether any budget of the chain is strict, so the request needs its highest possible cost.
    """
    shortage = _shortage(level, unit, need, owner, strict, waits)
    return f"{shortage} INT (Ctrl-C) ends the turn free of charge." if waits else shortage


def _shortage(level: Level, unit: str, need: Need, owner: Owner, strict: bool, waits: bool) -> str:
    then = "lets it go on" if waits else "lets it leave when it is asked for again"
    granted = amount_text(unit, level.limits[unit].granted)
    if unit == "ms":
        return f"The {granted} of {owner} are over. /budget {owner.name} +1h, or grant(seconds=...), {then}."
    if unit == "requests" and not level.limits[unit].granted:
        return (
            f"{owner} may make no requests. /budget {owner.name} +1requests, or grant(requests_per_minute=...), {then}."
        )
    if unit == "requests":
        again = "it goes on by itself" if waits else "ask again in a minute"
        return f"The {granted} of {owner} are made; {again}."
    more = "+5usd" if unit == "usd" else "+100000tokens"
    if unit == "usd" and not need.priced:
        return (
            f"The budget of {owner} is strict, and model {need.model!r} has no price: give it one in prices.toml, or "
            "use another model."
        )
    wanted = need.strict if strict else need.expected
    needed = amount_text(unit, wanted.tokens if unit == "tokens" else wanted.usd)
    held = sum(portion.held for portion in level.of(unit))
    spent = amount_text(unit, level.spent(unit))
    return (
        f"Too little is left of the {granted} of {owner} ({spent} spent, {amount_text(unit, held)} held; this request "
        f"needs {'up to' if strict else 'about'} {needed}). /budget {owner.name} {more}, or grant(), {then}."
    )
