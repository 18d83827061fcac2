"""The built-in calls about an agent's own history: recall, compact."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from ikigai_actors.agent.builtin_calls.base import Argument, BuiltinCall, Given, text
from ikigai_actors.agent.turn.calls import Call, Progress, progress
from ikigai_actors.agent.turn.elision import RECALL
from ikigai_actors.agent.turn.events import Continue
from ikigai_actors.agent.turn.state import State, Step
from ikigai_actors.agent.turn.steps import advance, messages_of
from ikigai_actors.errors import BadInput
from ikigai_actors.frozen import NO_DATA
from ikigai_actors.records.agents import registry
from ikigai_actors.records.agents.words import called
from ikigai_actors.records.log.lineage import read_lineage
from ikigai_actors.records.log.log_unit import LogUnit
from ikigai_actors.records.log.stored_history import StoredHistory
from ikigai_actors.records.log.words import FoundMessage, find_in_history, find_words
from ikigai_actors.records.messages.messages import ATTACHMENTS_KEY, CONVERSATION, Kind, Message
from ikigai_actors.records.messages.replies import calls_in
from ikigai_actors.store.base import Transaction
from ikigai_actors.store.unit import LockedRows, Unit
from ikigai_actors.tools.function import LIMIT
from ikigai_actors.tools.policy import ToolTraits

MOST_FOUND = 10
"""The most messages that a query finds."""
_SHOWN = CONVERSATION | {Kind.SUMMARY.value}
"""The kinds that have a text which a model may have seen."""


class Recalled(NamedTuple):
    """The answer of `ReadMessage`: the text of one message of the agent's history, from an offset."""

    position: int
    text: str
    """The whole text of the message."""
    offset: int
    """The index of the first character that is shown."""
    attached: Sequence[Mapping[str, Any]] = ()
    """The attachments, as the data of the message has them."""


class FoundByWords(NamedTuple):
    """The answer of `FindMessages`: the messages found, and the names of the agents that wrote them."""

    hits: Sequence[FoundMessage]
    names: Mapping[str, str]
    """The names, for the model, of the agents that have written them, by uuid."""
    below: bool
    """Whether agents below were asked for."""


class RecallCall(BuiltinCall):
    """The call ``recall``: show a message of the agent's own history, or find messages by words."""

    name = RECALL
    description = (
        "Show a message of your own history again that is now summarised, or shown by reference. Everything that a "
        "summary replaces is still stored. Or find messages by words."
    )
    arguments: ClassVar = {
        "message": Argument("integer", "Its position, as given in a reference or a summary."),
        "query": Argument("string", "In place of message: words to find, several for one thing."),
        "agents": Argument("string", "For query: self, or below for all agents below you."),
        "offset": Argument("integer", "How many characters of it to skip, where it is too long for one result."),
    }

    def check(self, arguments: Given) -> None:
        super().check(arguments)
        if (arguments.get("offset") or 0) < 0:
            raise BadInput(f"recall wants offset to be 0 or more, got {arguments['offset']!r}.")
        if (arguments.get("message") is None) is (not arguments.get("query")):
            raise BadInput("recall needs message, the position of one, or query, the words to find.")
        if arguments.get("agents") not in (None, "", "self", "below"):
            raise BadInput(f"recall wants agents to be self or below, got {arguments['agents']!r}.")

    def act(self, agent: str, arguments: Given, now: int) -> Unit:
        if query := text(arguments, "query"):
            return FindMessages(agent, query, arguments.get("agents") == "below")
        return ReadMessage(agent, arguments["message"], arguments.get("offset") or 0)

    def to_model(self, answer: "Recalled | FoundByWords") -> str:
        if isinstance(answer, FoundByWords):
            lines = [f"[{answer.names[hit.agent_uuid]} {hit.position}] {hit.text}" for hit in answer.hits]
            return "\n".join(lines) or "No message has these words. Try others for the same thing."
        end = answer.offset + LIMIT
        if not (more := len(answer.text) - end) > 0:
            return answer.text[answer.offset :]
        cut = f"[cut: {more:,} more characters; {RECALL}({answer.position}, offset={end}) goes on]"
        return f"{answer.text[answer.offset : end]}\n{cut}"

    def noted(self, answer: "Recalled | FoundByWords") -> Mapping[str, Any]:
        if isinstance(answer, FoundByWords):
            return NO_DATA
        attached = {ATTACHMENTS_KEY: list(answer.attached)} if answer.attached else {}
        return {"recalled": answer.position, **attached}


