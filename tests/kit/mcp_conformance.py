"""A door with what the conformance suite of MCP calls: its tools, resources and prompts.

    python -m tests.kit.mcp_conformance         # serves until a signal comes, and prints its address
    npx @modelcontextprotocol/conformance server --suite all --url http://127.0.0.1:PORT/mcp

Its requests take the same way as those of `ikigai mcp --http`; the guard lets programs without the token in.
"""

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, NoReturn

from mcp.server import ServerRequestContext as Context
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp.types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    GetPromptRequestParams,
    GetPromptResult,
    ListPromptsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
)

from ikigai_actors.doors.protocols import DoorApplication
from ikigai_actors.http_server.acceptor import ConnectionLimits, listen
from ikigai_actors.http_server.guard import Guard, RequestHead
from ikigai_actors.http_server.server import serving
from ikigai_actors.reach.access import Access
from tests.kit.blocking_provider import DEADLINE

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
WAV = base64.b64encode(
    b"RIFF\x24\0\0\0WAVEfmt \x10\0\0\0\1\0\1\0\x40\x1f\0\0\x40\x1f\0\0\1\0\x08\0data\0\0\0\0"
).decode()

Content = Mapping[str, Any]


def text(said: str) -> Content:
    return {"type": "text", "text": said}


def resource(uri: str, kind: str, said: str) -> Content:
    return {"type": "resource", "resource": {"uri": uri, "mimeType": kind, "text": said}}


IMAGE: Content = {"type": "image", "data": PNG, "mimeType": "image/png"}

TOOLS: Mapping[str, list[Content]] = {
    "test_simple_text": [text("This is a simple text response for testing.")],
    "test_image_content": [IMAGE],
    "test_audio_content": [{"type": "audio", "data": WAV, "mimeType": "audio/wav"}],
    "test_embedded_resource": [
        resource("test://embedded-resource", "text/plain", "This is an embedded resource content.")
    ],
    "test_multiple_content_types": [
        text("Multiple content types test:"),
        IMAGE,
        resource("test://mixed-content-resource", "application/json", json.dumps({"test": "data", "value": 123})),
    ],
    "test_tool_with_progress": [text("Done, as progress has told.")],
    "test_error_handling": [],
    "json_schema_2020_12_tool": [text("Taken.")],
}
"""What each tool gives."""

SCHEMAS: Mapping[str, Mapping[str, Any]] = {
    "json_schema_2020_12_tool": {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "type": "object",
                "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
            }
        },
        "properties": {"name": {"type": "string"}, "address": {"$ref": "#/$defs/address"}},
        "additionalProperties": False,
    }
}

RESOURCES: Mapping[str, Content] = {
    "test://static-text": {"mimeType": "text/plain", "text": "This is the content of the static text resource."},
    "test://static-binary": {"mimeType": "image/png", "blob": PNG},
}

PROMPTS: Mapping[str, tuple[str, ...]] = {
    "test_simple_prompt": (),
    "test_prompt_with_arguments": ("arg1", "arg2"),
    "test_prompt_with_embedded_resource": ("resourceUri",),
    "test_prompt_with_image": (),
}
"""The arguments of each prompt."""


def prompted(name: str, arguments: Mapping[str, str]) -> list[Content]:
    """What a prompt says."""
    match name:
        case "test_simple_prompt":
            return [text("This is a simple prompt for testing.")]
        case "test_prompt_with_arguments":
            return [text(f"Prompt with arguments: arg1='{arguments['arg1']}', arg2='{arguments['arg2']}'")]
        case "test_prompt_with_embedded_resource":
            embedded = resource(arguments["resourceUri"], "text/plain", "Embedded resource content for testing.")
            return [embedded, text("Please process the embedded resource above.")]
        case "test_prompt_with_image":
            return [IMAGE, text("Please analyze the image above.")]
    raise MCPError(INVALID_PARAMS, f"Unknown prompt: {name!r}.")


