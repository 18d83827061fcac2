"""Closing a system: all of it is given up, whatever goes wrong with a part, and nothing waits for ever."""

import asyncio
import signal
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from typing import Any, NoReturn

import pytest

from ikigai_actors import ActorSystem, FunctionProvider, Reply, Request, ScriptedProvider, tool
from ikigai_actors.actors.closing import Closing
from ikigai_actors.actors.futures import TimedOut
from ikigai_actors.actors.threads import SYSTEM_THREADS
from ikigai_actors.agent.executor import Executor
from ikigai_actors.agent.subscriptions import Event, Publisher, ToolTrouble
from ikigai_actors.errors import BadInput, SystemClosed, WouldDeadlock
from ikigai_actors.providers.base import OnDelta
from ikigai_actors.store import open_store
from ikigai_actors.system.attached import AttachedSystem
from ikigai_actors.system.platform import SYSTEM_PLATFORM
from ikigai_actors.tools.base import Tell, Toolset
from ikigai_actors.tools.function import Tool
from tests.kit.blocking_provider import DEADLINE
from tests.kit.databases import eventually
from tests.kit.open_on import Withholding, open_on
from tests.kit.tool_scripts import calling

PLANTED: list[Callable[[], BaseException]] = [
    lambda: LookupError("planted"),
    lambda: SystemExit("planted"),
    KeyboardInterrupt,
    lambda: pytest.fail.Exception("planted"),
    asyncio.CancelledError,
    GeneratorExit,
]
"""What the end of a part may raise."""


class Part(Toolset):
    """A provider, and a toolset without tools, that raises so many times when it is closed."""

    name = "part"

    def __init__(self, error: Callable[[], BaseException] | None = None, times: int = 1) -> None:
        self._error, self._times = error, times
        self.closed = 0

    async def open(self, tell: Tell) -> Sequence[Tool]:
        """See `Toolset.open`."""
        return []

    async def leave(self, agent: str) -> None:
        """See `Toolset.leave`."""

    async def respond(self, request: Request, on_delta: OnDelta) -> Reply:
        """See `Provider.respond`."""
        return Reply("hello")

    async def close(self) -> None:
        """See `Toolset.close`."""
        self.closed += 1
        if self._error is not None and self.closed <= self._times:
            raise self._error()


def is_free(database: str) -> bool:
    """Whether the database can be opened by this very process, and works."""
    with ActorSystem.open(database, ScriptedProvider(lambda request: "there")) as system:
        return system.root.prompt("go").get(timeout=DEADLINE).text == "there"


class LastLook(Part):
    """A toolset that reads files and trees while it is closed."""

    seen: tuple[object, ...] = ()

    async def close(self) -> None:
        """See `Toolset.close`."""
        assert self.read_blobs is not None
        assert self.trees is not None
        self.seen = self.read_blobs([]), self.trees.of("nobody", "nothing")


def test_a_toolset_reads_the_database_until_it_is_closed_itself() -> None:
    toolset = LastLook()
    ActorSystem.open(":memory:", tools=[toolset]).close()
    assert len(toolset.seen) == 2


@pytest.mark.sample(1, "a system for each")
@pytest.mark.parametrize("make", PLANTED)
def test_a_part_that_fails_keeps_no_other_from_its_end_and_is_tried_again(
    durable: str, make: Callable[[], BaseException]
) -> None:
    broken, sound, last = Part(make), Part(), Part(make)
    system = ActorSystem.open(durable, broken, {"last": last}, tools=[sound])
    root = system.root
    with pytest.raises(Exception) as raised:  # noqa: PT011 - each its own
        system.close()
    assert any("'part' was to be closed" in note or "part was to be closed" in note for note in raised.value.__notes__)
    assert any("There was another one" in note for note in raised.value.__notes__)
    assert [part.closed for part in (broken, sound, last)] == [1, 1, 1]
    assert is_free(durable)
    with pytest.raises(SystemClosed):
        root.prompt("go")
    system.close()
    assert [part.closed for part in (broken, sound, last)] == [2, 1, 2]
    system.close()
    assert [part.closed for part in (broken, sound, last)] == [2, 1, 2]


