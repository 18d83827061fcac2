"""Mutants of timers, heartbeats, groups, monitors, and the mail that sums deaths up.

nice python -m tests.mutants --later --seconds 60
"""

from tests.mutants import Edit, Mutant

_SCHEDULES, _TIMERS = "tests/records/test_schedules.py", "tests/records/test_timers.py"
_GROUPS, _LIVENESS = "tests/records/test_membership.py", "tests/system/test_liveness.py"

LATER_MUTANTS = (
    Mutant(
        "a schedule goes on from when somebody looked",
        "records/mail/timers.py",
        "due = passed(timer.schedule, timer.zone, timer.due_at, self.now)",
        "due = passed(timer.schedule, timer.zone, self.now, self.now)",
        test=_TIMERS,
    ),
    Mutant(
        "six fields are a schedule with seconds",
        "records/mail/schedules.py",
        "        if len(fields) != 5:",
        "        if len(fields) not in (5, 6):",
        test=_SCHEDULES,
    ),
    Mutant(
        "a schedule means the clocks of Greenwich",
        "records/mail/schedules.py",
        "for time in CronSim(schedule, datetime.fromtimestamp(after / 1000, zone)):",
        "for time in CronSim(schedule, datetime.fromtimestamp(after / 1000, UTC)):",
        test=_SCHEDULES,
    ),
    Mutant(
        "a time in the past is accepted",
        "records/mail/schedules.py",
        "    if not now < due <= now + FARTHEST_TIME * 1000:",
        "    if not due <= now + FARTHEST_TIME * 1000:",
        test=_SCHEDULES,
    ),
    Mutant(
        "the least distance is looked at once only",
        "records/mail/schedules.py",
        "for earlier, later in pairwise(day)), default",
        "for earlier, later in list(pairwise(day))[:1]), default",
        test=_SCHEDULES,
    ),
    Mutant(
        "one missed time too few is reported",
        "records/mail/schedules.py",
        "    times = 1\n    for following",
        "    times = 0\n    for following",
        test=_SCHEDULES,
    ),
    Mutant(
        "a time of day that has passed means today",
        "records/mail/schedules.py",
        "return first if first > today else first + timedelta(days=1)",
        "return first",
        test=_SCHEDULES,
    ),
    Mutant(
        "a schedule heaps up unread mail",
        "records/mail/timers.py",
        '        if timer.latest and tx.run("is_unread", recipient=timer.agent_uuid, id=timer.latest):',
        "        if not timer:",
        test=_TIMERS,
    ),
    Mutant(
        "mails that were left out are not counted",
        "records/mail/timers.py",
        "            self._advance(tx, timer, due.due_at, timer.missed + due.times, timer.since or timer.due_at)\n",
        "            self._advance(tx, timer, due.due_at, due.times, timer.since or timer.due_at)\n",
        test=_TIMERS,
    ),
    Mutant(
        "a delayed mail to a full mailbox is lost",
        "records/mail/timers.py",
        "            self._advance(tx, timer, self.now + FULL_RETRY, 0, None, notified=1)",
        "            self._advance(tx, timer, None, 0, None, notified=1)",
        test=_TIMERS,
    ),
    Mutant(
        "a sender gets a mail each minute about a full mailbox",
        "records/mail/timers.py",
        "            if timer.notified or sender is None",
        "            if sender is None",
        test=_TIMERS,
    ),
    Mutant(
        "the dead get timers",
        "records/mail/timers.py",
        "        for uuid in self.touches:\n            locked.living(",
        "        for uuid in self.touches[1:]:\n            locked.living(",
        test=_TIMERS,
    ),
    Mutant(
        "one timer more than the most",
        "records/mail/timers.py",
        "[0][0] >= MOST_TIMERS:",
        "[0][0] > MOST_TIMERS:",
        test=_TIMERS,
    ),
    Mutant(
        "the number of a timer is given again",
        "store/queries.sql",
        "UPDATE agents SET timed = timed + 1 WHERE uuid = :agent RETURNING timed",
        "UPDATE agents SET timed = (SELECT COALESCE(MAX(t.id), 0) FROM timers t WHERE t.agent_uuid = :agent) + 1 "
        "WHERE uuid = :agent RETURNING timed",
        test=_TIMERS,
    ),
    Mutant(
        "a model reminds itself every minute",
        "agent/builtin_calls/timers.py",
        "prompt=prompt, least=LEAST_APART, **when",
        "prompt=prompt, **when",
        test="tests/system/test_timers.py",
    ),
    Mutant(
        "a supervisor gets a mail at every look",
        "records/hosts/liveness.py",
        "        if rows[0][2] == self._turn:\n            return None\n",
        "",
        test=_LIVENESS,
    ),
    Mutant(
        "an agent that waits for others counts as stuck",
        "system/host/stuck_watch.py",
        "silent = 0.0 if actor.tally.waits else actor.tally.sign().seconds",
        "silent = actor.tally.sign().seconds",
        test=_LIVENESS,
    ),
    Mutant(
        "a piece of a reply is no heartbeat",
        "agent/statistics.py",
        "        self._sign = self._clock.monotonic()\n        second, pieces",
        "        second, pieces",
        (
            Edit(
                "agent/statistics.py",
                "second, pieces = int(self._sign), self._pieces",
                "second, pieces = int(self._clock.monotonic()), self._pieces",
            ),
        ),
        test=_LIVENESS,
    ),
    Mutant(
        "tokens of earlier seconds count",
        "agent/statistics.py",
        "for second, size in self._pieces if second + 1 > now - LATELY)",
        "for second, size in self._pieces)",
        test=_LIVENESS,
    ),
    Mutant(
        "the sender of a mail to a group gets it too",
        "records/lives/membership.py",
        "        hearers = [uuid for uuid in self._members if uuid != self._agent and locked",
        "        hearers = [uuid for uuid in self._members if locked",
        test=_GROUPS,
    ),
    Mutant(
        "one full mailbox keeps a mail from the group",
        "records/lives/membership.py",
        "            except MailboxFull as refusal:\n                full.append(uuid)\n",
        "            except MailboxFull as refusal:\n                raise\n                full.append(uuid)\n",
        test=_GROUPS,
    ),
    Mutant(
        "the dead stay in their groups",
        "records/lives/membership.py",
        '    tx.run("leave_groups", agents=dead)\n',
        "",
        test=_GROUPS,
    ),
    Mutant(
        "a monitor of a dead agent brings no mail",
        "records/lives/membership.py",
        '        if other.status == "dead":',
        '        if other.status == "buried":',
        test=_GROUPS,
    ),
    Mutant(
        "a supervisor with a monitor gets two mails",
        "records/lives/deaths.py",
        "if watcher not in dead and watcher != nearest[uuid]:",
        "if watcher not in dead:",
        test=_GROUPS,
    ),
    Mutant(
        "a member joins twice",
        "records/lives/membership.py",
        "        if self._agent in self._members:\n            return False\n",
        "",
        test=_GROUPS,
    ),
    Mutant(
        "many deaths bring a mail each",
        "records/lives/exit_mails.py",
        "        if len(uuids) > MOST_SINGLE:",
        "        if len(uuids) > 100 * MOST_SINGLE:",
        test="tests/records/test_exit_mails.py",
    ),
    Mutant(
        "a mail that sums up deaths names the lowest agents",
        "records/lives/exit_mails.py",
        "    from_the_top = uuids[::-1]\n",
        "    from_the_top = list(uuids)\n",
        test="tests/records/test_exit_mails.py",
    ),
)
"""All of them."""
