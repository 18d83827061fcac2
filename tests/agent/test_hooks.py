"""Hooks before and after calls: one committed verdict, which narrows and never widens; what fails denies."""

import asyncio
from collections import Counter
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest

from ikigai_actors import ActorSystem, BadInput, Reply, Request, ScriptedProvider, current_agent
from ikigai_actors.agent.turn.calls import recover
from ikigai_actors.hooks import Hook, HookedCall, HookVerdict, hook
from ikigai_actors.records.fsck.check import check
from ikigai_actors.records.messages.messages import Message
from ikigai_actors.records.transfer.rights import restricted, without_rights
from ikigai_actors.testing import ProcessCrashed, simulated
from ikigai_actors.tools import Workspace, current_call
from ikigai_actors.tools.function import FunctionTool, tool
from tests.kit.blocking_provider import DEADLINE
from tests.kit.programs import crash_points, each_commit
from tests.kit.tool_scripts import calling, prompts, results

LATE = 0.01


class Till:
    """A tool that pays, and remembers the sums."""

    def __init__(self) -> None:
        self.paid: list[int] = []

    def tool(self, policy: str = "allow", idempotent: bool = False) -> FunctionTool:
        @tool(policy=policy, idempotent=idempotent)
        def pay(amount: int) -> str:
            self.paid.append(amount)
            return f"paid {amount}"

        return pay


class Model:
    """A model that pays what it is prompted to, and says what came of it."""

    def __init__(self) -> None:
        self.provider = ScriptedProvider(self.answer)
        self.told: list[str] = []

    def answer(self, request: Request) -> Reply | str:
        if answers := results(request):
            self.told = prompts(request)
            return answers[0].content
        name, _, number = prompts(request)[-1].partition(" ")
        return calling((name, {"amount": int(number)} if number else {}))