def test_a_provider_that_goes_by_two_names_is_closed_once() -> None:
    part = Part()
    ActorSystem.open(":memory:", part, {"also": part, "again": part}).close()
    assert part.closed == 1


def test_an_error_of_the_block_is_not_replaced_by_one_of_the_end(durable: str) -> None:
    with pytest.raises(ZeroDivisionError) as raised, ActorSystem.open(durable, Part(lambda: LookupError("planted"))):
        raise ZeroDivisionError
    assert "planted" in "".join(raised.value.__notes__)
    assert is_free(durable)


@pytest.mark.usefixtures("uncollected")
def test_ctrl_c_while_all_is_closed_leaves_nothing_open(durable: str) -> None:
    """It comes while a provider takes its time, which then has it in a second attempt."""

    class Slow(Part):
        async def close(self) -> None:
            self.closed += 1
            if self.closed == 1:
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
                await asyncio.Event().wait()

    slow = Slow()
    system = ActorSystem.open(durable, slow, tools=[other := Part()])
    system._runtime.executor._patience = 0.05
    with pytest.raises(KeyboardInterrupt):
        system.close()
    assert is_free(durable)
    with suppress(TimedOut):
        system.close()
    system.close()
    assert other.closed == 1
    assert slow.closed == 2


def test_an_attempt_that_close_does_not_know_of_is_waited_for_and_its_part_tried_again() -> None:
    """As when Ctrl-C comes between the beginning of an attempt and the line that notes it."""
    begun = threading.Event()

    class Slow(Part):
        async def close(self) -> None:
            self.closed += 1
            if self.closed == 1:
                begun.set()
                await asyncio.Event().wait()

    slow, executor = Slow(), Executor(patience=0.01, unwind=0.01)
    executor._closed, executor._left = True, [slow]
    asyncio.run_coroutine_threadsafe(executor._close_all(), executor._loop)
    assert begun.wait(DEADLINE)
    executor.close([slow])
    assert slow.closed == 2


def test_a_part_whose_end_never_comes_is_left_alone() -> None:
    class Hanging(Part):
        async def close(self) -> None:
            self.closed += 1
            while self.closed == 1:
                with suppress(asyncio.CancelledError):
                    await asyncio.Event().wait()

    hanging, sound = Hanging(), Part()
    executor = Executor(patience=0.01, unwind=0.01)
    with pytest.raises(TimedOut, match=r"part did not close within 0\.01 s"):
        executor.close([hanging, sound])
    assert sound.closed == 1
    executor.close([])
    assert hanging.closed == 2


def test_a_subscriber_that_never_returns_is_left_alone() -> None:
    publisher, leave, heard = Publisher(SYSTEM_THREADS, patience=0.01), threading.Event(), list[Event]()

    def hear(event: Event) -> None:
        assert leave.wait(DEADLINE)

    publisher.subscribe(hear)
    publisher.subscribe(heard.append)
    publisher.publish(trouble := ToolTrouble("t", "told"))
    with pytest.raises(TimedOut, match="Let it return"):
        publisher.close()
    assert heard == [trouble]
    leave.set()
    while True:
        with suppress(TimedOut):
            publisher.close()
            return


def test_a_subscriber_may_close_the_system_while_it_is_closed(durable: str) -> None:
    system = ActorSystem.open(durable, ScriptedProvider(["hello"]))
    entered, leave, back = threading.Event(), threading.Event(), threading.Event()

    def hear(event: Event) -> None:
        entered.set()
        assert leave.wait(DEADLINE)
        system.close()
        back.set()

    system.subscribe(hear)
    system.root.prompt("go")
    assert entered.wait(DEADLINE)
    with ThreadPoolExecutor(2) as pool:
        closings = [pool.submit(system.close) for _ in range(2)]
        leave.set()
        for closing in closings:
            closing.result(DEADLINE)
    assert back.wait(DEADLINE)
    assert is_free(durable)


