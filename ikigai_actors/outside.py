"""Outside: where effects are performed that take time. Model calls and ``async`` tools live on one asyncio loop, plain
tools on threads.

Nothing here decides anything. What comes of an effect is handed to a callback, which posts it to the agent's inbox. A
call that was cancelled calls back no more: neither with a reply nor with a delta.
"""

import asyncio
import contextlib
import logging
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

from ikigai_actors.errors import ProviderError
from ikigai_actors.futures import acting_agent, forbid_blocking
from ikigai_actors.providers.base import Delta, Exit, OnDelta, Provider, Reply, Request
from ikigai_actors.slots import Slots
from ikigai_actors.threads import SYSTEM_THREADS, Threads, here, in_thread
from ikigai_actors.tools import Result, Tool, timed_out
from ikigai_actors.toolsets import Tell, Toolset

logger = logging.getLogger(__name__)

UNWIND = 2.0
"""Seconds that cancelled calls and tools have to clean up when the system closes."""

TOOL_THREADS = 32
"""Plain tools that run at once, besides those that wait for agents; further ones wait for a slot."""

A = TypeVar("A")
OnResult = Callable[[Result], None]


@dataclass(frozen=True, slots=True)
class Crash:
    """The agent's own code has failed."""

    error: Exception


OnReply = Callable[[Reply | ProviderError | Exit | Crash], None]


class OnLoop(ABC, Generic[A]):
    """A coroutine on the event loop whose end somebody waits for, unless it was cancelled."""

    __slots__ = ("_lock", "_loop", "_over", "task")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._lock = threading.Lock()
        self._over = False
        self.task: asyncio.Task[None] | None = None
        """Where it runs, once it was begun."""

    def cancel(self) -> None:
        """End it; nothing of it is heard of afterwards. A thread that it waits for is left alone."""
        if self._ends():
            with contextlib.suppress(RuntimeError):  # the loop is closed: all that was on it is cancelled
                self._loop.call_soon_threadsafe(self._cancel_task)

    def begin(self, coroutine: Coroutine[Any, Any, A], done: Callable[[Any], None]) -> None:
        """Start it, on the loop; ``done`` is called when nothing of it goes on there any more."""
        self.task = self._loop.create_task(self._unless_over(coroutine))
        self.task.add_done_callback(lambda _: coroutine.close())  # it may never have begun
        self.task.add_done_callback(done)

    def _ends(self) -> bool:
        """Whether it ends by this, and has not ended before."""
        with self._lock:
            over, self._over = self._over, True
        return not over

    def _cancel_task(self) -> None:
        if self.task is not None:
            self.task.cancel()

    async def _unless_over(self, coroutine: Coroutine[Any, Any, A]) -> None:
        if not self._over:  # asked at the last moment: what was cancelled on its way must not reach the world
            await self._run(coroutine)

    @abstractmethod
    async def _run(self, coroutine: Coroutine[Any, Any, A]) -> None:
        """Run it to its end, and tell what came of it unless it was cancelled."""


class Call(OnLoop[Reply]):
    """A model call on its way."""

    __slots__ = ("_on_delta", "_on_reply", "_own_code", "_text")

    def __init__(
        self, loop: asyncio.AbstractEventLoop, on_delta: OnDelta, on_reply: OnReply, own_code: bool = False
    ) -> None:
        super().__init__(loop)
        self._on_delta, self._on_reply, self._own_code = on_delta, on_reply, own_code
        self._text: list[str] = []

    @property
    def text(self) -> str:
        """The text received so far."""
        return "".join(self._text)

    def delta(self, delta: Delta) -> None:
        """Pass a piece of the reply on, unless the call is over."""
        with self._lock:
            if self._over:
                return
            if delta.kind == "text":
                self._text.append(delta.text)
            self._on_delta(delta)

    async def _run(self, coroutine: Coroutine[Any, Any, Reply]) -> None:
        answer: Reply | ProviderError | Exit | Crash
        try:
            answer = await coroutine
        except (ProviderError, Exit) as error:
            answer = error
        except asyncio.CancelledError:
            # Ours (the call is over, nobody listens), or the provider's own doing: then the turn must end all the same.
            answer = ProviderError("The provider cancelled its own request.", self.text)
        except Exception as error:
            answer = Crash(error) if self._own_code else _failure(error, self.text)
        if self._ends():
            self._on_reply(answer)


