"""Mutants of what programs rely on when they are killed and interrupted: INT in order, turns that go on, keys.

nice python -m tests.mutants --durable
"""

from tests.mutants import Edit, Mutant

_TURNS, _CHANGES = "tests/agent/test_turns.py", "tests/records/test_changes.py"
_KEYS, _ONCE = "tests/system/test_keys.py", "tests/records/test_once.py"
_ASKED, _PROGRAMS = "tests/records/test_asked.py", "tests/programs/test_programs.py"
_PROGRAM_CHANGES = "tests/programs/test_changes.py"
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
        "a turn that is left shows a heartbeat",
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
    Mutant(
        "a key is one for all agents",
        "system/handles/commands/base.py",
        "KeyedCall(key, verb, arguments, self.uuid, self.uuid, about)",
        'KeyedCall(key, verb, arguments, "", self.uuid, about)',
        test=_KEYS,
    ),
    Mutant(
        "the unit that forks under a key does not write it",
        "agent/actor.py",
        "            unit = Once(unit, call, self.runtime.clock.now_ms(), lambda done: gave)\n",
        "            del call, gave\n",
        test=_KEYS,
    ),
    Mutant(
        "the uuids that a call has drawn are part of it",
        "system/handles/commands/forks.py",
        "        siblings = [[one.name, one.prompt] for one in asked.children]",
        "        siblings = [[one.uuid, one.name, one.prompt] for one in asked.children]",
        test=_KEYS,
    ),
    Mutant(
        "a refused act keeps its key",
        "records/once.py",
        "        except BaseException:\n            release(tx, self._call)\n",
        "        except BaseException:\n            pass\n",
        test=_KEYS,
    ),
    Mutant(
        "a prompt that is withdrawn keeps its key",
        "records/mail/prompts.py",
        "        release_mail(tx, self.recipient, self.id)\n",
        "",
        (Edit("records/mail/prompts.py", "from ikigai_actors.records.once import release_mail\n", ""),),
        test=_ONCE,
    ),
    Mutant(
        "other arguments are answered as the first ones were",
        "records/once.py",
        "        if digest != call.digest:\n",
        "        if False:\n",
        test=_KEYS,
    ),
    Mutant(
        "a prune takes a key whose prompt waits",
        "records/log/pruning.py",
        "record.living and (unread or record.turn > 0)",
        "record.living and record.turn > 0",
        test=_ONCE,
    ),
    Mutant(
        "the slower of two merges is refused",
        "system/handles/commands/base.py",
        "            future.settle(error if known is None else repeated(known))\n",
        "            future.settle(error)\n",
        test=_KEYS,
    ),
    Mutant(
        "a copy that is imported beside its original has its keys",
        "records/transfer/graft.py",
        '        if self.uuids[given["scope"]] != given["scope"]:\n            return None\n        agent',
        "        agent",
        (
            Edit(
                "records/transfer/graft.py",
                '            given["scope"], given["key"], agent,',
                '            self.uuids[given["scope"]], given["key"], agent,',
            ),
        ),
        test="tests/records/test_transfer.py",
    ),
    Mutant(
        "a turn that was undone is answered all the same",
        "system/remote/prompted.py",
        "        if undone and isinstance(end, Reply):\n",
        "        if False:\n",
        test=_KEYS,
    ),
    Mutant(
        "the end of a turn locks nobody who asks",
        "records/mail/asked.py",
        "        return (*self._act.touches, *sorted(self._askers - set(self._act.touches)))",
        "        return self._act.touches",
        (Edit("records/mail/asked.py", "        if not askers <= locked.keys():", "        if False:"),),
        test=_ASKED,
    ),
    Mutant(
        "a program that begins to ask after the look-up is not found",
        "records/mail/asked.py",
        "        askers = self._asking(tx)\n        if not askers",
        "        askers = set(self._askers)\n        if not askers",
        test=_ASKED,
    ),
    Mutant(
        "a death does not end what was asked of the dead",
        "records/mail/asked.py",
        "    end_asked(tx, asked_of(tx, dead))\n",
        "",
        test=_ASKED,
    ),
    Mutant(
        "the last unit of a turn does not end what was asked",
        "agent/turn/steps.py",
        "    ended = (state.asked,) if state.asked else ()\n",
        "    ended: tuple[int, ...] = ()\n",
        test=_PROGRAMS,
    ),
    Mutant(
        "a wait names turns in the order of the prompts",
        "records/mail/asked.py",
        "    return [one for one in ended if one in turns]",
        "    known = set(ended)\n    return [one for one in turns if one in known]",
        test=_PROGRAMS,
    ),
    Mutant(
        "an act is known by its place",
        "programs/acts.py",
        '        self.id = f"{digest}-{frame.count(digest)}"',
        '        self.id = f"{digest}-{len(frame.acts)}"',
        test=_PROGRAMS,
    ),
    Mutant(
        "an act that is new beside a record that nobody asks for is done",
        "programs/frames.py",
        "        if unheard and self.on_change != GO_ON and (left := self._records.left(self.acts)) is not None:\n",
        "        if unheard and (left := None) is not None:\n",
        test=_PROGRAMS,
    ),
    Mutant(
        "calls that were cut off are settled before the function has replayed",
        "agent/actor.py",
        "        if state.phase is not Phase.INTERRUPTED or not cut_off or not toolbox.is_program("
        "state.view.settings):",
        "        if True:",
        test=_PROGRAMS,
    ),
    Mutant(
        "an INT of a program leaves what it has asked for",
        "agent/turn/steps.py",
        "    cancels = not isinstance(outcome, Reply | StepChanged)",
        "    cancels = False",
        test=_PROGRAMS,
    ),
    Mutant(
        "an INT of a program ends what is detached",
        "store/queries.sql",
        "WHERE asker = :asker AND ended IS NULL AND detached = 0 RETURNING agent",
        "WHERE asker = :asker AND ended IS NULL RETURNING agent",
        test=_PROGRAMS,
    ),
    Mutant(
        "the clock of a program is that of its host",
        "programs/frames.py",
        "        return utc_time(self._time)",
        "        import time\n\n        return utc_time(time.time_ns() // 1_000_000)",
        test=_PROGRAMS,
    ),
    Mutant(
        "a question of a program is an error where it is denied",
        "programs/acts.py",
        "        if outcome.denied:\n",
        "        if False:\n",
        test=_PROGRAMS,
    ),
    Mutant(
        "a program that goes on drops records that it still needs",
        "programs/frames.py",
        "        asked = AskedCalls(",
        "        self._records.results.clear() if note else None\n        asked = AskedCalls(",
        test=_PROGRAM_CHANGES,
    ),
    Mutant(
        "a program that begins again has its earlier records",
        "programs/provider.py",
        "        records = TurnRecords([] if again else since_restart(mine)",
        "        records = TurnRecords(mine",
        test=_PROGRAM_CHANGES,
    ),
    Mutant(
        "a call begins without its record, as it is one unit with its reply",
        "agent/turn/ahead.py",
        "    together = replace(unit, messages=(*unit.messages, *begun.unit.messages), rules=begun.unit.rules)\n",
        "    together = replace(unit, rules=begun.unit.rules)\n",
        test=_PROGRAMS,
    ),
    Mutant(
        "the time of a result with which a program goes on is another one in the log",
        "agent/actor.py",
        "self.runtime.clock.now_ms() if ahead is None else ahead.at",
        "self.runtime.clock.now_ms() + 1",
        test=_PROGRAMS,
    ),
)
"""All of them."""
