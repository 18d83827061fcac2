"""What is awaited of agents of another host: who asks hears the answer, whatever was read, told or given away."""

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from ikigai_actors import AgentDead, Kind, Message, NoHost, Reply, TurnInterrupted
from ikigai_actors.actors.clock import SystemClock
from ikigai_actors.actors.futures import Future
from ikigai_actors.actors.threads import SYSTEM_THREADS
from ikigai_actors.agent.messages import Handover
from ikigai_actors.agent.turn import events as on
from ikigai_actors.agent.turn.state import LifecycleState
from ikigai_actors.records.lives.signals import SendSignal
from ikigai_actors.records.log.append import Append, FencingToken
from ikigai_actors.records.log.log_unit import LogUnit
from ikigai_actors.records.mail.prompts import KeepPrompt, new_prompts
from ikigai_actors.records.messages.pieces import AppendPieces, NewPieces
from ikigai_actors.store.hosts.rows import RETURNS
from ikigai_actors.store.migrations import ensure_schema
from ikigai_actors.store.sqlite.store import SQLiteStore
from ikigai_actors.store.unit import write_alone
from ikigai_actors.system.remote.agents import RemoteAgents
from ikigai_actors.system.remote.client import Client
from ikigai_actors.system.remote.follower import Follower
from ikigai_actors.system.remote.publisher import SharedPublisher
from supervisors.signals import Signal
from tests.kit.databases import sql
from tests.kit.trees import HOST, plant


class Desk:
    """A process that asks agents "a" and "b" of a host, whose commits and pieces of replies a test writes."""

    def __init__(self) -> None:
        self.now = 1_000
        """The time of the database, in milliseconds since 1970."""
        self.store = SQLiteStore(now_ms=lambda: self.now)
        ensure_schema(self.store)
        plant(self.store, a="root", b="root")
        self.follower = Follower(self.store, [])
        self.publisher = SharedPublisher(SYSTEM_THREADS)
        client = Client(self.store, SystemClock(), lambda answer: None)
        self.remote = RemoteAgents(self.store, client, self.publisher, self.follower, "here")
        for agent in "ab":
            self.says(agent, 1, Kind.NOTE, "", 0)
        self.remote.refresh(lambda: self.follower.begin(0))

    def says(self, agent: str, number: int, kind: Kind, content: str, turn: int, **data: object) -> None:
        """The host commits a message of an agent, which is in this turn then; one of the user takes a prompt up."""
        message = Message(agent, number, kind, content, data, 1)
        write_alone(self.store, Append(LogUnit(agent, (message,), turn=turn), FencingToken(HOST, 1)))

    def answers(self, agent: str, number: int, mail: int, text: str) -> None:
        """The host has an agent take up a prompt, and answer it."""
        self.says(agent, number, Kind.USER, "tea?", number, mail=mail)
        self.says(agent, number + 1, Kind.ASSISTANT, text, 0)

    def streams(self, agent: str, at: int) -> None:
        """The host writes what has come of a reply."""
        write_alone(self.store, AppendPieces(HOST, 1, [NewPieces(agent, 1, at, [("text", "te")], lambda: False)]))

    def ask(self, agent: str) -> tuple[int, Future[Reply]]:
        """Prompt an agent: its mail, and the future."""
        future = Future[Reply]()
        self.remote.actor(agent).deliver(on.Prompt("tea?", future))
        return max(prompt.mail for prompt in self.store.read(new_prompts)), future

    def leaves(self, agent: str, head: int, turn: int, *callers: Any, commands: tuple[Any, ...] = ()) -> None:
        """The actor of an agent leaves it to the host; what that means is carried out later, with `look`."""
        self.remote.actor(agent).inherit(Handover(head, turn, LifecycleState(), callers, commands))

    def lets(self, lease: int) -> None:
        """Have the host believed for so many milliseconds from now on; for 0 its lease runs out now."""
        self.store.write(lambda tx: sql(tx, f"UPDATE hosts SET lease_until = {self.now + lease}"))

    def look(self, *agents: str) -> None:
        """Do what is asked for by now, and look at these agents, none for all, as a hint has it."""
        self.remote.carry_out()
        self.remote.refresh(lambda: self.follower.news(frozenset(agents) or None))


