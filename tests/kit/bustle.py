"""A scenario for simulations in which much happens at once."""

from collections.abc import Mapping
from typing import Any

from ikigai_actors import (
    FunctionProvider,
    IkigaiError,
    Reply,
    Request,
    ScriptedProvider,
    Signal,
    Stream,
    ToolCall,
    current_agent,
)
from ikigai_actors.providers.scripted import ScriptedReply
from ikigai_actors.testing import Simulation
from ikigai_actors.tools.function import Result
from ikigai_actors.tools.policy import ToolTraits


class Post:
    """A tool that blocks: it sends a mail to agent 0."""

    name, timeout, traits, is_async = "post", 5.0, ToolTraits(), False

    def __init__(self) -> None:
        self.runs = 0

    def describe(self) -> Mapping[str, Any]:
        return {"name": self.name, "description": "Send a mail.", "input_schema": {"type": "object", "properties": {}}}

    def call(self, arguments: Mapping[str, Any]) -> Result:
        self.runs += 1
        me = current_agent()
        return Result(str(me.send(me.system.root, "from a tool")))

    async def call_async(self, arguments: Mapping[str, Any]) -> Result:
        return self.call(arguments)


def answer(request: Request) -> ScriptedReply:
    said = str(request.messages[-1]["content"][-1].get("text"))
    if "tools" in said:
        return Reply(tool_calls=(ToolCall("post"), ToolCall("fork", {"prompt": "sub"}), ToolCall("post")))
    return Stream(("a", "b")) if "stream" in said else f"{len(request.messages)} messages"


def worker(request: Request) -> str:
    """Blocks in calls of the runtime: makes a child and waits for it."""
    child = current_agent().system.root.fork("plain", model="scripted")
    return child.reply(timeout=60).text


def a_bit_of_everything(world: Simulation) -> None:
    """Forks, prompts, tools, streams, workers that block, signals and mail, all at once."""
    system = world.open(ScriptedProvider(answer), {"worker": FunctionProvider(worker, "worker")}, [Post()])
    root = system.root
    agents = [root.fork(text, name=text) for text in ("tools", "stream", "plain")]
    agents.append(root.fork("work", model="worker"))
    replies = [agent.prompt("tools again") for agent in agents[:3]]
    agents[1].signal(Signal.INT)
    agents[2].signal(Signal.TERM)
    for reply in replies:
        try:
            reply.get(timeout=60)
        except IkigaiError as error:
            world.note("test", type(error).__name__)
    agents[0].kill(cascade=True)
    world.settle()
