"""Handles of turns: made of rows, the same for every client, and honest about how the turn is."""

from collections.abc import Callable

import pytest

from ikigai_actors import ActorSystem, Reply, ScriptedProvider, ToolCall, tool
from ikigai_actors.errors import AgentNotFound, BadInput
from ikigai_actors.reach.turns import TurnHandle, TurnReader
from ikigai_actors.records.agents import registry
from ikigai_actors.records.agents.identity import new_agent_uuid
from ikigai_actors.system.remote.client import Client
from tests.kit.blocking_provider import DEADLINE, Gate
from tests.kit.databases import eventually

UUID = new_agent_uuid(bytes)


@pytest.mark.parametrize("text", [f"{UUID}/m7", f"{UUID}/t17", f"{UUID}/r3.0", f"{UUID}/r3.12"])
def test_a_handle_is_its_text(text: str) -> None:
    assert str(TurnHandle.parse(text)) == text


@pytest.mark.parametrize(
    "text",
    ["", "kid", f"{UUID}", f"{UUID}/m", f"{UUID}/x1", f"{UUID}/r3", f"{UUID}/m3.0", f"{UUID}/m7 ", f"{UUID}/m-1"],
)
def test_a_text_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match="Expected a handle that fork or prompt gave"):
        TurnHandle.parse(text)


def turns_of(host: ActorSystem) -> TurnReader:
    return TurnReader(host._store, host.approvals.pending)


def prompt(database: str, text: str, agent: str | None = None) -> TurnHandle:
    """Prompt an agent, else agent 0, as another process does."""
    with Client.open(database) as client:
        uuid = client.find(agent).uuid if agent is not None else client.read(registry.every)[0].uuid
        return TurnHandle(uuid, "m", client.prompt(uuid, text))


def test_prompts_that_follow_each_other_have_their_own_ends(durable: str) -> None:
    gate = Gate("first")
    with ActorSystem.open(durable, gate.provider) as host:
        turns, handles = turns_of(host), [prompt(durable, text) for text in ("a", "b")]
        gate.wait_until_asked()
        assert [turns.look_at(handle)["status"] for handle in handles] == ["working", "working"]
        gate.open()
        eventually(lambda: turns.look_at(handles[1])["status"] == "done", "the second answer")
        assert [turns.look_at(handle)["text"] for handle in handles] == ["first", "first"]
        later = TurnReader(host._store, host.approvals.pending)  # one that knows nothing
        assert [later.look_at(handle) for handle in handles] == [turns.look_at(handle) for handle in handles]
        opening = next(message.id for message in host.root.history() if message.kind == "user")
        assert later.look_at(TurnHandle(host.root.uuid, "t", opening))["text"] == "first"


@pytest.mark.thorough("a long history")
def test_the_end_of_a_long_turn_is_found_after_many_later_ones(new_sqlite: Callable[[], str]) -> None:
    @tool
    def step() -> str:
        """Step."""
        return "on"

    replies = [Reply(tool_calls=(ToolCall("step", {}),))] * 168  # three messages each, and a page has 500
    database, script = new_sqlite(), ScriptedProvider([*replies, "long", *["short"] * 3])
    with ActorSystem.open(database, script, tools=[step]) as host:
        host.root.configure(max_steps=1_000)
        first = prompt(database, "a")
        eventually(lambda: turns_of(host).look_at(first)["status"] == "done", "the long turn")
        for _ in range(3):
            host.root.prompt("b").get(timeout=DEADLINE)
        assert turns_of(host).look_at(first)["text"] == "long"


def test_how_a_turn_failed_is_told(durable: str) -> None:
    def refuse(request: object) -> str:
        raise ValueError("no tea")

    with ActorSystem.open(durable, ScriptedProvider(refuse)) as host:
        turns, handle = turns_of(host), prompt(durable, "tea?")
        eventually(lambda: turns.look_at(handle)["status"] == "failed", "the failure")
        assert "no tea" in turns.look_at(handle)["error"]


def test_a_prompt_of_an_agent_that_died_before_has_failed(durable: str) -> None:
    gate = Gate()
    with ActorSystem.open(durable, gate.provider) as host:
        kid = host.root.fork("work", name="kid")
        gate.wait_until_asked()
        handle = prompt(durable, "more", "kid")
        kid.kill(reason="over")
        view = turns_of(host).look_at(handle)
        gate.open()
    assert (view["status"], "over" in view["error"]) == ("failed", True)


def test_what_no_turn_is_named_by_is_refused(durable: str) -> None:
    with ActorSystem.open(durable, ScriptedProvider(["tea"])) as host:
        host.root.prompt("tea?").get(timeout=DEADLINE)
        turns, root = turns_of(host), host.root.uuid
        reply = host.root.history()[-1].id
        for handle in (("m", 9), ("t", reply), ("t", 99), ("r", 1)):
            with pytest.raises(BadInput, match="There is no turn"):
                turns.look_at(TurnHandle(root, *handle))
        with pytest.raises(AgentNotFound):
            turns.look_at(TurnHandle(UUID, "t", 1))
