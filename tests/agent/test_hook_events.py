"""Hooks at requests, replies, results, forks and exits: one committed verdict each, which never widens."""

import threading
from collections import Counter
from hashlib import sha256
from itertools import takewhile
from typing import Any

import pytest

from ikigai_actors import ActorSystem, BadInput, ProviderError, Reply, Request, ScriptedProvider
from ikigai_actors.agent.turn.calls import FORK
from ikigai_actors.events import HookFailed
from ikigai_actors.hooks import HookedCall, HookedExit, HookedReply, HookedRequest, HookVerdict, hook
from ikigai_actors.records.fsck.check import check
from ikigai_actors.testing import ProcessCrashed, simulated
from ikigai_actors.tools import current_call, tool
from tests.kit.blocking_provider import DEADLINE
from tests.kit.programs import crash_points, each_commit
from tests.kit.tool_scripts import calling, prompts, results


def kinds(agent: Any) -> list[str]:
    return [message.kind for message in agent.history()]


def say(system: ActorSystem, text: str) -> str:
    return system.root.prompt(text).get(timeout=DEADLINE).text


@tool
def look(place: str) -> str:
    return f"at {place}: key sk-123"


def looking(request: Request) -> Reply | str:
    seen = results(request)
    return f"saw {seen[0].content}" if seen else calling(("look", {"place": "home"}))


def echo(request: Request) -> str:
    return " | ".join(prompts(request))


@pytest.mark.slow("takes a tenth of a second")
def test_a_hook_before_a_request_adds_to_it_or_ends_the_turn_and_is_asked_once_for_each(database: str) -> None:
    asked = list[str | None]()

    @hook("before_request")
    def gate(request: HookedRequest) -> HookVerdict | None:
        asked.append(request.prompt)
        if request.prompt == "bad":
            return HookVerdict.deny("not here")
        return HookVerdict.add("it is Monday") if request.prompt else None

    with ActorSystem.open(database, ScriptedProvider(echo), tools=[look], hooks=[gate]) as system:
        assert say(system, "hello") == 'hello | <context from="gate">\nit is Monday\n</context>'
        assert kinds(system.root) == ["user", "hook", "context", "assistant"]
        with pytest.raises(ProviderError, match="Hook gate denies this request: not here"):
            say(system, "bad")
        assert kinds(system.root)[4:] == ["user", "hook", "error"]
        assert say(system, "again").endswith("it is Monday\n</context>")
        assert asked == ["hello", "bad", "again"]
        assert check(system._store) == []


def test_a_hook_is_asked_before_each_request_of_a_turn_and_only_once_when_one_is_sent_again() -> None:
    asked, broken = list[str | None](), list[int]()

    @hook("before_request")
    def count(request: HookedRequest) -> None:
        asked.append(request.prompt)

    def failing(request: Request) -> Any:
        if not results(request) and not broken:
            broken.append(1)
            raise ProviderError("it broke off", "he", broke_off=True)
        return looking(request)

    with ActorSystem.open(":memory:", ScriptedProvider(failing), tools=[look], hooks=[count]) as system:
        assert say(system, "look around") == "saw at home: key sk-123"
        assert broken == [1]
        assert asked == ["look around", None]
        assert kinds(system.root).count("retry") == 1
        assert kinds(system.root).count("hook") == 2


def test_hooks_after_a_reply_have_the_turn_go_on_three_times_at_most(database: str) -> None:
    heard = list[tuple[str, int]]()

    @hook("after_reply")
    def unsatisfied(reply: HookedReply) -> HookVerdict | None:
        heard.append((reply.text, reply.rounds))
        return HookVerdict.add("and more") if reply.text != "enough" else None

    replies = iter(["one", "two", "three", "four", "enough"])
    with ActorSystem.open(database, ScriptedProvider(lambda request: next(replies)), hooks=[unsatisfied]) as system:
        assert say(system, "write") == "four"
        assert heard == [("one", 0), ("two", 1), ("three", 2)]
        goes_on = ["assistant", "hook", "hook", "context"]
        assert kinds(system.root) == ["user", *3 * goes_on, "assistant"]
        assert say(system, "write") == "enough"
        assert kinds(system.root)[14:] == ["user", "assistant", "hook", "hook"]
        assert check(system._store) == []


def test_a_turn_that_hooks_let_end_is_heard_of_once_and_by_its_reply(durable: str) -> None:
    done = hook("after_reply", name="done")(lambda reply: None)
    with ActorSystem.open(durable, ScriptedProvider(lambda request: "hello"), hooks=[done]) as system:
        child = system.root.fork("go")
        assert child.reply(timeout=DEADLINE).text == "hello"
        uuid = child.uuid
    with ActorSystem.open(durable, ScriptedProvider(lambda request: "anew")) as system:
        assert system.handle(uuid).reply(timeout=DEADLINE).text == "hello"
        assert system.handle(uuid).prompt("go on").get(timeout=DEADLINE).text == "anew"


