"""The executor runs work that takes time.

Model requests and ``async`` tools run on an event loop, plain tools on threads.

The executor decides nothing. It hands the outcome of a job (`ikigai_actors.agent.jobs`) to a callback, which posts it
to the agent's inbox. No failure of other people's code stops the event loop or other jobs.
"""

import asyncio
import concurrent.futures
import contextlib
import contextvars
import inspect
import logging
import math
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, cast

from ikigai_actors.actors.actor import AsideCall
from ikigai_actors.actors.clock import SYSTEM_CLOCK, Clock
from ikigai_actors.actors.closing import raise_first
from ikigai_actors.actors.futures import TimedOut, acting_agent, forbid_blocking
from ikigai_actors.actors.loop_watchdog import SAMPLE_EVERY, LoopWatchdog
from ikigai_actors.actors.spare_threads import SpareThreads
from ikigai_actors.actors.threads import HARMLESS, SYSTEM_THREADS, Threads, current_threads, in_thread, tried_to_end
from ikigai_actors.actors.tool_slots import MOST_ABANDONED, Slot, Slots
from ikigai_actors.actors.wait_registry import ActingCode, WaitRegistry, acting_code
from ikigai_actors.agent.jobs import Job, ModelRequest, OnReply, OnResult, Permit, ToolRun
from ikigai_actors.agent.service_gate import ServiceGate
from ikigai_actors.agent.subscriptions import AS_EVENT
from ikigai_actors.errors import BadInput, IkigaiError, SystemClosed
from ikigai_actors.providers.base import OnDelta, Provider, Reply, Request
from ikigai_actors.providers.checked import NoReply, checked_reply
from ikigai_actors.providers.function import FunctionProvider
from ikigai_actors.text import described
from ikigai_actors.tools.base import Tell, Toolset
from ikigai_actors.tools.effect_keys import CurrentCall, acting_call
from ikigai_actors.tools.function import Result, Tool, checked_result, not_begun, timed_out
from ikigai_actors.tools.rules.acting import acting_rules
from ikigai_actors.tools.rules.rule import Rules

logger = logging.getLogger(__name__)

A = TypeVar("A")

UNWIND = 2.0
"""The seconds that cancelled requests and tools have to clean up when the system closes."""

_PATIENCE = 30.0
"""Seconds that a toolset or a provider has to close itself."""

TOOL_THREADS = 32
"""The most plain tools that run at once, not counting those that wait for agents. Further ones wait for a slot."""

_PAST_ITS_TIME = (
    "a call did not end with its time-out. Its thread goes on, for nothing can end it: add a time-out to what "
    "it waits for."
)


_UNWANTED = Result("The tool was cancelled before it began.", True)


def _nothing() -> None:
    pass


