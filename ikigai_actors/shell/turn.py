"""Turns that the shell shows, and what the system tells, kept until it is shown.

    feed = Feed(system, wake)                   subscribes
    turn = Turn(agent, feed, "hello")           from here on nothing of it is missed
    turn.expect(agent.ask.prompt("hello"))
    while not turn.over:
        wake.wait()
        turn.show(screen)

The text of an answer is printed as it arrives. When the finished answer is committed, the two are compared: what is
missing is printed, and if they differ the whole answer is. A turn that ended before anybody looked is shown by its
outcome. Thinking is not shown.
"""

import selectors
import signal
import socket
import textwrap
import threading
from collections import deque
from typing import Any

from ikigai_actors.errors import IkigaiError, NoHost, NoTurn, ProviderError, SystemClosed, TurnInterrupted
from ikigai_actors.futures import Future
from ikigai_actors.interface import System
from ikigai_actors.messages import NO_DATA, Kind, Message, storable
from ikigai_actors.providers.base import Reply
from ikigai_actors.publisher import Died, Event, HostChanged, Mailed, StoreTrouble, Streamed, ToolTrouble
from ikigai_actors.ref import AgentRef
from ikigai_actors.shell.screen import Screen, one_line

SETTLED = "settled"
"""Kind of a message of our own, never stored: the outcome of a turn is known, and all its messages came before."""

Trouble = StoreTrouble | ToolTrouble | HostChanged
"""What a person should know of, beside agents."""

HOST_GONE = (
    "The process that ran these agents is gone: nothing goes on. Leave, and start ikigai: it runs them then. What you "
    "send meanwhile waits in the database."
)

RESULT_LENGTH = 100
"""Characters that are shown of a tool's result."""

_SILENT_STOPS = frozenset({"end_turn", "stop_sequence", "tool_use"})


class Wake:
    """Wakes the main thread when it waits, from any other; signals wake it too."""

    def __init__(self) -> None:
        self._here, self._there = socket.socketpair()
        self._here.setblocking(False)
        self._there.setblocking(False)
        # A signal that comes just before the waiting begins would not end it.
        self._before = signal.set_wakeup_fd(self._there.fileno(), warn_on_full_buffer=False)

    def set(self) -> None:
        """Wake whoever waits, now or next."""
        try:
            self._there.send(b"\0")
        except (BlockingIOError, OSError):  # full: it is woken in any case; closed: nobody waits
            return

    def wait(self, descriptor: int | None = None) -> bool:
        """Wait until woken, or until the descriptor can be read; return whether that was it."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._here, selectors.EVENT_READ)
            if descriptor is not None:
                selector.register(descriptor, selectors.EVENT_READ)
            ready = {key.fileobj for key, _ in selector.select()}
        if self._here in ready:
            self._here.recv(65536)
        return descriptor in ready

    def close(self) -> None:
        """Give the sockets back."""
        signal.set_wakeup_fd(self._before)
        self._here.close()
        self._there.close()


class Feed:
    """What the system tells, kept until it is shown: all of the agents that are followed, of others the answer on its
    way.
    """

    def __init__(self, system: System, wake: Wake) -> None:
        self.wake = wake
        self._lock = threading.Lock()
        self._followed: dict[str, deque[Event]] = {}
        self._on_the_way: dict[str, list[Event]] = {}
        self._troubles: list[Trouble] = []
        self._subscription = system.subscribe(self.hear)

    def close(self) -> None:
        """Hear no more."""
        self._subscription.close()

    def hear(self, event: Event) -> None:
        """Take what the system tells; on the subscription's thread."""
        with self._lock:
            if isinstance(event, Mailed | Died):
                return  # the prompt tells how much is unread
            if isinstance(event, StoreTrouble) and event.final:
                pass  # the session ends, with its own words
            elif isinstance(event, Trouble):
                self._troubles.append(event)
            elif (queue := self._followed.get(event.agent_uuid)) is not None:
                queue.append(event)
            elif isinstance(event, Streamed):
                self._on_the_way.setdefault(event.agent_uuid, []).append(event)
            elif event.kind in (Kind.USER, Kind.ASSISTANT, Kind.ERROR, Kind.INTERRUPTED):
                self._on_the_way.pop(event.agent_uuid, None)
        self.wake.set()

    def follow(self, uuid: str) -> None:
        """Keep everything of an agent from now on, beginning with the answer that is on its way."""
        with self._lock:
            if uuid not in self._followed:
                self._followed[uuid] = deque(self._on_the_way.pop(uuid, ()))

    def forget(self, uuid: str) -> None:
        """Follow an agent no more."""
        with self._lock:
            self._followed.pop(uuid, None)

    def next(self, uuid: str) -> Event | None:
        """The next event of a followed agent; None when there is none yet."""
        with self._lock:
            queue = self._followed.get(uuid)
            return queue.popleft() if queue else None

    def troubles(self, patient: bool = False) -> list[Trouble]:
        """What is new about the store, the tools and the host; the tools can wait for who is patient."""
        with self._lock:
            kept: list[Trouble]
            kept = [each for each in self._troubles if patient and isinstance(each, ToolTrouble)]
            new = [each for each in self._troubles if each not in kept]
            self._troubles = kept
            return new

    def await_outcome(self, agent: AgentRef, number: int, outcome: Future[Reply]) -> None:
        """Tell the feed when the outcome is known, after all that belongs to the turn."""
        settled = Message(agent.uuid, number, SETTLED, "", NO_DATA, 0)

        def wait() -> None:
            if isinstance(result_of(outcome), Reply | ProviderError | TurnInterrupted | NoHost):
                self._subscription.add(settled)  # behind the messages of the turn, which were published before
            else:
                self.hear(settled)  # the system is closed, or the agent gone: nothing else will come
            self.wake.set()

        threading.Thread(target=wait, name="ikigai-shell-wait", daemon=True).start()


