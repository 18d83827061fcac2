"""A model that answers when the test says so."""

import asyncio
import threading

from ikigai_actors import FunctionProvider, Reply, Request
from ikigai_actors.providers.base import Delta, OnDelta, Spent

DEADLINE = 60.0
"""Seconds after which a wait that should have ended has failed."""


class Gate:
    """Holds every request of its provider until it is opened."""

    def __init__(self, text: str = "done") -> None:
        self._text = text
        self.entered = threading.Event()
        """A request has arrived."""
        self._open = threading.Event()
        self.provider = FunctionProvider(self._answer, name="gate")

    def _answer(self, request: Request) -> str:
        self.entered.set()
        assert self._open.wait(DEADLINE)
        return self._text

    def open(self) -> None:
        """Let every request through, those to come too."""
        self._open.set()

    def wait_until_asked(self) -> None:
        """Return when a request has arrived."""
        assert self.entered.wait(DEADLINE)


class Hanging:
    """A provider that says something, and then nothing more for ever."""

    name = "hanging"

    def __init__(self, text: str, spent: Spent | None = None) -> None:
        self._text, self._spent = text, spent
        self._said = threading.Event()

    async def respond(self, request: Request, on_delta: OnDelta) -> Reply:
        """Never answers; ends when it is cancelled."""
        if self._spent is not None:
            on_delta(Delta(spent=self._spent))
        if self._text:
            on_delta(Delta(self._text))
        self._said.set()
        await asyncio.Event().wait()
        raise AssertionError("nobody sets this event")

    async def close(self) -> None:
        """Holds nothing."""

    def wait_until_asked(self) -> None:
        """Return when everything was said that ever will be."""
        assert self._said.wait(DEADLINE)