def test_a_filter_replaces_the_text_of_a_result_and_the_result_says_which_and_what_it_was(database: str) -> None:
    @hook("filter_result", tools="look")
    def redact(call: HookedCall) -> HookVerdict | None:
        text = (call.result or "").replace("sk-123", "…")
        return HookVerdict.replace(text) if text != call.result else None

    after = list[str | None]()

    @hook("after_call")
    def heard(call: HookedCall) -> None:
        after.append(call.result)

    with ActorSystem.open(database, ScriptedProvider(looking), tools=[look], hooks=[redact, heard]) as system:
        assert say(system, "look") == "saw at home: key …"
        assert after == ["at home: key …"]
        [result] = [message for message in system.root.history() if message.kind == "tool_result"]
        former = sha256(b"at home: key sk-123").hexdigest()
        assert result.data["filtered"] == [{"hook": "redact", "sha256": former}]
        assert not any("sk-123" in message.content for message in system.root.history())


@pytest.mark.sample(1, "failures")
@pytest.mark.parametrize("wrong", [lambda call: 1 / 0, lambda call: HookVerdict.ask(), lambda call: "text"])
def test_the_result_of_a_filter_that_fails_is_withheld_and_people_hear_of_it(wrong: Any) -> None:
    broken = hook("filter_result", name="broken")(wrong)
    heard = list[Any]()
    with ActorSystem.open(":memory:", ScriptedProvider(looking), tools=[look], hooks=[broken]) as system:
        with system.subscribe(heard.append, only=(HookFailed,)):
            assert say(system, "look") == "saw [The call ran, and its result is withheld: hook broken failed.]"
        [failure] = heard
        assert (failure.hook, failure.event, failure.denied) == ("broken", "filter_result", True)
    opened = hook("filter_result", name="open", on_error="allow")(wrong)
    with ActorSystem.open(":memory:", ScriptedProvider(looking), tools=[look], hooks=[opened]) as system:
        assert say(system, "look") == "saw at home: key sk-123"


def forking(arguments: dict[str, Any]) -> ScriptedProvider:
    def answer(request: Request) -> Any:
        if results(request):
            return results(request)[0].content
        return calling((FORK, arguments)) if prompts(request)[-1] == "fork" else "at work"

    return ScriptedProvider(answer)


def test_a_hook_of_forks_denies_one_or_narrows_the_child_which_never_widens_it(database: str) -> None:
    @hook("on_fork")
    def guard(call: HookedCall) -> HookVerdict | None:
        if call.input.get("name") == "rogue":
            return HookVerdict.deny("no rogues")
        return HookVerdict.narrow({"tools": ["send", "look"], "max_steps": 20})

    with ActorSystem.open(database, forking({"name": "rogue", "prompt": "work"}), hooks=[guard]) as system:
        assert say(system, "fork") == "Hook guard denies this call: no rogues"
        assert len(system.agents()) == 1
    with ActorSystem.open(
        ":memory:", forking({"name": "kid", "prompt": "work"}), tools=[look], hooks=[guard]
    ) as system:
        system.root.configure(tools=["fork", "send", "wait"], max_steps=5)
        text = say(system, "fork")
        assert text.endswith("Hook guard narrowed its settings: tools.")
        kid = system.handle(next(agent.uuid for agent in system.agents() if agent.name == "kid"))
        kid.reply(timeout=DEADLINE)
        assert kid.context().settings["tools"] == ["send"]
        assert kid.context().settings["max_steps"] == 5
        [result] = [message for message in system.root.history() if message.kind == "tool_result"]
        assert result.data["narrowed"][0]["hook"] == "guard"
        assert check(system._store) == []


@pytest.mark.parametrize("settings", [{"max_steps": "many"}, {"tools": 3}])
def test_a_hook_that_narrows_by_what_is_no_setting_denies(settings: Any) -> None:
    guard = hook("on_fork", name="guard")(lambda call: HookVerdict.narrow(settings))
    with ActorSystem.open(":memory:", forking({"prompt": "work"}), hooks=[guard]) as system:
        assert "Hook guard denies this call: the hook failed: expected setting" in say(system, "fork")
    with pytest.raises(BadInput, match="Expected settings among"):
        HookVerdict.narrow({"model": "other"})


def test_a_hook_hears_of_an_exit_and_of_what_came_of_the_agent() -> None:
    heard, rang = list[tuple[str, str]](), threading.Event()

    @hook("on_exit")
    def note(end: HookedExit) -> None:
        heard.append((end.agent, end.result))
        rang.set()

    model = ScriptedProvider(lambda request: calling(("exit", {"result": "the sum is 4"})))
    with ActorSystem.open(":memory:", model, hooks=[note]) as system:
        kid = system.root.fork("add")
        assert rang.wait(DEADLINE)
        assert heard == [(kid.uuid, "the sum is 4")]


