"""Sessions of Codex as agents: each shape of their files."""

import base64
from collections.abc import Iterator
from pathlib import Path

import pytest

from ikigai_actors import ActorSystem
from ikigai_actors.recordings import read_sessions
from tests.kit.imported import imported, importing, said
from tests.kit.pictures import PNG
from tests.kit.recordings import Codex


@pytest.fixture
def system() -> Iterator[ActorSystem]:
    with importing() as opened:
        yield opened


def test_the_items_of_a_reply_are_one_reply_with_its_cost(system: ActorSystem, tmp_path: Path) -> None:
    session = Codex(base_instructions={"text": "Build ships."})
    session.user("You may write anywhere.", role="developer")
    session.user("<environment_context>/ship</environment_context>")
    session.user("Look.")
    session.reply("I look.", calls={"c1": {"cmd": "ls"}, "c2": {"cmd": "pwd"}}, thought="Hm.")
    session.result("c2", {"content": "/ship", "success": False})
    session.result("c1", "mast")
    session.reply("A mast.")
    [top] = imported(system, tmp_path, session.data)
    assert said(top) == [
        ("user", "You may write anywhere.\n\n<environment_context>/ship</environment_context>\n\nLook."),
        ("assistant", "I look."),
        ("tool_result", "/ship"),
        ("tool_result", "mast"),
        ("assistant", "A mast."),
    ]
    reply, failed = top.history()[3:5]
    assert [block["type"] for block in reply.data["blocks"]] == ["reasoning", "text", "tool_use", "tool_use"]
    assert (reply.data["model"], reply.data["usage"]["cache_read_input_tokens"]) == ("openai:gpt-5-codex", 100)
    assert failed.data["is_error"] is True
    assert (top.record.spent_tokens, top.context().settings["system"]) == (2 * 115, "Build ships.")
    assert top.prompt("Well?").get(timeout=30).text == "3 prompts"


def test_calls_of_each_kind_and_pictures(system: ActorSystem, tmp_path: Path) -> None:
    url = f"data:image/png;base64,{base64.b64encode(PNG).decode()}"
    session = Codex()
    session.user("Go.", {"type": "input_image", "image_url": url})
    session.item("custom_tool_call", name="apply_patch", input="*** Begin Patch", call_id="a")
    session.item("local_shell_call", action={"type": "exec", "command": ["ls"]}, call_id="b", status="completed")
    session.item("function_call", name="view_image", arguments="no JSON", call_id="c")
    session.item("web_search_call", status="completed", action={"type": "search", "query": "ships"})
    session.item("custom_tool_call_output", call_id="a", output="patched")
    session.result("b", "mast")
    session.item("function_call_output", call_id="c", output=[{"type": "input_image", "image_url": url}])
    session.reply("Gone.")
    [top] = imported(system, tmp_path, session.data)
    calls = [block for block in top.history()[3].data["blocks"] if block["type"] == "tool_use"]
    assert [(call["name"], call["input"]) for call in calls] == [
        ("apply_patch", {"input": "*** Begin Patch"}),
        ("local_shell", {"type": "exec", "command": ["ls"]}),
        ("view_image", {"arguments": "no JSON"}),
    ]
    assert [len(message.data.get("attached", ())) for message in top.history()[2:]] == [1, 0, 0, 0, 1, 0]


def test_a_turn_that_was_taken_back_is_rewound_and_one_that_was_cut_off_is_interrupted(
    system: ActorSystem, tmp_path: Path
) -> None:
    session = Codex()
    session.turn("One.", "Two.")
    session.turn("Of straw.", "Well.")
    session.turn("Or of paper.", "Well.")
    session.event("thread_rolled_back", num_turns=2)
    session.user("Of wood.")
    session.reply(calls={"c1": {"cmd": "saw"}})
    session.event("turn_aborted", reason="interrupted")
    session.user("Go on.")
    session.event("error", message="The service is down.")
    session.turn("Again.", "Sawn.")
    [top] = imported(system, tmp_path, session.data)
    assert [line for line in said(top) if line[0] != "rewind"] == [
        ("user", "One."),
        ("assistant", "Two."),
        ("user", "Of wood."),
        ("assistant", ""),
        ("interrupted", ""),
        ("user", "Go on."),
        ("error", "The service is down."),
        ("user", "Again."),
        ("assistant", "Sawn."),
    ]


def test_a_summary_stands_for_all_before_it(system: ActorSystem, tmp_path: Path) -> None:
    session = Codex()
    session.turn("Build it.", "Built.")
    history = [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "It is built."}]}]
    session.line("compacted", message="", replacement_history=history)
    session.turn("Paint it.", "Blue.")
    [top] = imported(system, tmp_path, session.data)
    shown = top.prompt("repeat").get(timeout=30).text
    assert "It is built." in shown
    assert "Build it." not in shown


def test_a_subagent_is_an_agent_below_the_one_that_started_it(system: ActorSystem, tmp_path: Path) -> None:
    lead = Codex("lead", "0.171.0")
    lead.user("Search.")
    lead.reply(calls={"c1": {"message": "Find the mast."}})
    lead.result("c1", '{"agent_id":"sub","nickname":"Pauli"}')
    lead.reply("Found.")
    spawned = {"subagent": {"thread_spawn": {"parent_thread_id": "lead", "depth": 1}}}
    metas: list[dict[str, object]] = [{"parent_thread_id": "lead", "source": spawned}, {"source": spawned}]
    for number, meta in enumerate(metas):
        sub = Codex(f"sub{number}", "0.171.0", **meta)
        sub.turn("Find the mast.", "In the shed.")
        (tmp_path / f"a-sub{number}.jsonl").write_bytes(sub.data)  # before the one above it, by name
    (tmp_path / "lead.jsonl").write_bytes(lead.data)
    top = system.import_(read_sessions(tmp_path))
    assert top.record.name == "lead"
    assert {record.name for record in system.agents() if record.supervisor_uuid == top.uuid} == {"a-sub0", "a-sub1"}
    assert said(system.agent("a-sub0")) == [("user", "Find the mast."), ("assistant", "In the shed.")]


def test_sessions_that_name_one_another_as_started_are_read(system: ActorSystem, tmp_path: Path) -> None:
    for name, above in (("one", "two"), ("two", "one"), ("self", "self")):
        session = Codex(name, parent_thread_id=above)
        session.turn("Hello.", name)
        (tmp_path / f"{name}.jsonl").write_bytes(session.data)
    system.import_(read_sessions(tmp_path))
    assert {str(record.name) for record in system.agents()} >= {"one", "two", "self"}
