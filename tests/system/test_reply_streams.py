"""Replies on their way, as other processes see them: each piece once, in order, and none behind the reply."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest

from ikigai_actors import ActorSystem, Message, Signal, Streamed
from ikigai_actors.actors.clock import SystemClock
from ikigai_actors.actors.threads import SYSTEM_THREADS
from ikigai_actors.agent.jobs import ModelRequest
from ikigai_actors.agent.subscriptions import Event
from ikigai_actors.errors import StoreUnavailable
from ikigai_actors.events import StreamCut
from ikigai_actors.providers.base import Delta
from ikigai_actors.records.log.append import Append, FencingToken
from ikigai_actors.records.log.log_unit import LogUnit
from ikigai_actors.records.messages.pieces import PiecesRow
from ikigai_actors.store import Store, open_store
from ikigai_actors.store.migrations import ensure_schema
from ikigai_actors.store.unit import write_alone
from ikigai_actors.store.writer import DirectWriter
from ikigai_actors.system.attached import AttachedSystem
from ikigai_actors.system.host.reply_streams import ReplyStreams
from ikigai_actors.system.remote.follower import Follower
from ikigai_actors.system.remote.reply_feed import ReplyFeed, ReplyNews
from tests.kit.blocking_provider import DEADLINE, Speaker
from tests.kit.databases import eventually, sql
from tests.kit.faults import FaultyStore
from tests.kit.trees import HOST, append, plant, says

# The pure feed


def row(number: int, agent: str, reply: int, text: str) -> PiecesRow:
    return PiecesRow(number, agent, reply, 1, [("text", text)])


def is_told(agent: str, text: str, *, cut: bool = False) -> ReplyNews:
    return ReplyNews(agent, cut, [("text", text)], 1)


def test_each_row_is_told_once_and_a_reply_that_ends_in_a_message_is_not_cut_off() -> None:
    feed = ReplyFeed()
    assert feed.follow({"h": [row(1, "a", 1, "te"), row(2, "b", 2, "x")]}, [], []) == [
        is_told("a", "te"),
        is_told("b", "x"),
    ]
    assert feed.behind("h") == 2
    assert feed.follow({"h": []}, [], []) == []
    assert feed.behind("h") == 2
    replied = Message("a", 9, "assistant", "tea", {}, 1)
    assert feed.follow({"h": [row(3, "a", 3, "more")]}, [replied], ["b"]) == [is_told("a", "more")]
    assert feed.follow({}, [replied], []) == []  # the end of the host cuts nothing off that was over


def test_another_reply_without_a_message_between_and_a_host_that_is_gone_cut_a_reply_off() -> None:
    feed = ReplyFeed()
    feed.follow({"h": [row(1, "a", 1, "te"), row(2, "b", 2, "x")]}, [], [])
    assert feed.follow({"h": [], "i": [row(1, "a", 1, "milk")]}, [], []) == [is_told("a", "milk", cut=True)]
    assert feed.follow({"i": []}, [], []) == [ReplyNews("b", True)]
    assert feed.behind("h") == 0
    assert feed.cut(["a", "b"]) == [ReplyNews("a", True)]
    assert feed.follow({}, [], []) == []


# The host and the follower, one step after the other


class Desk:
    """The replies of a host, as a test has them come, and a listener at the same database."""

    def __init__(self, store: Store) -> None:
        self.store = FaultyStore(store)
        self.requests: list[ModelRequest] = []
        writer = DirectWriter(lambda unit: write_alone(self.store, unit), lambda act, _: act())
        self.streams = ReplyStreams(lambda: self.requests, writer, HOST, SystemClock(), SYSTEM_THREADS)
        self.follower = self.late()

    def late(self) -> Follower:
        """A listener that begins now."""
        follower = Follower(self.store)
        follower.begin(0)
        follower.listen("another")
        return follower

    def ask(self, agent: str, at: int) -> ModelRequest:
        """A request of an agent leaves; the actor is not played."""
        loop = asyncio.new_event_loop()
        loop.close()  # nothing of it runs there
        request = ModelRequest(loop, lambda delta: None, lambda answer: None, agent=agent, at=at)
        self.requests.append(request)
        return request

    def heard(self, follower: Follower | None = None) -> list[object]:
        """What a listener is told: messages by their texts, pieces with their kinds, and what is cut off."""
        news = (follower or self.follower).news()
        cut = [reply.agent for reply in news.replies if reply.cut]
        return [*(message.content for message in news.messages), *(p for r in news.replies for p in r.pieces), *cut]


@pytest.fixture
def desk() -> Iterator[Desk]:
    with closing(open_store("sqlite:///:memory:")) as store:
        ensure_schema(store)
        plant(store, a="root")
        write_alone(store, append("a", 1, turn=1))
        yield Desk(store)


def test_what_is_received_is_told_as_it_comes_and_a_late_listener_gets_all_of_it(desk: Desk) -> None:
    request = desk.ask("a", 1)
    for text, kind in (("hm", "thinking"), ("te", "text")):
        request.delta(Delta(text, kind))
    desk.streams.write()
    assert desk.heard() == [("thinking", "hm"), ("text", "te")]
    desk.streams.write()
    assert desk.heard() == []
    request.delta(Delta("a"))
    desk.streams.write()
    assert desk.heard() == [("text", "a")]
    assert desk.heard(desk.late()) == [("thinking", "hm"), ("text", "te"), ("text", "a")]


def test_a_listener_that_reads_after_the_reply_gets_the_message_alone(desk: Desk) -> None:
    request = desk.ask("a", 1)
    request.delta(Delta("tea"))
    desk.streams.write()
    request.delta(Delta(" for two"))
    request.cancel()  # it is over, and what the actor commits comes next
    desk.streams.write()
    write_alone(
        desk.store, Append(LogUnit("a", says("a", 2, content="tea for two", kind="assistant")), FencingToken(HOST, 1))
    )
    assert desk.heard() == ["tea for two"]
    desk.requests.clear()
    desk.ask("a", 2).delta(Delta("more"))
    desk.streams.write()
    assert desk.heard() == [("text", "more")]
    assert len(desk.store.read(lambda tx: tx.run("pieces"))) == 1  # the void row is deleted


def test_what_could_not_be_written_is_told_the_next_time(desk: Desk) -> None:
    request = desk.ask("a", 1)
    request.delta(Delta("te"))
    desk.store.fails(StoreUnavailable("it is down, as planned"))
    with pytest.raises(StoreUnavailable):
        desk.streams.write()
    request.delta(Delta("a"))
    desk.streams.write()
    assert desk.heard() == [("text", "tea")]


def test_the_reply_that_follows_one_without_an_end_cuts_it_off(desk: Desk) -> None:
    desk.ask("a", 1).delta(Delta("half"))
    desk.streams.write()
    assert desk.heard() == [("text", "half")]
    desk.requests.pop().cancel()
    desk.ask("a", 1).delta(Delta("anew"))
    desk.streams.write()
    assert desk.heard() == [("text", "anew"), "a"]


def test_a_request_that_nobody_is_to_see_writes_nothing(desk: Desk) -> None:
    writes = desk.store.writes
    desk.ask("a", 0).delta(Delta("a summary"))
    desk.ask("root", 1)
    desk.streams.write()
    assert desk.store.writes == writes


# Two systems at one database


class Listener:
    """Keeps what a system tells of replies: pieces, messages of the model, and what is cut off."""

    def __init__(self, system: ActorSystem | AttachedSystem, only: tuple[type, ...] = ()) -> None:
        self.heard: list[str] = []
        self.subscription = system.subscribe(self._hear, only=only)

    def _hear(self, event: Event) -> None:
        match event:
            case Streamed():
                self.heard.append(f"~{event.text}")
            case StreamCut():
                self.heard.append("cut")
            case Message(kind="assistant"):
                self.heard.append(event.content)

    def awaits(self, *expected: str) -> None:
        eventually(lambda: self.heard == [*expected], str(expected))


def rows(system: ActorSystem) -> list[tuple[object, ...]]:
    return system._store.read(lambda tx: tx.run("pieces"))


def is_written_by_a_thread() -> bool:
    return any(thread.name == "ikigai-reply-streams" for thread in threading.enumerate())


def test_an_attached_system_hears_a_reply_as_it_comes_and_the_host_writes_only_while_it_listens(durable: str) -> None:
    speaker = Speaker()
    with ActorSystem.open(durable, speaker) as host:
        host.root.prompt("tea?")
        speaker.say("te")
        with AttachedSystem.open(durable) as system:
            ends = Listener(system, only=(Message,))
            assert host._store.read(lambda tx: sql(tx, "SELECT replies FROM listeners")) == [(0,)]  # it is there
            assert not is_written_by_a_thread()
            heard = Listener(system)
            heard.awaits("~te")
            assert is_written_by_a_thread()
            speaker.say("a")
            heard.awaits("~te", "~a")
            late = Listener(system)  # as one that subscribes late at the host
            speaker.say("!", None)
            host.root.reply(timeout=DEADLINE)
            eventually(lambda: heard.heard[-1] == "tea!", "the reply")
            assert "".join(heard.heard[:-1]).replace("~", "") in ("tea", "tea!")
            eventually(lambda: late.heard[-1:] == ends.heard == ["tea!"], "the reply, by all")
        eventually(lambda: not rows(host), "the end of the rows")
        assert host._store.read(lambda tx: sql(tx, "SELECT id FROM listeners")) == []


def test_an_interrupted_reply_ends_in_its_message_and_its_pieces_are_not_the_next_ones(
    new_sqlite: Callable[[], str],
) -> None:
    database, speaker = new_sqlite(), Speaker()
    with ActorSystem.open(database, speaker) as host, AttachedSystem.open(database) as system:
        heard = Listener(system)
        host.root.prompt("tea?")
        speaker.say("half")
        heard.awaits("~half")
        assert host.root.signal(Signal.INT)
        heard.awaits("~half", "half")
        host.root.prompt("milk?")
        speaker.say("whole")
        heard.awaits("~half", "half", "~whole")


def test_who_subscribes_after_the_last_one_has_left_hears_a_reply_from_its_beginning(durable: str) -> None:
    speaker = Speaker()
    with (
        ActorSystem.open(durable, provider=speaker) as host,
        AttachedSystem.open(durable) as system,
    ):
        first = Listener(system)
        host.root.prompt("go")
        speaker.say("half ")
        first.awaits("~half ")
        first.subscription.close()
        second = Listener(system)
        second.awaits("~half ")
        speaker.say("of it", None)
        eventually(lambda: "half of it" in second.heard, "the reply")
        assert "".join(text[1:] for text in second.heard if text.startswith("~")) in ("half ", "half of it")
