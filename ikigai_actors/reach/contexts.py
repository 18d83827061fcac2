"""Contexts and tasks: the agents that agents of other systems open by A2A, and the turns of these agents.

    reader = ContextReader(access)
    carded = reader.carded("triage")                    # the agent with a card, which a context is a fork of
    task = reader.task(carded, f"{context}.m7")         # the turn of mail 7 of the context, at this moment

A context is a child of the carded agent, and its uuid is made of the carded agent, the principal and the first
message's id. So the id of its first task, ``CONTEXT.m0``, is known before the child is born, and a second birth for the
same message is impossible. A task is named by its context and the mail that it is, or by the message that opened it.

    asked       the key's row has the remote command for the birth of the context, which does not exist yet
    born        the command is answered: the context exists, and its first turn is open
    refused     the command is answered with an error: the first task is over, and no context exists
    mailed      a further task, stored as a mail that the context has not read

A crash leaves one of these states, and a repeated message finds the state under its key.
"""

import json
import re
from collections.abc import Iterator
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

from ikigai_actors.attachments import Attachment
from ikigai_actors.errors import AgentNotFound, BadInput, IkigaiError, TurnInterrupted
from ikigai_actors.reach.access import Access
from ikigai_actors.reach.turns import MAIL, REQUEST, TURN, TurnHandle, first_turn
from ikigai_actors.reach.views import scrollback_of
from ikigai_actors.records.agents import registry
from ikigai_actors.records.agents.identity import derived_agent_uuid, is_agent_uuid
from ikigai_actors.records.agents.registry import AgentRecord
from ikigai_actors.records.log.heads import heads_of, section
from ikigai_actors.records.mail.prompts import ends_as_it_begins, prompt_times, waiting_prompts
from ikigai_actors.records.messages.cards import AgentCard
from ikigai_actors.records.messages.messages import Kind, Message
from ikigai_actors.records.once import kept_answer
from ikigai_actors.records.outbox.pushed_tasks import A2A_ORIGIN as A2A_ORIGIN
from ikigai_actors.records.outbox.pushed_tasks import task_opened_by
from ikigai_actors.records.questions.questions import open_questions
from ikigai_actors.store.base import Transaction
from ikigai_actors.system.questions import WaitingQuestion
from ikigai_actors.system.remote.turn import TurnEnd

MOST_CONTEXTS = 100
"""The most contexts of an agent whose tasks are listed; the youngest contexts come first."""

MOST_TASKS = 500
"""The most tasks that are listed."""

_TASK = re.compile(rf"([^.]+)\.([{MAIL}{TURN}])([0-9]{{1,15}})")
_PAGE = 200


class CardedAgent(NamedTuple):
    """An agent with a card, which describes it to agents of other systems."""

    record: AgentRecord
    card: AgentCard


class TaskName(NamedTuple):
    """The id of a task: its context, and the mail or message of its turn."""

    context: str
    kind: str
    number: int

    def __str__(self) -> str:
        return f"{self.context}.{self.kind}{self.number}"


class SentMessage(NamedTuple):
    """A message of a client of A2A, checked and parsed."""

    id: str
    context: str
    task: str
    text: str
    blobs: tuple[Attachment, ...]
    answer: Any
    """The data of a message that has no text, as an answer to a form; else its text."""


class ContextTask(NamedTuple):
    """A task at one moment: its turn, its outcome, and the questions that it waits for."""

    name: TaskName
    at: int
    """The time, in milliseconds since 1970 (UTC), at which the task came into this state."""
    prompt: Message | None = None
    """The message that opened the turn of the task; None before."""
    end: TurnEnd | IkigaiError | None = None
    """The outcome of the task; None while the task is open."""
    is_paused: bool = False
    """Whether the task waits for its budget."""
    questions: tuple[WaitingQuestion, ...] = ()
    """The questions that the task waits for, the oldest first."""


def message_name(carded: str, principal: str, message: str) -> str:
    """Return the name of a client's message, which is also the uuid of a context that the message opens."""
    return derived_agent_uuid(json.dumps([A2A_ORIGIN, carded, principal, message]))


def message_key(name: str) -> str:
    """Return the key under which a message is carried out once, from the name of the message."""
    return f"{A2A_ORIGIN} {name}"


def no_task(text: str) -> BadInput:
    """Return the error for an id that names no task; a task out of reach gets the same error."""
    return BadInput(f"There is no task {text[:80]!r}: use an id that this agent gave.")