class Executor:
    """Runs model requests and tools on one event loop and on threads.

    Any thread may call any method. Only `open` and `close` wait.
    """

    def __init__(
        self,
        tool_threads: int = TOOL_THREADS,
        unwind: float = UNWIND,
        threads: Threads = SYSTEM_THREADS,
        patience: float = _PATIENCE,
        most_abandoned: int = MOST_ABANDONED,
        tell: Callable[[str, str], None] = lambda tool, text: None,
        clock: Clock = SYSTEM_CLOCK,
        held: float = _PATIENCE,
        registry: WaitRegistry | None = None,
        step_aside: Callable[[AsideCall, str], bool] = lambda call, name: False,
    ) -> None:
        """Start the event loop.

        Args:
            tool_threads: how many plain tools run at once.
            unwind: seconds that `close` gives cancelled work to clean up.
            threads: makes the thread of the loop.
            patience: seconds that `close` gives each toolset and provider.
            most_abandoned: how many threads may run on after their calls have timed out without delaying other tools.
            tell: is called, on the loop's thread, with the name of a tool and a text that a person must read.
            clock: measures for how long other people's code blocks the loop.
            held: the seconds that `close` waits for such code to stop blocking the loop.
            registry: records for which agents such code waits; None makes a new registry.
            step_aside: has the calling worker run a plain function, as `Dispatcher.step_aside` does.
        """
        self._registry = registry or WaitRegistry()
        self._unwind, self._patience, self._held = unwind, patience, held
        self._step_aside = step_aside
        self._spare = SpareThreads(threads)
        self._loop = threads.new_event_loop()
        self._thread = threads.thread(self._run, "ikigai-executor")
        self._slots = Slots(self._loop, tool_threads, most_abandoned)
        self._tell, self._told = tell, set[str]()
        self._jobs: dict[Job[Any], None] = {}  # in order, so that they are cancelled in order
        self._async_tools: dict[asyncio.Task[Result], None] = {}
        self._toolsets: list[Toolset] = []
        self._at_toolsets: set[asyncio.Task[Any]] = set()
        self._left: list[Toolset | Provider] = []
        self._ending: concurrent.futures.Future[list[Exception]] | None = None
        self._closed = False
        self._attempts: set[asyncio.Task[Any] | None] = set()  # to close all, which cancel not one another
        self._one_attempt = asyncio.Lock()
        self._closing = threading.Lock()  # held to start something: nothing is started on a loop that is closed
        self._thread.start()
        self._watchdog = LoopWatchdog(self._loop, self._thread, clock)
        self._unwatch = threads.repeat(SAMPLE_EVERY, self._watchdog.sample, "ikigai-watchdog")

    def ask_model(
        self,
        provider: Provider,
        request: Request,
        agent: object,
        on_delta: OnDelta,
        on_reply: OnReply,
        prepare: Callable[[], object] | None = None,
        gate: ServiceGate | None = None,
        at: int = 0,
        own_code: bool = False,
        enter: Callable[[], object] = _nothing,
        permit: Permit | None = None,
    ) -> ModelRequest:
        """Send a request to a model.

        The callbacks run on the event loop's thread, or on the thread of a plain function.

        Args:
            provider: the provider that answers.
            agent: the handle that `current_agent` gives to code that the provider runs.
            on_delta: takes the pieces of the reply.
            on_reply: takes the reply, or the error in its place; called once, unless the request is cancelled.
            prepare: called on a thread before the provider is asked; it may block. An exception that it raises is the
                outcome.
            gate: the queue before the provider; None when it has no limits.
            at: see `ModelRequest.at`.
            own_code: whether the provider is the agent's own code.
            enter: called in the context in which the provider runs.
            permit: the permission of the agent; once it has ended, the provider is not asked.
        """

        def prepared() -> None:
            acting_agent.set(agent)  # in the context of this callback, which the call's task copies
            acting_code.set(ActingCode(request.agent, self._registry, call.is_over))
            enter()

        def begin(answer: Coroutine[Any, Any, Reply]) -> None:
            name = f"Provider {_name(provider)}, asked by agent {request.name or request.agent},"
            call.begin(answer, lambda _: self._jobs.pop(call, None), name)

        call = ModelRequest(self._loop, on_delta, on_reply, own_code, request.agent, at, permit)
        with self._closing:
            if self._closed:
                pass
            elif isinstance(provider, FunctionProvider) and provider.is_plain and prepare is None and gate is None:
                self._jobs[call] = None
                self._call_function(provider, request, call, prepared, begin)
            else:
                self._jobs[call] = None

                def ask() -> None:
                    prepared()
                    begin(_answer(provider, request, call, prepare, gate))

                self._loop.call_soon_threadsafe(ask)
        return call

    def _call_function(
        self,
        provider: FunctionProvider,
        request: Request,
        call: ModelRequest,
        prepared: Callable[[], None],
        begin: Callable[[Coroutine[Any, Any, Reply]], None],
    ) -> None:
        """Run a plain function on a thread: on the calling one, if it is a worker, which then also handles the answer.

        The event loop is used only if the function returns an awaitable.
        """

        def work() -> "Reply | None":  # quoted: an annotation of an inner function is made at each call
            prepared()
            answer = provider.call(request)
            if not inspect.isawaitable(answer):
                return checked_reply(provider.reply(answer, call.delta))
            self._loop.call_soon_threadsafe(lambda: begin(_checked(provider.finish(answer, call.delta))))
            return None

        self._run_plain(call, work, f"{provider.name} {request.agent}")

    def _run_plain(self, job: Job[A], work: Callable[[], A | None], name: str) -> None:
        """Run a plain function as a job on a thread, which has this name meanwhile. The event loop is not used.

        A calling worker runs the function itself, and then also handles the outcome.
        """

        def ended(outcome: A) -> None:
            job.pass_on(outcome)
            self._jobs.pop(job, None)

        def run() -> "Callable[[], object] | None":
            outcome = contextvars.Context().run(job.run, work)
            if outcome is not None:
                return partial(ended, outcome)
            if job.is_over():
                self._jobs.pop(job, None)
            return None

        def run_all() -> None:
            if (then := run()) is not None:
                then()

        if not self._step_aside(run, name):
            self._spare.run(run_all, name)

    def open(self, toolset: Toolset, tell: Tell) -> Sequence[Tool]:
        """Start a toolset, and return its tools. `close` closes it. Raises the errors of the toolset."""

        async def begin() -> Sequence[Tool]:
            self._note(asyncio.current_task())
            try:
                tools = await toolset.open(tell)
            except HARMLESS:
                raise
            except BaseException as error:
                raise tried_to_end(error) from error
            self._toolsets.append(toolset)  # in here: Ctrl-C may come right after it
            return tools

        opening = asyncio.run_coroutine_threadsafe(begin(), self._loop)
        try:
            return current_threads().result(opening, None)
        except BaseException:  # Ctrl-C too, while a server takes its time
            opening.cancel()
            raise

    def requests(self) -> list[ModelRequest]:
        """The model requests that are in flight or have just ended, the oldest first. Thread-safe."""
        return [job for job in list(self._jobs) if isinstance(job, ModelRequest)]

    @property
    def workspace(self) -> Path | None:
        """The directory of the first workspace; None without one."""
        return next((toolset.directory for toolset in list(self._toolsets) if toolset.directory is not None), None)

    def text_of(self, agent: str, path: str) -> str | None:
        """Return the text of a file as an agent sees it; None where no toolset knows the file.

        Thread-safe; may wait.
        """
        texts = (toolset.text_of(agent, path) for toolset in list(self._toolsets))
        return next((text for text in texts if text is not None), None)

    def printed(self, agent: str) -> dict[str, str]:
        """The output so far of an agent's running calls, by the id of the call. Thread-safe."""
        return {call: text for toolset in list(self._toolsets) for call, text in toolset.printed(agent).items()}

    def leave(self, agent: str) -> None:
        """Let the toolsets release the resources of an agent that does not run here any more."""

        def begin() -> None:
            for toolset in self._toolsets:
                self._note(self._loop.create_task(_left(toolset, agent)))

        with self._closing:
            if self._toolsets and not self._closed:
                self._loop.call_soon_threadsafe(begin)

    def give_up(self, provider: Provider, reply: str) -> None:
        """Let a provider end a reply, given by its id, that its service still makes. Errors are only logged."""

        async def work() -> None:
            try:
                await cast(Any, provider).give_up(reply)
            except asyncio.CancelledError:
                raise
            except BaseException as error:  # other people's code
                logger.warning("Reply %s could not be given up: %s", reply, described(error))

        with self._closing:
            if not self._closed:
                self._loop.call_soon_threadsafe(lambda: self._note(self._loop.create_task(work())))

    def merge_files(self, agent: str, child: str, how: str, done: Callable[[list[str] | IkigaiError], object]) -> None:
        """Have a toolset merge the files of a child into those of an agent; ``done`` gets the paths or the error."""

        async def merge() -> None:
            try:
                done(await self._copying().merge_files(agent, child, how or None))
            except IkigaiError as error:
                done(error)
            except asyncio.CancelledError:
                done(SystemClosed("The system was closed as the files were merged: look at them, or merge again."))
                raise
            except Exception as error:  # of the disk, or other people's code
                logger.exception("Files of %s could not be merged into those of %s", child, agent)
                done(IkigaiError(f"The files could not be merged: {described(error)}."))

        with self._closing:
            if self._closed:
                done(SystemClosed("The system is closed, and no files were merged."))
            else:
                self._loop.call_soon_threadsafe(lambda: self._note(self._loop.create_task(merge())))

    async def run_hook(self, command: str, text: str) -> tuple[int, str, str]:
        """Run the command of a hook in the workspace, with ``text`` as its input.

        Returns the exit status, the output and the error output. Raises `BadInput` when there is no workspace.
        """
        for toolset in self._toolsets:
            if type(toolset).run_hook is not Toolset.run_hook:
                return await toolset.run_hook(command, text)
        raise BadInput("There is no workspace here, in whose fence its commands run. Open the system with one.")

    def _copying(self) -> Toolset:
        for toolset in self._toolsets:
            if type(toolset).merge_files is not Toolset.merge_files:
                return toolset
        raise BadInput("There is no workspace here, so there are no files to merge. Open the system with one.")

    def run_tool(
        self,
        tool: Tool,
        arguments: Mapping[str, Any],
        agent: object,
        on_result: OnResult,
        current: CurrentCall | None = None,
        enter: Callable[[], object] = _nothing,
        rules: Rules = (),
        permit: Permit | None = None,
    ) -> ToolRun:
        """Run a tool: a plain function on a tool thread, an ``async`` one on the loop.

        A plain function without a timeout, such as a step of a program, does not wait for a free tool thread: it runs
        on the thread of its program.

        Args:
            arguments: the arguments that the model has passed.
            agent: the handle that `current_agent` returns in the tool.
            on_result: takes the result, on the loop's thread; called once, unless the run is cancelled or the executor
                is closed.
            current: the value that `current_call` returns in the tool.
            enter: called in the context in which the tool runs.
            rules: the rules in force for the agent.
            permit: the permission of the agent; once it has ended, the tool does not begin.
        """

        def prepared() -> None:
            acting_agent.set(agent)
            acting_code.set(ActingCode(getattr(agent, "uuid", ""), self._registry, run.is_over))
            if current is not None:
                acting_call.set(current)
            acting_rules.set(rules)
            enter()

        def begin() -> None:
            prepared()
            name = f"Tool {_name(tool)}, called by agent {getattr(agent, 'uuid', agent)},"
            run.begin(
                self._with_time_limit(tool, arguments, name, run.is_over), lambda _: self._jobs.pop(run, None), name
            )

        def work() -> Result:
            prepared()
            return checked_result(tool.call(arguments))

        run = ToolRun(self._loop, on_result, _name(tool), permit)
        with self._closing:
            if not self._closed:
                self._jobs[run] = None
                if tool.timeout == math.inf and not tool.is_async:
                    self._run_plain(run, work, f"ikigai-tool {tool.name}")
                else:
                    self._loop.call_soon_threadsafe(begin)
        return run

    def replay(self, work: Callable[[], str], agent: object, done: Callable[[str], None]) -> None:
        """Call ``work``, which runs the function of a program, on a new thread; ``done`` gets the result."""

        async def ask() -> None:
            acting_agent.set(agent)
            done(await in_thread(work, "ikigai-program"))

        with self._closing:
            if not self._closed:
                asyncio.run_coroutine_threadsafe(ask(), self._loop)

    def consult(self, decide: Callable[[], bool | str], agent: object, done: Callable[[bool | str], None]) -> None:
        """Call the approver function ``decide`` on a new thread; ``done`` gets its decision.

        If the function fails, the call is denied.
        """

        async def ask() -> None:
            acting_agent.set(agent)
            try:
                done(_checked_decision(await in_thread(decide, "ikigai-approver")))
            except Exception as error:  # other people's code
                logger.exception("An approver failed")
                done(f"the program that decides failed: {described(error)}")

        with self._closing:
            if not self._closed:
                asyncio.run_coroutine_threadsafe(ask(), self._loop)

    def attend(self, work: Callable[[], Coroutine[Any, Any, A]], done: Callable[[A | Exception], object]) -> None:
        """Run a coroutine of a provider on the event loop; ``done`` gets its result or its error.

        `close` cancels it without calling ``done``.
        """

        async def attended() -> None:
            answer: A | Exception
            try:
                answer = await work()
            except Exception as error:
                answer = error
            done(answer)

        with self._closing:
            if not self._closed:
                self._loop.call_soon_threadsafe(lambda: self._note(self._loop.create_task(attended())))

    async def _with_time_limit(
        self, tool: Tool, arguments: Mapping[str, Any], name: str, is_over: Callable[[], bool]
    ) -> Result:
        """Run the tool for at most its timeout. A plain function may before wait as long for a thread.

        The tool does not begin once ``is_over``.
        """

        def begin() -> object:
            return _UNWANTED if is_over() else tool.call(arguments)

        if tool.is_async:
            task = self._loop.create_task(_called(tool, arguments, is_over), name=name)
            self._async_tools[task] = None
            task.add_done_callback(lambda task: self._async_tools.pop(task))
            try:
                ended, _ = await asyncio.wait({task}, timeout=tool.timeout)
            finally:
                task.cancel()  # not waited for: a tool may be deaf to it
            return task.result() if ended else timed_out(tool)
        try:
            async with asyncio.timeout(tool.timeout):
                slot = await self._slots.acquire(tool.name)
        except TimeoutError:
            return not_begun(tool, self._slots.holders())
        call = partial(slot.run, begin)
        running = asyncio.ensure_future(in_thread(call, f"ikigai-tool {tool.name}"))
        running.add_done_callback(lambda _: slot.give_back())
        try:
            done, _ = await asyncio.wait({running}, timeout=tool.timeout)
        except asyncio.CancelledError:
            self._abandon(slot)
            raise
        if not done:
            self._abandon(slot)
            self._tell_once(tool.name, _PAST_ITS_TIME)
            return timed_out(tool)
        return checked_result(running.result())

    def _abandon(self, slot: Slot) -> None:
        """Free the slot of a call that has timed out, whose thread runs on."""
        slot.abandon()
        if self._slots.full:
            self._tell_once(
                "tools",
                f"{self.abandoned} calls of plain tools go on past their time ({self._slots.holders()}). Each further "
                "one keeps other tools from running until it ends: end what they wait for, or restart this program.",
            )

    def _tell_once(self, tool: str, text: str) -> None:
        if tool not in self._told:
            self._told.add(tool)
            logger.warning("%s: %s", tool, text, extra=AS_EVENT)
            self._tell(tool, text)

    @property
    def abandoned(self) -> int:
        """The number of threads of plain tools that still run after their calls have ended or timed out."""
        return self._slots.abandoned

    def close(self, providers: Iterable[Provider]) -> None:
        """Cancel all jobs, close the toolsets and the providers, and end the event loop.

        If a part fails to close, the others are closed, and then its error is raised. The event loop stays, so that a
        second call can close that part.
        """
        with self._closing:
            if not self._closed:
                self._closed = True
                self._left = list({id(provider): provider for provider in providers}.values())  # one may have two names
        for call in list(self._jobs):
            call.cancel()
        if self._loop.is_closed():
            return
        if self._ending is None or self._ending.done():  # else Ctrl-C ended the wait for it
            self._ending = asyncio.run_coroutine_threadsafe(self._close_all(), self._loop)
        raise_first(self._ended(self._ending))
        self._loop.call_soon_threadsafe(self._loop.finish)
        self._thread.join()
        self._unwatch()

    def _ended(self, ending: "concurrent.futures.Future[list[Exception]]") -> list[Exception]:
        """Wait for the end of `_close_all`, however long it takes, unless code blocks the loop for too long."""
        threads = current_threads()
        while not ending.done():
            answered: concurrent.futures.Future[None] = concurrent.futures.Future()
            self._loop.call_soon_threadsafe(answered.set_result, None)
            try:
                threads.result(answered, self._held)
            except TimeoutError as error:
                holder = self._watchdog.holder() or "Something"
                text = f"The event loop did not close within {self._held:g} s. {holder} holds it: let it return."
                raise TimedOut(text) from error
            with contextlib.suppress(TimeoutError):
                threads.result(ending, _PATIENCE)
        return ending.result()

    async def _close_all(self) -> list[Exception]:
        """Give the cancelled calls a moment to unwind, then close each part, even if others fail; return the errors.

        A part ends its own tasks, in its own order, because cancelling one of them from here may leave a process
        running. A part that could not be closed is closed by the next attempt. That attempt waits for this one, since
        Ctrl-C may interrupt `close` when this has begun and `close` does not know of it yet.
        """
        self._attempts.add(asyncio.current_task())
        async with self._one_attempt:
            calls = [call.task for call in list(self._jobs) if call.task is not None]
            await self._unwound([*calls, *self._async_tools, *self._at_toolsets])
            self._left, self._toolsets = [*self._toolsets, *self._left], []
            errors = []
            for part in self._left:
                if (error := await self._closed_part(part)) is not None:
                    errors.append(error)
                else:
                    self._left = [other for other in self._left if other is not part]
            rest = [task for task in asyncio.all_tasks() if task not in self._attempts]
            for task in rest:
                task.cancel()
            await self._unwound(rest)
            return errors

    async def _closed_part(self, part: Toolset | Provider) -> Exception | None:
        """Close a part in a separate task, which is left alone when it takes too long; return its error, or None."""
        closing = self._loop.create_task(_close(part))
        await asyncio.wait({closing}, timeout=self._patience)
        if not closing.done():
            return TimedOut(f"{_name(part)} did not close within {self._patience:g} s. Let its close() return.")
        return closing.result()

    def _note(self, task: "asyncio.Task[Any] | None") -> None:
        """Remember a task that a toolset runs for the system. The task is ended before the toolsets are closed."""
        assert task is not None  # on the loop
        self._at_toolsets.add(task)
        task.add_done_callback(self._at_toolsets.discard)

    async def _unwound(self, tasks: "list[asyncio.Task[Any]]") -> None:
        """Wait a moment for cancelled tasks. A task that ignores the cancellation ends with the event loop."""
        if tasks:
            await asyncio.wait(tasks, timeout=self._unwind)

    def _run(self) -> None:
        forbid_blocking("the runtime's event loop")
        self._loop.run_to_end()
        try:
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        except BaseException:  # a generator of other people's
            logger.exception("A generator on the event loop tried to end the process")
        finally:
            self._loop.close()


