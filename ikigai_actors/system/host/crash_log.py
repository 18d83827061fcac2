"""The log of agents that fail: one line for each decision, and the frames of the user's code.

    buyer restarted by lead: ValueError: no tea (1 of 3 in 10 min)
    Traceback (most recent call last):
      File "shop.py", line 12, in buy
    ValueError: no tea

The whole traceback is logged at DEBUG when the agent crashes (`ikigai_actors.agent.actor`).
"""

import logging
import sys
from types import TracebackType

from supervisors.supervisor import Supervisor

logger = logging.getLogger(__name__)

_OURS = ("ikigai_actors", "supervisors", "pykka")

_MOST = 300
"""The most characters of a reason: an error may quote whole texts."""


def note_decision(text: str, error: BaseException | None = None, level: int = logging.WARNING) -> None:
    """Log a decision about an agent on one line, followed by the traceback of the user's code."""
    line = " ".join(text.split())
    logger.log(level, "%s", line, exc_info=None if error is None else (type(error), error, users_frames(error)))


def on_one_line(reason: str) -> str:
    """Return a reason as one line of text, for the log."""
    line = " ".join(reason.split())
    return line if len(line) <= _MOST else f"{line[:_MOST]} …"


def restarts_so_far(supervisor: Supervisor) -> str:
    """Return as text how many of its restarts a supervisor has used: ``1 of 3 in 10 min``."""
    return f"{len(supervisor.restarts)} of {supervisor.intensity} in {span(supervisor.period)}"


def span(milliseconds: int) -> str:
    """Return a span of time as text: in minutes if they are whole, else in seconds."""
    return f"{milliseconds // 60_000} min" if milliseconds % 60_000 == 0 else f"{milliseconds / 1_000:g} s"


def users_frames(error: BaseException) -> TracebackType | None:
    """Return the traceback of an error without the frames of the runtime; the whole one if no other frame is left."""
    frames, each = list[TracebackType](), error.__traceback__
    while each is not None:
        frames.append(each)
        each = each.tb_next
    theirs = [frame for frame in frames if _package(frame) not in _OURS]
    while theirs and _package(theirs[0]) in sys.stdlib_module_names:  # the thread or task in which their code runs
        del theirs[0]
    if not theirs:
        return error.__traceback__
    chain: TracebackType | None = None
    for frame in reversed(theirs):
        chain = TracebackType(chain, frame.tb_frame, frame.tb_lasti, frame.tb_lineno)
    return chain


def _package(frame: TracebackType) -> str:
    return str(frame.tb_frame.f_globals.get("__name__", "")).partition(".")[0]
