"""The built-in call by which a model finds further tools, and skills that are not listed: find_tools.

`ikigai_actors.agent.turn.found_tools` has its rules.
"""

import math
import re
from collections.abc import Mapping
from typing import ClassVar

from ikigai_actors.agent.builtin_calls.base import Argument, BuiltinCall, text
from ikigai_actors.agent.turn.calls import Call, Progress, progress
from ikigai_actors.agent.turn.events import Continue
from ikigai_actors.agent.turn.found_tools import FOUND_NAMES, FOUND_SKILLS, mates_of, words_about
from ikigai_actors.agent.turn.skills import LOAD_SKILL, described_skill, unlisted_in
from ikigai_actors.agent.turn.state import State, Step
from ikigai_actors.agent.turn.steps import advance, messages_of
from ikigai_actors.providers.base import FIND_TOOLS
from ikigai_actors.records.log.log_unit import LogUnit
from ikigai_actors.records.messages.messages import Kind
from ikigai_actors.tools.policy import ToolTraits

MOST_HITS = 4
"""The most tools that a query finds, not counting the tools that belong to the same groups."""
_STEM = 6
"""Letters of a word that are compared: ``remind`` finds ``reminder``."""
_NAMED = 2
"""A word of a tool's name counts as much as this many others."""
_USUAL_WORDS = 60
"""A description that is longer than this counts less for each of its words."""
_NO_HELP = frozenset(
    "a an and are as at be by do for from i in into is it me my of on or that the this to with you".split()  # noqa: SIM905
)


class FindToolsCall(BuiltinCall):
    """The call ``find_tools``: add the tools that fit a query to the next requests to the model."""

    name = FIND_TOOLS
    description = (
        "Find further tools; you have them from your next step on. There are tools for documents that all agents "
        "share, timers, the tree of agents (list, kill, watch, rename, exit, merge, compare, grant), groups, memory "
        "(recall, compact), mail, and those of connected servers."
    )
    arguments: ClassVar = {"query": Argument("string", "What you want to do, or a tool's name.", required=True)}

    def begin(self, state: State, call: Call, event: Continue, now: int, tools: Mapping[str, ToolTraits]) -> Step:
        """Return the step that writes the result. The names of the found tools are recorded in its data only."""
        self.check(call.input)
        about = {name: traits.about for name, traits in tools.items() if traits.about}
        unlisted = unlisted_in(state.view.settings) if LOAD_SKILL in tools else {}
        skills = {f"skill {name}": skill for name, skill in unlisted.items()}  # no tool has such a name
        about |= {key: words_about({**skill, "name": key}) for key, skill in skills.items()}
        hits = ranked(text(call.input, "query"), about)[:MOST_HITS]
        fitting = dict.fromkeys(name for hit in hits for name in mates_of(hit) if name in tools)
        names = [name for name in fitting if name not in event.found_tools]
        answer = _NOTHING if not fitting else f"You have these already: {', '.join(fitting)}."
        data = call.data
        if names:
            answer, data = f"From your next step on you have {', '.join(names)}.", {**data, FOUND_NAMES: names}
        if lines := [f"- {described_skill(skills[hit])}" for hit in hits if hit in skills]:
            further = "\n".join([_SKILLS_FIT, *lines])
            answer, data = f"{answer}\n{further}" if fitting else further, {**data, FOUND_SKILLS: further}
        messages = messages_of(state.uuid, state.head, now, ((Kind.TOOL_RESULT, answer, data),))
        done = progress(state.calls, (call.id,), Progress.DONE)
        return Step(advance(state, messages, calls=done), LogUnit(state.uuid, messages))


CALLS = (FindToolsCall(),)

_NOTHING = "No further tool fits that. Ask with other words, or do without."
_SKILLS_FIT = "These skills fit, which load_skill loads:"


def ranked(query: str, about: Mapping[str, str]) -> list[str]:
    """Return the tools that fit a query, the best first. Tools that fit much worse than the best are left out.

    Args:
        query: the words of the query.
        about: the words about each tool, in lower case, including the words of its name.
    """
    wanted = {word[:_STEM] for word in _words(query.lower()) if word not in _NO_HELP}
    texts = {name: [word[:_STEM] for word in _words(words)] for name, words in about.items()}
    scores: dict[str, float] = {}
    for word in wanted:
        holders = [name for name, words in texts.items() if word in words]
        for name in holders:
            weight = _NAMED if word in {part[:_STEM] for part in _words(name.lower())} else 1
            rare = math.log(1 + len(texts) / len(holders))
            scores[name] = scores.get(name, 0) + rare * weight / (1 + len(texts[name]) / _USUAL_WORDS)
    best = max(scores.values(), default=0)
    return sorted((name for name in scores if scores[name] >= best / 2), key=lambda name: (-scores[name], name))


def _words(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", text)
