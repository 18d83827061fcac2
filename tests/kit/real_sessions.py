"""Sessions in the shapes in which the real programs write them, each with what the program then sent to its model.

Made of runs of Claude Code 2.1.197, Codex 0.171.0 and pi 0.73.1 against a server on this machine. What the programs say
themselves is shortened; what they put beside each conversation (instructions, the date, lists of their tools) is left
out on both sides.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from tests.kit.recordings import Block, ClaudeCode, Codex, Pi

Sent = tuple[str, tuple[str, ...]]
"""A message of a request: the role, and its texts, calls and results."""


class RealSession(NamedTuple):
    """A session, and the messages that the program sent when it went on with it."""

    data: bytes
    sent: Sequence[Sent]


def _file(path: str, content: str) -> Block:
    file = {"filePath": path, "content": content, "numLines": 2, "startLine": 1, "totalLines": 2}
    return {"filename": path, "content": {"type": "text", "file": file}, "displayPath": path.rpartition("/")[2]}


def _attach(session: ClaudeCode, kind: str, **fields: Any) -> str:
    return session.line("attachment", attachment={"type": kind, **fields})


_READ = (
    'Called the Read tool with the following input: {"file_path":"/ship/prices.txt"}\nResult of calling the Read tool:'
)
_ONCE, _TWICE = f"{_READ}\n1\ttea 12\n2\t", f"{_READ}\n1\ttea 12\n2\tsugar 3\n3\t"
_LISTED = (
    "Called the Bash tool with the following input: "
    '{"command":"ls /ship/dir","description":"Lists files in /ship/dir"}\nResult of calling the Bash tool:\nx.txt'
)
_QUEUED = (
    "The user sent a new message while you were working:\nAlso the sail.\n\nIMPORTANT: After completing your current "
    "task, you MUST address the user's message above. Do not ignore it."
)


def _claude_code() -> ClaudeCode:
    """With attached files, a word into a turn, and parts of a reply beside one another."""
    session = ClaudeCode("s1", version="2.1.197")
    session.user("What does @prices.txt say?", None, permissionMode="default", promptSource="sdk")
    _attach(session, "file", **_file("/ship/prices.txt", "tea 12\n"))
    _attach(session, "agent_listing_delta", addedTypes=["Plan"], addedLines=["- Plan: plans."])
    _attach(session, "skill_listing", content="- loop: again.", skillCount=1, isInitial=True, names=["loop"])
    session.reply("m1", "reply 1")
    session.user("Look at @dir, and @prices.txt again.")
    _attach(session, "directory", path="/ship/dir", content="x.txt", displayPath="dir")
    _attach(session, "already_read_file", **_file("/ship/prices.txt", "tea 12\n"))
    session.reply("m2", session.call("c1", command="sleep 2; echo mast"))
    session.result("c1", "mast", is_error=False, toolUseResult={"stdout": "mast"})
    _attach(session, "queued_command", prompt="Also the sail.", commandMode="prompt")
    session.reply("m3", "reply 3")
    return session


_BEFORE: tuple[Sent, ...] = (
    ("user", ("What does @prices.txt say?", _ONCE)),
    ("assistant", ("reply 1",)),
    ("user", ("Look at @dir, and @prices.txt again.", _LISTED, _ONCE)),
    ("assistant", ('Bash {"command": "sleep 2; echo mast"}',)),
    ("user", ("= mast", _QUEUED)),
    ("assistant", ("reply 3",)),
)


def _claude_code_compacted() -> RealSession:
    session = _claude_code()
    kept, number = str(session.last), len(session.rows) + 2
    anchor = f"00000000-0000-4000-8000-{number:012}"
    preserved = {"anchorUuid": anchor, "uuids": [kept], "allUuids": [kept]}
    segment = {"headUuid": kept, "anchorUuid": anchor, "tailUuid": kept}
    facts = {"trigger": "manual", "preTokens": 15, "preservedSegment": segment, "preservedMessages": preserved}
    session.line("system", None, subtype="compact_boundary", logicalParentUuid=kept, compactMetadata=facts)
    session.user("The summary: tea.", isCompactSummary=True, isVisibleInTranscriptOnly=True)
    session.user("<local-command-caveat>Caveat: by commands.</local-command-caveat>", isMeta=True)
    session.user("<command-name>/compact</command-name>")
    session.user("<local-command-stdout>Compacted </local-command-stdout>")
    _attach(session, "file", **_file("/ship/prices.txt", "tea 12\nsugar 3\n"))
    session.user("After that?")
    session.reply("m5", "reply 5")
    commands = (
        "<local-command-caveat>Caveat: by commands.</local-command-caveat>",
        "<command-name>/compact</command-name>",
        "<local-command-stdout>Compacted </local-command-stdout>",
    )
    sent: tuple[Sent, ...] = (
        ("user", ("The summary: tea.",)),
        ("assistant", ("reply 3",)),
        ("user", (*commands, "After that?", _TWICE)),
        ("assistant", ("reply 5",)),
    )
    return RealSession(session.data, sent)


def _claude_code_kept_beginning() -> RealSession:
    """Summarised from a message on: what came before is kept, and its summary comes after it."""
    session = ClaudeCode("s1", version="2.1.197")
    kept = [session.user("One?", None), session.reply("m1", "One.")]
    session.turn("Two?", "Two.")
    end = session.turn("Three?", "Three.")
    boundary = f"00000000-0000-4000-8000-{len(session.rows) + 1:012}"
    segment = {"headUuid": kept[0], "anchorUuid": boundary, "tailUuid": kept[1]}
    session.line(
        "system", None, subtype="compact_boundary", logicalParentUuid=end, compactMetadata={"preservedSegment": segment}
    )
    session.user("The summary: two and three.", isCompactSummary=True)
    session.turn("Four?", "Four.")
    sent: tuple[Sent, ...] = (
        ("user", ("One?",)),
        ("assistant", ("One.",)),
        ("user", ("The summary: two and three.", "Four?")),
        ("assistant", ("Four.",)),
    )
    return RealSession(session.data, sent)


def numbered(session: Codex) -> bytes:
    """The file of a session whose lines have numbers."""
    for number, row in enumerate(session.rows):
        row["ordinal"] = number
    return session.data


def _codex_compacted() -> RealSession:
    def said(role: str, words: str) -> Block:
        return {"type": "message", "role": role, "content": [{"type": "input_text", "text": words}]}

    session = Codex("s1", "0.171.0", history_mode="paginated", thread_source="user")
    session.user("<permissions>All.</permissions>", role="developer")
    session.user("<environment_context>/ship</environment_context>")
    session.turn("What is tea?", "reply 1")
    session.user("And sugar?")
    session.reply(calls={"c1": {"cmd": "ls"}})
    session.result("c1", "mast")
    session.reply("reply 2")
    kept = [
        said("user", "What is tea?"),
        said("developer", "<permissions>All.</permissions>"),
        said("user", "<environment_context>/ship</environment_context>"),
        said("user", "And sugar?"),
        said("user", "The summary: tea."),
    ]
    session.line("compacted", message="The summary: tea.", replacement_history=kept, window_number=1)
    session.line("world_state", full=True, state={})
    session.turn("After compaction?", "reply 4")
    before = tuple(item["content"][0]["text"] for item in kept)
    sent: tuple[Sent, ...] = (
        ("user", (*before, "After compaction?")),
        ("assistant", ("reply 4",)),
    )
    return RealSession(numbered(session), sent)


def _pi_compacted() -> RealSession:
    session = Pi()
    first = session.line("model_change", provider="local", modelId="m1")
    session.turn("What is tea?", "reply 1")
    session.user("And sugar?")
    session.reply(session.call("c1", command="ls"))
    session.result("c1", "mast")
    session.reply("reply 2")
    session.line("compaction", summary="The summary: tea.", firstKeptEntryId=first, tokensBefore=15, fromHook=False)
    session.turn("After compaction?", "reply 4")
    sent: tuple[Sent, ...] = (
        ("user", ("The summary: tea.", "What is tea?")),
        ("assistant", ("reply 1",)),
        ("user", ("And sugar?",)),
        ("assistant", ('bash {"command": "ls"}',)),
        ("user", ("= mast",)),
        ("assistant", ("reply 2",)),
        ("user", ("After compaction?",)),
        ("assistant", ("reply 4",)),
    )
    return RealSession(session.data, sent)


REAL_SESSIONS = {
    "claude-code, attachments": RealSession(_claude_code().data, _BEFORE),
    "claude-code, the end kept": _claude_code_compacted(),
    "claude-code, the beginning kept": _claude_code_kept_beginning(),
    "codex, prompts kept": _codex_compacted(),
    "pi, all kept": _pi_compacted(),
}
"""Each session by what it shows."""
