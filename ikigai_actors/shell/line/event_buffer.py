"""What the system tells, kept until the shell shows it."""

import threading
from collections import deque
from typing import Any

from ikigai_actors.actors.futures import Future
from ikigai_actors.agent.subscriptions import (
    Died,
    Event,
    HostChanged,
    Mailed,
    PromptKept,
    StoreTrouble,
    Streamed,
    ToolTrouble,
)
from ikigai_actors.errors import IkigaiError, NoHost, ProviderError, TurnInterrupted
from ikigai_actors.providers.base import Reply
from ikigai_actors.records.messages import NO_DATA, Kind, Message
from ikigai_actors.shell.line.wakeup import Wake
from ikigai_actors.system.ref import AgentRef, System

SETTLED = "settled"
"""Kind of a message of our own, never stored: the outcome of a turn is known, and all its messages came before."""

Trouble = StoreTrouble | ToolTrouble | HostChanged
"""What a person should know of, beside agents."""


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
        self._kept: list[PromptKept] = []
        self._subscription = system.subscribe(self.hear)

    def close(self) -> None:
        """Hear no more."""
        self._subscription.close()

    def hear(self, event: Event) -> None:
        """Take what the system tells; on the subscription's thread."""
        with self._lock:
            if isinstance(event, Mailed | Died):
                return  # the prompt tells how much is unread
            if isinstance(event, PromptKept):
                self._kept.append(event)
            elif isinstance(event, StoreTrouble) and event.final:
                pass  # the session ends, with its own words
            elif isinstance(event, Trouble):
                self._troubles.append(event)
            elif (queue := self._followed.get(event.agent_uuid)) is not None:
                queue.append(event)
            elif isinstance(event, Streamed):
                self._on_the_way.setdefault(event.agent_uuid, []).append(event)
            elif event.kind in (Kind.USER, Kind.ASSISTANT, Kind.RETRY, Kind.ERROR, Kind.INTERRUPTED):
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

    def kept(self) -> list[PromptKept]:
        """The prompts that wait for CONT since this was asked last."""
        with self._lock:
            kept, self._kept = self._kept, []
            return kept

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


def result_of(future: Future[Any]) -> Any:
    """What a future gives, errors of ours too; waits for it."""
    try:
        return future.get()
    except IkigaiError as error:
        return error
