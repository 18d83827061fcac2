"""The faults and their moments. A moment is an event of the play; a fault happens to a worker, its server or its model.

A fault strikes in the thread that saw the event, so it comes exactly then, and it brings a proof.

| fault | proof |
|---|---|
| kill | the exit status -9 of the process that has the connection |
| stop | its state T, then and before it is continued; what it does afterwards |
| cut | the server's message that it has done the commit |
| server | another start time, or another process |
| slow | the times of the events |
| clock | the driver's clock |
"""

from dataclasses import dataclass

from benchmarks.durability.history import Event
from benchmarks.durability.runtimes import Runtime


@dataclass(frozen=True)
class Moment:
    """When to strike: at an event of an agent's step, or at what the driver has said of the approval."""

    name: str
    kind: str
    agent: str = ""
    step: int = 0
    """-1: the lead's last one."""
    delay: float = 0.0
    """Seconds after the event."""
    fault: str = "kill"
    effect: bool = False
    """Whether it cuts an effect, so that a play without keys says more."""

    def matches(self, event: Event, last: int) -> bool:
        """Whether this is the event; ``last`` is the step of the lead's last request."""
        step = last if self.step < 0 else self.step
        return (event.kind, event.agent, event.step) == (self.kind, self.agent, step)


KILLS = (
    Moment("lead's request in flight", "asked", "lead", 0),
    Moment("lead's answer sent", "answered", "lead", 0, 0.002),
    Moment("lead's answer sent 20 ms ago", "answered", "lead", 0, 0.02),
    Moment("worker's request in flight", "asked", "a", 0),
    Moment("worker's answer sent", "answered", "a", 0, 0.002),
    Moment("effect received, not done", "effect-received", "a", effect=True),
    Moment("effect done, no receipt", "effect", "a", effect=True),
    Moment("receipt sent", "receipt-sent", "a", 0, 0.002, effect=True),
    Moment("approved effect done, no receipt", "effect", "b", effect=True),
    Moment("approval asked for", "waiting"),
    Moment("approval acknowledged", "approve-acknowledged"),
    Moment("timer runs", "answered", "c", 0, 0.3),
    Moment("worker's second request in flight", "asked", "a", 1),
    Moment("last request in flight", "asked", "lead", -1),
    Moment("last answer sent", "answered", "lead", -1, 0.002),
)
STOPS = (
    Moment("stopped, request in flight", "asked", "a", 0, fault="stop"),
    Moment("stopped, effect done", "effect", "a", fault="stop"),
    Moment("stopped, receipt sent", "receipt-sent", "a", 0, 0.002, fault="stop"),
)
"""For several workers."""
CUTS = (
    Moment("COMMIT cut, lead's answer sent", "answered", "lead", 0, fault="cut"),
    Moment("COMMIT cut, worker's answer sent", "answered", "a", 0, fault="cut"),
    Moment("COMMIT cut, approval about to be asked for", "answered", "b", 0, fault="cut"),
    Moment("COMMIT cut, receipt sent", "receipt-sent", "a", fault="cut"),
    Moment("COMMIT cut, timer runs", "answered", "c", 0, fault="cut"),
)
"""For PostgreSQL: the server does the next commit, and its answer is lost."""
CRASHES = (
    Moment("server lost, lead's request in flight", "asked", "lead", 0, fault="server"),
    Moment("server lost, effect done", "effect", "a", fault="server"),
    Moment("server lost, approval asked for", "waiting", fault="server"),
    Moment("server lost, timer runs", "answered", "c", 0, 0.3, fault="server"),
    Moment("server lost, worker's second request in flight", "asked", "a", 1, fault="server"),
)
"""For whatever stores on a server."""
SLOW = (
    Moment("model answers after 20 s", "asked", "a", 0, 20.0, fault="slow"),
    Moment("model never answers", "asked", "a", 0, float("inf"), fault="slow"),
)
"""The delay is the model's. What never answers leaves it to the client's time limit."""
CLOCKS = (
    Moment("clock set an hour ahead, timer runs", "answered", "c", 0, 0.3, fault="clock"),
    Moment("clock set an hour back, timer runs", "answered", "c", 0, 0.3, fault="clock"),
)
"""The wall clock of every worker; monotonic clocks stay, as they do where a person sets the time."""
CANCELS = (
    Moment("cancelled, left alone", "cancel-acknowledged", fault=""),
    Moment("cancelled, killed", "cancel-acknowledged"),
)
"""For the task ``cancel``."""
MOMENTS = {moment.name: moment for moment in (*KILLS, *STOPS, *CUTS, *CRASHES, *SLOW, *CLOCKS, *CANCELS)}
KINDS = ("kill", "stop", "cut", "server", "slow", "clock", "cancel", "two runs")


def moments_of(kind: str, runtime: Runtime) -> tuple[Moment, ...]:
    """The moments of a kind of fault for a runtime; none where it cannot happen to it."""
    kinds = {
        "kill": KILLS,
        "stop": STOPS if runtime.hosts > 1 else (),
        "cut": CUTS if runtime.store == "postgresql" else (),
        "server": CRASHES if runtime.store != "directory" else (),
        "slow": SLOW,
        "clock": CLOCKS,
        "cancel": CANCELS if runtime.cancels else (),
    }
    return kinds.get(kind, ())
