"""Spans of OpenTelemetry with its conventions for GenAI, in OTLP's JSON: one request of an exporter a line. Pure.

The spans with one ``gen_ai.conversation.id``, or else of one trace, are a conversation. If ``chat`` spans have their
input, the messages come from it. If they have only replies, as in `ikigai trace export --content`, the prompts come
from ``invoke_agent`` and the results from ``execute_tool``. Spans without contents are left out.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from ikigai_actors.providers.base import Usage
from ikigai_actors.recordings.chats import ChatMessage, RecordedChat, answered, chat_drafts, messages_in
from ikigai_actors.recordings.recording import RecordedLine, Recording, count_of, objects_in
from ikigai_actors.verbs.upkeep.draft import Draft

_INPUT = ("gen_ai.input.messages", "gen_ai.prompt", "gen_ai.request.messages")
_OUTPUT = ("gen_ai.output.messages", "gen_ai.completion", "gen_ai.response.messages")
_CHATS = ("chat", "text_completion", "generate_content")


def is_otlp(line: Mapping[str, Any]) -> bool:
    """Return whether a line is an export request of OTLP that has spans."""
    return isinstance(line.get("resourceSpans"), list)


class _Span(NamedTuple):
    line: RecordedLine
    group: str
    id: str
    parent: str
    start: int
    end: int
    facts: Mapping[str, Any]

    @property
    def operation(self) -> str:
        operation = str(self.facts.get("gen_ai.operation.name", ""))
        has_messages = any(name in self.facts for name in (*_INPUT, *_OUTPUT))
        return operation or ("chat" if has_messages or "gen_ai.completion.0.content" in self.facts else "")

    @property
    def provider(self) -> str:
        provider = self.facts.get("gen_ai.provider.name") or self.facts.get("gen_ai.system") or "openai"
        return str(provider).rpartition(".")[2].lower()

    @property
    def asked(self) -> list[ChatMessage]:
        system = messages_in(self.line, self.facts.get("gen_ai.system_instructions"), "system")
        said = self._said(_INPUT, "gen_ai.prompt", "user")
        return [replace(message, at=self.start) for message in (*system, *said)]

    @property
    def replied(self) -> list[ChatMessage]:
        made_by = self.facts.get("gen_ai.response.model") or self.facts.get("gen_ai.request.model")
        model = f"{self.provider}:{made_by}" if made_by else ""
        return answered(self._said(_OUTPUT, "gen_ai.completion", "assistant"), self.end, model, self._usage)

    @property
    def _usage(self) -> Usage | None:
        def count(name: str) -> int:
            return count_of(self.facts.get(f"gen_ai.usage.{name}"))

        read, cached = count("input_tokens") or count("prompt_tokens"), count("cache_read.input_tokens")
        written, answered = count("cache_creation.input_tokens"), count("output_tokens") or count("completion_tokens")
        return Usage(max(0, read - cached - written), answered, written, cached) if read or answered else None

    def _said(self, names: Iterable[str], numbered: str, role: str) -> list[ChatMessage]:
        for name in names:
            if messages := messages_in(self.line, self.facts.get(name), role):
                return messages
        messages, number = [], 0
        while any(name.startswith(f"{numbered}.{number}.") for name in self.facts):
            messages += messages_in(self.line, self._numbered(f"{numbered}.{number}"), role)
            number += 1
        return messages

    def _numbered(self, name: str) -> dict[str, Any]:
        """Return a message that a recorder has written as one attribute for each part."""
        calls, number = [], 0
        while f"{name}.tool_calls.{number}.name" in self.facts:
            at = f"{name}.tool_calls.{number}"
            calls.append({part: self.facts.get(f"{at}.{part}") for part in ("id", "name", "arguments")})
            number += 1
        message = {
            part: self.facts[f"{name}.{part}"]
            for part in ("role", "content", "tool_call_id")
            if f"{name}.{part}" in self.facts
        }
        return {**message, **({"tool_calls": calls} if calls else {})}


def otel_drafts(recordings: Sequence[Recording], settings: Mapping[str, Any], models: bool) -> list[Draft]:
    """Return the agents of some files with spans; see `ikigai_actors.recordings.chats.chat_drafts`."""
    groups: dict[str, list[_Span]] = {}
    for recording in recordings:
        for line in recording.rows():
            if not is_otlp(line.value):
                line.refuse("expected a request of OTLP with resourceSpans")
            for span in _spans_in(line):
                groups.setdefault(span.group, []).append(span)
    chats = [_conversation(sorted(spans, key=lambda span: (span.start, span.end))) for spans in groups.values()]
    return chat_drafts([chat for chat in chats if chat.paths], "otel", settings, models)


def _spans_in(line: RecordedLine) -> Iterable[_Span]:
    for resource in objects_in(line.value["resourceSpans"]):
        for scope in objects_in(resource.get("scopeSpans") or resource.get("instrumentationLibrarySpans")):
            for span in objects_in(scope.get("spans")):
                facts = _facts_in(span.get("attributes"))
                for event in objects_in(span.get("events")):
                    facts = {**_facts_in(event.get("attributes")), **facts}
                trace, start, end = span.get("traceId"), span.get("startTimeUnixNano"), span.get("endTimeUnixNano")
                if not isinstance(trace, str):
                    line.refuse("expected a span to have a traceId")
                group = facts.get("gen_ai.conversation.id") or trace
                own, parent = (f"{trace} {span.get(name) or ''}" for name in ("spanId", "parentSpanId"))
                times = _milliseconds(line, start), _milliseconds(line, end or start)
                yield _Span(line, str(group), own, parent, *times, facts)


def _milliseconds(line: RecordedLine, nanoseconds: object) -> int:
    try:
        return max(1, min(int(str(nanoseconds)) // 1_000_000, 253_402_300_799_999))
    except ValueError:
        line.refuse("expected a span to have times in nanoseconds")


def _facts_in(attributes: object) -> dict[str, Any]:
    return {
        attribute["key"]: _value(attribute.get("value"))
        for attribute in objects_in(attributes)
        if isinstance(attribute.get("key"), str)
    }


def _value(value: object) -> Any:
    match value:
        case {"stringValue": str(text)}:
            return text
        case {"intValue": int() | str() as number}:
            return int(number) if str(number).lstrip("-").isdecimal() else 0
        case {"doubleValue": float() | int() as number}:
            return number
        case {"boolValue": bool(flag)}:
            return flag
        case {"arrayValue": {"values": list(values)}}:
            return [_value(element) for element in values]
        case {"kvlistValue": {"values": list(values)}}:
            return _facts_in(values)
    return None


def _conversation(spans: Sequence[_Span]) -> RecordedChat:
    name = next((str(span.facts["gen_ai.agent.name"]) for span in spans if span.facts.get("gen_ai.agent.name")), "")
    conversation = RecordedChat(name or spans[0].line.of.stem)
    chats = [span for span in spans if span.operation in _CHATS]
    if any(chat.asked for chat in chats):
        for chat in chats:
            if messages := [*chat.asked, *chat.replied]:
                conversation.add(messages)
        return conversation
    path: list[ChatMessage] = []
    for span in _in_turns(spans):
        match span.operation:
            case "invoke_agent":
                path += span.asked
            case "execute_tool" if isinstance(result := span.facts.get("gen_ai.tool.call.result"), str):
                call, failed = str(span.facts.get("gen_ai.tool.call.id", "")), "error.type" in span.facts
                path.append(ChatMessage(span.line, "tool", result, call=call, is_error=failed, at=span.end))
            case operation if operation in _CHATS:
                path += span.replied
    if any(message.role == "assistant" for message in path):
        conversation.paths.append(path)
    return conversation


def _in_turns(spans: Sequence[_Span]) -> list[_Span]:
    """Return spans in the order of the conversation: within one millisecond, a prompt comes before its replies."""
    turns = [span for span in spans if span.operation == "invoke_agent"]
    numbers = {span.id: number for number, span in enumerate(turns)}

    def place(span: _Span) -> tuple[int, int, bool]:
        if span.operation == "invoke_agent":
            return span.start, numbers[span.id], False
        return span.end, numbers.get(span.parent, len(turns)), True

    return sorted(spans, key=place)
