"""The outside of every run: a scripted model and a ledger of effects, on loopback, in the judge's process.

Each request, answer and effect is recorded, with the process that owns the connection. The recorder's listener may
strike at any of these points, in the thread that serves the request: `Struck` ends that request there.
"""

import contextlib
import json
import re
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from benchmarks.durability.history import Recorder
from benchmarks.durability.task import PAUSE, Call, script, text_of

_WHO = re.compile(r"\[run (\S+) agent (\S+)\]")


class Struck(Exception):
    """A fault has ended the process that asked, so its request goes no further."""


class World:
    """The two services. Close it at the end of a play."""

    def __init__(self, recorder: Recorder, owner_of: Callable[[int], str], pause: float = PAUSE) -> None:
        """Listen on a free port.

        Args:
            recorder: Where events go. Its listener raises `Struck` where a request is not to be carried out.
            owner_of: The process that has the other end of a connection from this port.
            pause: Seconds for which worker ``c`` sleeps.
        """
        self.pause = pause
        self.delay: Callable[[str, str, int], float] = lambda run, agent, step: 0.0
        """Seconds before the model answers; asked by run, agent and step."""
        self.owner_of = owner_of
        self._recorder, self._lock, self._number = recorder, threading.Lock(), 0
        self._receipts: dict[str, int] = {}
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), type("Service", (_Service,), {"world": self}))
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.01,), name="world", daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def close(self) -> None:
        """Take no more requests."""
        self._server.shutdown()
        self._server.server_close()

    def charge(self, run: str, worker: str, key: str | None, owner: str, sent: float) -> int:
        """Act once for each key; without a key, each time. Returns the receipt."""
        note = self._recorder.note
        note("effect-received", run=run, agent=worker, owner=owner)
        with self._lock:
            known = self._receipts.get(key) if key else None
            receipt = known or self._next()
            if key:
                self._receipts[key] = receipt
        kind = "effect-repeated" if known else "effect"
        note(kind, sent, run=run, agent=worker, number=receipt, owner=owner, detail=key)
        return receipt

    def answer(self, body: dict[str, Any], owner: str, left: float) -> tuple[dict[str, Any], Callable[[], None]]:
        """The body of an answer, and what notes that it was sent."""
        messages = body["messages"]
        place, (run, agent) = max(
            (place, _WHO.findall(text_of(message))[-1])
            for place, message in enumerate(messages)
            if message["role"] == "user" and _WHO.search(text_of(message))
        )
        conversation = messages[place + 1 :]
        step = sum(message["role"] == "assistant" for message in conversation)
        with self._lock:
            number = self._next()
        about = {"run": run, "agent": agent, "step": step, "number": number, "owner": owner}
        self._recorder.note("asked", left, detail=conversation, **about)
        time.sleep(self.delay(run, agent, step))
        names = {tool["function"]["name"] for tool in body.get("tools", ())}
        words, calls = script(run, agent, conversation, "fork" in names, self.pause)
        ids = [f"call_{number}_{place}" for place in range(len(calls))]
        whole = _completion(number, words, calls, ids)
        return whole, lambda: self._recorder.note("answered", detail=words or ids, **about) and None

    def sent(self, run: str, worker: str, receipt: int, owner: str) -> None:
        """Note that a receipt has left."""
        self._recorder.note("receipt-sent", run=run, agent=worker, number=receipt, owner=owner)

    def _next(self) -> int:
        self._number += 1
        return self._number


def _completion(number: int, words: str, calls: list[Call], ids: list[str]) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": words or None}
    if calls:
        message["tool_calls"] = [
            {"id": call_id, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
            for call_id, (name, arguments) in zip(ids, calls, strict=True)
        ]
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}
    usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
    kind = {"id": f"answer_{number}", "object": "chat.completion", "created": 0, "model": "scripted"}
    return kind | {"choices": [choice], "usage": usage}


class _Service(BaseHTTPRequestHandler):
    world: World
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class calls it so
        """Print nothing."""

    def do_POST(self) -> None:
        text = self.rfile.read(length := int(self.headers["content-length"]))
        if len(text) < length:
            return  # the other side was killed while it wrote
        body = json.loads(text)
        owner, left = self.world.owner_of(self.client_address[1]), float(self.headers.get("x-sent", 0))
        self.close_connection = True
        with contextlib.suppress(OSError, Struck):  # the other side was killed
            if self.path == "/charge":
                receipt = self.world.charge(body["run"], body["worker"], body.get("key"), owner, left)
                self._send({"receipt": receipt})
                self.world.sent(body["run"], body["worker"], receipt, owner)
            else:
                answer, sent = self.world.answer(body, owner, left)
                self._send(answer)
                sent()

    def _send(self, body: dict[str, Any]) -> None:
        text = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)
        self.wfile.flush()
