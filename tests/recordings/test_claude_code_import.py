"""Sessions of Claude Code as agents: each shape of their files, and nothing of a file that is damaged."""

import base64
from collections.abc import Iterator
from pathlib import Path

import pytest

from ikigai_actors import ActorSystem, BadInput
from ikigai_actors.behaviour.turns import own_messages
from ikigai_actors.errors import ImportRefused
from ikigai_actors.recordings import read_sessions
from ikigai_actors.recordings.recording import LONGEST_RECORDED_LINE, Recording
from tests.kit.imported import RAN, imported, importing, said
from tests.kit.pictures import PNG
from tests.kit.recordings import BEGUN, ClaudeCode, text


@pytest.fixture
def system() -> Iterator[ActorSystem]:
    with importing() as opened:
        yield opened


def test_a_reply_in_pieces_is_one_reply_with_all_its_blocks_and_its_cost(system: ActorSystem, tmp_path: Path) -> None:
    session = ClaudeCode()
    session.user("Look.")
    session.reply("m1", {"type": "thinking", "thinking": "Hm.", "signature": "xyz"})
    session.reply("m1", "I look.")
    session.reply("m1", session.call("c1", command="ls"))
    session.result("c1", [text("mast"), text("sail")])
    session.reply("m2", "A mast and a sail.")
    [top] = imported(system, tmp_path, session.data)
    assert said(top) == [
        ("user", "Look."),
        ("assistant", "I look."),
        ("tool_result", "mast\nsail"),
        ("assistant", "A mast and a sail."),
    ]
    reply = top.history()[3]
    assert [block["type"] for block in reply.data["blocks"]] == ["thinking", "text", "tool_use"]
    assert (reply.data["model"], reply.data["lines"]) == ("anthropic:claude-sonnet-5-5", [2, 3, 4])
    assert [message.created_at for message in top.history()[2:]] == [BEGUN + 1_000 * line for line in (1, 2, 5, 6)]
    assert (top.record.name, top.record.spent_tokens) == ("ship", 2 * 115)


def test_results_of_calls_beside_one_another_make_no_branch(system: ActorSystem, tmp_path: Path) -> None:
    session = ClaudeCode()
    session.user("Write both.")
    first = session.reply("m1", session.call("c1", command="a"))
    session.reply("m1", session.call("c2", command="b"))
    session.line("progress", first, data={"hook": "PostToolUse"})
    session.result("c1", "one", session.last)
    session.result("c2", "two", session.rows[2]["uuid"])
    session.reply("m2", "Both.")
    [top] = imported(system, tmp_path, session.data)
    assert sorted(said(top)[2:4]) == [("tool_result", "one"), ("tool_result", "two")]
    assert said(top)[4:] == [("assistant", "Both.")]


def test_another_path_is_an_agent_that_was_forked_where_it_parts(system: ActorSystem, tmp_path: Path) -> None:
    session = ClaudeCode()
    end = session.turn("We build a ship.", "Yes.")
    inner = session.turn("Of wood.", "Oak.", end)
    session.turn("Which oak?", "German.", inner)
    session.turn("Which oak, then?", "English.", inner)
    session.turn("Of steel.", "Riveted.", end)
    top, *others = imported(system, tmp_path, session.data)
    assert [text for _, text in said(top)] == ["We build a ship.", "Yes.", "Of steel.", "Riveted."]
    assert [[text for _, text in said(other)] for other in others] == [
        ["We build a ship.", "Yes.", "Of wood.", "Oak.", "Which oak, then?", "English."],
        ["We build a ship.", "Yes.", "Of wood.", "Oak.", "Which oak?", "German."],
    ]
    assert [len(own_messages(other)) for other in others] == [5 + 1, 3]  # a birth, what is new, another birth
    assert top.diff(others[0]).common == 4
    assert [branch.prompt("And?").get(timeout=30).text for branch in (top, *others)] == [
        "3 prompts",
        "4 prompts",
        "4 prompts",
    ]


