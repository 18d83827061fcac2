"""The session of the shell: its current agent, and the work of its commands.

A `TurnFollower` shows turns, and follows them in the background. A command that must wait for the end of a turn waits
in the background: the fork of a busy agent, its marks and settings, a resume of one that is stopped. `Shell.report`
prints their results; line mode calls it before each prompt, so nothing is printed into a line being typed.
"""

import contextlib
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click

from ikigai_actors.actors.futures import Future, TimedOut
from ikigai_actors.agent.turn.calls import PendingCall
from ikigai_actors.errors import BadInput, IkigaiError, StoreError, SystemClosed, Withdrawn
from ikigai_actors.reach.conversation import is_busy, outcome_of_future, reads_at_once
from ikigai_actors.reach.states import was_cut_off
from ikigai_actors.reach.views import file_text, workspace_of
from ikigai_actors.shell import slash
from ikigai_actors.shell.line.input import Keyboard
from ikigai_actors.shell.line.interrupts import Interrupts
from ikigai_actors.shell.line.output import Screen
from ikigai_actors.shell.line.turn_follower import TurnFollower
from ikigai_actors.shell.person_command import PersonCommand, TypedCommand, with_outputs
from ikigai_actors.system.handles.commands.forks import ForkOptions
from ikigai_actors.system.handles.ref import AgentRef, AsyncAgentRef, System
from ikigai_actors.verbs.place import ShellPlace, last_active, note_visit
from ikigai_actors.verbs.signals import interrupt_turn
from ikigai_actors.verbs.text.call_page import answers, described_call, edited_file
from ikigai_actors.verbs.text.harmless import one_line
from ikigai_actors.verbs.text.mentions import attachments_in
from ikigai_actors.verbs.text.naming import named, said_by, shown_name_in
from ikigai_actors.verbs.text.wording import decided, inherited, nothing_to_resume, resume_waits, waits_for_cont
from supervisors.signals import Status

T = TypeVar("T")

_TWICE = 1.0
"""The seconds within which a second Ctrl-C ends the session."""

_CUT_OFF = "its last turn was interrupted; /resume sends the prompt again"


@dataclass(frozen=True, slots=True)
class BackgroundCommand:
    """A command of the shell that waits in the background, with its future."""

    agent: AgentRef
    what: str
    future: Future[Any]
    done: Callable[[Any], None]
    """Takes the result."""


