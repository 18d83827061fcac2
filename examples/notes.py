"""An app of hosts whose agents use a remote MCP server, with an account that a person connects by a link.

    NOTES_URL=https://mcp.example.com/mcp ikigai --database postgresql:///team host --app notes:app --key env:IKIGAI_KEY

All agents use the account of the label ``user=team``; one that a program forks with another label uses that one's.
"""

import os
from typing import Any

from ikigai_actors import McpServer


def app() -> dict[str, Any]:
    """The arguments. Without an address there is no such server."""
    url = os.environ.get("NOTES_URL", "")
    servers = [McpServer(url, name="notes", account="user")] if url else []
    return {"tools": servers, "labels": {"user": "team"}, "approvals": "ask"}
