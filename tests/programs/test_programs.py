"""Programs: what a function asks for is in its log, and is done once, however often the function is called."""

import asyncio
import json
import threading
from collections import Counter
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ikigai_actors import (
    ActorSystem,
    AgentRef,
    ProviderError,
    Reply,
    Request,
    ScriptedProvider,
    Signal,
    TimedOut,
    TurnInterrupted,
    current_agent,
)
from ikigai_actors.agent.statistics import Tally
from ikigai_actors.errors import BadInput, StepFailed
from ikigai_actors.events import Instrument
from ikigai_actors.programs import Program, first, gather, now, program, random, step
from ikigai_actors.providers.base import OnDelta
from ikigai_actors.records.fsck.check import check
from ikigai_actors.store import open_store
from ikigai_actors.system.questions import WaitingQuestion
from ikigai_actors.text import utc_time
from tests.kit.blocking_provider import DEADLINE, Gate, Hanging
from tests.kit.databases import eventually
from tests.kit.program import completed
from tests.kit.zygote import PYTHON
from tests.system.test_cut_off import prompted, said

DONE: list[str] = []
"""What the steps of a test have done."""


@pytest.fixture(autouse=True)
def nothing_done() -> None:
    DONE.clear()


def do(what: str) -> str:
    DONE.append(what)
    return what.upper()


@program
def lead(task: str) -> str:
    me = current_agent()
    kids = [me.fork(name=name, model="script") for name in ("mast", "sail")]
    begun = step(do, "begin")
    replies = gather(*(kid.prompt(f"{task} {kid.name}") for kid in kids))
    ended = step(do, " + ".join(reply.text for reply in replies))
    return f"{begun} / {ended} / {kids[0].prompt('again').get().text}"


def boss_in(system: ActorSystem, model: Program = lead) -> AgentRef:
    return system.root.fork(name="boss", model=model, key="boss")


def test_a_program_acts_by_calls_in_its_own_log_and_answers(durable: str) -> None:
    script = ScriptedProvider(prompted)
    with ActorSystem.open(durable, providers={"script": script}, programs=[lead]) as system:
        boss = boss_in(system)
        assert (lead.name, lead.__name__) == ("lead", "lead")
        reply = boss.prompt("Plan the").get(timeout=DEADLINE)
        assert reply.text == "BEGIN / HEARD PLAN THE MAST + HEARD PLAN THE SAIL / heard again"
        assert DONE == ["begin", "heard Plan the mast + heard Plan the sail"]
        assert [said(kid) for kid in boss.children()] == [["Plan the mast", "again"], ["Plan the sail"]]
        calls = [call["name"] for message in boss.history() for call in message.data.get("tool_calls") or ()]
        assert calls == ["fork", "fork", "step", "prompt", "prompt", "wait", "step", "prompt", "wait"]
        assert {message.data["made_by"] for message in boss.history() if message.data.get("tool_calls")} == {
            lead.version
        }
    with closing(open_store(durable)) as store:
        assert check(store) == []


@program
def races(task: str) -> str:
    me = current_agent()
    slow, quick = (me.fork(name=name, model=name) for name in ("slow", "quick"))
    replies = gather(slow.prompt("go", output=int), quick.prompt("go"))
    return f"{replies[0].output} {replies[1].text}"


def test_a_program_forks_under_a_budget_whose_rest_stands_beside_the_child(durable: str) -> None:
    script = ScriptedProvider(prompted)
    with ActorSystem.open(durable, providers={"script": script}, programs=[lead], budget={"tokens": 10**6}) as system:
        boss = boss_in(system)
        assert boss.prompt("Plan the").get(timeout=DEADLINE).text.endswith("heard again")
        results = [each for each in boss.history() if each.kind == "tool_result"]
        assert "Left of the budget" in results[0].content


def test_the_order_in_which_turns_end_is_a_record_and_the_order_of_replies_that_of_the_prompts(durable: str) -> None:
    slow, quick = Gate('{"result": 7}'), Gate("quick")
    providers = {"slow": slow.provider, "quick": quick.provider}
    with ActorSystem.open(durable, provider="offline", providers=providers, programs=[races]) as system:
        boss = boss_in(system, races)
        reply = boss.prompt("go")
        slow.wait_until_asked()
        quick_one, slow_one = system.agent("quick"), system.agent("slow")
        quick.open()
        eventually(lambda: quick_one.history()[-1].kind == "assistant", "the end of the quick one")
        slow.open()
        assert reply.get(timeout=DEADLINE).text == "7 quick"
        [wait] = [
            message for message in boss.history() if message.kind == "tool_result" and message.data["name"] == "wait"
        ]
        ends = [(entry["turn"][:22], entry.get("output")) for entry in json.loads(wait.content)]
        assert ends == [(quick_one.uuid, None), (slow_one.uuid, 7)]