class CompactCall(BuiltinCall):
    """The call ``compact``: replace the older messages by a summary that the model writes."""

    name = "compact"
    description = (
        "Have your history so far summarised, before your next step: you go on with notes in place of what was said, "
        "and with your latest steps as they are. Do so before you fork many children, or when the details of "
        "earlier steps no longer matter."
    )
    arguments: ClassVar = {"focus": Argument("string", "What matters most, and must not be lost.")}

    def begin(self, state: State, call: Call, event: Continue, now: int, tools: Mapping[str, ToolTraits]) -> Step:
        """Return the step that writes the result; after a restart, the result shows that the call was made.

        The summary is made when all calls have their results.
        """
        self.check(call.input)
        focus = text(call.input, "focus")
        result = "Your history is summarised before your next step."
        messages = messages_of(
            state.uuid, state.head, now, ((Kind.TOOL_RESULT, result, {**call.data, "compact": focus}),)
        )
        done = progress(state.calls, (call.id,), Progress.DONE)
        return Step(advance(state, messages, calls=done, focus=focus), LogUnit(state.uuid, messages))


CALLS = (RecallCall(), CompactCall())


@dataclass(frozen=True, slots=True)
class FindMessages(Unit):
    """The unit that finds messages by words, in the agent's history or in those of all agents below it.

    Answered with `FoundByWords`. Raises `BadInput` for a query without words.
    """

    agent: str
    query: str
    below: bool

    def write(self, tx: Transaction, locked: LockedRows) -> FoundByWords:
        if self.below:
            hits = find_words(tx, registry.uuids_below(tx, self.agent), self.query, MOST_FOUND)
        else:  # what the turn in progress says is before the model
            turn = registry.get(tx, self.agent).turn
            hits = find_in_history(tx, self.agent, self.query, MOST_FOUND, turn - 1 if turn else None)
        writers = registry.some(tx, {hit.agent_uuid for hit in hits})
        return FoundByWords(hits, {writer.uuid: called(writer.uuid, writer.name) for writer in writers}, self.below)


@dataclass(frozen=True, slots=True)
class ReadMessage(Unit):
    """The unit that reads a message of an agent's history for the call ``recall``; answered with `Recalled`.

    The message may be summarised, but not cleared or rewound. Raises `BadInput` where there is no such message.
    """

    agent: str
    position: int
    offset: int

    def write(self, tx: Transaction, locked: LockedRows) -> Recalled:
        history = StoredHistory(tx, read_lineage(tx, self.agent))
        head = history.head
        if not 0 < self.position <= head:
            raise BadInput(f"There is no message {self.position}: your history has messages 1 to {head}.")
        message = None
        if history.view().shows(self.position, head):
            message = next(iter(history.between(self.position - 1, self.position)), None)
        if message is None:
            raise BadInput(
                f"Message {self.position} is no part of your history any more: it was cleared or taken back."
            )
        if message.kind not in _SHOWN:
            raise BadInput(f"Message {self.position} has nothing to show: it is of kind {message.kind}.")
        attached = () if self.offset else message.data.get(ATTACHMENTS_KEY) or ()
        return Recalled(self.position, _text_of(message), self.offset, attached)


def _text_of(message: Message) -> str:
    """Return the whole text of a message; for a reply, with its calls."""
    if message.kind != Kind.ASSISTANT:
        return message.content
    calls = (
        f"{call.name}({', '.join(f'{key}={value!r}' for key, value in call.input.items())})"
        for call in calls_in(message)
    )
    return "\n".join([message.content, *calls])
