"""Runs turns with tools until it is killed, and prints what it does: ``tool_driver.py URL FILE``."""

import sys
from collections.abc import Callable
from pathlib import Path

from ikigai_actors import ActorSystem, Reply, Request, ScriptedProvider, StoreInUse, ToolCall
from ikigai_actors.tools import FunctionTool, tool

LEASE = 0.5
STEPS = 3
"""Requests of a turn that ask for calls."""


def answer(request: Request) -> str | Reply:
    """Depends on the request alone: a turn that goes on after a crash goes the same way."""
    number = len(request.messages)
    if number >= 2 * STEPS:
        return "done"
    names = ("once", "fork", "again", "alone", "once", "fork")
    calls = [
        ToolCall(name, {} if name == "fork" else {"key": f"{request.agent} {number} {place}"}, f"{number}-{place}")
        for place, name in enumerate(names)
        if name != "fork" or number == 1
    ]
    return Reply(tool_calls=tuple(calls), stop_reason="tool_use")


def tools(file: Path, report: Callable[[str], None]) -> list[FunctionTool]:
    """Tools that leave a line in a file each time that they run."""

    def note(name: str, key: str) -> str:
        with file.open("a") as lines:
            lines.write(f"{name} {key}\n")
        report(f"{name} {key}")
        return f"did {key}"

    @tool
    def once(key: str) -> str:
        return note("once", key)

    @tool(idempotent=True)
    def again(key: str) -> str:
        return note("again", key)

    @tool(alone=True)
    def alone(key: str) -> str:
        return note("alone", key)

    return [once, again, alone]


def open_when_free(url: str, given: list[FunctionTool]) -> ActorSystem:
    """Open the database, as soon as the lease of a killed owner has run out."""
    while True:
        try:
            return ActorSystem.open(url, provider=ScriptedProvider(answer), tools=given, lease=LEASE)
        except StoreInUse:
            continue


def say(line: str) -> None:
    """One line that the kernel has before the next step is taken."""
    print(line, flush=True)


if __name__ == "__main__":
    system = open_when_free(sys.argv[1], tools(Path(sys.argv[2]), say))
    system.resume()
    while True:
        say("prompt")
        system.root.fork("work").reply(timeout=60)
