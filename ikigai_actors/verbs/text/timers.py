"""Timers as text for people."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from ikigai_actors.records.mail.mail import preview
from ikigai_actors.records.mail.schedules import missed_text
from ikigai_actors.records.mail.timers import Timer


def timer_line(timer: Timer, sender: str | None) -> str:
    """Return a timer on one line; ``sender`` is the name of the agent that has set it, None for a person."""
    what = {"notice": "reminder", "mail": f"mail from {sender or 'a person'}", "prompt": "prompt"}[timer.fires_as]
    missed = f" (missed {missed_text(timer.missed)})" if timer.missed else ""
    return f"timer {timer.id}  {timer.when}  {what}{missed}: {preview(timer.body)}"


def next_lines(times: Sequence[datetime]) -> Iterator[str]:
    """Return lines with the times at which a timer would fire."""
    yield f"With a TEXT it would fire, by the clocks of {times[0].tzinfo}:"
    for time in times:
        yield f"  {time:%a %Y-%m-%d %H:%M %z}"