def test_code_on_the_event_loop_that_closes_the_system_is_told_that_it_would_wait_for_itself() -> None:
    errors: list[Exception] = []

    @tool
    async def end() -> str:
        try:
            system.close()
        except WouldDeadlock as error:
            errors.append(error)
        return "tried"

    with ActorSystem.open(":memory:", ScriptedProvider([calling("end"), "done"]), tools=[end]) as system:
        assert system.root.prompt("go").get(timeout=DEADLINE).text == "done"
    assert len(errors) == 1


def _no_dispatcher(count: int) -> NoReturn:
    raise LookupError("planted")


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"on_orphan": "nonsense"}, BadInput),
        ({"parts": replace(SYSTEM_PLATFORM, dispatcher=_no_dispatcher)}, LookupError),
        ({"tools": [Part(), 5]}, Exception),
    ],
)
def test_an_open_that_fails_half_way_gives_all_back(durable: str, options: dict[str, Any], error: Any) -> None:
    before = set(threading.enumerate())
    with pytest.raises(error):
        ActorSystem.open(durable, ScriptedProvider([]), **options)
    assert is_free(durable)
    left = [thread for thread in threading.enumerate() if thread not in before]
    left = [thread for thread in left if thread.name != "ikigai-following"]  # which ends by itself, at its next look
    for thread in left:  # a worker has no work any more, and is about to end
        thread.join(DEADLINE)
    assert not [thread.name for thread in left if thread.is_alive()]


def test_an_attached_system_ends_all_its_parts_although_a_subscriber_fails(durable: str) -> None:
    with ActorSystem.open(durable, ScriptedProvider(["hello"])) as system:
        attached, heard = AttachedSystem.open(durable), threading.Event()

        def hear(event: Event) -> None:
            heard.set()
            raise SystemExit("planted")

        attached.subscribe(hear)
        system.root.prompt("go").get(timeout=DEADLINE)
        assert heard.wait(DEADLINE)
        attached.close()
        attached.close()


def test_each_step_is_carried_out_and_what_failed_is_tried_again() -> None:
    did: list[str] = []

    def step(name: str, *errors: BaseException) -> tuple[str, Callable[[], None]]:
        left = list(errors)

        def act() -> None:
            did.append(name)
            if left:
                raise left.pop(0)

        return name, act

    ctrl_c, first = KeyboardInterrupt(), LookupError("b")
    steps = [step("a"), step("b", first), step("c", ctrl_c, ValueError("c")), step("d")]
    closing = Closing(SYSTEM_THREADS, lambda: steps)
    with pytest.raises(KeyboardInterrupt) as raised:
        closing.run()
    came_up, other = "This came up when {} was to be closed.", "There was another one: LookupError: b"
    assert raised.value.__notes__ == [came_up.format("c"), f"{other}\n{came_up.format('b')}"]
    with pytest.raises(ValueError, match="c"):
        closing.run()
    closing.run()
    closing.run()
    assert did == [*"abcd", *"bc", "c"]


def test_a_close_within_a_close_leaves_it_to_the_outer_one() -> None:
    did: list[int] = []

    def again() -> None:
        did.append(len(did))
        closing.run()

    closing = Closing(SYSTEM_THREADS, lambda: [("itself", again)])
    closing.run()
    assert did == [0]


def test_functions_that_never_end_do_not_keep_a_system_from_closing() -> None:
    started, leave = threading.Event(), threading.Event()

    def worker(request: Request) -> str:
        started.set()
        assert leave.wait(DEADLINE)
        return "late"

    with ActorSystem.open(":memory:", FunctionProvider(worker)) as system:
        system.root.prompt("go")
        assert started.wait(DEADLINE)
    leave.set()


def test_what_an_agent_has_not_looked_at_as_the_system_closes_ends_as_closed(database: str) -> None:
    dispatcher = Withholding()
    with open_on(open_store(database), ScriptedProvider([]), lambda _: dispatcher) as system:
        child = system.root.fork()
        eventually(lambda: system._actor(child.uuid).is_idle, "the end of its slice")
        dispatcher.withhold(system._actor(child.uuid))
        unheard = (child.prompt("go"), child.aio.reply())
    for asked in unheard:
        with pytest.raises(SystemClosed):
            asked.get(timeout=DEADLINE)