class ContextReader:
    """Reads the contexts and tasks of the agents in reach."""

    def __init__(self, access: Access) -> None:
        self._access, self._client = access, access.client

    def carded(self, text: str) -> CardedAgent:
        """Return the agent that a text names. Raises `AgentNotFound`, also for an agent without a card."""
        record = self._access.find(text)
        card = scrollback_of(self._client, record.uuid).settings().get("card")
        if card is None or not record.living:
            raise registry.nobody_called(text)
        return CardedAgent(record, card)

    def context(self, carded: CardedAgent, uuid: str) -> AgentRecord | None:
        """Return a context of an agent; None if the context is not born yet. Raises `AgentNotFound`."""
        if is_agent_uuid(uuid):
            try:
                record = self._access.find(uuid)
            except AgentNotFound:
                if self._client.read(lambda tx: _birth(tx, carded.record.uuid, uuid)) is None:
                    raise
                return None
            if self._client.read(lambda tx: _is_context(tx, record, carded.record.uuid)):
                return record
        raise registry.nobody_called(uuid)

    def name(self, carded: CardedAgent, text: str) -> TaskName:
        """Return the parsed id of a task. Raises `BadInput` if there is no such task in reach."""
        parts = _TASK.fullmatch(text)
        if parts is None:
            raise no_task(text)
        try:
            self.context(carded, parts[1])
        except AgentNotFound:
            raise no_task(text) from None
        return TaskName(parts[1], parts[2], int(parts[3]))

    def handle(self, carded: CardedAgent, name: TaskName) -> TurnHandle:
        """Return the handle of a task's turn. Raises `BadInput`."""
        if name[1:] != (MAIL, 0):
            return TurnHandle(*name)

        def read(tx: Transaction) -> TurnHandle | None:
            if registry.some(tx, [name.context]):
                return first_turn(tx, name.context)[0]
            return _birth(tx, carded.record.uuid, name.context)

        if (handle := self._client.read(read)) is None:
            raise no_task(str(name))
        return handle

    def task(self, carded: CardedAgent, name: TaskName) -> ContextTask:
        """Return the present state of a task. Raises `BadInput` if there is no such task."""
        handle = self._access.turns.settled(self.handle(carded, name))
        seen = self._access.turns.seen(handle)
        opening = 0 if handle.kind == REQUEST else self._access.turns.opening(handle)
        prompt, at = self._client.read(lambda tx: _times(tx, handle, opening, seen.position))
        questions = self._questions(name.context) if seen.is_open else ()
        at = max([at, *(question.row.asked_at for question in questions)])
        end = seen.end
        if end is None and not opening and self._is_canceled(handle):
            end = TurnInterrupted("The turn was interrupted before it began.", handle.agent)
        is_paused = seen.is_open and seen.record.waits_for is not None
        return ContextTask(name, at, prompt, end, is_paused, questions)

    def listed(self, carded: CardedAgent, context: str | None) -> list[ContextTask]:
        """Return the latest tasks of a context, or of an agent's latest contexts, each in its present state."""
        contexts = self._contexts(carded) if context is None else [context]
        names = (name for each in contexts for name in self._names(each))
        return [self.task(carded, name) for name in islice(names, MOST_TASKS)]

    def _names(self, context: str) -> Iterator[TaskName]:
        """Iterate over the names of a context's tasks, the latest first; reads the database while iterating."""
        for mail in reversed(self._client.read(lambda tx: waiting_prompts(tx, context))):
            yield TaskName(context, MAIL, mail.mail)
        heads = self._client.read(lambda tx: heads_of(tx, [context]))
        fork, end = (self._access.find(context).fork_message_id, heads[0].position) if heads else (0, 0)
        while end > fork:
            start = max(fork, end - _PAGE)
            for message in reversed(self._client.read(partial(section, uuid=context, start=start, end=end))):
                if message.kind == Kind.USER:
                    yield _name_of(message)
            end = start

    def _contexts(self, carded: CardedAgent) -> list[str]:
        """Return the uuids of an agent's latest contexts, the youngest first."""

        def read(tx: Transaction) -> list[str]:
            contexts = list[str]()
            for record in reversed(registry.oldest_first(registry.children(tx, carded.record.uuid))):
                if len(contexts) < MOST_CONTEXTS and _is_context(tx, record, carded.record.uuid):
                    contexts.append(record.uuid)
            return contexts

        return self._client.read(read)

    def _is_canceled(self, handle: TurnHandle) -> bool:
        """Return whether a turn that has not begun will end as soon as it begins."""
        return handle.kind == MAIL and self._client.read(lambda tx: ends_as_it_begins(tx, handle.agent, handle.number))

    def _questions(self, agent: str) -> tuple[WaitingQuestion, ...]:
        if not any(row.agent == agent for row in self._client.read(open_questions)):
            return ()
        return tuple(each for each in self._access.system.questions.pending() if each.agent == agent)


def _birth(tx: Transaction, carded: str, context: str) -> TurnHandle | None:
    """Return the handle of the first turn of a requested context; None if the context was not requested."""
    did = kept_answer(tx, message_key(context)) or {}
    is_ours = did.get("agent") == carded and "request" in did
    return TurnHandle(carded, REQUEST, did["request"]) if is_ours else None


def _is_context(tx: Transaction, record: AgentRecord, carded: str) -> bool:
    """Return whether a child was created by an A2A message."""
    if record.parent_uuid != carded:
        return False
    try:
        handle, _ = first_turn(tx, record.uuid)
    except BadInput:
        return False
    [opening] = section(tx, record.uuid, handle.number - 1, handle.number)
    return A2A_ORIGIN in opening.data.get("origin", ())


def _name_of(message: Message) -> TaskName:
    turn = task_opened_by(message)
    return TaskName(message.agent_uuid, turn[0], int(turn[1:]))


def _times(tx: Transaction, handle: TurnHandle, opening: int, end: int) -> tuple[Message | None, int]:
    """Return the message that opened a turn, and the time of the turn's latest change of state."""
    if not opening:
        times = prompt_times(tx, handle.agent, handle.number) if handle.kind == MAIL else None
        return None, 0 if times is None else times.created_at
    opened = section(tx, handle.agent, opening - 1, opening)
    ended = section(tx, handle.agent, end - 1, end) if end else []
    latest = [*opened, *ended]
    return (opened[0] if opened else None), latest[-1].created_at if latest else 0
