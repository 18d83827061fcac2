"""The system for asyncio programs.

    async with AsyncActorSystem.open("ship.db") as system:
        mast = await system.root.fork("Plan the mast.", name="mast")
        print((await mast.reply()).text)

An `AsyncActorSystem` has the methods of an `ActorSystem`. Each returns a future, which the program awaits. Methods that
wait for the database, and opening and closing, run on another thread, so the event loop is not blocked. Cancelling an
``await`` does not cancel the request itself.
"""

import asyncio
import threading
from collections.abc import Callable, Collection, Generator
from functools import wraps
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar, overload

from ikigai_actors.actors.beside import Beside
from ikigai_actors.actors.futures import Future
from ikigai_actors.actors.threads import in_thread
from ikigai_actors.agent.subscriptions import Event
from ikigai_actors.errors import NoHost
from ikigai_actors.records.documents import Documents
from ikigai_actors.system.approvals import Approvals
from ikigai_actors.system.directory import E
from ikigai_actors.system.endpoints import Endpoints
from ikigai_actors.system.event_feed import AsyncEventFeed
from ikigai_actors.system.handles.ref import AgentRef, AsyncAgentRef, System
from ikigai_actors.system.questions import OpenQuestions
from ikigai_actors.system.subscriptions import Subscriptions
from ikigai_actors.system.system import ActorSystem

_P = ParamSpec("_P")
_S = TypeVar("_S")
_S_co = TypeVar("_S_co", covariant=True)
_T = TypeVar("_T")
_U = TypeVar("_U")
_System = TypeVar("_System", bound=System, covariant=True)
_Face = TypeVar("_Face", bound="AsyncSystem[System]")


class _Beside(Generic[_S_co]):
    def __init__(self, blocking: _S_co, beside: Beside) -> None:
        self._blocking, self._beside = blocking, beside


def _asks(call: Callable[Concatenate[_S, _P], _T]) -> Callable[Concatenate[_Beside[_S], _P], Future[_T]]:
    """Convert a blocking method to one that returns a future."""

    @wraps(call)
    def ask(self: _Beside[_S], /, *args: _P.args, **kwargs: _P.kwargs) -> Future[_T]:
        blocking = self._blocking
        return self._beside.read(lambda: call(blocking, *args, **kwargs))

    return ask


def _asks_in_order(call: Callable[Concatenate[_S, _P], _T]) -> Callable[Concatenate[_Beside[_S], _P], Future[_T]]:
    """Convert a blocking method to one that returns a future.

    Calls are carried out in the order in which they were made.
    """

    @wraps(call)
    def ask(self: _Beside[_S], /, *args: _P.args, **kwargs: _P.kwargs) -> Future[_T]:
        blocking, done = self._blocking, Future[_T]()
        self._beside.post(lambda: done.settle(call(blocking, *args, **kwargs)), done)
        return done

    return ask


def _gives(
    call: Callable[Concatenate[_S, _P], _T], face: Callable[[_T], _U]
) -> Callable[Concatenate[_Beside[_S], _P], Future[_U]]:
    """Convert a blocking method that returns handles to one that returns a future; ``face`` makes the handles async."""

    @wraps(call)
    def ask(self: _Beside[_S], /, *args: _P.args, **kwargs: _P.kwargs) -> Future[_U]:
        blocking = self._blocking
        return self._beside.read(lambda: face(call(blocking, *args, **kwargs)))

    return ask


class AsyncDocuments(_Beside[Documents]):
    """The documents of a system, for an asyncio program."""

    write = _asks_in_order(Documents.write)
    delete = _asks_in_order(Documents.delete)
    read = _asks(Documents.read)
    list = _asks(Documents.list)
    log = _asks(Documents.log)


