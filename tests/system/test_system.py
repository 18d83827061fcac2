"""The library, from outside: fork, history, settings, names, errors. On every database."""

from functools import partial
from pathlib import Path

import pytest

from ikigai_actors import (
    ActorSystem,
    AgentDead,
    AgentNotFound,
    AgentStopped,
    AmbiguousAgent,
    BadInput,
    Kind,
    NameTaken,
    ProviderError,
    Request,
    ScriptedProvider,
)
from ikigai_actors.errors import MarkNotFound
from ikigai_actors.records.agents.words import words_of
from tests.kit.blocking_provider import DEADLINE
from tests.kit.databases import bury
from tests.kit.echo import echo, kinds, open_echo
from tests.kit.trees import stop


def test_a_prompt_is_answered_and_both_are_history(database: str) -> None:
    with open_echo(database) as system:
        reply = system.root.prompt("hello").get(timeout=DEADLINE)
        assert reply.text == "hello / 1"
        assert [(m.kind, m.content) for m in system.root.history()] == [("user", "hello"), ("assistant", "hello / 1")]
        assert system.root.state == "idle"
        assert system.root.record.turn == 0


def test_a_child_inherits_the_history_and_goes_its_own_way(database: str) -> None:
    with open_echo(database) as system:
        system.root.prompt("one").get(timeout=DEADLINE)
        child = system.root.fork("two", name="kid")
        assert child.reply(timeout=DEADLINE).text == "two / 3"
        sibling = system.root.fork()
        system.root.prompt("three").get(timeout=DEADLINE)
        contents = [m.content for m in child.history() if m.kind in ("user", "assistant")]
        assert contents == ["one", "one / 1", "two", "two / 3"]
        assert sibling.prompt("mine").get(timeout=DEADLINE).text == "mine / 3"
        assert child.parent == system.root
        assert child.supervisor == system.root
        assert system.root.children() == [child, sibling]
        assert system.agent("kid") == child


def test_settings_are_inherited_and_a_fork_can_override_them(database: str) -> None:
    asked: list[Request] = []

    def answer(request: Request) -> str:
        asked.append(request)
        return "ok"

    with ActorSystem.open(database, provider=ScriptedProvider(answer)) as system:
        system.root.configure(system="be brief", max_tokens=7)
        system.root.fork("x", system="be kind").reply(timeout=DEADLINE)
        assert (asked[0].system, asked[0].settings["max_tokens"]) == ("be kind", 7)
        system.root.clear()
        system.root.prompt("y").get(timeout=DEADLINE)
        assert (asked[1].system, asked[1].settings["max_tokens"]) == ("be brief", 7)
        assert len(asked[1].messages) == 1


def test_a_model_setting_chooses_among_the_registered_providers(database: str) -> None:
    other = ScriptedProvider(lambda request: f"other {request.model}")
    with ActorSystem.open(database, provider=ScriptedProvider(echo), providers={"other": other}) as system:
        system.root.configure(model="other:big")
        assert system.root.prompt("x").get(timeout=DEADLINE).text == "other big"
        child = system.root.fork(model="missing:model")
        with pytest.raises(ProviderError, match="'missing', which is not registered"):
            child.prompt("y").get(timeout=DEADLINE)
        assert kinds(child.history())[-1] == Kind.ERROR
        assert child.state == "idle"


def test_marks_and_rewinds_reach_into_the_inherited_history(database: str) -> None:
    with open_echo(database) as system:
        root = system.root
        root.prompt("one").get(timeout=DEADLINE)
        root.mark("start")
        root.prompt("two").get(timeout=DEADLINE)
        child = root.fork()
        child.rewind("start")
        assert child.prompt("again").get(timeout=DEADLINE).text == "again / 3"
        assert root.prompt("three").get(timeout=DEADLINE).text == "three / 5"
        with pytest.raises(MarkNotFound, match="'start'"):
            child.rewind("nowhere")
        child.clear()
        with pytest.raises(MarkNotFound, match="marks in force: none"):
            child.rewind()


def test_context_tells_what_the_history_means(database: str) -> None:
    with open_echo(database) as system:
        system.root.configure(system="s")
        system.root.prompt("one").get(timeout=DEADLINE)
        child = system.root.fork(name="kid")
        at = child.mark("m")
        context = child.context()
        assert (context.inherited, context.own) == (3, 2)
        assert context.settings == {"system": "s"}
        assert context.marks == (("m", at),)
        assert [r.agent_uuid for r in context.ranges] == [system.root.uuid, child.uuid]
        assert context.ranges == child.ranges()