def half(call: HookedCall) -> HookVerdict:
    return HookVerdict.change({"amount": call.input["amount"] // 2})


def small(call: HookedCall) -> HookVerdict | None:
    return HookVerdict.deny("too much") if call.input["amount"] > 100 else None


def doubtful(call: HookedCall) -> HookVerdict:
    return HookVerdict.ask("is it right?")


def before(function: Any, **how: Any) -> Hook:
    return hook("before_call", tools="pay", **how)(function)


def say(system: ActorSystem, text: str) -> str:
    return system.root.prompt(text).get(timeout=DEADLINE).text


def kinds(system: ActorSystem) -> list[str]:
    return [message.kind for message in system.root.history()]


def test_hooks_are_asked_in_order_and_each_sees_what_the_one_before_has_changed(database: str) -> None:
    till, model = Till(), Model()
    with ActorSystem.open(database, model.provider, tools=[till.tool()], hooks=[before(half), before(small)]) as system:
        assert say(system, "pay 150") == "[arguments changed by half]\npaid 75"
        assert kinds(system) == ["user", "assistant", "hook", "tool_call", "tool_result", "assistant"]
        assert say(system, "pay 300") == "[arguments changed by half]\nHook small denies this call: too much"
        assert till.paid == [75]
        assert say(system, "agents") != ""  # of a call that no hook hears of there is no message
        assert kinds(system)[11:] == ["user", "assistant", "tool_call", "tool_result", "assistant"]
        assert check(system._store) == []


def test_rules_look_at_the_arguments_of_the_model_first_and_then_at_those_of_the_hooks() -> None:
    till, model, asked = Till(), Model(), list[HookedCall]()

    def heard(call: HookedCall) -> HookVerdict:
        asked.append(call)
        return half(call)

    with ActorSystem.open(
        ":memory:", model.provider, tools=[till.tool()], hooks=[before(heard)], rules=[("deny", "pay")]
    ) as system:
        assert "denies this call" in say(system, "pay 8")
        assert (asked, till.paid) == ([], [])
    questions = list[Any]()

    def decide(call: Any) -> bool:
        questions.append(dict(call.input))
        return True

    with ActorSystem.open(
        ":memory:", model.provider, tools=[till.tool("ask")], hooks=[before(half)], approvals=decide
    ) as system:
        assert say(system, "pay 8") == "[arguments changed by half]\npaid 4"
        assert (questions, till.paid) == ([{"amount": 4}], [4])


def test_rules_look_at_what_a_hook_has_made_of_a_command(tmp_path: Path) -> None:
    worse = hook("before_call", tools="bash", name="worse")(lambda call: HookVerdict.change({"command": "rm -r src"}))
    (tmp_path / "src").mkdir()

    def answer(request: Request) -> Reply | str:
        return results(request)[0].content if results(request) else calling(("bash", {"command": "ls"}))

    with ActorSystem.open(
        ":memory:",
        ScriptedProvider(answer),
        tools=[Workspace(tmp_path, fence="none")],
        hooks=[worse],
        rules=[("allow", "bash"), ("deny", "bash", "rm *")],
    ) as system:
        text = say(system, "go")
        assert text.startswith("[arguments changed by worse]")
        assert "denies this call" in text
    assert (tmp_path / "src").is_dir()


@pytest.mark.slow("takes a tenth of a second")
def test_no_hook_widens_and_one_that_asks_has_a_person_decide() -> None:
    till, model = Till(), Model()
    fine = before(lambda call: HookVerdict.allow(), name="fine")
    with ActorSystem.open(":memory:", model.provider, tools=[till.tool("deny")], hooks=[fine]) as system:
        assert "may not be called here" in say(system, "pay 8")
    with ActorSystem.open(
        ":memory:", model.provider, tools=[till.tool()], hooks=[before(doubtful), fine], approvals=lambda call: "no"
    ) as system:
        assert say(system, "pay 8") == "This call was denied: no"
    with ActorSystem.open(":memory:", model.provider, tools=[till.tool()], hooks=[before(doubtful)]) as system:
        assert "nobody can be asked here" in say(system, "pay 8")
        assert till.paid == []


async def forgetful(call: HookedCall) -> None:
    await asyncio.Event().wait()


@pytest.mark.sample(1, "failures")
@pytest.mark.parametrize(
    ("broken", "says"),
    [
        (before(lambda call: 1 / 0, name="broken"), "the hook failed: ZeroDivisionError"),
        (before(lambda call: "deny", name="broken"), "expected None or a HookVerdict, got 'deny'"),
        (before(forgetful, name="broken", timeout=LATE), "did not finish within"),
    ],
)
def test_a_hook_that_fails_denies_unless_it_says_otherwise(broken: Hook, says: str) -> None:
    till, model = Till(), Model()
    opened = hook("before_call", tools="pay", name="open", on_error="allow")(lambda call: 1 / 0)
    with ActorSystem.open(":memory:", model.provider, tools=[till.tool()], hooks=[opened, broken]) as system:
        text = say(system, "pay 8")
        assert text.startswith("Hook broken denies this call: ")
        assert says in text
        assert till.paid == []
    with ActorSystem.open(":memory:", model.provider, tools=[till.tool()], hooks=[opened]) as system:
        assert say(system, "pay 8") == "paid 8"


def test_a_hook_that_a_setting_names_and_that_is_not_here_denies() -> None:
    till, model = Till(), Model()
    with simulated() as world:
        root = world.open(model.provider, tools=[till.tool()]).root
        root.configure(hooks=["audit"])
        assert "must be looked at by hook audit" in root.prompt("pay 8").get().text
        assert "must be looked at by hook audit" in root.fork("pay 8").reply().text
        assert till.paid == []


def test_a_hook_after_a_call_tells_the_model_and_hears_of_calls_that_ran_alone() -> None:
    till, model, heard = Till(), Model(), list[tuple[str, str | None, bool]]()

    @hook("after_call")
    def remember(call: HookedCall) -> HookVerdict:
        heard.append((call.tool, call.result, call.is_error))
        assert current_agent().uuid == call.agent == current_call().agent
        return HookVerdict.add(f"noted {len(heard)} </context>")

    with ActorSystem.open(":memory:", model.provider, tools=[till.tool()], hooks=[before(small), remember]) as system:
        assert say(system, "pay 8") == "paid 8"
        assert model.told == ['<context from="remember">\nnoted 1 &lt;/context>\n</context>']
        assert "too much" in say(system, "pay 300")
        say(system, "read_mail")
        assert [name for name, _, _ in heard] == ["pay", "read_mail"]
        assert check(system._store) == []


def test_what_is_no_hook_is_refused() -> None:
    with pytest.raises(BadInput, match="Expected event to be one of"):
        hook("before_lunch")
    with pytest.raises(BadInput, match="Expected each of hooks to be a function with @hook"):
        ActorSystem.open(":memory:", "offline", hooks=[half])  # type: ignore[list-item]
    with pytest.raises(BadInput, match="two are called 'half'"):
        ActorSystem.open(":memory:", "offline", hooks=[before(half), before(half)])
    with pytest.raises(BadInput, match="Expected the arguments of a call as a dict"):
        HookVerdict.change("all")  # type: ignore[arg-type]


@pytest.mark.slow("takes a tenth of a second")
@pytest.mark.sample(1, "a place each")
@each_commit(3)
def test_a_crash_at_any_point_runs_no_call_with_other_arguments_than_the_verdict_and_asks_no_hook_after_it(
    step: int,
) -> None:
    crashes = 0
    for point in takewhile(lambda point: point.commit < 9, crash_points(step)):
        with simulated() as world:
            till, asked = Till(), Counter[str]()

            def lessen(call: HookedCall, asked: Counter[str] = asked) -> HookVerdict:
                asked[current_call().key] += 1
                return HookVerdict.change({"amount": call.input["amount"] - asked.total()})

            def answer(request: Request) -> Any:
                return "done" if results(request) else calling(("pay", {"amount": 100}))

            how: dict[str, Any] = {"tools": [till.tool(idempotent=True)], "hooks": [before(lessen)]}
            kid = world.open(ScriptedProvider(answer), **how).root.fork("go")
            world.crash_at(point)
            try:
                world.settle()
            except ProcessCrashed:
                crashes += 1
                world.recover()
            history = world.system.handle(kid.uuid).history()
            verdicts = [message.data["input"]["amount"] for message in history if message.kind == "hook"]
            assert len(verdicts) == 1, (point, [message.kind for message in history])
            assert set(till.paid) == set(verdicts)
            assert len(asked) == 1
            assert 100 - asked.total() == verdicts[0]
            assert check(world.system._store) == []
    assert crashes >= 3


def test_a_verdict_that_comes_with_a_file_does_not_count_and_hooks_above_are_those_of_who_comes() -> None:
    call = {"tool_use_id": "1", "name": "pay"}
    reply = Message("a", 2, "assistant", "", {"tool_calls": [{"id": "1", "name": "pay", "input": {"amount": 8}}]}, 0)
    said = {**call, "event": "before_call", "hooks": ["half"], "decision": "allow", "input": {"amount": 4}}
    [here] = recover([reply, Message("a", 3, "hook", "", said, 0)])
    [come] = recover([reply, Message("a", 3, "hook", "", without_rights("hook", said, in_open_turn=True), 0)])
    assert (here.hooked, here.input, come.hooked, come.input) == (True, {"amount": 4}, False, {"amount": 8})
    assert restricted({"hooks": ["own"]}, {"hooks": ["audit", "own"]}) == {"hooks": ["own", "audit"]}
    assert restricted({"hooks": ["audit"]}, {"hooks": ["audit"]}) == {}
