"""The place of slash commands in the application, and the thread that runs them.

Each submitted line gets an own `AppPlace`, which works on the agent at which the line was typed, and prints into the
transcript of this agent, wherever the person has gone meanwhile. A `SerialExecutor` runs the lines one after another on
one thread, so a command may wait for a commit. No command waits for a turn on this thread: the person gets a notice
when the turn is over.
"""

import logging
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from time import monotonic
from typing import Protocol, TypeVar

from ikigai_actors.actors.futures import Future
from ikigai_actors.actors.service import Worker
from ikigai_actors.attachments import Attachment
from ikigai_actors.errors import (
    AgentDead,
    IkigaiError,
    InboxFull,
    ProviderError,
    SystemClosed,
    TurnInterrupted,
    Withdrawn,
)
from ikigai_actors.reach.conversation import Questions, Words, is_busy, reads_at_once
from ikigai_actors.reach.states import was_cut_off
from ikigai_actors.shell import slash
from ikigai_actors.shell.person_command import with_outputs
from ikigai_actors.system.handles.commands.forks import ForkOptions
from ikigai_actors.system.handles.ref import AgentRef, AsyncAgentRef, System
from ikigai_actors.verbs.place import Printer, ShellPlace
from ikigai_actors.verbs.text.mentions import attachments_in, is_command
from ikigai_actors.verbs.text.naming import said_by, shown_name_in
from ikigai_actors.verbs.text.wording import decided, nothing_to_resume, resume_waits, waits_for_cont

T = TypeVar("T")

logger = logging.getLogger(__name__)


class Window(Protocol):
    """The parts of the application that the places of commands use. Thread-safe; only `edit` waits."""

    system: System
    questions: Questions
    words: Words
    follow: bool
    """Whether the screen goes to the child after a fork."""

    @property
    def attended(self) -> bool:
        """Return whether an editor can be shown."""

    def visit(self, uuid: str) -> None:
        """Show an agent."""

    def leave(self) -> None:
        """End the application."""

    def edit(self, text: str) -> str | None:
        """Let an editor use the terminal; wait for it and return the edited text."""

    def tell_when_done(
        self, future: Future[T], done: Callable[[T], None], failed: Callable[[IkigaiError], None]
    ) -> None:
        """Call back with the result of a future, or its error, on the application's thread."""

    def stay_with(self, parent: str, child: str) -> None:
        """Show a child that was just forked, if its parent is shown now."""

    def copy(self, text: str) -> None:
        """Put a text into the clipboard."""

    def choose_theme(self, name: str) -> None:
        """Use this colour theme from now on, also after the next start."""

    def find(self, uuid: str, text: str) -> None:
        """Mark a text in the transcript of an agent, if it is shown now."""

    def put_back(self, text: str) -> None:
        """Put a withdrawn text back into the prompt."""

    def give_up(self, uuid: str, prompt: str, refused: bool) -> None:
        """End the wait for the answer to a prompt. A prompt that was refused can be given again."""


