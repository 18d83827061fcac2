"""An MCP server that answers whatever it is told to: ``python mcp_liar.py [LISTING]``. Standard library only.

Its tool ``say`` writes the bytes of its argument ``lines`` (base64; ``"$ID"`` becomes the id of the request), and then
a good answer, so that every call has one. A LISTING (base64, likewise) stands before its own list of tools.
"""

import base64
import json
import sys
from typing import Any

SAY = {"name": "say", "description": "Say it.", "inputSchema": {"type": "object"}}


def write(text: bytes) -> None:
    sys.stdout.buffer.write(text)
    sys.stdout.buffer.flush()


def answer(number: object, result: object) -> None:
    write(json.dumps({"jsonrpc": "2.0", "id": number, "result": result}).encode() + b"\n")


def tell(encoded: str, number: object) -> None:
    write(base64.b64decode(encoded).replace(b'"$ID"', json.dumps(number).encode()))


def heed(request: dict[str, Any]) -> None:
    number, parameters = request.get("id"), request.get("params") or {}
    match request.get("method"):
        case "initialize":
            info = {"name": "liar", "version": "1"}
            version = parameters["protocolVersion"]
            answer(number, {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info})
        case "tools/list":
            if len(sys.argv) > 1:
                tell(sys.argv[1], number)
            answer(number, {"tools": [SAY]})
        case "tools/call":
            arguments = parameters.get("arguments") or {}
            tell(arguments.get("lines", ""), number)
            answer(number, {"content": [{"type": "text", "text": "said"}]})
        case _ if number is not None:
            write(
                json.dumps({"jsonrpc": "2.0", "id": number, "error": {"code": -32601, "message": "no"}}).encode()
                + b"\n"
            )


if __name__ == "__main__":
    for line in sys.stdin.buffer:
        heed(json.loads(line))
