"""The lists of ``/agents`` and ``ikigai agents``: some of the agents as a tree, and how many more there are."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from ikigai_actors.behaviour.book import Book
from ikigai_actors.behaviour.listing import books_and_first_trials, listed_trials
from ikigai_actors.reach.agent_lists import AgentFacts, FoundAgents, list_agents
from ikigai_actors.reach.readable import Readable
from ikigai_actors.records.agents.registry import AgentRecord
from ikigai_actors.records.hosts.liveness import Sign
from ikigai_actors.verbs.text.harmless import one_line
from ikigai_actors.verbs.text.tree import Line, ListedTrials, tree_lines


class ListedAgents(NamedTuple):
    """A list of agents at one moment, with the arguments it was read with."""

    agents: FoundAgents
    text: str
    """The search text; empty if the list was not searched."""
    books: Mapping[str, Book]
    """The books of the experiments among these agents, by uuid."""

    @property
    def facts(self) -> AgentFacts:
        """Return facts about the agents that are not in their rows."""
        return self.agents.facts

    def state(self, record: AgentRecord) -> str:
        """Return the state of an agent, as far as a reader of the database can know it."""
        return self.facts.state(record)


def read_list(
    source: Readable, text: str = "", most: int | None = None, dead_too: bool = False, current: str | None = None
) -> ListedAgents:
    """Read a list of agents; the arguments are those of `list_agents`."""
    agents, books = list_agents(source, text, most, dead_too, current, books_and_first_trials)
    return ListedAgents(agents, text, books)


def list_lines(
    listed: ListedAgents,
    state: Callable[[AgentRecord], str],
    search: str,
    current: str | None = None,
    is_drawn: bool = True,
    signs: Mapping[str, Sign] | None = None,
) -> list[Line]:
    """Return the lines of a list: the tree, the number of agents, and how to find those left out.

    Args:
        state: returns what an agent is doing, in a word or two.
        search: the command that searches.
        current: uuid of the agent that gets the ``*``.
        is_drawn: whether to draw lines between an agent and the one above it.
        signs: heartbeats that are newer than those of the list, by uuid.
    """
    agents, facts, text = listed.agents, listed.facts, one_line(listed.text)
    if text and not agents.wanted:
        return [Line(f"No name, and no two words, have {text!r} in them. {search} WORD searches.")]
    trials = listed_trials(agents.records, listed.books, current, facts.labels)
    if text:  # who was searched is shown
        trials = ListedTrials(trials.notes)
    lines = tree_lines(
        agents.records, facts.own, state, current, agents.wanted.__contains__, facts.host_names,
        facts.signs if signs is None else signs, trials, is_drawn, facts.labels, agents.census.by_status,
    )  # fmt: skip
    if text and agents.is_cut:
        return [*lines, Line(f"and more with {text!r}: give more letters, or --limit N")]
    shown = sum(record.living for record in agents.records if record.uuid in agents.wanted)
    if not text and agents.is_cut:
        rest = agents.census.living - shown
        return [*lines, Line(f"and {rest:,} more: {search} WORD searches, --limit N lists more")]
    return lines
