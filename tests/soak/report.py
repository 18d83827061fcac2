"""What a soak has seen, counted."""

import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from typing import Any

from ikigai_actors.records.mail.mail import EXIT
from ikigai_actors.records.mail.mail import MAIL as LETTER
from ikigai_actors.records.messages.messages import Kind
from tests.soak.holdings import Holdings
from tests.soak.ledger import Asked, Buried, Ended, Entry, Figures, Forked, Opened, Refused, Sent, Took, Trying, Wrote
from tests.soak.tools import ONCE


@dataclass
class Report:
    """Of one database."""

    database: str
    seed: int
    seconds: float = 0.0
    load: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Of the machine, at the end."""
    counts: Counter[str] = field(default_factory=Counter)
    disturbances: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)
    """What was done otherwise, or could not be done, and why."""
    figures: list[list[dict[str, Any]]] = field(default_factory=list)
    """Of each life that ended in order."""
    slowest_opening: float = 0.0
    """Seconds."""
    violations: list[str] = field(default_factory=list)

    def note(self, text: str) -> None:
        """Add a note, once."""
        if text and text not in self.notes:
            self.notes.append(text)

    def conclude(self, entries: Iterable[Entry], last: Holdings, ran: Counter[str], seconds: float) -> None:
        """Count all that was acknowledged, and what there is at the end."""
        self.seconds, self.load = seconds, os.getloadavg()
        for entry in entries:
            self._count(entry)
        kinds = Counter(message.kind for log in last.logs.values() for message in log.values())
        self.counts += Counter(
            {
                "agents": len(last.records),
                "messages": kinds.total(),
                "replies in logs": kinds[Kind.ASSISTANT],
                "errors in logs": kinds[Kind.ERROR],
                "interruptions in logs": kinds[Kind.INTERRUPTED],
                "tool calls started": kinds[Kind.TOOL_CALL],
                "mails stored": sum(mail.kind == LETTER for mail in last.mails.values()),
                "exit mails": sum(mail.kind == EXIT for mail in last.mails.values()),
                "documents": len(last.documents),
                "document versions": sum(map(len, last.documents.values())),
                "deaths": sum(not record.living for record in last.records.values()),
                "tools ran": ran.total(),
                "tools that may run once": sum(key.split()[0] in ONCE for key in ran),
                "ran again, being idempotent": sum(times > 1 for times in ran.values()),
            }
        )

    def _count(self, entry: Entry) -> None:
        counts = self.counts
        match entry:
            case Trying():
                counts["commands"] += 1
            case Forked():
                counts["forks by command"] += 1
            case Sent():
                counts["mails acknowledged"] += 1
            case Took(numbers=numbers):
                counts["mails read by handles"] += len(numbers)
            case Asked():
                counts["prompts from outside"] += 1
            case Ended(kind=kind):
                counts["prompts acknowledged"] += 1
                counts[f"prompts that ended as {kind}"] += 1
            case Buried(heads=heads):
                counts["kills"] += 1
                counts["died of kills"] += len(heads)
            case Wrote():
                counts["document writes acknowledged"] += 1
            case Refused(error=error):
                counts[f"refused: {error}"] += 1
            case Opened(seconds, resumed):
                counts["lives"] += 1
                counts["turns resumed"] += resumed
                self.slowest_opening = max(self.slowest_opening, seconds)
            case Figures(where="round"):
                counts["rounds"] += 1
                counts["most waits at once"] = max(counts["most waits at once"], entry.waits)

    def as_json(self) -> dict[str, Any]:
        """For a file."""
        return {
            **{field.name: getattr(self, field.name) for field in fields(self)},
            "counts": dict(self.counts),
            "disturbances": dict(self.disturbances),
        }

    def summary(self) -> str:
        """For a person."""
        lines = [f"{self.database}: {self.seconds:.0f} s, seed {self.seed}, load {self.load[0]:.1f}"]
        lines += [f"  disturbances  {_listed(self.disturbances)}", f"  counts        {_listed(self.counts)}"]
        lines.append(f"  slowest open  {self.slowest_opening:.1f} s")
        lines += [f"  life          {_told(figures)}" for figures in self.figures]
        lines += [f"  note          {note}" for note in self.notes]
        lines.append(f"  violations    {len(self.violations) or 'none'}")
        return "\n".join([*lines, *(f"    {violation}" for violation in self.violations)])


def _listed(counts: Counter[str]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in counts.items()) or "none"


def _told(figures: list[dict[str, Any]]) -> str:
    """The rounds of a life: memory in MB, threads, files."""
    rounds = [figure for figure in figures if figure["where"] == "round"]
    ends = {figure["where"]: figure for figure in figures}

    def figures_of(figure: dict[str, Any]) -> str:
        return f"{figure['rss'] / 1e6:.0f} MB {figure['threads']} threads {figure['files']} files"

    memory = " ".join(f"{figure['rss'] / 1e6:.0f}" for figure in rounds)
    last = f"; last round {figures_of(rounds[-1])}, {rounds[-1]['waits']:,} waits" if rounds else ""
    return f"start {figures_of(ends['start'])}; rounds, MB: {memory}{last}; closed {figures_of(ends['closed'])}"
