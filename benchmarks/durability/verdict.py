"""The verdict on a play: a pure function of its history.

Three mistakes of judges were met, and are avoided here:

- An approval is lost only if it is asked for again long after both its acknowledgement and the restart (`AGAIN`): a
  runtime needs time to go on.
- A fault counts only if the victim proves it, and if something was left to do outside.
- A call that a stopped worker holds is no sign that the run stands still: `play` asks another worker meanwhile.
"""

from collections import Counter
from dataclasses import dataclass

from benchmarks.durability.history import Event, Play
from benchmarks.durability.task import PAUSE, WORKERS

AGAIN = 12.0
"""Seconds after an acknowledged approval and the latest restart from which on another question for it is a loss."""
AGAIN_LATE = 75.0
"""The same where a server was lost, or a worker stands still: some runtimes take a minute to hear of that."""
_SLACK = 0.05
"""Seconds by which the note of an answer may come after the answer."""
_ACTS = ("asked", "effect-received")


@dataclass(frozen=True)
class Verdict:
    """What a play has shown. Counts are of the first run, where nothing else is said."""

    landed: bool
    """Whether the fault struck, is proved, and left something to do outside. Without a fault: true."""
    why_not: str
    """Why the fault does not count."""
    ended: bool
    twice: int
    """Effects beyond the first of each worker."""
    missing: int
    """Workers without an effect, of a run that has ended."""
    unclear: int
    """Workers of which the lead says that they may have charged."""
    paid_again: int
    """Requests for a step that had been asked for before."""
    oldest_lost: float | None
    """The age in seconds, at the strike, of the oldest answer that was asked for again."""
    holes: int
    """Requests whose history is not the one that the model and the tools had made."""
    early: int
    """Effects that need an approval and came before it, and effects of a run that nobody approved."""
    asked_again: int
    """How often a person was asked again for what had been approved and acknowledged."""
    approval_lost: bool
    after_cancel: int
    """Requests and effects after an acknowledged cancel."""
    awake_dead: int
    """Acts of a stopped worker after another one had taken over."""
    timer_early: bool
    recovery: float | None
    """Seconds from the second start (with several hosts: from the strike) to the first act outside."""
    rest: float | None
    """Seconds from the strike to the end of the run."""
    cold: float | None
    """Seconds from the first start to the first act outside, of a lone worker."""

    @property
    def convicted(self) -> bool:
        """Whether a promise that everybody makes was broken, when effects had keys or not."""
        broken = self.holes or self.early or self.approval_lost or self.awake_dead or self.timer_early
        return bool(broken or not self.ended)


def patience_of(fault: str) -> float:
    """Seconds after which another question for an acknowledged approval is a loss."""
    return AGAIN_LATE if fault in ("server", "stop") else AGAIN


def judge(play: Play) -> Verdict:
    """The verdict on a play."""
    run = play.runs[0]
    landed, why_not = _landed(play)
    effects = Counter(event.agent for event in play.of("effect", run=run))
    results = play.of("result", run=run)
    ended = bool(results) or play.task == "cancel"
    summary = str(results[-1].detail) if results else ""
    asked = play.of("asked", run=run)
    return Verdict(
        landed=landed,
        why_not=why_not,
        ended=ended,
        twice=len(repeated(play, run)),
        missing=sum(not effects[worker] for worker in WORKERS) if results else 0,
        unclear=summary.count("unclear"),
        paid_again=len(asked) - len({(event.agent, event.step) for event in asked}),
        oldest_lost=_oldest_lost(play, run),
        holes=len(holes(play)),
        early=len(early(play)),
        asked_again=len(_questions_after_acknowledgement(play, run)),
        approval_lost=bool(lost_approvals(play, run)),
        after_cancel=len(after_cancel(play, run)),
        awake_dead=len(awake_dead(play)),
        timer_early=bool(early_timer(play, run)),
        recovery=_recovery(play, run),
        rest=results[-1].at - play.of("struck")[0].at if results and play.of("struck") else None,
        cold=_cold(play),
    )


def _landed(play: Play) -> tuple[bool, str]:
    if not play.fault:
        return True, ""
    strikes = play.of("struck")
    if not strikes:
        return False, "the moment never came"
    if play.fault == "slow":
        return True, ""
    if not strikes[0].detail["proved"]:
        return False, f"not proved: {strikes[0].detail['proof']}"
    if play.task == "cancel":
        return True, ""
    later = [event for event in play.of(*_ACTS, "effect") if event.at > strikes[0].at]
    if not later and play.of("result", run=play.runs[0]):
        return False, "nothing was left to do outside"
    return True, ""


def _oldest_lost(play: Play, run: str) -> float | None:
    strikes = play.of("struck")
    if not strikes or play.fault == "slow":
        return None
    at = strikes[0].at
    answered = {(event.agent, event.step): event.at for event in play.of("answered", run=run) if event.at <= at}
    again = {(event.agent, event.step) for event in play.of("asked", run=run) if event.at > at}
    ages = [at - answered[key] for key in again if key in answered]
    return max(ages, default=None)


