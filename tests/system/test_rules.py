"""Rules decide on the calls of an agent and of those below it, from their commit on, whichever process sets them."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ikigai_actors import ActorSystem, AgentDead, AgentRef, BadInput, Reply, Workspace
from ikigai_actors.errors import RuleNotFound
from ikigai_actors.system.attached import AttachedSystem
from ikigai_actors.tools import Policy
from ikigai_actors.tools.function import FunctionTool, tool
from ikigai_actors.tools.policy import Compared, Subject
from tests.kit.blocking_provider import DEADLINE
from tests.kit.damage import damage
from tests.kit.databases import eventually
from tests.kit.tool_scripts import calling, requests_of, results, scripted


def doing(done: list[str], policy: Policy = Policy.ALLOW) -> FunctionTool:
    """A tool that says what was done."""

    @tool(policy=policy)
    def do(what: str) -> str:
        done.append(what)
        return f"did {what}"

    return do


def do(what: str) -> tuple[str, dict[str, Any]]:
    return ("do", {"what": what})


def elsewhere(url: str, tool: str) -> None:
    """Have another process deny agent 0 a tool."""
    with AttachedSystem.open(url) as other:
        other.root.set_rule("deny", tool)


def shown(agent: AgentRef) -> list[str]:
    return [str(rule) for rule in agent.rules()]


def test_a_rule_can_be_seen_and_taken_back_and_its_number_is_not_given_again(database: str) -> None:
    with ActorSystem.open(database, scripted()) as system:
        kid = system.root.fork(name="kid")
        first = system.root.set_rule("deny", "bash", "git push *")
        assert system.root.set_rule("deny", "bash", "git push *") == first
        assert system.root.set_rule("ask", "do", scope="self").id == 2
        kid.set_rule("allow", "git__*")
        assert shown(system.root) == ["deny bash git push *", "ask do (this agent alone)"]
        assert sorted(shown(kid)) == ["allow git__*", "deny bash git push *"]
        system.root.remove_rule(1)
        assert shown(kid) == ["allow git__*"]
        assert system.root.set_rule("deny", "bash", "git push *").id == 3
        with pytest.raises(RuleNotFound, match=r"has no rule 1\. Its own rules: 2, 3\."):
            system.root.remove_rule(1)
        with pytest.raises(RuleNotFound, match="Its own rules: 1"):
            kid.remove_rule(3)
        kid.kill()
        with pytest.raises(AgentDead, match="its rules stay as they are"):
            kid.set_rule("deny", "do")
        kid.remove_rule(1)


def test_an_agent_has_no_more_than_a_number_of_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ikigai_actors.records.agents.rules.MOST_RULES", 20)
    with ActorSystem.open(":memory:", scripted()) as system:
        for number in range(20):
            system.root.set_rule("deny", f"tool_{number}")
        with pytest.raises(BadInput, match="has 20 rules"):
            system.root.set_rule("deny", "one_more")
        system.root.remove_rule(7)
        assert system.root.set_rule("deny", "one_more").id == 21


def test_a_rule_of_another_process_binds_the_next_call_of_a_turn_in_progress(durable: str) -> None:
    done: list[str] = []

    @tool(alone=True)
    def look() -> str:
        elsewhere(durable, "do")
        return "looked"

    script = scripted([calling("look", do("a")), "pity"])
    with ActorSystem.open(durable, script, tools=[look, doing(done)]) as system:
        root = system.root
        assert root.prompt("go").get(timeout=DEADLINE).text == "pity"
        _, denied = results(requests_of(script, None)[1])
        assert denied.content.startswith(f"Rule 1 of agent {root.uuid} denies this call: deny do. Do without it")
        assert denied.is_error
        assert done == []


def test_a_rule_that_is_taken_back_denies_no_more(durable: str) -> None:
    done: list[str] = []
    script = scripted([calling(do("a")), "pity", calling(do("b")), "done"])
    with ActorSystem.open(durable, script, tools=[doing(done)]) as system:
        system.root.set_rule("deny", "do")
        assert system.root.prompt("go").get(timeout=DEADLINE).text == "pity"
        system.root.remove_rule(1)
        assert system.root.prompt("go").get(timeout=DEADLINE).text == "done"
    assert done == ["b"]


def test_a_call_that_is_approved_is_denied_by_a_rule_from_before_it_begins() -> None:
    done: list[str] = []
    script = scripted([calling(do("a")), "pity"])
    with ActorSystem.open(":memory:", script, tools=[doing(done)], approvals="ask") as system:
        system.root.set_rule("ask", "do")
        reply = system.root.prompt("go")
        eventually(system.approvals.pending, "a question")
        [call] = system.approvals.pending()
        system.root.set_rule("deny", "d*")
        system.approvals.approve(call)  # too late or not, it is denied
        assert reply.get(timeout=DEADLINE).text == "pity"
    assert done == []


def test_a_child_gets_no_further_than_the_agents_above_it_and_an_adopted_one_what_its_new_place_allows() -> None:
    done: list[str] = []
    script = scripted([], kid=[calling(do("a")), "pity", calling(do("b")), "done"])
    with ActorSystem.open(":memory:", script, tools=[doing(done)]) as system:
        strict, free = system.root.fork(name="strict"), system.root.fork(name="free")
        strict.set_rule("deny", "do")
        kid = strict.fork(name="kid")
        kid.set_rule("allow", "do")
        assert kid.prompt("go").get(timeout=DEADLINE).text == "pity"
        free.adopt(kid)
        assert shown(kid) == ["allow do"]
        assert kid.prompt("go").get(timeout=DEADLINE).text == "done"
    assert done == ["b"]


def test_a_rule_for_a_supervisor_alone_leaves_those_below_it_free() -> None:
    done: list[str] = []
    script = scripted([calling(do("a")), "pity"], kid=[calling(do("b")), "done"])
    with ActorSystem.open(":memory:", script, tools=[doing(done)]) as system:
        system.root.set_rule("deny", "do", scope="self")
        assert system.root.prompt("go").get(timeout=DEADLINE).text == "pity"
        assert system.root.fork("go", name="kid").reply(timeout=DEADLINE).text == "done"
    assert done == ["b"]


def test_a_built_in_call_can_be_denied() -> None:
    script = scripted([calling(("fork", {"name": "kid"}), ("fork", {"name": "other"})), "pity"])
    with ActorSystem.open(":memory:", script) as system:
        system.root.set_rule("deny", "fork")
        assert system.root.prompt("go").get(timeout=DEADLINE).text == "pity"
        assert len(system.agents()) == 1


def test_forks_that_were_to_be_born_before_a_rule_was_known_are_not_born(durable: str) -> None:
    @tool(alone=True)
    def look() -> str:
        elsewhere(durable, "fork")
        return "looked"

    script = scripted([calling("look", ("fork", {"name": "kid"}), ("fork", {"name": "other"})), "pity"])
    with ActorSystem.open(durable, script, tools=[look]) as system:
        assert system.root.prompt("go").get(timeout=DEADLINE).text == "pity"
        assert len(system.agents()) == 1


@pytest.mark.parametrize(("change", "rule"), [("tool = 'a b'", "deny *"), ("pattern = '  '", "deny do")])
def test_a_row_that_is_no_rule_denies_all_of_its_tool(durable: str, change: str, rule: str) -> None:
    done: list[str] = []
    script = scripted([calling(do("a")), "pity"])
    with ActorSystem.open(durable, scripted()) as system:
        system.root.set_rule("allow", "do")
    damage(durable, f"UPDATE rules SET {change}")
    with ActorSystem.open(durable, script, tools=[doing(done)]) as system:
        assert shown(system.root) == [rule]
        assert system.root.prompt("go").get(timeout=DEADLINE).text == "pity"
    assert done == []


def test_always_writes_a_rule_that_can_be_taken_back() -> None:
    done: list[str] = []
    script = scripted([calling(do("a")), "done"])
    with ActorSystem.open(":memory:", script, tools=[doing(done)], approvals="ask") as system:
        system.root.set_rule("ask", "do")
        reply = system.root.prompt("go")
        eventually(system.approvals.pending, "a question")
        assert system.approvals.approve(system.approvals.pending()[0], always="tool")
        assert reply.get(timeout=DEADLINE).text == "done"
        assert shown(system.root) == ["ask do", "allow do"]
        system.root.remove_rule(2)
        assert shown(system.root) == ["ask do"]


def denied(url: str, system: ActorSystem, kid: AgentRef) -> None:
    with AttachedSystem.open(url) as other:
        other.root.set_rule("deny", "do")


def allowed(url: str, system: ActorSystem, kid: AgentRef) -> None:
    with AttachedSystem.open(url) as other:
        other.root.set_rule("allow", "do")


def taken_back(url: str, system: ActorSystem, kid: AgentRef) -> None:
    assert str(system.root.remove_rule(1)) == "ask do"


def adopted(url: str, system: ActorSystem, kid: AgentRef) -> None:
    system.root.aio.adopt(kid)


def bereft(url: str, system: ActorSystem, kid: AgentRef) -> None:
    system.handle(kid.record.supervisor_uuid or "").kill()


@pytest.mark.parametrize(
    ("asked_by", "policy", "change", "did"),
    [
        (None, Policy.ASK, denied, False), (None, Policy.ASK, allowed, True),
        ("root", Policy.ALLOW, taken_back, True), ("top", Policy.ALLOW, adopted, True),
        ("top", Policy.ALLOW, bereft, True),
    ],
)  # fmt: skip
def test_a_question_ends_when_the_rules_decide_on_it(
    durable: str,
    asked_by: str | None,
    policy: Policy,
    change: Callable[[str, ActorSystem, AgentRef], object],
    did: bool,
) -> None:
    done: list[str] = []
    script = scripted([], kid=[calling(do("a")), "well"])
    with ActorSystem.open(durable, script, tools=[doing(done, policy)], approvals="ask") as system:
        top = system.root.fork(name="top")
        if asked_by is not None:
            (top if asked_by == "top" else system.root).set_rule("ask", "do")
        kid = top.fork("go", name="kid")
        eventually(system.approvals.pending, "a question")
        change(durable, system, kid)
        assert kid.reply(timeout=DEADLINE).text == "well"
        assert system.approvals.pending() == []
    assert done == (["a"] if did else [])


def test_a_question_of_another_agent_ends_when_an_approval_for_always_allows_its_call() -> None:
    done: list[str] = []
    script = scripted([calling(do("a")), "well"], kid=[calling(do("b")), "well"])
    with ActorSystem.open(":memory:", script, tools=[doing(done, Policy.ASK)], approvals="ask") as system:
        kid = system.root.fork("go", name="kid")
        eventually(system.approvals.pending, "a question")
        first = system.root.prompt("go")
        eventually(lambda: len(system.approvals.pending()) == 2, "two questions")
        [call] = [call for call in system.approvals.pending() if call.agent == system.root.uuid]
        assert system.approvals.approve(call, always=True)
        assert first.get(timeout=DEADLINE).text == kid.reply(timeout=DEADLINE).text == "well"
    assert sorted(done) == ["a", "b"]


@pytest.mark.thorough("a question on which a rule decides, as above, behind a restart")
def test_a_question_of_a_turn_that_was_cut_off_is_decided_by_a_rule_from_meanwhile_when_it_goes_on(
    durable: str,
) -> None:
    done: list[str] = []
    script = scripted([calling(do("a")), "well"])
    with ActorSystem.open(durable, script, tools=[doing(done, Policy.ASK)], approvals="ask") as system:
        system.root.prompt("go")
        eventually(system.approvals.pending, "a question")
    elsewhere(durable, "do")
    with ActorSystem.open(durable, scripted(["well"]), tools=[doing(done, Policy.ASK)], approvals="ask") as system:
        assert len(system.approvals.pending()) == 1
        system.resume()
        assert system.root.reply(timeout=DEADLINE).text == "well"
        assert system.approvals.pending() == []
    assert done == []


def test_a_system_opens_with_rules_of_agent_0_and_sets_none_twice(durable: str) -> None:
    done: list[str] = []
    rules = [("deny", "do"), ("ask", "bash", "git push *", "self")]
    for kid in ("ann", "bob"):
        script = scripted([], ann=[calling(do("a")), "pity"], bob=[calling(do("a")), "pity"])
        with ActorSystem.open(durable, script, tools=[doing(done)], rules=rules) as system:
            assert shown(system.root) == ["deny do", "ask bash git push * (this agent alone)"]
            assert system.root.fork("go", name=kid).reply(timeout=DEADLINE).text == "pity"
    with ActorSystem.open(durable, scripted(), rules=rules[:1]) as system:
        assert len(system.root.rules()) == 2
    assert done == []


def shell(ran: list[str], unfenced: bool) -> FunctionTool:
    """A bash that runs nothing."""

    @tool(policy=Policy.ASK)
    def bash(command: str) -> str:
        ran.append(command)
        return "ran"

    subject = Subject(Compared.COMMAND, lambda agent, waiting: str(waiting["command"]))
    return replace(bash, traits=replace(bash.traits, unfenced=unfenced, subject=subject))


def bash(*commands: str) -> Reply:
    return calling(*(("bash", {"command": command}) for command in commands))


@pytest.mark.slow("takes a tenth of a second")
@pytest.mark.sample(2, "a pattern each")
@pytest.mark.parametrize("rule", [("allow", "bash"), ("allow", "b*"), ("allow", "*"), ("allow", "bash", "* --help")])
def test_no_rule_allows_all_of_a_bash_without_its_fence(durable: str, rule: tuple[str, ...]) -> None:
    ran: list[str] = []
    script = scripted([bash("ls --help", "git log"), "well"])
    unfenced = shell(ran, True)
    with pytest.raises(BadInput, match="bash runs without the fence"):
        ActorSystem.open(durable, script, tools=[unfenced], rules=[rule])
    with ActorSystem.open(durable, script, tools=[unfenced]) as system:
        with pytest.raises(BadInput, match=r"If you want it without a fence, say so: .*--yes"):
            system.root.set_rule(*rule)
        with AttachedSystem.open(durable) as other:
            other.root.set_rule(*rule)  # it cannot know, and its rule has no effect here
        system.root.set_rule("allow", "bash", "git log *")
        assert system.root.prompt("go").get(timeout=DEADLINE).text == "well"
    assert ran == ["git log"]
    for tools, approvals in (([shell(ran, False)], "deny"), ([unfenced], "allow")):
        script = scripted([bash("ls --help"), "well"])
        with ActorSystem.open(durable, script, tools=tools, rules=[rule], approvals=approvals) as system:
            assert system.root.prompt("go").get(timeout=DEADLINE).text == "well"
    assert ran == ["git log", "ls --help", "ls --help"]


@pytest.mark.parametrize(
    ("command", "unfenced", "words"),
    [("ls -l", False, ("exact", "tool")), ("ls -l", True, ("exact",)), ("ls | wc", False, ()), ("ls $A", True, ())],
)
def test_an_approval_holds_for_later_calls_as_far_as_a_rule_can_say(
    durable: str, command: str, unfenced: bool, words: tuple[str, ...]
) -> None:
    ran: list[str] = []
    script = scripted([bash(command), bash(command, "pwd"), "well"])
    with ActorSystem.open(durable, script, tools=[shell(ran, unfenced)], approvals="ask") as system:
        reply = system.root.prompt("go")
        eventually(system.approvals.pending, "a question")
        with AttachedSystem.open(durable) as other:
            assert other.approvals.pending() == system.approvals.pending()
        [call] = system.approvals.pending()
        assert (call.always, call.compound) == (words, not words)
        for always in {"exact", "tool"}.difference(words):
            with pytest.raises(BadInput, match="approved once only" if not words else "without the fence"):
                system.approvals.approve(call, always=always)
        assert system.approvals.approve(call, always=words[0] if words else False)
        eventually(lambda: len(ran) == 1 + bool(words), "the next calls")
        eventually(system.approvals.pending, "a further question")
        assert {pending.input["command"] for pending in system.approvals.pending()} == {
            "pwd",
            *([] if words else [command]),
        }
        for pending in system.approvals.pending():
            system.approvals.deny(pending)
        assert reply.get(timeout=DEADLINE).text == "well"
        assert shown(system.root) == ([f"allow bash {command}"] if words else [])


FUNCTION, LOOK = "git() { echo EVIL; }", "git --version"


@pytest.mark.slow("takes a tenth of a second")
@pytest.mark.parametrize(
    ("rules", "approvals", "seen", "marked"),
    [
        ([("allow", "bash", "git *")], "approve", "git version", True),
        ([("allow", "bash", "git --version"), ("ask", "bash", "git push *")], "approve", "git version", True),
        ([("allow", "bash", "git *"), ("ask", "bash", "git --version")], "approve", "EVIL", False),
        ([("allow", "bash", "git *"), ("allow", "bash")], "approve", "EVIL", False),
        ([("allow", "bash", "git *"), ("allow", "b*h")], "approve", "EVIL", False),
        ([("allow", "bash", "git *")], "allow", "EVIL", False),
        ([], "approve", "EVIL", False),
    ],
)
def test_what_only_a_pattern_allows_finds_nothing_of_what_earlier_commands_have_defined(
    durable: str, tmp_path: Path, rules: list[tuple[str, ...]], approvals: str, seen: str, marked: bool
) -> None:
    script = scripted([bash(FUNCTION), bash(LOOK), "well"])
    how: Any = "allow" if approvals == "allow" else lambda call: True
    tools = [Workspace(tmp_path, fence="none")]
    with ActorSystem.open(durable, script, tools=tools, rules=rules, approvals=how) as system:
        assert system.root.prompt("go").get(timeout=DEADLINE).text == "well"
        log = system.root.history()
    [_, result] = [message.content for message in log if message.kind == "tool_result"]
    [_, begun] = [message.data for message in log if message.kind == "tool_call"]
    assert seen in result
    assert begun.get("by_pattern", False) is marked


def test_what_is_to_change_the_shell_is_asked_about_and_no_pattern_is_set_for_it(durable: str) -> None:
    ran: list[str] = []
    script = scripted([bash("cd src", "ls src"), "well"])
    with ActorSystem.open(durable, script, tools=[shell(ran, False)], approvals="ask") as system:
        with pytest.raises(
            BadInput, match=r"No pattern allows 'cd \*': it is to change the shell .* such a command asks"
        ):
            system.root.set_rule("allow", "bash", "cd *")
        with pytest.raises(BadInput, match="No pattern allows 'command export A'"):
            ActorSystem.open(":memory:", script, rules=[("allow", "bash", "command export A")])
        system.root.set_rule("ask", "bash", "cd /tmp")
        system.root.set_rule("allow", "bash", "* src")
        reply = system.root.prompt("go")
        eventually(system.approvals.pending, "a question")
        [call] = system.approvals.pending()
        assert (call.input["command"], call.always) == ("cd src", ())
        system.approvals.approve(call)
        assert reply.get(timeout=DEADLINE).text == "well"
    assert sorted(ran) == ["cd src", "ls src"]
