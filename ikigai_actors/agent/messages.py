"""The messages to an agent's actor, besides the machine's events, which are in `ikigai_actors.agent.turn.events`."""

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
    """Brings the agent's log, which was read from the store."""

    log: Log


@dataclass(frozen=True, slots=True)
class LoadFailed:
    """The log could not be read: the agent's rows are wrong, or the store did not answer."""

    error: IkigaiError


@dataclass(frozen=True, slots=True)
class WholeRead:
    """Brings the complete log, of which only a part was in memory; or the error because of which it was not read."""

    log: Log | IkigaiError


@dataclass(frozen=True, slots=True)
class LookedUp:
    """Brings back a command, with the data for it that were read from the store, or with an error."""

    command: Command
    error: IkigaiError | None = None

    @property
    def caller(self) -> Caller:
        """The caller of the command for which the data was read."""
        return self.command.caller


@dataclass(frozen=True, slots=True)
class Wake:
    """The host may act again, so postponed effects can be performed."""


@dataclass(frozen=True, slots=True)
class Rest:
    """Asks an idle agent to drop its log, because other agents need the memory."""


@dataclass(frozen=True, slots=True)
class Sleep:
    """Asks an agent with no open work to end its actor, because it was not used for long."""


@dataclass(frozen=True, slots=True)
class ParkIdle:
    """Asks an agent to be parked if its turn only waits, because it has waited for long or many others wait."""


@dataclass(frozen=True, slots=True)
class Awaken:
    """Wakes a parked agent, because an event has come for which its turn waits."""


@dataclass(frozen=True, slots=True)
class TakenIn:
    """Marks a place in the inbox. The future ``done`` is settled when the agent has taken all messages before it.

    Earlier commands were then handled, or wait in the backlog.
    """

    done: Future[None]


@dataclass(frozen=True, slots=True)
class TakeBack:
    """Asks the agent to drop a command that it has not begun."""

    command: Future[Any]
    """The caller of the command, whose future raises `Withdrawn`."""
    caller: Future[bool]
    """A future of whether the command was still waiting."""


@dataclass(frozen=True, slots=True)
class NewMail:
    """Reports new mail, of which an idle agent gets a notice."""


@dataclass(frozen=True, slots=True)
class InterruptPrompt:
    """Says that another process sent INT while a prompt still waited: the turn of the prompt ends as it begins."""

    mail: int
    """The number of the mail that is the prompt."""


@dataclass(frozen=True, slots=True)
class RulesRead:
    """Brings other rules of the agent, which may decide calls that wait for approval."""

    rules: Rules


@dataclass(frozen=True, slots=True)
class Dead:
    """Says that the agent is dead in the registry, so its actor must end."""

    exit_message: str
    """The cause of death, for the agent's callers."""


@dataclass(frozen=True, slots=True)
class Crashed:
    """Reports that the agent's own code, a function as its model, has failed."""

    request: int
    error: Exception


@dataclass(frozen=True, slots=True)
class Reset:
    """Ends this actor, in whose place a new one is made.

    Either the restart of a sibling includes the agent, or its supervisor gave up.
    """

    done: Future[None]
    """A future that is settled when the actor has ended."""


@dataclass(frozen=True, slots=True)
class Finish:
    """Has the agent begin no more effects outside, because another host is about to run it. Running effects may end."""

    finished: Callable[[], object]
    """Called on any thread once no effect runs outside. Must not wait."""


@dataclass(frozen=True, slots=True)
class Departed:
    """Ends this actor, because another host is about to run the agent. That host gets the waiting messages."""

    done: Future[None]
    """A future that is settled when the actor has ended."""


@dataclass(frozen=True, slots=True)
class Replayed:
    """Reports that a program's function, in a turn that was cut off, has reached the call at which it waits."""

    turn: int
    error: str | None
    """Why the function does not fit the log; empty if it fits, None while it still runs."""


class Restarted(NamedTuple):
    """Lets an agent that was held go on, because its supervisor has decided on its restart."""

    turn: int
    """The id of the message that opened the turn in progress; 0 when no turn is open."""
    status: Status
    """The agent's status in the registry."""
    poison: str = ""
    """The reason why the turn is closed instead of resumed; empty when it is resumed."""
    attempt: int = 1
    """The number of this attempt. If the log cannot be read, there is another attempt later."""
    born: bool = False
    """Whether the agent was just born with this turn, so no supervisor decided and it is no restart."""


@dataclass(frozen=True, slots=True)
class Handover:
    """The waiting callers and commands that an ended actor passes on to its successor."""

    head: int
    turn: int
    lifecycle: LifecycleState
    callers: tuple[Any, ...] = ()
    """The callers that wait for the outcome of the turn in progress."""
    commands: tuple[Any, ...] = ()
    """The commands that still wait."""
    paused: Paused | None = None
    """The budget for which the agent's request waits; None when it waits for none."""
    receipts: tuple[tuple[int, Any], ...] = ()
    """The receipts of steering messages that have not entered a history yet, with the numbers of their mails. Set only
    when the agent moves to another host.
    """
