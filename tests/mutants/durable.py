"""Mutants of what programs rely on when they are killed and interrupted: INT in order, turns that go on, keys.

nice python -m tests.mutants --durable
"""

from tests.mutants import Edit, Mutant

_TURNS, _CHANGES = "tests/agent/test_turns.py", "tests/records/test_changes.py"

DURABLE_MUTANTS = (
    Mutant(
        "INT takes a later prompt",
        "actors/inbox.py",
        "        return waiting[: waiting.index(latest) + 1] if latest in waiting else []",
        "        return list(self._ordinary.copy()) if self._ordinary else []",
        test=_TURNS,
    ),
    Mutant(
        "a request leaves for the prompt before an INT",
        "agent/turn/machine.py",
        "    if event.interrupted:\n",
        "    if False:\n",
        test=_TURNS,
    ),
    Mutant(
        "INT overtakes a prompt in the backlog",
        "agent/actor.py",
        "        prompt = self.backlog.interrupt(words=not waiting)\n",
        "        prompt = None\n",
        test=_TURNS,
    ),
    Mutant(
        "INT from elsewhere marks the latest prompt",
        "store/queries.sql",
        "AND id = (SELECT MIN(m.id) FROM mail m WHERE m.recipient = mail.recipient",
        "AND id = (SELECT MAX(m.id) FROM mail m WHERE m.recipient = mail.recipient",
        test=_CHANGES,
    ),
    Mutant(  # the mark is read with the prompt, and looked at again where it is taken up
        "a prompt is taken up though an INT from elsewhere has come for it",
        "store/queries.sql",
        " AND read_at IS NULL AND interrupted <= CAST(:ends AS BIGINT) RETURNING id",
        " AND read_at IS NULL AND 0 <= CAST(:ends AS BIGINT) RETURNING id",
        (Edit("records/mail/prompts.py", "NO_DATA, bool(interrupted))", "NO_DATA)"),),
        test=_CHANGES,
    ),
)
"""All of them."""
