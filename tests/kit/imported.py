"""A system into which recordings are imported, and what its agents say."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Unpack

from ikigai_actors import ActorSystem, AgentRef, Reply, Request, ScriptedProvider, ToolCall, tool
from ikigai_actors.recordings import read_sessions
from ikigai_actors.recordings.formats import SessionOptions
from ikigai_actors.records.fsck.check import check

RAN: list[str] = []
"""The commands that bash has run."""


@tool
def bash(command: str) -> str:
    """Run something."""
    RAN.append(command)
    return "ran"


def answer(request: Request) -> Reply | str:
    """Call bash if asked to, repeat everything, or say how many prompts there were."""
    last = request.messages[-1]["content"][-1]
    if last.get("text") == "call":
        return Reply("", (ToolCall("bash", {"command": "rm"}),))
    if last.get("text") == "repeat":
        return str([message["content"] for message in request.messages])
    return f"{sum(message['role'] == 'user' for message in request.messages)} prompts"


@contextmanager
def importing() -> Iterator[ActorSystem]:
    """A system; it is sound at the end."""
    RAN.clear()
    with ActorSystem.open(":memory:", ScriptedProvider(answer), tools=[bash], approvals="allow") as opened:
        yield opened
        assert check(opened._store) == []


def imported(system: ActorSystem, folder: Path, *files: bytes, **how: Unpack[SessionOptions]) -> list[AgentRef]:
    """The agents of sessions: of one its top first, of several by name, without the one above them."""
    for number, data in enumerate(files):
        (folder / f"ship{number or ''}.jsonl").write_bytes(data)
    before = {record.uuid for record in system.agents()}
    top = system.import_(read_sessions(folder / "ship.jsonl" if len(files) == 1 else folder, **how))
    others = [record for record in system.agents() if record.uuid not in {*before, top.uuid}]
    if len(files) == 1:
        return [top, *(system.handle(other.uuid) for other in others)]
    every = sorted(
        (other for other in (top.record, *others) if str(other.name).startswith("ship")),
        key=lambda other: str(other.name),
    )
    return [system.handle(record.uuid) for record in every]


def said(agent: AgentRef, *, every: bool = False) -> list[tuple[str, str]]:
    """The conversation of an agent, as kinds and texts; ``every`` with what a summary stands for."""
    unsaid = ("configure", "note", "fork", "tool_call")
    return [(message.kind, message.content) for message in agent.history(all=every) if message.kind not in unsaid]
