"""Mutants: does the machine of the kit find bugs? Each is one planted in a copy of the runtime, and is to be found.

    nice python -m tests.mutants --shrink         # all, as a table in Markdown
    nice python -m tests.mutants fork epoch       # those whose names hold one of these

Planting replaces text that stands exactly once in a file; a mutant whose text is gone is an error, not a pass. Where a
second defence would hide a bug completely, the mutant takes both away, and says so.
"""

from typing import NamedTuple


class Edit(NamedTuple):
    """A replacement of text."""

    file: str
    """Below the package, or as ``../supervisors/…``."""
    before: str
    after: str


class Mutant(NamedTuple):
    """One bug."""

    name: str
    file: str
    before: str
    after: str
    also: tuple[Edit, ...] = ()
    """What else is replaced: the second defence, or the rest of a longer change."""
    test: str = ""
    """The file of tests that finds it, where a decision is shown by itself and no machine comes across it."""
    tier: str = "standard"
    """The first tier that has those tests."""

    @property
    def edits(self) -> tuple[Edit, ...]:
        """All that is replaced."""
        return (Edit(self.file, self.before, self.after), *self.also)


MUTANTS = (
    Mutant(
        "fork point off by one",
        "agent/turn/fork.py",
        "    fork = head if bed.at is None else bed.at",
        "    fork = (head - 1 if head > 1 else head) if bed.at is None else bed.at",
    ),
    Mutant(  # the query that reads the lineage knows the bound as well
        "bound 0 read as no limit",
        "records/log/history.py",
        "        bound, bounded = min(bound, current.fork_message_id) if bounded else current.fork_message_id, True\n"
        "        if bound == 0:",
        "        bound = bounded = current.fork_message_id\n        if bound == -1:",
        (
            Edit(
                "store/queries.sql",
                " WHERE line.bound > 0 AND (line.cleared IS NULL OR",
                " WHERE (line.cleared IS NULL OR",
            ),
        ),
    ),
    Mutant(
        "a fork is bounded by its parent's fork point alone",
        "records/log/history.py",
        "min(bound, current.fork_message_id) if bounded else current.fork_message_id, True",
        "current.fork_message_id, True",
    ),
    Mutant(
        "a fork at a position within a step",
        "records/log/fork_point.py",
        "    if 0 <= position <= head and is_boundary(history.between, position):",
        "    if 0 <= position <= head:",
    ),
    Mutant(
        "a child is merged once, whatever it says later",
        "store/queries.sql",
        "VALUES (:into, :child, :head, :message, :now) ON CONFLICT DO NOTHING RETURNING message",
        "SELECT :into, :child, :head, :message, :now\n"
        " WHERE NOT EXISTS (SELECT 1 FROM merges WHERE into_uuid = :into AND from_uuid = :child) RETURNING message",
    ),
    Mutant(
        "a merge names another head than its key",
        "records/log/merges.py",
        "    if child.position != entry.head:",
        "    if False:",
    ),
    Mutant(  # that there is something new is looked at before
        "a head is merged twice",
        "store/queries.sql",
        "VALUES (:into, :child, :head, :message, :now) ON CONFLICT DO NOTHING RETURNING message",
        "VALUES (:into, :child, :head, :message, :now) ON CONFLICT (into_uuid, from_uuid, from_head)\n"
        "DO UPDATE SET message = excluded.message RETURNING message",
        (Edit("records/log/merges.py", "    merged, at = latest", "    merged, at = 0, latest[1]"),),
    ),
    Mutant(
        "a merge names the agent that merges",
        "agent/turn/merging.py",
        '        "from": source.agent,',
        '        "from": state.uuid,',
    ),
    Mutant(
        "the result of a merge is the first answer",
        "agent/turn/merging.py",
        "for message in reversed(news) if",
        "for message in news if",
    ),
    Mutant(
        "rewind ignores inherited marks",
        "records/log/history.py",
        "    while mark is not None and mark.id != target:",
        "    while mark is not None and (mark.id != target or mark.earlier is None):",
    ),
    Mutant(
        "clear keeps the marks",
        "records/log/history.py",
        "return View(message.id, None, None, {})",
        "return View(message.id, None, view.marks, {})",
    ),
    Mutant(
        "rewind hides its mark",
        "records/log/history.py",
        "Segment(mark.start, mark.id, mark.closed)",
        "Segment(mark.start, mark.id - 1, mark.closed)",
    ),
    Mutant(
        "effect before commit",
        "agent/actor.py",
        "        self._step = step\n        self.actor_inbox.held = True",
        "        self._effects.add(step.effects)\n        step = replace(step, effects=())\n"
        "        while not self._effects.is_empty:\n"
        "            self._state_before, self.state = self.state, step.state\n"
        "            self._perform(self._effects.next())\n            self.state = self._state_before\n"
        "        self._step = step\n        self.actor_inbox.held = True",
    ),
    Mutant(  # status and epoch both keep the dead from writing
        "a fence that lets the dead write",
        "records/log/append.py",
        'if row.status == "dead":',
        'if row.status == "buried":',
        (
            Edit(
                "records/log/append.py",
                "if row.owner != fence.host or row.epoch != fence.epoch:",
                "if row.owner != fence.host or (row.status != 'dead' and row.epoch != fence.epoch):",
            ),
        ),
    ),
    Mutant(
        "epoch not checked",
        "records/log/append.py",
        "if row.owner != fence.host or row.epoch != fence.epoch:",
        "if row.owner != fence.host:",
    ),
    Mutant(
        "owner not checked",
        "records/log/append.py",
        "if row.owner != fence.host or row.epoch != fence.epoch:",
        "if row.epoch != fence.epoch:",
    ),
    Mutant(  # the owner of the shard and the end of the host both keep it from writing
        "ended hosts pass the fence",
        "store/queries.sql",
        "WHERE id = :host AND ended_at IS NULL AND batch = :last",
        "WHERE id = :host AND batch = :last",
        (
            Edit(
                "records/log/append.py",
                "if row.owner != fence.host or row.epoch != fence.epoch:",
                "if row.epoch != fence.epoch:",
            ),
        ),
    ),
    Mutant("tree row not taken", "store/unit.py", "if kept is TreeLock.WHOLE:", "if not units:"),
    Mutant("tree not shared by births", "store/unit.py", "elif kept is TreeLock.SHARED:", "elif not units:"),
    Mutant(
        "tool run again after a crash",
        "agent/turn/calls.py",
        'own is not None and own.idempotent and not call.elsewhere and call.definition in ("", own.definition)',
        "own is not None",
    ),
    Mutant(
        "mail read twice",
        "records/mail/mail.py",
        'tx.run("mark_read", recipient=recipient, sender=sender, last=mails[-1].id',
        'tx.run("mark_read", recipient=recipient, sender=sender, last=mails[-1].id - 1',
    ),
    Mutant(
        "unread mail not counted",
        "records/mail/mail.py",
        "row = locked.count(recipient, unread=-len(mails))",
        "row = locked.count(recipient, unread=-1)",
    ),
    Mutant(
        "a verdict that never releases",
        "actors/inbox.py",
        "        self.held = False\n        if not self.scheduled:",
        "        self.held = len(self._ordinary) > 1\n        if not self.scheduled:",
    ),
    Mutant(  # a cancelled call says nothing, and the machine would not believe it
        "a late reply is believed",
        "agent/turn/machine.py",
        "return state.phase is Phase.WAITING_FOR_MODEL and state.request == request",
        "return state.phase is Phase.WAITING_FOR_MODEL",
        (
            Edit(
                "agent/jobs.py",
                "        if self._permit.ended or not self._ends():\n            return\n        try:",
                "        self._ends()\n        try:",
            ),
        ),
    ),
    Mutant(
        "mail marked read outside the transaction",
        "records/mail/mail.py",
        "        return take_mail(tx, locked, self.recipient, self.now, self.sender, self.limit)",
        "        return Taken(tuple(_unread(tx, self.recipient, self.sender)), 0)\n\n\n"
        "class Mark(Read):\n"
        "    def write(self, tx: Transaction, locked: LockedRows) -> Taken:\n"
        "        return take_mail(tx, locked, self.recipient, self.now, self.sender, self.limit)",
        (
            Edit(
                "system/handles/commands/mail.py",
                "        return self._write(unit, timeout, lambda taken: list(taken.mails))\n",
                "        taken = self._write(unit, timeout, lambda taken: list(taken.mails))\n"
                "        taken.get()\n"
                "        from ikigai_actors.records.mail.mail import Mark\n"
                "        self.system.writer.ask(Mark(unit.recipient, unit.now, unit.sender))\n"
                "        return taken\n",
            ),
        ),
    ),
    Mutant(  # of mails that were sent in the same millisecond a database may give any first
        "mail in order of time",
        "store/queries.sql",
        "AND (CAST(:sender AS TEXT) IS NULL OR COALESCE(sender, '') = :sender)\n ORDER BY id LIMIT :most",
        "AND (CAST(:sender AS TEXT) IS NULL OR COALESCE(sender, '') = :sender)\n ORDER BY created_at, body LIMIT :most",
    ),
    Mutant(
        "restart window off by one",
        "../supervisors/intensity.py",
        "if abs(now - restart) <= period",
        "if abs(now - restart) < period",
    ),
    Mutant(
        "a restart too many",
        "../supervisors/intensity.py",
        "len(counted) <= intensity",
        "len(counted) - 1 <= intensity",
    ),
    Mutant(
        "lost wake-up in wait",
        "agent/waits.py",
        "if waiter.wait.agents is not None and uuid in waiter.pending:",
        "if waiter.wait.agents is not None and uuid in waiter.results:",
    ),
    Mutant(
        "barrier skipped",
        "agent/turn/machine.py",
        "calls_rest = state.phase is Phase.RUNNING_TOOLS and at_rest(state.calls)",
        "calls_rest = state.phase is Phase.RUNNING_TOOLS",
    ),
    Mutant(
        "STOP is ignored within a turn",
        "agent/turn/tool_steps.py",
        "    if state.status is Status.STOPPED:\n        return Step(state)\n",
        "",
    ),
    Mutant(
        "siblings count their own messages as shared",
        "agent/assembly.py",
        "log.conversation(head, log.fork)",
        "log.conversation(head, log.fork + 3)",
    ),
    Mutant(
        "INT leaves the turn open",
        "agent/turn/steps.py",
        "unit = LogUnit(state.uuid, messages, turn=0, unpaused=paused, asked=ended, cancels=cancels)",
        "unit = LogUnit(state.uuid, messages, unpaused=paused, asked=ended, cancels=cancels)",
    ),
    Mutant(
        "cascade stops at the children",
        "records/lives/signals.py",
        "order: Sequence[str] = cascade(self._target, above)",
        "order: Sequence[str] = [one for one in cascade(self._target, above) if self._target in (one, above.get(one))]",
    ),
    Mutant(
        "orphans stay with the dead",
        "records/lives/deaths.py",
        "adopted = {decision.agent: decision.by for decision in decisions",
        "adopted = {decision.agent: family[decision.agent].supervisor or decision.by for decision in decisions",
    ),
    Mutant("a retry writes twice", "store/journal.py", "        results.clear()\n", "        results[:] = results\n"),
    Mutant(
        "a batch that fails is dropped",
        "store/journal.py",
        "yield from self._commit((entry,))",
        "continue",
    ),
    Mutant(
        "a restart forgets the agents that wait",
        "agent/actor.py",
        "return Handover(head, state.turn, state.lifecycle, callers, waiting, paused)",
        "return Handover(head, state.turn, state.lifecycle, (), waiting, paused)",
    ),
    Mutant(
        "stopped agents take prompts",
        "agent/turn/machine.py",
        "(state.status is Status.STOPPED or (busy and prompt.stored is not None))",
        "(busy and prompt.stored is not None)",
        (
            Edit(
                "agent/backlog.py", "stopped = state.status is Status.STOPPED", "stopped = state.status is Status.DEAD"
            ),
        ),
    ),
    Mutant(
        "resume asks no model",
        "agent/turn/machine.py",
        "    if not calls and state.ending is None:\n        asked = request_model(state)",
        "    if not calls and state.ending is None:\n"
        "        return Step(replace(state, phase=Phase.WAITING_FOR_MODEL), effects=told)\n"
        "        asked = request_model(state)",
    ),
    Mutant(
        "a timer fires and stays due",
        "records/mail/timers.py",
        "        self._advance(tx, timer, None, 0, None)\n        return Fired((mail,))",
        "        return Fired((mail,))",
    ),
    Mutant(
        "timers outlive their agents",
        "records/lives/deaths.py",
        '    tx.run("end_timers", agents=tied)\n',
        "",
    ),
    Mutant(  # the host and the unit both look at the clock
        "timers fire a second early",
        "system/host/due_timers.py",
        "due: list[Due] = [timer for timer in upcoming if timer.due_at <= now]",
        "due: list[Due] = [timer for timer in upcoming if timer.due_at <= now + 1000]",
        (Edit("records/mail/timers.py", "or self.now < seen.due_at:", "or self.now + 1000 < seen.due_at:"),),
    ),
    Mutant(
        "the times of a schedule come twice",
        "records/mail/schedules.py",
        "        if following > now:\n            return Passed(times, following)",
        "        if following > now:\n            return Passed(times, due)",
    ),
    Mutant(
        "a host that begins forgets its timers",
        "system/host/supervision.py",
        "self._follow_others(survey.version))\n        self.look_at_timers()\n\n    def stop",
        "self._follow_others(survey.version))\n\n    def stop",
    ),
)
"""All of them."""
