"""A model that answers when the test says so."""

import asyncio
import threading
from dataclasses import replace

from ikigai_actors import FunctionProvider, Reply, Request
from ikigai_actors.providers.base import Delta, OnDelta, Spent
from tests.kit.databases import eventually

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


async def answers_what_comes_later(request: Request) -> str:
    """Answer any prompt but ``first``, which is not answered within a minute."""
    said = request.messages[-1]["content"][-1]["text"]
    if said == "first":
        await asyncio.sleep(60)
    return f"heard {said}"


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


class Speaker:
    """A model that says each piece when the test says so."""

    name = "speaker"

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._next: asyncio.Queue[str | Reply | None] = asyncio.Queue()

    async def respond(self, request: Request, on_delta: OnDelta) -> Reply:
        self._loop, said = asyncio.get_running_loop(), ""
        while isinstance(text := await self._next.get(), str):
            said += text
            on_delta(Delta(text))
        return Reply(said) if text is None else replace(text, text=said)

    async def close(self) -> None:
        """Holds nothing."""

    def say(self, *texts: str | Reply | None) -> None:
        """Say these pieces; None ends the reply, or a reply that has the calls which come after them."""
        eventually(lambda: self._loop is not None, "a request")
        assert self._loop is not None
        for text in texts:
            self._loop.call_soon_threadsafe(self._next.put_nowait, text)
