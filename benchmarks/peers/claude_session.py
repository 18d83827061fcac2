"""Claude Agent SDK: ``fork_session`` reads the session's ``.jsonl`` file, writes another with new uuids.

It needs neither a key nor the command-line program, which alone appends to a session. The file is not synced to the
disk. An empty session is refused.
"""

import json
import os
from pathlib import Path
from unittest.mock import patch
from uuid import uuid4

from claude_agent_sdk import fork_session, get_session_messages

from benchmarks.population import PROMPT, REPLY


class ClaudeSession:
    """A session file as Claude Code writes it."""

    def __init__(self, directory: Path, _: str, count: int) -> None:
        self._id = str(uuid4())
        self._environment = patch.dict(os.environ, {"CLAUDE_CONFIG_DIR": str(directory)})
        project = directory / "projects" / "-benchmark"
        project.mkdir(parents=True)
        parent: str | None = None
        with (project / f"{self._id}.jsonl").open("w", encoding="utf-8") as file:
            for place in range(1, count + 1):
                uuid, role = str(uuid4()), "user" if place % 2 else "assistant"
                text = (PROMPT if place % 2 else REPLY).format(place)
                entry = {
                    "type": role,
                    "uuid": uuid,
                    "parentUuid": parent,
                    "sessionId": self._id,
                    "timestamp": "2026-01-01T00:00:00.000Z",
                    "message": {"role": role, "content": text if place % 2 else [{"type": "text", "text": text}]},
                }
                file.write(json.dumps(entry, separators=(",", ":")) + "\n")
                parent = uuid
        self._environment.start()

    def fork(self) -> None:
        """See `Session.fork`."""
        fork_session(self._id)

    def rest(self) -> None:
        """Nothing: the fork is another file."""

    def append(self, count: int) -> None:
        """Its sessions are written by Claude Code."""
        raise NotImplementedError("nobody else appends to its files")

    def read(self) -> int:
        """See `Session.read`."""
        return len(get_session_messages(self._id))

    def turn(self) -> None:
        """Its turns are those of Claude Code."""
        raise NotImplementedError("a program of its own runs its turns")

    def close(self) -> None:
        """See `Session.close`."""
        self._environment.stop()
