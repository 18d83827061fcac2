"""A model whose replies a test gives one by one, when it wants."""

import asyncio
import queue
import threading
from typing import NamedTuple

from ikigai_actors import Reply, Request
from ikigai_actors.providers.base import Delta, OnDelta
from tests.kit.blocking_provider import DEADLINE


class Question(NamedTuple):
    """A request that waits for its reply."""

    request: Request
    loop: asyncio.AbstractEventLoop
    reply: "asyncio.Future[Reply | Exception]"
    on_delta: OnDelta

    def answer(self, reply: str | Reply | Exception = "done") -> None:
        """Give the reply, unless the request was cancelled."""
        outcome = Reply(reply) if isinstance(reply, str) else reply

        def come() -> None:
            if not self.reply.cancelled():
                self.reply.set_result(outcome)

        self.loop.call_soon_threadsafe(come)

    def say(self, text: str) -> None:
        """Give a piece of the reply; it has arrived when this returns."""
        heard = threading.Event()

        def come() -> None:
            self.on_delta(Delta(text))
            heard.set()

        self.loop.call_soon_threadsafe(come)
        assert heard.wait(DEADLINE)

    @property
    def said(self) -> list[str]:
        """What the user's side of the request ends with: texts, and the contents of results."""
        return [block.get("text", block.get("content", "")) for block in self.request.messages[-1]["content"]]


class Dialogue:
    """A provider. Each request waits in `asked` until the test answers it."""

    name = "dialogue"
    counts = False

    def __init__(self) -> None:
        self._questions: queue.Queue[Question] = queue.Queue()

    async def respond(self, request: Request, on_delta: OnDelta) -> Reply:
        """Wait for the answer that the test gives."""
        loop = asyncio.get_running_loop()
        question = Question(request, loop, loop.create_future(), on_delta)
        self._questions.put(question)
        reply = await question.reply
        if isinstance(reply, Exception):
            raise reply
        return reply

    async def close(self) -> None:
        """Holds nothing."""

    def asked(self) -> Question:
        """The next request."""
        return self._questions.get(timeout=DEADLINE)
