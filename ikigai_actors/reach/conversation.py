"""The agents for a front end, a page or a door: turns as they happen, and calls that wait for approval.

    conversation = LiveConversation(system, wake)       # `wake` is called when there is something new
    conversation.follow(agent.uuid)                 # from now on nothing of it is missed
    reply = say(agent, "hello")                     # stored at once, as `reply.stored` shows
    word = conversation.words.say(agent, "by train")    # into the turn that runs; take_back withdraws it
    conversation.next(agent.uuid)                   # one event after the other, or
    conversation.news_of(agent.uuid)                # all that is new

The subscription's thread stores the events of the system, and the front end takes them. For every agent the answer in
progress is stored, so a front end that begins to follow the agent in the middle of an answer shows all of it. For
followed agents committed messages are stored too, in order.

Calls that wait for approval have numbers here. A number is given when a call is first seen, and never to another one:
``/approve 2`` means the call that was shown as 2, whatever came meanwhile.
"""

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from time import monotonic
from typing import Any

from ikigai_actors.actors.futures import Future, TimedOut
from ikigai_actors.agent.actor import AgentActor
from ikigai_actors.agent.subscriptions import (
    Event,
    PromptKept,
    StoreTrouble,
    StreamCut,
    Streamed,
    SystemTrouble,
    ToolTrouble,
)
from ikigai_actors.agent.turn.calls import PendingCall
from ikigai_actors.agent.turn.events import Prompt
from ikigai_actors.agent.turn.state import WORKING, Phase, is_interrupted, is_working
from ikigai_actors.attachments import Attachable
from ikigai_actors.errors import BadInput, IkigaiError, NoHost, ProviderError, TurnInterrupted, Withdrawn
from ikigai_actors.frozen import NO_DATA
from ikigai_actors.providers.base import Reply
from ikigai_actors.records.mail.prompts import NewPrompt, WithdrawPrompt, waiting_prompts
from ikigai_actors.records.messages.messages import BOUNDARIES, Message
from ikigai_actors.system.approvals import Approvals, person
from ikigai_actors.system.handles.ref import AgentRef, System
from ikigai_actors.system.lifecycle import data_of, prompt_text
from ikigai_actors.system.receipts import Receipt
from supervisors.signals import Status

AnswerPiece = tuple[str, list[str]]
"""A part of an answer: its kind, and its consecutive texts. A plain tuple, because many objects would slow the garbage
collector.
"""

AgentEvent = Message | StreamCut | AnswerPiece
"""An event of an agent that a conversation keeps."""

SETTLED = "settled"
"""The kind of a message that is never stored: the outcome of a turn is known, and all its messages came before."""


@dataclass(frozen=True, slots=True)
class AgentNews:
    """The news of one agent, in order: messages, and then pieces of an answer."""

    messages: list[Message]
    ended: bool
    """Whether earlier pieces are void, because a message has the answer, or the answer was cut off."""
    pieces: list[AnswerPiece]


