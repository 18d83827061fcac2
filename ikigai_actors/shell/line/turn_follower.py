"""The turns that line mode follows: one in the foreground, which is shown until it is over, others in the background.

    follower.prompt(agent, "hello")     shows the answer, until it is over or the person goes on
    follower.report(agent)              prints the results of the others, before the next prompt line

A person leaves a turn in the foreground by Enter, and it goes on in the background. A prompt to a stopped agent does
not wait in the foreground: the shell reports the prompt as soon as it is in the database, where it outlives the shell.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import Future as WorkFuture
from typing import TypeVar

from ikigai_actors.actors.futures import Future
from ikigai_actors.attachments import Attachment, name_and_size
from ikigai_actors.errors import AgentDead, ProviderError, SystemClosed
from ikigai_actors.providers.base import Reply
from ikigai_actors.reach.conversation import LiveConversation, PromptReply, outcome_of_future
from ikigai_actors.shell.line.input import Keyboard
from ikigai_actors.shell.line.interrupts import Interrupts
from ikigai_actors.shell.line.output import Screen
from ikigai_actors.shell.line.turn import ShownTurn
from ikigai_actors.shell.line.wakeup import WakeupPipe
from ikigai_actors.system.handles.ref import AgentRef, System
from ikigai_actors.verbs.text.harmless import one_line
from ikigai_actors.verbs.text.wording import ended, explained, waits_for_cont
from supervisors.signals import Status

T = TypeVar("T")


class TurnFollower:
    """Follows turns, and shows them. Only the main thread uses it."""

    def __init__(
        self,
        system: System,
        keyboard: Keyboard,
        screen: Screen,
        interrupts: Interrupts,
        interrupt: Callable[[], object],
    ) -> None:
        """Subscribe; ``interrupt`` is called at Ctrl-C while a turn is shown."""
        self._keyboard, self._screen, self._interrupts, self._interrupt = keyboard, screen, interrupts, interrupt
        self.failed = False
        """Whether a turn has ended in an error."""
        self._wake = WakeupPipe()
        self._events = LiveConversation(system, self._wake.set, streams=True)
        self.questions, self.words = self._events.questions, self._events.words
        """The calls that wait for approval, and the texts that the person has sent to busy agents from here."""
        self._turns: list[ShownTurn] = []

    def close(self) -> None:
        """End the subscription to the events of the system."""
        self._events.close()
        self._wake.close()

    def prompt(self, agent: AgentRef, text: str, attachments: Sequence[Attachment] = ()) -> None:
        """Prompt an agent, and show its answer; a busy one answers after its turn."""
        self.queue(agent, text, attachments)
        self.follow(agent)

    def queue(self, agent: AgentRef, text: str, attachments: Sequence[Attachment]) -> None:
        """Prompt an agent, and follow the new turn in the background."""
        for attachment in attachments:
            self._screen.line(f"[attached: {one_line(name_and_size(attachment.stored()))}]", dim=True)
        turn = ShownTurn(agent, self._events, text)
        self._turns.append(turn)
        try:
            reply = self.words.prompt(agent, text, attachments, self._wake.set)
        except BaseException:
            self._drop(turn)
            raise
        turn.expect(reply)
        self._store(reply)

    def steer(self, agent: AgentRef, text: str) -> None:
        """Send a steering message into an agent's turn, and show that turn."""
        self._events.words.say(agent, text)
        self.watch(agent)
        self.follow(agent)

    def take_back(self, agent: AgentRef) -> list[str]:
        """Withdraw the unread texts that were sent to an agent here; return the texts."""
        return self._events.words.take_back(agent.uuid)

    def expect(self, agent: AgentRef) -> None:
        """Follow the turn of a child that was forked with a prompt."""
        self._turns.append(ShownTurn(agent, self._events).expect(agent.aio.reply()))

    def prepare(self, agent: AgentRef) -> None:
        """Keep the events of an agent from now on, because its turn is about to be resumed."""
        self._events.follow(agent.uuid)

    def watch(self, agent: AgentRef) -> None:
        """Follow the turn of an agent that is in progress, or about to be resumed, unless it is followed already."""
        if not self.has(agent):
            self.expect(agent)

    def has(self, agent: AgentRef) -> bool:
        """Return whether a turn of the agent is followed."""
        return any(turn.agent == agent for turn in self._turns)

    def follow(self, agent: AgentRef) -> None:
        """Show an agent's turns in progress until they are over, or until the person presses Enter."""
        for turn in [turn for turn in self._turns if turn.agent == agent]:
            if not self._attend(turn) and not self._stands(turn):
                return

    def report(self, current: AgentRef) -> None:
        """Print errors, and the results of turns that are over; show the turns of the current agent in full."""
        self._tell_troubles()
        self._tell_kept(current)
        for turn in [turn for turn in self._turns if turn.outcome.done()]:
            if turn.agent == current:
                self._attend(turn)
            else:
                self._drop(turn)
                outcome = outcome_of_future(turn.outcome)
                self.failed = self.failed or isinstance(outcome, ProviderError | AgentDead)
                self._screen.line(ended(turn.agent, outcome))

    def wait_for(self, work: "WorkFuture[T]", stop: Callable[[], object]) -> T:
        """Wait for work on another thread, and return its result; call ``stop`` at Ctrl-C or a signal to end."""
        work.add_done_callback(lambda _: self._wake.set())
        while not work.done():
            try:
                with self._interrupts.heard():
                    self._wake.wait()
            except KeyboardInterrupt:
                stop()
            except SystemExit:
                stop()
                raise
        return work.result()

    def unstored(self) -> list[str]:
        """Return the prompts that are not in the database yet, because the database does not answer."""
        replies = ((turn.prompt, turn.outcome) for turn in self._turns)
        return [text or "" for text, reply in replies if isinstance(reply, PromptReply) and not reply.stored.done()]

    def awaited(self) -> list[Future[Reply]]:
        """Return the outcomes of the followed turns, without turns that wait for CONT."""
        return [turn.outcome for turn in self._turns if turn.outcome.done() or not self._stands(turn)]

    def _store(self, reply: PromptReply) -> None:
        """Wait until a prompt is in the database. After that, no later input can lose the prompt."""
        with self._keyboard.hushed():
            while not reply.stored.done():
                self._tell_troubles()
                self._wait(None)

    def _attend(self, turn: ShownTurn) -> bool:
        """Show a turn until it is over; return False if the person stops watching before."""
        with self._keyboard.hushed():
            while True:
                turn.show(self._screen)
                self._tell_troubles(patient=turn.answering)
                self._tell_kept(turn.agent)
                if turn.over:
                    break
                if self._stands(turn):
                    return False
                if turn.asks and self._keyboard.interactive:
                    turn.asks = False
                    if self._has_question(turn.agent):  # else somebody has answered before it was heard of
                        return False
                    continue
                if self._wait(self._keyboard.descriptor()):
                    if self._keyboard.consume():
                        self._screen.line("[goes on in the background; Enter shows the rest]", dim=True)
                    return False
        self._drop(turn)
        self.failed = self.failed or turn.failed
        outcome = outcome_of_future(turn.outcome)  # known, or about to be; after it the agent is idle
        if isinstance(outcome, SystemClosed):
            raise outcome
        return True

    def _has_question(self, agent: AgentRef) -> bool:
        return any(call.agent == agent.uuid for call in self.questions.open().values())

    def _wait(self, keyboard: int | None) -> bool:
        """Wait until there is news; return whether a line was typed at this keyboard."""
        try:
            with self._interrupts.heard():
                return self._wake.wait(keyboard)
        except KeyboardInterrupt:
            self._interrupt()
            return False

    def _drop(self, turn: ShownTurn) -> None:
        self._turns.remove(turn)
        if not self.has(turn.agent):
            self._events.forget(turn.agent.uuid)

    def _stands(self, turn: ShownTurn) -> bool:
        """Return whether a turn waits for CONT: the turn has not begun, and its agent is stopped."""
        return turn.kept and not turn.begun and turn.agent.record.status == Status.STOPPED

    def _tell_kept(self, current: AgentRef) -> None:
        """Print the prompts that wait for CONT, each once."""
        for kept in self._events.kept():
            mine = (turn for turn in self._turns if turn.agent.uuid == kept.agent_uuid and turn.prompt == kept.text)
            if (turn := next((turn for turn in mine if not turn.begun and not turn.kept), None)) is not None:
                turn.kept = True
                self._screen.fresh()
                self._screen.line(waits_for_cont(turn.agent, "your prompt", current))

    def _tell_troubles(self, patient: bool = False) -> None:
        for trouble in self._events.troubles(patient):
            self._screen.notice(explained(trouble))
