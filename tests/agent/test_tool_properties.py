"""Turns with tools, in any order of events and with a crash anywhere: each call is done as often as it should be, and
whatever prefix of the log is left, a model accepts it.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from ikigai_actors import ActorSystem, ScriptedProvider
from ikigai_actors.agent.turn import events as on
from ikigai_actors.agent.turn.calls import recover
from ikigai_actors.agent.turn.machine import step
from ikigai_actors.agent.turn.state import AskApproval, RequestModel, RunTool, Spawn, State, Step
from ikigai_actors.providers.base import Reply, ToolCall
from ikigai_actors.records.log.history import EMPTY
from ikigai_actors.records.log.log_unit import LogUnit
from ikigai_actors.records.messages.messages import Kind, Message
from ikigai_actors.records.messages.replies import reply_message_data
from ikigai_actors.tools.function import tool
from tests.agent.turn.test_calls import NOW, TOOLS
from tests.kit.assembly import assemble
from tests.kit.blocking_provider import DEADLINE
from tests.kit.tool_scripts import calling, faults

OPENING = 1
"""Position of the message that opened the turn."""


class Turn:
    """One turn after its reply, carried out by the machine; what is outside, and what reaches the disk."""

    def __init__(self, names: Sequence[str], chance: Random) -> None:
        self._chance = chance
        reply = Reply(tool_calls=tuple(ToolCall(name, {}, str(place)) for place, name in enumerate(names)))
        self.log = [
            Message("me", OPENING, Kind.USER, "go", {}, NOW),
            Message("me", 2, Kind.ASSISTANT, "", reply_message_data(reply, "p:m"), NOW),
        ]
        self.started: Counter[str] = Counter()
        self.births = 0
        self._outside: list[on.ToolFinished] = []
        self._effects: list[RunTool] = []
        self._questions: list[AskApproval] = []
        self._state = State("me", 0)
        self.over = False
        self.crash()

    def crash(self) -> None:
        """All that was in memory is gone; the agent is loaded, and its turn resumed."""
        self._outside, self._effects, self._questions = [], [], []
        state = State("me", len(self.log), OPENING)
        loaded = on.Loaded(len(self.log), EMPTY, recover(self.log), None)
        self._state = step(state, loaded, NOW, TOOLS).state
        self._take(step(self._state, on.Resume("caller"), NOW, TOOLS))

    def proceed(self) -> None:
        """One thing that can happen now; the first that can leads on, so that every turn ends."""
        possible: list[Callable[[], None]] = []
        if self._outside:
            possible.append(self._finish)
        if self._questions:
            possible.append(self._decide)
        if self._effects or not (self._outside or self._questions) or self._chance.randrange(2):
            possible.append(self._perform if self._effects else self._go_on)
        possible[self._chance.randrange(len(possible))]()

    def _go_on(self) -> None:
        fresh = [f"kid {self.births + place}" for place in range(len(self._state.calls))]
        self._take(step(self._state, on.Continue(fresh), NOW, TOOLS))

    def _perform(self) -> None:
        effect = self._effects.pop(0)
        self.started[effect.call] += 1
        self._outside.append(on.ToolFinished(effect.request, effect.call, "did", False))

    def _decide(self) -> None:
        question = self._questions.pop(self._chance.randrange(len(self._questions)))
        approved = bool(self._chance.randrange(2))
        self._take(step(self._state, on.Decide(2, question.call, approved, "no", "", "person"), NOW, TOOLS))

    def _finish(self) -> None:
        result = self._outside.pop(self._chance.randrange(len(self._outside)))
        self._take(step(self._state, result, NOW, TOOLS))

    def _take(self, done: Step) -> None:
        self._state = done.state
        if isinstance(done.unit, LogUnit):
            self.log += done.unit.messages
            self.births += len(done.unit.births)
        for effect in done.effects:
            match effect:
                case RunTool():
                    self._effects.append(effect)
                case AskApproval():
                    self._questions.append(effect)
                case RequestModel():
                    self.over = True
                case Spawn():
                    pass


@given(
    st.lists(st.sampled_from(["read", "write", "shell", "post", "drop", "fork", "gone"]), min_size=1, max_size=6),
    st.lists(st.integers(0, 12), max_size=3),
    st.randoms(use_true_random=False),
)
@settings(max_examples=150, deadline=None)
def test_whenever_it_crashes_each_call_is_done_as_often_as_it_should_be(
    names: list[str], crashes: list[int], chance: Random
) -> None:
    turn = Turn(names, chance)
    for steps in crashes:
        for _ in range(steps):
            if not turn.over:
                turn.proceed()
        if not turn.over:
            turn.crash()
    while not turn.over:
        turn.proceed()
    ids = [str(message.data["tool_use_id"]) for message in turn.log if message.kind == Kind.TOOL_RESULT]
    assert sorted(ids) == [str(place) for place in range(len(names))]
    assert turn.births == names.count("fork")
    for place, name in enumerate(names):
        times = turn.started[str(place)]
        assert times >= 1 if name == "read" else times <= (name in ("write", "shell", "post"))
        if name == "post":
            approved = [
                message for message in turn.log if message.kind == Kind.APPROVAL and message.data.get("approved")
            ]
            assert times <= len([message for message in approved if message.data["tool_use_id"] == str(place)]) <= 1
    check_prefixes(turn.log)


def check_prefixes(messages: Sequence[Message]) -> None:
    """A model accepts every prefix of a log."""
    for cut in range(len(messages) + 1):
        for model in ("p:m", "other:"):
            assert faults(assemble(messages[:cut], {}, agent="me", name=None, model=model)) == []


def test_a_model_accepts_every_prefix_of_what_real_turns_wrote() -> None:
    @tool
    def say() -> str:
        return "said"

    @tool
    async def fail() -> str:
        raise ValueError

    asked = calling("say", "fork", "fail", "gone", "fork")
    both = replace(asked, text="I look.")
    script = ScriptedProvider(lambda request: both if len(request.messages) < 3 else "done")
    with ActorSystem.open("sqlite:///:memory:", provider=script, tools=[say, fail]) as system:
        for prompt in ("one", "two"):
            system.root.prompt(prompt).get(timeout=DEADLINE)
        for agent in (system.root, *system.root.children()):
            agent.reply(timeout=DEADLINE)
            assert agent.prompt("and then?").get(timeout=DEADLINE).text == "done"
            check_prefixes(agent.history())