class LiveConversation:
    """The news of a system's agents, and their questions. Thread-safe."""

    def __init__(
        self, system: System, changed: Callable[[], None], *, streams: bool = False, most: int | None = None
    ) -> None:
        """Subscribe to the events of a system.

        Args:
            changed: called on the subscription's thread when an event has come.
            streams: whether ``changed`` is also called for each piece of an answer.
            most: the most messages of an agent that are kept, the latest; then a message that ends an answer removes
                its pieces. None keeps all.
        """
        self.questions = Questions(system.approvals)
        """The calls that wait for approval."""
        self.changed = changed
        """Called on the subscription's thread when an event has come."""
        self.words = Words()
        """The texts that were sent to busy agents from here."""
        self._streams, self._most = streams, most
        self._lock = threading.Lock()
        self._followed: set[str] = set()
        self._events: dict[str, list[AgentEvent]] = {}
        self._ended: set[str] = set()
        self._troubles: list[SystemTrouble] = []
        self._kept: list[PromptKept] = []
        self._subscription = system.subscribe(self.hear)

    def close(self) -> None:
        """End the subscription to the events of the system."""
        self._subscription.close()

    def hear(self, event: Event) -> None:
        """Take an event of the system. Called on the subscription's thread."""
        match event:
            case Streamed():
                with self._lock:
                    self._add_piece(event)
                if not self._streams:
                    return
            case Message():
                with self._lock:
                    self._add(event)
            case StreamCut():
                with self._lock:
                    self._cut(event)
            case StoreTrouble(final=True):
                pass  # the front end ends, with its own words
            case _ if isinstance(event, SystemTrouble | PromptKept):
                self._keep(event)
        self.changed()

    def follow(self, uuid: str) -> None:
        """Keep the messages of an agent from now on. The answer in progress, if any, comes first."""
        with self._lock:
            self._followed.add(uuid)

    def forget(self, uuid: str) -> None:
        """Stop keeping the messages of an agent. Pieces of an answer that were taken before cannot be taken again."""
        with self._lock:
            self._followed.discard(uuid)
            self._ended.discard(uuid)
            if uuid in self._events:
                self._events[uuid] = unfinished(self._events[uuid])

    def next(self, uuid: str) -> Message | Streamed | StreamCut | None:
        """Return the next event of a followed agent; None when there is none yet."""
        with self._lock:
            events = self._events.get(uuid)
            event = events.pop(0) if events else None
        return Streamed(uuid, "".join(event[1]), event[0]) if isinstance(event, tuple) else event

    def give_back(self, event: Message | Streamed | StreamCut) -> None:
        """Put an event back that `next` has returned, before all others."""
        kept: AgentEvent = (event.kind, [event.text]) if isinstance(event, Streamed) else event
        with self._lock:
            self._events.setdefault(event.agent_uuid, []).insert(0, kept)

    def news_of(self, uuid: str) -> AgentNews | None:
        """Return all news of an agent; None when there are none."""
        with self._lock:
            if not (events := self._events.pop(uuid, None)):
                return None
            ended = uuid in self._ended
            self._ended.discard(uuid)
        messages = [event for event in events if isinstance(event, Message)]
        return AgentNews(messages, ended, [event for event in events if isinstance(event, tuple)])

    def kept(self) -> list[PromptKept]:
        """Return the prompts that wait for CONT and are new since the last call."""
        with self._lock:
            kept, self._kept = self._kept, []
            return kept

    def troubles(self, patient: bool = False) -> list[SystemTrouble]:
        """Return the news about the store, the host and the tools; ``patient`` leaves out the tools, which can wait."""
        with self._lock:
            kept: list[SystemTrouble]
            kept = [each for each in self._troubles if patient and isinstance(each, ToolTrouble)]
            new = [each for each in self._troubles if each not in kept]
            self._troubles = kept
            return new

    def await_outcome(self, agent: AgentRef, number: int, outcome: Future[Reply]) -> None:
        """Add an event of kind `SETTLED` when the outcome is known, after all other events of the turn."""
        settled = Message(agent.uuid, number, SETTLED, "", NO_DATA, 0)

        def wait() -> None:
            if isinstance(outcome_of_future(outcome), Reply | ProviderError | TurnInterrupted | NoHost):
                self._subscription.add(settled)  # after the messages of the turn, which were published before
            else:
                self.hear(settled)  # the system is closed, or the agent gone: nothing else will come
            self.changed()

        threading.Thread(target=wait, name="ikigai-shell-wait", daemon=True).start()

    def _keep(self, event: SystemTrouble | PromptKept) -> None:
        """Store an event for the person. The caller does not hold the lock."""
        with self._lock:
            if isinstance(event, PromptKept):
                self._kept.append(event)
            else:
                self._troubles.append(event)

    def _add_piece(self, event: Streamed) -> None:
        events = self._events.setdefault(event.agent_uuid, [])
        if events and isinstance(last := events[-1], tuple) and last[0] == event.kind:
            last[1].append(event.text)
        else:
            events.append((event.kind, [event.text]))

    def _cut(self, event: StreamCut) -> None:
        uuid = event.agent_uuid
        events = [event for event in self._events.pop(uuid, ()) if not isinstance(event, tuple)]
        if uuid in self._followed:
            self._ended.add(uuid)
            self._events[uuid] = [*events, event]

    def _add(self, message: Message) -> None:
        uuid, ends = message.agent_uuid, message.kind in BOUNDARIES
        if uuid not in self._followed:
            if ends:
                self._events.pop(uuid, None)
            return
        events = self._events.setdefault(uuid, [])
        events.append(message)
        if self._most is None:
            return
        if ends:
            self._ended.add(uuid)
        if ends or len(events) > self._most:
            messages = [event for event in events if isinstance(event, Message)]
            pieces = [event for event in events if isinstance(event, tuple) and not ends]
            self._events[uuid] = [*messages[-self._most :], *pieces]


