"""The record of a play: what was seen from outside, in order. A verdict needs nothing else.

A file of histories has one line of JSON for each play, compressed by gzip.
"""

import gzip
import json
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple


class Event(NamedTuple):
    """Something that was seen from outside.

    Of the world: ``asked``, ``answered``, ``effect-received``, ``effect``, ``effect-repeated``, ``receipt-sent``.
    Of the driver: ``start-acknowledged``, ``waiting``, ``approve-sent``, ``approve-acknowledged``,
    ``cancel-acknowledged``, ``result``, ``error``. Of its processes: ``worker-started``, ``struck``, ``continued``.
    """

    at: float
    """Seconds since the play began."""
    kind: str
    run: str = ""
    agent: str = ""
    step: int = 0
    """How many answers this agent had had before."""
    number: int = 0
    """The number of an answer or a receipt."""
    owner: str = ""
    """The process that asked: the worker's name and its life, as ``one.2``."""
    detail: Any = None
    sent: float = 0.0
    """When a request, or the answer of a cancel, left its process; in seconds since the play began. 0 for unknown."""

    @property
    def left(self) -> float:
        """When the event left its process, or else was seen."""
        return self.sent or self.at


@dataclass(frozen=True)
class Play:
    """One play of a task, with what struck it."""

    runtime: str
    task: str
    """``run``, ``cancel`` or ``two runs``."""
    moment: str
    """When the fault struck; ``undisturbed`` without one."""
    fault: str
    """``kill``, ``stop``, ``cut``, ``server``, ``clock``, ``slow``, or nothing."""
    keys: bool
    """Whether effects went out under the runtime's keys."""
    runs: tuple[str, ...]
    """The runs that were started. In ``two runs`` only the first one is approved."""
    last: int
    """The step of the lead's last request."""
    hosts: int
    seed: int
    versions: dict[str, str]
    events: tuple[Event, ...] = ()

    def of(self, *kinds: str, run: str | None = None) -> list[Event]:
        """The events of these kinds, in order."""
        return [event for event in self.events if event.kind in kinds and run in (None, event.run)]

    def with_events(self, events: Iterable[Event]) -> "Play":
        """The same play with other events."""
        return replace(self, events=tuple(events))


class Recorder:
    """Writes events down as they come, from any thread."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._events: list[Event] = []
        self._lock = threading.Lock()
        self.listener: Callable[[Event], None] = lambda event: None
        """Is called with each event, in the thread that saw it."""

    def note(self, kind: str, sent: float = 0.0, **values: Any) -> Event:
        """Write an event down, then show it to the listener.

        ``sent``: when it left its process, by the monotonic clock; 0 for unknown.
        """
        left = round(sent - self._began, 5) if sent else 0.0
        with self._lock:
            event = Event(round(time.monotonic() - self._began, 5), kind, sent=left, **values)
            self._events.append(event)
        self.listener(event)
        return event

    @property
    def events(self) -> tuple[Event, ...]:
        """What was seen up to now."""
        with self._lock:
            return tuple(self._events)


def append(path: Path, play: Play) -> None:
    """Add a play to a file of histories."""
    with gzip.open(path, "at", encoding="utf-8") as file:
        file.write(json.dumps(asdict(play) | {"events": [list(event) for event in play.events]}) + "\n")


def read(path: Path) -> Iterator[Play]:
    """The plays of a file of histories."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for line in file:
            record = json.loads(line)
            events = tuple(Event(*values) for values in record.pop("events"))
            yield Play(**record | {"runs": tuple(record["runs"])}, events=events)