@program
def hurries(task: str) -> str:
    kid = current_agent().fork(name="kid", model="hangs")
    asked = kid.prompt("go")
    try:
        return str(asked.get(timeout=0.01).text)
    except TimedOut:
        kid.signal(Signal.KILL)
    try:
        return str(asked.get().text)
    except StepFailed as error:
        return f"late, then {error}"


def test_a_wait_that_is_too_long_and_the_death_of_who_was_asked_raise_where_they_are_waited_for() -> None:
    hanging = Hanging("")
    with ActorSystem.open(":memory:", provider="offline", providers={"hangs": hanging}, programs=[hurries]) as system:
        answer = boss_in(system, hurries).prompt("go").get(timeout=DEADLINE).text
        assert answer.startswith("late, then")
        assert "is dead" in answer


@program
def long(task: str) -> str:
    return str(sum(step(len, "x" * number) for number in range(60)))


def test_acts_are_no_steps_of_a_turn_that_are_counted() -> None:
    with ActorSystem.open(":memory:", programs=[long], provider="offline") as system:
        assert boss_in(system, long).prompt("go").get(timeout=DEADLINE).text == str(sum(range(60)))


@program
def dated(task: str) -> str:
    """Three steps, and the times at which their results came."""
    times = []
    for place in range(3):
        step(do, f"step {place}")
        times.append(now().isoformat())
    step(do, " ".join(times))
    return " ".join(times)


class Commits(Instrument):
    """Counts the commits of agents."""

    def __init__(self) -> None:
        self.begun = Counter[str]()

    def commit_begins(self, agent: Tally) -> None:
        self.begun[agent.uuid] += 1


def test_a_result_is_one_unit_with_the_reply_that_follows_and_its_time_is_the_same_in_a_replay(durable: str) -> None:
    commits = Commits()
    with ActorSystem.open(durable, programs=[dated], provider="offline", instruments=[commits]) as system:
        boss = boss_in(system, dated)
        times = boss.prompt("go").get(timeout=DEADLINE).text
        assert commits.begun[boss.uuid] <= 7, "birth, prompt, first step, each result, answer"
        assert ["step 0", "step 1", "step 2", times] == DONE
        kinds = [message.kind for message in boss.history() if message.kind not in ("fork", "configure")]
        assert kinds == ["user", *["assistant", "tool_call", "tool_result"] * 4, "assistant"]
        results = [
            utc_time(message.created_at).isoformat() for message in boss.history() if message.kind == "tool_result"
        ]
        assert times.split() == results[:3]


@program
def fails(task: str) -> str:
    first = step(do, "first")
    if task in DONE or len(DONE) < 3:
        step(do, "second")
        raise ValueError("a bug")
    return str(first)


def test_what_a_function_raises_ends_its_turn_and_a_resumption_repeats_no_step() -> None:
    with ActorSystem.open(":memory:", programs=[fails], provider="offline") as system:
        boss = boss_in(system, fails)
        with pytest.raises(ProviderError, match=r"a bug \(fails, line \d+\)"):
            boss.prompt("go").get(timeout=DEADLINE)
        assert boss.record.living
        assert boss.resume()
        with pytest.raises(ProviderError, match="a bug"):
            boss.reply(timeout=DEADLINE)
        assert DONE == ["first", "second"]


VERSION = ["one"]


def other(what: str) -> str:
    return do(f"other {what}")


def moved(what: str) -> str:
    return do(f"moved {what}")


moved.__module__, moved.__qualname__ = "elsewhere", "do"


@program
def changes(task: str) -> str:
    step(do, "a")
    if VERSION[0] == "two":
        step(other, "new")
    step(moved if VERSION[0] == "moved" else do, "b")
    if VERSION[0] == "one":
        raise ValueError("not yet")
    return "done"


