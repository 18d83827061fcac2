"""Recordings: sessions and traces of other programs as agents, and agents as sessions.

    system.import_(read_sessions("~/.claude/projects/ship/5f0c.jsonl"))

Its modules:

    formats       which there are, and which one a file has; reads files
    recording     a file, line by line
    claude_code   sessions of Claude Code; claude_attachments    what their attachments say to the model
    codex         sessions of Codex
    pi            sessions of pi
    chats         conversations, from requests; openai_chats, otel, langfuse    recorders of requests
    tree          the lines of a session as a tree
    session_files the way back: an agent as a session; writers/ has the form of each program
    verbs         /export and /import

All but `formats`, `session_files` and `verbs` is pure.
"""

from ikigai_actors.recordings.formats import FORMATS, read_sessions

__all__ = ["FORMATS", "read_sessions"]