@pytest.fixture(params=[False, True], ids=["awaited", "everybody"])
def desk(request: pytest.FixtureRequest) -> Iterator[Desk]:
    """One that follows agents of whom something is awaited, and one that follows everybody."""
    made = Desk()
    with closing(made.store):
        made.remote.follow(lambda: request.param, 0)
        yield made


def text_of(future: Future[Reply]) -> str:
    return future.get(timeout=0).text


def test_who_asks_hears_the_answer_though_the_prompt_was_taken_up_in_a_look_at_another_agent(desk: Desk) -> None:
    desk.remote.listen(lambda: (True, True), 0)
    (mine, answer), (_, other) = desk.ask("a"), desk.ask("b")
    desk.says("a", 2, Kind.USER, "tea?", 2, mail=mine)
    desk.streams("a", 2)
    desk.look("b")  # it reads the pieces, and first what their agent has committed
    desk.says("a", 3, Kind.ASSISTANT, "tea!", 0)
    desk.look("a")
    assert text_of(answer) == "tea!"
    assert not other.done()


def test_who_awaits_a_kept_prompt_hears_the_answer_that_came_before_this_process_began_to_await_it(desk: Desk) -> None:
    kept = write_alone(desk.store, KeepPrompt("a", "tea?", 1, 0)).mail
    prompt = on.Prompt("tea?", Future[Reply](), kept)
    desk.leaves("a", 1, 0, commands=(prompt,))
    desk.answers("a", 2, kept, "tea!")
    desk.remote.refresh(desk.follower.news)
    desk.look()
    assert text_of(prompt.caller) == "tea!"


def test_who_awaits_a_kept_prompt_hears_the_answer_that_comes_later(desk: Desk) -> None:
    kept = write_alone(desk.store, KeepPrompt("a", "tea?", 1, 0)).mail
    prompt = on.Prompt("tea?", Future[Reply](), kept)
    desk.leaves("a", 1, 0, commands=(prompt,))
    desk.look()
    desk.answers("a", 2, kept, "tea!")
    desk.look()
    assert text_of(prompt.caller) == "tea!"


@pytest.mark.parametrize("begins", [0, 4], ids=["none has begun", "another has begun"])
def test_who_awaits_a_turn_that_is_given_away_hears_its_outcome_and_no_later_ones(desk: Desk, begins: int) -> None:
    caller = Future[Reply]()
    desk.says("a", 2, Kind.USER, "tea?", 2)
    desk.leaves("a", 2, 2, caller)
    desk.says("a", 3, Kind.ASSISTANT, "tea!", 0)
    if begins:
        desk.says("a", begins, Kind.USER, "milk?", begins)
    desk.look()
    assert text_of(caller) == "tea!"


def test_who_awaits_a_turn_that_is_given_away_hears_what_ends_it_later(desk: Desk) -> None:
    caller = Future[Reply]()
    desk.says("a", 2, Kind.USER, "tea?", 2)
    desk.leaves("a", 2, 2, caller)
    desk.look()
    assert not caller.done()
    desk.says("a", 3, Kind.ASSISTANT, "tea!", 0)
    desk.look("a")
    assert text_of(caller) == "tea!"


def test_who_asks_hears_of_a_death_that_comes_before_everybody_is_followed(desk: Desk) -> None:
    _, answer = desk.ask("a")
    write_alone(desk.store, SendSignal("a", Signal.KILL, 5, spread=False, reason="enough"))
    desk.remote.follow(lambda: True, 5)
    desk.look()
    with pytest.raises(AgentDead, match="enough"):
        answer.get(timeout=0)


def test_what_leaves_with_an_agent_and_stands_in_a_row_is_not_asked_again(desk: Desk) -> None:
    kept = write_alone(desk.store, KeepPrompt("a", "tea?", 1, 0)).mail
    desk.remote.actor("a").take_over(on.Prompt("tea?", Future(), kept))
    desk.look()
    assert [prompt.mail for prompt in desk.store.read(new_prompts)] == [kept]
    assert desk.remote.awaited() == frozenset()


