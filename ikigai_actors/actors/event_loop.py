"""The one event loop on which the coroutines of all agents run. No coroutine can stop or close it.

    loop = SystemLoop()
    loop.run_to_end()               # on a thread of its own
    loop.call_soon_threadsafe(loop.finish)

A coroutine gets the loop by `asyncio.get_running_loop`, and many old examples stop or close the loop. On this loop that
raises an error in the code that does it, and other coroutines go on.
"""

import asyncio
import logging
from typing import Any

logger = logging.getLogger(__name__)


class EndlessLoop(asyncio.BaseEventLoop):
    """An event loop that only `finish` ends."""

    _runs_on = False

    def run_to_end(self) -> None:
        """Run the loop until `finish` is called, even if callbacks raise."""
        self._runs_on = True
        while self._runs_on:
            try:
                self.run_forever()
            except BaseException:  # other people's task, by `SystemExit`: that one is over
                logger.exception("A task on the event loop tried to end the process")

    def finish(self) -> None:
        """End the loop after this round of callbacks, so that it can be closed. Call this on the loop's thread."""
        self._runs_on = False
        self.stop()

    def stop(self) -> None:
        """Stop the loop, which only `finish` may end.

        Before `finish`, this and the next three methods raise `RuntimeError`.
        """
        self._check_ended("stop")
        super().stop()

    def close(self) -> None:
        self._check_ended("close")
        super().close()

    async def shutdown_asyncgens(self) -> None:
        self._check_ended("shutdown_asyncgens")
        await super().shutdown_asyncgens()

    async def shutdown_default_executor(self, *within: Any) -> None:
        self._check_ended("shutdown_default_executor")
        await super().shutdown_default_executor(*within)

    def _check_ended(self, what: str) -> None:
        if self._runs_on:
            raise RuntimeError(
                f"The event loop is the system's, and other agents run on it: {what}() is not for a provider or a "
                "tool. Return instead; cancel the tasks that you have made, if there are any."
            )


class SystemLoop(EndlessLoop, asyncio.SelectorEventLoop):
    """The event loop of a system, on the machine's sockets and processes."""
