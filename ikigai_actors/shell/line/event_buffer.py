"""The events of a system, one by one, as line mode shows turns."""

import threading
from collections.abc import Callable
from typing import Any

from ikigai_actors.actors.futures import Future
from ikigai_actors.agent.subscriptions import Event, PromptKept, Streamed, ToolTrouble
from ikigai_actors.errors import IkigaiError, NoHost, ProviderError, TurnInterrupted
from ikigai_actors.providers.base import Reply
from ikigai_actors.records.messages import NO_DATA, Message
from ikigai_actors.shell.event_buffer import EventBuffer, SystemTrouble
from ikigai_actors.system.ref import AgentRef, System

SETTLED = "settled"
"""Kind of a message of our own, never stored: the outcome of a turn is known, and all its messages came before."""


class TurnEvents(EventBuffer):
    """Gives the events of followed agents, one after another."""

    def __init__(self, system: System, wake: Callable[[], None]) -> None:
        """Subscribe; ``wake`` is called for each event, on the subscription's thread."""
        self._troubles: list[SystemTrouble] = []
        self._kept: list[PromptKept] = []
        super().__init__(system, wake)

    def hear(self, event: Event) -> None:
        super().hear(event)
        if isinstance(event, Streamed):  # the line mode prints a delta at once
            self._changed()

    def next(self, uuid: str) -> Message | Streamed | None:
        """The next event of a followed agent; None when there is none yet."""
        with self._lock:
            events = self._events.get(uuid)
            event = events.pop(0) if events else None
        return Streamed(uuid, "".join(event[1]), event[0]) if isinstance(event, tuple) else event

    def kept(self) -> list[PromptKept]:
        """The prompts that wait for CONT, since the last call."""
        with self._lock:
            kept, self._kept = self._kept, []
            return kept

    def troubles(self, patient: bool = False) -> list[SystemTrouble]:
        """The news about the store, the host and the tools; ``patient`` leaves out the tools, which can wait."""
        with self._lock:
            kept: list[SystemTrouble]
            kept = [each for each in self._troubles if patient and isinstance(each, ToolTrouble)]
            new = [each for each in self._troubles if each not in kept]
            self._troubles = kept
            return new

    def await_outcome(self, agent: AgentRef, number: int, outcome: Future[Reply]) -> None:
        """Add an event of kind `SETTLED` when the outcome is known, after all other events of the turn."""
        settled = Message(agent.uuid, number, SETTLED, "", NO_DATA, 0)

        def wait() -> None:
            if isinstance(outcome_of_future(outcome), Reply | ProviderError | TurnInterrupted | NoHost):
                self._subscription.add(settled)  # after the messages of the turn, which were published before
            else:
                self.hear(settled)  # the system is closed, or the agent gone: nothing else will come
            self._changed()

        threading.Thread(target=wait, name="ikigai-shell-wait", daemon=True).start()

    def _tell(self, event: SystemTrouble | PromptKept) -> None:
        with self._lock:
            if isinstance(event, PromptKept):
                self._kept.append(event)
            else:
                self._troubles.append(event)


def outcome_of_future(future: Future[Any]) -> Any:
    """The value of a future, or its error if that is ours; waits for it."""
    try:
        return future.get()
    except IkigaiError as error:
        return error