class Shell(ShellPlace):
    """One session over a running system. Only the main thread uses it: signals arrive there."""

    screen: Screen

    def __init__(
        self, system: System, keyboard: Keyboard, screen: Screen, interrupts: Interrupts, follow: bool = True
    ) -> None:
        """Begin a session. With ``follow``, a fork makes the child the current agent, unless its command differs."""
        self.system, self.keyboard, self.screen, self.interrupts = system, keyboard, screen, interrupts
        self.attended = keyboard.interactive
        """Whether a person is at the terminal."""
        self.leaving = False
        """Set to end the session."""
        self._turns = TurnFollower(system, keyboard, screen, interrupts, self.interrupt)
        self.questions, self.words = self._turns.questions, self._turns.words
        self._along: list[str] = []  # outputs that go along with the next prompt
        self._background: list[BackgroundCommand] = []
        self._line = ""  # the command that is done
        self._follow = follow
        self._interrupted_at = float("-inf")
        record = last_active(system)
        self.current = system.handle(record.uuid)
        """The agent that a prompt goes to."""
        self.label = record.short
        """The name of the current agent in the prompt line."""

    @property
    def failed(self) -> bool:
        """Return whether a prompt has ended in an error."""
        return self._turns.failed

    @property
    def undone(self) -> list[str]:
        """Return the lines that were read but are not in the database."""
        return [*self._turns.unstored(), *self.keyboard.untaken()]

    @property
    def prompt(self) -> str:
        """Return the prompt line: the current agent, its unread mail, and how many calls wait for the person."""
        notes = []
        with contextlib.suppress(StoreError):  # a `StoreTrouble` reports a database that does not answer
            record = self.current.record
            self.label = record.short
            if record.unread:
                notes.append(f"{record.unread} unread")
            if waiting := len(self.questions.open()):
                notes.append(f"{waiting} to approve")
        return f"{self.label} ({', '.join(notes)})" if notes else self.label

    def wait_for(self, work: Callable[[], T]) -> T:
        """Do work that waits for its commit, and return its result. Ctrl-C ends the wait with an `IkigaiError`."""
        try:
            with self.interrupts.heard():
                return work()
        except KeyboardInterrupt:
            raise TimedOut("Stopped waiting; the request may still be carried out.") from None

    def spelled(self, verb: str, agent: AgentRef, rest: str = "") -> str:
        return f"/{verb} {rest}".rstrip()

    def outcome(self, ask: Callable[[], Future[T]]) -> T:
        return self.wait_for(lambda: ask().get())

    def close(self) -> None:
        """End the subscription to events."""
        self._turns.close()
        self.screen.fresh()

    def edit(self, text: str) -> str | None:
        return click.edit(text, extension=".md")

    def leave(self) -> None:
        self.leaving = True

    def prompt_later(self, agent: AgentRef, text: str) -> None:
        self._turns.queue(agent, text, attachments_in(text))

    def copy(self, text: str) -> None:
        if not self.attended:
            raise BadInput("There is no terminal to copy to.")
        self.screen.copy(text)

    def give_text(self, text: str) -> None:
        self.screen.block(f"{self.label}> {text}")
        self.say(text)

    def run_command(self, typed: TypedCommand) -> None:
        """Run a person's ``!`` command; Ctrl-C ends the command."""
        command = PersonCommand(typed.command, workspace_of(self.system) or Path.cwd())
        with ThreadPoolExecutor(1, thread_name_prefix="ikigai-person-command") as thread:
            ended = self._turns.wait_for(thread.submit(command.run), command.stop)
        self.screen.block(ended.shown)
        if typed.goes_along:
            self._along.append(ended.for_prompt)
            self.screen.line("[goes along with your next prompt; !! keeps it to yourself]", dim=True)

    def choose_theme(self, name: str) -> None:
        raise BadInput("Lines have the colours of the terminal. Only the whole screen has a theme.")

    def find(self, text: str) -> bool:
        return False

    def do_command(self, line: str) -> None:
        """Run a line that begins with a slash."""
        self._line = line
        slash.run(self, line)

    def put_back(self, text: str) -> None:
        self.screen.line(f"[taken back: {one_line(text)}]", dim=True)

    def say(self, text: str) -> None:
        """Answer the question of the current agent, or prompt the agent and show its answer.

        At a terminal, a text steers an agent that is busy. From a pipe, a busy agent answers after its turn.
        """
        if self._answers(text.strip()):
            return
        attachments = attachments_in(text)  # in what was typed alone
        text, self._along = with_outputs(text, self._along), []
        if self.attended and not attachments and reads_at_once(self.current):
            self._turns.steer(self.current, text)
        else:
            self._turns.prompt(self.current, text, attachments)

    def follow(self) -> None:
        """Show the current agent's turns in progress until they are over, or until the person presses Enter."""
        self._turns.follow(self.current)

    def make_child(
        self, agent: AgentRef, prompt: str | None, name: str | None, how: ForkOptions, follow: bool | None
    ) -> None:
        """Fork an agent. The fork of a busy one waits in the background, and does not go to the child."""
        parent, busy = agent, how.get("at") is None and is_busy(agent)
        follow = self._follow if follow is None else follow

        def go(child: AgentRef) -> None:
            self._go(child)
            self.screen.line(f"{named(child)}: forked from {named(parent)}; inherits {inherited(child)}")
            if prompt is not None:
                self._turns.expect(child)
                self.follow()

        def tell(child: AgentRef) -> None:
            self.screen.line(f"{named(child)}: forked from {named(parent)}; /switch {child.record.short} goes there")
            if prompt is not None:
                self._turns.expect(child)

        attachments = attachments_in(prompt or "")
        future = parent.aio.fork(prompt, name=name, **how | {"attach": attachments})

        def of(done: Callable[[AgentRef], None]) -> Callable[[AsyncAgentRef], None]:
            return lambda child: done(child.sync)

        self._do(parent, "the fork", busy, future, of(go if follow else tell), of(tell), "the next step boundary in")

    def change(self, agent: AgentRef, what: str, ask: Callable[[], Future[T]], text: str | Callable[[T], str]) -> None:
        busy = is_busy(agent) or any(command.agent == agent for command in self._background)

        def tell(value: T) -> None:
            line = text if isinstance(text, str) else text(value)
            self.screen.line(line if agent == self.current else f"{named(agent)}: {line}")

        self._do(agent, what, busy, ask(), tell, tell)

    def resume_turn(self, agent: AgentRef) -> None:
        stands = resume_waits(agent)

        def tell(resumed: bool) -> None:
            if not resumed:
                self.screen.line(nothing_to_resume(agent))
                return
            self._turns.watch(agent)
            if agent == self.current:
                self.follow()

        self._turns.prepare(agent)  # before the turn goes on, so that no event is missed
        future = agent.aio.resume()
        if stands:
            self.screen.line(waits_for_cont(agent, "the resume", self.current))
        elif self._waited(future):
            tell(future.get())
            return
        else:
            self.screen.line("[the resume goes on in the background]", dim=True)
        self._background.append(BackgroundCommand(agent, "the resume", future, tell))

    def go_to(self, agent: AgentRef) -> None:
        """Make an agent the current one. Never waits for it."""
        self._go(agent)
        record = agent.record
        state = self.system.state_of(record)
        self.screen.line(f"now with {named(agent)}, {state}")
        self.note_state(self.screen.line)
        self.questions.show_again(agent.uuid)

    def note_state(self, tell: Callable[[str], None]) -> None:
        """Print the state of the current agent unless it is ready for a prompt: dead, stopped, cut off, in a turn."""
        record = self.current.record
        if not record.living:
            tell(f"it is dead ({record.exit_reason or 'no reason is known'}): its history can be read")
        elif record.status == Status.STOPPED:
            why = f" ({record.why_stopped})" if record.why_stopped else ""
            tell(f"it is stopped{why}: prompts wait for CONT; /signal CONT lets it go on")
        elif was_cut_off(self.system.state_of(record)):
            tell(_CUT_OFF)
        elif is_busy(self.current):
            if self.attended or not self.system.attached:  # a script does not wait for the turns of other processes
                self._turns.watch(self.current)
            tell("it is in the middle of a turn: Enter shows its answer, Ctrl-C interrupts it")

    def interrupt(self) -> bool:
        """Handle Ctrl-C: end the current agent's turn; return whether there was one. Twice: `KeyboardInterrupt`."""
        now = time.monotonic()
        if now - self._interrupted_at < _TWICE:
            raise KeyboardInterrupt
        self._interrupted_at = now
        if not (is_busy(self.current) or self.words.awaits(self.current.uuid)):
            return False
        for text in self._turns.take_back(self.current):  # it would open a turn that nobody wants
            self.screen.line(f"[taken back, unread: {one_line(text)}]", dim=True)
        interrupt_turn(self.current)
        return True

    def decide(self, number: int | None, approved: bool, *, always: str = "", reason: str = "") -> None:
        """Approve or deny a call that waits; show the next question of the current agent, or the rest of its turn."""
        number, call = self.questions.choose(number, self.current.uuid)
        agent = self.system.handle(call.agent)
        cut_off = was_cut_off(agent.state)
        self._turns.prepare(agent)  # before the turn goes on, so that no event is missed
        in_time = self.questions.decide(call, approved, always=always, reason=reason)
        self._turns.watch(agent)
        if not in_time or cut_off or agent != self.current:
            self.screen.line(decided(number, call, agent, in_time, approved, cut_off))
        if not self.attended or not self.questions.show_again(self.current.uuid):
            self.follow()

    def _answers(self, key: str) -> bool:
        """Take a letter as the answer to the current agent's first question; return whether the letter is an answer.

        A letter that was typed before the question was shown is an error, so that nobody approves an unseen call.
        """
        questions = self.questions.open() if key in ("y", "n", "a") else {}
        number = next((number for number, call in questions.items() if call.agent == self.current.uuid), None)
        if number is None:
            return False
        if self.attended and (self.keyboard.ahead or not self.questions.was_shown(number)):
            raise BadInput(f"“{key}” was typed before the question was shown: read it, and answer again.")
        reach = questions[number].always[-1:] if key == "a" else ("",)
        if not reach:
            raise BadInput("This command of bash is compound, so it is approved once only: y runs it, n does not.")
        self.decide(number, key != "n", always=reach[0])
        return True

    def leave_the_dead(self) -> None:
        record = here = self.current.record
        while not here.living and here.supervisor_uuid is not None:
            here = self.system.handle(here.supervisor_uuid).record
        if not record.living and here.living:
            self.screen.line(f"{record.short} is dead ({record.exit_reason}): now with {here.short}")
            self._go(self.system.handle(here.uuid))

    def report(self) -> None:
        """Print the results of commands and turns in the background."""
        self._turns.report(self.current)
        for command in [command for command in self._background if self._is_due(command)]:
            self._background.remove(command)
            try:
                command.done(command.future.get())
            except SystemClosed:
                raise
            except Withdrawn:  # whoever took it back knows
                continue
            except IkigaiError as error:
                self.screen.error(f"{command.what}: {said_by(error, shown_name_in(self.system))}")
        with contextlib.suppress(StoreError):  # a `StoreTrouble` reports a database that does not answer
            self.leave_the_dead()
            self._ask_questions()

    def _ask_questions(self) -> None:
        if not self.keyboard.interactive or not (new := self.questions.news()):
            return
        self.keyboard.note_ahead()
        for number, call in new.items():
            described = described_call(call, self._text_for(call))
            asks = f"[{number}] {named(self.system.handle(call.agent))} asks to run {described}"
            between = "\n    " if "\n" in asks else "   "
            self.screen.line(f"{asks}{between}/approve {number} or /deny {number}", bold=True)
            if call.agent == self.current.uuid:
                self.screen.line(f"    {answers(call)}")

    def _text_for(self, call: PendingCall) -> str | None:
        """Return the text of the file that a call edits; None if the call edits none, or the text is unknown."""
        path = edited_file(call)
        return None if path is None else file_text(self.system, call.agent, path)

    def _is_due(self, command: BackgroundCommand) -> bool:
        """Return whether a command is done. If its agent is idle, wait for the commit first."""
        agent = command.agent
        if command.future.done() or self._turns.has(agent):
            return command.future.done()
        if is_busy(agent) or self._is_stopped(agent):
            return command.future.done()
        return self._waited(command.future)

    def finish(self) -> None:
        """Wait for commands and turns in the background, except those waiting for CONT; print their results."""
        while waited := [
            *[
                command.future
                for command in self._background
                if command.future.done() or not self._is_stopped(command.agent)
            ],
            *self._turns.awaited(),
        ]:
            with self.interrupts.heard():
                outcome_of_future(waited[0])
            self.report()
        for command in self._background:
            self.screen.error(f"{command.what}: not done, {command.agent.record.short} is stopped")

    def _do(
        self,
        agent: AgentRef,
        what: str,
        busy: bool,
        future: Future[T],
        now: Callable[[T], None],
        later: Callable[[T], None],
        until: str = "the end of",
    ) -> None:
        """Wait for a command and print its result; if the agent is busy, do so in the background."""
        if not busy and self._waited(future):
            now(future.get())
            return
        self._background.append(BackgroundCommand(agent, what, future, later))
        self.words.keep(agent, self._line, future)
        stopped = ", which is stopped" if self._is_stopped(agent) else ""
        turn = f"the turn of {agent.record.short}{stopped}"
        self.screen.line(f"{what} waits for {until} {turn}; a notice will say when it is done")

    def _waited(self, future: Future[Any]) -> bool:
        """Wait for a future; return whether it is done. Ctrl-C ends only the wait."""
        try:
            with self.interrupts.heard():
                outcome_of_future(future)
        except KeyboardInterrupt:
            return False
        return True

    def _go(self, agent: AgentRef) -> None:
        self.current, self.label = agent, agent.record.short
        with contextlib.suppress(KeyboardInterrupt), self.interrupts.heard():
            note_visit(agent)

    def _is_stopped(self, agent: AgentRef) -> bool:
        return agent.record.status == Status.STOPPED
