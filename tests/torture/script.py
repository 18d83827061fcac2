"""The model of the crash test and its tools.

What the model says depends on its request alone. What the tools do is recorded outside of the database, in a file that
outlives every process: so the world judges what ran twice, not the log.
"""

import asyncio
import hashlib
import os
import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from ikigai_actors import (
    ActorSystem,
    AgentDead,
    AgentStopped,
    ProviderError,
    Reply,
    Request,
    ScriptedProvider,
    Signal,
    StoreError,
    StoreInUse,
    SystemClosed,
    ToolCall,
)
from ikigai_actors.agent.turn.calls import FORK
from ikigai_actors.providers.scripted import ScriptedReply, Stream
from ikigai_actors.tools.function import FunctionTool, tool
from tests.kit.tool_scripts import faults

GRANTED = 10**9
"""Tokens of all agents together: each request is held and settled, and none waits."""

LEASE = 0.5
"""Seconds after which PostgreSQL is free of a killed owner."""

IDEMPOTENT = frozenset({"again", "later_again"})
ONCE = frozenset({"once", "alone", "later"})
"""The tools that must not run twice."""
OTHERS = ("agents", "nobody")
"""One that every agent has, and one that nobody has."""

CHILD = "child of "
"""How the prompt of a child begins that the model forked; such a child forks no further."""


class World:
    """What the tools did: a line for each run, with the tool and the call's key."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def note(self, name: str, key: str) -> None:
        """Record a run; the kernel has it when this returns, so that no kill takes it back."""
        os.write(self._file, f"{name} {key}\n".encode())

    def runs(self) -> Counter[str]:
        """How often each ``tool key`` ran."""
        return Counter(self.path.read_text().splitlines())

    def close(self) -> None:
        """Record no more."""
        os.close(self._file)


def tools_of(world: World) -> list[FunctionTool]:
    """Tools that take a moment before and after what they do, so that kills come on either side of it."""

    def act(name: str, key: str) -> str:
        before, after = _moments(key)
        time.sleep(before)
        world.note(name, key)
        time.sleep(after)
        return did(key)

    async def act_later(name: str, key: str) -> str:
        before, after = _moments(key)
        await asyncio.sleep(before)
        world.note(name, key)
        await asyncio.sleep(after)
        return did(key)

    @tool
    def once(key: str) -> str:
        return act("once", key)

    @tool(idempotent=True)
    def again(key: str) -> str:
        return act("again", key)

    @tool(alone=True)
    def alone(key: str) -> str:
        return act("alone", key)

    @tool
    async def later(key: str) -> str:
        return await act_later("later", key)

    @tool(idempotent=True)
    async def later_again(key: str) -> str:
        return await act_later("later_again", key)

    return [once, again, alone, later, later_again]


def did(key: str) -> str:
    """The result of a call that ran."""
    return f"did {key}"


def _moments(key: str) -> tuple[float, float]:
    chance = random.Random(key)
    return chance.uniform(0, 0.01), chance.uniform(0, 0.01)


def answer(request: Request) -> ScriptedReply:
    """The model's reply: some steps with calls, then an end; now and then streamed, now and then an error."""
    opening, step = place(request)
    chance = random.Random(f"{opening} {step}")
    if step >= random.Random(opening).randrange(4):
        if chance.random() < 0.05:
            return ProviderError(f"overloaded by {opening}")
        return _streamed(chance, Reply(f"done with {opening}"))
    names = chance.choices((*sorted(ONCE | IDEMPOTENT), *OTHERS), k=chance.randrange(1, 5))
    if step == 0 and not opening.startswith(CHILD):
        names += [FORK] * chance.choice((0, 0, 1, 2, 3))
        chance.shuffle(names)
    calls = tuple(_call(chance, name, f"{request.agent} {opening} {step} {place}") for place, name in enumerate(names))
    return _streamed(chance, Reply("Let me see.", tool_calls=calls, stop_reason="tool_use"))


def place(request: Request) -> tuple[str, int]:
    """The prompt that the turn answers, and how many replies it has had."""
    replies = 0
    for message in reversed(request.messages):
        if message["role"] == "assistant":
            replies += 1
        elif texts := [block["text"] for block in message["content"] if block["type"] == "text"]:
            return texts[-1], replies
    raise AssertionError("a request begins with a prompt")


def _call(chance: random.Random, name: str, place: str) -> ToolCall:
    key = hashlib.sha256(place.encode()).hexdigest()[:16]
    if name != FORK:
        return ToolCall(name, {} if name in OTHERS else {"key": key}, key)
    arguments = {"prompt": CHILD + key} if chance.random() < 0.7 else {}
    if chance.random() < 0.3:
        arguments["name"] = f"kid{chance.randrange(20)}"  # mostly taken: then the fork is refused
    return ToolCall(name, arguments, key)


def _streamed(chance: random.Random, reply: Reply) -> ScriptedReply:
    if chance.random() < 0.4:
        return reply
    return Stream(tuple(reply.text.split(" ")), then=reply, delay=chance.uniform(0, 0.01))


def strict(complain: Callable[[str], None]) -> ScriptedProvider:
    """The model behind a server that refuses what the API would refuse."""

    def respond(request: Request) -> ScriptedReply:
        if fault := faults(request):
            complain(f"a request of {request.agent} would be refused: {fault}")
        return answer(request)

    return ScriptedProvider(respond)


def open_when_free(url: str, world: World, complain: Callable[[str], None]) -> ActorSystem:
    """Open a database, as soon as the lease of a killed owner has run out."""
    pause = threading.Event()
    while True:
        try:
            return ActorSystem.open(
                url,
                provider=strict(complain),
                tools=tools_of(world),
                lease=LEASE,
                budget={"tokens": GRANTED},
                resume=False,
            )
        except StoreInUse:
            pause.wait(0.02)


def continue_all(system: ActorSystem) -> None:
    """From now on whoever is stopped goes on a moment later, as long as the system is open."""

    def run() -> None:
        pause = threading.Event()
        with suppress(SystemClosed, StoreError):
            while not pause.wait(0.02):
                for record in system.agents("stopped"):
                    with suppress(AgentDead, AgentStopped):
                        system.handle(record.uuid).signal(Signal.CONT)

    threading.Thread(target=run, daemon=True).start()
