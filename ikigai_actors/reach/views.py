"""Readings of a system for faces, a function each. Each reads one moment, unless it says otherwise.

A face takes no store of a system and runs no transaction: then a change of a table is a change of this room.
"""

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ikigai_actors.reach.readable import Readable
from ikigai_actors.reach.scrollback import Scrollback
from ikigai_actors.records.agents import lists, registry
from ikigai_actors.records.agents.lists import Census, Siblings
from ikigai_actors.records.agents.registry import AgentRecord
from ikigai_actors.records.figures import Gauges, gauges, questions_asked, silent_turns
from ikigai_actors.records.hosts.builds import host_differences
from ikigai_actors.records.hosts.liveness import Sign
from ikigai_actors.records.log import moments
from ikigai_actors.records.log.heads import heads_of, latest_times
from ikigai_actors.records.log.moments import Glance, LogMark
from ikigai_actors.records.messages.blobs import read_blobs
from ikigai_actors.store.base import Transaction
from ikigai_actors.store.hosts.rows import HostRecord, recent_hosts
from ikigai_actors.tools.definitions import ToolDifference

if TYPE_CHECKING:
    from ikigai_actors.system.attached import AttachedSystem
    from ikigai_actors.system.handles.ref import System
    from ikigai_actors.system.system import ActorSystem
    from ikigai_actors.tools.hooks.function import Hook


def now_of(system: "System") -> int:
    """The time by the clock of a system, in milliseconds since 1970."""
    return system._clock.now_ms()


def location_of(system: "System") -> str:
    """The database of a system, as a person may see it."""
    return system._store.location


def check_open(system: "System") -> None:
    """Raise `SystemClosed` for a system that is closed."""
    system._check_open()


def say_why_it_stopped(system: "System") -> AbstractContextManager[None]:
    """Raise for what fails in a block once the system has stopped why it has, whatever noticed that first."""
    return system._says_why_it_stopped()


def stand_in_notice(system: "System") -> str:
    """The notice where only the offline provider answers though nobody asked for it; else empty."""
    return system._stand_in_notice


def default_model_of(system: "System") -> str:
    """The model of agents without a ``model`` setting; empty when only another process knows."""
    return system._default_model


def usual_model_of(system: "System") -> str:
    """The same, or else the model for which this machine has a key."""
    from ikigai_actors.providers.selection import usual_provider

    return system._default_model or usual_provider()


def window_of(model: str) -> int:
    """How many tokens a model takes, as ``provider:model``; 0 when it is not known."""
    from ikigai_actors.providers.windows import anthropic_window

    provider, _, name = model.partition(":")
    return anthropic_window(name) if provider == "anthropic" else 0


def workspace_of(system: "System") -> Path | None:
    """The directory of the workspace; None without one, or where another process has it."""
    return system._workspace


def file_text(system: "System", agent: str, path: str) -> str | None:
    """The text of a file as an agent sees it; None where nothing here knows it."""
    return system._text_of(agent, path)


def label_at_hand(system: "System", agent: str) -> str | None:
    """The label of an agent that this process runs; None for another one. Reads nothing."""
    actor = system._here(agent)
    return None if actor is None else actor.called


def is_made(system: "System") -> bool:
    """Whether the database has its agent 0: a host that is making it has not come so far."""
    return system._store.read(registry.root) is not None


def has_owner(system: "AttachedSystem") -> bool:
    """Whether a process is known that runs the agents, even if it was not heard of for a while."""
    return bool(system._owners)


def is_hosted(system: "AttachedSystem") -> bool:
    """Whether a process runs the agents now."""
    return any(not host.is_gone for host in system._owners)


def owners_of(system: "AttachedSystem") -> Sequence[HostRecord]:
    """The processes that are known to run the agents, the latest first; some may be gone."""
    return system._owners


def is_idle(system: "ActorSystem", within: float) -> bool:
    """Whether nobody needs this host for now: nothing is at work, and no timer is due within these seconds."""
    return system._is_idle(within)


def last_activity(system: "System", records: Collection[AgentRecord]) -> dict[str, int]:
    """When each of these agents wrote its latest message, or else was born; by uuid."""
    times = system._store.read(lambda tx: latest_times(tx, [record.uuid for record in records]))
    return {record.uuid: times.get(record.uuid, record.created_at) for record in records}


