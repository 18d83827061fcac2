"""Team files: a file lists the agents of a team, each with its kind, budget and first prompt.

    kinds = ".claude/agents"        # beside the file; agent 0 gets those that the agents name, as their files say now

    [agents.lead]
    kind = "lead"
    prompt = "Plan the ship."
    budget = "usd=5"

    [agents.reviewer]
    under = "lead"
    kind = "reviewer"
    restart = "permanent"

`up` makes the agents that were never made, parents first, and each once: its fork has the key ``up NAME`` of its
parent. So a crash between two of them is mended by a second run, two runs at once make each once, and an agent that has
died is not made again. It changes and ends none: where an agent differs from the file, a line says so.
"""

import os
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ikigai_actors.agent.turn.kinds import KIND
from ikigai_actors.arguments import shown
from ikigai_actors.errors import BadInput
from ikigai_actors.records.agents import registry
from ikigai_actors.records.agents.identity import check_name
from ikigai_actors.records.agents.labels import check_labels
from ikigai_actors.records.agents.registry import AgentRecord
from ikigai_actors.records.budgets.budget import Budget, by_unit, parse_budget
from ikigai_actors.records.budgets.status import budget_of
from ikigai_actors.records.log.lineage import read_section
from ikigai_actors.records.log.log_cache import LogCache
from ikigai_actors.records.messages.kinds import kinds_in
from ikigai_actors.records.messages.messages import Kind, Message
from ikigai_actors.store.base import Store
from supervisors.children import RestartType

_KEYS = ("under", "kind", "model", "system", "prompt", "budget", "labels", "restart")
_BEGINNING = 4
"""The number of own messages with which an agent of a kind begins."""


class TeamAgent(NamedTuple):
    """An agent of a team, as the team file describes it."""

    name: str
    under: str | None
    """The agent of the file that forks it; None for agent 0."""
    kind: str | None
    model: str | None
    system: str | None
    prompt: str | None
    budget: Budget | None
    labels: Mapping[str, str]
    restart: str


class Team(NamedTuple):
    """The contents of a team file: its agents, and where the files of their kinds are."""

    agents: tuple[TeamAgent, ...]
    """Parents come before their children."""
    kinds: Path | None
    """The directory with the files of kinds; None if the team file names none."""


class TeamLine(NamedTuple):
    """A line about one agent of a team file: whether it was made, exists, has died, or differs from the file."""

    name: str
    state: str
    """``new``: it is to be made, or was made now; ``there``, ``differs`` or ``dead``."""
    differs: tuple[str, ...] = ()
    """The differences between the agent and the file."""
    uuid: str | None = None


