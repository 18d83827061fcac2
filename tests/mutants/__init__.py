"""Mutants: does the machine of the kit find bugs? Each is one planted in a copy of the runtime, and is to be found.

    python -m tests.mutants                       # all, as a table
    python -m tests.mutants fork-point epoch      # these

Planting replaces text that stands exactly once in a file; a mutant whose text is gone is an error, not a pass.
"""

from typing import NamedTuple


class Mutant(NamedTuple):
    """One bug."""

    name: str
    file: str
    before: str
    after: str


MUTANTS = (
    Mutant(
        "fork point off by one",
        "forks.py",
        "fork_message_id=state.head,",
        "fork_message_id=state.head - 1 if state.head > 1 else state.head,",
    ),
    Mutant(
        "bound 0 read as no limit",
        "history.py",
        "        bound, bounded = current.fork_message_id, True\n        if bound == 0:",
        "        bound = bounded = current.fork_message_id\n        if bound == -1:",
    ),
    Mutant(
        "rewind ignores inherited marks",
        "history.py",
        "    while mark is not None and mark.id != target:",
        "    while mark is not None and (mark.id != target or mark.earlier is None):",
    ),
    Mutant(
        "clear keeps the marks",
        "history.py",
        "return View(message.id, None, None, {})",
        "return View(message.id, None, view.marks, {})",
    ),
    Mutant(
        "rewind hides its mark",
        "history.py",
        "Segment(mark.start, mark.id, mark.closed)",
        "Segment(mark.start, mark.id - 1, mark.closed)",
    ),
    Mutant(
        "effect before commit",
        "agent.py",
        "        self._step = step\n        self.actor_inbox.held = True",
        "        self._effects.extend(step.effects)\n        step = replace(step, effects=())\n"
        "        while self._effects:\n            self._state_before, self.state = self.state, step.state\n"
        "            self._perform(self._effects.pop(0))\n            self.state = self._state_before\n"
        "        self._step = step\n        self.actor_inbox.held = True",
    ),
    Mutant("a fence that lets the dead write", "units.py", 'if row.status == "dead":', 'if row.status == "buried":'),
    Mutant(
        "tool run again after a crash",
        "calls.py",
        "again = [call.id for call in cut if call.name in book and book[call.name].idempotent]",
        "again = [call.id for call in cut]",
    ),
    Mutant(
        "mail read twice",
        "mailbox.py",
        'tx.run("mark_read", recipient=recipient, sender=sender, last=mails[-1].id',
        'tx.run("mark_read", recipient=recipient, sender=sender, last=mails[-1].id - 1',
    ),
    Mutant(
        "unread mail not counted",
        "mailbox.py",
        "row = locked.count(recipient, unread=-len(mails))",
        "row = locked.count(recipient, unread=-1)",
    ),
    Mutant(
        "a verdict that never releases",
        "inbox.py",
        "        self.held = False\n        if not self.scheduled:",
        "        self.held = len(self._ordinary) > 1\n        if not self.scheduled:",
    ),
    Mutant(
        "a late reply is believed",
        "machine.py",
        "return state.phase is Phase.WAITING_FOR_MODEL and state.request == request",
        "return state.phase is Phase.WAITING_FOR_MODEL",
    ),
    Mutant(
        "a cancelled call still answers",
        "outside.py",
        "        with self._lock:\n            if self._over:\n                return\n"
        "            self._over = True\n"
        "        self._on_reply(answer)",
        "        with self._lock:\n            self._over = True\n        self._on_reply(answer)",
    ),
    Mutant(
        "INT leaves the turn open",
        "drafts.py",
        "return Step(after, LogUnit(state.uuid, messages, turn=0), answers)",
        "return Step(after, LogUnit(state.uuid, messages), answers)",
    ),
    Mutant(
        "cascade stops at the children",
        "signalling.py",
        "order: Sequence[str] = cascade(self._target, above)",
        "order: Sequence[str] = [one for one in cascade(self._target, above) if self._target in (one, above.get(one))]",
    ),
    Mutant(
        "orphans stay with the dead",
        "deaths.py",
        "adopted = {one.agent: one.by for one in decisions",
        "adopted = {one.agent: family[one.agent].supervisor or one.by for one in decisions",
    ),
    Mutant("a retry writes twice", "journal.py", "        verdicts.clear()\n", "        verdicts[:] = verdicts\n"),
    Mutant(
        "a batch that fails is dropped",
        "journal.py",
        "                for entry in entries:\n                    self._commit((entry,))\n                return",
        "                return",
    ),
    Mutant(
        "a restart forgets who waits",
        "agent.py",
        "remains = Remains(state.head, state.turn, state.standing, callers, waiting)",
        "remains = Remains(state.head, state.turn, state.standing, (), waiting)",
    ),
    Mutant(
        "stopped agents take prompts",
        "machine.py",
        "case on.Prompt() | on.Resume() if state.status is Status.STOPPED:\n            return False",
        "case on.Prompt() | on.Resume() if state.status is Status.DEAD:\n            return False",
    ),
    Mutant(
        "resume asks nobody",
        "machine.py",
        "    if not calls:\n        asked = request_model(state)",
        "    if not calls:\n        return Step(replace(state, phase=Phase.WAITING_FOR_MODEL), effects=told)\n"
        "        asked = request_model(state)",
    ),
)
"""All of them."""