class Questions:
    """The calls that wait for approval, each with a number. Thread-safe."""

    def __init__(self, approvals: Approvals) -> None:
        self._approvals = approvals
        self._numbers: dict[tuple[str, int, str], int] = {}
        self._shown: set[int] = set()
        self._numbering = threading.Lock()

    def open(self) -> dict[int, PendingCall]:
        """Return the open questions by number, in order."""
        calls = {}
        for call in self._approvals.pending():
            key = (call.agent, call.reply, call.id)
            with self._numbering:
                number = self._numbers.setdefault(key, len(self._numbers) + 1)
            calls[number] = call
        return dict(sorted(calls.items()))

    def news(self) -> dict[int, PendingCall]:
        """Return the questions that were not shown yet, by number."""
        new = {number: call for number, call in self.open().items() if number not in self._shown}
        self._shown.update(new)
        return new

    def was_shown(self, number: int) -> bool:
        """Return whether `news` has returned the question with this number before."""
        return number in self._shown

    def show_again(self, agent: str) -> bool:
        """Count the open questions of an agent as new; return whether the agent has open questions."""
        numbers = {number for number, call in self.open().items() if call.agent == agent}
        self._shown -= numbers
        return bool(numbers)

    def choose(self, number: int | None, current: str) -> tuple[int, PendingCall]:
        """Return the question with a number; without a number, the first of the current agent, or the only one.

        Raises `BadInput` when there is no such question, or it is not clear which.
        """
        questions = self.open()
        if not questions:
            raise BadInput("No call waits for approval.")
        if number is not None:
            if number not in questions:
                raise BadInput(f"No call waits under number {number}; /approvals lists those that do.")
            return number, questions[number]
        mine = [pair for pair in questions.items() if pair[1].agent == current]
        if not mine and len(questions) > 1:
            raise BadInput(f"{len(questions)} calls of other agents wait: give a number; /approvals lists them.")
        return (mine or list(questions.items()))[0]

    def decide(self, call: PendingCall, approved: bool, *, always: str = "", reason: str = "") -> bool:
        """Approve or deny a call; return, after the commit, whether it was still undecided."""
        if approved:
            return self._approvals.approve(call, always=always or False, by=person())
        return self._approvals.deny(call, reason, by=person())


class Words:
    """The texts and commands that a person has sent to busy agents, until the agents take them up. Thread-safe.

    A waiting command is in memory, or a row for another process. Only the process where the command waits can withdraw
    it, so a command that has begun is never reported as withdrawn.
    """

    def __init__(self) -> None:
        self._said: list[tuple[str, str, Future[Any]]] = []  # a `Receipt` of a word, a `PromptReply`, or of a command
        self._saying = threading.Lock()

    def commands(self, uuid: str) -> list[str]:
        """Return the lines of commands that wait for the end of an agent's turn, oldest first."""
        return [line for agent, line, done in self._said if agent == uuid and _is_command(done) and not done.done()]

    def say(self, agent: AgentRef, text: str) -> Receipt:
        """Send a steering message to an agent, and remember it. Raises the errors of `AgentRef.steer`."""
        receipt = agent.steer(text)
        self.keep(agent, text, receipt)
        return receipt

    def prompt(
        self,
        agent: AgentRef,
        text: str,
        attach: Sequence[Attachable] = (),
        changed: Callable[[], object] = lambda: None,
    ) -> "PromptReply":
        """Prompt an agent, as the function `say` does, and remember the prompt. A busy agent answers after its turn."""
        reply = say(agent, text, attach, changed)
        self.keep(agent, text, reply)
        return reply

    def awaits(self, uuid: str) -> bool:
        """Return whether a prompt that was sent here is not answered yet."""
        said = self._said
        return any(entry[0] == uuid and isinstance(entry[2], PromptReply) and not entry[2].done() for entry in said)

    def take_back(self, uuid: str) -> list[str]:
        """Withdraw the steering messages that an agent has not read; return their texts in order.

        Raises the errors of `Receipt.withdraw`.
        """
        with self._saying:
            mine = [entry for entry in self._said if entry[0] == uuid]
            self._said = [entry for entry in self._said if entry[0] != uuid or not isinstance(entry[2], Receipt)]
        return [text for _, text, receipt in mine if isinstance(receipt, Receipt) and receipt.withdraw()]

    def take_back_latest(self, agent: AgentRef) -> str | None:
        """Withdraw the latest prompt, steering message or command that waits for an agent; return its text, or None.

        The text or command may have been sent before this process started. Raises `StoreError`.
        """
        with self._saying:
            mine = [(text, said) for uuid, text, said in self._said if uuid == agent.uuid and not said.done()]
        commands = [*mine]
        while commands and _is_command(commands[-1][1]):  # what was given since the latest text
            text, done = commands.pop()
            if agent.system._take_back(agent.uuid, done):
                return text
        if (taken := self._withdraw_latest(agent)) is not None:
            return taken
        return next((text for text, done in reversed(commands) if self._takes_back(agent, done)), None)

    def _takes_back(self, agent: AgentRef, done: Future[Any]) -> bool:
        return _is_command(done) and agent.system._take_back(agent.uuid, done)

    def _withdraw_latest(self, agent: AgentRef) -> str | None:
        """Withdraw the latest prompt or steering message that waits in the database; return its text, or None."""
        system = agent.system
        prompts: tuple[NewPrompt, ...] = system._store.read(lambda tx: waiting_prompts(tx, agent.uuid))
        for waiting in reversed(prompts):
            if system._writer.perform(WithdrawPrompt(agent.uuid, waiting.mail)):
                with self._saying:
                    mine = [said for uuid, _, said in self._said if uuid == agent.uuid]
                for said in mine:
                    if isinstance(said, Receipt | PromptReply) and said.stored_as == waiting.mail:
                        said.settle(Withdrawn("The prompt was withdrawn.", agent.uuid))
                taken: str = waiting.text
                return taken
        return None

    def keep(self, agent: AgentRef, text: str, said: Future[Any]) -> None:
        """Remember a text with its receipt or reply, or a command line with its future, until the future is done."""
        with self._saying:
            self._said = [*(entry for entry in self._said if not entry[2].done()), (agent.uuid, text, said)]


