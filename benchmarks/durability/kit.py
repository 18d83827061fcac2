"""The base of the drivers: the clients of model and ledger, and the lines over which the judge speaks to a driver.

A command is a line of JSON with ``id``, ``do`` and ``run``. Its answer is a line with the same ``id``, and an
acknowledgement: what it says has to survive. Requests and answers carry the time at which they left, by the clock of
the machine that neither a driver nor a fault can set. Each command runs in a thread of its own. Nothing but the
standard library is imported here, so that no runtime is measured by the start of another's client.
"""

import json
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable
from typing import Any
from urllib.request import Request, urlopen

URL = os.environ.get("DURABILITY_URL", "")
"""Where the model and the ledger are."""
STORE = os.environ.get("DURABILITY_STORE", "")
"""A directory, or the URL of a PostgreSQL database."""
SERVER = os.environ.get("DURABILITY_SERVER", "")
"""Where the runtime's own server is, if it has one."""
HOST = os.environ.get("DURABILITY_HOST", "one")
"""The name of this worker; it stays the same after a restart."""
SHARED = os.environ.get("DURABILITY_SHARED") == "1"
"""Whether another worker is there, which takes over."""
KEYS = os.environ.get("DURABILITY_KEYS") == "1"
"""Whether effects go out under the key that the runtime has for them."""
TIMEOUT = float(os.environ.get("DURABILITY_TIMEOUT", "60"))
"""Seconds that the model's client waits for an answer."""

Message = dict[str, Any]


def post(path: str, body: Any, url: str = URL) -> Any:
    """Send JSON, and read JSON."""
    headers = {"content-type": "application/json", "x-sent": repr(time.monotonic())}
    request = Request(url + path, json.dumps(body).encode(), headers)
    with urlopen(request, timeout=TIMEOUT) as answer:
        text = answer.read()
    return json.loads(text) if text else None


def ask(messages: list[Message], tools: list[str] | None = None) -> Message:
    """The model's next message."""
    body: dict[str, Any] = {"model": "scripted", "messages": messages}
    if tools:
        body["tools"] = [{"type": "function", "function": {"name": name}} for name in tools]
    message: Message = post("/v1/chat/completions", body)["choices"][0]["message"]
    return message


def charge(run: str, worker: str, key: str) -> str:
    """Act outside, and name the receipt."""
    return f"receipt {post('/charge', {'run': run, 'worker': worker, 'key': key if KEYS else None})['receipt']}"


def prompt(run: str, agent: str) -> Message:
    """How an agent's conversation begins."""
    return {"role": "user", "content": f"[run {run} agent {agent}] Begin."}


def calls(message: Message) -> list[tuple[str, str, dict[str, Any]]]:
    """The id, name and arguments of each call of a reply."""
    return [
        (call["id"], call["function"]["name"], json.loads(call["function"]["arguments"]))
        for call in message.get("tool_calls") or ()
    ]


def result(call_id: str, text: str) -> Message:
    """The message with the result of a call."""
    return {"role": "tool", "tool_call_id": call_id, "content": text}


def serve(**commands: Callable[[str], Any]) -> None:
    """Say that this process is ready, and carry out the commands from standard input until it ends."""
    commands["clock"] = lambda run: time.time()
    lock = threading.Lock()
    output = os.fdopen(os.dup(1), "w")

    def answer(line: dict[str, Any]) -> None:
        sent = time.monotonic()
        with lock:
            print(json.dumps(line | {"sent": sent}), file=output, flush=True)

    def carry_out(command: dict[str, Any]) -> None:
        try:
            answer({"id": command["id"], "value": commands[command["do"]](command["run"])})
        except Exception as error:
            traceback.print_exc()
            answer({"id": command["id"], "error": repr(error)})

    answer({"id": 0, "value": "ready"})
    for line in sys.stdin:
        threading.Thread(target=carry_out, args=(json.loads(line),), daemon=True).start()
    os._exit(0)
