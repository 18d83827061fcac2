"""An MCP server for tests: ``python -m tests.kit.mcp_server``. Its tools meet the test at a Unix socket."""

import asyncio
import base64
import os
import subprocess
import sys

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import (
    AudioContent,
    BlobResourceContents,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
    ToolAnnotations,
)

CHILD = """
import os, socket, sys
test = socket.socket(socket.AF_UNIX)
test.connect(sys.argv[1])
test.send(b"%d\\n" % os.getpid())
test.recv(1)
"""
"""A process that meets the test, and goes when the test hangs up, or is killed."""

READS = ToolAnnotations(read_only_hint=True)

server = MCPServer("for-tests")


@server.tool(annotations=READS)
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool(annotations=READS)
async def meet(path: str) -> str:
    """Tell the test which process this is, and return the line that it says."""
    reader, writer = await asyncio.open_unix_connection(path)
    try:
        writer.write(f"{os.getpid()}\n".encode())
        return (await reader.readline()).decode().strip()
    finally:
        writer.close()


@server.tool()
def start_child(path: str) -> str:
    """Start a process that meets the test; it heeds neither the end of our input nor ours."""
    quiet = subprocess.DEVNULL
    child = subprocess.Popen([sys.executable, "-c", CHILD, path], stdin=quiet, stdout=quiet, stderr=quiet)
    return str(child.pid)


@server.tool(annotations=ToolAnnotations(idempotent_hint=True))
def fail(text: str) -> str:
    """Fail."""
    raise ToolError(text)


@server.tool(name="in.the.wild", annotations=READS)
def wild() -> str:
    """A tool whose name no model could call."""
    return "tamed"


@server.tool(annotations=READS)
def long(length: int) -> str:
    """Much text."""
    return "x" * length


@server.tool(annotations=READS)
def variable(name: str) -> str:
    """An environment variable."""
    return os.environ.get(name, "not set")


@server.tool(annotations=READS, structured_output=False)
def blocks() -> list[ContentBlock]:
    """One of each."""
    data = base64.b64encode(b"123456").decode()
    return [
        TextContent(text="words"),
        ImageContent(data=data, mime_type="image/png"),
        AudioContent(data=data, mime_type="audio/wav"),
        EmbeddedResource(resource=TextResourceContents(uri="file:///a.json", text="{}", mime_type="application/json")),
        EmbeddedResource(resource=BlobResourceContents(uri="file:///b", blob=data)),
        ResourceLink(uri="file:///c", name="c", description="the third"),
    ]


if __name__ == "__main__":
    print("ready", file=sys.stderr)
    server.run("stdio")
