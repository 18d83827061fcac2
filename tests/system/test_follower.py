"""Followers: what a host commits, as another process reads it; and turns that are waited for so."""

from contextlib import closing

import pytest

from ikigai_actors import ActorSystem, AgentDead, Kind, Reply, ScriptedProvider, TurnInterrupted
from ikigai_actors.records.agents.registry import Died
from ikigai_actors.records.mail.mail import PROMPT, Send
from ikigai_actors.records.messages.messages import Message
from ikigai_actors.store import Store, open_store
from ikigai_actors.store.migrations import ensure_schema
from ikigai_actors.store.unit import write_alone
from ikigai_actors.system.remote.follower import Follower, News, watching
from ikigai_actors.system.remote.turn import RemoteTurn
from tests.kit.blocking_provider import DEADLINE, Gate
from tests.kit.echo import echo

NOW = 2_000_000_000_000


def begun(store: Store, agents: list[str] | None = None) -> Follower:
    follower = Follower(store, agents)
    follower.begin(0)
    return follower


def spoken(news: News) -> list[str]:
    return [message.content for message in news.messages if message.kind in (Kind.USER, Kind.ASSISTANT)]


def message(number: int, kind: str, content: str = "", **data: object) -> Message:
    return Message("kid", number, kind, content, data, number)


def news(*messages: Message, turn: int = 0, died: str | None = None) -> News:
    return News(messages, [Died("kid", "killed", died)] if died is not None else [], {"kid": turn}, ())


def test_what_is_committed_is_told_once_and_what_was_there_before_is_not(durable: str) -> None:
    with ActorSystem.open(durable, ScriptedProvider(echo)) as system, closing(open_store(durable)) as store:
        system.root.prompt("before").get(timeout=DEADLINE)
        follower = begun(store)
        assert follower.news().messages == []
        system.root.prompt("after").get(timeout=DEADLINE)
        assert spoken(follower.news()) == ["after", "after / 3"]
        assert follower.news().messages == []


def test_those_who_are_born_and_die_meanwhile_are_told_of(durable: str) -> None:
    with ActorSystem.open(durable, ScriptedProvider(echo)) as system, closing(open_store(durable)) as store:
        old = system.root.fork("one")
        old.reply(timeout=DEADLINE)
        follower = begun(store)
        young = system.root.fork("two")
        young.reply(timeout=DEADLINE)
        for agent in (old, young):
            agent.kill(reason="no more")
        seen = follower.news()
        assert spoken(seen) == ["two", "two / 1"]
        assert {(death.agent_uuid, death.reason) for death in seen.died} == {(a.uuid, "no more") for a in (old, young)}
        assert (follower.news().messages, follower.news().died) == ([], [])


def test_a_death_by_a_clock_that_is_slow_is_told_all_the_same(durable: str) -> None:
    with ActorSystem.open(durable, ScriptedProvider(echo)) as system, closing(open_store(durable)) as store:
        kid = system.root.fork()
        follower = Follower(store)
        follower.begin(NOW)
        kid.kill()  # long before now, by the clock of the host
        assert [death.agent_uuid for death in follower.news().died] == [kid.uuid]
        assert follower.news().died == []


def test_what_is_told_of_some_at_a_time_is_what_is_told_of_all_at_once(durable: str) -> None:
    with ActorSystem.open(durable, ScriptedProvider(echo)) as system, closing(open_store(durable)) as store:
        kids = [system.root.fork() for _ in range(6)]
        follower, whole = Follower(store), Follower(store)
        for view in (follower, whole):
            view.begin(NOW)
        for number, kid in enumerate(kids):
            kid.prompt(f"tea {number}").get(timeout=DEADLINE)
        kids[0].rename("anna")
        kids[5].kill(reason="no more")  # long before now, by the clock of the host
        pages = [follower.page(3)]
        while follower.is_midway:
            pages.append(follower.page(3))
        assert [len(page.turns) for page in pages] == [3, 3, 1]
        at_once = whole.news()
        assert sorted(text for page in pages for text in spoken(page)) == sorted(spoken(at_once))
        assert [death for page in pages for death in page.died] == at_once.died
        assert [renamed for page in pages for renamed in page.renamed] == at_once.renamed
        assert (follower.page(9).messages, follower.news().messages, follower.is_midway) == ([], [], False)