class Turn:
    """One turn of one agent, as far as it was shown."""

    _count = 0

    def __init__(self, agent: AgentRef, feed: Feed, prompt: str | None = None) -> None:
        """Follow an agent's turn: the one that this prompt will open, or else the one in progress."""
        Turn._count += 1
        self._number = Turn._count
        self._feed = feed
        self._prompt = prompt
        self._begun = prompt is None
        self._step = ""
        self.agent = agent
        self.outcome: Future[Reply] = Future()
        """How the turn ends."""
        self.over = False
        """Whether all of it was shown."""
        self.asks = False
        """Whether a call of it waits for the person, who was not asked yet."""
        feed.follow(agent.uuid)

    @property
    def answering(self) -> bool:
        """Whether an answer was shown in part: what is printed now would stand in its middle."""
        return bool(self._step)

    def expect(self, outcome: Future[Reply]) -> "Turn":
        """Say which future tells the outcome."""
        self.outcome = outcome
        self._feed.await_outcome(self.agent, self._number, outcome)
        return self

    def show(self, screen: Screen) -> None:
        """Print what is new."""
        while not self.over and (event := self._feed.next(self.agent.uuid)) is not None:
            match event:
                case Message(kind=kind, id=number) if (kind, number) == (SETTLED, self._number):
                    self._show_outcome(screen)
                case Message(kind=Kind.USER):
                    self._begun = self._begun or event.content == self._prompt
                case _ if not self._begun:  # of an earlier turn: the prompt may have closed one that was cut off
                    pass
                case Streamed(kind="text"):
                    self._step += event.text
                    screen.stream(event.text)
                case Message(kind=Kind.ASSISTANT):
                    self._finish_step(screen, event.content, str(event.data.get("stop_reason", "")))
                case Message(kind=Kind.APPROVAL):
                    screen.fresh()
                    self.asks = not event.data.get("approved")
                case Message(kind=Kind.TOOL_RESULT):
                    screen.fresh()
                    screen.line(f"[{event.data.get('name', 'tool')}: {shortened(event.content)}]", dim=True)
                case Message(kind=Kind.ERROR):
                    self._end(screen, f"[error: {event.content}]")
                case Message(kind=Kind.INTERRUPTED):
                    self._end(screen, "[interrupted]")

    def _finish_step(self, screen: Screen, text: str, stop_reason: str) -> None:
        streamed, self._step = storable(self._step), ""
        if not text.startswith(streamed):
            screen.fresh()
            streamed = ""
        screen.stream(text[len(streamed) :])
        screen.fresh()
        if stop_reason == "interrupted":
            screen.line("[interrupted]", dim=True)
        elif stop_reason not in _SILENT_STOPS:
            screen.line(f"[the answer ends here: {stop_reason}]", dim=True)
        elif not text and stop_reason != "tool_use":
            screen.line("[an empty answer]", dim=True)
        self.over = stop_reason != "tool_use"

    def _show_outcome(self, screen: Screen) -> None:
        """The turn ended before anybody followed it, or without a word in the log."""
        match result_of(self.outcome):
            case Reply() as reply:
                self._finish_step(screen, reply.text, reply.stop_reason)
            case TurnInterrupted():
                self._end(screen, "[interrupted]")
            case NoTurn() | SystemClosed():  # the latter ends the session, with its own words
                pass
            case error:
                self._end(screen, f"[error: {error}]")
        self.over = True

    def _end(self, screen: Screen, mark: str) -> None:
        screen.line(mark, dim=True)
        self.over = True


def told(trouble: Trouble) -> str:
    """Trouble, as a person is told of it."""
    if isinstance(trouble, ToolTrouble):
        return f"{trouble.toolset}: {one_line(trouble.text)}"
    if isinstance(trouble, HostChanged):
        return HOST_GONE if trouble.host is None else f"These agents are run by {one_line(trouble.host)} now."
    if trouble.reason is None:
        return "The database answers again."
    return f"Trouble with the database; nothing is lost, agents wait. {one_line(trouble.reason)}"


def shortened(text: str) -> str:
    """A result on one line."""
    return textwrap.shorten(text, RESULT_LENGTH, placeholder=" …") or "nothing"


def result_of(future: Future[Any]) -> Any:
    """What a future gives, errors of ours too; waits for it."""
    try:
        return future.get()
    except IkigaiError as error:
        return error
