"""The interface of a place where a verb runs: a shell, a script, or a tool call.

A `Place` has what every verb may use: line mode (``line/session.py``), the application (``app/place.py``), one command
of a script (``cli/one_command.py``) and tools (`tools`) are places. The first two are a `ShellPlace`, with a current
agent, and a person who goes from agent to agent. The other places are a `ScriptPlace` (`unattended`): no person stays
there, so a verb stores the prompt in the database.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar, runtime_checkable

if TYPE_CHECKING:
    from ikigai_actors.actors.futures import Future
    from ikigai_actors.attachments import Attachable, Attachment
    from ikigai_actors.reach.conversation import Questions, Words
    from ikigai_actors.records.agents.registry import AgentRecord
    from ikigai_actors.system.handles.commands.forks import ForkOptions
    from ikigai_actors.system.handles.ref import AgentRef, System
    from ikigai_actors.verbs.principal import Principal

T = TypeVar("T")

THEME_WORDS = ("dark", "light", "own", "auto")
"""The colour themes of the whole screen: for a dark or a light ground, the terminal's own colours, or chosen
automatically.
"""

LEAVING_TAKES = 2.0
"""The most seconds that a shell takes at its end for commands that were typed before."""


class Printer(Protocol):
    """Prints the results of a command."""

    in_words: bool = False
    """Whether trees and columns are described in words, for screen readers: line mode at a terminal."""

    def line(self, text: str = "", *, bold: bool = False, dim: bool = False) -> None:
        """Print one line or several."""

    def block(self, text: str) -> None:
        """Print a text that a model or a person has written."""

    def whole(self, text: str) -> None:
        """Print a stored text that is the whole output; in a script's pipe, byte for byte."""

    def error(self, text: str) -> None:
        """Print the reason why a command has failed."""

    @property
    def columns(self) -> int:
        """Return the width of a line, in columns."""


class Place(Protocol):
    """The place where a verb runs: it has the open system, prints results, and waits for agents."""

    system: "System"
    """The open system."""
    screen: Printer
    """Prints the results."""
    has_input: bool = False
    """Whether standard input belongs to the command."""

    @property
    def principal(self) -> "Principal":
        """Return the principal that makes the request: by default the user of this machine."""
        from ikigai_actors.system.approvals import person
        from ikigai_actors.verbs.principal import local

        return local(person())

    @property
    def top(self) -> "AgentRef":
        """Return the topmost agent that the principal may reach: agent 0 by default."""
        return self.system.root

    def reaches(self, uuid: str) -> bool:
        """Return whether the principal may reach an agent, by uuid; by default it may."""
        return True

    def spelled(self, verb: str, agent: "AgentRef", rest: str = "") -> str:
        """Return how a person calls a verb for an agent here: ``/history 5``, or ``ikigai history buyer 5``."""

    def wait_for(self, work: Callable[[], T]) -> T:
        """Do work that waits for its commit, and return its result."""

    def outcome(self, ask: "Callable[[], Future[T]]") -> T:
        """Send a request to the process that runs the agents, wait for it, and return its answer."""

    def change(
        self, agent: "AgentRef", what: str, ask: "Callable[[], Future[T]]", text: str | Callable[[T], str]
    ) -> T | None:
        """Let an agent change its own state. A busy agent does so after its turn.

        Args:
            agent: the agent.
            what: a name for the change while it waits.
            ask: sends the request, and returns a future.
            text: the text that is printed when the change is committed; a function makes it from the result.

        Returns:
            The result of the future; None if the place does not wait for it.
        """

    def make_child(
        self, agent: "AgentRef", prompt: str | None, name: str | None, how: "ForkOptions", follow: bool | None
    ) -> object:
        """Fork an agent.

        Args:
            prompt: the child's first prompt; None for none.
            name: the child's name.
            how: further options of `AgentRef.fork`.
            follow: whether the person goes to the child; None takes the default.

        Returns:
            The child, and its answer if the place waits for it, as JSON data; None if the place does not wait.
        """

    def resume_turn(self, agent: "AgentRef") -> bool | None:
        """Resume the latest turn, if it was cut off or an error ended it.

        Returns:
            Whether there was such a turn; None if the place does not wait.
        """

    def leave_the_dead(self) -> None:
        """If the person's current agent is dead, go to the nearest living one above it, and report that."""


@runtime_checkable
class ShellPlace(Place, Protocol):
    """A place where a person, or a pipe, gives commands, with a current agent."""

    current: "AgentRef"
    """The agent to which commands apply."""
    questions: "Questions"
    """The calls that wait for the person."""
    words: "Words"
    """The texts that the person has sent to busy agents from here."""
    attended: bool
    """Whether a person is at the terminal, and can use an editor."""

    def go_to(self, agent: "AgentRef") -> None:
        """Make another agent the current one."""

    def decide(self, number: int | None, approved: bool, *, always: str = "", reason: str = "") -> None:
        """Approve or deny a waiting call.

        Args:
            number: the number of the call in `questions`; None for the first of the current agent, or the only one.
            approved: whether it may run.
            always: the later calls that run without asking, one of `PendingCall.always`; empty for none.
            reason: the reason for a denial, for the model.

        Raises:
            BadInput: there is no such call, or it is ambiguous.
        """

    def prompt_later(self, agent: "AgentRef", text: str) -> None:
        """Prompt an agent; a busy agent answers after its turn."""

    def copy(self, text: str) -> None:
        """Copy a text to the clipboard of the terminal. Raises `BadInput` without a terminal."""

    def give_text(self, text: str) -> None:
        """Put a text that was written elsewhere into the person's prompt; if there is no prompt, send it."""

    def choose_theme(self, name: str) -> None:
        """Use other colours from now on, one of `THEME_WORDS`. Raises `BadInput` if no screen has colours."""

    def find(self, text: str) -> bool:
        """Mark a text in the shown transcript; return False if no transcript is shown."""

    def put_back(self, text: str) -> None:
        """Give a withdrawn text back to the person, in the prompt or as output."""

    def edit(self, text: str) -> str | None:
        """Let the person change a text in an editor; return None when it is unchanged."""

    def leave(self) -> None:
        """End the session of the shell."""


@runtime_checkable
class ScriptPlace(Place, Protocol):
    """A place where a script or a program gives one command."""

    def uploaded(self, sha256: str) -> "Attachment":
        """Return a file that the principal has uploaded. Raises `BadInput` for any other."""

    def leave_prompt(
        self, agent: "AgentRef", text: str, attach: "Sequence[Attachable]", key: str | None = None
    ) -> object:
        """Store a prompt with attachments, once for its key.

        Returns:
            Its number, and its answer if it was waited for, as JSON data.
        """

    def leave_word(self, agent: "AgentRef", text: str, *, now: bool, key: str | None = None) -> object:
        """Store a steering message for an agent, once for its key; return its number, as JSON data."""


def last_active(system: "System") -> "AgentRecord":
    """Return the agent that a person looked at last, if it is alive; else agent 0."""
    from ikigai_actors.records.agents.registry import seen_last

    return system._store.read(seen_last) or system.root.record


def note_visit(agent: "AgentRef") -> None:
    """Record that a person has looked at an agent, so that the next shell begins with this agent."""
    agent.system._touch(agent)
