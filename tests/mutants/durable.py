"""Mutants of what programs rely on when they are killed and interrupted: INT in order, turns that go on, keys.

nice python -m tests.mutants --durable
"""

from tests.mutants import Edit, Mutant

_TURNS, _CHANGES = "tests/agent/test_turns.py", "tests/records/test_changes.py"
_CUT_OFF, _BOOT = "tests/system/test_cut_off.py", "tests/agent/test_boot.py"

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
        "a timer ends a turn that was cut off",
        "agent/backlog.py",
        "        if state.phase is not Phase.IDLE or not (runs",
        "        if state.phase not in (Phase.IDLE, Phase.INTERRUPTED) or not (runs",
        test=_CUT_OFF,
    ),
    Mutant(
        "a turn that comes no further goes on a fourth time",
        "agent/boot.py",
        "    return [one.uuid for one in cut_off if not (resume and one.cut_offs < MOST_CUT_OFFS)]",
        "    return [one.uuid for one in cut_off if not (resume and one.cut_offs <= MOST_CUT_OFFS)]",
        test=_CUT_OFF,
    ),
    Mutant(
        "a message does not begin the count of cuts again",
        "store/queries.sql",
        "resumes = CASE WHEN resumed_at = :at THEN resumes + 1 ELSE 1 END",
        "resumes = resumes + 1",
        test=_BOOT,
    ),
    Mutant(
        "a turn that is left shows a sign of life",
        "store/queries.sql",
        "  FROM agents a WHERE a.awake = 1 AND a.turn > 0 AND a.cut_off = 0",
        "  FROM agents a WHERE a.awake = 1 AND a.turn > 0",
        test=_CUT_OFF,
    ),
    Mutant(
        "what goes on is still marked as cut off",
        "store/queries.sql",
        "UPDATE agents SET cut_off = 0, resumes = CASE",
        "UPDATE agents SET resumes = CASE",
        test=_BOOT,
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
