"""The interfaces of an actor to the process table, and to the actors before and after it.

The module has protocols only. So code that only asks agents of other processes imports nothing that runs an agent.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from ikigai_actors.agent.boot import Origin
    from ikigai_actors.agent.messages import Handover, Restarted
    from ikigai_actors.errors import IkigaiError
    from ikigai_actors.records.log.log import Log
    from ikigai_actors.records.log.log_unit import Birth
    from ikigai_actors.records.messages.messages import Message
    from supervisors.causes import Cause


class Successor(Protocol):
    """An object that takes the messages that still come to an actor that has ended."""

    def take_over(self, message: Any) -> None:
        """Take a message with a caller, before any message that is sent to the successor itself. Never waits."""


class Heir(Successor, Protocol):
    """An object that takes over the callers and messages of an agent that moves to another host."""

    def inherit(self, handover: "Handover") -> None:
        """Take all callers and commands that wait. Called once, before any `take_over`. Never waits."""


class Predecessor(Protocol):
    """An actor that has ended, and that a new actor replaces."""

    @property
    def origin(self) -> "Origin":
        """The agent's data in the registry at the time when the actor was made."""


class Processes(Protocol):
    """The process table, as an actor uses it: to find other actors, and to report its own end."""

    def handle(self, uuid: str) -> object:
        """The handle of the agent with this uuid, for `current_agent`."""

    def expect(self, birth: "Birth") -> None:
        """Make the actor of a child, and hold it.

        Called before the child's row is committed, so that readers of the row find the actor.
        """

    def spawn(self, birth: "Birth", log: "Log | None") -> None:
        """Release the actor of a child that was just born. Its turn begins if it has a prompt.

        Args:
            log: the child's log, if it is in memory.
        """

    def forget(self, birth: "Birth") -> None:
        """Remove and end the actor of a child whose birth was not committed."""

    def replace_actor(
        self, old: Predecessor, handover: "Handover", cause: "Cause | None", reason: str, error: BaseException | None
    ) -> Successor:
        """Make the next actor of an agent whose actor has ended, and have the agent's supervisor decide.

        Args:
            old: the actor that has ended.
            handover: the waiting callers and commands of the old actor.
            cause: why the old actor has ended; None for a `Reset`, about which the supervisor has decided already.
            reason: the cause, as a text for people.
            error: the exception of the agent's own code; None when it did not crash.

        Returns:
            The new actor, which is held until the supervisor lets it go on.
        """

    def depart(self, old: Predecessor, handover: "Handover") -> "Successor":
        """Remove an agent that another host is to run from the table.

        Args:
            old: the actor of the agent, which has ended.
            handover: the waiting callers and commands of that actor.

        Returns:
            The object that takes messages that still come to that actor.
        """

    def drop(self, old: Predecessor) -> None:
        """Remove an actor from the table because another host runs its agent now. The agent may come back later."""

    def sleep(self, old: Predecessor) -> Successor | None:
        """Let an agent sleep: its actor is about to end.

        Args:
            old: the actor of the agent, which has no open work.

        Returns:
            The object that takes messages that still come to that actor; None when the actor must not end.
        """

    def park(self, old: Predecessor, callers: Iterable[Any]) -> Successor | None:
        """Let the actor of a parked agent end.

        Args:
            old: the actor of the agent, whose turn only waits.
            callers: the callers that wait for the outcome of that turn. The next actor gets them.

        Returns:
            As `sleep`.
        """

    def begins_wait(self, uuid: str) -> None:
        """Note that the program of an agent only waits from now on, so it is parked after some time. Never waits."""

    def ends_wait(self, uuid: str) -> None:
        """Note that the program of an agent no longer waits. Returns at once."""

    def was_stopped(self, uuid: str, changed: int) -> None:
        """Note that an agent has found itself stopped; check whether it was continued meanwhile. Never waits.

        Args:
            changed: the version of the tree of the agent's latest change that the actor knows.
        """

    def look_at_woken(self) -> None:
        """Schedule another look at the parked agents that must go on: one could not because the store failed."""

    def on_failed_start(self, uuid: str, restarted: "Restarted", error: Exception) -> bool:
        """Hold a restarted agent whose log could not be read, for a further attempt or its supervisor's decision.

        Args:
            restarted: the start that failed.

        Returns:
            Whether the agent is held; False when it has died meanwhile.
        """

    def entered(self, message: "Message") -> None:
        """Settle the receipt of a steering message with the position at which it has entered. Never waits."""

    def leaves_words(self, uuid: str, error: "IkigaiError") -> None:
        """Settle the receipts of the steering messages that an agent has not read, with the error of its death."""

    def asks(self, uuid: str) -> None:
        """Note that an agent is about to ask for approval of calls.

        New rules may decide these calls later. Never waits.
        """

    def retry_prompts(self) -> None:
        """Deliver prompts of other processes again later. An agent could not take them up because the store failed."""

    def serve(self, budgets: Iterable[str], due: int | None = None) -> None:
        """Schedule a check whether requests that wait for budgets can go on.

        Args:
            budgets: the budgets of which some amount became free.
            due: the time, in milliseconds since 1970; None for soon.
        """

    def await_service(self, uuid: str, at: int) -> None:
        """Let an agent send its request again at a time, in milliseconds since 1970, when its service accepts it."""

    def lacks(self, uuid: str) -> None:
        """Note that the turn of an agent waits for hooks or a program of another process. Never waits."""

    def look_at_questions(self) -> None:
        """Schedule the next step of the questions to people, because a new question may come first."""

    def watch(self, uuid: str) -> None:
        """Begin to check whether an agent sends heartbeats in its turn, as its setting ``stuck_after`` asks."""

    def bury(self, uuid: str, reason: str) -> None:
        """Mark an agent that cannot go on as dead, and end its actor. Returns before that is done."""
