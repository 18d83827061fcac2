"""Recordings as other programs write them, made by hand."""

import json
from collections.abc import Sequence
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
        blocks = [text(one) if isinstance(one, str) else one for one in content]
        stop = "tool_use" if any(one["type"] == "tool_use" for one in blocks) else "end_turn"
        usage = {"input_tokens": 10, "output_tokens": 5, "cache_read_input_tokens": 100, "service_tier": "standard"}
        message = {"id": reply, "type": "message", "role": "assistant", "model": model, "content": blocks}
        return self.line("assistant", after, message={**message, "stop_reason": stop, "usage": usage}, **fields)

    def call(self, call: str, name: str = "Bash", **given: Any) -> Block:
        """A call in a reply."""
        return {"type": "tool_use", "id": call, "name": name, "input": given}

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
