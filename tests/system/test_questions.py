"""Questions: what waits for a person, whom it asks, and what an answer leads to."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ikigai_actors import ActorSystem, BadInput, Reply, Request
from ikigai_actors.errors import NotAllowed
from ikigai_actors.providers.scripted import Script
from ikigai_actors.records.fsck.check import check
from ikigai_actors.records.log.pruning import prune_logs
from ikigai_actors.store import open_store
from ikigai_actors.system.attached import AttachedSystem
from ikigai_actors.system.questions import WaitingQuestion
from ikigai_actors.testing import CrashPoint, ProcessCrashed, Simulation, simulated
from ikigai_actors.tools.function import FunctionTool, tool
from supervisors.signals import Signal
from tests.kit.blocking_provider import DEADLINE
from tests.kit.databases import eventually
from tests.kit.tool_scripts import calling, results, scripted

SEATS = {
    "type": "object",
    "properties": {
        "seats": {"type": "integer", "minimum": 1},
        "class": {"type": "string", "enum": ["first", "second"]},
    },
    "required": ["seats"],
}


def asks(**arguments: Any) -> tuple[str, dict[str, Any]]:
    return ("ask_person", {"question": "How many seats?", **arguments})


def change_tool(changes: list[str]) -> FunctionTool:
    @tool(policy="ask")
    def change(what: str) -> str:
        changes.append(what)
        return f"changed {what}"

    return change


def waiting(system: Any, count: int = 1) -> list[WaitingQuestion]:
    """The questions that wait, as soon as there are so many."""
    eventually(lambda: len(system.questions.pending()) == count, f"{count} questions that wait")
    pending: list[WaitingQuestion] = system.questions.pending()
    return pending


def is_sound(system: Any) -> bool:
    return check(system._store) == []


def test_a_model_asks_a_person_and_the_answer_is_the_result(durable: str) -> None:
    script = scripted([calling(asks(form=SEATS)), "booked"])
    with ActorSystem.open(durable, script, approvals="ask") as host, AttachedSystem.open(durable) as system:
        reply = host.root.prompt("book")
        [question] = waiting(system)
        assert (question.kind, question.text, question.form) == ("ask", "How many seats?", SEATS)
        assert host.approvals.pending() == []
        assert is_sound(system)
        for wrong in ("two", {"seats": 0}, {"class": "first"}, {"seats": 2, "class": "third"}, {"seats": True}):
            with pytest.raises(BadInput):
                system.questions.answer(question.id, wrong)
        assert system.questions.answer(question.id, {"seats": 2, "class": "second"}, by="anna", digest=question.digest)
        assert reply.get(timeout=DEADLINE).text == "booked"
        assert not system.questions.answer(question.id, {"seats": 3}, by="bob")
        assert system.questions.get(question.id[:12]).by == "anna"
        after = system.questions.get(question.id)
        assert (after.how, after.by) == ("answered", "anna")
        [result] = [message for message in host.root.history() if message.kind == "tool_result"]
        assert result.content == '{"seats": 2, "class": "second"}'
        assert (result.data["answer"], result.data["by"]) == ({"seats": 2, "class": "second"}, "anna")
        assert is_sound(system)


def test_a_question_without_a_form_takes_a_text_or_is_declined(database: str) -> None:
    script = scripted([calling(asks(), asks(form={"type": "boolean"})), "done"])
    with ActorSystem.open(database, script, approvals="ask") as system:
        reply = system.root.prompt("go")
        first, second = waiting(system, 2)
        with pytest.raises(BadInput, match="true or false"):
            system.questions.answer(second.id, "maybe")
        assert system.questions.answer(second.id, False)
        assert system.questions.answer(first.id, None, reason="ask the office")
        reply.get(timeout=DEADLINE)
        contents = [message.content for message in system.root.history() if message.kind == "tool_result"]
        assert contents == ["false", "The question was declined: ask the office"]
        assert [system.questions.get(question.id).how for question in (first, second)] == ["declined", "answered"]


def test_a_question_that_no_person_could_answer_is_refused_at_once(database: str) -> None:
    wrong = [asks(form={"type": "array"}), asks(to=["anna"]), asks(within="soon"), asks(default="x", form=SEATS)]
    script = scripted([calling(*wrong), "done"])
    with ActorSystem.open(database, script, approvals="ask") as system:
        system.root.prompt("go").get(timeout=DEADLINE)
        refusals = [message for message in system.root.history() if message.kind == "tool_result"]
        assert all(refusal.data["is_error"] for refusal in refusals)
        assert [refusal.content.split()[0] for refusal in refusals] == ["Expected"] * 4
        assert system.questions.pending() == []


def test_an_answer_holds_for_exactly_what_was_shown(database: str) -> None:
    changes: list[str] = []
    script = scripted([calling(("change", {"what": "a"}), ("change", {"what": "b"})), "done"])
    with ActorSystem.open(database, script, tools=[change_tool(changes)], approvals="ask") as system:
        reply = system.root.prompt("go")
        first, second = waiting(system, 2)
        with pytest.raises(BadInput, match="look at it again"):
            system.questions.answer(second.id, "allow", digest=first.digest)
        assert system.questions.get(second.id).is_open
        assert system.questions.answer(second.id, "allow", digest=second.digest)
        assert system.questions.answer(first.id, "deny", digest=first.digest)
        reply.get(timeout=DEADLINE)
        assert changes == [second.call.input["what"]]


@pytest.mark.parametrize("approvals", ["deny", "allow"])
def test_where_nobody_can_be_asked_no_question_waits(approvals: str) -> None:
    script = scripted([calling(asks()), "done"])
    with ActorSystem.open(":memory:", script, approvals=approvals) as system:
        assert "ask_person" not in [tool["name"] for tool in system.root.tools()]
        assert system.root.prompt("go").get(timeout=DEADLINE).text == "done"
        assert is_sound(system)


def test_only_whom_it_asks_answers_and_the_operator(database: str) -> None:
    script = scripted([calling(asks(to=["role:lead", "principal:anna"])), "done"])
    with ActorSystem.open(database, script, approvals="ask") as system:
        reply = system.root.prompt("go")
        [question] = waiting(system)
        for by, roles in (("bob", {"look", "prompt", "approve"}), ("eve", set[str]())):
            with pytest.raises(NotAllowed, match="role:lead, principal:anna"):
                system.questions.answer(question.id, "two", by=by, roles=roles)
        assert system.questions.answer(question.id, "two", by="carl", roles={"look", "lead"})
        reply.get(timeout=DEADLINE)


def test_the_setting_says_whom_calls_ask_and_labels_name_a_principal(database: str) -> None:
    changes: list[str] = []
    script = scripted(kid=[calling(("change", {"what": "a"})), "done"])
    with ActorSystem.open(database, script, tools=[change_tool(changes)], approvals="ask") as system:
        system.root.configure(questions={"to": ["label:user"], "within": "4h", "remind": "30m"})
        kid = system.root.fork(name="kid", labels={"user": "anna"})
        reply = kid.prompt("go")
        [question] = waiting(system)
        assert (question.kind, question.asks) == ("approve", ("principal:anna",))
        assert (question.row.next, question.row.next_at) == ("remind", question.row.asked_at + 30 * 60_000)
        with pytest.raises(NotAllowed):
            system.questions.answer(question.id, "allow", by="bob", roles={"approve"})
        assert system.questions.answer(question.id, "allow", by="anna", roles={"look"})
        reply.get(timeout=DEADLINE)
        assert changes == ["a"]
        with pytest.raises(BadInput, match="questions"):
            kid.configure(questions={"within": "soon"})


@pytest.mark.slow("takes a tenth of a second")
def test_a_row_is_open_exactly_while_its_call_waits_however_the_wait_ends(database: str) -> None:
    changes: list[str] = []
    names = ("killed", "stopped", "ruled", "denied", "left")
    scripts: dict[str, Script] = {name: [calling(("change", {"what": "a"})), "done"] for name in names}
    script = scripted(**scripts)
    with ActorSystem.open(database, script, tools=[change_tool(changes)], approvals="ask") as system:
        kids = [system.root.fork(name=name) for name in names]
        for kid in kids:
            kid.prompt("go")
        question_by_agent = {question.agent: question.id for question in waiting(system, 5)}
        assert is_sound(system)
        killed, stopped, ruled, denied, left = kids
        killed.kill()
        stopped.signal(Signal.INT)
        ruled.set_rule("allow", "change")
        denied.set_rule("deny", "change")
        eventually(lambda: len(system.questions.pending()) == 1, "the end of four waits")
        assert {
            system.questions.get(question_by_agent[agent.uuid]).how for agent in (killed, stopped, ruled, denied)
        } == {"void"}
        assert system.questions.get(question_by_agent[left.uuid]).is_open
        assert is_sound(system)


@pytest.mark.slow("takes a tenth of a second")
def test_a_question_waits_on_behind_a_restart_and_in_a_file(tmp_path: Path) -> None:
    database, file = str(tmp_path / "a.db"), tmp_path / "a.jsonl"
    script = scripted(kid=[calling(asks(form={"type": "boolean"}))])
    with ActorSystem.open(database, script, approvals="ask") as system:
        system.root.fork(name="kid").prompt("go")
        [before] = waiting(system)
    with ActorSystem.open(database, scripted(kid=["done"]), approvals="ask") as system:
        assert [question.id for question in waiting(system)] == [before.id]
        system.export("kid", file)
        assert system.questions.answer(before.id, True)
        assert system.agent("kid").reply(timeout=DEADLINE).text == "done"
    with ActorSystem.open(str(tmp_path / "b.db"), scripted(kid=["done"]), approvals="ask") as system:
        system.import_(file)
        [there] = waiting(system)
        assert (there.kind, there.form) == ("ask", {"type": "boolean"})
        assert is_sound(system)
        assert system.questions.answer(there.id, False)
        assert system.questions.get(there.id).how == "answered"
        assert is_sound(system)


def test_an_answer_is_kept_for_thirty_days(tmp_path: Path) -> None:
    database = str(tmp_path / "a.db")
    with ActorSystem.open(database, scripted([calling(asks()), "done"]), approvals="ask") as system:
        reply = system.root.prompt("go")
        [question] = waiting(system)
        system.questions.answer(question.id, "two")
        reply.get(timeout=DEADLINE)
    store = open_store(database)
    store.write(lambda tx: tx.schema.execute("UPDATE questions SET answered_at = 1"))
    store.close()
    with ActorSystem.open(database, scripted([])) as system:
        prune_logs(system._store, 0, system._clock.now_ms())
        with pytest.raises(BadInput, match="no question"):
            system.questions.get(question.id)


TERMS = {"within": "4h", "default": "deny", "remind": "30m", "escalate": ["role:lead", "above"]}


@pytest.mark.slow("takes a tenth of a second")
def test_a_question_that_nobody_answers_reminds_escalates_and_is_decided(caplog: pytest.LogCaptureFixture) -> None:
    changes: list[str] = []
    with simulated() as world:
        script = scripted(kid=[calling(("change", {"what": "a"})), "done"])
        root = world.open(script, tools=[change_tool(changes)], approvals="ask").root
        root.configure(questions=TERMS)
        kid = root.fork(name="kid")
        kid.prompt("go")
        world.sleep(60)
        questions = world.system.questions
        [question] = questions.pending()
        steps = []
        for _ in range(4):
            row = questions.get(question.id)
            steps.append((row.next, row.level, row.asks, len(root.read_mail())))
            world.sleep(((row.next_at or 0) - world.clock.now_ms()) / 1000)
            world.sleep(5)
        approvers, lead = ("role:approve",), ("role:approve", "role:lead")
        assert steps[:2] == [("remind", 0, approvers, 0), ("escalate", 1, approvers, 0)]
        assert steps[2:] == [("escalate", 2, lead, 0), ("default", 3, lead, 1)]
        after = questions.get(question.id)
        assert (after.how, after.by, after.next_at) == ("expired", "runtime", None)
        assert (kid.reply().text, changes) == ("done", [])
        [result] = [message for message in kid.history() if message.kind == "tool_result"]
        assert result.content == "This call was denied: nobody has answered in time"
        assert "waits for an answer of role:approve." in caplog.text


def test_a_default_answer_of_a_model_is_the_result_when_nobody_answers() -> None:
    with simulated() as world:
        call = asks(form=SEATS, within="2m", default={"seats": 1})
        root = world.open(scripted([calling(call), "done"]), approvals="ask").root
        root.prompt("go")
        world.sleep(125)
        [result] = [message for message in root.history() if message.kind == "tool_result"]
        assert (result.content, result.data["by"]) == ('{"seats": 1}', "runtime")


def asks_once(asked: Reply, request: Request) -> Reply | str:
    """A model that asks until it has read an answer."""
    return "done" if results(request) else asked


def prompt_until_it_crashes(world: Simulation) -> None:
    world.system.root.prompt("go")
    world.sleep(200)
    while True:
        world.system.root.mark()


@pytest.mark.sample(3, "crash points")
@pytest.mark.parametrize("committed", [False, True])
@pytest.mark.parametrize("commit", range(1, 7))
def test_a_crash_at_any_commit_neither_loses_a_question_nor_decides_it_twice(commit: int, committed: bool) -> None:
    with simulated() as world:
        call = asks(form={"type": "boolean"}, within="2m", default=True)
        root = world.open(scripted(partial(asks_once, calling(call))), approvals="ask").root
        world.crash_at(CrashPoint(commit, committed=committed))
        with pytest.raises(ProcessCrashed):
            prompt_until_it_crashes(world)
        world.recover()
        root = world.system.root
        if not [message for message in root.history() if message.kind == "user"]:
            root.prompt("go")
        world.sleep(200)
        assert [message.content for message in root.history() if message.kind == "tool_result"] == ["true"]
        assert world.system.questions.pending() == []


def test_an_answer_in_time_holds_and_the_default_is_never_taken() -> None:
    with simulated() as world:
        call = asks(form={"type": "boolean"}, within="2m", default=True)
        root = world.open(scripted([calling(call), "done"]), approvals="ask").root
        root.prompt("go")
        world.sleep(60)
        [question] = world.system.questions.pending()
        assert world.system.questions.answer(question.id, False, by="anna")
        world.sleep(200)
        after = world.system.questions.get(question.id)
        assert (after.how, after.by, after.next) == ("answered", "anna", None)
        assert [message.content for message in root.history() if message.kind == "tool_result"] == ["false"]
