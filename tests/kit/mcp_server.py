"""An MCP server of the standard library alone, which starts at once: ``python -S mcp_server.py [LISTING]``.

Tools meet the test at a Unix socket. The tool ``say`` writes the bytes of its argument ``lines`` (base64; ``"$ID"``
becomes the id of the request), and then a good answer, so that every call has one. A LISTING (base64, likewise) stands
before its own list of tools.
"""

import json
import os
import socket
import sys
import threading
from binascii import a2b_base64

TYPE_CHECKING = False  # dozens of tests start this program: what is seldom used, or only named, is not imported here
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

CHILD = """
import os, socket, sys
test = socket.socket(socket.AF_UNIX)
test.connect(sys.argv[1])
test.send(b"%d\\n" % os.getpid())
test.recv(1)
"""
"""A process that meets the test, and goes when the test hangs up, or is killed."""

visits: dict[object, socket.socket] = {}
"""By the id of the request, where a call waits for the test."""

cancelled: set[object] = set()
"""The ids of requests that the client has given up: one may be before its call has come to the test."""

_writing = threading.Lock()


def write(text: bytes) -> None:
    with _writing:
        sys.stdout.buffer.write(text)
        sys.stdout.buffer.flush()


def answer(number: object, **answered: object) -> None:
    write(json.dumps({"jsonrpc": "2.0", "id": number, **answered}).encode() + b"\n")


def tell(encoded: str, number: object) -> None:
    write(a2b_base64(encoded).replace(b'"$ID"', json.dumps(number).encode()))


def meet(number: object, path: str) -> str:
    """Tell the test which process this is, and return the line that it says."""
    with socket.socket(socket.AF_UNIX) as test:
        test.connect(path)
        visits[number] = test
        test.send(f"{os.getpid()}\n".encode())
        if number in cancelled:
            return ""
        return test.makefile().readline().strip()


def say(number: object, lines: str = "") -> str:
    tell(lines, number)
    return "said"


def start_child(path: str, holds_output: bool = False) -> str:
    """Start a process that meets the test, in a session of its own if it holds our output open.

    It heeds neither the end of our input nor ours.
    """
    import subprocess

    quiet = subprocess.DEVNULL
    output = None if holds_output else quiet
    command = [sys.executable, "-c", CHILD, path]
    return str(subprocess.Popen(command, stdin=quiet, stdout=output, stderr=quiet, start_new_session=holds_output).pid)


def close_input() -> str:
    """Read no more, and go on."""
    os.close(0)
    return "closed"


def run(command: list[str]) -> str:
    """What a program prints."""
    import subprocess

    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False).stdout


def fail(text: str) -> str:
    raise ValueError(text)


def blocks() -> "list[dict[str, Any]]":
    """One of each."""
    data = "MTIzNDU2"
    return [
        {"type": "text", "text": "words"},
        {"type": "image", "data": data, "mimeType": "image/png"},
        {"type": "audio", "data": data, "mimeType": "audio/wav"},
        {"type": "resource", "resource": {"uri": "file:///a.json", "text": "{}", "mimeType": "application/json"}},
        {"type": "resource", "resource": {"uri": "file:///b", "blob": data}},
        {"type": "resource_link", "uri": "file:///c", "name": "c", "description": "the third"},
    ]


ADDED: dict[str, object] = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
    "required": ["a", "b"],
}

TOOLS: "dict[str, tuple[Callable[..., object], str, dict[str, object], dict[str, bool]]]" = {
    "add": (lambda a, b: str(a + b), "Add two numbers.", ADDED, {"readOnlyHint": True}),
    "start_child": (start_child, "Start a process.", {"type": "object"}, {}),
    "close_input": (close_input, "Hear no more.", {"type": "object"}, {}),
    "run": (run, "Run a program.", {"type": "object"}, {}),
    "fail": (fail, "Fail.", {"type": "object"}, {"idempotentHint": True}),
    "in.the.wild": (lambda: "tamed", "Have a name no model could call.", {"type": "object"}, {"readOnlyHint": True}),
    "long": (lambda length: "x" * length, "Give much text.", {"type": "object"}, {"readOnlyHint": True}),
    "variable": (lambda name: os.environ.get(name, "not set"), "Show one.", {"type": "object"}, {"readOnlyHint": True}),
    "blocks": (blocks, "Give one of each.", {"type": "object"}, {"readOnlyHint": True}),
    "meta": (lambda meta: json.dumps(meta), "Show what it is sent beside.", {"type": "object"}, {"readOnlyHint": True}),
    "meet": (meet, "Meet the test.", {"type": "object"}, {"readOnlyHint": True}),
    "say": (say, "Say it.", {"type": "object"}, {}),
}
"""By name: the function, its description, the schema of its arguments, and the hints of it."""


def call(number: object, name: str, arguments: "dict[str, Any]", meta: object) -> None:
    """Call a tool, and answer unless the call was cancelled meanwhile."""
    function = TOOLS[name][0]
    own = {"number": number} if name in ("meet", "say") else {"meta": meta} if name == "meta" else {}
    try:
        result = function(**own, **arguments)
        content = result if isinstance(result, list) else [{"type": "text", "text": result}]
        answered: dict[str, object] = {"content": content}
        if name == "long":
            answered["structuredContent"] = {"result": result}
    except (TypeError, ValueError) as error:
        answered = {"content": [{"type": "text", "text": f"It failed: {error}"}], "isError": True}
    except OSError:
        return
    answer(number, result=answered)


def heed(request: "dict[str, Any]") -> None:
    number, parameters = request.get("id"), request.get("params") or {}
    match request.get("method"):
        case "initialize":
            info, version = {"name": "for-tests", "version": "1"}, parameters["protocolVersion"]
            answer(number, result={"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info})
        case "tools/list":
            if len(sys.argv) > 1:
                tell(sys.argv[1], number)
            names = [
                {"name": name, "description": description, "inputSchema": schema, "annotations": hints}
                for name, (_, description, schema, hints) in TOOLS.items()
            ]
            answer(number, result={"tools": names})
        case "tools/call":
            work = (number, parameters["name"], parameters.get("arguments") or {}, parameters.get("_meta"))
            if parameters["name"] == "meet":
                threading.Thread(target=call, args=work, daemon=True).start()
            else:
                call(*work)
        case "notifications/cancelled":
            cancelled.add(parameters.get("requestId"))
            if test := visits.pop(parameters.get("requestId"), None):
                test.shutdown(socket.SHUT_RDWR)
        case str() if number is not None:  # what has no method is an answer to something that the server asked
            answer(number, error={"code": -32601, "message": "no"})


def serve() -> None:
    """Answer until the input ends."""
    print("ready", file=sys.stderr, flush=True)
    try:
        for line in sys.stdin.buffer:
            heed(json.loads(line))
    except OSError:  # it has closed its input, and lives on
        threading.Event().wait()


if __name__ == "__main__":
    serve()
