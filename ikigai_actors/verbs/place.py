"""The place where a verb runs, as far as it needs one.

A `Place` is whatever all verbs may use: line mode (``line/session.py``), the application (``app/place.py``), one
command of a script (``cli/one_command.py``) and tools (`tools`) are places. The first two are a `ShellPlace`, with a
current agent, and a person who goes from agent to agent. The others are a `ScriptPlace` (`unattended`): nobody stays,
so a prompt is left there.
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
"""The colours of the whole screen: ours for a dark or a light ground, the terminal's own, or those of ours that fit."""

LEAVING_TAKES = 2.0
"""The most seconds that a shell takes at its end to do what was typed before."""


class Printer(Protocol):
    """Prints the results of a command."""

    in_words: bool = False
    """Whether a tree or two columns are put in words, for a person who may hear them: line mode at a terminal."""

    def line(self, text: str = "", *, bold: bool = False, dim: bool = False) -> None:
        """Print a line of its own, or several."""

    def block(self, text: str) -> None:
        """Print a text that a model or another person may have written."""

    def whole(self, text: str) -> None:
        """Print a text of somebody's that is all that is asked for: into a pipe of a script byte for byte."""

    def error(self, text: str) -> None:
        """Print why something failed."""

    @property
    def columns(self) -> int:
        """How wide a line may be."""


class Place(Protocol):
    """Where a verb runs, as far as every verb needs it."""

    system: "System"
    """The open system."""
    screen: Printer
    """Prints the results."""
    has_input: bool = False
    """Whether standard input belongs to the command."""

    @property
    def principal(self) -> "Principal":
        """The one who asks: by default the user of this machine."""
        from ikigai_actors.system.approvals import person
        from ikigai_actors.verbs.principal import local

        return local(person())

    @property
    def top(self) -> "AgentRef":
        """The topmost agent in reach of the principal: agent 0 by default."""
        return self.system.root

    def reaches(self, uuid: str) -> bool:
        """Whether an agent, by uuid, is in reach of the principal: every one is by default."""
        return True

    def spelled(self, verb: str, agent: "AgentRef", rest: str = "") -> str:
        """How a person calls a verb for an agent here: ``/history 5``, or ``ikigai history buyer 5``."""

    def wait_for(self, work: Callable[[], T]) -> T:
        """Do something that waits for its commit, and return its result."""

    def outcome(self, ask: "Callable[[], Future[T]]") -> T:
        """Ask the process that runs the agents for something, wait for it, and return its answer."""

    def change(
        self, agent: "AgentRef", what: str, ask: "Callable[[], Future[T]]", text: str | Callable[[T], str]
    ) -> T | None:
        """Let an agent change something of its own. A busy agent does so after its turn.

        Args:
            agent: who changes.
            what: names the change, while it waits.
            ask: asks for the change.
            text: is printed when the change is committed; a function makes it of what the future gives.

        Returns:
            What the future gives; None where the place does not wait for it.
        """

    def make_child(
        self, agent: "AgentRef", prompt: str | None, name: str | None, how: "ForkOptions", follow: bool | None
    ) -> object:
        """Fork an agent.

        Args:
            prompt: the child's first prompt; None for none.
            name: the child's name.
            how: further options of `AgentRef.fork`.
            follow: whether a person goes to the child; None takes the usual.

        Returns:
            The child, and its answer where that was waited for, as JSON; None where the place does not wait.
        """

    def resume_turn(self, agent: "AgentRef") -> bool | None:
        """Go on with the latest turn, when it was cut off or an error ended it.

        Returns:
            Whether there was such a turn; None where the place does not wait for that.
        """

    def leave_the_dead(self) -> None:
        """If a person is at an agent that is dead, go to the nearest living one above it, and say so."""


@runtime_checkable
class ShellPlace(Place, Protocol):
    """Where a person, or a pipe, gives commands: a place with a current agent."""

    current: "AgentRef"
    """The agent that commands are about."""
    questions: "Questions"
    """The calls that wait for the person."""
    words: "Words"
    """The texts that were said here to busy agents."""
    attended: bool
    """Whether a person is there, who can use an editor."""

    def go_to(self, agent: "AgentRef") -> None:
        """Make an agent the current one."""

    def decide(self, number: int | None, approved: bool, *, always: str = "", reason: str = "") -> None:
        """Approve or deny a call that waits.

        Args:
            number: the call's number in `questions`; None is the first of the current agent, or the only one.
            approved: whether it may run.
            always: which later calls run unasked: one of `PendingCall.always`; empty for none.
            reason: why it is denied, for the model.

        Raises:
            BadInput: there is no such call, or it is not clear which is meant.
        """

    def prompt_later(self, agent: "AgentRef", text: str) -> None:
        """Prompt an agent, after its turn if it is in one."""

    def copy(self, text: str) -> None:
        """Put a text into the clipboard of the person's terminal. Raises `BadInput` where there is no terminal."""

    def give_text(self, text: str) -> None:
        """Give the person a text that was written elsewhere, to send it; where there is no prompt for it, send it."""

    def choose_theme(self, name: str) -> None:
        """Draw in other colours from now on: one of `THEME_WORDS`. Raises `BadInput` where no screen has colours."""

    def find(self, text: str) -> bool:
        """Mark a text in the talk in sight; return False where no screen shows the talk."""

    def put_back(self, text: str) -> None:
        """Give a text that was taken back to the person."""

    def edit(self, text: str) -> str | None:
        """Let the person change a text in an editor; return None when it is unchanged."""

    def leave(self) -> None:
        """End the session."""


@runtime_checkable
class ScriptPlace(Place, Protocol):
    """Where a script or a program gives one command."""

    def uploaded(self, sha256: str) -> "Attachment":
        """A file that the principal has uploaded. Raises `BadInput` for any other one."""

    def leave_prompt(
        self, agent: "AgentRef", text: str, attach: "Sequence[Attachable]", key: str | None = None
    ) -> object:
        """Store a prompt, with these files, as paths too; once under its key.

        Returns:
            Its number, and its answer where that was waited for, as JSON.
        """

    def leave_word(self, agent: "AgentRef", text: str, *, now: bool, key: str | None = None) -> object:
        """Store a word into the turn that an agent is in, once under its key; return its number, as JSON."""


def last_active(system: "System") -> "AgentRecord":
    """The agent that a person looked at last, if it lives; else agent 0."""
    from ikigai_actors.records.agents.registry import seen_last

    return system._store.read(seen_last) or system.root.record


def note_visit(agent: "AgentRef") -> None:
    """Remember that a person looked at an agent: a shell begins there next time."""
    agent.system._touch(agent)