class ConformanceDoor:
    """What the suite calls: it has tools, resources and prompts."""

    def __init__(self) -> None:
        self.server = Server(
            "conformance",
            on_list_tools=self._tools,
            on_call_tool=self._call,
            on_list_resources=self._resources,
            on_list_resource_templates=self._templates,
            on_read_resource=self._read,
            on_list_prompts=self._prompts,
            on_get_prompt=self._prompt,
        )

    async def _tools(self, context: Context, params: PaginatedRequestParams | None) -> ListToolsResult:
        plain = {"type": "object", "properties": {}}
        tools = [{"name": tool, "description": tool, "inputSchema": SCHEMAS.get(tool, plain)} for tool in TOOLS]
        return ListToolsResult.model_validate({"tools": tools})

    async def _call(self, context: Context, params: CallToolRequestParams) -> CallToolResult:
        name = params.name
        if name not in TOOLS:
            raise MCPError(INVALID_PARAMS, f"Unknown tool: {name!r}.")
        if name == "test_error_handling":
            said = "This tool intentionally returns an error for testing"
            return CallToolResult.model_validate({"content": [text(said)], "isError": True})
        for done in (0, 50, 100) if name == "test_tool_with_progress" else ():
            await context.session.report_progress(done, 100)
            await asyncio.sleep(0.05)
        return CallToolResult.model_validate({"content": TOOLS[name], "isError": False})

    async def _resources(self, context: Context, params: PaginatedRequestParams | None) -> ListResourcesResult:
        listed = [{"uri": uri, "name": uri, "description": uri} for uri in RESOURCES]
        return ListResourcesResult.model_validate({"resources": listed})

    async def _templates(self, context: Context, params: PaginatedRequestParams | None) -> ListResourceTemplatesResult:
        template = {"uriTemplate": "test://template/{id}/data", "name": "template"}
        return ListResourceTemplatesResult.model_validate({"resourceTemplates": [template]})

    async def _read(self, context: Context, params: ReadResourceRequestParams) -> ReadResourceResult:
        return ReadResourceResult.model_validate({"contents": [self._content(str(params.uri))]})

    def _content(self, uri: str) -> Content:
        if uri.startswith("test://template/") and uri.endswith("/data"):
            number = uri.split("/")[3]
            said = {"id": number, "templateTest": True, "data": f"Data for ID: {number}"}
            return {"uri": uri, "mimeType": "application/json", "text": json.dumps(said)}
        if uri not in RESOURCES:
            raise MCPError(-32002, f"Resource not found: {uri}")
        return {"uri": uri, **RESOURCES[uri]}

    async def _prompts(self, context: Context, params: PaginatedRequestParams | None) -> ListPromptsResult:
        listed = [
            {
                "name": name,
                "description": name,
                "arguments": [{"name": argument, "description": argument, "required": True} for argument in arguments],
            }
            for name, arguments in PROMPTS.items()
        ]
        return ListPromptsResult.model_validate({"prompts": listed})

    async def _prompt(self, context: Context, params: GetPromptRequestParams) -> GetPromptResult:
        said = prompted(params.name, params.arguments or {})
        return GetPromptResult.model_validate({"messages": [{"role": "user", "content": text} for text in said]})


class OpenGuard(Guard):
    """A guard that asks for no token: the suite has none to give."""

    def _has_secret(self, head: RequestHead) -> bool:
        return True


def refuse(timeout: float = 0.0) -> NoReturn:
    """Reach no agent."""
    raise AssertionError("no tool of the suite asks for agents")


@asynccontextmanager
async def conformance_door() -> AsyncIterator[str]:
    """A door for the length of a block; gives its address."""
    application = DoorApplication(ConformanceDoor().server, Access(refuse, refuse, None))
    listening = listen("127.0.0.1", 0)
    place = f"127.0.0.1:{listening.getsockname()[1]}"
    async with serving(application, OpenGuard(place), listening, ConnectionLimits(), DEADLINE):
        yield f"http://{place}/mcp"


async def main() -> None:
    """Serve until a signal comes."""
    async with conformance_door() as url:
        print(url, flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
