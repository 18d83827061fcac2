"""What a slash command needs of the shell that runs it.

Commands are written once. In line mode they work on a `Shell` (line/session.py), in the application on an
`AppPlace` (app/place.py): this module holds whatever they may use of either.
"""

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from ikigai_actors.actors.futures import Future
from ikigai_actors.records.agents.registry import AgentRecord
from ikigai_actors.shell.text.naming import named
from ikigai_actors.system.conversation import Questions
from ikigai_actors.system.ref import AgentRef, System

T = TypeVar("T")

LEAVING_TAKES = 2.0
"""The most seconds that a shell takes at its end to do what was typed before."""


class Printer(Protocol):
    """Prints the results of a command."""

    def line(self, text: str = "", *, bold: bool = False, dim: bool = False) -> None:
        """Print a line of its own, or several."""

    def block(self, text: str) -> None:
        """Print a text that a model or another person may have written."""

    def error(self, text: str) -> None:
        """Print why something failed."""

    @property
    def columns(self) -> int:
        """How wide a line may be."""


class Place(Protocol):
    """The place where a person, or a pipe, gives commands."""

    system: System
    """The running system."""
    current: AgentRef
    """The agent that commands are about."""
    screen: Printer
    """Prints for commands."""
    questions: Questions
    """The calls that wait for the person."""
    attended: bool
    """Whether a person is there, who can use an editor."""

    def wait_for(self, work: Callable[[], T]) -> T:
        """Do something that waits for its commit; return the result."""

    def fork(self, prompt: str | None, follow: bool | None = None, **how: Any) -> None:
        """Fork the current agent.

        Args:
            prompt: the child's first prompt; None for none.
            follow: whether to go to the child; None takes the shell's default.
            how: further arguments of `AgentRef.fork`.
        """

    def change(self, what: str, ask: Callable[[], Future[Any]], text: str | Callable[[Any], str]) -> None:
        """Have the current agent change something of its own. A busy agent does so after its turn.

        Args:
            what: names the change, while it waits.
            ask: asks for the change.
            text: is printed when the change is committed; a function makes it of what the future gives.
        """

    def resume(self) -> None:
        """Go on with the latest turn of the current agent, when it was cut off or an error ended it."""

    def go_to(self, agent: AgentRef) -> None:
        """Make an agent the current one."""

    def decide(self, number: int | None, approved: bool, *, always: bool = False, reason: str = "") -> None:
        """Approve or deny a call that waits.

        Args:
            number: the call's number in `questions`; None is the first of the current agent, or the only one.
            approved: whether it may run.
            always: whether later calls of its tool are approved without asking.
            reason: why it is denied, for the model.

        Raises:
            BadInput: there is no such call, or it is not clear which is meant.
        """

    def edit(self, text: str) -> str | None:
        """Let the person change a text in an editor; return None when it is unchanged."""

    def leave_the_dead(self) -> None:
        """If the current agent is dead, go to the nearest living one above it, and say so."""

    def leave(self) -> None:
        """End the session."""


def nothing_to_resume(agent: AgentRef) -> str:
    """The answer to a person who wants to resume an agent that has no turn to go on with."""
    return f"Nothing to resume: the latest turn of {named(agent)} was neither cut off nor ended by an error."


def last_active(system: System) -> AgentRecord:
    """The agent that a person looked at last, if it lives; else agent 0."""
    seen = [record for record in system.agents() if record.living and record.active_at]
    return max(seen, key=lambda record: record.active_at, default=system.root.record)
