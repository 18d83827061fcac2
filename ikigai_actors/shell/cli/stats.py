"""What a database holds, in figures, as another process reads them."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from ikigai_actors.records import registry
from ikigai_actors.records.messages import SPENDING, Message
from ikigai_actors.records.replies import spent_of
from ikigai_actors.shell.cli.registry import existing
from ikigai_actors.shell.line.output import as_json, harmless
from ikigai_actors.store.base import Row, Store, Transaction
from ikigai_actors.store.owner import owner

BATCH = 10_000
"""Messages that are read at once."""

SHOWN = 10
"""Agents whose tokens are shown as lines."""


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
    signals: int
    """Signals that no host has carried out."""
    restarts: int
    hosts: int
    """Processes that have run these agents, one after another."""
    tokens: dict[str, dict[str, int]] | None = None
    """By agent: tokens in and out, as the providers reported them. None when they were not asked for."""


def look(database: str | None, tokens: bool) -> Figures:
    """Read the figures; ``tokens`` reads every message. Raises what `existing` does."""
    with existing(database) as store:
        records, counts, host, row = store.read(
            lambda tx: (registry.every(tx), tx.run("counts"), owner(tx), tx.run("figures")[0])
        )
        mails, prompts, documents, versions, signals, restarts, hosts = row
        statuses = Counter(record.status for record in records)
        used = _tokens(store) if tokens else None
    return Figures(
        database=store.location,
        host=None if host is None else str(host),
        agents={status: statuses[status] for status in ("running", "stopped", "terminating", "dead")},
        turns=sum(record.turn > 0 for record in records),
        messages=sum(count for _, count in counts),
        mails=mails,
        unread=sum(record.unread for record in records),
        prompts=prompts,
        documents=documents,
        versions=versions,
        signals=signals,
        restarts=restarts,
        hosts=hosts,
        tokens=used,
    )


def as_lines(figures: Figures) -> Iterator[str]:
    """A line for each thing that is counted."""
    rows: dict[str, Any] = {
        "database": figures.database,
        "host": figures.host or "none: no process runs these agents",
        "agents": ", ".join(f"{count} {status}" for status, count in figures.agents.items()),
        "turns": f"{figures.turns} open",
        "messages": figures.messages,
        "mail": f"{figures.mails}, {figures.unread} unread",
        "prompts": f"{figures.prompts} not taken up",
        "documents": f"{figures.documents}, {figures.versions} versions",
        "signals": f"{figures.signals} not carried out",
        "restarts": figures.restarts,
        "hosts": f"{figures.hosts} so far",
    }
    if figures.tokens is not None:
        taken, given = (sum(used[which] for used in figures.tokens.values()) for which in ("input", "output"))
        rows["tokens"] = f"{taken} in, {given} out"
    for title, text in rows.items():
        yield harmless(f"{title:<10} {text}")
    most = sorted((figures.tokens or {}).items(), key=lambda pair: -sum(pair[1].values()))[:SHOWN]
    for agent, used in most:
        yield harmless(f"{'':10} {agent:<22} {used['input']} in, {used['output']} out")


def as_object(figures: Figures) -> str:
    """The same as a JSON object."""
    return as_json(asdict(figures), indent=2)


def _tokens(store: Store) -> dict[str, dict[str, int]]:
    """The tokens of every agent that has used any, by uuid."""
    used: dict[str, Counter[str]] = defaultdict(Counter)
    place = ("", 0)

    def batch(tx: Transaction) -> list[Row]:
        return tx.run("messages_after", agent=place[0], id=place[1], most=BATCH)

    while rows := store.read(batch):
        place = rows[-1][0], rows[-1][1]
        for message in (Message.from_row(row) for row in rows if row[2] in SPENDING):
            if (spent := spent_of(message)) is not None:
                usage = spent.usage
                taken = usage.input_tokens + usage.cache_creation_input_tokens + usage.cache_read_input_tokens
                used[message.agent_uuid].update(input=taken, output=usage.output_tokens)
    return {agent: {"input": count["input"], "output": count["output"]} for agent, count in used.items()}
