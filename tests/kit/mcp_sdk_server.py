"""An MCP server that stands on the MCP SDK: ``python -m tests.kit.mcp_sdk_server``. It takes a second to start."""

import asyncio
import os
import sys

from mcp.server import MCPServer
from mcp.types import ToolAnnotations

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


if __name__ == "__main__":
    print("ready", file=sys.stderr)
    server.run("stdio")