def test_a_path_that_parts_within_a_turn_begins_before_the_turn(system: ActorSystem, tmp_path: Path) -> None:
    session = ClaudeCode()
    session.turn("We build a ship.", "Yes.")
    asked = session.user("Of what?")
    session.reply("m2", "Of straw.", after=asked)
    session.reply("m3", "Of wood.", after=asked)
    top, branch = imported(system, tmp_path, session.data)
    assert [text for _, text in said(top)][2:] == ["Of what?", "Of wood."]
    assert [text for _, text in said(branch)][2:] == ["Of what?", "Of straw."]


def test_sidechains_are_agents_below_the_one_that_began_them(system: ActorSystem, tmp_path: Path) -> None:
    session = ClaudeCode()
    session.user("Search.")
    call = session.call("c1", "Task", prompt="Find the mast.")
    session.reply("m1", call)
    session.user("Find the mast.", None, isSidechain=True)
    session.reply("m2", "In the shed.", isSidechain=True)
    session.result("c1", "In the shed.", session.rows[1]["uuid"], toolUseResult={"agentId": "a7"})
    session.reply("m3", "Found.")
    inner = ClaudeCode(agent="a7")
    inner.turn("Find the sail.", "In the loft.")
    (tmp_path / "ship" / "subagents").mkdir(parents=True)
    (tmp_path / "ship" / "subagents" / "agent-a7.jsonl").write_bytes(inner.data)
    top, *below = imported(system, tmp_path, session.data)
    assert [text for _, text in said(top)] == ["Search.", "", "In the shed.", "Found."]
    assert {agent.record.name: said(agent)[-1][1] for agent in below} == {
        "ship-sidechain": "In the shed.",
        "agent-a7": "In the loft.",
    }
    assert [agent.supervisor for agent in below] == [top, top]


def test_a_summary_stands_for_all_before_it_also_within_a_turn(system: ActorSystem, tmp_path: Path) -> None:
    session = ClaudeCode()
    session.user("Build it.")
    session.reply("m1", session.call("c1", command="saw"))
    last = session.result("c1", "sawn")
    session.line("system", None, subtype="compact_boundary", logicalParentUuid=last, content="Conversation compacted")
    session.user("We sawed the planks.", isCompactSummary=True)
    session.reply("m2", "Now I nail.")
    session.turn("Go on.", "Nailed.")
    [top] = imported(system, tmp_path, session.data)
    assert [kind for kind, _ in said(top)] == ["summary", "assistant", "user", "assistant"]
    assert [message.kind for message in top.history(all=True)][2:5] == ["user", "assistant", "tool_result"]
    shown = top.prompt("repeat").get(timeout=30).text
    assert "We sawed the planks." in shown
    assert "Build it." not in shown


def test_what_claude_code_says_itself_is_no_prompt_of_its_own(system: ActorSystem, tmp_path: Path) -> None:
    session = ClaudeCode()
    session.user("Caveat: what follows was said by commands.", isMeta=True)
    session.user("<command-name>/model</command-name>")
    session.turn("Build it.", "Built.")
    session.user("Paint it.")
    session.reply("m3", "Which", " colour")
    session.reply("m4", "API Error: overloaded", model="<synthetic>", isApiErrorMessage=True)
    session.user("Blue.")
    session.reply("m5", session.call("c1", command="paint"))
    session.user("[Request interrupted by user for tool use]")
    session.turn("Stop.", "Stopped.")
    session.user("<local-command-stdout>Bye!</local-command-stdout>")
    [top] = imported(system, tmp_path, session.data)
    assert [kind for kind, _ in said(top)] == [
        "user", "assistant", "user", "assistant", "error", "user", "assistant", "interrupted", "user", "assistant",
    ]  # fmt: skip
    assert said(top)[0][1].endswith("/model</command-name>\n\nBuild it.")


def test_a_call_without_a_result_is_interrupted_and_a_result_without_a_call_is_left_out(
    system: ActorSystem, tmp_path: Path
) -> None:
    session = ClaudeCode()
    session.user("Go.")
    session.result("lost", "of a call that was not written")
    session.reply("m1", "Going.", session.call("c1", command="go"))
    [top] = imported(system, tmp_path, session.data)
    assert [kind for kind, _ in said(top)] == ["user", "assistant", "interrupted"]
    assert top.record.turn == 0
    assert top.prompt("Well?").get(timeout=30).text == "2 prompts"


