"""Events as an iterator that goes on where another one ended: without a gap, and nothing twice."""

import asyncio
from collections.abc import Callable
from contextlib import closing
from itertools import islice

import pytest

from ikigai_actors import ActorSystem, AsyncActorSystem, BadInput, Message, OfflineProvider
from ikigai_actors.agent.subscriptions import Event
from ikigai_actors.errors import StoreUnavailable
from ikigai_actors.records.agents.registry import Died
from ikigai_actors.store import open_store
from ikigai_actors.system.attached import AttachedSystem
from ikigai_actors.system.event_feed import EventFeed, EventInbox, Places
from ikigai_actors.system.handles.ref import AgentRef
from tests.kit.blocking_provider import DEADLINE
from tests.kit.faults import FaultyStore


def taken(feed: EventFeed, most: int) -> list[tuple[str, int]]:
    """The agents and positions of the next messages."""
    return [(event.agent, event.position) for event in islice(feed, most) if isinstance(event, Message)]


def own(agent: AgentRef) -> list[tuple[str, int]]:
    return [(message.agent, message.position) for message in agent.history() if message.agent == agent.uuid]


def test_a_feed_goes_on_where_another_one_ended_though_the_system_was_closed_meanwhile(durable: str) -> None:
    with ActorSystem.open(durable, OfflineProvider()) as system:
        kid = system.root.fork(name="kid")
        with system.events(only=(Message,)) as feed:
            kid.prompt("one").get(timeout=DEADLINE)
            assert taken(feed, 1) == own(kid)[1:2]
            position = feed.position
            kid.prompt("two").get(timeout=DEADLINE)
    with ActorSystem.open(durable, OfflineProvider()) as system:
        kid = system.agent("kid")
        kid.prompt("three").get(timeout=DEADLINE)
        with system.events(only=(Message,), since=position) as feed:
            kid.prompt("four").get(timeout=DEADLINE)
            assert taken(feed, 7) == own(kid)[2:]
            assert feed.position != position


def test_whoever_was_born_and_died_meanwhile_is_told_of(new_sqlite: Callable[[], str]) -> None:
    with ActorSystem.open(new_sqlite(), OfflineProvider()) as system:
        old = system.root.fork(name="old")
        with system.events() as feed:
            position = feed.position
        young = system.root.fork("hello", name="young")
        young.reply(timeout=DEADLINE)
        young.kill()
        old.kill()
        with system.events([old, young], only=(Message, Died), since=position) as feed:
            missed: list[Event] = [*islice(feed, 5)]
        assert [event.position for event in missed if isinstance(event, Message)] == [at for _, at in own(young)]
        assert {event.agent for event in missed if isinstance(event, Died)} == {old.uuid, young.uuid}
        with system.events([old, young], since=feed.position) as later:
            system.close()
            assert [*later] == []


def test_only_the_agents_that_are_named_are_heard(new_sqlite: Callable[[], str]) -> None:
    with ActorSystem.open(new_sqlite(), OfflineProvider()) as system:
        a, b = (system.root.fork(name=name) for name in "ab")
        with system.events(["b"], only=(Message,)) as feed:
            for agent in (a, b):
                agent.prompt("tea").get(timeout=DEADLINE)
            assert taken(feed, 2) == own(b)[1:]


def test_an_attached_process_goes_on_from_the_position_of_the_host(durable: str) -> None:
    with ActorSystem.open(durable, OfflineProvider()) as host, AttachedSystem.open(durable) as system:
        kid = host.root.fork(name="kid")
        with host.events(only=(Message,)) as feed:
            kid.prompt("one").get(timeout=DEADLINE)
            assert len(taken(feed, 2)) == 2
        with system.events(only=(Message,), since=feed.position) as there:
            kid.prompt("two").get(timeout=DEADLINE)
            assert taken(there, 2) == own(kid)[3:]


def test_a_read_that_fails_loses_nothing(durable: str) -> None:
    with closing(open_store(durable)) as inner, ActorSystem.open(durable, OfflineProvider()) as system:
        kid = system.root.fork(name="kid")
        with system.events(only=(Message,)) as feed:
            pass
        kid.prompt("one").get(timeout=DEADLINE)
        system._store = faulty = FaultyStore(inner)
        with system.events(only=(Message,), since=feed.position) as later:
            faulty.unreadable = StoreUnavailable("as planned")
            with pytest.raises(StoreUnavailable, match="as planned"):
                next(later)
            faulty.unreadable = None
            assert taken(later, 2) == own(kid)[1:]


def test_a_gap_in_what_a_subscription_hears_is_read(new_sqlite: Callable[[], str]) -> None:
    with ActorSystem.open(new_sqlite(), OfflineProvider()) as system:
        kid = system.root.fork(name="kid")
        with system.events(only=(Message,)) as feed:
            feed._inbox = EventInbox()  # what comes goes to the one before, and is lost
            for label in "abc":
                kid.mark(label)
            feed._inbox.put(kid.history()[-1])
            assert taken(feed, 3) == own(kid)[1:]


def test_a_position_that_no_feed_gave_is_refused(new_sqlite: Callable[[], str]) -> None:
    with ActorSystem.open(new_sqlite(), OfflineProvider()) as system:
        for since in ("", "1", "2abc", "1" + "x" * 40, Places(0, {"no uuid": 1}, {}).encode(0)):
            with pytest.raises(BadInput, match="since"):
                system.events(since=since)


def test_an_asyncio_program_awaits_events_and_a_cancelled_wait_loses_none(durable: str) -> None:
    async def run() -> None:
        async with AsyncActorSystem.open(durable, OfflineProvider()) as system:
            kid = await system.root.fork(name="kid")
            async with system.events(only=(Message,)) as feed:
                waiting = asyncio.ensure_future(anext(feed))
                await asyncio.sleep(0)
                waiting.cancel()
                await kid.prompt("tea")
                heard = [await anext(feed), await anext(feed)]
                assert [(event.agent, event.position) for event in heard if isinstance(event, Message)] == own(
                    kid.sync
                )[1:]
            with pytest.raises(StopAsyncIteration):
                await anext(feed)

    asyncio.run(run())