def test_an_act_that_the_log_does_not_hold_beside_one_that_nobody_asks_for_is_refused_with_its_line() -> None:
    VERSION[0] = "one"
    with ActorSystem.open(":memory:", programs=[changes], provider="offline") as system:
        boss = boss_in(system, changes)
        with pytest.raises(ProviderError, match="not yet"):
            boss.prompt("go").get(timeout=DEADLINE)
        VERSION[0] = "two"
        boss.resume()
        with pytest.raises(
            ProviderError,
            match=r"line \d+ asks for step\(.*new.*does not hold, and nothing asks for step\(.*b.*at message",
        ):
            boss.reply(timeout=DEADLINE)
        VERSION[0] = "moved"
        boss.resume()
        modules = r"asks for step\(elsewhere\.do, .* nothing asks for step\(tests\.programs\.test_programs\.do, "
        with pytest.raises(ProviderError, match=modules):
            boss.reply(timeout=DEADLINE)
        VERSION[0] = "three"
        boss.resume()
        assert boss.reply(timeout=DEADLINE).text == "done"
        assert [message.data["made_by"] for message in boss.history() if message.kind == "assistant"][
            -1
        ] == changes.version
        assert DONE == ["a", "b"]


HELD = threading.Event()


def hold(what: str) -> str:
    DONE.append(what)
    HELD.set()
    threading.Event().wait(DEADLINE)
    return what


@program
def cut(task: str) -> str:
    first = step(do, "a")
    if VERSION[0] == "two":
        step(other, "new")
        return "never"
    try:
        return f"{first} {step(hold, 'b')}"
    except StepFailed as error:
        return f"{first} {error}"[:40]


def test_a_function_replays_before_what_was_cut_off_is_settled(durable: str) -> None:
    VERSION[0] = "one"
    HELD.clear()
    with ActorSystem.open(durable, programs=[cut], provider="offline") as system:
        boss_in(system, cut).prompt("go")
        assert HELD.wait(DEADLINE)
    VERSION[0] = "two"
    with ActorSystem.open(durable, programs=[cut], provider="offline") as system:
        boss = boss_in(system, cut)
        eventually(lambda: boss.history()[-1].kind == "error", "the end of the turn")
        assert 'asks for step(other, "new")' in boss.history()[-1].content
        assert 'nothing asks for step(hold, "b") at message' in boss.history()[-1].content
        assert [message.content for message in boss.history() if message.kind == "tool_result"] == ['"A"']
        VERSION[0] = "one"
        boss.resume()
        assert boss.reply(timeout=DEADLINE).text == "A This call was started, and then the pr"
        assert DONE == ["a", "b"]


@program
def waits(task: str) -> str:
    kid = current_agent().fork(name="kid", model="hangs")
    try:
        reply: str = kid.prompt("go").get().text
        return reply
    finally:
        DONE.append("unwound")
        step(do, "never")


def test_an_int_unwinds_the_function_and_does_nothing_that_it_asks_for_on_the_way() -> None:
    hanging = Hanging("")
    with ActorSystem.open(":memory:", provider="offline", providers={"hangs": hanging}, programs=[waits]) as system:
        boss = boss_in(system, waits)
        asked = boss.prompt("go")
        hanging.wait_until_asked()
        boss.signal(Signal.INT)
        with pytest.raises(TurnInterrupted):
            asked.get(timeout=DEADLINE)
        eventually(lambda: DONE == ["unwound"], "the end of the function")
        assert {message.kind for message in boss.history() if "step" in str(message.data)} <= {"interrupted"}


SEATS = {"type": "object", "properties": {"seats": {"type": "integer"}}, "required": ["seats"]}


@program
def asks(task: str) -> str:
    me = current_agent()
    answers = [me.ask("Sail?"), me.ask("Sail?"), me.ask("Sink?")]
    name = me.ask("Her name?", form={"type": "string"}, to=["role:lead"])
    return f"{answers} {name} {me.ask('Seats?', form=SEATS)} {me.ask('Crew?', form=SEATS)}"


