"""Readings and births that experiments ask of a system: who can answer, which tools there are, and births of trials."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ikigai_actors.actors.futures import Future
from ikigai_actors.agent.turn import events as on
from ikigai_actors.errors import HostElsewhere
from ikigai_actors.records.agents import registry
from ikigai_actors.records.agents.identity import new_agent_uuid
from ikigai_actors.records.agents.lists import labels_of
from ikigai_actors.records.agents.registry import AgentRecord
from ikigai_actors.records.agents.trees import tree_at, unknown_files
from ikigai_actors.records.log.heads import latest_at_rest
from ikigai_actors.records.messages.messages import Message
from ikigai_actors.store.base import Transaction
from ikigai_actors.store.location import MEMORY
from ikigai_actors.system.births import asked_at, position
from ikigai_actors.system.handles.ref import AgentRef, System

if TYPE_CHECKING:
    from ikigai_actors.providers.prices import PricedModel
    from ikigai_actors.tools.policy import ToolTraits


def check_model(system: System, model: str) -> None:
    """Raise `BadInput` when a ``model`` setting names a provider that is not registered in this process."""
    system._check_model(model)


def check_answered(system: System, settings: Mapping[str, Any], writers: Collection[str]) -> None:
    """Raise `ProviderMissing` if no model can be asked, and `BadInput`.

    Args:
        settings: the settings of the agent.
        writers: the models that wrote the history, ``provider:model``.
    """
    system._check_answered(settings, writers)


def models_asked(system: System, settings: Mapping[str, Any], summary: bool) -> "tuple[PricedModel, ...]":
    """Return the models of an agent with these settings, in the order of use; none if only other processes know them.

    Raises `BadInput` when one of them cannot be asked; ``summary``: return the models for a summary.
    """
    return system._asked_models(settings, summary)


def tools_of(system: System) -> "Mapping[str, ToolTraits] | None":
    """Return the traits of a system's tools, by name; None when only another process knows the tools."""
    try:
        return system._toolbox.traits({})
    except HostElsewhere:
        return None


def forking_folders(system: System) -> list[str] | None:
    """Return the folders whose files fork with their agents; None when only another process knows the folders."""
    try:
        return [copied.base for copied in system._toolbox.copied]
    except HostElsewhere:
        return None


def check_files_at(system: System, agent: str, folders: Collection[str], positions: Collection[int]) -> None:
    """Raise `BadInput` if the files of an agent in these folders at these positions are not known."""

    def check(tx: Transaction) -> None:
        for folder in folders:
            for at in positions:
                if tree_at(tx, agent, folder, at)[1] is None:
                    raise unknown_files(agent, at, folder)

    system._store.read(check)


def settings_of_position(system: System, agent: str, at: int) -> Mapping[str, Any]:
    """Return the settings in force at a position of a history. Raises `HistoryPruned`."""
    return system._log_cache.settings_at(agent, at)


def latest_of_resting(system: System, agents: Collection[str]) -> dict[str, Message]:
    """Return the latest message of each of these agents that is alive and has no open turn, by uuid."""
    return system._store.read(lambda tx: latest_at_rest(tx, agents))


class NewTrial(NamedTuple):
    """A trial that an experiment wants to make."""

    agent: str
    """The uuid of the trial."""
    of: str
    """The uuid of the agent whose history the trial inherits."""
    at: int
    """The last position that the trial inherits."""
    prompt: str | None
    data: Mapping[str, Any]
    """The data of the trial's prompt."""
    settings: Mapping[str, Any]
    """The settings that differ from those in force at the inherited position."""
    facts: Mapping[str, Any]
    """The facts about the trial for the log of the experiment."""
    go: bool = False
    """Whether the trial goes on at once from the end of its history, without a prompt."""
    begin: tuple[tuple[str, str, Mapping[str, Any]], ...] = ()
    """Copies of messages that the trial has after the inherited history."""


class ExperimentMoment(NamedTuple):
    """An experiment and its trials, read at one moment."""

    agents: list[AgentRecord]
    """The experiment, its trials, and further requested agents."""
    labels: Mapping[str, str]
    """The shown name of each agent, by uuid."""
    branch: list[AgentRecord]
    """The experiment, and all agents that descend from it."""
    latest: Mapping[str, Message]
    """The latest message of the experiment and of each trial without an open turn, by uuid."""


def experiment_moment(system: System, top: str, trials: Collection[str], others: Iterable[str]) -> ExperimentMoment:
    """Read an experiment, named by uuid, with its trials and other agents, at one moment."""

    def read(tx: Transaction) -> ExperimentMoment:
        agents = registry.some(tx, {top, *trials, *others})
        branch = registry.descendants(tx, top)
        return ExperimentMoment(agents, labels_of(tx, agents), branch, latest_at_rest(tx, [top, *trials]))

    return system._store.read(read)


def outlives_process(system: System) -> bool:
    """Return whether the database remains when the process ends."""
    return system._store.location != MEMORY


def unused_uuid(system: System) -> str:
    """Return a uuid that no agent has."""
    return new_agent_uuid(system._random_bytes)


def bear_trials(agent: AgentRef, note: Mapping[str, Any], births: Sequence[NewTrial], head: int) -> int:
    """Write a note and the births of trials for an experiment, as one unit; return the position of the note.

    Raises `StoreConflict` if the log of the experiment no longer ends at ``head``.
    """
    written: Future[int] = Future(agent.uuid)
    agent.system._tell(agent.uuid, on.ForkTrials(note, tuple(on.TrialBirth(*birth) for birth in births), written, head))
    return written.get()


def fork_position(system: System, agent: str, at: int | None = None) -> int:
    """Return the position at which a history may be forked: ``at``, or the last such position of its conversation.

    Raises `NotABoundary`, `HistoryPruned`, and `AgentNotFound`.
    """
    return position(system, agent, at)


def asked_there(system: System, agent: str, at: int) -> Mapping[str, Any]:
    """Return the data of the prompt that waits for an answer at a position of a history.

    Raises `BadInput` when nothing waits for an answer there.
    """
    return asked_at(system, agent, at)


def follow_up(agent: AgentRef, prompt: str, data: Mapping[str, Any]) -> None:
    """Prompt a trial once more, without waiting for the reply."""
    agent.system._tell(agent.uuid, on.Prompt(prompt, Future(agent.uuid), data=data))


def end_agent(agent: AgentRef, reason: str, *, cascade: bool = False) -> None:
    """End an agent of an experiment at once; with ``cascade``, also all below it. Raises `AgentDead`."""
    agent.kill(reason=reason, cascade=cascade)