class AsyncEndpoints(_Beside[Endpoints]):
    """The endpoints of a system, for an asyncio program."""

    add = _asks_in_order(Endpoints.add)
    list = _asks(Endpoints.list)
    get = _asks(Endpoints.get)
    counts = _asks(Endpoints.counts)
    arrivals = _asks(Endpoints.arrivals)
    pause = _asks_in_order(Endpoints.pause)
    resume = _asks_in_order(Endpoints.resume)
    remove = _asks_in_order(Endpoints.remove)
    receive = _asks_in_order(Endpoints.receive)
    take_held = _asks_in_order(Endpoints.take_held)
    take_all_held = _asks_in_order(Endpoints.take_all_held)
    replay = _asks_in_order(Endpoints.replay)
    replay_dead = _asks_in_order(Endpoints.replay_dead)
    preview = _asks(Endpoints.preview)


class AsyncSubscriptions(_Beside[Subscriptions]):
    """The subscriptions of a system, for an asyncio program."""

    add = _asks_in_order(Subscriptions.add)
    list = _asks(Subscriptions.list)
    get = _asks(Subscriptions.get)
    counts = _asks(Subscriptions.counts)
    deliveries = _asks(Subscriptions.deliveries)
    pause = _asks_in_order(Subscriptions.pause)
    resume = _asks_in_order(Subscriptions.resume)
    remove = _asks_in_order(Subscriptions.remove)
    redeliver = _asks_in_order(Subscriptions.redeliver)


class AsyncApprovals(_Beside[Approvals]):
    """The calls that wait for somebody's approval, for an asyncio program."""

    pending = _asks(Approvals.pending)
    approve = _asks(Approvals.approve)
    deny = _asks(Approvals.deny)


class AsyncQuestions(_Beside[OpenQuestions]):
    """The questions that wait for a person, for an asyncio program."""

    pending = _asks(OpenQuestions.pending)
    get = _asks(OpenQuestions.get)
    answer = _asks(OpenQuestions.answer)


def _aio(agent: AgentRef) -> AsyncAgentRef:
    return agent.aio


def _aios(agents: list[AgentRef]) -> list[AsyncAgentRef]:
    return [agent.aio for agent in agents]


def _grouped(groups: dict[str, list[AgentRef]]) -> dict[str, list[AsyncAgentRef]]:
    return {name: _aios(agents) for name, agents in groups.items()}