def test_a_program_asks_a_person_once_in_the_inbox_as_models_do_also_over_a_restart(durable: str) -> None:
    def asked(text: str) -> WaitingQuestion:
        eventually(lambda: [pending.text for pending in system.questions.pending()] == [text], f"the question {text}")
        [question] = system.questions.pending()
        assert (question.kind, question.call.tool, system.approvals.pending()) == ("ask", "ask_person", [])
        return question

    with ActorSystem.open(durable, programs=[asks], provider="offline", approvals="allow") as system:
        boss_in(system, asks).prompt("go")
        sail = asked("Sail?").id
        assert system.questions.answer(sail, True)
        eventually(
            lambda: [question.id for question in system.questions.pending()] not in ([sail], []), "the second question"
        )
        sail = asked("Sail?").id
    with ActorSystem.open(durable, programs=[asks], provider="offline", approvals="deny") as system:
        boss = system.agent("boss")
        assert asked("Sail?").id == sail
        system.questions.answer(sail, None, reason="the wind")
        system.questions.answer(asked("Sink?").id, False)
        name = asked("Her name?")
        assert (name.asks, name.form) == (("role:lead",), {"type": "string"})
        system.questions.answer(name.id, "Argo")
        system.questions.answer(asked("Seats?").id, {"seats": 50})
        system.questions.answer(asked("Crew?").id, None)
        assert boss.reply(timeout=DEADLINE).text == "[True, False, False] Argo {'seats': 50} None"
        asked_for = [
            message for message in boss.history() if message.kind == "approval" and "approved" not in message.data
        ]
        assert len(asked_for) == 6
        assert check(system._store) == []


@program
def asks_wrongly(task: str) -> str:
    me = current_agent()
    errors = []
    for arguments in ({"form": {"type": "array"}}, {"to": ["anna"]}, {"within": "soon"}, {"default": "maybe"}):
        try:
            me.ask("Sail?", **arguments)
        except BadInput as error:
            errors.append(str(error).split()[0])
    return " ".join(errors)


def test_a_program_that_asks_what_no_person_could_answer_is_refused_where_it_asks() -> None:
    with ActorSystem.open(":memory:", programs=[asks_wrongly], provider="offline") as system:
        assert boss_in(system, asks_wrongly).prompt("go").get(timeout=DEADLINE).text == " ".join(["Expected"] * 4)


@program
async def driven(task: str) -> str:
    me = current_agent().aio
    kids = [await me.fork(name=name, model=name) for name in ("slow", "quick")]
    doubled = await step(do, "tea")
    slow, quick = (kid.prompt("go") for kid in kids)
    come, reply = await first(slow, quick)
    both = await gather(slow, quick)
    await me.sleep(0.01)
    return f"{doubled} {come is quick} {reply.text} {[agent.text for agent in both]} {random() < 1 and now() > EPOCH}"


EPOCH = datetime(2020, 1, 1, tzinfo=UTC)


def test_a_coroutine_has_no_thread_and_gets_the_one_that_is_first(durable: str) -> None:
    slow, quick = Gate("slow"), Gate("quick")
    providers = {"slow": slow.provider, "quick": quick.provider}
    with ActorSystem.open(durable, provider="offline", providers=providers, programs=[driven]) as system:
        boss = boss_in(system, driven)
        reply = boss.prompt("go")
        slow.wait_until_asked()
        threads = threading.enumerate
        eventually(
            lambda: not [thread for thread in threads() if thread.name == f"program {boss.uuid}"],
            "the end of its threads",
        )
        quick.open()
        waits = "the wait for the other one"
        eventually(
            lambda: (
                sum(message.kind == "tool_call" and message.data["name"] == "wait" for message in boss.history()) == 2
            ),
            waits,
        )
        slow.open()
        assert reply.get(timeout=DEADLINE).text == "TEA True quick ['slow', 'quick'] True"


@program
async def strays(task: str) -> str:
    try:
        await asyncio.sleep(0)
    except BadInput as error:
        return str(error)
    return "slept"


@program
async def blocks(task: str) -> str:
    try:
        return str(current_agent().aio.fork(name="kid", model="offline").get())
    except BadInput as error:
        return str(error)


@program
def restarts(task: str) -> str:
    try:
        return str(current_agent().fork(name="kid", model="offline", restart="permanent"))
    except BadInput as error:
        return str(error)


def test_a_program_that_says_when_a_child_restarts_is_refused() -> None:
    with ActorSystem.open(":memory:", programs=[restarts], provider="offline") as system:
        assert "and nothing else" in boss_in(system, restarts).prompt("go").get(timeout=DEADLINE).text


def test_a_coroutine_that_awaits_what_is_no_act_or_blocks_is_refused_at_that_line() -> None:
    with ActorSystem.open(":memory:", programs=[strays, blocks], provider="offline") as system:
        assert "awaits its acts and nothing else" in boss_in(system, strays).prompt("go").get(timeout=DEADLINE).text
        other = system.root.fork(name="other", model=blocks)
        assert "write await" in other.prompt("go").get(timeout=DEADLINE).text


