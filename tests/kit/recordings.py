"""Recordings as other programs write them, made by hand."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ikigai_actors.text import iso_time

BEGUN = 1_767_225_600_000
"""The time of the first line: the beginning of 2026."""

Block = dict[str, Any]


def text(said: str) -> Block:
    """A text block."""
    return {"type": "text", "text": said}


def encoded(rows: Sequence[Any]) -> bytes:
    """Rows as JSON lines."""
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


class ClaudeCode:
    """A session of Claude Code; each method adds a line, and returns its uuid."""

    def __init__(self, session: str = "s1", agent: str = "", version: str = "2.1.4") -> None:
        self.rows: list[dict[str, Any]] = []
        self._common: dict[str, Any] = {
            "cwd": "/ship",
            "sessionId": session,
            "version": version,
            "userType": "external",
        }
        self._common |= {"isSidechain": True, "agentId": agent} if agent else {"isSidechain": False}

    @property
    def last(self) -> str | None:
        """The uuid of the latest line that has one."""
        return next((row["uuid"] for row in reversed(self.rows) if "uuid" in row), None)

    @property
    def data(self) -> bytes:
        """The file."""
        return encoded(self.rows)

    def line(self, kind: str, after: str | None = "", **fields: Any) -> str:
        """A line of any type; ``after`` is its parent, the latest line where it is empty."""
        number = len(self.rows) + 1
        uuid = f"00000000-0000-4000-8000-{number:012}"
        parent = self.last if after == "" else after
        at = iso_time(BEGUN + 1_000 * number)
        self.rows.append({"parentUuid": parent, **self._common, "type": kind, **fields, "uuid": uuid, "timestamp": at})
        return uuid

    def user(self, content: str | list[Block], after: str | None = "", **fields: Any) -> str:
        """What a person says, or the results of calls."""
        return self.line("user", after, message={"role": "user", "content": content}, **fields)

    def reply(
        self, reply: str, *content: Block | str, after: str | None = "", model: str = "claude-sonnet-5-5", **fields: Any
    ) -> str:
        """A piece of the reply with this id."""
        blocks = [text(block) if isinstance(block, str) else block for block in content]
        stop = "tool_use" if any(block["type"] == "tool_use" for block in blocks) else "end_turn"
        usage = {"input_tokens": 10, "output_tokens": 5, "cache_read_input_tokens": 100, "service_tier": "standard"}
        message = {"id": reply, "type": "message", "role": "assistant", "model": model, "content": blocks}
        return self.line("assistant", after, message={**message, "stop_reason": stop, "usage": usage}, **fields)

    def call(self, call: str, name: str = "Bash", **arguments: Any) -> Block:
        """A call in a reply."""
        return {"type": "tool_use", "id": call, "name": name, "input": arguments}

    def result(self, call: str, content: str | list[Block], after: str | None = "", **fields: Any) -> str:
        """The result of a call."""
        block: Block = {"type": "tool_result", "tool_use_id": call, "content": content}
        if "is_error" in fields:
            block["is_error"] = fields.pop("is_error")
        return self.user([block], after, **fields)

    def turn(self, prompt: str, answer: str, after: str | None = "") -> str:
        """A prompt and its answer."""
        self.user(prompt, after)
        return self.reply(f"msg_{len(self.rows)}", answer)


class Codex:
    """A session of Codex; each method adds lines."""

    def __init__(self, session: str = "s1", version: str = "0.142.0", **meta: Any) -> None:
        self.rows: list[dict[str, Any]] = []
        session_meta = {"id": session, "timestamp": iso_time(BEGUN), "cwd": "/ship", "originator": "codex_cli_rs"}
        self.line("session_meta", **session_meta, cli_version=version, model_provider="openai", **meta)
        self.line("turn_context", cwd="/ship", model="gpt-5-codex", approval_policy="never")

    @property
    def data(self) -> bytes:
        """The file."""
        return encoded(self.rows)

    def line(self, kind: str, /, **payload: Any) -> None:
        """A line of any type."""
        at = iso_time(BEGUN + 1_000 * (len(self.rows) + 1))
        self.rows.append({"timestamp": at, "type": kind, "payload": payload})

    def item(self, kind: str, /, **fields: Any) -> None:
        """An item of the conversation."""
        self.line("response_item", type=kind, **fields)

    def event(self, kind: str, /, **fields: Any) -> None:
        """What the screen shows."""
        self.line("event_msg", type=kind, **fields)

    def user(self, said: str, *more: Block, role: str = "user") -> None:
        """What a person says, or Codex itself."""
        self.item("message", role=role, content=[{"type": "input_text", "text": said}, *more])
        self.event("user_message", message=said)

    def reply(self, *said: str, calls: Mapping[str, Mapping[str, Any]] | None = None, thought: str = "") -> None:
        """A reply: its items, and then what it has cost."""
        if thought:
            summary = [{"type": "summary_text", "text": thought}]
            self.item("reasoning", summary=summary, content=None, encrypted_content="gAAA")
        for text in said:
            self.item("message", role="assistant", content=[{"type": "output_text", "text": text}])
            self.event("agent_message", message=text)
        for call, command in (calls or {}).items():
            self.item("function_call", name="exec_command", arguments=json.dumps(command), call_id=call)
        used = {"input_tokens": 110, "cached_input_tokens": 100, "output_tokens": 5, "total_tokens": 115}
        self.event("token_count", info={"last_token_usage": used, "total_token_usage": used}, rate_limits=None)

    def result(self, call: str, output: str | Block) -> None:
        """The result of a call."""
        self.item("function_call_output", call_id=call, output=output)

    def turn(self, prompt: str, answer: str) -> None:
        """A prompt and its answer."""
        self.user(prompt)
        self.reply(answer)


class Pi:
    """A session of pi; each method adds a line, and returns its id."""

    def __init__(self, session: str = "s1", version: int = 3, **header: Any) -> None:
        fields = {"type": "session", "version": version, "id": session, "timestamp": iso_time(BEGUN), "cwd": "/ship"}
        self.rows: list[dict[str, Any]] = [fields | header]
        self._is_linked = version > 1

    @property
    def last(self) -> str | None:
        """The id of the latest line."""
        return self.rows[-1].get("id") if len(self.rows) > 1 else None

    @property
    def data(self) -> bytes:
        """The file."""
        return encoded(self.rows)

    def line(self, kind: str, after: str | None = "", **fields: Any) -> str:
        """A line of any type; ``after`` is its parent, the latest line where it is empty."""
        number = len(self.rows) + 1
        key = f"{number:08x}"
        linked = {"id": key, "parentId": self.last if after == "" else after} if self._is_linked else {}
        self.rows.append({"type": kind, **linked, "timestamp": iso_time(BEGUN + 1_000 * number), **fields})
        return key

    def message(self, role: str, after: str | None = "", **fields: Any) -> str:
        """A message."""
        return self.line("message", after, message={"role": role, **fields})

    def user(self, said: str | list[Block], after: str | None = "") -> str:
        """What a person says."""
        return self.message("user", after, content=said)

    def reply(self, *content: Block | str, after: str | None = "", **fields: Any) -> str:
        """A reply."""
        blocks = [text(block) if isinstance(block, str) else block for block in content]
        stop = "toolUse" if any(block["type"] == "toolCall" for block in blocks) else "stop"
        usage = {
            "input": 10,
            "output": 5,
            "cacheRead": 100,
            "cacheWrite": 0,
            "totalTokens": 115,
            "cost": {"total": 0.25},
        }
        origin = {"api": "anthropic-messages", "provider": "anthropic", "model": "claude-sonnet-5-5", "usage": usage}
        return self.message("assistant", after, content=blocks, **{**origin, "stopReason": stop, **fields})

    def call(self, call: str, **arguments: Any) -> Block:
        """A call in a reply."""
        return {"type": "toolCall", "id": call, "name": "bash", "arguments": arguments}

    def result(self, call: str, output: str, after: str | None = "", *, is_error: bool = False) -> str:
        """The result of a call."""
        content = [text(output)]
        return self.message("toolResult", after, toolCallId=call, toolName="bash", content=content, isError=is_error)

    def turn(self, prompt: str, answer: str, after: str | None = "") -> str:
        """A prompt and its answer."""
        self.user(prompt, after)
        return self.reply(answer)


def _claude_code() -> bytes:
    session = ClaudeCode()
    session.turn("We build a ship.", "Yes.")
    session.user("Look.")
    session.reply("m2", "I look.", session.call("c1", command="ls"))
    session.result("c1", "mast")
    end = session.reply("m3", "A mast.")
    session.turn("Of wood.", "Oak.", end)
    session.line("system", None, subtype="compact_boundary", logicalParentUuid=end)
    session.user("There is a mast.", isCompactSummary=True)
    session.turn("Of steel.", "Riveted.")
    return session.data


def _codex() -> bytes:
    session = Codex(base_instructions={"text": "Build."})
    session.user("<environment_context>/ship</environment_context>")
    session.turn("We build a ship.", "Yes.")
    session.user("Look.")
    session.reply("I look.", calls={"c1": {"cmd": "ls"}}, thought="Hm.")
    session.result("c1", "mast")
    session.reply("A mast.")
    session.turn("Of wood.", "Oak.")
    session.event("thread_rolled_back", num_turns=1)
    session.line("compacted", message="There is a mast.")
    session.turn("Of steel.", "Riveted.")
    return session.data


def _pi() -> bytes:
    session = Pi()
    session.line("model_change", provider="anthropic", modelId="claude-sonnet-5-5")
    session.turn("We build a ship.", "Yes.")
    session.user("Look.")
    session.reply("I look.", session.call("c1", command="ls"))
    session.result("c1", "mast")
    end = session.reply("A mast.")
    session.turn("Of wood.", "Oak.", end)
    session.line("branch_summary", end, fromId=end, summary="Wood was tried.")
    kept = session.user("Of steel.")
    session.reply("Riveted.")
    session.line("compaction", summary="There is a mast.", firstKeptEntryId=kept, tokensBefore=100)
    session.turn("Paint it.", "Blue.")
    return session.data


def _openai() -> bytes:
    call = {"id": "c1", "type": "function", "function": {"name": "bash", "arguments": '{"command": "ls"}'}}
    said: list[Block] = [
        {"role": "system", "content": "Build."},
        {"role": "user", "content": "Look."},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "mast"},
    ]
    usage = {"prompt_tokens": 10, "completion_tokens": 5}

    def request(messages: list[Block], answer: str) -> Block:
        reply = {"role": "assistant", "content": answer}
        response = {"model": "gpt-5", "choices": [{"message": reply}], "usage": usage, "created": BEGUN // 1_000}
        return {"messages": messages, "response": response}

    further = [*said, {"role": "assistant", "content": "A mast."}]
    steel, wood = ([*further, {"role": "user", "content": f"Of {what}."}] for what in ("steel", "wood"))
    return encoded([request(said, "A mast."), request(steel, "Riveted."), request(wood, "Oak.")])


def otlp_span(number: int, operation: str, attributes: Mapping[str, object]) -> Block:
    """A span with facts of the conventions, whose names begin with ``gen_ai.``."""

    def value(fact: object) -> Block:
        if isinstance(fact, int):
            return {"intValue": str(fact)}
        return {"stringValue": fact if isinstance(fact, str) else json.dumps(fact)}

    facts = {"operation.name": operation, "provider.name": "anthropic", **attributes}
    start = BEGUN + 1_000 * number
    return {
        "traceId": "t1",
        "spanId": f"s{number}",
        "name": operation,
        "startTimeUnixNano": str(start * 1_000_000),
        "endTimeUnixNano": str((start + 500) * 1_000_000),
        "attributes": [{"key": f"gen_ai.{name}", "value": value(fact)} for name, fact in facts.items()],
    }


def otlp(*spans: Block) -> Block:
    """A request of an exporter."""
    return {"resourceSpans": [{"resource": {"attributes": []}, "scopeSpans": [{"scope": {}, "spans": [*spans]}]}]}


def part(kind: str, **fields: Any) -> Block:
    """A part of a message in the conventions' form."""
    return {"type": kind, **fields}


