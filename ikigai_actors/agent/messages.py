"""The messages to an agent's actor beside the machine's events, which are in `ikigai_actors.agent.turn.events`."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from ikigai_actors.actors.futures import Future
from ikigai_actors.agent.turn.events import Caller, Command
from ikigai_actors.agent.turn.state import LifecycleState
from ikigai_actors.errors import IkigaiError
from ikigai_actors.records.budgets.amounts import Paused
from ikigai_actors.records.log.log import Log
from ikigai_actors.tools.rules.rule import Rules
from supervisors.signals import Status


@dataclass(frozen=True, slots=True)
class LogRead:
    """The log was read."""

    log: Log


@dataclass(frozen=True, slots=True)
class LoadFailed:
    """The log could not be read: the agent's rows are wrong, or the store did not answer."""

    error: IkigaiError


@dataclass(frozen=True, slots=True)
class WholeRead:
    """All of the log was read, which is in memory in part; or it could not be read."""

    log: Log | IkigaiError


@dataclass(frozen=True, slots=True)
class LookedUp:
    """The data that a command needs from the store is there; or the command cannot be carried out."""

    command: Command
    error: IkigaiError | None = None

    @property
    def caller(self) -> Caller:
        """The caller that asked for it."""
        return self.command.caller


@dataclass(frozen=True, slots=True)
class Wake:
    """The host may act again: postponed effects can be performed."""


@dataclass(frozen=True, slots=True)
class Rest:
    """Drop the log, if the agent is idle: others need the memory."""


@dataclass(frozen=True, slots=True)
class Sleep:
    """End the actor, if nothing of the agent is open: it was not used for long, and is woken when it is."""


@dataclass(frozen=True, slots=True)
class ParkIdle:
    """Park the agent, if its turn only waits: it has done so for long, or many others do."""


@dataclass(frozen=True, slots=True)
class Awaken:
    """Go on, if the agent is parked: something has come for which its turn waits."""


@dataclass(frozen=True, slots=True)
class TakenIn:
    """The sender learns that all commands before this message were handled, or wait in the backlog."""

    done: Future[None]


@dataclass(frozen=True, slots=True)
class TakeBack:
    """The one who gave a command takes it back: it is dropped, unless the agent has begun it."""

    command: Future[Any]
    """The caller of the command, who gets `Withdrawn`."""
    caller: Future[bool]
    """Answered with whether it still waited."""


@dataclass(frozen=True, slots=True)
class NewMail:
    """Mail has come of which the agent gets a notice when it is idle."""


@dataclass(frozen=True, slots=True)
class InterruptPrompt:
    """An INT of another process came before the turn of a prompt."""

    mail: int
    """The number of the prompt."""


@dataclass(frozen=True, slots=True)
class RulesRead:
    """Other rules are in force for the agent, which may decide on calls that ask."""

    rules: Rules


@dataclass(frozen=True, slots=True)
class Dead:
    """The registry says that the agent is dead."""

    exit_message: str
    """The cause of death, for its callers."""


@dataclass(frozen=True, slots=True)
class Crashed:
    """The agent's own code failed while it answered."""

    request: int
    error: Exception


@dataclass(frozen=True, slots=True)
class Reset:
    """End this actor, and make a new one: a sibling's restart takes the agent along, or its supervisor gave up."""

    done: Future[None]
    """Answered when the actor has ended."""


@dataclass(frozen=True, slots=True)
class Finish:
    """Another host is soon to run the agent: begin nothing outside any more, but let end what runs there."""

    finished: Callable[[], object]
    """Called once nothing runs outside, on any thread. Never waits."""


@dataclass(frozen=True, slots=True)
class Departed:
    """Another host is to run the agent: end this actor, and leave to that host whatever waits."""

    done: Future[None]
    """Answered when the actor has ended."""


@dataclass(frozen=True, slots=True)
class Replayed:
    """The function of a program has come to where it waits in a turn that was cut off, or has not."""

    turn: int
    error: str | None
    """Why it does not fit what the log holds; empty where it does, None while it runs."""


class Restarted(NamedTuple):
    """The supervisor has decided: the agent goes on."""

    turn: int
    """The turn in progress, by the message that opened it; 0 when idle."""
    status: Status
    """The status in the registry now."""
    poison: str = ""
    """Why that turn is closed instead of resumed; empty when it is resumed."""
    attempt: int = 1
    """The number of this attempt: a log that cannot be read now is read later."""
    born: bool = False
    """Whether the agent was just born with this turn. Nobody decided then, and nothing was restarted."""


@dataclass(frozen=True, slots=True)
class Handover:
    """The legacy of an ended actor for its successor."""

    head: int
    turn: int
    lifecycle: LifecycleState
    callers: tuple[Any, ...] = ()
    """The callers that wait for the outcome of the turn in progress."""
    commands: tuple[Any, ...] = ()
    """The commands that still wait."""
    paused: Paused | None = None
    """For which budget its request waits."""
    receipts: tuple[tuple[int, Any], ...] = ()
    """The receipts that wait for words to enter, by their mails; for an actor that leaves to another host alone."""