TIMES: list[str] = []


@program
def clocks(task: str) -> str:
    parts = [f"{now()} {random()}"]
    step(do, "a")
    parts.append(f"{now()} {random()}")
    TIMES.append(" ".join(parts))
    if len(TIMES) == 1:
        raise ValueError("a bug")
    return "done"


def test_a_clock_and_random_numbers_are_the_same_in_a_replay() -> None:
    TIMES.clear()
    with ActorSystem.open(":memory:", programs=[clocks], provider="offline") as system:
        boss = boss_in(system, clocks)
        with pytest.raises(ProviderError, match="a bug"):
            boss.prompt("go").get(timeout=DEADLINE)
        boss.resume()
        assert boss.reply(timeout=DEADLINE).text == "done"
        assert TIMES[0] == TIMES[1]


@program
def large(task: str) -> str:
    text = step("x".__mul__, 200_000)
    try:
        step("x".__mul__, 300_000)
    except StepFailed as error:
        return f"{len(text)} {error}"
    return "too much"


def test_a_value_of_a_step_has_256_kib_at_most() -> None:
    with ActorSystem.open(":memory:", programs=[large], provider="offline") as system:
        answer = boss_in(system, large).prompt("go").get(timeout=DEADLINE).text
        assert answer.startswith("200000 ")
        assert "at most 262,144 bytes as JSON" in answer


class Patient:
    """A model that is asked, and never answers."""

    name = "patient"

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def respond(self, request: Request, on_delta: OnDelta) -> Reply:
        self.asked.append(request.messages[-1]["content"][-1]["text"])
        await asyncio.Event().wait()
        raise AssertionError("nobody sets this event")

    async def close(self) -> None:
        """Holds nothing."""


@program
def busy(task: str) -> str:
    me = current_agent()
    kids = [me.fork(name=f"kid{number}", model="patient") for number in range(3)]
    asked = [kid.prompt(f"a{number}") for number, kid in enumerate(kids)]
    asked += [kids[0].prompt("never"), kids[0].prompt("later", detached=True)]
    return str([reply.text for reply in gather(*asked)])


def test_an_int_ends_what_was_asked_for_but_for_what_is_detached(durable: str) -> None:
    patient = Patient()
    with ActorSystem.open(durable, provider="offline", providers={"patient": patient}, programs=[busy]) as system:
        boss = boss_in(system, busy)
        reply = boss.prompt("go")
        eventually(lambda: len(patient.asked) == 3, "three children that work")
        eventually(lambda: boss.history()[-1].kind == "tool_call", "the wait")
        boss.signal(Signal.INT)
        with pytest.raises(TurnInterrupted):
            reply.get(timeout=DEADLINE)
        eventually(lambda: patient.asked[3:] == ["later"], "the prompt that is detached")
        kids = [system.agent(f"kid{number}") for number in range(3)]
        eventually(lambda: [kid.record.turn > 0 for kid in kids] == [True, False, False], "the end of the others")
        assert [said(kid) for kid in kids] == [["a0", "later"], ["a1"], ["a2"]]
        assert [kid.history()[-1].kind for kid in kids] == ["user", "interrupted", "interrupted"]
        kids[0].signal(Signal.INT)
        eventually(lambda: kids[0].record.turn == 0, "the end of the last one")
    with closing(open_store(durable)) as store:
        assert [violation for violation in check(store) if violation.invariant == "asked"] == []
        assert store.read(lambda tx: tx.run("asked_of", agents=[kid.uuid for kid in kids])) == []


@program
def catches(task: str) -> str:
    try:
        step(int, "tea")
    except StepFailed as error:
        return f"caught {error}"
    return "not caught"


def test_a_step_that_fails_raises_where_it_is_asked_for() -> None:
    with ActorSystem.open(":memory:", programs=[catches], provider="offline") as system:
        assert "invalid literal" in boss_in(system, catches).prompt("go").get(timeout=DEADLINE).text


