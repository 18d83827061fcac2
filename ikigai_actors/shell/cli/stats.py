"""The figures of a database as lines, as JSON, and as spending by label."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from typing import Any

from ikigai_actors.reach.statistics import SHOWN, SPENT_NOTHING, Figures, busiest, dearest, is_counted
from ikigai_actors.records.budgets.budget import BudgetStatus
from ikigai_actors.records.budgets.spendings import Spending
from ikigai_actors.system.remote.client import Client
from ikigai_actors.verbs.text.budgets import budget_lines, cost_text
from ikigai_actors.verbs.text.colours import Coloured, Meaning, coloured
from ikigai_actors.verbs.text.harmless import as_json, one_line
from ikigai_actors.verbs.text.naming import name_by_uuid


def as_lines(figures: Figures) -> Iterator[Coloured]:
    """Yield a line for each figure."""
    rows: dict[str, Any] = {
        "database": figures.database,
        "host": figures.host or "none: no process runs these agents",
        "agents": ", ".join(f"{count} {status}" for status, count in figures.agents.items()),
        "turns": f"{figures.turns} open",
        "messages": _about(figures.messages),
        **({"spent": _cost_text([figures.spent_in_all])} if any(figures.spent_in_all.values()) else {}),
        "mail": f"{_about(figures.mails)}, {figures.unread} unread",
        "prompts": f"{figures.prompts} not taken up",
        "documents": f"{figures.documents}, {figures.versions} versions",
        "restarts": figures.restarts,
        "hosts": f"{figures.hosts} so far",
    }
    if figures.tokens is not None:
        taken, sent = (sum(used[which] for used in figures.tokens.values()) for which in ("input", "output"))
        rows["tokens"] = f"{taken} in, {sent} out"
    costly = dearest(figures)
    for title, text in rows.items():
        yield coloured(f"{title:<10} ", *_marked(figures, title, str(text)))
        for agent, cost in costly if title == "spent" else ():
            own = _cost_text([figures.spent.get(agent, SPENT_NOTHING)])
            below = f", with all below it {_cost_text([cost])}" if agent in figures.branches else ""
            yield coloured(f"{'':10} {_named(figures, agent)} {own}{below}")
        for fields in (
            figures.budgets[:SHOWN] if title == "spent" or (title == "messages" and "spent" not in rows) else ()
        ):
            budget = BudgetStatus(**fields)
            _, *limits = map(str.strip, budget_lines(budget, budget.owner))
            yield coloured(f"{'budget':<10} {_named(figures, budget.owner)} {'; '.join(limits)}")
    for agent, used in busiest(figures):
        yield coloured(f"{'':10} {_named(figures, agent)} {used['input']} in, {used['output']} out")


def _about(number: int) -> str:
    """Return a number of rows as text; an estimate is rounded to three digits."""
    return str(number) if is_counted(number) else f"about {round(number, 3 - len(str(number))):,}"


def _marked(figures: Figures, title: str, text: str) -> Iterator[tuple[str, Meaning | None]]:
    """Yield the parts of a row's text, each with its meaning."""
    match title:
        case "agents":
            means = {"stopped": Meaning.PERSON, "dead": Meaning.PAST}
            for place, (status, count) in enumerate(figures.agents.items()):
                yield ", " if place else "", None
                yield f"{count} {status}", means.get(status) if count else None
        case "host":
            yield text, None if figures.host else Meaning.PERSON
        case "prompts":
            yield text, Meaning.PERSON if figures.prompts and not figures.host else None
        case "restarts":
            yield text, Meaning.FAILURE if figures.restarts else None
        case _:
            yield text, None


def as_object(figures: Figures | Mapping[str, Spending]) -> str:
    """Return the figures, or the spending by label, as a JSON object."""
    rows = (
        {value: asdict(spending) for value, spending in figures.items()}
        if isinstance(figures, Mapping)
        else asdict(figures)
    )
    return as_json(rows, indent=2)


def read_spending(database: str | None, by: str, since: str | None) -> dict[str, Spending]:
    """Return the amounts spent, by the value of a label. Raises what `Client.open` does, and `BadInput`."""
    with Client.open(database) as client:
        return client.spending_by(by, since)


def spending_lines(by: str, spendings: Mapping[str, Spending]) -> Iterator[str]:
    """Yield a line for each value of a label, the most expensive first."""
    if not spendings:
        yield "Nothing was spent."
    dearest = sorted(spendings.items(), key=lambda pair: (-pair[1].usd, -pair[1].tokens, pair[0]))
    rows = [(one_line(value) if value else f"no {by}", spending) for value, spending in dearest]
    width = max((len(named) for named, _ in rows), default=0)
    for named, spending in rows:
        cost = _cost_text([{"tokens": spending.tokens, "usd": spending.usd}])
        yield f"{named:<{width}}  {cost}, {spending.requests:,} request{'' if spending.requests == 1 else 's'}"


def _named(figures: Figures, agent: str) -> str:
    return figures.names.get(agent) or name_by_uuid(agent)


def _cost_text(costs: Iterable[Mapping[str, float]]) -> str:
    """Return the sum of costs as text for people; without dollars if nothing had a price."""
    all_of_them = list(costs)
    tokens = round(sum(row["tokens"] for row in all_of_them))
    return cost_text(tokens, round(sum(row["usd"] for row in all_of_them) * 1_000_000))