def test_pictures_become_attachments_of_prompts_and_of_results(system: ActorSystem, tmp_path: Path) -> None:
    source = {"type": "base64", "media_type": "image/png", "data": base64.b64encode(PNG).decode()}
    broken = {"type": "base64", "media_type": "image/png", "data": "no picture"}
    session = ClaudeCode()
    session.user([text("Look."), {"type": "image", "source": source}, {"type": "image", "source": broken}])
    session.reply("m1", session.call("c1", "Read"))
    session.result("c1", [{"type": "image", "source": source}])
    session.reply("m2", "A mast.")
    [top] = imported(system, tmp_path, session.data)
    attached = [
        [attachment["media"] for attachment in message.data.get("attached", ())] for message in top.history()[2:]
    ]
    assert attached == [["image/png"], [], ["image/png"], []]


def test_attached_pictures_come_and_attachments_of_other_types_are_named(system: ActorSystem, tmp_path: Path) -> None:
    session = ClaudeCode()
    session.user("Look at @mast.png and @broken.png.")
    for name, data in (("mast", base64.b64encode(PNG).decode()), ("broken", "no picture")):
        content = {"type": "image", "file": {"base64": data, "type": "image/png"}}
        session.line("attachment", attachment={"type": "file", "filename": f"/ship/{name}.png", "content": content})
    for kind in ("skill_listing", "of_a_later_version", "skill_listing"):
        session.line("attachment", attachment={"type": kind, "content": "x"})
    session.reply("m1", "A mast.")
    left_out: list[str] = []
    [top] = imported(system, tmp_path, session.data, notice=left_out.append)
    read = 'Called the Read tool with the following input: {"file_path":"/ship/mast.png"}'
    assert said(top) == [("user", f"Look at @mast.png and @broken.png.\n\n{read}"), ("assistant", "A mast.")]
    assert [attachment["media"] for attachment in top.history()[2].data["attached"]] == ["image/png"]
    [line] = left_out
    assert line == (
        "Only in the file, though a model may have read it: attachment file, attachment of_a_later_version, attachment "
        "skill_listing."
    )


def test_what_a_summary_keeps_is_found_where_it_was_inherited_too(system: ActorSystem, tmp_path: Path) -> None:
    session = ClaudeCode()
    kept = session.turn("One?", "One.")
    end = session.turn("Two?", "Two.")
    session.turn("Three?", "Three.", end)  # another path
    segment = {"headUuid": kept, "anchorUuid": "elsewhere", "tailUuid": end}
    facts = {"preservedSegment": segment}
    session.line("system", None, subtype="compact_boundary", logicalParentUuid=end, compactMetadata=facts)
    session.user("A summary.", isCompactSummary=True)
    session.turn("Four?", "Four.")
    top, branch = imported(system, tmp_path, session.data)
    assert [text for _, text in said(top)] == ["A summary.", "One.", "Two?", "Two.", "Four?", "Four."]
    assert [text for _, text in said(branch)] == ["One?", "One.", "Two?", "Two.", "Three?", "Three."]


def test_replies_of_one_id_that_do_not_follow_one_another_are_two(system: ActorSystem, tmp_path: Path) -> None:
    session = ClaudeCode()  # as of a gateway that counts anew after each start
    for said_, answer in (("One?", "One."), ("Two?", "Two.")):
        session.user(said_)
        session.reply("msg_1", answer)
    [top] = imported(system, tmp_path, session.data)
    assert [text for _, text in said(top)] == ["One?", "One.", "Two?", "Two."]


def test_a_command_of_the_shell_and_its_output_are_one_prompt(system: ActorSystem, tmp_path: Path) -> None:
    session = ClaudeCode()
    session.user("<bash-input>ls</bash-input>")
    session.user("<bash-stdout>mast</bash-stdout><bash-stderr></bash-stderr>")
    session.reply("m1", "A mast.")
    [top] = imported(system, tmp_path, session.data)
    assert [kind for kind, _ in said(top)] == ["user", "assistant"]


