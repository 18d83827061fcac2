"""Attachments of Claude Code: the text that a line of this type adds to the conversation. Pure."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from ikigai_actors.recordings.recording import count_of, object_of, objects_in
from ikigai_actors.verbs.upkeep.draft import picture

_QUEUED = (
    "The user sent a new message while you were working:\n{text}\n\nIMPORTANT: After completing your current task, you "
    "MUST address the user's message above. Do not ignore it."
)
"""The text with which a model reads what a person said while a turn was in progress."""


def attached_blocks(attachment: Mapping[str, Any]) -> list[Mapping[str, Any]] | None:
    """Return the content blocks that an attachment adds for the model; None if its type is unknown."""
    content = attachment.get("content")
    match attachment.get("type"):
        case "file" | "already_read_file":
            return _file_blocks(attachment.get("filename"), object_of(content))
        case "directory" if isinstance(content, str):
            path = attachment.get("path")
            run = _run("Bash", {"command": f"ls {path}", "description": f"Lists files in {path}"})
            return _text_block(f"{run}\nResult of calling the Bash tool:\n{content}")
        case "queued_command":
            said = blocks_in(attachment.get("prompt"))
            text = texts_of(said)
            is_said = attachment.get("commandMode") in (None, "prompt")
            pictures = (block for block in said if block.get("type") == "image")
            return [*_text_block(_QUEUED.format(text=text) if is_said else text), *pictures]
    return None


def _file_blocks(path: object, content: Mapping[str, Any]) -> list[Mapping[str, Any]] | None:
    file = object_of(content.get("file"))
    read = _run("Read", {"file_path": path})
    match content.get("type"):
        case "text" if isinstance(text := file.get("content"), str):
            lines = enumerate(text.split("\n"), count_of(file.get("startLine")) or 1)
            numbered = "\n".join(f"{number}\t{line}" for number, line in lines)
            return _text_block(f"{read}\nResult of calling the Read tool:\n{numbered}")
        case "image" | "pdf" as kind if picture(file.get("base64")) is not None:
            source = {"type": "base64", "data": file["base64"]}
            return [*_text_block(read), {"type": "image" if kind == "image" else "document", "source": source}]
    return None


def _run(tool: str, arguments: Mapping[str, Any]) -> str:
    return f"Called the {tool} tool with the following input: " + json.dumps(
        arguments, separators=(",", ":"), ensure_ascii=False
    )


def _text_block(text: str) -> list[Mapping[str, Any]]:
    return [{"type": "text", "text": text}]


def blocks_in(content: object) -> list[Mapping[str, Any]]:
    """Return the blocks of a message's content; a text becomes one block."""
    return [{"type": "text", "text": content}] if isinstance(content, str) else objects_in(content)


def texts_of(blocks: Iterable[Mapping[str, Any]]) -> str:
    """Return the texts of blocks, joined by newlines."""
    texts = (block.get("text") for block in blocks if block.get("type") == "text")
    return "\n".join(text for text in texts if isinstance(text, str))