def repeated(play: Play, run: str) -> list[Event]:
    """Effects beyond the first of each worker."""
    effects = [event for event in play.of("effect", run=run) if event.agent in WORKERS]
    return [event for place, event in enumerate(effects) if event.agent in {each.agent for each in effects[:place]}]


def holes(play: Play) -> list[Event]:
    """Requests whose history is not what this agent was answered, or not always the same one, or not whole."""
    unsound: list[Event] = []
    for run in play.runs:
        asked = play.of("asked", run=run)
        answers = {event.number: event for event in asked}
        chosen: dict[tuple[str, int], int] = {}
        unsound += [event for event in asked if not _is_sound(event, answers, chosen)]
    return unsound


def _is_sound(event: Event, answers: dict[int, Event], chosen: dict[tuple[str, int], int]) -> bool:
    results = Counter(message.get("tool_call_id") for message in event.detail if message["role"] == "tool")
    replies = [message for message in event.detail if message["role"] == "assistant"]
    asked_ids = [call["id"] for reply in replies for call in reply.get("tool_calls") or ()]
    if Counter(asked_ids) != results or len(set(asked_ids)) != len(asked_ids):
        return False
    for step, reply in enumerate(replies):
        numbers = {_number(call["id"]) for call in reply.get("tool_calls") or ()}
        if len(numbers) != 1:
            return False  # every answer before the last one had calls, all of one answer
        number = numbers.pop()
        origin = answers.get(number)
        if origin is None or (origin.agent, origin.step) != (event.agent, step):
            return False
        if chosen.setdefault((event.agent, step), number) != number:
            return False
    return True


def _number(call_id: str) -> int:
    parts = call_id.split("_")
    return int(parts[1]) if len(parts) == 3 and parts[0] == "call" and parts[1].isdigit() else -1


def early(play: Play) -> list[Event]:
    """Effects that need an approval and came before it, and effects of a run that nobody approved."""
    strays: list[Event] = []
    for run in play.runs:
        sent = min((event.at for event in play.of("approve-sent", run=run)), default=None)
        effects = [event for event in play.of("effect", run=run) if event.agent == "b"]
        strays += [event for event in effects if sent is None or event.at < sent]
    return strays


def _questions_after_acknowledgement(play: Play, run: str) -> list[Event]:
    acknowledged = min((event.at for event in play.of("approve-acknowledged", run=run)), default=None)
    if acknowledged is None:
        return []
    return [event for event in play.of("approve-sent", run=run) if event.at > acknowledged]


def lost_approvals(play: Play, run: str) -> list[Event]:
    """Questions for an acknowledged approval, long after the acknowledgement and the restart."""
    acknowledged = min((event.at for event in play.of("approve-acknowledged", run=run)), default=None)
    if acknowledged is None:
        return []
    back = [event.at for event in play.of("struck", "worker-started", "continued")] + [acknowledged]
    return [
        event
        for event in _questions_after_acknowledgement(play, run)
        if event.at > max(at for at in back if at <= event.at) + patience_of(play.fault)
    ]


def after_cancel(play: Play, run: str) -> list[Event]:
    """Requests and effects that left their process after a cancel was acknowledged there.

    What was on its way then nobody can call back, however late it is seen.
    """
    acknowledged = min((event.left for event in play.of("cancel-acknowledged", run=run)), default=None)
    if acknowledged is None:
        return []
    return [event for event in play.of("asked", "effect", run=run) if event.left > acknowledged]


def awake_dead(play: Play) -> list[Event]:
    """Acts of a victim after its successor's first, or after its death."""
    strikes, continued = play.of("struck"), play.of("continued")
    if not strikes or play.fault not in ("stop", "kill"):
        return []
    victim = strikes[0].owner
    since = continued[0].at if play.fault == "stop" and continued else strikes[0].at
    if play.fault == "stop" and not continued:
        return []
    return [event for event in play.of(*_ACTS) if event.at > since and event.owner == victim]


def early_timer(play: Play, run: str) -> list[Event]:
    """Where the timer was too short: the answer that began it, and the request after it."""
    began = [event for event in play.of("answered", run=run) if event.agent == "c" and event.step == 0]
    woke = [event for event in play.of("asked", run=run) if event.agent == "c" and event.step == 1]
    if not began or not woke or play.fault == "clock":
        return []
    return [began[0], woke[0]] if woke[0].at - began[0].at < PAUSE - _SLACK else []


def _recovery(play: Play, run: str) -> float | None:
    strikes = play.of("struck")
    if not strikes or play.fault not in ("kill", "stop"):
        return None
    starts = [event.at for event in play.of("worker-started") if event.at > strikes[0].at]
    since = starts[0] if starts else strikes[0].at
    acts = [event.at for event in play.of(*_ACTS, run=run) if event.at > since and event.owner != strikes[0].owner]
    return min(acts) - since if acts else None


def _cold(play: Play) -> float | None:
    starts, acts = play.of("worker-started"), play.of(*_ACTS)
    alone = play.hosts == 1  # several are given time to share what there is
    return acts[0].at - starts[0].at if alone and starts and acts else None