def test_a_stopped_agent_does_not_fork_and_goes_on_unharmed(database: str) -> None:
    with open_echo(database) as system:
        child = system.root.fork()
        stop(system._store, child.uuid)
        with pytest.raises(AgentStopped, match="stopped"):
            child.fork("x", timeout=DEADLINE)
        stop(system._store, child.uuid, "running")
        assert child.fork("x").reply(timeout=DEADLINE).text == "x / 1"


def test_a_name_is_unique_among_the_living(database: str) -> None:
    with open_echo(database) as system:
        system.root.fork(name="dba")
        with pytest.raises(NameTaken, match="'dba'"):
            system.root.fork(name="dba")
        for bad in ("", "two words", "x" * 65, system.root.uuid, "/x"):
            with pytest.raises(BadInput):
                system.root.fork(name=bad)
        assert len(system.agents()) == 2


def test_agents_are_found_by_uuid_name_or_prefix_and_the_errors_differ(database: str) -> None:
    with open_echo(database) as system:
        child = system.root.fork(name="dba")
        assert system.agent(child.uuid[:8]) == child
        for text in ("nobody", "", "abc", "A" * 22):
            with pytest.raises(AgentNotFound):
                system.agent(text)
        assert not issubclass(AmbiguousAgent, AgentNotFound)


def test_bad_input_is_refused_before_anything_is_written(database: str) -> None:
    with open_echo(database) as system:
        for text in ("", "  ", "nul \0 inside", "half \ud800 character"):
            with pytest.raises(BadInput):
                system.root.prompt(text)
        for settings in ({"modle": "x"}, {"max_tokens": "many"}, {"max_tokens": True}, {"system": "\0"}):
            with pytest.raises(BadInput):
                system.root.configure(**settings)
        with pytest.raises(BadInput, match="permanent, transient, temporary"):
            system.root.fork(restart="always")
        assert system.root.history() == []


def test_a_system_says_which_models_settings_ask_and_what_these_cost(tmp_path: Path) -> None:
    class Moody(ScriptedProvider):
        @property
        def model(self) -> str:
            raise RuntimeError("not today")

    (tmp_path / "prices.toml").write_text('["scripted:tea"]\ninput = 1\noutput = 2', "utf-8")
    open_ = partial(ActorSystem.open, ":memory:", ScriptedProvider([]), {"moody": Moody([])})
    with open_(prices=tmp_path / "prices.toml") as system:
        asked_models = system._asked_models({"model": "scripted:tea, offline", "compact_model": "scripted:short"})
        assert [(asked.name, asked.price is None) for asked in asked_models] == [
            ("scripted:tea", False),
            ("offline:", True),
        ]
        assert [asked.name for asked in system._asked_models({"compact_model": "scripted:short"})] == ["scripted:"]
        assert [asked.name for asked in system._asked_models({"compact_model": "scripted:short"}, True)] == [
            "scripted:short"
        ]
        for model, why in (("nowhere:x", "not registered"), ("moody", "model moody cannot be asked: .*not today")):
            with pytest.raises(BadInput, match=why):
                system._asked_models({"model": model})
            with pytest.raises(BadInput, match=why):
                system._check_model(model)


def test_what_a_model_says_is_stored_even_when_no_database_could_hold_it(database: str) -> None:
    with ActorSystem.open(database, provider=ScriptedProvider(["a\0b\ud800c"])) as system:
        assert system.root.prompt("x").get(timeout=DEADLINE).text == "a\ufffdb\ufffdc"
        assert system.root.history()[-1].content == "a\ufffdb\ufffdc"


def test_a_dead_agent_is_read_but_never_acts(durable: str) -> None:
    with open_echo(durable) as system:
        system.root.prompt("one").get(timeout=DEADLINE)
        child = system.root.fork()
        child.prompt("two").get(timeout=DEADLINE)
        bury(system._store, child.uuid)
    with open_echo(durable) as system:
        dead = system.agent(child.uuid)
        with pytest.raises(AgentDead, match="test"):
            dead.prompt("x")
        assert dead.state == "dead"
        assert [m.content for m in dead.history() if m.kind == Kind.USER] == ["one", "two"]


def test_a_handle_says_what_people_call_its_agent_and_what_that_does() -> None:
    with open_echo(":memory:") as system:
        kid, root = system.root.fork(name="kid"), system.root
        words = words_of(root.uuid)
        assert [repr(handle) for handle in (kid, root, root.aio)] == [
            "<AgentRef kid idle>", f"<AgentRef {words} idle>", f"<AsyncAgentRef {words} idle>",
        ]  # fmt: skip
        kid.kill()
        assert repr(kid) == "<AgentRef kid dead>"
    assert repr(root) == f"<AgentRef {words}>"
