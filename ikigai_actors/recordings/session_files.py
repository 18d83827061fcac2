"""Exports agents as sessions of other programs.

For an agent that was imported from a session, the file has the recorded lines unchanged, and then the agent's later
messages in the form of that program. For any other agent it has the messages that the agent's model sees; the agent's
forks become other paths of the session, if the format has paths. A summary that an agent here has written comes before
the messages that it keeps.
"""

from collections.abc import Mapping

from ikigai_actors.arguments import check_choice
from ikigai_actors.reach.sessions import SessionExport, stored_session
from ikigai_actors.recordings.writers.claude_code import ClaudeCodeWriter
from ikigai_actors.recordings.writers.codex import CodexWriter
from ikigai_actors.recordings.writers.pi import PiWriter
from ikigai_actors.recordings.writers.writer import SessionWriter
from ikigai_actors.verbs.text.words import counted
from ikigai_actors.verbs.upkeep.transfer import writing

WRITERS: Mapping[str, type[SessionWriter]] = {
    "claude-code": ClaudeCodeWriter,
    "codex": CodexWriter,
    "pi": PiWriter,
}
"""The writer of each format."""


def export_as_session(database: str | None, agent: str, file: str, to: str) -> str:
    """Export an agent as a session of another program to a new file; return a line for people.

    Args:
        database: the place of the database; a host may go on.
        agent: a uuid, name, or unique prefix of a uuid.
        file: the new file, which only its user may read.
        to: the format, one of `WRITERS`.

    Raises:
        BadInput: the file exists already, or cannot be written.

    Raises the errors of `stored_session`.
    """
    check_choice(to, "to", tuple(WRITERS))
    session = stored_session(database, agent, to, has_paths=WRITERS[to].has_paths)
    return f"Wrote {counted(write_session(session, file, to), 'line')} to {file}."


def write_session(session: SessionExport, file: str, to: str) -> int:
    """Write a session to a new file in the format ``to``; return the number of its lines."""
    data = WRITERS[to](session).written()
    with writing(file, "an export") as part:
        part.write(data)
    return data.count(b"\n")
