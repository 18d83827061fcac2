"""Assembles an agent's history to a request for a model. The request is always valid, whatever the history.

    turns = Turns(None, "anthropic:claude-sonnet-5-5", sent=set())
    for message in conversation:
        turns.add(message)
    request = assemble(turns.finish(), settings, agent=uuid, name=None, model="anthropic:claude-sonnet-5-5")

Pure: the same history gives the same request. `agent/assembly.py` keeps the passages beside the logs, so that each
message is converted once. The rules are:

- Roles alternate; the first and the last message are the user's. A placeholder fills in where the history has none.
- Each call is answered in the very next user message: results first, in the order of the calls, those of ``fork`` last,
  so that parent and child share everything before it. A call without a result gets one that says why; a result that
  answers no call of the last reply is dropped; of two results the first counts. An error has text alone, as the API
  wants it: pictures that came with it follow the results, and then prompts and mail lines.
- Thinking is resent unaltered, and only to the model that made it. It never ends a message (the API refuses that).
  Text and calls are sent to all; what only one service understands, to models of that service.
- If a service takes no more attachments, references replace the oldest ones. An attachment that is too large for the
  service becomes a line of text.
- A summary begins with its text, as a block of the user's that says which messages it replaces, and then has the open
  prompt. The messages after the summary are unchanged: a summary keeps whole steps.
- Blank text and empty messages are left out, and the neighbours of an empty message are joined.
- Joining messages only appends blocks. Take two positions of a history at which no call waits for its result, with no
  clear or rewind between: the blocks of the earlier one are a prefix of the later one's (the last placeholder apart).
  A provider's prompt cache depends on that.
"""

import re
from collections.abc import Container, Mapping, Sequence
from typing import Any

from ikigai_actors.agent.turn.calls import FORK
from ikigai_actors.agent.turn.elision import text_to_model
from ikigai_actors.agent.turn.found_tools import FOUND_SKILLS, named_in
from ikigai_actors.agent.turn.shown_attachments import Said, ShownAttachments, attachments_of
from ikigai_actors.agent.turn.skills import SKILL, system_of
from ikigai_actors.providers.attachment_limits import AttachmentLimits
from ikigai_actors.providers.base import GO_ON, OPEN_PROMPT, OPENING, KeptReply, Request, ToolCall
from ikigai_actors.providers.blocks import (
    Block,
    CallBlock,
    ResultBlock,
    TextBlock,
    ThinkingBlock,
    attached,
    read_block,
)
from ikigai_actors.providers.conversation import MessageForms, Passage, extended
from ikigai_actors.records.messages.blob_references import blobs_of
from ikigai_actors.records.messages.messages import ATTACHMENTS_KEY, Kind, Message
from ikigai_actors.records.messages.reply_data import INTERRUPTED, new_call_id
from ikigai_actors.records.messages.settings import SETTINGS
from ikigai_actors.records.messages.skills_beside import SKILLS, skills_beside
from ikigai_actors.records.messages.steered import as_word, words_beside

NO_BLOBS: Mapping[str, bytes] = {}

NOT_RUN = "not run in this process"
"""The result of a call that has no result in the history."""
NO_OUTPUT = "(no output)"
"""The result of a call that returned no text. The API refuses an error without text."""
_KEPT = {"system", *(name for name, setting in SETTINGS.items() if not setting.of_the_model)}
"""The settings that are no parameters of a request. The system prompt is one of them, since a request has a field for
it."""
_CALL_ID = re.compile(r"[a-zA-Z0-9_-]+")
_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_-]")
_NAME_LENGTH = 128


