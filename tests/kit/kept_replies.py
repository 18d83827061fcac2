"""A scripted provider whose service makes replies in the background, and keeps them.

It takes 20 seconds for a reply, names it after 5, and goes on when nobody reads. So it may be given to a system that is
opened again.
"""

import asyncio
from itertools import count

from ikigai_actors import ProviderError
from ikigai_actors.providers.base import Delta, KeptReply, OnDelta, Reply, Request, Usage

NAMED_AFTER, MADE_AFTER = 5.0, 20.0


class KeptReplies:
    """Replies with how many messages it was sent."""

    name = "kept"
    counts = True

    def __init__(self) -> None:
        self.paid: list[str] = []
        """The replies that it has begun."""
        self.read: list[str] = []
        """Those that were read again."""
        self.given_up: list[str] = []
        """Those of which it was told that nobody reads them."""
        self.cuts = 0
        """How many of the next connections break after a reply was named."""
        self._texts: dict[str, str] = {}
        self._numbers = count(1)

    async def respond(self, request: Request, on_delta: OnDelta) -> Reply:
        """Begin a reply, or read one that is begun."""
        if request.kept is not None:
            named = request.kept.id
            self.read.append(named)
        else:
            named = f"reply_{next(self._numbers)}"
            self.paid.append(named)
            self._texts[named] = f"reply to {len(request.messages)}"
            await asyncio.sleep(NAMED_AFTER)
            if request.settings.get("background"):
                on_delta(Delta(kept=KeptReply(named)))
        if self.cuts:
            self.cuts -= 1
            await asyncio.sleep(1)
            raise ProviderError("The connection broke.", broke_off=True, retry_after=0.0, is_kept=True)
        await asyncio.sleep(MADE_AFTER - NAMED_AFTER)
        return Reply(self._texts[named], usage=Usage(100, 10))

    async def give_up(self, id: str) -> None:  # noqa: A002 - as providers have it
        """Hear that nobody reads a reply any more."""
        self.given_up.append(id)

    async def close(self) -> None:
        """Close nothing."""