async def _answer(
    provider: Provider,
    request: Request,
    call: ModelRequest,
    prepare: Callable[[], object] | None,
    gate: ServiceGate | None,
) -> Reply:
    """Return the reply of a provider. Raises the errors of the provider, and `NoReply`."""
    async with gate or contextlib.nullcontext():
        if prepare is not None:
            await in_thread(prepare, "ikigai-attachments")
        if call.is_over():  # it was cancelled on its way: its task hears of that a moment later
            raise asyncio.CancelledError
        answer: object = provider.respond(request, call.delta)
        if not inspect.isawaitable(answer):
            raise NoReply(f"Expected respond() to be declared with `async def`; when called, it gave {answer!r}.")
        return await _checked(answer)


async def _checked(answer: Awaitable[object]) -> Reply:
    return checked_reply(await answer)


async def _called(tool: Tool, arguments: Mapping[str, Any], is_over: Callable[[], bool]) -> Result:
    """The result of an ``async`` tool. Nothing that it raises ends the event loop, as `SystemExit` would."""
    if is_over():
        return _UNWANTED
    try:
        return checked_result(await tool.call_async(arguments))
    except HARMLESS:
        raise
    except BaseException as error:
        raise tried_to_end(error) from error


async def _close(part: Toolset | Provider) -> Exception | None:
    """Close a part that is other people's code; return its error, or None."""
    try:
        closing: object = part.close()
        if inspect.isawaitable(closing):
            await closing
    except BaseException as error:
        logger.exception("%s did not close", _name(part))
        failure = error if isinstance(error, Exception) else tried_to_end(error)
        failure.add_note(f"This came up when {_name(part)} was to be closed.")
        return failure
    return None


def _name(part: Toolset | Provider | Tool) -> str:
    try:
        return f"{part.name}"
    except BaseException:  # other people's code
        return type(part).__name__


def _checked_decision(decision: object) -> bool | str:
    if isinstance(decision, bool | str):
        return decision
    if inspect.iscoroutine(decision):
        decision.close()
    raise TypeError(f"expected True, False or a text of a plain function, got {decision!r}")


async def _left(toolset: Toolset, agent: str) -> None:
    try:
        await toolset.leave(agent)
    except asyncio.CancelledError:
        raise
    except BaseException:  # other people's code: the agent is gone all the same
        logger.exception("Toolset %s did not give back what it held for agent %s", _name(toolset), agent)
