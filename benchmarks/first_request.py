"""The built-in tools in the first request of an agent: all of them, and the few beside which the others are found.

    python -m benchmarks.first_request

The runtime and its providers as they are, each against the tests' server of its protocol. *Bytes* are those of the tool
descriptions that the model reads, as JSON; tools that the service loads later do not count. *Offline* is the runtime's
own estimate of their tokens, `Context.parts`, before any service has counted. *Service* is what the server counts of
the whole request: a token is four characters of its JSON. The servers of OpenAI's protocols count nothing, so their
requests are counted by the same rule here.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any

from benchmarks.table import markdown
from ikigai_actors import ActorSystem, AnthropicProvider, OpenAIProvider
from ikigai_actors.providers.base import Provider
from tests.kit.messages_server.server import MessagesServer
from tests.kit.openai_server.server import OpenAIServer

HEADER = ("service", "tools", "described", "bytes", "offline tokens", "service tokens, whole request")


def main() -> None:
    """Print the table."""
    lines = [
        [service, "all" if defer == "off" else "found", *first_request(server, provider, defer)]
        for service, server, provider in SERVICES
        for defer in ("off", "on")
    ]
    print(markdown(HEADER, lines, left=2))


def first_request(
    server_of: Callable[[], MessagesServer], provider_at: Callable[[str], Provider], defer: str
) -> list[str]:
    """Ask an agent once; return the figures of its request."""
    with server_of() as server, ActorSystem.open(":memory:", provider_at(server.url)) as system:
        system.root.configure(defer=defer)
        offline = system.root.context().parts["tools"]
        system.root.prompt("hi").get(timeout=60)
        [request] = server.requests
        total = counted(request) if isinstance(server, OpenAIServer) else sum(server.served[0])
    described = [
        {name: value for name, value in tool.items() if name != "cache_control"}
        for tool in request["tools"]
        if not tool.get("defer_loading")
    ]
    size = len(json.dumps(described, ensure_ascii=False).encode())
    return [f"{each:,}" for each in (len(described), size, offline, total)]


def counted(request: Mapping[str, Any]) -> int:
    """The tokens of a request to OpenAI."""
    read = [request["tools"], request.get("instructions", ""), request.get("messages") or request.get("input")]
    return sum(-(-len(json.dumps(part, ensure_ascii=False)) // 4) for part in read)


SERVICES: tuple[tuple[str, Callable[[], MessagesServer], Callable[[str], Provider]], ...] = (
    ("messages", MessagesServer, lambda url: AnthropicProvider("m", base_url=url, api_key="key", tool_references=True)),
    ("chat", OpenAIServer, lambda url: OpenAIProvider("m", base_url=url, api="chat")),
    ("responses", OpenAIServer, lambda url: OpenAIProvider("m", base_url=url, api="responses", tool_search=True)),
)

if __name__ == "__main__":
    main()