@pytest.mark.parametrize(
    ("event", "says"),
    [
        ("before_request", HookVerdict.ask()),
        ("before_request", HookVerdict.change({})),
        ("on_fork", HookVerdict.add("x")),
    ],
)
def test_a_verdict_that_its_event_does_not_take_is_a_failure_and_denies(event: str, says: HookVerdict) -> None:
    wrong = hook(event, name="wrong")(lambda asked: says)
    with ActorSystem.open(":memory:", forking({"prompt": "work"}), hooks=[wrong]) as system:
        try:
            text = say(system, "fork")
        except ProviderError as error:
            text = str(error)
        assert f"the hook failed: a hook for {event} cannot" in text


def test_what_must_be_asked_and_is_not_here_denies_what_it_stands_before() -> None:
    with simulated() as world:
        root = world.open(forking({"prompt": "work"}), tools=[look]).root
        root.configure(hooks=["on_fork:guard"])
        assert "must be looked at by hook guard" in root.prompt("fork").get().text
        root.configure(hooks=["before_request:gate"])
        with pytest.raises(ProviderError, match="Hook gate denies this request: the process that runs the agent"):
            root.prompt("fork").get()
        assert kinds(root)[-2:] == ["hook", "error"]


def test_a_hook_for_no_call_takes_no_tools_and_a_filter_no_long_time() -> None:
    with pytest.raises(BadInput, match="which is about no call"):
        hook("after_reply", tools="look")
    with pytest.raises(BadInput, match="1 second at most; got 5"):
        hook("filter_result", timeout=5)


@pytest.mark.slow("takes a tenth of a second")
@pytest.mark.sample(1, "a place each")
@each_commit(3)
def test_a_crash_at_any_point_asks_no_hook_after_its_verdict_and_loses_no_paid_reply(step: int) -> None:
    crashes = 0
    for point in takewhile(lambda point: point.commit < 14, crash_points(step)):
        with simulated() as world:
            requests, asked = Counter[str](), list[tuple[str, str]]()

            @hook("before_request")
            def gate(request: HookedRequest, asked: Any = asked) -> HookVerdict:
                asked.append(("before_request", current_call().key))
                return HookVerdict.add(f"asked {len(asked)}")

            @hook("after_reply")
            def more(reply: HookedReply, asked: Any = asked) -> HookVerdict | None:
                asked.append(("after_reply", current_call().key))
                return HookVerdict.add("more") if reply.rounds == 0 else None

            def answer(request: Request, requests: Any = requests) -> str:
                requests[prompts(request)[-1]] += 1
                return f"reply {requests.total()}"

            kid = world.open(ScriptedProvider(answer), hooks=[gate, more]).root.fork("go")
            world.crash_at(point)
            try:
                world.settle()
            except ProcessCrashed:
                crashes += 1
                world.recover()
            history = world.system.handle(kid.uuid).history()
            said = [message.data for message in history if message.kind == "hook"]
            assert sum(data["event"] == "before_request" for data in said) == 2, (point, kinds(kid))
            assert [bool(data.get("asked")) for data in said if data["event"] == "after_reply"] == [True, False] * 2
            assert len({key for event, key in asked if event == "before_request"}) == 2
            assert len({key for event, key in asked if event == "after_reply"}) == 2
            replies = [message.content for message in history if message.kind == "assistant"]
            assert len(replies) == 2
            assert requests.total() <= 3  # one may be cut off on its way
            assert len(asked) <= 5
            assert world.system.handle(kid.uuid).record.turn == 0
            assert check(world.system._store) == []
    assert crashes >= 3


def test_a_child_can_add_hooks_and_drops_none_that_it_was_forked_with(database: str) -> None:
    gate = hook("before_request", name="gate")(lambda request: HookVerdict.deny("closed"))
    with ActorSystem.open(database, forking({"prompt": "work"}), hooks=[gate]) as system:
        system.root.configure(hooks=["before_request:gate"])
        child = system.root.fork("work")
        with pytest.raises(ProviderError, match="Hook gate denies this request"):
            child.reply(timeout=DEADLINE)
        for dropped in (None, [], ["other"]):
            with pytest.raises(BadInput, match="can only add hooks: before_request:gate must be asked"):
                child.configure(hooks=dropped)
        child.configure(hooks=["before_request:gate", "audit"])
        child.configure(hooks=["before_request:gate"])
        with pytest.raises(ProviderError, match="Hook gate denies this request"):
            child.prompt("again").get(timeout=DEADLINE)
        system.root.configure(hooks=None)
        system.root.fork("work").configure(hooks=None)
        assert check(system._store) == []
