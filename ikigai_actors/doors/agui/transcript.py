"""The messages of an agent that a client of AG-UI has, and the events that it needs next. Pure.

    transcript = WebTranscript(place=17, boundary=17, reply=0)
    transcript.piece(uuid, piece)       # a reply on its way: START and CONTENT
    transcript.message(message)         # what is missing of it: CONTENT and END

A client joins texts by the id of their message, so a reply has the same id for every client, also while the reply is
still arriving. The id is made from the position of the message after which the model was asked, which is known before
the reply is committed. A client that has another beginning under this id, from a reply that was cut off, gets the reply
under the next id.
"""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import count
from typing import Literal, NamedTuple

from ag_ui.core import (
    AssistantMessage,
    BaseEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
    ToolCallArgsEvent,
    ToolCallEndEvent,
    ToolCallResultEvent,
    ToolCallStartEvent,
)
from ag_ui.core import Message as WebMessage

from ikigai_actors.frozen import NO_DATA
from ikigai_actors.reach.replies_on_their_way import UnseenPiece
from ikigai_actors.records.messages.messages import Kind, Message
from ikigai_actors.text import storable

CUT_NOTICE = "\n\n[The reply was cut off, and begins again.]"
"""The text that ends a reply that was cut off, for a person."""


class ClientMessages(NamedTuple):
    """The messages that a client has already, according to its request."""

    texts: Mapping[str, str] = NO_DATA
    """The text of each message, by id."""
    calls: Collection[str] = ()
    """The ids of the calls that the client has."""

    @classmethod
    def of(cls, messages: Iterable[WebMessage]) -> "ClientMessages":
        """Return the messages that a request of a client contains."""
        texts = {message.id: message.content or "" for message in messages if isinstance(message.content, str | None)}
        replies = [message for message in messages if isinstance(message, AssistantMessage)]
        return cls(texts, {call.id for reply in replies for call in reply.tool_calls or ()})


class WebTranscript:
    """The messages that one client has.

    Methods return the events that are new to the client, and count them as sent.
    """

    def __init__(
        self, place: int, boundary: int, reply: int, has: ClientMessages | None = None, *, prompts: bool = False
    ) -> None:
        """Begin after a message of the log.

        Args:
            place: the message after which it begins.
            boundary: the latest message up to ``place`` that ends a reply, or comes before one.
            reply: the latest reply up to ``place``.
            has: the messages that the client has; None for none.
            prompts: whether it gets the prompts of the user. Otherwise it has them already.
        """
        self.place = place
        """The position of the latest message that the client has."""
        self.seen = (0, 0)
        """The number of the reply in progress that the client gets, and the number of its characters that it has."""
        self._boundary, self._reply, self._prompts = boundary, reply, prompts
        has = has or ClientMessages()
        self._texts, self._calls = dict(has.texts), set(has.calls)
        self._open = ""  # the id of the message that has begun and not ended

    def piece(self, agent: str, piece: UnseenPiece) -> Iterator[BaseEvent]:
        """Return the events for a new piece of a reply in progress."""
        text, is_next = storable(piece.text), piece.number == self.seen[0]
        self.seen = (piece.number, piece.at + len(piece.text))
        if is_next and self._open:
            yield from self._add(text)
        elif not is_next:
            yield from self.cut()
            if piece.at == 0 and self._boundary <= piece.follows <= self.place:
                yield from self._begin(self._free(self._name(agent), text), text)

    def cut(self) -> Iterator[BaseEvent]:
        """Return the events that end a reply which was cut off."""
        if self._open:
            yield from self._add(CUT_NOTICE)
            yield self._end()

    def message(self, message: Message) -> Iterator[BaseEvent]:
        """Return the events for the next message of the log."""
        match message.kind:
            case Kind.ASSISTANT:
                yield from self._finish(message)
                self._reply = message.id
            case Kind.RETRY:
                yield from self.cut()
            case Kind.STEER | Kind.USER if self._prompts or message.kind == Kind.STEER:
                yield from self._whole(f"{message.agent_uuid}:{message.id}", message.content, "user")
            case Kind.TOOL_RESULT:
                yield from self._result(message)
        if message.ends_pieces:
            if self._open:
                yield self._end()
            self._boundary = message.id
        self.place = message.id

    def _name(self, agent: str) -> str:
        """Return the id, for clients, of the reply that comes next."""
        return f"{agent}:{self._boundary}:reply"

    def _free(self, name: str, text: str) -> str:
        """Return the first id of a message under which the client has no text, or only a beginning of this text."""
        names = (name if number == 1 else f"{name}.{number}" for number in count(1))
        return next(name for name in names if text.startswith(self._texts.get(name, "")))

    def _begin(self, name: str, text: str, role: Literal["assistant", "user"] = "assistant") -> Iterator[BaseEvent]:
        self._open = name
        yield TextMessageStartEvent(message_id=name, role=role)
        yield from self._add(text[len(self._texts.setdefault(name, "")) :])

    def _add(self, text: str) -> Iterator[BaseEvent]:
        if text:
            self._texts[self._open] += text
            yield TextMessageContentEvent(message_id=self._open, delta=text)

    def _end(self) -> BaseEvent:
        ended, self._open = self._open, ""
        return TextMessageEndEvent(message_id=ended)

    def _whole(self, name: str, text: str, role: Literal["assistant", "user"] = "assistant") -> Iterator[BaseEvent]:
        """Yield the events for a complete message, without the part that the client has already."""
        if self._texts.get(name, "") != text:
            yield from self._begin(name, text, role)
            yield self._end()

    def _finish(self, message: Message) -> Iterator[BaseEvent]:
        """Yield the events of a committed reply: its text, then its calls.

        If the client has the beginning of the text, only the rest is sent.
        """
        text, name = message.content, self._open
        if name and text.startswith(begun := self._texts[name]):
            yield from self._add(text[len(begun) :])
            yield self._end()
        else:
            yield from self.cut()
            name = self._free(self._name(message.agent_uuid), text)
            yield from self._whole(name, text)
        for call in message.calls:
            if (known := call_id(message.id, call.id)) not in self._calls:
                self._calls.add(known)
                yield ToolCallStartEvent(tool_call_id=known, tool_call_name=call.name, parent_message_id=name)
                yield ToolCallArgsEvent(tool_call_id=known, delta=json.dumps(dict(call.input)))
                yield ToolCallEndEvent(tool_call_id=known)

    def _result(self, message: Message) -> Iterator[BaseEvent]:
        name = f"{message.agent_uuid}:{message.id}"
        if name not in self._texts:
            self._texts[name] = message.content
            known = call_id(self._reply, str(message.data.get("tool_use_id")))
            yield ToolCallResultEvent(message_id=name, tool_call_id=known, content=message.content, role="tool")


def call_id(reply: int, call: str) -> str:
    """Return the id of a call for a client, with the reply, because services number the calls of each reply from 0."""
    return f"{reply}/{call}"
