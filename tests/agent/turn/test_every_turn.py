"""Every way of a turn with two calls, a few events long: the rule of turns is written anew here, over facts of its own.

A reply asks for two calls, and then comes whatever can: results, also late ones, decisions, INT, STOP and CONT, a crash
after which the state is read from the log, RESUME, prompts, replies, failures, grants. A request may be held, or has to
wait for a budget. States that are alike are gone on from once.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import pytest

from ikigai_actors.agent.turn import events as on
from ikigai_actors.agent.turn.calls import recover
from ikigai_actors.agent.turn.machine import accepts, failed_turn, step
from ikigai_actors.agent.turn.state import (
    Answer,
    AskApproval,
    LifecycleState,
    Phase,
    PutAside,
    RequestModel,
    RunTool,
    State,
    Step,
)
from ikigai_actors.agent.turn.tool_steps import placed
from ikigai_actors.errors import BadInput, ProviderError
from ikigai_actors.providers.base import Reply, ToolCall
from ikigai_actors.records.budgets.amounts import Held, Paused
from ikigai_actors.records.log.history import EMPTY, play_all
from ikigai_actors.records.log.log_unit import LogUnit
from ikigai_actors.records.messages.messages import Message
from ikigai_actors.tools.policy import Policy, ToolTraits
from supervisors.signals import Status

MOST = 2
"""The most requests of a turn, as its settings say."""

TOOLS = {"read": ToolTraits(idempotent=True), "write": ToolTraits(), "shell": ToolTraits(alone=True),
         "post": ToolTraits(policy=Policy.ASK), "drop": ToolTraits(policy=Policy.DENY)}  # fmt: skip

NAMES = (*TOOLS, "gone")
"""The tools that a reply names; the last one is not on offer."""

EVENTS = (
    "go on", "finish 0", "finish 1", "finish 0 late", "approve 0", "approve 1", "approve 1 late",
    "approve 1 other", "deny 0", "deny 1", "interrupt", "stop",
    "cont", "crash", "resume", "prompt", "answer", "answer late", "call", "fail", "break off", "poison", "grant",
)  # fmt: skip

Effects = tuple[tuple[str, object], ...]


class Facts(NamedTuple):
    """An agent, as the rule sees it."""

    phase: str
    head: int
    turn: int
    """Where the turn in progress was opened; 0 for none."""
    request: int
    steps: int
    names: tuple[str, ...] = ()
    """The calls of the latest reply of the latest turn, and how far they are."""
    far: tuple[str, ...] = ()
    starts: tuple[int, ...] = ()
    stopped: bool = False
    hold: str = ""
    """``held`` or ``paused``."""
    waits: bool = False
    """Whether who prompted waits for the outcome."""
    failed: int = 0
    retries: int = 0
    asked_for_rules: bool = False

    def with_far(self, far: str, *places: int) -> "Facts":
        """With other calls this far."""
        starts = tuple(n + (far == "running" and at in places) for at, n in enumerate(self.starts))
        return self._replace(far=tuple(far if at in places else it for at, it in enumerate(self.far)), starts=starts)

    @property
    def done(self) -> bool:
        return set(self.far) <= {"done"}


@dataclass(frozen=True)
class Outcome:
    """What an event leads to: the facts after it, and what is written and done."""

    facts: Facts
    written: tuple[tuple[str, str], ...] | None = None
    """Kind and call of each message; None where nothing is committed."""
    effects: Effects = ()
    opens: int | None = None
    """The turn that the unit writes into the registry."""
    asks: bool = False


def expected(was: Facts, event: str) -> Outcome | None:
    """What the rule says; None where the event has to wait."""
    what, _, which = event.partition(" ")
    place = int(which[0]) if which[:1].isdigit() else 0
    running = which == "0 late" or place >= len(was.far) or was.far[place] != "running"
    in_model, in_tools, paused = (
        was.phase == "waiting for the model",
        was.phase == "running tools",
        was.hold == "paused",
    )
    match what:
        case "go" if in_tools:
            return _go_on(was)
        case "go":
            return None
        case "finish" if running or not in_tools:
            return Outcome(was)
        case "finish":
            return _results(was, place)
        case "approve" if which == "1 late":  # it was shown a call of an earlier reply, with the same id
            return Outcome(was, effects=(("answer", False),))
        case "approve" | "deny" if not _shown(was) or place >= len(was.far) or was.far[place] != "asking":
            return Outcome(was, effects=(("answer", False),))
        case "approve" if which == "1 other":
            return Outcome(was, effects=(("answer", "refused"),))
        case "approve":
            after = was.with_far("approved", place)._replace(head=was.head + 1)
            return Outcome(after, (("approval", str(place)),), (("answer", True),))
        case "deny":
            after = was.with_far("done", place)._replace(head=was.head + 1)
            return Outcome(after, (("tool_result", str(place)),), (("answer", True),))
        case "interrupt" if not was.turn:
            return Outcome(was, effects=(("answer", False),))
        case "interrupt":
            return _end(was, "interrupted", is_typed=True)
        case "stop" | "cont":
            return Outcome(was._replace(stopped=what == "stop"))
        case "crash":
            phase = "waiting for budget" if paused else "interrupted" if was.turn else "idle"
            hold = "paused" if paused else ""
            cut = [at for at, far in enumerate(was.far) if far == "approved" and was.starts[at]]  # not begun again
            far = tuple("running" if at in cut else far for at, far in enumerate(was.far))
            return Outcome(was._replace(far=far,
                phase=phase, request=was.request + 1, steps=0, hold=hold, waits=False, retries=0, asked_for_rules=False
            ))  # fmt: skip
        case "resume":
            return _resume(was)
        case "prompt" if was.stopped:
            return Outcome(was)  # it is kept as mail
        case "prompt" if was.phase not in ("idle", "interrupted"):
            return None
        case "prompt":
            written = (*((("interrupted", ""),) if was.turn else ()), ("user", ""))
            answers = (("outcome", ""),) if was.turn and was.waits else ()
            head, request = was.head + len(written), was.request + 1
            after = Facts("waiting for the model", head, head, request, 1, stopped=was.stopped, waits=True)
            after = after._replace(asked_for_rules=was.asked_for_rules)
            return Outcome(after, written, (*answers, ("request", request)), head, asks=True)
        case "answer" | "call" | "fail" | "break" if not in_model or which == "late":
            return Outcome(was)
        case "answer":
            return _end(was, "assistant")
        case "call":
            after = was._replace(phase="running tools", head=was.head + 1, names=("read",), far=("waiting",),
                                 starts=(0,), hold="")  # fmt: skip
            return Outcome(after, (("assistant", ""),))
        case "break" if was.retries == 0:
            request = was.request + 1
            after = was._replace(head=was.head + 1, request=request, retries=1, hold="")
            return Outcome(after, (("retry", ""),), (("request", request),), asks=True)
        case "fail" | "break":
            return _end(was, "error", fails=True)
        case "poison":
            return _end(was, "error", fails=True) if was.turn else Outcome(was)
        case "grant" if paused and in_tools:
            return Outcome(was._replace(hold="held"))
        case "grant" if paused and was.phase == "waiting for budget":
            request = was.request + 1
            after = was._replace(phase="waiting for the model", request=request, steps=max(1, was.steps), hold="held")
            return Outcome(after, effects=(("request", request),))
    assert what == "grant"
    return Outcome(was)


def _shown(was: Facts) -> bool:
    """Whether the calls of the latest reply are those of the turn in progress, and of no earlier request."""
    return was.phase in ("running tools", "interrupted")


def _results(was: Facts, *places: int) -> Outcome:
    """These calls have results now; the last one brings the next request, or what it needs."""
    after = was.with_far("done", *places)._replace(head=was.head + len(places))
    asks = after.done and not was.hold and not was.stopped and was.steps < MOST
    return Outcome(after, tuple(("tool_result", str(place)) for place in places), asks=asks)


def _end(was: Facts, kind: str, fails: bool = False, is_typed: bool = False) -> Outcome:
    """The turn is over, and its callers hear that."""
    after = was._replace(phase="idle", head=was.head + 1, turn=0, steps=0, hold="", waits=False)
    effects: Effects = (*((("outcome", ""),) if was.waits else ()), *((("answer", True),) if is_typed else ()))
    if fails:  # opened again, it begins with a request
        after = after._replace(failed=was.turn, names=(), far=(), starts=())
    return Outcome(after if fails else after._replace(failed=0), ((kind, ""),), effects, 0)


def _request(was: Facts) -> Outcome:
    request = was.request + 1
    after = was._replace(request=request, steps=was.steps + 1, retries=0)
    if was.hold == "paused":
        return Outcome(after._replace(phase="waiting for budget"))
    unheld = was.hold != "held"
    done: Effects = (("request", request),)
    return Outcome(after._replace(phase="waiting for the model"), () if unheld else None, done, asks=unheld)


def _go_on(was: Facts) -> Outcome:
    """The next thing for the calls: unknown ones, then denied ones, then questions, then whatever may start."""
    calls = [*enumerate(zip(was.names, was.far, strict=True))]
    fresh = [(at, name) for at, (name, far) in calls if far in ("waiting", "asking", "approved")]
    unasked = [(at, name) for at, (name, far) in calls if far == "waiting"]
    for group in ([at for at, name in fresh if name == "gone"], [at for at, name in unasked if name == "drop"]):
        if group:
            refused = _results(was, *group)
            return Outcome(refused.facts._replace(asked_for_rules=True), refused.written, asks=refused.asks)
    may = [(at, name) for at, name in fresh if name != "post" or was.far[at] == "approved"]
    questions = [at for at, name in unasked if name == "post"]
    runs = [name for name, far in zip(was.names, was.far, strict=True) if far == "running"]
    chosen: list[int] = []
    for at, name in may:
        if "shell" in runs or (name == "shell" and (runs or chosen)):
            break
        chosen.append(at)
        if name == "shell":
            break
    for group, kind, far, effect in ((questions, "approval", "asking", "ask"), (chosen, "tool_call", "running", "run")):
        if group:
            after = was.with_far(far, *group)._replace(head=was.head + len(group), asked_for_rules=True)
            return Outcome(after, tuple((kind, str(at)) for at in group), tuple((effect, at) for at in group))
    if runs or was.stopped:
        return Outcome(was)
    if "asking" in was.far:
        return Outcome(was) if was.asked_for_rules else Outcome(was._replace(asked_for_rules=True), ())
    if was.steps >= MOST:
        ended = _end(was, "error", fails=True)
        return Outcome(ended.facts._replace(asked_for_rules=True), ended.written, ended.effects, 0)
    asked = _request(was)
    heard = was.asked_for_rules or asked.written is not None
    return Outcome(asked.facts._replace(asked_for_rules=heard), asked.written, asked.effects, asks=asked.asks)


def _resume(was: Facts) -> Outcome | None:
    """A turn that was cut off goes on with its calls; one that failed, with a request."""
    if was.stopped and (was.phase != "idle" or was.failed):
        return None
    effects: Effects = (("answer", True),)
    if was.failed:
        asked = _request(was._replace(turn=was.failed, failed=0, steps=0))
        return Outcome(asked.facts, (), (*effects, *asked.effects), was.failed, asks=True)
    if was.phase != "interrupted":
        return Outcome(was, effects=(("answer", False),))
    if not was.names:
        asked = _request(was)
        return Outcome(asked.facts, asked.written, (*effects, *asked.effects), asks=asked.asks)
    cut = [at for at, far in enumerate(was.far) if far == "running"]
    lost = [at for at in cut if was.names[at] != "read"]
    again = was.with_far("approved", *(at for at in cut if at not in lost))._replace(phase="running tools")
    done: Effects = (*effects, *(("ask", at) for at, far in enumerate(was.far) if far == "asking"))
    if not lost:
        return Outcome(again, (), done)
    ended = _results(again, *lost)
    return Outcome(ended.facts, ended.written, done, asks=ended.asks)


class Agent(NamedTuple):
    """An agent as it is: what the machine decides on, and the log that it has written."""

    state: State
    log: tuple[Message, ...] = ()


VIEW = EMPTY._replace(settings={"max_steps": MOST})


def happening(agent: Agent, event: str) -> on.TurnEvent:
    """An event of the machine."""
    state, (what, _, which) = agent.state, event.partition(" ")
    late = which.endswith("late") or (what == "finish" and state.phase is not Phase.RUNNING_TOOLS)  # of an earlier life
    call = which[:1]
    match what:
        case "go":
            return on.Continue(())
        case "finish":
            return on.ToolFinished(state.request - late, call, "done", False)
        case "approve" | "deny":
            reply = max((pending.reply for pending in state.calls), default=0) - late
            digest = "0" * 64 if which.endswith("other") else ""
            return on.Decide(reply, call, what == "approve", "", "", "judge", digest)
        case "interrupt":
            return on.Interrupt("judge")
        case "stop" | "cont":
            return on.StatusChanged(Status.STOPPED if what == "stop" else Status.RUNNING)
        case "resume":
            return on.Resume("judge")
        case "prompt":
            return on.Prompt("do", "asker")
        case "answer" | "call":
            asked = (ToolCall("read", {}, "0"),) if what == "call" else ()
            return on.ReplyReceived(state.request - late, Reply("so", asked), "p:m")
        case "fail" | "break":
            return on.ReplyFailed(state.request, ProviderError("no", broke_off=what == "break"))
        case "poison":
            return on.TurnPoisoned("it crashes")
    at = state.hold.at if isinstance(state.hold, Paused) else state.head
    return on.Granted(Held(at, 1, 0, 1))


def crashed(agent: Agent) -> Agent:
    """The agent, read from its log and its row as a new process does."""
    was, log = agent
    hold = was.hold if isinstance(was.hold, Paused) else None
    row = State(was.uuid, was.head, was.turn, request=was.request + 1, lifecycle=was.lifecycle, hold=hold)
    calls = recover(message for message in log if message.id >= was.turn) if was.turn else ()
    loaded = on.Loaded(len(log), play_all(VIEW, log), calls, None, failed=failed_turn(reversed(log)))
    return Agent(step(row, loaded, 1).state, log)


def facts_of(state: State, known: Facts) -> Facts:
    """What the rule sees of a state; calls that an earlier request has asked for are taken as known."""
    calls = state.calls if _shown(known) else None
    return Facts(
        state.phase.value, state.head, state.turn, state.request, state.steps,
        known.names if calls is None else tuple(call.name for call in calls),
        known.far if calls is None else tuple(call.progress.value for call in calls),
        known.starts if calls is None else tuple(call.attempt for call in calls),
        state.status is Status.STOPPED,
        "paused" if isinstance(state.hold, Paused) else "held" if isinstance(state.hold, Held) else "",
        state.callers == ("asker",), state.failed, state.retries, state.rules is not None,
    )  # fmt: skip


def effects_of(done: Step) -> Effects:
    """What a step does, in the words of the rule."""
    effects: list[tuple[str, object]] = []
    for effect in done.effects:
        match effect:
            case RequestModel():
                effects.append(("request", effect.request))
            case RunTool() | AskApproval():
                assert effect.request == done.state.request
                effects.append(("run" if isinstance(effect, RunTool) else "ask", int(effect.call)))
            case Answer(caller="asker"):
                effects.append(("outcome", ""))
            case Answer(value=value):
                effects.append(("answer", "refused" if isinstance(value, BadInput) else value))
    assert len(effects) == len(done.effects)
    return tuple(effects)


def after(agent: Agent, facts: Facts, event: str) -> Iterator[tuple[Agent, Facts]]:
    """What becomes of an agent, and of the facts; it is compared on the way."""
    wanted = expected(facts, event)
    if event == "crash":
        assert wanted is not None
        again = crashed(agent)
        assert facts_of(again.state, wanted.facts) == wanted.facts, facts
        yield again, wanted.facts
        return
    command = happening(agent, event)
    if isinstance(command, on.Deferrable):
        assert accepts(agent.state, command) == (wanted is not None), (event, facts)
    if wanted is None:
        return
    done = step(agent.state, command, 1, TOOLS)
    unit, effects = done.unit, effects_of(done)
    assert (facts_of(done.state, wanted.facts), effects) == (wanted.facts, wanted.effects), (event, facts)
    if not isinstance(unit, LogUnit):
        assert wanted.written is None
        assert isinstance(unit, PutAside) is (event == "prompt" and facts.stopped)
        yield Agent(done.state, agent.log), wanted.facts
        return
    written = tuple((message.kind, str(message.data.get("tool_use_id", ""))) for message in unit.messages)
    assert (written, unit.turn, unit.asks) == (wanted.written, wanted.opens, wanted.asks), (event, facts)
    assert [message.id for message in unit.messages] == [*range(facts.head + 1, wanted.facts.head + 1)]
    log = (*agent.log, *unit.messages)
    sound(log, effects)
    if not unit.asks:
        yield Agent(done.state, log), wanted.facts
        return
    for answer in (Held(done.state.head, 1, 0, 1), Paused("lead", "tokens", "too little", at=done.state.head)):
        held = placed(done, answer)
        paused = isinstance(answer, Paused)
        leaves = wanted.facts.phase == "waiting for the model"
        phase = "waiting for budget" if paused and leaves else wanted.facts.phase
        then = wanted.facts._replace(hold="paused" if paused else "held", phase=phase)
        assert facts_of(held.state, then) == then
        assert effects_of(held) == tuple(effect for effect in wanted.effects if not (paused and effect[0] == "request"))
        yield Agent(held.state, log), then


def sound(log: tuple[Message, ...], effects: Effects) -> None:
    """What holds of each log, whatever led to it: of the calls of its latest turn, and of a request after them."""
    kinds = [message.kind for message in log]
    latest = max(place for place, kind in enumerate(kinds) if kind in ("assistant", "user"))
    behind = log[latest:]
    asked = {str(called["id"]) for called in behind[0].data.get("tool_calls", ())}
    marks = [(message.kind, message.data.get("tool_use_id"), message.data.get("approved")) for message in behind]
    names = {
        message.data.get("tool_use_id"): message.data.get("name") for message in behind if "tool_use_id" in message.data
    }
    for call, name in names.items():
        begun = marks.count(("tool_call", call, None))
        results = [kind for kind, which, _ in marks if which == call and kind == "tool_result"]
        assert len(results) <= 1
        assert begun <= 1 or name == "read"
        assert not begun or name not in ("drop", "gone")
        assert not begun or name != "post" or ("approval", call, True) in marks
    if any(what == "request" for what, _ in effects) and "error" not in kinds[latest:]:
        assert asked <= {which for kind, which, _ in marks if kind == "tool_result"}


def follow(names: tuple[str, str], depth: int) -> int:
    """Compare all that can happen after a reply with these calls, so many events long; return how many steps it was."""
    state = State("me", 0, phase=Phase.IDLE, view=VIEW, lifecycle=LifecycleState())
    opened = step(state, on.Prompt("do", "asker"), 1)
    assert isinstance(opened.unit, LogUnit)
    held = placed(opened, Held(1, 1, 0, 1))
    asked = Reply("so", tuple(ToolCall(name, {}, str(place)) for place, name in enumerate(names)))
    replied = step(held.state, on.ReplyReceived(1, asked, "p:m"), 1, TOOLS)
    assert isinstance(replied.unit, LogUnit)
    agent = Agent(replied.state, (*opened.unit.messages, *replied.unit.messages))
    facts = Facts("running tools", 2, 1, 1, 1, names, ("waiting",) * 2, (0, 0), waits=True)
    assert facts_of(agent.state, facts) == facts
    seen, steps, there = {facts}, 0, [(agent, facts)]
    for _ in range(depth):
        states: list[tuple[Agent, Facts]] = []
        for (member, known), event in product(there, EVENTS):
            steps += 1
            for then, new in after(member, known, event):
                if new not in seen:
                    seen.add(new)
                    states.append((then, new))
        there = states
    return steps


@pytest.mark.sample(2, "a pair each")
@pytest.mark.parametrize(
    ("pair", "steps"),
    [(("shell", "post"), 6_049), (("read", "write"), 5_888), (("write", "shell"), 5_359), (("drop", "gone"), 5_612)],
)
def test_a_turn_with_two_calls_goes_as_the_rule_says_five_events_long(pair: tuple[str, str], steps: int) -> None:
    assert follow(pair, 5) == steps


@pytest.mark.thorough("a million steps")
def test_a_turn_with_any_two_calls_goes_as_the_rule_says_seven_events_long() -> None:
    assert sum(follow((first, second), 7) for first, second in product(NAMES, repeat=2)) > 1_000_000
