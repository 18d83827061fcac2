"""Readings of a system for shells, pages and doors.

Each function reads one moment, unless its docstring says otherwise.

User interfaces call these functions instead of the store, so a change of a table affects only this package.
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
    """Return the time by the clock of a system, in milliseconds since 1970."""
    return system._clock.now_ms()


def location_of(system: "System") -> str:
    """Return the location of a system's database as people see it, without a password."""
    return system._store.location


def check_open(system: "System") -> None:
    """Raise `SystemClosed` for a system that is closed."""
    system._check_open()


def say_why_it_stopped(system: "System") -> AbstractContextManager[None]:
    """If a block fails after the system has stopped, raise the reason why the system has stopped instead."""
    return system._says_why_it_stopped()


def stand_in_notice(system: "System") -> str:
    """Return the notice that only the offline provider answers; empty if a person has chosen that provider."""
    return system._stand_in_notice


def default_model_of(system: "System") -> str:
    """Return the model of agents without a ``model`` setting; empty when only another process knows."""
    return system._default_model


def usual_model_of(system: "System") -> str:
    """Return the default model; if there is none, the model for which this machine has a key."""
    from ikigai_actors.providers.selection import usual_provider

    return system._default_model or usual_provider()


def window_of(model: str) -> int:
    """Return the window of a model (``provider:model``) in tokens; 0 when unknown."""
    from ikigai_actors.providers.windows import anthropic_window

    provider, _, name = model.partition(":")
    return anthropic_window(name) if provider == "anthropic" else 0


def workspace_of(system: "System") -> Path | None:
    """Return the directory of the workspace; None without one, or if another process has it."""
    return system._workspace


def file_text(system: "System", agent: str, path: str) -> str | None:
    """Return the text of a file as an agent sees it; None if no toolset here has the file."""
    return system._text_of(agent, path)


def label_at_hand(system: "System", agent: str) -> str | None:
    """Return the label of an agent that this process runs; None for any other agent. Does not read the database."""
    actor = system._here(agent)
    return None if actor is None else actor.called


def is_made(system: "System") -> bool:
    """Return whether agent 0 exists. A host that is making the database may not have made it yet."""
    return system._store.read(registry.root) is not None


def has_owner(system: "AttachedSystem") -> bool:
    """Return whether a process is known to run the agents, even if it has been silent for a while."""
    return bool(system._owners)


def is_hosted(system: "AttachedSystem") -> bool:
    """Return whether a process runs the agents now."""
    return any(not host.is_gone for host in system._owners)


def owners_of(system: "AttachedSystem") -> Sequence[HostRecord]:
    """Return the processes that are known to run the agents, the latest first; some may be gone."""
    return system._owners


def is_idle(system: "ActorSystem", within: float) -> bool:
    """Return whether this host is not needed now: no work, and no timer within these seconds."""
    return system._is_idle(within)


def last_activity(system: "System", records: Collection[AgentRecord]) -> dict[str, int]:
    """Return the time of the latest message of each of these agents, by uuid; without messages, the time of birth."""
    times = system._store.read(lambda tx: latest_times(tx, [record.uuid for record in records]))
    return {record.uuid: times.get(record.uuid, record.created_at) for record in records}


def position_of(system: "System", agent: str) -> int:
    """Return the position of the latest message of an agent, by uuid."""
    return system._store.read(lambda tx: heads_of(tx, [agent]))[0].position


def glances_of(system: "System") -> list[Glance]:
    """Return one row for each agent, as the observer page needs it."""
    return system._store.read(moments.glances)


def latest_marks_of(system: "System", agents: Sequence[str]) -> Mapping[str, LogMark]:
    """Return the latest message of each of these agents as a mark for the observer page, by uuid."""
    return system._store.read(lambda tx: moments.latest_marks(tx, agents)) if agents else {}


def scrollback_of(source: Readable, agent: str) -> Scrollback:
    """Return the history of an agent, by uuid, to be read in parts. Raises `AgentNotFound`."""
    return Scrollback(source._store, agent)


def label_of(source: Readable, agent: str) -> str:
    """Return the label of an agent, by uuid; see `registry.shown_name_of`."""
    return source._store.read(lambda tx: registry.shown_name_of(tx, agent))


def named_agents(system: "System", text: str = "") -> dict[str, AgentRecord]:
    """Return the living agents that a text finds, by shown name; without a text, those used last."""
    return system._store.read(lambda tx: lists.labelled(tx, text))


def census_of(system: "System") -> Census:
    """Return the numbers of agents by status."""
    return system._store.read(lists.census)


def left_turns_of(system: "System", most: int) -> list[AgentRecord]:
    """Return agents with cut-off turns that are not resumed, at most this many."""
    return system._store.read(lambda tx: lists.left_turns(tx, most))


def undecided_skills_of(system: "System", agent: str) -> list[str]:
    """Return the names of the skills that are found here, on which an agent, by uuid, has not decided."""
    from ikigai_actors.system.skills import unanswered  # which loads what commands that only look do without

    return unanswered(system.handle(agent).context().settings, system.skills, system._workspace or Path.cwd())


def hooks_of(system: "System") -> "tuple[Hook, ...]":
    """Return the hooks of this process, in the order in which they are asked."""
    return system._hooks


def undecided_hooks_of(system: "System", agent: str) -> list[str]:
    """Return the names of the workspace's hook commands that an agent, by uuid, has neither accepted nor refused."""
    from ikigai_actors.system.hook_files import undecided_hooks

    return undecided_hooks(system.handle(agent).context().settings, system._workspace or Path.cwd())


def undecided_kinds_of(system: "System", agent: str) -> list[str]:
    """Return the names of the kinds on this disk that an agent, by uuid, has neither accepted nor refused."""
    from ikigai_actors.system.kinds import undecided_kinds  # which loads what commands that only look do without

    return undecided_kinds(system.handle(agent).context().settings, system._workspace or Path.cwd())


def newest_child_of(system: "System", agent: str) -> AgentRecord | None:
    """Return the newest living child of an agent, by uuid; None without one."""
    return system._store.read(lambda tx: lists.newest_child(tx, agent))


def siblings_of(system: "System", record: AgentRecord) -> Siblings:
    """Return the nearest living siblings of an agent: one before it and one after it."""
    return system._store.read(lambda tx: lists.siblings(tx, record))


def blob_bytes_of(system: "System", sha256: str) -> bytes | None:
    """Return the bytes of a blob; None if there is none."""
    return system._store.read(lambda tx: read_blobs(tx, [sha256])).get(sha256)


def signs_of(system: "System") -> Mapping[str, Sign]:
    """Return the latest heartbeats of agents in a turn, by uuid; for agents of this process, the present ones."""
    return system._signs()


class SystemFigures(NamedTuple):
    """The figures of a database at one moment, for metrics."""

    gauges: Gauges
    hosts: list[HostRecord]
    """The hosts that lived within the last hour."""
    asked: Mapping[tuple[str, str], int]
    """The time when each call of an open turn asked for approval, by agent and call."""
    silent: dict[str, float]
    """The seconds since the last heartbeat of each agent in a turn that is silent."""
    differences: tuple[ToolDifference, ...] = ()
    """The tools in which living hosts differ."""


def figures_of(system: "System", silent: float) -> SystemFigures:
    """Return the figures of a system, with the turns that had no heartbeat for ``silent`` seconds."""

    def read(tx: Transaction) -> SystemFigures:
        hosts, differences = recent_hosts(tx), host_differences(tx)
        return SystemFigures(gauges(tx), hosts, questions_asked(tx), silent_turns(tx, silent), differences)

    return system._store.read(read)