@program
def acts_on_others(task: str) -> str:
    """Every verb of handles once, and a question at which it waits."""
    me = current_agent()
    kid, doomed = me.fork(name="kid", model="script"), me.fork(name="doomed", model="script")
    said = kid.prompt("Say it.").get().text
    gave = [
        me.send(kid, "a mail"),
        me.send(kid, "later", after=3600),
        me.remind("look", every="0 2 * * *"),
        kid.remind("rise", after=60, prompt=True),
        me.system.documents.write("plan.md", said),
        me.grant(tokens=5).granted["tokens"],
        [record.uuid == doomed.uuid for record in doomed.kill(reason="done")],
        me.merge(kid).text,
    ]
    try:
        doomed.kill()
    except StepFailed as error:
        gave.append("is dead" in str(error))
    me.ask("Go on?")
    return json.dumps(gave)


def test_the_verbs_of_handles_are_acts_of_a_program_and_none_is_repeated_after_a_restart(durable: str) -> None:
    def opened() -> ActorSystem:
        providers = {"script": ScriptedProvider(lambda request: Reply("said"))}
        return ActorSystem.open(durable, provider="offline", providers=providers, programs=[acts_on_others])

    with opened() as system:
        boss = system.root.fork(name="boss", model=acts_on_others, budget={"tokens": 1_000})
        boss.prompt("go")
        eventually(lambda: bool(system.questions.pending()), "the question")
    with opened() as system:
        boss = system.agent("boss")
        [question] = system.questions.pending()
        system.questions.answer(question.id, True)
        gave = json.loads(boss.reply(timeout=DEADLINE).text)
        kid = system.agent("kid")
        assert gave == [2, 1, 1, 2, 1, 1_005, [True], "said", True]
        assert [mail.body for mail in kid.mails() if mail.kind == "mail"] == ["a mail"]
        assert sorted(timer.body for timer in kid.timers()) == ["later", "rise"]
        assert [version.version for version in system.documents.log("plan.md")] == [1]
        assert [version.author for version in system.documents.log("plan.md")] == [boss.uuid]
        assert boss.budget is not None
        assert boss.budget.granted["tokens"] == 1_005
        assert [message.kind for message in boss.history()].count("merge") == 1
        assert check(system._store) == []


KILLED = """
import os, sys
from pathlib import Path
from ikigai_actors import ActorSystem, FunctionProvider, current_agent
from ikigai_actors.events import Instrument
from ikigai_actors.programs import gather, program, step
from ikigai_actors.tools import current_call

EFFECTS = Path("effects")
EFFECTS.touch()

def effect(what):
    key = current_call().key
    if key not in EFFECTS.read_text():
        EFFECTS.write_text(f"{EFFECTS.read_text()}{what} {key}\\n")
    return what

def worker(request):
    return "seen " + request.messages[-1]["content"][-1]["text"]

@program
def lead(task):
    me = current_agent()
    kids = [me.fork(name=name, model="worker") for name in ("mast", "sail")]
    first = step(effect, "begin", idempotent="by_key")
    replies = gather(*(kid.prompt(f"{task} {kid.name}") for kid in kids))
    last = step(effect, "+".join(one.text for one in replies), idempotent="by_key")
    return f"{first} / {last}"

class Kill(Instrument):
    left = int(sys.argv[1])
    def commit_begins(self, agent):
        Kill.left -= 1
        if Kill.left == 0:
            os.kill(os.getpid(), 9)

with ActorSystem.open("team.db", providers={"worker": FunctionProvider(worker, "worker")}, programs=[lead],
                      provider="offline", instruments=[Kill()]) as system:
    boss = system.root.fork(name="boss", model=lead, key="boss")
    print(boss.prompt("Plan", key="monday").get(timeout=60).text)
    kids = [[one.content for one in kid.history() if one.kind == "user"] for kid in boss.children()]
    print(kids, sorted(line.split()[0] for line in EFFECTS.read_text().splitlines()))
"""


@pytest.mark.sample(2, "commits at which a process is killed")
@pytest.mark.slow("starts a program for each commit")
@pytest.mark.parametrize("at", [4, 9, 13, 17])
def test_a_program_that_is_killed_at_a_commit_has_the_same_answer_and_each_effect_once(tmp_path: Path, at: int) -> None:
    (tmp_path / "team.py").write_text(KILLED)
    killed = completed([*PYTHON, "team.py", str(at)], cwd=tmp_path)
    done = completed([*PYTHON, "team.py", "0"], cwd=tmp_path)
    assert (killed.returncode, done.returncode, done.stderr) == (-9, 0, "")
    assert done.stdout.splitlines() == [
        "begin / seen Plan mast+seen Plan sail",
        "[['Plan mast'], ['Plan sail']] ['begin', 'seen']",
    ]
