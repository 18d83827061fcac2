"""What a database holds, in figures, as another process reads them."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from ikigai_actors.providers.prices import MICRO
from ikigai_actors.records.budgets.budget import amount_text
from ikigai_actors.records.registry import AgentRecord
from ikigai_actors.records.replies import spent_of
from ikigai_actors.shell.text.harmless import as_json, harmless
from ikigai_actors.system.remote.client import Client

SHOWN = 10
"""Agents whose costs, and whose tokens, are shown as lines."""


@dataclass(frozen=True, slots=True)
class Figures:
    """What there is."""

    database: str
    host: str | None
    """Who runs the agents; None when nobody does."""
    agents: dict[str, int]
    """How many there are of each status."""
    turns: int
    """Turns that are open."""
    messages: int
    mails: int
    unread: int
    prompts: int
    """Prompts of other processes that no agent has taken up."""
    documents: int
    versions: int
    """Versions of documents, deletions too."""
    restarts: int
    hosts: int
    """Processes that have run these agents, one after another."""
    spent: dict[str, dict[str, float]]
    """By agent, dead ones too: the tokens and dollars (``usd``) that its requests and tools have cost in its life."""
    tokens: dict[str, dict[str, int]] | None = None
    """By agent: tokens in and out, as the providers reported them. None when they were not asked for."""


def read_figures(database: str | None, tokens: bool) -> Figures:
    """Read the figures; ``tokens`` reads every message.

    Raises what `Client.open` and `Client.spending` do.
    """
    with Client.open(database) as client:
        (records, own, hosts, _), counted = client.figures()
        statuses = Counter(record.status for record in records)
        used = _tokens(client) if tokens else None
    return Figures(
        database=client.location,
        host="; ".join(map(str, hosts)) or None,
        agents={status: statuses[status] for status in ("running", "stopped", "terminating", "dead")},
        turns=sum(record.turn > 0 for record in records),
        messages=sum(own.values()),
        unread=sum(record.unread for record in records),
        spent={one.uuid: _cost(one) for one in records if one.spent_tokens or one.spent_usd},
        tokens=used,
        **counted._asdict(),
    )


def as_lines(found: Figures) -> Iterator[str]:
    """A line for each thing that is counted."""
    rows: dict[str, Any] = {
        "database": found.database,
        "host": found.host or "none: no process runs these agents",
        "agents": ", ".join(f"{count} {status}" for status, count in found.agents.items()),
        "turns": f"{found.turns} open",
        "messages": found.messages,
        **({"spent": _cost_text(found.spent.values())} if found.spent else {}),
        "mail": f"{found.mails}, {found.unread} unread",
        "prompts": f"{found.prompts} not taken up",
        "documents": f"{found.documents}, {found.versions} versions",
        "restarts": found.restarts,
        "hosts": f"{found.hosts} so far",
    }
    if found.tokens is not None:
        taken, given = (sum(used[which] for used in found.tokens.values()) for which in ("input", "output"))
        rows["tokens"] = f"{taken} in, {given} out"
    dearest = sorted(found.spent.items(), key=lambda pair: (-pair[1]["usd"], -pair[1]["tokens"]))[:SHOWN]
    for title, text in rows.items():
        yield harmless(f"{title:<10} {text}")
        for agent, cost in dearest if title == "spent" else ():
            yield harmless(f"{'':10} {agent:<22} {_cost_text([cost])}")
    most = sorted((found.tokens or {}).items(), key=lambda pair: -sum(pair[1].values()))[:SHOWN]
    for agent, used in most:
        yield harmless(f"{'':10} {agent:<22} {used['input']} in, {used['output']} out")


def as_object(found: Figures) -> str:
    """The same as a JSON object."""
    return as_json(asdict(found), indent=2)


def _cost(record: AgentRecord) -> dict[str, float]:
    return {"tokens": record.spent_tokens, "usd": record.spent_usd / MICRO}


def _cost_text(costs: Iterable[Mapping[str, float]]) -> str:
    """The sum of costs, as people read it; without dollars where nothing had a price."""
    all_of_them = list(costs)
    tokens = amount_text("tokens", round(sum(one["tokens"] for one in all_of_them)))
    dollars = round(sum(one["usd"] for one in all_of_them) * MICRO)
    return f"{tokens}, {amount_text('usd', dollars)}" if dollars else tokens


def _tokens(client: Client) -> dict[str, dict[str, int]]:
    """The tokens of every agent that has used any, by uuid."""
    used: dict[str, Counter[str]] = defaultdict(Counter)
    for message in client.spending():
        if (spent := spent_of(message)) is not None:
            usage = spent.usage
            taken = usage.input_tokens + usage.cache_creation_input_tokens + usage.cache_read_input_tokens
            used[message.agent_uuid].update(input=taken, output=usage.output_tokens)
    return {agent: {"input": count["input"], "output": count["output"]} for agent, count in used.items()}
