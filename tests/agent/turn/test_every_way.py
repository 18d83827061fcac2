"""Every way of an agent, some events long, around what a turn has beside its calls: laws hold after each step.

Words, built-in calls, rules, typed turns, summaries, merges and the end of the agent each have a small world: what a
model may reply there, and what may happen beside it. Units are committed, refused, or answered by a budget; between any
two steps the process may crash, and the state is read from the log. States that are alike are gone on from once.

What a step leads to must keep the laws of `lawful`. From each state the turn then comes to an end (`ends`), whatever it
waits for, and nobody who has asked goes without an answer.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import pytest

from ikigai_actors.agent.builtin_calls.table import BUILTIN_CALLS
from ikigai_actors.agent.turn import events as on
from ikigai_actors.agent.turn.builtin import BuiltinTraits
from ikigai_actors.agent.turn.calls import GIVE_RESULT, WAIT, Call, Progress, focus_in, recover
from ikigai_actors.agent.turn.machine import accepts, completed, failed_turn, step
from ikigai_actors.agent.turn.state import (
    BESIDE_STEPS,
    Answer,
    BeginWait,
    CallUnit,
    ComeBack,
    Departure,
    LifecycleState,
    Phase,
    PlanPart,
    PutAside,
    ReadChild,
    RequestModel,
    RunTool,
    State,
    Step,
    Summarise,
)
from ikigai_actors.agent.turn.tool_steps import placed
from ikigai_actors.agent.turn.typed import begin_result, misfits_in
from ikigai_actors.errors import AlreadyMerged, OutputError, ProviderError, TurnInterrupted
from ikigai_actors.providers.base import Reply, ToolCall
from ikigai_actors.records.budgets.amounts import Held, Paused
from ikigai_actors.records.log.log import Log
from ikigai_actors.records.log.log_unit import LogUnit
from ikigai_actors.records.log.merge_source import MergeSource
from ikigai_actors.records.messages.messages import Kind, Message, new_message
from ikigai_actors.records.messages.outputs import as_text
from ikigai_actors.records.messages.replies import outcome_of
from ikigai_actors.tools.policy import Policy, ToolTraits
from ikigai_actors.tools.rules.rule import Rule, Rules
from supervisors.signals import Status

NOW = 1
MOST = 3
"""The most requests of a turn, as its settings say."""

SETTINGS = {"max_steps": MOST}
NAMES = ("send", "exit", "fork", "compact", "merge", WAIT)
TOOLS: Mapping[str, ToolTraits] = {
    "read": ToolTraits(idempotent=True),
    "write": ToolTraits(),
    "post": ToolTraits(policy=Policy.ASK),
    **{name: BuiltinTraits(begin=BUILTIN_CALLS[name].begin) for name in NAMES},
}
TYPE = {"schema": {"type": "integer"}}
"""What a typed turn is asked for."""

GIVEN: Mapping[str, Mapping[str, Any]] = {
    "send": {"to": "lead", "body": "hello"},
    "badly": {"to": "lead"},
    "merge": {"agent": "kid"},
    "fit": {"result": 7},
    "misfit": {"result": "seven"},
}
"""What a call is given, by its word; a word in it names the tool."""


def asked(*words: str) -> Reply:
    """A reply with these calls: each a tool, or ``tool:word`` for what it is given."""
    parts = [word.partition(":") for word in words]
    calls = (ToolCall(tool, GIVEN.get(arguments or tool, {}), str(at)) for at, (tool, _, arguments) in enumerate(parts))
    return Reply("so", tuple(calls), "tool_use")


class Way(NamedTuple):
    """An agent, and all around it that decides what can happen."""

    state: State
    log: tuple[Message, ...]
    row: int = 0
    """The open turn in the registry."""
    outside: str = ""
    """What was asked of outside last: a model for a reply or a summary, the log for a part, another agent."""
    started: frozenset[str] = frozenset()
    """The calls that run outside, or wait there, in this life."""
    words: tuple[on.Prompt, ...] = ()
    came: int = 0
    """How many words have come."""
    callers: tuple[str, ...] = ()
    """Who has asked for something, and has no answer yet."""
    rules: Rules = ()
    """The rules in force, as the tables have them."""
    dead: bool = False

    @property
    def alike(self) -> object:
        """The same of all states from which the same can happen."""
        state, side = self.state, self.state.side
        calls = tuple(
            (call.id, call.name, repr(call.input), call.progress, call.attempt, call.approved) for call in state.calls
        )
        beside = side and (side.back, side.attempts, side.caller, type(side).__name__, repr(getattr(side, "by", "")),
                           repr(getattr(side, "must", "")), getattr(side, "written", None) is None)  # fmt: skip
        counted = (state.steps, state.retries, state.misfits, min(state.squeezed, 4), state.left_at, state.focus)
        hold = (type(state.hold), state.hold.at == state.head if state.hold is not None else None)
        view = (state.view.lens is None, state.output is None, bool(state.failed), state.rules, state.lifecycle)
        kinds = tuple(message.kind for message in self.log if message.id >= max(state.turn, 1)) if state.turn else ()
        words = tuple(word.data["steer"] for word in self.words)
        around = (self.outside, self.started, words, self.came, self.callers, self.rules, self.dead)
        return (state.phase, bool(state.turn), calls, beside, counted, hold, view, kinds[-6:], *around)


@dataclass(frozen=True)
class World:
    """What can happen around one subject."""

    replies: Sequence[Reply]
    """What a model may say; a last word is always among it."""
    beside: Callable[[Way], Iterator[on.TurnEvent]] = lambda way: iter(())
    """What else may happen."""
    words: int = 0
    """How many words may come."""
    rules: Sequence[Rules] = ()
    """What rules there may be, beside none."""
    prompt: Mapping[str, Any] = field(default_factory=dict)
    permanent: bool = False
    talk: Sequence[tuple[str, str]] = ()
    """What was said before."""
    quick: int = 3
    """How many events long the ways of the quick tier are."""


def begins(world: World) -> Iterator[Way]:
    """An agent with no turn, and one whose model has just replied, in each way."""
    talk = ((Kind.CONFIGURE, "", SETTINGS), *((kind, text, {}) for kind, text in world.talk))
    log = tuple(new_message("me", at, str(kind), text, data, NOW) for at, (kind, text, data) in enumerate(talk, 1))
    lifecycle = LifecycleState(restart="permanent" if world.permanent else "transient")
    idle = Way(loaded(State("me", len(log), lifecycle=lifecycle), log, 0), log)
    yield idle
    opened = next(after(idle, on.Prompt("do", "asker", data=world.prompt)))
    for reply in world.replies:
        yield next(after(opened, on.ReplyReceived(opened.state.request, reply, "p:m")))


def loaded(row: State, log: tuple[Message, ...], turn: int) -> State:
    """The state of an agent whose log was read, as `AgentLog.hold` gives it to the machine."""
    whole = Log("me", 0, None, log)
    failed = failed_turn(reversed(log))
    opened = [message for message in log if message.id >= (turn or failed)] if turn or failed else []
    event = on.Loaded(
        len(log), whole.view(len(log)), recover(opened) if turn else (), outcome_of(reversed(log)), 0, failed,
        opened[0].data.get("output") if opened else None, misfits_in(opened), focus_in(opened) if turn else None,
    )  # fmt: skip
    return step(row, event, NOW).state


def happen(way: Way, world: World) -> Iterator[on.TurnEvent]:
    """What can happen now, but for a crash and rules."""
    state, request = way.state, way.state.request
    yield on.Interrupt("int")
    yield on.StatusChanged(Status.RUNNING if state.status is Status.STOPPED else Status.STOPPED)
    yield on.Resume("resume")
    yield from world.beside(way)
    match state.phase:
        case Phase.IDLE | Phase.INTERRUPTED:
            yield on.Prompt("do", "asker", data=world.prompt)
            yield on.ExitNow("bye", "exit")
        case Phase.WAITING_FOR_MODEL:
            yield from (on.ReplyReceived(request, reply, "p:m") for reply in (LAST, *world.replies))
            yield on.ReplyReceived(request - 1, LAST, "p:m")
            yield on.ReplyFailed(request, ProviderError("no"))
            yield on.ReplyFailed(request, ProviderError("no", broke_off=True))
            yield on.Exited(request, LAST.text)
        case Phase.RUNNING_TOOLS:
            yield continued(way)
            yield from (on.ToolFinished(request, call, "done", False) for call in sorted(way.started))
            for call in state.calls:
                if call.progress is Progress.ASKING:
                    yield from (on.Decide(call.reply, call.id, yes, "", "", "judge") for yes in (True, False))
        case Phase.COMPACTING | Phase.MERGING if way.outside == "summary":
            yield from (on.SummaryReplied(request, reply, "p:m", state.head, None) for reply in SUMMARIES)
            yield on.SummaryFailed(request, ProviderError("no"))
            yield on.SummaryFailed(request - 1, ProviderError("late"))
            yield on.SummaryFailed(request, ProviderError("prompt is too long: 200 tokens > 100 maximum"))
        case Phase.COMPACTING:
            yield on.PartWritten(request)
        case Phase.MERGING:
            yield on.ChildRead(request, KID)
            yield on.ChildRead(request, error=AlreadyMerged("again", "kid"))
    if isinstance(state.hold, Paused):
        yield on.Granted(Held(state.hold.at, 1, 0, 1))
    if way.words and state.status is not Status.STOPPED:
        at_once = any(word.at_once for word in way.words)
        takes = at_once and (state.phase is Phase.WAITING_FOR_MODEL or any(map(undone, state.calls)))
        waits = state.phase is Phase.RUNNING_TOOLS and any(map(runs_a_wait, state.calls))
        if state.phase is Phase.WAITING_FOR_BUDGET or (waits and not takes):
            yield on.TakeWords()
        elif takes and state.phase in (Phase.WAITING_FOR_MODEL, Phase.RUNNING_TOOLS):
            yield from (on.TakeWords(True, partial, asked=True) for partial in ("", "half"))
        elif state.phase is Phase.IDLE and state.status is Status.RUNNING:
            yield way.words[0]


LAST = Reply(as_text({"result": 7}))
SUMMARIES = (Reply("it"), Reply(" "), asked("read"), Reply("it", stop_reason="max_tokens"), Reply("words " * 900))
KID = MergeSource("kid", None, 3, 0, 0, False, "found it", (Message("kid", 3, "assistant", "found it", {}, 0),), ())


def continued(way: Way, one_by_one: bool = False) -> on.Continue:
    return on.Continue(
        tuple(f"kid {call.id}" for call in way.state.calls if call.name == "fork"), one_by_one=one_by_one
    )


def undone(call: Call) -> bool:
    return call.progress is not Progress.DONE


def runs_a_wait(call: Call) -> bool:
    return call.name == WAIT and call.progress is Progress.RUNNING


def after(way: Way, event: on.TurnEvent) -> Iterator[Way]:
    """What becomes of an agent by an event, whatever the store and the budgets say."""
    if isinstance(event, on.Deferrable) and not accepts(way.state, event):
        return
    if isinstance(event, on.Prompt) and event in way.words:
        way = way._replace(words=tuple(word for word in way.words if word is not event))
    event = completed(way.state, event, Log("me", 0, None, way.log))
    tools = {**TOOLS, GIVE_RESULT: BuiltinTraits(begin=begin_result)} if way.state.output is not None else TOOLS
    done = step(way.state, event, NOW, tools, way.words)
    lawful(way, event, done, tools)
    if isinstance(caller := getattr(event, "caller", None), str) and not isinstance(done.unit, PutAside):
        way = way._replace(callers=(*way.callers, caller))
    if way.outside and getattr(event, "request", None) == way.state.request and not isinstance(event, on.ToolFinished):
        way = way._replace(outside="")  # it has come
    yield from committed(way, event, done)


def committed(way: Way, event: on.TurnEvent, done: Step) -> Iterator[Way]:
    """What the store and the budgets may say to a step, and what follows."""
    match done.unit:
        case LogUnit() | CallUnit() as unit if unit.rules is not None and unit.rules != way.rules:
            heard = way._replace(state=replace(way.state, rules=way.rules))
            yield from after(heard, continued(heard))
            return
        case PutAside():
            yield way
        case Departure():
            if done.caller is None and done.call is None:
                yield way._replace(callers=(), dead=True)
            else:
                yield way._replace(callers=(), dead=True)
                yield from refused(way, event, done)
        case LogUnit() as unit:
            taken = {word.mail for word in way.words if word.mail in unit.words}
            way = way._replace(
                log=(*way.log, *unit.messages),
                row=way.row if unit.turn is None else unit.turn,
                words=tuple(word for word in way.words if word.mail not in taken),
            )
            answers = (Held(done.state.head, 1, 0, 1), *([PAUSE] if unit.may_wait else ())) if unit.asks else (None,)
            for answer in answers:
                paused = answer._replace(at=done.state.head) if isinstance(answer, Paused) else answer
                yield entered(way, done if paused is None else placed(done, paused))
            before = way._replace(log=way.log[: len(way.log) - len(unit.messages)])
            if unit.merged is not None or (unit.asks and not unit.may_wait) or done.call is not None:
                yield from refused(before._replace(row=before.row), event, done)
        case CallUnit() as unit:
            yield entered(way._replace(log=(*way.log, unit.message("said"))), done)
            yield from refused(way, event, done)
        case None:
            yield entered(way, done)


PAUSE = Paused("lead", "tokens", "too little", at=0)


def refused(way: Way, event: on.TurnEvent, done: Step) -> Iterator[Way]:
    """What the actor makes of a unit that was refused: see `AgentActor._refused`."""
    if done.caller is not None and way.state.phase not in BESIDE_STEPS:  # there it hears why by what follows
        way = way._replace(callers=without(way.callers, done.caller))
    state, error = way.state, ProviderError("refused")
    if done.together:
        yield from after(way, continued(way, one_by_one=True))
    elif done.call is not None:
        yield from after(way, on.CallRefused(done.call, "refused"))
    elif state.phase in BESIDE_STEPS:
        yield from after(way, on.SummaryFailed(state.request, error))
    elif isinstance(done.unit, LogUnit) and (begun := done.state.compaction) is not None and done.caller is None:
        refused_summary = on.RefusedSummary(begun, done.unit.messages)
        yield from after(way, on.SummaryFailed(state.request, error, refused=refused_summary))
    else:
        yield way


def without(callers: tuple[str, ...], value: object) -> tuple[str, ...]:
    at = callers.index(str(value))
    return (*callers[:at], *callers[at + 1 :])


def entered(way: Way, done: Step) -> Way:
    """The agent after a step that is committed, whose effects leave."""
    callers, outside, started = way.callers, way.outside, set(way.started)
    for effect in done.effects:
        match effect:
            case Answer():
                callers = without(callers, effect.caller)  # somebody who waits, and once
            case RequestModel() | Summarise() | PlanPart() | ReadChild():
                assert effect.request == done.state.request
                outside = OUTSIDE[type(effect)]
            case RunTool() | BeginWait():
                assert effect.request == done.state.request
                assert effect.call not in started
                started.add(effect.call)
    state = done.state
    still = {call.id for call in state.calls if call.progress is Progress.RUNNING}
    here = way._replace(state=state, callers=callers, outside=outside, started=frozenset(started & still))
    settled(here, still)
    return crashed(here) if ComeBack() in done.effects else here


OUTSIDE = {RequestModel: "reply", Summarise: "summary", PlanPart: "part", ReadChild: "child"}


def settled(way: Way, running: set[str]) -> None:
    """What holds of each agent after a step: the tables agree, and what it waits for will come."""
    state = way.state
    assert (state.head, state.turn) == (len(way.log), way.row)
    awaited = {Phase.WAITING_FOR_MODEL: ("reply",), Phase.COMPACTING: ("summary", "part"),
               Phase.MERGING: ("child", "summary")}  # fmt: skip
    assert way.outside in awaited.get(state.phase, (way.outside,)), state.phase
    if state.phase is Phase.RUNNING_TOOLS:
        assert running == way.started, "a call runs that nobody has started"
    side = (state.side.caller,) if state.side is not None and state.side.caller is not None else ()
    assert Counter(way.callers) == Counter((*state.callers, *side)), "nobody answers"


def agrees(way: Way) -> None:
    """What holds of each agent: a process that reads its log finds the same."""
    state = way.state
    again = loaded(State("me", state.head, state.turn, lifecycle=state.lifecycle, hold=kept(state)), way.log, way.row)
    assert (again.view, again.misfits, again.failed) == (state.view, state.misfits if again.turn else (), state.failed)
    if state.turn:
        assert again.output == state.output
    if state.phase in (Phase.RUNNING_TOOLS, Phase.INTERRUPTED):
        far = [(call.id, call.progress, call.attempt) for call in again.calls if undone(call)]
        assert far == [(call.id, in_log(call), call.attempt) for call in state.calls if undone(call)]


def in_log(call: Call) -> Progress:
    """How far a call is by the log, which says of one that is to be started once more that it runs."""
    return Progress.RUNNING if call.progress is Progress.APPROVED and call.attempt else call.progress


def kept(state: State) -> Paused | None:
    return state.hold if isinstance(state.hold, Paused) else None


def lawful(way: Way, event: on.TurnEvent, done: Step, tools: Mapping[str, ToolTraits]) -> None:
    """What holds of each step, whatever led to it."""
    state, unit = way.state, done.unit
    messages = unit.messages if isinstance(unit, LogUnit) else ()
    assert [message.id for message in messages] == [*range(state.head + 1, state.head + 1 + len(messages))]
    requests = [effect for effect in done.effects if isinstance(effect, RequestModel | Summarise)]
    assert len(requests) <= 1
    for _ in requests:
        asks = isinstance(unit, LogUnit) and unit.asks
        assert asks or isinstance(done.state.hold, Held), "nothing is held for it"
    if any(isinstance(request, RequestModel) for request in requests):
        assert not any(map(undone, done.state.calls))
        if not isinstance(event, on.Granted | on.WindowFull | on.SummaryFailed):  # there it has been decided on before
            mails = tuple(word.mail for word in way.words)
            assert mails == (unit.words if isinstance(unit, LogUnit) else ()), "it leaves without the words"
            assert [message.data.get("mail") for message in messages[len(messages) - len(mails) :]] == [*mails]
    if isinstance(unit, LogUnit) and unit.words:
        assert unit.asks
        assert not any(map(undone, done.state.calls))
        assert done.state.turn
    if isinstance(event, on.Interrupt) and (state.turn or state.phase in BESIDE_STEPS):
        assert done.state.side is None
        assert not done.state.turn
    if isinstance(event, on.TakeWords) and event.at_once:
        assert not any(map(undone, done.state.calls)), "a call that the words wait for"
    may_run(way, done, tools)
    well_formed((*way.log, *messages))
    outcome = [effect.value for effect in done.effects if isinstance(effect, Answer) and effect.caller == "asker"]
    for value in outcome:
        assert isinstance(value, Reply | ProviderError | TurnInterrupted)
        if isinstance(value, Reply) and state.output is not None and value.stop_reason != "exit":
            assert value.output == 7, "no value that fits"
            assert messages[-1].kind == Kind.OUTPUT
        assert not isinstance(value, OutputError) or len(state.misfits) == 2


def may_run(way: Way, done: Step, tools: Mapping[str, ToolTraits]) -> None:
    """No call begins against a rule in force: if the unit is committed, its rules are those of the tables."""
    begun = {effect.call for effect in done.effects if isinstance(effect, RunTool)}
    if isinstance(done.unit, CallUnit):
        begun.add(done.unit.call.id)
    if isinstance(done.unit, CallUnit) or (isinstance(done.unit, LogUnit) and done.unit.births):
        assert way.started == frozenset(), "a built-in call beside another one"
    rules = done.state.rules or ()
    for call in way.state.calls:
        if call.id not in begun:
            continue
        assert isinstance(done.unit, LogUnit | CallUnit)
        assert done.unit.rules is not None, "the tables are not asked"
        decisions = {rule.decision for rule in rules if rule.tool == call.name} or {tools[call.name].policy}
        assert Policy.DENY not in decisions
        assert Policy.ASK not in decisions or call.progress is Progress.APPROVED
        assert call.attempt == 0 or tools[call.name].idempotent


def well_formed(log: tuple[Message, ...]) -> None:
    """What a model can be shown: each call of a reply has one result at most, and one before what comes next."""
    waiting: dict[str, bool] = {}
    for message in log:
        call = message.data.get("tool_use_id")
        match message.kind:
            case Kind.ASSISTANT | Kind.STEER:
                assert not waiting, message
                waiting = {str(asked["id"]): False for asked in message.data.get("tool_calls", ())}
            case Kind.TOOL_CALL:
                assert call in waiting
                waiting[call] = True
            case Kind.TOOL_RESULT:
                assert waiting.pop(str(call), None) is not None, "a result that nobody waits for"
            case Kind.USER | Kind.ERROR | Kind.INTERRUPTED | Kind.OUTPUT | Kind.CLEAR:
                waiting = {}


def crashed(way: Way) -> Way:
    """The agent in a new process."""
    was = way.state
    row = State("me", was.head, was.turn, request=was.request + 1, lifecycle=was.lifecycle, hold=kept(was))
    return way._replace(state=loaded(row, way.log, way.row), started=frozenset(), callers=(), outside="")


def next_ways(way: Way, world: World) -> Iterator[Way]:
    """All that can become of an agent by one event."""
    for event in happen(way, world):
        yield from after(way, event)
    yield crashed(way)
    for rules in ((), *world.rules):
        if rules != way.rules:
            yield way._replace(rules=rules)
    if way.came < world.words:
        for now in (True, "now"):
            word = on.Prompt("hear", "word", way.came + 1, data={"steer": now})
            yield way._replace(words=(*way.words, word), came=way.came + 1)


def ends(way: Way) -> None:
    """Whatever an agent waits for comes: then its turn ends, and all who have asked have an answer."""
    for _ in range(60):
        if way.dead:
            return
        state, request = way.state, way.state.request
        event: on.TurnEvent
        match state.phase:
            case _ if state.status is Status.STOPPED:
                event = on.StatusChanged(Status.RUNNING)
            case _ if isinstance(state.hold, Paused):
                event = on.Granted(Held(state.hold.at, 1, 0, 1))
            case Phase.IDLE:
                assert way.callers == ()
                return
            case Phase.INTERRUPTED:
                event = on.Resume("resume")
            case Phase.WAITING_FOR_MODEL:
                event = on.ReplyReceived(request, LAST, "p:m")
            case Phase.COMPACTING if way.outside == "part":
                event = on.PartWritten(request)
            case Phase.MERGING if way.outside == "child":
                event = on.ChildRead(request, KID)
            case Phase.COMPACTING | Phase.MERGING:
                event = on.SummaryReplied(request, Reply("it"), "p:m", state.head, None)
            case _ if way.started:
                event = on.ToolFinished(request, min(way.started), "done", False)
            case _:
                asking = [call for call in state.calls if call.progress is Progress.ASKING]
                event = continued(way)
                if asking and state.rules is not None:
                    event = on.Decide(asking[0].reply, asking[0].id, False, "", "", "judge")
        way = next(after(way, event))
    raise AssertionError(f"it does not end: {way.state}")


def follow(world: World, depth: int) -> int:
    """Go every way so many events long; return at how many states it was."""
    there = list(begins(world))
    seen = {way.alike for way in there}
    for _ in range(depth):
        ways = []
        for way in there:
            for then in next_ways(way, world):
                if then.alike not in seen:
                    seen.add(then.alike)
                    agrees(then)
                    ends(then)
                    if not then.dead:
                        ways.append(then)
        there = ways
    return len(seen)


def compacts(way: Way) -> Iterator[on.TurnEvent]:
    """A person asks for a summary, gives one, or takes it off; a request comes near the window."""
    yield on.Compact("", "person")
    yield on.Compact("", "person", summary="it")
    yield on.Uncompact("person")
    if way.state.phase is Phase.WAITING_FOR_MODEL:
        yield from (on.WindowFull(way.state.request, 900, 800, full) for full in (False, True))
        yield on.ReplyFailed(way.state.request, ProviderError("prompt is too long: 200 tokens > 100 maximum"))


def merges(way: Way) -> Iterator[on.TurnEvent]:
    """A person has another agent merged."""
    yield from (on.Merge("kid", how, (), "person") for how in ("result", "summary"))


def rule(decision: Policy, tool: str) -> Rules:
    return (Rule("lead", 1, decision, tool),)


TALK = (("user", "a" * 400), ("assistant", "b" * 4_000)) * 3
WORLDS: Mapping[str, World] = {
    "words": World((asked("read"), asked(WAIT)), words=2),
    "built-in calls": World(
        (asked("send", "send:badly"), asked("fork", "fork"), asked("read", "exit"), asked("read", WAIT))
    ),
    "a permanent agent": World((asked("exit"), asked("read", "exit", "send")), permanent=True),
    "rules": World(
        (asked("post"), asked("read", "send")),
        rules=(rule(Policy.DENY, "post"), rule(Policy.ASK, "send"), rule(Policy.ALLOW, "post")),
        quick=4,
    ),
    "a typed turn": World(
        (asked("give_result:misfit"), asked("read", "give_result:fit"), Reply("so"), asked("exit:fit")),
        words=1,
        prompt={"output": TYPE},
        quick=2,
    ),
    "summaries": World((asked("compact"), asked("read")), compacts, talk=TALK),
    "merges": World((asked("merge", "read"),), merges),
}


@pytest.mark.slow("takes half a second")
def test_laws_hold_on_every_way_of_a_few_events() -> None:
    assert {name: follow(world, world.quick) for name, world in WORLDS.items()} == {
        "words": 340, "built-in calls": 175, "a permanent agent": 55, "rules": 654, "a typed turn": 212,
        "summaries": 194, "merges": 74,
    }  # fmt: skip


@pytest.mark.thorough("tens of thousands of states")
@pytest.mark.parametrize("name", WORLDS)
def test_laws_hold_on_every_way_of_six_events(name: str) -> None:
    assert follow(WORLDS[name], 6) > 200
