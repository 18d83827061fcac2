"""A model of Anthropic's form in front of the kit's client, for a runtime whose program asks no other.

`serve` listens in the process of the driver, so the worker that asks is the one which the judge kills.
"""

import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from uuid import uuid4

from benchmarks.durability import kit


def serve(prefix: str) -> str:
    """Listen on a free port. Names of tools go out with the prefix. Returns the URL."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Service", (_Service,), {"prefix": prefix}))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}"


class _Service(BaseHTTPRequestHandler):
    prefix: str
    protocol_version = "HTTP/1.1"

    def log_message(self, *rest: Any) -> None:
        """Print nothing."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        sent = [each for message in body.get("messages", ()) if message["role"] != "system" for each in _chat(message)]
        marked = any(re.search(r"\[run \S+ agent \S+\]", str(message["content"])) for message in sent)
        reply = kit.ask(sent) if marked else {"content": "Yes."}
        blocks = [
            {"type": "tool_use", "id": call_id, "name": self.prefix + name, "input": arguments}
            for call_id, name, arguments in kit.calls(reply)
        ] or [{"type": "text", "text": reply["content"]}]
        lines = (f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in _stream(blocks))
        events = "".join(lines).encode()
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("content-length", str(len(events)))
        self.end_headers()
        self.wfile.write(events)


def _stream(blocks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    message = {"id": f"msg_{uuid4().hex}", "type": "message", "role": "assistant", "model": "scripted", "content": []}
    about = {"stop_reason": None, "usage": {"input_tokens": 100, "output_tokens": 1}}
    events: list[dict[str, Any]] = [{"type": "message_start", "message": message | about}]
    for index, block in enumerate(blocks):
        part = {"type": "text_delta", "text": block.get("text")}
        begun = block | {"text": ""}
        if block["type"] == "tool_use":
            part = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
            begun = block | {"input": {}}
        events.append({"type": "content_block_start", "index": index, "content_block": begun})
        events.append({"type": "content_block_delta", "index": index, "delta": part})
        events.append({"type": "content_block_stop", "index": index})
    reason = "tool_use" if blocks[0]["type"] == "tool_use" else "end_turn"
    usage = {"input_tokens": 100, "output_tokens": 10}
    events.append({"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}, "usage": usage})
    return [*events, {"type": "message_stop"}]


def _chat(message: dict[str, Any]) -> list[kit.Message]:
    """A message of Anthropic's form as chat completions have it."""
    blocks = message["content"]
    blocks = [{"type": "text", "text": blocks}] if isinstance(blocks, str) else blocks
    results = [kit.result(b["tool_use_id"], _text_of(b["content"])) for b in blocks if b["type"] == "tool_result"]
    text = _text_of(blocks)
    calls = [
        {"id": b["id"], "type": "function", "function": {"name": b["name"], "arguments": json.dumps(b["input"])}}
        for b in blocks
        if b["type"] == "tool_use"
    ]
    said = {"role": message["role"], "content": text} | ({"tool_calls": calls} if calls else {})
    return results + ([said] if text or calls else [])


def _text_of(content: Any) -> str:
    return content if isinstance(content, str) else "".join(b.get("text", "") for b in content)
