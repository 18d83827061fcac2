"""What fills an agent's window, by part, as the runtime estimates it."""

import json

from ikigai_actors import ActorSystem, ScriptedProvider, tool
from ikigai_actors.agent.sizes import fixed_tokens
from ikigai_actors.agent.turn.tokens import UNTOLD
from tests.kit.blocking_provider import DEADLINE
from tests.kit.tool_scripts import calling


@tool
def weigh() -> str:
    """Weigh all."""
    return "w" * 3_000


def tokens(text: str) -> int:
    """The tokens of a message, where no reply tells any."""
    return int(len(text) * UNTOLD) + 1


def test_the_context_tells_how_many_tokens_each_part_has() -> None:
    script = ScriptedProvider([calling("weigh"), calling("weigh"), "s" * 300, "so"])
    with ActorSystem.open(":memory:", script, tools=[weigh], settings={"system": "x" * 90}) as system:
        root = system.root
        root.configure(tools=["weigh"], context_window=10_000)
        assert root.context().parts["kept"] == 0
        root.prompt("p" * 60).get(timeout=DEADLINE)
        before = root.context()
        calls = [
            len(json.dumps(message.data["tool_calls"])) for message in root.history() if "tool_calls" in message.data
        ]
        assert before.parts == {
            "system": 30,
            "tools": int(len(json.dumps(root.tools())) * UNTOLD),
            "summary": 0,
            "kept": tokens("p" * 60) + tokens("s" * 300) + sum(tokens("c" * size) for size in calls),
            "results": 2 * tokens("w" * 3_000),
        }
        fixed = fixed_tokens({"system": "x" * 90}, root.tools())
        assert fixed - 1 <= before.parts["system"] + before.parts["tools"] <= fixed
        assert len(calls) == 2
        root.prompt("more").get(timeout=DEADLINE)
        root.compact(text="a summary")
        after = root.context().parts
        assert (after["summary"], after["results"]) == (tokens("a summary"), 0)


def test_where_only_the_host_knows_the_tools_the_other_parts_are_told(durable: str) -> None:
    with ActorSystem.open(durable, ScriptedProvider(["hello"])) as system:
        system.root.prompt("p" * 60).get(timeout=DEADLINE)
        with ActorSystem.attach(durable) as attached:
            assert attached.root.context().parts == {
                "system": 0, "summary": 0, "kept": tokens("p" * 60) + tokens("hello"), "results": 0,
            }  # fmt: skip
