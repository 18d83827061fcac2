"""The surroundings of an actor: the process table, and the actors before and after it.

Protocols alone, so that who only asks agents of other processes loads nothing that runs one.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from ikigai_actors.agent.boot import Origin
    from ikigai_actors.agent.messages import Handover, Restarted
    from ikigai_actors.records.log.log import Log
    from ikigai_actors.records.log.log_unit import Birth
    from ikigai_actors.records.messages.messages import Message
    from supervisors.causes import Cause


class Successor(Protocol):
    """Takes the messages of an actor that has ended."""

    def take_over(self, message: Any) -> None:
        """Take a message with a caller, before any that is sent to the successor itself. Never waits."""


class Heir(Successor, Protocol):
    """Takes what an actor leaves whose agent another host runs from now on."""

    def inherit(self, handover: "Handover") -> None:
        """Take all that waits. Called once, before any `take_over`. Never waits."""


class Predecessor(Protocol):
    """An actor that has died, and that a new one replaces."""

    @property
    def origin(self) -> "Origin":
        """The agent, as the registry knew it when its actor was made."""


class Processes(Protocol):
    """The process table, as an actor sees it: a way to other actors, and to its own end."""

    def handle(self, uuid: str) -> object:
        """The handle of the agent with this uuid, for `current_agent`."""

    def expect(self, birth: "Birth") -> None:
        """Make the actor of a child, and hold it. Called before its row is committed: readers of the row find it."""

    def spawn(self, birth: "Birth", log: "Log | None") -> None:
        """Release the actor of a child that was just born; its turn begins when it has a prompt.

        Args:
            log: its log, if that is in memory.
        """

    def forget(self, birth: "Birth") -> None:
        """End the actor of a child whose birth was not committed."""

    def replace_actor(
        self, old: Predecessor, handover: "Handover", cause: "Cause | None", reason: str, error: BaseException | None
    ) -> Successor:
        """Make the next actor of an agent whose actor has ended, and have the agent's supervisor decide.

        Args:
            old: the actor that has ended.
            handover: what it has left.
            cause: why it ended; None for a `Reset`, about which the supervisor has decided already.
            reason: the same for people.
            error: what its own code has raised; None when it did not crash.

        Returns:
            The new actor, which is held until the supervisor lets it go on.
        """

    def depart(self, old: Predecessor, handover: "Handover") -> "Successor":
        """Leave an agent to another host.

        Args:
            old: its actor, which has ended.
            handover: what that has left.

        Returns:
            What takes the messages that still come to that actor.
        """

    def drop(self, old: Predecessor) -> None:
        """Take an actor out of the table that another host's epoch has ended. Its agent may come back here."""

    def sleep(self, old: Predecessor) -> Successor | None:
        """Let an agent sleep: its actor is about to end.

        Args:
            old: its actor, of which nothing is open.

        Returns:
            What takes the messages that still come to that actor; None when it must not end.
        """

    def park(self, old: Predecessor, callers: Iterable[Any]) -> Successor | None:
        """Let an agent go that is parked: its actor is about to end.

        Args:
            old: its actor, whose turn only waits.
            callers: who waits for the outcome of that turn; the next actor gets them.

        Returns:
            As `sleep`.
        """

    def begins_wait(self, uuid: str) -> None:
        """Note that a program only waits from now on, so that it is parked after some time. Never waits."""

    def ends_wait(self, uuid: str) -> None:
        """Note that the program of an agent has stopped waiting. Returns at once."""

    def look_at_woken(self) -> None:
        """Look later, once more, which of the parked are to go on: one could not, since the store failed."""

    def on_failed_start(self, uuid: str, restarted: "Restarted", error: Exception) -> bool:
        """Hold a restarted agent whose log could not be read, until its start is tried again or its supervisor decides.

        Args:
            restarted: the start that failed.

        Returns:
            Whether the agent is held; False when it has died meanwhile.
        """

    def entered(self, message: "Message") -> None:
        """Give the receipt of a word the place where it has entered, if this message is one. Never waits."""

    def asks(self, uuid: str) -> None:
        """Note that an agent is about to ask about calls, on which rules may decide later. Never waits."""

    def retry_prompts(self) -> None:
        """Redeliver remote prompts later: an agent could not take them up, since the store failed."""

    def serve(self, budgets: Iterable[str], due: int | None = None) -> None:
        """Look at budgets again, by their owners: soon, since something of them was freed; or at a time.

        Args:
            due: the time, in milliseconds since 1970; None for soon.
        """

    def await_service(self, uuid: str, at: int) -> None:
        """Let an agent send its request again at a time, in milliseconds since 1970, when its service takes it."""

    def look_at_questions(self) -> None:
        """Look which question takes a step next, since one was asked that does."""

    def watch(self, uuid: str) -> None:
        """Watch whether an agent that is in a turn sends heartbeats, as its setting ``stuck_after`` asks."""

    def bury(self, uuid: str, reason: str) -> None:
        """Mark an agent dead that cannot go on, and end its actor. Returns before that is done."""
