"""The figures of a database, as another process reads them."""

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


def as_lines(found: Figures) -> Iterator[Coloured]:
    """A line for each thing that is counted."""
    rows: dict[str, Any] = {
        "database": found.database,
        "host": found.host or "none: no process runs these agents",
        "agents": ", ".join(f"{count} {status}" for status, count in found.agents.items()),
        "turns": f"{found.turns} open",
        "messages": _about(found.messages),
        **({"spent": _cost_text([found.spent_in_all])} if any(found.spent_in_all.values()) else {}),
        "mail": f"{_about(found.mails)}, {found.unread} unread",
        "prompts": f"{found.prompts} not taken up",
        "documents": f"{found.documents}, {found.versions} versions",
        "restarts": found.restarts,
        "hosts": f"{found.hosts} so far",
    }
    if found.tokens is not None:
        taken, given = (sum(used[which] for used in found.tokens.values()) for which in ("input", "output"))
        rows["tokens"] = f"{taken} in, {given} out"
    costly = dearest(found)
    for title, text in rows.items():
        yield coloured(f"{title:<10} ", *_marked(found, title, str(text)))
        for agent, cost in costly if title == "spent" else ():
            own = _cost_text([found.spent.get(agent, SPENT_NOTHING)])
            below = f", with all below it {_cost_text([cost])}" if agent in found.branches else ""
            yield coloured(f"{'':10} {_named(found, agent)} {own}{below}")
        for one in found.budgets[:SHOWN] if title == "spent" or (title == "messages" and "spent" not in rows) else ():
            budget = BudgetStatus(**one)
            _, *limits = map(str.strip, budget_lines(budget, budget.owner))
            yield coloured(f"{'budget':<10} {_named(found, budget.owner)} {'; '.join(limits)}")
    for agent, used in busiest(found):
        yield coloured(f"{'':10} {_named(found, agent)} {used['input']} in, {used['output']} out")


def _about(number: int) -> str:
    """A number of rows: to three digits where it is an estimate."""
    return str(number) if is_counted(number) else f"about {round(number, 3 - len(str(number))):,}"


def _marked(found: Figures, title: str, text: str) -> Iterator[tuple[str, Meaning | None]]:
    """The text of a row, and what its parts mean."""
    match title:
        case "agents":
            means = {"stopped": Meaning.PERSON, "dead": Meaning.PAST}
            for place, (status, count) in enumerate(found.agents.items()):
                yield ", " if place else "", None
                yield f"{count} {status}", means.get(status) if count else None
        case "host":
            yield text, None if found.host else Meaning.PERSON
        case "prompts":
            yield text, Meaning.PERSON if found.prompts and not found.host else None
        case "restarts":
            yield text, Meaning.FAILURE if found.restarts else None
        case _:
            yield text, None


def as_object(found: Figures | Mapping[str, Spending]) -> str:
    """The same as a JSON object."""
    given = {value: asdict(one) for value, one in found.items()} if isinstance(found, Mapping) else asdict(found)
    return as_json(given, indent=2)


def read_spending(database: str | None, by: str, since: str | None) -> dict[str, Spending]:
    """The amounts spent, by the value of a label. Raises what `Client.open` does, and `BadInput`."""
    with Client.open(database) as client:
        return client.spending_by(by, since)


def spending_lines(by: str, found: Mapping[str, Spending]) -> Iterator[str]:
    """A line for each value of a label, the dearest first."""
    if not found:
        yield "Nothing was spent."
    dearest = sorted(found.items(), key=lambda pair: (-pair[1].usd, -pair[1].tokens, pair[0]))
    rows = [(one_line(value) if value else f"no {by}", one) for value, one in dearest]
    width = max((len(named) for named, _ in rows), default=0)
    for named, one in rows:
        cost = _cost_text([{"tokens": one.tokens, "usd": one.usd}])
        yield f"{named:<{width}}  {cost}, {one.requests:,} request{'' if one.requests == 1 else 's'}"


def _named(found: Figures, agent: str) -> str:
    """The name of an agent for people."""
    return found.names.get(agent) or name_by_uuid(agent)


def _cost_text(costs: Iterable[Mapping[str, float]]) -> str:
    """The sum of costs, as people read it; without dollars where nothing had a price."""
    all_of_them = list(costs)
    tokens = round(sum(one["tokens"] for one in all_of_them))
    return cost_text(tokens, round(sum(one["usd"] for one in all_of_them) * 1_000_000))
