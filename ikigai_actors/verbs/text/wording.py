"""Texts of the shell about agents and errors."""

from ikigai_actors.agent.subscriptions import (
    BatchTrouble,
    HookFailed,
    HostChanged,
    HostEnded,
    HostsDiffer,
    SystemTrouble,
    ToolTrouble,
    WindowNearlyFull,
)
from ikigai_actors.agent.turn.calls import PendingCall
from ikigai_actors.agent.turn.machine import failed_turn
from ikigai_actors.errors import ProviderError, TurnInterrupted
from ikigai_actors.providers.base import Reply
from ikigai_actors.reach.views import scrollback_of
from ikigai_actors.system.handles.ref import AgentRef
from ikigai_actors.verbs.text.harmless import one_line
from ikigai_actors.verbs.text.hosts import host_changed, host_ended, hosts_differ
from ikigai_actors.verbs.text.naming import named
from supervisors.signals import Status


def inherited(agent: AgentRef) -> str:
    """Return, in words, how many inherited messages a child began with, after clears and rewinds."""
    count = scrollback_of(agent.system, agent.uuid).remembered()
    return "1 message" if count == 1 else f"{count} messages"


def ended(agent: AgentRef, outcome: object) -> str:
    """Return the line about a turn that ended in the background, by its outcome: a reply or an error."""
    match outcome:
        case Reply():
            return f"{named(agent)} has answered: /switch {agent.record.short} and /history show it"
        case TurnInterrupted():
            return f"{named(agent)}: its turn was interrupted"
        case ProviderError() as error:
            return f"{named(agent)}: its turn ended with an error: {error}"
        case _:
            return f"{named(agent)}: {outcome}"


def resume_waits(agent: AgentRef) -> bool:
    """Return whether an agent has a turn to resume, but is stopped."""
    record = agent.record
    if record.status != Status.STOPPED:
        return False
    return bool(record.turn or agent.system._log_cache.find_in(agent.uuid, lambda log: failed_turn(log.newest_first())))


def nothing_to_resume(agent: AgentRef) -> str:
    """Return the answer that an agent has no turn to resume."""
    return f"Nothing to resume: the latest turn of {named(agent)} was neither cut off nor ended by an error."


def waits_for_cont(agent: AgentRef, what: str, current: AgentRef | None = None) -> str:
    """Return the line about a message that a stopped agent takes up when it is continued."""
    short = agent.record.short
    return f"{short} is stopped: {what} waits for CONT (/signal CONT{'' if agent == current else f' {short}'})"


def explained(trouble: SystemTrouble) -> str:
    """Return the text for a person about an event of trouble: of the database, a tool server, a receiver and so on."""
    if isinstance(trouble, ToolTrouble):
        return f"{trouble.toolset}: {one_line(trouble.text)}"
    if isinstance(trouble, BatchTrouble):
        return f"{one_line(trouble.service)}: {one_line(trouble.text)}"
    if isinstance(trouble, WindowNearlyFull):
        takes, name = f"of the {trouble.window:,} tokens that its model takes", one_line(trouble.label)
        if 3 * trouble.fixed > trouble.window:
            return f"{name}: its system prompt and tools alone have about {trouble.fixed:,} {takes}; give it fewer"
        return f"{name}: its conversation has about {trouble.tokens:,} {takes}; /compact summarises it"
    if isinstance(trouble, HookFailed):
        then = "and what it was asked about was denied" if trouble.denied else "and all goes on without it"
        return (
            f"{one_line(trouble.label)}: hook {trouble.hook} ({trouble.event}) failed, {then}: {one_line(trouble.text)}"
        )
    if isinstance(trouble, HostChanged):
        return host_changed(trouble)
    if isinstance(trouble, HostEnded):
        return host_ended(trouble)
    if isinstance(trouble, HostsDiffer):
        return hosts_differ(trouble)
    if trouble.reason is None:
        return "The database answers again."
    return f"Trouble with the database; nothing is lost, agents wait. {one_line(trouble.reason)}"


AND_GOES_ON = ", and goes on with its turn, which was cut off"
"""The end of the line about a decision, if the agent's turn was cut off."""


def decided(
    number: int, call: PendingCall, agent: AgentRef, in_time: bool, approved: bool, cut_off: bool = False
) -> str:
    """Return the line about a decision on a call of another agent or of a cut-off turn, or about a late decision."""
    if not in_time:
        return f"{number}: that call no longer waits"
    does = "runs" if approved else "does not run"
    return f"{number}: {named(agent)} {does} {call.tool}{AND_GOES_ON if cut_off else ''}"