def assemble(
    conversation: Passage,
    settings: Mapping[str, Any],
    *,
    agent: str,
    name: str | None,
    model: str,
    tools: Sequence[Mapping[str, Any]] = (),
    shared: int = 0,
    output: Mapping[str, Any] | None = None,
    blobs: Mapping[str, bytes] = NO_BLOBS,
    once: bool = False,
    cut_by_budget: bool = False,
    kept: KeptReply | None = None,
) -> Request:
    """Make the request for an agent's next step.

    Args:
        conversation: The result of `Turns.finish`.
        settings: The settings in force. ``system`` is the system prompt, and the catalogue of ``skills`` follows it.
            Of the others those are passed on that go to the model (`records.settings.Setting.of_the_model`), and those
            that this version does not know.
        agent: The agent's uuid, for the provider.
        name: The agent's name, if it has one, for the provider.
        model: The model that will answer, ``provider:model`` or ``provider``.
        tools: Descriptions of the tools on offer.
        shared: `Request.shared`.
        output: `Request.output`.
        blobs: `Request.blobs`.
        once: `Request.once`.
        cut_by_budget: `Request.cut_by_budget`.
        kept: `Request.kept`.

    Returns:
        A request that the Messages API accepts. Its blocks share data with the log, so do not change them.
    """
    return Request(
        agent=agent,
        name=name,
        model=model.partition(":")[2],
        system=system_of(settings),
        messages=MessageForms(conversation, blobs),
        tools=tuple(tools),
        settings={key: value for key, value in settings.items() if key not in _KEPT},
        shared=shared,
        output=output,
        blobs=blobs,
        once=once,
        cut_by_budget=cut_by_budget,
        kept=kept,
    )


def _name(name: str) -> str:
    return _NOT_IN_NAMES.sub("_", name)[:_NAME_LENGTH] or "_"


