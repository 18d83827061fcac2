"""Makes agents of recorded conversations, which are requests to a model with all messages so far. Pure.

Recorders store requests, not conversations: each request has the messages so far, and the reply. So the messages of a
group of requests form a tree: requests with the same first messages share a path, and a request that was repeated or
changed is a fork.

    request 1    P A                 the path that a request has extended last is the agent;
    request 2    P A P A'            a path that differs from some message on becomes a fork of the agent
    request 3    P A P A″
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ikigai_actors.attachments import Attachment
from ikigai_actors.providers.base import Reply, ToolCall, Usage
from ikigai_actors.recordings.recording import RecordedLine, count_of, object_of, objects_in, parse_json
from ikigai_actors.recordings.tree import LinePlace, LineTree
from ikigai_actors.verbs.upkeep.draft import Draft, picture


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """A message of a recorded conversation."""

    line: RecordedLine
    role: str
    """``system``, ``user``, ``assistant`` or ``tool``."""
    text: str
    calls: tuple[ToolCall, ...] = ()
    call: str = ""
    """For a result, the id of its call; empty if unknown."""
    is_error: bool = False
    pictures: tuple[Attachment, ...] = ()
    at: int = 0
    model: str = ""
    """The model that wrote the message, as ``provider:model``; empty for other messages."""
    usage: Usage | None = None
    usd: int = 0

    @property
    def _key(self) -> str:
        calls = [[call.name, call.input] for call in self.calls]
        return json.dumps([self.role, self.text.strip(), calls, self.call], sort_keys=True, default=str)


@dataclass(slots=True)
class RecordedChat:
    """The recorded requests of one conversation."""

    name: str
    paths: list[list[ChatMessage]] = field(default_factory=list)
    """The messages of each request, with the reply."""
    _ends: set[str] = field(default_factory=set)
    _looked_at: int = 0

    def add(self, messages: Sequence[ChatMessage]) -> None:
        """Add a request. If it has only new messages, it continues the latest request."""
        said = [message for message in messages if message.role != "system"]
        before = [path for path in self.paths[-1] if path.role != "system"] if self.paths else []
        if before and said and said[0]._key != before[0]._key:
            self.paths.append([*self.paths[-1], *messages])
        else:
            self.paths.append(list(messages))

    def is_continued_by(self, messages: Sequence[ChatMessage]) -> bool:
        """Return whether these messages begin with all messages of an earlier request."""
        for path in self.paths[self._looked_at :]:
            self._ends.update(chained(path)[-1:])
        self._looked_at = len(self.paths)
        return not self._ends.isdisjoint(chained(messages))


def chained(messages: Iterable[ChatMessage]) -> list[str]:
    """Return for each message, except instructions, the hash of the conversation up to this message."""
    keys, above = list[str](), ""
    for message in messages:
        if message.role != "system":
            above = hashlib.sha256(f"{above} {message._key}".encode(errors="replace")).hexdigest()
            keys.append(above)
    return keys


def chat_drafts(
    chats: Iterable[RecordedChat], format_name: str, settings: Mapping[str, Any], models: bool
) -> list[Draft]:
    """Return an agent for each conversation, and further agents for its forks.

    Args:
        chats: the conversations.
        format_name: the name of the program that has recorded them.
        settings: the settings of agents that inherit nothing.
        models: whether to set ``model`` to the model that answered last.
    """
    drafts: list[Draft] = []
    noted = set[str]()
    for number, chat in enumerate(chats):
        drafts += _drafts(chat, number, format_name, settings, models, noted)
    return drafts


def _drafts(
    chat: RecordedChat, number: int, format_name: str, settings: Mapping[str, Any], models: bool, noted: set[str]
) -> list[Draft]:
    tree, spoken = LineTree(), dict[str, ChatMessage]()
    ends: dict[str, None] = {}
    for path in chat.paths:
        above: str | None = None
        for key, message in zip(chained(path), (message for message in path if message.role != "system"), strict=True):
            if key not in spoken:
                tree.add(key, message.line, above)
            known = spoken.get(key)
            spoken[key] = message if known is None or (known.usage is None and message.usage is not None) else known
            above = key
        if above is not None:
            ends.pop(above, None)
            ends[above] = None
    tree.link()
    leaves = set(tree.leaves(spoken))
    roots: dict[str, list[str]] = {}
    for leaf in (end for end in ends if end in leaves):
        roots.setdefault(tree.path(leaf)[0], []).append(leaf)
    drafts: list[Draft] = []

    def opens(keys: Iterable[str]) -> bool:
        return spoken[next(iter(keys))].role == "user"

    for root, of_root in roots.items():
        said = [passed for path in chat.paths for passed in path]
        systems = [message.text for message in said if message.role == "system" and message.text.strip()]
        answered = [message.model for message in said if message.model]
        own = dict(settings) | ({"system": systems[-1]} if systems else {})
        own |= {"model": answered[-1]} if models and answered else {}
        recording = spoken[root].line.of
        top = Draft(f"{format_name} {recording.name} {number} {root}", chat.name)
        file = None if recording.name in noted else recording
        noted.add(recording.name)
        top.begin(file, {"format": format_name, "conversation": chat.name}, own, spoken[root].at or number + 1)
        drafts.append(top)
        base = top.head
        _write_path(top, tree, spoken, tree.path(of_root[-1]))
        for leaf in reversed(of_root[:-1]):
            parent, at, new = tree.forked(
                tree.path(leaf), top, base, lambda keys: spoken[next(iter(keys))].role == "user"
            )
            drafts.append(Draft(f"{top.uuid} {leaf}", f"{top.name}-branch", parent=parent, fork=at))
            _write_path(drafts[-1], tree, spoken, new)
    return drafts


def _write_path(draft: Draft, tree: LineTree, spoken: Mapping[str, ChatMessage], path: Sequence[str]) -> None:
    before, start, last = draft.head, path[0], ""
    for key in path:
        message = spoken[key]
        match message.role:
            case "assistant":
                reply = Reply(
                    message.text, message.calls, "tool_use" if message.calls else "end_turn", message.usage,
                    model=message.model.partition(":")[2],
                )  # fmt: skip
                draft.reply(message.line, reply, message.model, message.at, usd=message.usd)
            case "tool":
                call = message.call if message.call in draft.waiting or not draft.waiting else ""
                draft.result(
                    message.line,
                    call or next(iter(draft.waiting), ""),
                    message.text,
                    message.at,
                    message.is_error,
                    message.pictures,
                )
            case _ if last == "user":
                draft.prompt_more(message.line, message.text, message.at, message.pictures)
            case _:
                draft.interrupt(message.at)
                before, start = draft.head, key
                draft.prompt(message.line, message.text, message.at, message.pictures)
        last = message.role
        tree.places.setdefault(key, LinePlace(draft, before, start, None if draft.is_open else draft.head))


def messages_in(line: RecordedLine, value: object, role: str = "user") -> list[ChatMessage]:
    """Return the messages in a value, in any form that services and recorders use.

    The value may be a text, a message, or a list of these; it may have messages of OpenAI, of Anthropic, of
    OpenTelemetry's conventions, and choices. Any other part is left out.

    Args:
        line: the line of the value, for errors.
        value: the value; JSON in a text is read.
        role: the role of a text without one.
    """
    if isinstance(value, str):
        try:
            parsed = parse_json(value) if value.lstrip()[:1] in ("{", "[") else None
        except (ValueError, RecursionError):
            parsed = None
        if not isinstance(parsed, list | dict):
            return [ChatMessage(line, role, value)] if value.strip() else []
        value = parsed
    if isinstance(value, list):
        if any(
            entry.get("type") in ("text", "tool_use", "tool_call") and "role" not in entry
            for entry in objects_in(value)
        ):
            return _message_in(line, {"role": role, "content": value})
        return [said for element in value for said in messages_in(line, element, role)]
    fields = object_of(value)
    for name in ("messages", "choices", "input", "output"):
        if isinstance(fields.get(name), list):
            return messages_in(line, fields[name], role)
    if isinstance(fields.get("message"), dict):
        return messages_in(line, fields["message"], role)
    return (
        _message_in(line, {"role": role, **fields})
        if fields.keys() & {"role", "content", "parts", "tool_calls"}
        else []
    )


_ROLES = {"developer": "system", "human": "user", "ai": "assistant", "model": "assistant", "function": "tool"}


def _message_in(line: RecordedLine, message: Mapping[str, Any]) -> list[ChatMessage]:
    role = str(message.get("role"))
    role = _ROLES.get(role, role)
    if role not in ("system", "user", "assistant", "tool"):
        line.refuse(f"a message of the unknown role {role!r:.60}")
    content = message.get("parts") if isinstance(message.get("parts"), list) else message.get("content")
    if not isinstance(content, list):
        content = [_text_of(content)]
    content = [{"type": "text", "text": element} if isinstance(element, str) else element for element in content]
    texts, calls, results, pictures = list[str](), list[ToolCall](), list[ChatMessage](), list[Attachment]()
    for part in objects_in(content):
        match part.get("type"):
            case "text" | "input_text" | "output_text":
                text = part.get("text", part.get("content"))
                texts.append(_text_of(text))
            case "tool_use" | "tool_call":
                calls.append(_call_in(part.get("id"), part.get("name"), part.get("input", part.get("arguments"))))
            case "tool_result" | "tool_call_response":
                said = part.get("content", part.get("response", part.get("result")))
                call = part.get("tool_use_id") or part.get("id") or ""
                failed = bool(part.get("is_error"))
                results.append(ChatMessage(line, "tool", _text_of(said), call=str(call), is_error=failed))
            case "image_url" | "image" | "input_image" | "blob":
                pictures += _picture_in(part)
    for entry in objects_in(message.get("tool_calls")):
        function = object_of(entry.get("function")) or entry
        calls.append(_call_in(entry.get("id"), function.get("name"), function.get("arguments", function.get("args"))))
    text = "\n".join(texts)
    if role == "tool" and not results:
        call = message.get("tool_call_id") or message.get("id") or ""
        return [ChatMessage(line, "tool", text, call=str(call), pictures=tuple(pictures))]
    if results and not (text.strip() or calls):
        return results
    return [*results, ChatMessage(line, role, text, tuple(calls), pictures=tuple(pictures))]


def _call_in(call: object, name: object, arguments: object) -> ToolCall:
    if isinstance(arguments, str):
        try:
            arguments = parse_json(arguments)
        except (ValueError, RecursionError):
            arguments = {"arguments": arguments}
    return ToolCall(
        str(name or ""), arguments if isinstance(arguments, dict) else {}, call if isinstance(call, str) else ""
    )


def _text_of(value: object) -> str:
    if isinstance(value, str):
        return value
    texts = [part["text"] for part in objects_in(value) if isinstance(part.get("text"), str)]
    return "\n".join(texts) if texts else "" if value is None else json.dumps(value)


def _picture_in(part: Mapping[str, Any]) -> list[Attachment]:
    url = part.get("image_url")
    url = object_of(url).get("url") if isinstance(url, dict) else url
    source = object_of(part.get("source")).get("data") or part.get("content") or part.get("data")
    data = url.partition(";base64,")[2] if isinstance(url, str) else source
    image = picture(data)
    return [image] if image is not None else []


def usage_in(value: object) -> Usage | None:
    """Return the tokens in a recorded value, under any name that services and recorders use; None if there are none."""
    counts = object_of(value)

    def first(*names: str) -> int:
        return next((count for name in names if (count := count_of(counts.get(name)))), 0)

    cached = first("cache_read_input_tokens", "input_cached_tokens", "cached_tokens", "input_cache_read")
    written = first("cache_creation_input_tokens", "input_cache_creation")
    asked = first("input_tokens", "prompt_tokens", "input", "promptTokens")
    answered = first("output_tokens", "completion_tokens", "output", "completionTokens")
    return Usage(asked, answered, written, cached) if asked or answered else None


def answered(
    messages: Iterable[ChatMessage], at: int, model: str, usage: Usage | None, usd: int = 0
) -> list[ChatMessage]:
    """Return the messages of a reply, with the model, tokens and cost added."""
    by_assistant = [
        replace(message, role="assistant" if message.role == "user" else message.role, at=at) for message in messages
    ]
    return [
        replace(message, model=model, usage=usage, usd=usd) if message.role == "assistant" else message
        for message in by_assistant
    ]