def read_team(file: str | os.PathLike[str]) -> Team:
    """Read a team file. Raises `BadInput`, which names the fault."""
    try:
        place = Path(file)
        said = tomllib.loads(place.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadInput(f"The team in {os.fspath(file)} cannot be read: {error}.") from error
    agents = said.get("agents")
    if not isinstance(agents, dict) or not agents:
        raise BadInput(f"Expected agents in {os.fspath(file)}, each as [agents.NAME]; got none.")
    if unknown := sorted(said.keys() - {"agents", "kinds"}):
        raise BadInput(f"There is no {', '.join(unknown)} in a team file; expected kinds, and [agents.NAME].")
    kinds = said.get("kinds")
    if kinds is not None and not isinstance(kinds, str):
        raise BadInput(f"Expected kinds to be a directory beside the file; got {shown(kinds)}.")
    team = {name: _agent(name, fields) for name, fields in agents.items()}
    return Team(tuple(_in_order(team)), None if kinds is None else place.absolute().parent / kinds)


def _agent(name: str, fields: object) -> TeamAgent:
    where = f"[agents.{name}]"
    check_name(name)
    if not isinstance(fields, dict):
        raise BadInput(f"Expected {where} to be a table; got {shown(fields)}.")
    if unknown := sorted(fields.keys() - set(_KEYS)):
        raise BadInput(f"There is no {', '.join(unknown)} in {where}; expected some of {', '.join(_KEYS)}.")
    for key, value in fields.items():
        if key != "labels" and not (isinstance(value, str) and value.strip()):
            raise BadInput(f"Expected {key} in {where} to be text; got {shown(value)}.")
    restart = fields.get("restart", str(RestartType.TRANSIENT))
    if restart not in tuple(RestartType):
        raise BadInput(f"Expected restart in {where} to be {', '.join(RestartType)}; got {shown(restart)}.")
    budget = parse_budget(fields["budget"]) if "budget" in fields else None
    if "system" in fields and "kind" in fields:
        raise BadInput(f"Expected kind or system in {where}; got both.")
    return TeamAgent(
        name,
        under=fields.get("under"),
        kind=fields.get("kind"),
        model=fields.get("model"),
        system=fields.get("system"),
        prompt=fields.get("prompt"),
        budget=budget,
        labels=check_labels(fields.get("labels")),
        restart=restart,
    )


def _in_order(team: Mapping[str, TeamAgent]) -> Iterator[TeamAgent]:
    """Yield the agents, parents first. Raises `BadInput` for an unknown parent, and for a circle of parents."""
    left = dict(team)
    while left:
        free = [agent for agent in left.values() if agent.under not in left]
        for agent in free:
            if agent.under is not None and agent.under not in team:
                raise BadInput(f"[agents.{agent.name}] is under {agent.under}, which the file does not have.")
            yield left.pop(agent.name)
        if not free:
            raise BadInput(f"{', '.join(left)} are under one another: one of them must be under agent 0, or another.")


def raise_team(
    store: Store,
    logs: LogCache,
    handle: Callable[[str], Any],
    root: str,
    file: str | os.PathLike[str],
    plan: bool,
) -> list[TeamLine]:
    """Make the agents of a team file that were never made; return a line about each agent.

    Args:
        store: the store of the agents.
        logs: reads their logs.
        handle: returns the handle of an agent, by uuid.
        root: the uuid of agent 0.
        file: the file.
        plan: whether to make nothing, and only to report in the lines what a call would make.
    """
    team = read_team(file)
    log = logs.load(root)
    pinned = {kind["name"] for kind in kinds_in(log.view(log.head).settings)}
    wanted = sorted({agent.kind for agent in team.agents if agent.kind} - pinned)
    if team.kinds is not None and wanted and not plan:
        handle(root).use_kinds(team.kinds, only=wanted)
    elif team.kinds is None and wanted:
        raise BadInput(
            f'Agent 0 has no kind {", ".join(wanted)}: name their directory in the file, as kinds = "agents".'
        )
    uuids: dict[str | None, str | None] = {None: root}
    lines = []
    for agent in team.agents:
        parent = uuids[agent.under]
        line = _told_of(store, logs, agent, parent)
        if line.state == "new" and not plan:
            assert parent is not None
            line = TeamLine(agent.name, "new", (), _make(handle(parent), agent))
        uuids[agent.name] = line.uuid
        lines.append(line)
    return lines


def _make(parent: Any, agent: TeamAgent) -> str:
    made: str = parent.fork(
        agent.prompt,
        name=agent.name,
        kind=agent.kind,
        model=agent.model,
        system=agent.system,
        restart=agent.restart,
        budget=agent.budget,
        labels=agent.labels or None,
        key=f"up {agent.name}",
    ).uuid
    return made


def _told_of(store: Store, logs: LogCache, agent: TeamAgent, parent: str | None) -> TeamLine:
    """Return the line about an agent as it is now; ``parent`` is the uuid of its parent, None if not made yet."""
    if parent is None:
        return TeamLine(agent.name, "new")
    called = [each for each in store.read(lambda tx: registry.children(tx, parent)) if each.name == agent.name]
    living = [each for each in called if each.living]
    if not called:
        return TeamLine(agent.name, "new")
    if not living:
        return TeamLine(agent.name, "dead", (), called[-1].uuid)
    differs = tuple(_differences(store, logs, agent, living[0]))
    return TeamLine(agent.name, "differs" if differs else "there", differs, living[0].uuid)


def _differences(store: Store, logs: LogCache, agent: TeamAgent, record: AgentRecord) -> Iterator[str]:
    log = logs.load(record.uuid)
    fork = record.fork_message_id
    begin = store.read(lambda tx: read_section(tx, record.uuid, fork, fork + _BEGINNING))
    settings = log.view(log.head).settings
    status = store.read(lambda tx: budget_of(tx, record.uuid))
    limits = dict(status.granted) if status is not None and status.owner == record.uuid else {}
    traits: Mapping[str, tuple[object, object]] = {
        "kind": (agent.kind, _kind_of(begin)),
        "prompt": (agent.prompt, next((each.content for each in begin if each.kind == Kind.USER), None)),
        "model": (agent.model, settings.get("model")),
        "system": (agent.system, settings.get("system")),
        "restart": (agent.restart, record.restart),
        "labels": (dict(agent.labels) or None, {name: record.labels.get(name) for name in agent.labels}),
        "budget": (by_unit(agent.budget.limits()) if agent.budget is not None else None, limits),
    }
    for what, (wanted, has) in traits.items():
        if wanted is not None and wanted != has:
            yield f"{what} is {has!s:.60}, and the file says {wanted!s:.60}"


def _kind_of(begin: list[Message]) -> object:
    return next((each.data[KIND]["name"] for each in begin if KIND in each.data), None)
