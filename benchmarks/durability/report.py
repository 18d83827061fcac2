"""The table of the kept histories, in Markdown and JSON. No row is ranked, and a sum never hides which loss it was."""

import json
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.durability.faults import moments_of
from benchmarks.durability.history import Play, read
from benchmarks.durability.picture import drawing
from benchmarks.durability.runtimes import DRIVERS, NOT_RUN, RUNTIMES
from benchmarks.durability.verdict import Verdict, judge

PAGE = Path(__file__).parents[2] / "docs" / "engineering" / "durability.md"
HISTORIES = Path(__file__).parent / "histories"
"""The published plays, of which the page has the figures."""
_BEGIN, _END = "<!-- begin: figures -->", "<!-- end: figures -->"


@dataclass(frozen=True)
class Judged:
    """A play and its verdict."""

    play: Play
    verdict: Verdict


def write(directory: Path, page: Path | None = None) -> str:
    """Judge all histories of a directory, write ``results.json`` there, put the tables into the page, and draw
    the picture beside it.

    Returns the tables.
    """
    plays = plays_of(directory)
    results = [_summary(judged) for judged in plays]
    (directory / "results.json").write_text(json.dumps(results, indent=1) + "\n")
    text = tables(plays)
    target = page or PAGE
    target.with_suffix(".svg").write_text(drawing([(each.play, each.verdict) for each in plays]))
    if target.exists():
        target.write_text(with_figures(target.read_text(), text))
    return text


def plays_of(directory: Path) -> list[Judged]:
    """The plays of all histories of a directory."""
    return [Judged(play, judge(play)) for file in sorted(directory.glob("*.jsonl.gz")) for play in read(file)]


def with_figures(page: str, text: str) -> str:
    """The page with these tables in the place of its own."""
    if _BEGIN not in page:
        return page
    head, _, rest = page.partition(_BEGIN)
    return f"{head}{_BEGIN}\n\n{text}\n{_END}{rest.partition(_END)[2]}"


def _summary(judged: Judged) -> dict[str, object]:
    play = asdict(judged.play)
    del play["events"]
    return play | {"verdict": asdict(judged.verdict)}


def tables(plays: Sequence[Judged]) -> str:
    """The three tables: what was kept over kills, what over other faults, and who did not run."""
    names = [name for name in RUNTIMES if any(judged.play.runtime == name for judged in plays)]
    rows = [_row(name, [judged for judged in plays if judged.play.runtime == name]) for name in names]
    others = [_others(name, [judged for judged in plays if judged.play.runtime == name]) for name in names]
    absent = [[name, reason] for name, reason in NOT_RUN.items()]
    return "\n\n".join(
        (
            "### Killed\n\n" + _table(_COLUMNS, rows),
            "### Other faults, cancel, two runs\n\n" + _table(_OTHERS, others) + "\n\n" + _IMPOSSIBLE,
            "### Not run\n\n" + _table(("runtime", "why"), absent),
        )
    ) + "\n"  # fmt: skip


_COLUMNS = (
    "runtime", "kills", "ended", "keyed: twice, missing", "bare: twice · missing · unclear",
    "requests paid again (plays)", "oldest lost answer, ms", "person asked again", "holes", "early",
    "restart to act, s: p50 (max)", "cold start, s", "lines to resume",
)  # fmt: skip
_OTHERS = (
    "runtime", "stopped: ended, acts of the stopped", "COMMIT cut: ended, paid again",
    "server lost: ended, paid again, longest s",
    "slow model: ended, paid again", "clock set: ended, paid again",
    "cancel: requests and effects after it", "two runs: strays", "not landed",
)  # fmt: skip

_IMPOSSIBLE = """\
–: the fault cannot happen there. A stop past the lease needs a second worker, which goes on. A COMMIT is cut where a
runtime stores on PostgreSQL. A server is lost where one stores. A cancel needs a call that ends a run from outside."""