def test_only_those_who_are_named_are_followed_into_their_death(durable: str) -> None:
    with ActorSystem.open(durable, ScriptedProvider(echo)) as system, closing(open_store(durable)) as store:
        followed, other = system.root.fork(), system.root.fork()
        follower = begun(store, [followed.uuid])
        followed.prompt("mine").get(timeout=DEADLINE)
        other.prompt("its").get(timeout=DEADLINE)
        other.kill()
        followed.kill()
        seen = follower.news()
        assert spoken(seen) == ["mine", "mine / 1"]
        assert [death.agent_uuid for death in seen.died] == [followed.uuid]


def test_a_log_whose_rows_are_wrong_hides_nobody_else(durable: str) -> None:
    with ActorSystem.open(durable, ScriptedProvider(echo)) as system, closing(open_store(durable)) as store:
        kid = system.root.fork(name="kid")
        follower = begun(store)
        wrong = [(kid.uuid, kid.record.fork_message_id + number, "user", "x", "{", 5, b"") for number in (2, 3)]
        store.write(lambda tx: tx.append(wrong))
        system.root.prompt("tea").get(timeout=DEADLINE)
        assert spoken(follower.news()) == ["tea", "tea / 1"]
        assert follower.news().messages == []


def test_the_host_is_told_while_there_is_one(durable: str) -> None:
    with closing(open_store(durable)) as store:
        with ActorSystem.open(durable, ScriptedProvider(echo)):
            follower = Follower(store)
            [host] = follower.begin(NOW).hosts
            assert [owner.id for owner in follower.news().hosts] == [host.id]
        assert not follower.news().hosts


def test_a_watch_on_hosts_wakes_for_what_a_host_commits(durable: str) -> None:
    gate = Gate()
    with (
        ActorSystem.open(durable, gate.provider) as system,
        closing(open_store(durable)) as store,
        watching(store) as watch,
    ):
        follower = Follower(store)
        follower.begin(NOW)
        system.root.prompt("go")
        gate.wait_until_asked()
        gate.open()
        heard: list[str] = []
        while "done" not in heard:
            assert watch.wait(DEADLINE), f"It was not woken after {heard}"
            heard += spoken(follower.news())
        assert heard == ["go", "done"]


def test_a_watch_gives_up_after_its_time(durable: str) -> None:
    with closing(open_store(durable)) as store:
        ensure_schema(store)
        with watching(store) as watch:
            while watch.wait(0.05):  # the first time it may have to connect
                pass
            assert not watch.wait(0.0)


def test_a_turn_ends_with_the_reply_that_follows_its_own_prompt() -> None:
    turn = RemoteTurn("kid", prompt=3)
    assert turn.follow(news(message(4, Kind.USER, "other", mail=2), message(5, Kind.ASSISTANT, "to it"))) is None
    assert turn.follow(news(message(6, Kind.USER, "mine", mail=3), turn=6)) is None
    assert turn.begun
    calls = message(7, Kind.ASSISTANT, "look", stop_reason="tool_use")
    assert turn.follow(news(calls, message(8, Kind.TOOL_RESULT, "found"), turn=6)) is None
    end = turn.follow(news(message(9, Kind.ASSISTANT, "so it is"), message(10, Kind.USER, "next"), turn=10))
    assert isinstance(end, Reply)
    assert end.text == "so it is"


@pytest.mark.parametrize("left", [[], [message(7, Kind.ASSISTANT, "look", stop_reason="tool_use")]])
def test_a_turn_without_a_finished_reply_was_interrupted(left: list[Message]) -> None:
    turn = RemoteTurn("kid", turn=6)
    assert isinstance(turn.follow(news(*left)), TurnInterrupted)


def test_a_turn_that_its_agent_does_not_live_to_see_ends_with_the_death() -> None:
    end = RemoteTurn("kid", prompt=3).follow(news(died="enough"))
    assert isinstance(end, AgentDead)
    assert "enough" in str(end)


def test_the_turn_of_a_prompt_from_elsewhere_is_found_in_the_rows(durable: str) -> None:
    with ActorSystem.open(durable, ScriptedProvider(echo)) as system, closing(open_store(durable)) as store:
        kid = system.root.fork(name="kid")
        follower = begun(store, [kid.uuid])
        mails = [write_alone(store, Send(kid.uuid, None, text, 5, PROMPT)).id for text in ("one", "two")]
        turns = [RemoteTurn(kid.uuid, prompt=mail) for mail in mails]
        ends: dict[int, object] = {}
        with watching(store) as watch:
            while len(ends) < 2:
                seen = follower.news()
                for number, turn in enumerate(turns):
                    if number not in ends and (end := turn.follow(seen)) is not None:
                        ends[number] = end
                assert len(ends) == 2 or watch.wait(DEADLINE)
        assert [getattr(ends[number], "text", None) for number in (0, 1)] == ["one / 1", "two / 3"]