def _otel() -> bytes:
    ask = {"role": "user", "parts": [part("text", content="Look.")]}
    call = {"role": "assistant", "parts": [part("tool_call", id="c1", name="bash", arguments={"command": "ls"})]}
    result = {"role": "tool", "parts": [part("tool_call_response", id="c1", response="mast")]}
    end = {"role": "assistant", "parts": [part("text", content="A mast.")], "finish_reason": "stop"}
    counts = {"usage.input_tokens": 110, "usage.output_tokens": 5, "request.model": "claude-sonnet-5-5"}
    system = {"system_instructions": [part("text", content="Build.")]}
    first = otlp_span(1, "chat", {"input.messages": [ask], "output.messages": [call], **system, **counts})
    second = otlp_span(3, "chat", {"input.messages": [ask, call, result], "output.messages": [end], **counts})
    return encoded([otlp(second), otlp(first, otlp_span(2, "execute_tool", {"tool.call.id": "c1"}))])


def _langfuse() -> bytes:
    call = {"id": "c1", "type": "function", "function": {"name": "bash", "arguments": '{"command": "ls"}'}}
    asked: list[Block] = [{"role": "system", "content": "Build."}, {"role": "user", "content": "Look."}]
    called = {"role": "assistant", "content": "", "tool_calls": [call]}
    result = {"role": "tool", "tool_call_id": "c1", "content": "mast"}

    def generation(number: int, said: list[Block], reply: object) -> Block:
        times = {"startTime": iso_time(BEGUN + number), "endTime": iso_time(BEGUN + number + 1)}
        fields = {"model": "gpt-5", "usageDetails": {"input": 10, "output": 5}, "totalCost": 0.25, **times}
        return {"id": str(number), "traceId": "t1", "type": "GENERATION", "input": said, "output": reply, **fields}

    second = generation(20, [*asked, called, result], {"role": "assistant", "content": "A mast."})
    span: Block = {"id": "9", "traceId": "t1", "type": "SPAN", "input": "x", "output": "y"}
    trace = {"trace": {"id": "t1", "name": "shipyard"}, "observations": [second, span, generation(10, asked, called)]}
    return json.dumps(trace, indent=2).encode()


SAMPLES: Mapping[str, bytes] = {
    "claude-code": _claude_code(),
    "codex": _codex(),
    "pi": _pi(),
    "otel": _otel(),
    "langfuse": _langfuse(),
    "openai": _openai(),
}
"""A session of each format, with something of everything."""