def _row(name: str, plays: list[Judged]) -> list[str]:
    kills = [each for each in _landed(plays) if each.play.fault == "kill" and each.play.task == "run"]
    keyed, bare = [e for e in kills if e.play.keys], [e for e in kills if not e.play.keys]
    waits = [e.verdict.recovery for e in kills if e.verdict.recovery is not None]
    colds = [e.verdict.cold for e in plays if e.verdict.cold is not None]
    ages = [e.verdict.oldest_lost for e in kills if e.verdict.oldest_lost is not None]
    paid = _total(kills, lambda verdict: verdict.paid_again)
    return [
        name,
        str(len(kills)),
        _of(sum(e.verdict.ended for e in kills), len(kills)),
        f"{_total(keyed, lambda v: v.twice)}, {_total(keyed, lambda v: v.missing)} of {len(keyed)}{_bound(keyed)}",
        _bare(bare),
        f"{paid} ({sum(e.verdict.paid_again > 0 for e in kills)})",
        f"{max(ages) * 1000:.0f}" if ages else "–",
        str(_total(kills, lambda verdict: verdict.asked_again)),
        str(_total(kills, lambda verdict: verdict.holes)),
        str(_total(kills, lambda verdict: verdict.early)),
        f"{statistics.median(waits):.1f} ({max(waits):.1f})" if waits else "–",
        f"{statistics.median(colds):.1f}" if colds else "–",
        str(resume_lines(RUNTIMES[name].driver)),
    ]


def _bare(plays: list[Judged]) -> str:
    counts = (
        _total(plays, lambda verdict: verdict.twice),
        _total(plays, lambda verdict: verdict.missing),
        _total(plays, lambda verdict: verdict.unclear),
    )
    return f"{' · '.join(map(str, counts))} of {len(plays)}"


def _others(name: str, plays: list[Judged]) -> list[str]:
    landed = _landed(plays)

    def cell(kind: str, value: Callable[[Verdict], int]) -> str:
        if not moments_of(kind, RUNTIMES[name]):
            return "–"
        chosen = [each for each in landed if each.play.fault == kind and each.play.task == "run"]
        ended = sum(each.verdict.ended for each in chosen)
        longest = max((each.verdict.rest or 0 for each in chosen), default=0)
        seconds = f", {longest:.0f}" if kind == "server" else ""
        return f"{ended} of {len(chosen)}, {_total(chosen, value)}{seconds}" if chosen else "not played"

    cancels = [each for each in landed if each.play.task == "cancel"]
    pairs = [each for each in landed if each.play.task == "two runs"]
    cancelled = (
        f"{_total(cancels, lambda verdict: verdict.after_cancel)} in {len(cancels)}" if cancels else "not played"
    )
    return [
        name,
        cell("stop", lambda verdict: verdict.awake_dead),
        *(cell(kind, lambda verdict: verdict.paid_again) for kind in ("cut", "server", "slow", "clock")),
        cancelled if moments_of("cancel", RUNTIMES[name]) else "–",
        f"{_total(pairs, lambda verdict: verdict.early)} in {len(pairs)}" if pairs else "not played",
        str(sum(not each.verdict.landed for each in plays)),
    ]


def resume_lines(driver: str) -> int:
    """The lines that a user writes so that runs go on."""
    return sum("# resume:" in line for line in (DRIVERS / f"{driver}.py").read_text().splitlines())


def _landed(plays: Iterable[Judged]) -> list[Judged]:
    return [judged for judged in plays if judged.verdict.landed]


def _total(plays: Iterable[Judged], value: Callable[[Verdict], int]) -> int:
    return sum(value(judged.verdict) for judged in plays)


def _of(count: int, total: int) -> str:
    return f"{count} of {total}" if total else "–"


def _bound(plays: Sequence[Judged]) -> str:
    """For none of n: with 95 % confidence less than 3 of n."""
    none = plays and not any(judged.verdict.twice or judged.verdict.missing for judged in plays)
    return f" (< {300 / len(plays):.0f} %)" if none else ""


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])
