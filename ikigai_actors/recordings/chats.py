"""Conversations as agents: requests to a model, each with all that was said before it. Pure.

Recorders keep requests, not conversations: each has the messages so far, and the reply. So the messages of a group of
requests are a tree: what begins alike is one path, and a request that was made again, or differently, is a fork.

    request 1    P A                 the path that goes furthest last is the agent,
    request 2    P A P A'            and one that parts from it a fork of it
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
    """A message of a conversation."""

    line: RecordedLine
    role: str
    """``system``, ``user``, ``assistant`` or ``tool``."""
    text: str
    calls: tuple[ToolCall, ...] = ()
    call: str = ""
    """The id of the call whose result it is; empty where it is not known."""
    is_error: bool = False
    pictures: tuple[Attachment, ...] = ()
    at: int = 0
    model: str = ""
    """The model that has said it, as ``provider:model``."""
    usage: Usage | None = None
    usd: int = 0

    @property
    def _key(self) -> str:
        calls = [[one.name, one.input] for one in self.calls]
        return json.dumps([self.role, self.text.strip(), calls, self.call], sort_keys=True, default=str)


@dataclass(slots=True)
class RecordedChat:
    """Requests that belong together."""

    name: str
    paths: list[list[ChatMessage]] = field(default_factory=list)
    """The messages of each request, with the reply."""
    _ends: set[str] = field(default_factory=set)
    _looked_at: int = 0

    def add(self, messages: Sequence[ChatMessage]) -> None:
        """Add a request. One that has only what is new goes on where the latest one ended."""
        said = [one for one in messages if one.role != "system"]
        before = [one for one in self.paths[-1] if one.role != "system"] if self.paths else []
        if before and said and said[0]._key != before[0]._key:
            self.paths.append([*self.paths[-1], *messages])
        else:
            self.paths.append(list(messages))

    def is_continued_by(self, messages: Sequence[ChatMessage]) -> bool:
        """Whether messages begin with all that one of the requests has."""
        for path in self.paths[self._looked_at :]:
            self._ends.update(chained(path)[-1:])
        self._looked_at = len(self.paths)
        return not self._ends.isdisjoint(chained(messages))


def chained(messages: Iterable[ChatMessage]) -> list[str]:
    """For each message that is no instruction, the hash of it and of those before it."""
    found, above = list[str](), ""
    for one in messages:
        if one.role != "system":
            above = hashlib.sha256(f"{above} {one._key}".encode(errors="replace")).hexdigest()
            found.append(above)
    return found


def chat_drafts(
    found: Iterable[RecordedChat], format_name: str, settings: Mapping[str, Any], models: bool
) -> list[Draft]:
    """The agents of conversations: each with its forks.

    Args:
        found: the conversations.
        format_name: what has recorded them.
        settings: those that each agent begins with that inherits nothing.
        models: whether the model that has answered last is a setting.
    """
    drafts: list[Draft] = []
    noted = set[str]()
    for number, one in enumerate(found):
        drafts += _drafts(one, number, format_name, settings, models, noted)
    return drafts


def _drafts(
    found: RecordedChat, number: int, format_name: str, settings: Mapping[str, Any], models: bool, noted: set[str]
) -> list[Draft]:
    tree, spoken = LineTree(), dict[str, ChatMessage]()
    ends: dict[str, None] = {}
    for path in found.paths:
        above: str | None = None
        for key, one in zip(chained(path), (one for one in path if one.role != "system"), strict=True):
            if key not in spoken:
                tree.add(key, one.line, above)
            known = spoken.get(key)
            spoken[key] = one if known is None or (known.usage is None and one.usage is not None) else known
            above = key
        if above is not None:
            ends.pop(above, None)
            ends[above] = None
    tree.link()
    leaves = set(tree.leaves(spoken))
    roots: dict[str, list[str]] = {}
    for leaf in (one for one in ends if one in leaves):
        roots.setdefault(tree.path(leaf)[0], []).append(leaf)
    drafts: list[Draft] = []

    def opens(keys: Iterable[str]) -> bool:
        return spoken[next(iter(keys))].role == "user"

    for root, of_root in roots.items():
        said = [one for path in found.paths for one in path]
        systems = [one.text for one in said if one.role == "system" and one.text.strip()]
        answered = [one.model for one in said if one.model]
        own = dict(settings) | ({"system": systems[-1]} if systems else {})
        own |= {"model": answered[-1]} if models and answered else {}
        recording = spoken[root].line.of
        top = Draft(f"{format_name} {recording.name} {number} {root}", found.name)
        file = None if recording.name in noted else recording
        noted.add(recording.name)
        top.begin(file, {"format": format_name, "conversation": found.name}, own, spoken[root].at or number + 1)
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
        one = spoken[key]
        match one.role:
            case "assistant":
                reply = Reply(
                    one.text, one.calls, "tool_use" if one.calls else "end_turn", one.usage,
                    model=one.model.partition(":")[2],
                )  # fmt: skip
                draft.reply(one.line, reply, one.model, one.at, usd=one.usd)
            case "tool":
                call = one.call if one.call in draft.waiting or not draft.waiting else ""
                draft.result(
                    one.line, call or next(iter(draft.waiting), ""), one.text, one.at, one.is_error, one.pictures
                )
            case _ if last == "user":
                draft.prompt_more(one.line, one.text, one.at, one.pictures)
            case _:
                draft.interrupt(one.at)
                before, start = draft.head, key
                draft.prompt(one.line, one.text, one.at, one.pictures)
        last = one.role
        tree.places.setdefault(key, LinePlace(draft, before, start, None if draft.is_open else draft.head))


def messages_in(line: RecordedLine, value: object, role: str = "user") -> list[ChatMessage]:
    """The messages that a value has, in any of the forms in which services and recorders write them.

    A text, a message, or a list of these; the messages of OpenAI, of Anthropic, of OpenTelemetry's conventions, and
    choices. What is none of these is left out.

    Args:
        line: where it is.
        value: the value; JSON in a text is read.
        role: who says a text that does not say so.
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
        if any(one.get("type") in ("text", "tool_use", "tool_call") and "role" not in one for one in objects_in(value)):
            return _message_in(line, {"role": role, "content": value})
        return [said for one in value for said in messages_in(line, one, role)]
    given = object_of(value)
    for name in ("messages", "choices", "input", "output"):
        if isinstance(given.get(name), list):
            return messages_in(line, given[name], role)
    if isinstance(given.get("message"), dict):
        return messages_in(line, given["message"], role)
    return (
        _message_in(line, {"role": role, **given}) if given.keys() & {"role", "content", "parts", "tool_calls"} else []
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
    content = [{"type": "text", "text": one} if isinstance(one, str) else one for one in content]
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
    for one in objects_in(message.get("tool_calls")):
        function = object_of(one.get("function")) or one
        calls.append(_call_in(one.get("id"), function.get("name"), function.get("arguments", function.get("args"))))
    text = "\n".join(texts)
    if role == "tool" and not results:
        call = message.get("tool_call_id") or message.get("id") or ""
        return [ChatMessage(line, "tool", text, call=str(call), pictures=tuple(pictures))]
    if results and not (text.strip() or calls):
        return results
    return [*results, ChatMessage(line, role, text, tuple(calls), pictures=tuple(pictures))]


def _call_in(call: object, name: object, given: object) -> ToolCall:
    if isinstance(given, str):
        try:
            given = parse_json(given)
        except (ValueError, RecursionError):
            given = {"arguments": given}
    return ToolCall(str(name or ""), given if isinstance(given, dict) else {}, call if isinstance(call, str) else "")


def _text_of(value: object) -> str:
    if isinstance(value, str):
        return value
    texts = [one["text"] for one in objects_in(value) if isinstance(one.get("text"), str)]
    return "\n".join(texts) if texts else "" if value is None else json.dumps(value)


def _picture_in(part: Mapping[str, Any]) -> list[Attachment]:
    url = part.get("image_url")
    url = object_of(url).get("url") if isinstance(url, dict) else url
    source = object_of(part.get("source")).get("data") or part.get("content") or part.get("data")
    data = url.partition(";base64,")[2] if isinstance(url, str) else source
    found = picture(data)
    return [found] if found is not None else []


def usage_in(value: object) -> Usage | None:
    """The tokens, by any of the names that services and recorders give them; None where there are none."""
    given = object_of(value)

    def first(*names: str) -> int:
        return next((count for name in names if (count := count_of(given.get(name)))), 0)

    cached = first("cache_read_input_tokens", "input_cached_tokens", "cached_tokens", "input_cache_read")
    written = first("cache_creation_input_tokens", "input_cache_creation")
    told = first("input_tokens", "prompt_tokens", "input", "promptTokens")
    answered = first("output_tokens", "completion_tokens", "output", "completionTokens")
    return Usage(told, answered, written, cached) if told or answered else None


def answered(
    messages: Iterable[ChatMessage], at: int, model: str, usage: Usage | None, usd: int = 0
) -> list[ChatMessage]:
    """The messages of a reply, with what is known of it."""
    found = [replace(one, role="assistant" if one.role == "user" else one.role, at=at) for one in messages]
    return [replace(one, model=model, usage=usage, usd=usd) if one.role == "assistant" else one for one in found]