def test_a_prompt_that_an_int_came_for_and_that_leaves_with_an_agent_is_taken_back(desk: Desk) -> None:
    kept = write_alone(desk.store, KeepPrompt("a", "tea?", 1, 0)).mail
    prompts = [on.Prompt("tea?", Future[Reply](), mail, interrupted=True) for mail in (kept, 0)]
    desk.leaves("a", 1, 0, commands=(prompts[0],))
    desk.remote.actor("a").take_over(prompts[1])
    desk.look()
    assert [isinstance(prompt.caller.exception(), TurnInterrupted) for prompt in prompts] == [True, True]
    assert desk.store.read(new_prompts) == []


def test_an_interrupt_of_one_turn_that_leaves_with_an_agent_does_not_hit_the_next_turn(desk: Desk) -> None:
    desk.says("a", 2, Kind.USER, "tea?", 2)
    desk.remote.actor("a").take_over(on.Interrupt(Future(), turn=1))
    desk.look()
    assert desk.store.read(lambda tx: sql(tx, "SELECT uuid FROM agents WHERE interrupted <> 0")) == []


def test_who_asks_hears_the_answer_though_all_leases_ran_out_meanwhile_as_when_the_server_was_away(desk: Desk) -> None:
    desk.lets(10_000)
    mine, answer = desk.ask("a")
    desk.now += 60_000  # nobody could renew, or look
    desk.look()
    theirs, other = desk.ask("b")
    marked = Future[Any]()
    desk.remote.actor("a").deliver(on.SetMark("here", marked))
    desk.now += RETURNS - 1
    desk.look()
    desk.lets(10_000)
    desk.answers("a", 2, mine, "tea!")
    desk.answers("b", 2, theirs, "milk!")
    desk.now += RETURNS
    desk.look()
    assert (text_of(answer), text_of(other), marked.done()) == ("tea!", "milk!", False)


def test_who_asks_hears_that_nobody_runs_the_agents_once_all_hosts_have_been_silent_for_seconds(desk: Desk) -> None:
    desk.lets(10_000)
    _, answer = desk.ask("a")
    desk.now += 10_000
    desk.look()
    assert not answer.done()
    desk.now += RETURNS
    desk.look()
    with pytest.raises(NoHost):
        answer.get(timeout=0)
    _, later = desk.ask("a")
    with pytest.raises(NoHost):
        later.get(timeout=0)


def test_who_asks_hears_at_once_that_a_host_has_ended_which_shared_the_agents_with_nobody(desk: Desk) -> None:
    desk.lets(10_000)
    _, answer = desk.ask("a")
    desk.store.write(lambda tx: tx.run("end_host", id=HOST))
    desk.look()
    with pytest.raises(NoHost):
        answer.get(timeout=0)


def test_who_asks_waits_some_seconds_for_hosts_that_share_the_agents_to_be_started_again(desk: Desk) -> None:
    desk.lets(10_000)
    desk.store.write(lambda tx: sql(tx, "UPDATE hosts SET name = 'shared'"))
    _, answer = desk.ask("a")
    desk.store.write(lambda tx: tx.run("end_host", id=HOST))
    desk.look()
    desk.now += RETURNS - 1
    desk.look()
    assert not answer.done()
    desk.now += 1
    desk.look()
    with pytest.raises(NoHost):
        answer.get(timeout=0)


def test_whether_somebody_listens_is_asked_while_no_other_thread_can_say_it(desk: Desk) -> None:
    """Else a thread that has seen nobody could say so after another one has subscribed."""
    looking: Any = desk.remote._looking
    desk.remote.listen(lambda: (looking.acquire(blocking=False) is False, False), 0)
    assert desk.store.read(lambda tx: sql(tx, "SELECT COUNT(*) FROM listeners WHERE until > now_ms()")) == [(1,)]