class AsyncSystem(_Beside[_System]):
    """The methods that both kinds of systems have in common, for an asyncio program."""

    def __init__(self, system: _System) -> None:
        """Use an open system.

        This reads agent 0 from the database; `AsyncActorSystem.open` does so without blocking the loop.
        """
        super().__init__(system, system._beside)
        self.documents = AsyncDocuments(system.documents, system._beside)
        """The documents that all agents share."""
        self.endpoints = AsyncEndpoints(system.endpoints, system._beside)
        """The endpoints by which events from outside reach agents."""
        self.subscriptions = AsyncSubscriptions(system.subscriptions, system._beside)
        """The subscriptions by which receivers outside get events."""
        self.approvals = AsyncApprovals(system.approvals, system._beside)
        """The calls that wait for a person's decision."""
        self.questions = AsyncQuestions(system.questions, system._beside)
        """All that waits for a person, and the answers."""
        try:
            self._root: AsyncAgentRef | None = system.root.aio
        except NoHost:  # the process that makes agent 0 was not done
            self._root = None

    @property
    def sync(self) -> _System:
        """The synchronous system, for code that may block."""
        return self._blocking

    @property
    def root(self) -> AsyncAgentRef:
        """Agent 0, from which all others descend."""
        if self._root is None:
            self._root = self._blocking.root.aio
        return self._root

    agent = _gives(System.agent, _aio)
    agents = _asks(System.agents)
    groups = _gives(System.groups, _grouped)
    hosts = _asks(System.hosts)
    spending = _asks(System.spending)
    send = _asks_in_order(System.send)
    move = _asks(System.move)
    export = _asks(System.export)
    import_ = _gives(System.import_, _aio)
    verify = _asks(System.verify)
    checkpoint = _asks(System.checkpoint)
    find = _asks(System.find)
    up = _asks(System.up)
    subscribe = _asks(System.subscribe)

    @overload
    def events(
        self,
        agents: Collection[AsyncAgentRef | AgentRef | str] | None = None,
        *,
        only: tuple[type[E], ...],
        since: str | None = None,
    ) -> AsyncEventFeed[E]: ...

    @overload
    def events(
        self,
        agents: Collection[AsyncAgentRef | AgentRef | str] | None = None,
        only: tuple[type, ...] = (),
        since: str | None = None,
    ) -> AsyncEventFeed[Event]: ...

    def events(
        self,
        agents: Collection[AsyncAgentRef | AgentRef | str] | None = None,
        only: tuple[type, ...] = (),
        since: str | None = None,
    ) -> AsyncEventFeed[Any]:
        """The events of agents by ``async for``; see `ActorSystem.events`."""
        system = self._blocking
        among = None if agents is None else [agent if isinstance(agent, str) else agent.uuid for agent in agents]
        return AsyncEventFeed(system._beside, lambda: system.events(among, only, since))

    def handle(self, uuid: str) -> AsyncAgentRef:
        """The handle of an agent whose uuid is known; nothing is looked up."""
        return self._blocking.handle(uuid).aio

    async def close(self) -> None:
        """Close every part in order, as `ActorSystem.close` does. A close that is cancelled goes on to its end."""
        await _to_its_end(self._blocking.close)

    async def __aenter__(self: _Face) -> _Face:
        self._blocking._check_open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close the system. If the block has failed, an error of closing is added to that error as a note."""
        await _to_its_end(lambda: self._blocking.__exit__(kind, error, traceback))


_GIVEN_UP = 1.0
"""Seconds that a cancelled opening waits until the database is free again."""


class Opening(Generic[_Face]):
    """A system that is being opened. Use it with ``async with``, or await it."""

    def __init__(self, make: Callable[[], _Face]) -> None:
        self._make = make
        self._opened: _Face | None = None

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            raise AttributeError(
                f"The system is not open yet, so it has no {name}: use `async with AsyncActorSystem.open(…) as "
                "system`, or `system = await AsyncActorSystem.open(…)`."
            )

    def __await__(self) -> Generator[object, None, _Face]:
        return self._open().__await__()

    async def __aenter__(self) -> _Face:
        self._opened = await self._open()
        return self._opened

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close the system, as the system's own ``async with`` does."""
        assert self._opened is not None
        await self._opened.__aexit__(kind, error, traceback)

    async def _open(self) -> _Face:
        lock, given_up = threading.Lock(), False
        made: list[_Face] = []

        def make() -> None:
            opened = self._make()
            with lock:
                made.append(opened)
                if not given_up:
                    return
            opened.sync.close()

        opening = asyncio.ensure_future(in_thread(make, "ikigai-opening"))
        try:
            await asyncio.shield(opening)
        except asyncio.CancelledError:
            with lock:
                given_up = True
            for opened in made:
                await opened.close()
            await asyncio.wait([opening], timeout=_GIVEN_UP)  # the thread closes it; it may wait for another host
            raise
        return made[0]


def _opens(make: Callable[_P, _System], face: Callable[[_System], _Face]) -> Callable[_P, Opening[_Face]]:
    """Convert a function that opens a system to one that returns an `Opening`; ``face`` converts the system."""

    @wraps(make)
    def begin(*args: _P.args, **kwargs: _P.kwargs) -> Opening[_Face]:
        return Opening(lambda: face(make(*args, **kwargs)))

    return begin


class AsyncActorSystem(AsyncSystem[ActorSystem]):
    """Runs the agents of one database, for an asyncio program. Open it with `open`."""

    open = staticmethod(_opens(ActorSystem.open, lambda system: AsyncActorSystem(system)))
    attach = staticmethod(_opens(ActorSystem.attach, lambda system: AsyncSystem(system)))
    resume = _gives(ActorSystem.resume, _aios)
    drain = _asks(ActorSystem.drain)
    statistics = _asks(ActorSystem.statistics)


async def _to_its_end(close: Callable[[], None]) -> None:
    """Close on another thread. A cancellation is raised only after the close has ended."""
    closing = asyncio.ensure_future(in_thread(close, "ikigai-closing"))
    try:
        await asyncio.shield(closing)
    except asyncio.CancelledError:
        await closing
        raise
