"""The list of tools that clients of ``ikigai mcp`` have learned: no name, word or limit of it changes by the way."""

import asyncio
import json
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

from ikigai_actors import ActorSystem, OfflineProvider
from ikigai_actors.doors.mcp import OFFERED
from ikigai_actors.reach.access import Access
from ikigai_actors.verbs.acts import ACTS
from ikigai_actors.verbs.tools import tools_for_models
from tests.kit.blocking_provider import DEADLINE
from tests.kit.doors import McpClient, mcp_server

VERBS = tools_for_models().values()

LISTED = Path(__file__).with_name("mcp_tools.json")


def bare(schema: Any) -> Any:
    """A schema without what says nothing new: titles, and the defaults of arguments."""
    if isinstance(schema, list):
        return [bare(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {key: value for key, value in schema.items() if key not in ("default", "title") or isinstance(value, dict)}
    return {key: bare(value) for key, value in kept.items()}


def test_a_verb_that_says_what_it_gives_is_a_tool_with_both_schemas() -> None:
    with ActorSystem.open(":memory:", OfflineProvider()) as system:
        kid = system.root.fork("Where is the tea?", name="kid")
        kid.reply(timeout=DEADLINE)
        [find] = VERBS
        assert find.listed()["inputSchema"]["required"] == ["agent"]
        result = find.call(Access.of(system), {"agent": "kid", "text": "THE TEA"})  # no id has a space
        assert [hit["kind"] for hit in result["value"]["found"]] == ["user", "assistant"]
        assert "Where is the tea?" in result["text"]
        Draft202012Validator(find.listed()["outputSchema"]).validate(result)


def test_the_list_comes_to_a_client_as_the_tools_say_it() -> None:
    async def scene() -> list[dict[str, Any]]:
        with ActorSystem.open(":memory:", OfflineProvider()) as system:
            listed = await McpClient(mcp_server(Access.of(system))).ask("tools/list")
        return list(listed["tools"])

    assert asyncio.run(scene()) == [*(ACTS[name].listed() for name in OFFERED), *(verb.listed() for verb in VERBS)]


def test_the_tools_are_listed_as_clients_know_them() -> None:
    known = json.loads(LISTED.read_text(encoding="utf-8"))
    for name, listed in zip(OFFERED, known, strict=True):
        tool = ACTS[name].listed()
        assert bare(tool) == bare(listed)
        assert tool["title"] == listed["title"]