class Turns:
    """Converts the messages of a history, one by one, to the passages of a conversation for a model.

    The last message of the user stays open while calls wait for results.
    """

    def __init__(
        self,
        last: Passage | None,
        model: str,
        sent: Container[str],
        elide: int = 0,
        limits: AttachmentLimits | None = None,
        hidden: int = 0,
        gone: Container[str] | None = None,
    ) -> None:
        """Continue a chain of passages.

        Args:
            last: The chain so far; None for a conversation that begins.
            model: The model that will answer; it gets its own thinking back only.
            sent: The ids of the calls in the chain, as they were sent: the API wants them unique in a request.
            elide: Long results before this position are shown by reference (`agent.turn.elision`).
            limits: The limits of the service for attachments; None if they are not known.
            hidden: How many of the first attachments are shown by reference (`agent.turn.shown_attachments`).
            gone: The tools to which results must not refer any more; None if results never refer to tools.
        """
        self.attached = ShownAttachments(limits, last, hidden)
        """The attachments that are shown."""
        self.last = last
        """The chain so far."""
        self._model, self._sent, self._elide, self._gone = model, sent, elide, gone
        self._open: dict[str, tuple[str, str]] = {}  # id in the log → id in the request and name, of the last reply
        if last is not None:
            self._open = {own: (sent_as, name) for own, sent_as, name in last.calls}
        self._results: dict[str, Message] = {}  # id in the log → result
        self._said: list[Said] = []  # prompts and mail lines that follow the results

    def open_with(self, summary: Message | None, prompt: Message | None) -> None:
        """Begin a conversation with a summary in place of all earlier messages, and its open prompt.

        See `records.log.Log.opening`.
        """
        if summary is not None:
            self._said.append((summary, TextBlock(_summary_of(summary))))
            self._said += _skills_of(summary)
        if prompt is not None and prompt.content.strip():
            self._said += attachments_of(prompt)
            self._said.append((prompt, TextBlock(f"{OPEN_PROMPT}\n\n{prompt.content}")))
        if summary is not None and prompt is not None:
            self._said += [(summary, _word(word["text"], word.get("from"))) for word in words_beside(summary)]
        self._close_user()

    @property
    def settled(self) -> bool:
        """Return whether the chain contains all added messages, so that others may continue it.

        False while added messages wait for the end of the user's message.
        """
        return not (self._results or self._said)

    def add(self, message: Message) -> None:
        """Add a message of the history. Kinds that models do not see are ignored."""
        match message.kind:
            case Kind.USER | Kind.STEER if "sender" in message.data:
                self._said.append((message, _word(message.content, as_word(message)["from"])))
            case Kind.USER | Kind.STEER | Kind.MAIL | Kind.REPAIR:
                if ATTACHMENTS_KEY in message.data:
                    self._said += attachments_of(message)
                if message.content.strip():
                    self._said.append((message, TextBlock(message.content)))
                if SKILLS in message.data:
                    self._said += _skills_of(message)
            case Kind.CONTEXT:
                text = tagged("context", {"from": str(message.data.get("hook") or "hook")}, message.content)
                self._said.append((message, TextBlock(text)))
            case Kind.MERGE:
                self._said.append((message, TextBlock(_merged(message))))
            case Kind.TOOL_RESULT:
                call_id = str(message.data.get("tool_use_id"))
                if call_id in self._open:
                    self._results.setdefault(call_id, message)
            case Kind.ASSISTANT:
                self._add_reply(message)
                return
        if len(self._results) == len(self._open):  # else a result may come, and it is before what was said
            self._close_user()

    def finish(self) -> Passage:
        """Return the whole conversation, which ends with a message of the user. Nothing can be added after this."""
        self._close_user()
        if self.last is None or self.last.role == "assistant":
            self._append("user", [TextBlock(GO_ON)])
        assert self.last is not None
        return self.last

    def _add_reply(self, message: Message) -> None:
        calls = message.calls
        sent = self._ids_to_send(message.id, calls)
        blocks = self._blocks_to_send(message, calls, sent)
        if not blocks:
            return  # as if it were not there: calls before it stay open
        self._close_user()
        if self.last is None:
            self._append("user", [TextBlock(OPENING)])
        self._append(
            "assistant", blocks, [(call.id, call_id, call.name) for call_id, call in zip(sent, calls, strict=True)]
        )
        self._open = {call.id: (call_id, call.name) for call_id, call in zip(sent, calls, strict=True)}

    def _blocks_to_send(self, message: Message, calls: Sequence[ToolCall], sent: Sequence[str]) -> list[Block]:
        """Return the blocks of a reply to be sent: without blank text, blocks for other models, or final thinking."""
        data = message.data
        made_by = str(data.get("model") or "")
        stored: Sequence[Mapping[str, Any]] = [{"type": "text", "text": message.content}]
        if data.get("stop_reason") != INTERRUPTED:
            stored = data.get("blocks") or [*stored, *({"type": "tool_use"} for _ in calls)]
        uses = iter(zip(sent, calls, strict=True))
        read = [
            self._use(block, *next(uses), made_by)
            if block.get("type") == "tool_use"
            else read_block(block, made_by, self._model)
            for block in stored
        ]
        blocks = [block for block in read if block is not None]
        while blocks and isinstance(blocks[-1], ThinkingBlock):
            blocks.pop()
        return blocks

    def _use(self, stored: Mapping[str, Any], call_id: str, call: ToolCall, made_by: str) -> CallBlock:
        """Return the block of a call: as its own service made it, unless the API would refuse that."""
        name, arguments = _name(call.name), call.input if isinstance(call.input, Mapping) else {}
        if made_by.partition(":")[0] != self._model.partition(":")[0]:
            return CallBlock(call_id, name, arguments)
        same = stored.get("id") == call_id and stored.get("name") == name and isinstance(stored.get("input"), Mapping)
        own = stored if same else {**stored, "type": "tool_use", "id": call_id, "name": name, "input": arguments}
        return CallBlock(call_id, name, arguments, own)

    def _ids_to_send(self, message_id: int, calls: Sequence[ToolCall]) -> list[str]:
        """Return the ids of the calls, as the model made them.

        An id that the API would refuse is replaced by one from its position.
        """
        sent: list[str] = []
        for position, call in enumerate(calls):
            call_id = call.id
            if not _CALL_ID.fullmatch(call_id) or self._is_taken(call_id, sent):
                call_id = new_call_id(message_id, position, lambda identity: self._is_taken(identity, sent))
            sent.append(call_id)
        return sent

    def _is_taken(self, call_id: str, beside: Sequence[str]) -> bool:
        return call_id in beside or call_id in self._sent

    def _close_user(self) -> None:
        """Add the user's side: a result for each call of the last reply, then the messages since."""
        if not (self._open or self._said):
            return
        forks_last = sorted(self._open, key=lambda call_id: self._open[call_id][1] == FORK)  # sorted() is stable
        answers = [self._answer(*self._open[call_id], self._results.get(call_id)) for call_id in forks_last]
        if answers or self._said:
            results = [said for answer in answers for said in answer[:1]]
            beside = [said for answer in answers for said in answer[1:]]
            self._append("user", self.attached.sent([*results, *beside, *self._said]))
        self._open, self._results, self._said = {}, {}, []

    def _answer(self, call_id: str, name: str, message: Message | None) -> list[Said]:
        """Return the block that answers a call, and the attachments of an error, which must follow all answers."""
        if message is None:
            return [(None, ResultBlock(call_id, name, NOT_RUN, is_error=True))]
        text = text_to_model(message, self._elide) if message.content.strip() else NO_OUTPUT
        if not message.data.get("is_error"):
            beside, gone = tuple(map(attached, blobs_of(message))), self._gone
            names = () if gone is None else tuple(missing for missing in named_in(message.data) if missing not in gone)
            skills = "" if gone is None else str(message.data.get(FOUND_SKILLS) or "")
            if not skills or not text.endswith(skills):
                return [(message, ResultBlock(call_id, name, text, attached=beside, found_tools=names))]
            tools = text.removesuffix(skills).strip() or NO_OUTPUT
            return [(message, ResultBlock(call_id, name, tools, found_tools=names)), (message, TextBlock(skills))]
        answer: list[Said] = [(message, ResultBlock(call_id, name, text, is_error=True))]
        if further := attachments_of(message):
            answer += [(message, TextBlock(f"What {name} gave beside its text:")), *further]
        return answer

    def _append(self, role: str, blocks: Sequence[Block], calls: Sequence[tuple[str, str, str]] = ()) -> None:
        self.last = extended(self.last, role, tuple(blocks), calls, self.attached.hidden)


