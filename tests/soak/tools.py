"""The tools of the soak. What they do is noted in a file outside of the database: the world tells what ran twice."""

import asyncio
import random
import time

from ikigai_actors.tools.function import FunctionTool, tool
from tests.torture.script import World

ONCE = frozenset({"once", "later"})
"""The tools that must not run twice."""


def tools_of(world: World) -> list[FunctionTool]:
    """Tools that take a moment before and after what they do, so that disturbances come on either side of it."""

    def moments(key: str) -> tuple[float, float]:
        chance = random.Random(key)
        return chance.uniform(0, 0.05), chance.uniform(0, 0.05)

    def act(name: str, key: str) -> str:
        before, after = moments(key)
        time.sleep(before)
        world.note(name, key)
        time.sleep(after)
        return f"did {key}"

    @tool
    def once(key: str) -> str:
        return act("once", key)

    @tool(idempotent=True)
    def again(key: str) -> str:
        return act("again", key)

    @tool
    async def later(key: str) -> str:
        before, after = moments(key)
        await asyncio.sleep(before)
        world.note("later", key)
        await asyncio.sleep(after)
        return f"did {key}"

    return [once, again, later]