class ToolRun(OnLoop[Result]):
    """A tool that runs."""

    __slots__ = ("_on_result",)

    def __init__(self, loop: asyncio.AbstractEventLoop, on_result: OnResult) -> None:
        super().__init__(loop)
        self._on_result = on_result

    async def _run(self, coroutine: Coroutine[Any, Any, Result]) -> None:
        try:
            result = await coroutine
        except asyncio.CancelledError:
            result = Result("The tool was cancelled.", True)
        except Exception as error:  # against its word: the turn must go on all the same
            logger.exception("A tool failed")
            result = Result(f"The tool failed: {type(error).__name__}.", True)
        if self._ends():
            self._on_result(result)


class Outside:
    """The threads on which effects wait for the world."""

    def __init__(
        self, tool_threads: int = TOOL_THREADS, unwind: float = UNWIND, threads: Threads = SYSTEM_THREADS
    ) -> None:
        """Start the event loop; ``unwind`` is how long `close` gives cancelled work to clean up, in seconds."""
        self._unwind = unwind
        self._loop = threads.new_event_loop()
        self._thread = threads.thread(self._run, "ikigai-outside")
        self._slots = Slots(self._loop, tool_threads)
        self._calls: dict[Call | ToolRun, None] = {}  # in order, so that they are cancelled in order
        self._async_tools: dict[asyncio.Task[Result], None] = {}
        self._toolsets: list[Toolset] = []
        self._at_toolsets: set[asyncio.Task[Any]] = set()
        self._closed = False
        self._closing = threading.Lock()  # held to start something: nothing is started on a loop that is closed
        self._thread.start()

    def ask_model(
        self, provider: Provider, request: Request, agent: object, on_delta: OnDelta, on_reply: OnReply
    ) -> Call:
        """Send a request; the callbacks run on the event loop's thread.

        Args:
            provider: who answers.
            request: what it is asked.
            agent: the handle that `current_agent` gives to code that the provider runs.
            on_delta: takes the pieces of the reply.
            on_reply: takes the reply, or the error that came instead; once, unless the call is cancelled.
        """

        def begin() -> None:
            acting_agent.set(agent)  # in the context of this callback, which the call's task copies
            call.begin(provider.respond(request, call.delta), lambda _: self._calls.pop(call, None))

        call = Call(self._loop, on_delta, on_reply, getattr(provider, "own_code", False))
        with self._closing:
            if not self._closed:
                self._calls[call] = None
                self._loop.call_soon_threadsafe(begin)
        return call

    def open(self, toolset: Toolset, tell: Tell) -> Sequence[Tool]:
        """Start a toolset, which is closed with the rest; return its tools. Raises what it raises."""

        async def begin() -> Sequence[Tool]:
            self._note(asyncio.current_task())
            tools = await toolset.open(tell)
            self._toolsets.append(toolset)  # in here: Ctrl-C may come right behind it
            return tools

        opening = asyncio.run_coroutine_threadsafe(begin(), self._loop)
        try:
            return here().result(opening, None)
        except BaseException:  # Ctrl-C too, while a server takes its time
            opening.cancel()
            raise

    def leave(self, agent: str) -> None:
        """Have the toolsets end what they held for an agent that acts no more."""

        def begin() -> None:
            for toolset in self._toolsets:
                self._note(self._loop.create_task(_left(toolset, agent)))

        with self._closing:
            if self._toolsets and not self._closed:
                self._loop.call_soon_threadsafe(begin)

    def run_tool(self, tool: Tool, arguments: Mapping[str, Any], agent: object, on_result: OnResult) -> ToolRun:
        """Run a tool: a plain function on a tool thread, an ``async`` one on the loop.

        Args:
            tool: what is run.
            arguments: what the model gave.
            agent: the handle that `current_agent` gives to the tool.
            on_result: takes the result, on the loop's thread; once, unless the run is cancelled or everything is
                closed.
        """

        def begin() -> None:
            acting_agent.set(agent)
            run.begin(self._with_time_limit(tool, arguments), lambda _: self._calls.pop(run, None))

        run = ToolRun(self._loop, on_result)
        with self._closing:
            if not self._closed:
                self._calls[run] = None
                self._loop.call_soon_threadsafe(begin)
        return run

    def consult(self, decide: Callable[[], bool | str], agent: object, done: Callable[[bool | str], None]) -> None:
        """Ask the program whether a call may run, on a thread of its own; a failure of its code denies."""

        async def ask() -> None:
            acting_agent.set(agent)
            try:
                decision = await in_thread(decide, "ikigai-approver")
            except Exception as error:  # other people's code
                logger.exception("An approver failed")
                decision = f"the program that decides failed: {type(error).__name__}"
            done(decision)

        with self._closing:
            if not self._closed:
                asyncio.run_coroutine_threadsafe(ask(), self._loop)

    async def _with_time_limit(self, tool: Tool, arguments: Mapping[str, Any]) -> Result:
        """The time counts from the start of the tool, not from when it began to wait for its thread."""
        if tool.is_async:
            task = self._loop.create_task(tool.call_async(arguments))
            self._async_tools[task] = None
            task.add_done_callback(lambda task: self._async_tools.pop(task))
            try:
                ended, _ = await asyncio.wait({task}, timeout=tool.timeout)
            finally:
                task.cancel()  # not waited for: a tool may be deaf to it
            return task.result() if ended else timed_out(tool)
        await self._slots.take()
        call = partial(self._slots.run, lambda: tool.call(arguments))
        running = asyncio.ensure_future(in_thread(call, f"ikigai-tool {tool.name}"))
        # The slot is the thread's: one that goes on past its time keeps it.
        running.add_done_callback(lambda _: self._slots.give_back())
        done, _ = await asyncio.wait({running}, timeout=tool.timeout)
        if not done:
            return timed_out(tool)
        result: Result = running.result()
        return result

    def close(self, providers: list[Provider]) -> None:
        """Cancel what is outside, close the toolsets and the providers, end the threads."""
        with self._closing:
            self._closed = True
        for call in list(self._calls):
            call.cancel()
        closing = asyncio.run_coroutine_threadsafe(self._close_all(providers), self._loop)
        here().result(closing, None)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    async def _close_all(self, providers: list[Provider]) -> None:
        """Give the cancelled calls a moment to unwind, then close each part, whatever another one does, then the rest.

        A part ends its tasks by itself, in its own order: one that is cancelled from here may leave a process behind.
        """
        calls = [call.task for call in self._calls if call.task is not None]
        await self._unwound([*calls, *self._async_tools, *self._at_toolsets])
        parts: list[Toolset | Provider] = [*self._toolsets, *providers]
        for part in parts:
            try:
                await part.close()
            except Exception:  # other people's code: the next one must be closed all the same
                logger.exception("%s did not close", part.name)
        rest = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in rest:
            task.cancel()
        await self._unwound(rest)

    def _note(self, task: "asyncio.Task[Any] | None") -> None:
        """What a toolset does for the system is over before the toolsets are closed."""
        assert task is not None  # on the loop
        self._at_toolsets.add(task)
        task.add_done_callback(self._at_toolsets.discard)

    async def _unwound(self, tasks: "list[asyncio.Task[Any]]") -> None:
        """What heeds no cancellation is left where it is: the loop ends with it."""
        if tasks:
            await asyncio.wait(tasks, timeout=self._unwind)

    def _run(self) -> None:
        forbid_blocking("the runtime's event loop")
        try:
            self._loop.run_forever()
        finally:
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.close()


def _failure(error: Exception, partial: str) -> ProviderError:
    logger.error("A provider failed", exc_info=error)
    failure = ProviderError(f"The provider failed: {type(error).__name__}: {error}", partial)
    failure.__cause__ = error
    return failure


async def _left(toolset: Toolset, agent: str) -> None:
    try:
        await toolset.leave(agent)
    except Exception:  # other people's code: the agent is gone all the same
        logger.exception("Toolset %s did not give back what it held for agent %s", toolset.name, agent)