def test_a_file_may_have_a_mark_other_line_ends_blank_lines_and_a_last_line_that_was_cut_off(
    system: ActorSystem, tmp_path: Path
) -> None:
    session = ClaudeCode()
    session.turn("One.", "Two.")
    session.rows.append({"type": "file-history-snapshot", "messageId": "x", "snapshot": {}})
    session.rows.append({"type": "of-a-later-version", "uuid": "y", "parentUuid": session.last})
    data = b"\xef\xbb\xbf" + session.data.replace(b"\n", b"\r\n\r\n") + session.data.splitlines()[0][:-7]
    left_out: list[str] = []
    [top] = imported(system, tmp_path, data, notice=left_out.append)
    assert said(top) == [("user", "One."), ("assistant", "Two.")]
    assert left_out == ["ship.jsonl: the last line was cut off, and is left out."]


def test_no_call_runs_until_the_setting_is_removed(system: ActorSystem, tmp_path: Path) -> None:
    session = ClaudeCode()
    session.turn("One.", "Two.")
    [top] = imported(system, tmp_path, session.data)
    child = top.fork(name="child")
    for agent in (top, child):
        agent.prompt("call").get(timeout=30)
        assert RAN == []
        assert [message.content for message in agent.history() if message.kind == "tool_result"] == [
            "This call is not in the record, and nothing runs here. Go on without it."
        ]
    top.configure(effects=None)
    top.prompt("call").get(timeout=30)
    assert RAN == ["rm"]


def test_calls_run_and_the_model_is_asked_that_answered_if_they_are_kept(system: ActorSystem, tmp_path: Path) -> None:
    session = ClaudeCode()
    session.turn("One.", "Two.")
    [top, *_] = imported(system, tmp_path, session.data, keep_workspace=True, keep_model=True)
    assert top.context().settings == {"model": "anthropic:claude-sonnet-5-5"}


def test_a_folder_of_sessions_comes_below_one_agent(system: ActorSystem, tmp_path: Path) -> None:
    left_out: list[str] = []
    for name in ("one", "two"):
        session = ClaudeCode(name)
        session.turn(name, "Well.")
        inner = ClaudeCode(name, agent=f"a{name}")
        inner.turn("Search.", "Found.")
        (tmp_path / "projects" / "ship" / name / "subagents").mkdir(parents=True)
        (tmp_path / "projects" / "ship" / f"{name}.jsonl").write_bytes(session.data)
        (tmp_path / "projects" / "ship" / name / "subagents" / f"agent-a{name}.jsonl").write_bytes(inner.data)
        (tmp_path / "projects" / "ship" / name / "subagents" / f"agent-a{name}.meta.json").write_text('{"type": "x"}')
    (tmp_path / "projects" / "other.jsonl").write_bytes(b'{"a": 1}\n')
    (tmp_path / "projects" / "empty.jsonl").write_bytes(b"\n")
    top = system.import_(read_sessions(tmp_path / "projects", notice=left_out.append))
    assert (
        top.record.name,
        sorted(str(record.name) for record in system.agents() if record.supervisor_uuid == top.uuid),
    ) == (
        "projects",
        ["one", "two"],
    )
    named = {record.uuid: record.name for record in system.agents()}
    above = {record.name: named.get(str(record.supervisor_uuid)) for record in system.agents()}
    assert (above["agent-aone"], above["agent-atwo"]) == ("one", "two")
    assert left_out == ["other.jsonl was left out: its format is not known."]


def test_what_has_no_session_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").write_bytes(b"")
    with pytest.raises(BadInput, match="has no session of a format that is known: claude-code, codex"):
        read_sessions(tmp_path / "empty.jsonl")
    with pytest.raises(BadInput, match="cannot be read: No such file"):
        read_sessions(tmp_path / "gone.jsonl")
    with pytest.raises(ImportRefused, match=r"line 1: expected a line of 64 MiB at most"):
        list(Recording("long.jsonl", b" " * (LONGEST_RECORDED_LINE + 1)).lines())
    with pytest.raises(ImportRefused, match=r"a.jsonl, line 1: expected JSON \(NaN is no number of JSON\)"):
        list(Recording("a.jsonl", b'{"a": NaN}\n').lines())
