"""Strategies for Hypothesis: prompts, replies of models, signals, schedules and faults.

Each strategy shrinks towards the simplest value: a short prompt, a text reply, no fault, a schedule in plain order.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from ikigai_actors.errors import ProviderError
from ikigai_actors.providers.base import Reply, ToolCall
from ikigai_actors.providers.scripted import ScriptedReply, Stream
from ikigai_actors.system.handles.ref import AgentRef
from ikigai_actors.testing.simulation.faults import ALL, Faults
from ikigai_actors.testing.simulation.schedule import DEVIATIONS, HORIZONS, VARIETY, Schedule
from supervisors.signals import Signal

WORDS = ("go", "look", "wait", "ja", "naïve 💡", "two\nlines")


@dataclass(frozen=True, slots=True)
class Tree:
    """The shape of a tree of agents."""

    parents: tuple[int, ...]
    """For each agent but the first, the number of its parent: 0 is agent 0, 1 the first forked agent."""

    def grow(self, root: AgentRef) -> list[AgentRef]:
        """Fork a tree of this shape under an agent. Return that agent and its descendants, by number."""
        agents = [root]
        for parent in self.parents:
            agents.append(agents[parent].fork())
        return agents


def agent_trees(most: int = 8) -> st.SearchStrategy[Tree]:
    """Return a Hypothesis strategy for trees of at most ``most`` agents below the first."""

    def shape(choices: Sequence[int]) -> Tree:
        return Tree(tuple(choice % (number + 1) for number, choice in enumerate(choices)))

    return st.lists(st.integers(0, max(0, most - 1)), max_size=most).map(shape)


def prompts() -> st.SearchStrategy[str]:
    """Return a Hypothesis strategy for texts of prompts and mails."""
    storable = st.characters(exclude_categories=["Cs"], exclude_characters="\0")  # what UTF-8 has; codec= is slow
    text = st.text(storable, min_size=1, max_size=20)
    return st.sampled_from(WORDS) | text.filter(lambda said: bool(said.strip()))


def tool_calls(tools: Sequence[str | ToolCall] = ()) -> st.SearchStrategy[ToolCall]:
    """Return a Hypothesis strategy for calls that a model may make.

    The strategy draws from ``tools`` (a name means a call without arguments), ``fork``, and a tool that does not exist.
    """
    calls = [ToolCall(tool) if isinstance(tool, str) else tool for tool in tools]
    return st.sampled_from([*calls, ToolCall("fork", {"prompt": "go on"}), ToolCall("fork"), ToolCall("nowhere")])


def replies(tools: Sequence[str | ToolCall] = ()) -> st.SearchStrategy[ScriptedReply]:
    """Return a Hypothesis strategy for replies of a model: text, calls, errors, and streams that may break off."""
    text: st.SearchStrategy[Any] = st.sampled_from(("yes", "no", "Ja. 💡"))
    calls = st.lists(tool_calls(tools), min_size=1, max_size=3)
    return (
        text
        | st.builds(lambda said, asked: Reply(said, tuple(asked)), st.sampled_from(("", "I look.")), calls)
        | st.just(Stream(("Hel", "lo")))
        | st.builds(lambda: ProviderError("overloaded"))
        | st.builds(lambda: Stream(("Hel",), then=ProviderError("the connection broke", broke_off=True)))
    )


def signals() -> st.SearchStrategy[Signal]:
    """Return a Hypothesis strategy for the signals that an agent can get."""
    return st.sampled_from([Signal.CONT, Signal.STOP, Signal.INT, Signal.TERM, Signal.KILL])


@st.composite
def schedules(draw: st.DrawFn, most: int = DEVIATIONS) -> Schedule:
    """Draw a schedule with at most ``most`` deviating choices. The schedule shrinks to the fewest deviating choices."""
    horizon, count = draw(st.sampled_from(HORIZONS)), draw(st.integers(0, most))
    drawn = draw(st.lists(st.integers(0, horizon * VARIETY - 1), min_size=count, max_size=count))
    return Schedule({number // VARIETY: 1 + number % VARIETY for number in drawn})


def faults(most: Faults = ALL) -> st.SearchStrategy[Faults]:
    """Return a Hypothesis strategy for faults, with at most ``most`` in a run."""
    possible = [name for name in most.__slots__ if getattr(most, name)]
    return st.builds(Faults, **{name: st.integers(0, getattr(most, name)) for name in possible})