def _skills_of(message: Message) -> list[Said]:
    texts = (tagged(SKILL, {"name": skill["name"]}, skill["text"]) for skill in skills_beside(message))
    return [(message, TextBlock(text)) for text in texts]


def _summary_of(message: Message) -> str:
    """Return the text of a summary, with a sentence about the messages that it replaces."""
    whose = message.data.get("name") or message.agent_uuid
    span = f"messages up to {message.data.get('keep_from', 1) - 1} of agent {whose}"
    return tagged("summary", {"of": span}, message.content)


def _word(text: str, sender: str | None) -> TextBlock:
    """Return a steering message as the model reads it: a quotation if another agent (``sender``) has sent it."""
    return TextBlock(text if sender is None else tagged("steer", {"from": sender}, text))


def _merged(message: Message) -> str:
    """Return a merge as the model reads it: a quotation that names the other agent and its messages."""
    data = message.data
    positions = ", ".join(map(str, data.get("positions") or ())) or f"{data.get('since', 0) + 1}–{data.get('head', 0)}"
    attributes = {"from": str(data.get("name") or data.get("from")), "messages": positions}
    documents = data.get("documents") or ()
    if documents:
        attributes["documents"] = ", ".join(f"{document['path']} v{document['version']}" for document in documents)
    if conflicts := [document for document in documents if document.get("other")]:
        attributes["conflicts"] = ", ".join(
            f"{conflict['path']} v{conflict['version']}, by others v{conflict['other']}" for conflict in conflicts
        )
    return tagged("merge", attributes, message.content)


def tagged(tag: str, pairs: Mapping[str, str], text: str) -> str:
    """Put a text between tags, so that it cannot contain the end tag. The model can see where the text ends."""
    attributes = "".join(f' {name}="{_escape(value)}"' for name, value in pairs.items())
    inside = re.sub(rf"<(?=\s*/\s*{tag}\b)", "&lt;", text, flags=re.IGNORECASE)
    return f"<{tag}{attributes}>\n{inside}\n</{tag}>"


def _escape(value: str) -> str:
    return value.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;").replace(">", "&gt;")
