"""Recordings: sessions and traces of other programs as agents, and agents as sessions.

    system.import_(read_sessions("~/.claude/projects/ship/5f0c.jsonl"))

Its modules:

    formats       the list of file formats; recognises and reads files
    recording     a file of another program, line by line
    claude_code   sessions of Claude Code; claude_attachments    the texts of their attachments
    codex         sessions of Codex
    pi            sessions of pi
    chats         agents of recorded requests to a model; openai_chats, otel, langfuse    files with such requests
    tree          the lines of a session as a tree
    session_files exports an agent as a session; writers/: a writer for the form of each program
    verbs         /export and /import

All modules but `formats`, `session_files` and `verbs` are pure.
"""

from ikigai_actors.recordings.formats import FORMATS, read_sessions

__all__ = ["FORMATS", "read_sessions"]
