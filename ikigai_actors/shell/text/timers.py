"""Timers, as people read them."""

from ikigai_actors.records.mail import preview
from ikigai_actors.records.timers import Timer


def timer_line(timer: Timer, sender: str | None) -> str:
    """A timer on one line; ``sender`` is who has set it; None for a person."""
    what = {"notice": "reminder", "mail": f"mail of {sender or 'a person'}", "prompt": "prompt"}[timer.fires_as]
    missed = f" (missed {timer.missed:,})" if timer.missed else ""
    return f"timer {timer.id}  {timer.when}  {what}{missed}: {preview(timer.body)}"
