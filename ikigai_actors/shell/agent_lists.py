"""The lists of ``/agents`` and ``ikigai agents``: some of the agents as a tree, and how many more there are."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from ikigai_actors.behaviour.book import Book
from ikigai_actors.behaviour.listing import MOST_TRIALS, books_in, listed_trials
from ikigai_actors.records.agents import lists, registry
from ikigai_actors.records.agents.lists import Census
from ikigai_actors.records.agents.registry import AgentRecord
from ikigai_actors.records.hosts.liveness import Sign, latest_signs
from ikigai_actors.store.base import Transaction
from ikigai_actors.store.hosts.rows import HostRecord, host_names, owners
from ikigai_actors.system.remote.client import shown_state
from ikigai_actors.verbs.text.harmless import one_line
from ikigai_actors.verbs.text.tree import Line, ListedTrials, tree_lines


class ListedAgents(NamedTuple):
    """A list at one moment."""

    records: list[AgentRecord]
    """Those that are wanted, and everybody above them; the oldest first."""
    wanted: frozenset[str]
    """By uuid."""
    text: str
    """The text that they were searched by; empty when they were not."""
    is_cut: bool
    """Whether there are more than were asked for."""
    census: Census
    labels: Mapping[str, str]
    """What people are shown for each, by uuid."""
    own: Mapping[str, int]
    """Messages that each wrote itself, by uuid."""
    hosts: tuple[HostRecord, ...]
    """The hosts that run the agents, the latest first."""
    signs: Mapping[str, Sign]
    """The latest signs of life of those that are in a turn, by uuid."""
    books: Mapping[str, Book]
    """The books of the experiments among them."""

    def state(self, record: AgentRecord) -> str:
        """The state of an agent, as far as a reader of the database can know."""
        return shown_state(record, self.hosts)


def read_list(
    tx: Transaction, text: str = "", most: int = lists.MOST_LISTED, dead_too: bool = False, current: str | None = None
) -> ListedAgents:
    """Read a list.

    Args:
        text: lists those whose name, or two words, have it; empty lists those that were used last.
        most: how many of them at most, and as many of the dead.
        dead_too: the dead too.
        current: an agent that is in the list anyway, by uuid, unless it is searched.
    """
    asked = most + 1
    if text:
        found = lists.called_so(tx, text, asked, dead_too)
    else:
        found = lists.latest_used(tx, asked, dead_too, () if current is None else (current,))
    living, dead = ([one for one in found if one.living is alive] for alive in (True, False))
    is_cut = max(len(living), len(dead)) > most
    records = lists.with_those_above(tx, [*living[:most], *dead[:most]])
    books = books_in(tx, records)
    known = {one.uuid for one in records}
    firsts = {trial.agent for book in books.values() for _, trial in sorted(book.trials.items())[:MOST_TRIALS]} - known
    wanted = {one.uuid for one in (*living[:most], *dead[:most])}
    if firsts and not text:
        added = registry.some(tx, firsts)
        records = lists.with_those_above(tx, [*records, *added])
        wanted |= {one.uuid for one in added if one.living or dead_too}
    uuids = [one.uuid for one in records]
    return ListedAgents(
        records,
        frozenset(wanted),
        text,
        is_cut,
        lists.census(tx),
        lists.labels_of(tx, records),
        lists.own_counts_of(tx, uuids),
        owners(tx),
        latest_signs(tx),
        books,
    )


def list_lines(
    found: ListedAgents,
    state: Callable[[AgentRecord], str],
    search: str,
    current: str | None = None,
    is_drawn: bool = True,
) -> list[Line]:
    """The tree of a list, the line that counts, and how to find those that are not in it.

    Args:
        state: what an agent is doing, in a word or two.
        search: the command that searches.
        current: uuid of the agent that gets the ``*``.
        is_drawn: whether lines lead to an agent from the one above it.
    """
    if found.text and not found.wanted:
        return [Line(f"No name, and no two words, have {one_line(found.text)!r} in them. {search} WORD searches.")]
    trials = listed_trials(found.records, found.books, current, found.labels)
    if found.text:  # who was searched is shown
        trials = ListedTrials(trials.notes)
    hosts = host_names(found.hosts)
    lines = tree_lines(
        found.records, found.own, state, current, found.wanted.__contains__, hosts, found.signs, trials, is_drawn,
        found.labels, found.census.by_status,
    )  # fmt: skip
    if found.text and found.is_cut:
        return [*lines, Line(f"and more with {one_line(found.text)!r}: give more letters, or --limit N")]
    shown = sum(one.living for one in found.records if one.uuid in found.wanted)
    if not found.text and found.is_cut:
        rest = found.census.living - shown
        return [*lines, Line(f"and {rest:,} more: {search} WORD searches, --limit N lists more")]
    return lines
