"""What convicts a play, event by event, so that a person can read a conviction before it is published."""

from collections.abc import Iterator

from benchmarks.durability import verdict
from benchmarks.durability.history import Event, Play
from benchmarks.durability.verdict import Verdict

_ACTS = ("asked", "answered", "effect", "receipt-sent")
_AROUND = ("struck", "continued", "worker-started", "approve-acknowledged", "cancel-acknowledged", "error", "result")


def evidence(play: Play, judged: Verdict) -> dict[str, list[Event]]:
    """The events of each promise that the play broke: of those that convict, and of what keys and a cancel are for."""
    run = play.runs[0]
    again = {event.agent for event in verdict.repeated(play, run)} if play.keys else set()
    charges = {
        "did not end": [] if judged.ended else [*_latest(play), *play.of("error")],
        "a hole in a history": verdict.holes(play),
        "an effect before its approval": verdict.early(play),
        "an approval lost": verdict.lost_approvals(play, run),
        "acts of the dead": verdict.awake_dead(play),
        "a timer too short": verdict.early_timer(play, run),
        "acts after the cancel": verdict.after_cancel(play, run),
        "an effect twice": [event for event in play.of("effect", run=run) if event.agent in again],
        "an effect missing": play.of("result", run=run) if play.keys and judged.missing else [],
    }
    return {charge: events for charge, events in charges.items() if events}


def lines(play: Play, judged: Verdict) -> Iterator[str]:
    """A paragraph for each charge: each agent's latest act before the fault, and what convicts (``>``)."""
    if not judged.landed:
        return
    for charge, events in evidence(play, judged).items():
        keys = "" if play.keys else ", no keys"
        yield f"{play.runtime}: {play.task}, {play.moment}{keys}, seed {play.seed}: {charge}"
        convicting = {id(event) for event in events}
        shown = convicting | {id(event) for event in (*_latest(play, before=True), *play.of(*_AROUND))}
        yield from (_line(event, id(event) in convicting) for event in play.events if id(event) in shown)
        yield ""


def _latest(play: Play, before: bool = False) -> list[Event]:
    """The latest act of each agent, of all or of those before the fault."""
    strikes = play.of("struck")
    until = strikes[0].at if before and strikes else float("inf")
    return list({event.agent: event for event in play.of(*_ACTS, run=play.runs[0]) if event.at <= until}.values())


def _line(event: Event, convicts: bool) -> str:
    step = f".{event.step}" if event.kind in ("asked", "answered") else ""
    who = f" {event.agent}{step}" if event.agent else ""
    number = f" #{event.number}" if event.number else ""
    owner = f" by {event.owner}" if event.owner else ""
    sent = f" sent {event.sent:.3f}" if event.sent else ""
    detail = "" if event.kind in ("asked", "answered") or event.detail is None else f": {event.detail}"
    return f"  {'>' if convicts else ' '} {event.at:7.3f} {event.kind}{who}{number}{owner}{sent}{detail}"