class AppPlace(ShellPlace):
    """The place in which one submitted line runs."""

    def __init__(
        self, window: Window, current: AgentRef, screen: Printer, queued: bool = False, along: Sequence[str] = ()
    ) -> None:
        """Make the place of a submitted line.

        Args:
            window: the application.
            current: the agent at which the line was typed.
            screen: prints the output of its commands.
            queued: whether a prompt waits for the end of the turn in progress.
            along: outputs of earlier commands to send with the prompt.
        """
        self._window, self._queued, self._along = window, queued, along
        self.system, self.questions, self.words = window.system, window.questions, window.words
        self.attended = window.attended
        self.current, self.screen = current, screen
        self._line = ""

    def do(self, line: str) -> None:
        """Run the line. Raises `SystemClosed`; all other errors are printed."""
        self._line = line
        try:
            if is_command(line):
                slash.run(self, line)
            else:
                self._say(line)
        except SystemClosed:
            raise
        except IkigaiError as error:
            self.screen.error(self._said(error))
        except Exception as error:  # a defect of ours: the agents and the application go on
            logger.exception("A line failed")
            self.screen.error(f"{type(error).__name__}: {error}")

    def wait_for(self, work: Callable[[], T]) -> T:
        return work()

    def spelled(self, verb: str, agent: AgentRef, rest: str = "") -> str:
        return f"/{verb} {rest}".rstrip()

    def outcome(self, ask: Callable[[], Future[T]]) -> T:
        return ask().get()

    def make_child(
        self, agent: AgentRef, prompt: str | None, name: str | None, how: ForkOptions, follow: bool | None
    ) -> None:
        """Fork an agent. The log shows the birth of a child, so nothing is printed."""
        parent, follow = agent, self._window.follow if follow is None else follow

        def born(child: AsyncAgentRef) -> None:
            if follow:
                self._window.stay_with(parent.uuid, child.uuid)

        attachments = attachments_in(prompt or "")
        future = parent.aio.fork(prompt, name=name, **how | {"attach": attachments})
        self._later(agent, "the fork", future, born, "the next step boundary")

    def change(self, agent: AgentRef, what: str, ask: Callable[[], Future[T]], text: str | Callable[[T], str]) -> None:
        """Change an agent. Nothing is printed, since the log shows most changes."""
        self._later(agent, what, ask(), lambda _: None)

    def resume_turn(self, agent: AgentRef) -> None:
        def resumed(there_was_one: bool) -> None:
            if not there_was_one:
                self.screen.line(nothing_to_resume(agent))

        stands, future = resume_waits(agent), agent.aio.resume()
        if stands:
            self.screen.line(waits_for_cont(agent, "the resume", self.current), dim=True)
        self._later(agent, "the resume", future, resumed)

    def go_to(self, agent: AgentRef) -> None:
        self._window.visit(agent.uuid)

    def decide(self, number: int | None, approved: bool, *, always: str = "", reason: str = "") -> None:
        number, call = self.questions.choose(number, self.current.uuid)
        agent = self.system.handle(call.agent)
        cut_off = was_cut_off(agent.state)
        in_time = self.questions.decide(call, approved, always=always, reason=reason)
        if not in_time or cut_off or agent != self.current:
            self.screen.line(decided(number, call, agent, in_time, approved, cut_off))

    def prompt_later(self, agent: AgentRef, text: str) -> None:
        self._prompt(text, attachments_in(text))

    def copy(self, text: str) -> None:
        self._window.copy(text)

    def give_text(self, text: str) -> None:
        self._window.put_back(text)

    def choose_theme(self, name: str) -> None:
        self._window.choose_theme(name)

    def find(self, text: str) -> bool:
        self._window.find(self.current.uuid, text)
        return True

    def put_back(self, text: str) -> None:
        self._window.give_up(self.current.uuid, text, refused=False)
        self._window.put_back(text)

    def edit(self, text: str) -> str | None:
        return self._window.edit(text)

    def leave_the_dead(self) -> None:
        """Do nothing: the main screen goes away from a dead agent by itself."""

    def leave(self) -> None:
        self._window.leave()

    def _say(self, text: str) -> None:
        attachments = attachments_in(text)  # in what was typed alone
        text = with_outputs(text, self._along)
        if self._queued or attachments or not reads_at_once(self.current):
            self._prompt(text, attachments)
            return
        with self._given_up_if_refused(text):
            self._window.tell_when_done(self.words.say(self.current, text), lambda _: None, self._failed(text))

    def _prompt(self, text: str, attachments: Sequence[Attachment]) -> None:
        with self._given_up_if_refused(text):
            reply = self.words.prompt(self.current, text, attachments)
        self._window.tell_when_done(reply, lambda _: None, self._failed(text))
        reply.stored.get()

    @contextmanager
    def _given_up_if_refused(self, text: str) -> Iterator[None]:
        try:
            yield
        except IkigaiError:
            self._window.give_up(self.current.uuid, text, refused=True)
            raise

    def _failed(self, text: str) -> Callable[[IkigaiError], None]:
        """Return a function that handles the error if a text gets no answer."""

        def failed(error: IkigaiError) -> None:
            if isinstance(error, Withdrawn):  # whoever took it back has given it up
                return
            self._window.give_up(self.current.uuid, text, refused=isinstance(error, AgentDead | InboxFull))
            if not isinstance(error, ProviderError | TurnInterrupted):  # the log shows those
                self.screen.error(self._said(error))

        return failed

    def _later(
        self,
        agent: AgentRef,
        what: str,
        future: Future[T],
        done: Callable[[T], None],
        until: str = "the end of the turn",
    ) -> None:
        """Call ``done`` with the result of a command. If it waits for a turn, print how to withdraw it."""
        if is_busy(agent) and not future.done():
            self.words.keep(agent, self._line, future)
            here = agent == self.current
            whose = "" if here else f" of {agent.record.short}"
            self.screen.line(f"{what} waits for {until}{whose}{' · Up takes it back' if here else ''}", dim=True)

        def failed(error: IkigaiError) -> None:
            if not isinstance(error, Withdrawn):  # whoever took it back knows
                self.screen.error(f"{what}: {self._said(error)}")

        self._window.tell_when_done(future, done, failed)

    def _said(self, error: BaseException) -> str:
        return said_by(error, shown_name_in(self.system))


class SerialExecutor(Worker):
    """Runs the work of commands in order, until the system is closed."""

    def __init__(self, closed: Callable[[SystemClosed], None]) -> None:
        """Start the thread; ``closed`` is called when the system is closed, which ends the executor."""
        super().__init__("ikigai-commands")
        self._doing: tuple[str, float] | None = None
        self._undone: deque[str] = deque()
        self._closed = closed
        self.start()

    def do(self, work: Callable[[], object], line: str = "") -> None:
        """Run ``work`` after all earlier work; ``line`` is the typed line, or the command of a key."""

        def named() -> None:
            self._doing = (line, monotonic())
            try:
                work()
            finally:
                self._doing = None
                self._undone.popleft()

        self._undone.append(line)
        self.post(named)

    @property
    def doing(self) -> tuple[str, float] | None:
        """Return the name of the work in progress and its seconds so far; None without named work."""
        doing = self._doing
        return (doing[0], monotonic() - doing[1]) if doing is not None and doing[0] else None

    def finish(self, seconds: float) -> list[str]:
        """Stop after all earlier work, or after this many seconds; return the lines that were not run."""
        self.post(self.stop)
        self._thread.join(seconds)
        self.stop()
        return [line for line in tuple(self._undone) if line]

    def on_failure(self, error: IkigaiError) -> None:
        if isinstance(error, SystemClosed):
            self.stop()
            self._closed(error)
        else:
            logger.warning("%s", error)