def _is_command(said: Future[Any]) -> bool:
    return not isinstance(said, Receipt | PromptReply)


def is_busy(agent: AgentRef) -> bool:
    """Return whether an agent has a turn in progress, even if it is stopped or waits for a person."""
    record = agent.record
    if record.status == Status.STOPPED:
        actor = agent.system._target(agent.uuid)
        return bool(record.turn) and (not isinstance(actor, AgentActor) or actor.state.phase in WORKING)
    state = agent.system.state_of(record)
    return record.status == Status.RUNNING and state != Phase.IDLE and not is_interrupted(state)


def reads_at_once(agent: AgentRef) -> bool:
    """Return whether a person's text should steer the agent, because it is in a turn that continues."""
    record = agent.record
    return bool(record.turn) and record.status == Status.RUNNING and is_working(agent.system.state_of(record))


class PromptReply(Future[Reply]):
    """The reply to a prompt of a person. `stored` settles when the prompt is in the database, so it cannot be lost."""

    def __init__(self, agent: str, changed: Callable[[], object]) -> None:
        super().__init__(agent)
        self.stored: Future[int] = _Told(changed)
        """The mail that the prompt waits as, by number, once it is in the database; 0 when it waits no more, or the
        reply says why it cannot be stored.
        """

    @property
    def stored_as(self) -> int:
        """Return the number of the mail that the prompt became; 0 if it is not stored yet, or not as a mail."""
        return self.stored.get() if self.stored.done() else 0

    def settle(self, value: Any) -> None:
        super().settle(value)
        self.stored.settle(0)


class _Told(Future[int]):
    """A future that calls a function when it is settled."""

    def __init__(self, changed: Callable[[], object]) -> None:
        super().__init__()
        self._changed = changed

    def settle(self, value: Any) -> None:
        super().settle(value)
        self._changed()


def say(
    agent: AgentRef, text: str, attach: Sequence[Attachable] = (), changed: Callable[[], object] = lambda: None
) -> PromptReply:
    """Prompt an agent for a person. The prompt is stored at once, even if the agent is busy.

    Args:
        agent: the agent.
        text: the prompt; not blank.
        attach: the attachments, as for `AgentRef.prompt`.
        changed: called on any thread when the prompt is stored. It must not wait.

    Raises:
        IkigaiError: what `AgentRef.prompt` raises.
    """
    said = prompt_text(text)
    data, blobs = data_of(None, attach)
    reply = PromptReply(agent.uuid, changed)
    agent.system._tell(agent.uuid, Prompt(said, reply, data=data, blobs=blobs, stored=reply.stored))
    return reply


def take_in(system: System, timeout: float) -> None:
    """Wait until the agents of this process have handled their messages, at most this many seconds.

    Messages that they have not begun by that time wait, and are counted in the statistics.
    """
    waited = [heard for actor in system._processes if (heard := actor.heard()) is not None]
    until = monotonic() + timeout
    with suppress(TimedOut):
        for heard in waited:
            heard.get(timeout=max(0.0, until - monotonic()))


def unfinished(events: list[AgentEvent]) -> list[AgentEvent]:
    """Return the pieces of the answer in progress, which no message has ended."""
    pieces: list[AgentEvent] = []
    for event in events:
        if isinstance(event, tuple):
            pieces.append(event)
        elif isinstance(event, StreamCut) or event.kind in BOUNDARIES:
            pieces.clear()
    return pieces


def outcome_of_future(future: Future[Any]) -> Any:
    """Wait for a future, and return its value; if it failed with an error of this package, return the error."""
    try:
        return future.get()
    except IkigaiError as error:
        return error