def position_of(system: "System", agent: str) -> int:
    """The position of the latest message of an agent, by uuid."""
    return system._store.read(lambda tx: heads_of(tx, [agent]))[0].position


def glances_of(system: "System") -> list[Glance]:
    """Every agent, as a row of the page needs it."""
    return system._store.read(moments.glances)


def latest_marks_of(system: "System", agents: Sequence[str]) -> Mapping[str, LogMark]:
    """The latest message of each of these agents; reads nothing for none."""
    return system._store.read(lambda tx: moments.latest_marks(tx, agents)) if agents else {}


def scrollback_of(source: Readable, agent: str) -> Scrollback:
    """The history of an agent, by uuid, which is read a page at a time. Raises `AgentNotFound`."""
    return Scrollback(source._store, agent)


def label_of(source: Readable, agent: str) -> str:
    """The label of an agent, by uuid, which finds it; see `registry.shown_name_of`."""
    return source._store.read(lambda tx: registry.shown_name_of(tx, agent))


def named_agents(system: "System", text: str = "") -> dict[str, AgentRecord]:
    """The living that a text finds, or were used last where there is none, by what people are shown for them."""
    return system._store.read(lambda tx: lists.labelled(tx, text))


def census_of(system: "System") -> Census:
    """How many agents there are, by status."""
    return system._store.read(lists.census)


def left_turns_of(system: "System", most: int) -> list[AgentRecord]:
    """Agents with a turn that was cut off and with which nobody goes on, at most this many."""
    return system._store.read(lambda tx: lists.left_turns(tx, most))


def undecided_skills_of(system: "System", agent: str) -> list[str]:
    """The names of the skills on this disk that an agent, by uuid, has neither taken nor refused; see `unanswered`."""
    from ikigai_actors.system.skills import unanswered  # which loads what commands that only look do without

    return unanswered(system.handle(agent).context().settings, system._workspace or Path.cwd())


def hooks_of(system: "System") -> "tuple[Hook, ...]":
    """The hooks of this process, in the order in which they are asked."""
    return system._hooks


def undecided_hooks_of(system: "System", agent: str) -> list[str]:
    """The names of the commands of the workspace that an agent, by uuid, has neither taken as hooks nor refused."""
    from ikigai_actors.system.hook_files import undecided_hooks

    return undecided_hooks(system.handle(agent).context().settings, system._workspace or Path.cwd())


def undecided_kinds_of(system: "System", agent: str) -> list[str]:
    """The names of the kinds of agents on this disk that an agent, by uuid, has neither taken nor refused."""
    from ikigai_actors.system.kinds import undecided_kinds  # which loads what commands that only look do without

    return undecided_kinds(system.handle(agent).context().settings, system._workspace or Path.cwd())


def newest_child_of(system: "System", agent: str) -> AgentRecord | None:
    """The newest living child of an agent, by uuid; None without one."""
    return system._store.read(lambda tx: lists.newest_child(tx, agent))


def siblings_of(system: "System", record: AgentRecord) -> Siblings:
    """The living siblings on both sides of an agent."""
    return system._store.read(lambda tx: lists.siblings(tx, record))


def blob_bytes_of(system: "System", sha256: str) -> bytes | None:
    """The bytes of a blob; None for one that is not there."""
    return system._store.read(lambda tx: read_blobs(tx, [sha256])).get(sha256)


def signs_of(system: "System") -> Mapping[str, Sign]:
    """The latest heartbeats of those that are in a turn, by uuid; of this process's own agents those of now."""
    return system._signs()


class SystemFigures(NamedTuple):
    """The figures of a database at one moment."""

    gauges: Gauges
    hosts: list[HostRecord]
    """The hosts of the last hour."""
    asked: Mapping[tuple[str, str], int]
    """When each call of an open turn asked, by agent and call."""
    silent: dict[str, float]
    """For how many seconds each agent in a turn has given no heartbeat."""
    differences: tuple[ToolDifference, ...] = ()
    """The tools that hosts which live do not have alike."""


def figures_of(system: "System", silent: float) -> SystemFigures:
    """The figures of a system; of turns without a heartbeat those that have been so for ``silent`` seconds."""

    def read(tx: Transaction) -> SystemFigures:
        hosts, differences = recent_hosts(tx), host_differences(tx)
        return SystemFigures(gauges(tx), hosts, questions_asked(tx), silent_turns(tx, silent), differences)

    return system._store.read(read)
