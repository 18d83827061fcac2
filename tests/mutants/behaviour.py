"""Mutants of experiments: births, books, what a trial may do. `BehaviourMachine` finds those without a test.

nice python -m tests.mutants --behaviour
"""

from tests.mutants import Mutant

_SEARCHES, _RUNS = "tests/behaviour/test_searches.py", "tests/behaviour/test_runs.py"
_JUDGES, _PLAN = "tests/behaviour/test_judges.py", "tests/behaviour/test_bisection_plan.py"
_REGRESSIONS = "tests/behaviour/test_regressions.py"
_BIRTHS = "tests/behaviour/test_trial_births.py"
_RECORD = "tests/agent/turn/test_record.py"
_REPLAYS = "tests/behaviour/test_replays.py"
_FORECASTS, _TURNS = "tests/behaviour/test_forecasts.py", "tests/behaviour/test_turns.py"

BEHAVIOUR_MUTANTS = (
    Mutant(
        "the same call gets its first result again",
        "agent/turn/record.py",
        "by_call[call.id] = recorded[made[key]]",
        "by_call[call.id] = recorded[0]",
        test=_RECORD,
    ),
    Mutant(
        "births are not found again",
        "behaviour/driver.py",
        "            born = self._book.trials.get(trial.number)\n",
        "            born = None\n",
        test=_SEARCHES,
    ),
    Mutant(
        "verdicts are not written",
        "behaviour/driver.py",
        "self._unwritten[first.trial.number] = self._book.judged[first.trial.number] = judged",
        "self._book.judged[first.trial.number] = judged",
        test=_SEARCHES,
    ),
    Mutant(
        "one trial too many is in flight",
        "behaviour/driver.py",
        "len(self._window) < self._how.parallel",
        "len(self._window) <= self._how.parallel",
        test=_JUDGES,
    ),
    Mutant(
        "siblings start with a cold cache",
        "behaviour/driver.py",
        "ready = self._before_cold() if self._how.warm else len(self._unborn)",
        "ready = len(self._unborn)",
        test=_JUDGES,
    ),
    Mutant(
        "samples of a turn start with a cold cache",
        "behaviour/regressions.py",
        "config = RunConfig.of(regress, how)\n    terms = checked_terms",
        'config = RunConfig(**{**how, "warm": False})\n    terms = checked_terms',
        test=_REGRESSIONS,
    ),
    Mutant(
        "a trial that failed is judged at once",
        "behaviour/window.py",
        "elif isinstance(run.error, ReplayDiverged | OutputError) or not retries or not resume_trial(agent):",
        "elif True:",
        test=_RUNS,
    ),
    Mutant(
        "agents of a file begin what waits for them",
        "behaviour/files.py",
        "copy.import_(file)",
        "copy.import_(file, go=True)",
        test=_TURNS,
    ),
    Mutant(
        "a second driver writes into the book",
        "agent/turn/fork.py",
        "    if event.head not in (0, state.head):\n",
        "    if False:\n",
        test=_JUDGES,
    ),
    Mutant(
        "a bisection ends at even odds",
        "behaviour/plans/bisect.py",
        "self._sure, self._prompt = sure, prompt",
        "self._sure, self._prompt = 0.5, prompt",
        test=_PLAN,
    ),
    Mutant(
        "a bisection always finds something wrong",
        "behaviour/plans/bisect.py",
        "weights = [1.0] * (places + 1) if prior is None",
        "weights = [1.0] * places + [0.0] if prior is None",
        test=_PLAN,
    ),
    Mutant(
        "a judge never errs",
        "behaviour/plans/bisect.py",
        "_FALSE, _TRUE = (1, 9), (9, 1)",
        "_FALSE, _TRUE = (1, 900), (900, 1)",
        test=_PLAN,
    ),
    # What the machine of experiments finds
    Mutant(
        "a birth is written before the verdict that it depends on",
        "behaviour/driver.py",
        "            self._experiment.write(verdicts_note(verdicts), births)\n",
        "            self._experiment.write(verdicts_note({}), births)\n"
        "            self._experiment.write(verdicts_note(verdicts), ())\n",
    ),
    Mutant(
        "tools of a trial run that change something",
        "agent/turn/record.py",
        "return tools[call.name].read_only or (own_files and tools[call.name].confined)",
        "return True",
    ),
    Mutant(
        "the history of an experiment supervises its trials",
        "agent/turn/fork.py",
        "supervisor_uuid=None if bed.of is None else parent,",
        "supervisor_uuid=None,",
    ),
    Mutant(
        "the trial that answers first is reported first",
        "behaviour/driver.py",
        "            first = self._window[0]\n",
        "            self._window.sort(\n"
        "                key=lambda one: one.agent is None or self._window._answered(one, one.agent) is None\n"
        "            )\n"
        "            first = self._window[0]\n",
    ),
    Mutant(
        "a trial's calls that change the agent itself are carried out",
        "agent/turn/record.py",
        "    if call.name not in run or call.name not in tools:\n",
        "    if call.name in tools and tools[call.name].builtin:\n        return True\n"
        "    if call.name not in run or call.name not in tools:\n",
    ),
    Mutant(
        "approvals are asked for in a trial",
        "agent/turn/tool_steps.py",
        "    if effects is not None and (kept :=",
        "    if to_ask := to_be_asked(state.calls, tools):\n        return _ask(state, to_ask, now)\n"
        "    if effects is not None and (kept :=",
    ),
    Mutant(
        "the children of a trial may act",
        "agent/turn/fork.py",
        '[(Kind.CONFIGURE, "", settings)] if settings else []\n    return begin',
        '[(Kind.CONFIGURE, "", {**settings, "effects": None})]\n    return begin',
    ),
    Mutant(
        "a fork of a trial from before its birth may act",
        "agent/turn/fork.py",
        "if now_set.get(name) != then_set.get(name)}\n        settings",
        'if now_set.get(name) != then_set.get(name) and name != "effects"}\n        settings',
    ),
    Mutant(
        "a clear sets a trial free",
        "agent/turn/machine.py",
        'drafts.append((Kind.CONFIGURE, "", dict(state.view.settings)))',
        'drafts.append((Kind.CONFIGURE, "", {**state.view.settings, "effects": None}))',
    ),
    Mutant(
        "calls are counted from before the birth of a trial",
        "agent/turn/machine.py",
        "from_record(effects, log.messages, state.calls)",
        "from_record(effects, log.visible(), state.calls)",
    ),
    Mutant(
        "a trial goes on from the end of a history that has grown",
        "behaviour/driver.py",
        "        records = [_record(entry.trial, unused_uuid(self._system)) for entry in born]\n",
        "        records = [_record(entry.trial, unused_uuid(self._system)) for entry in born]\n"
        "        for entry in born:\n"
        "            history = self._system.handle(entry.start.of).history(all=True)\n"
        "            entry.start = entry.start._replace(at=history[-1].id)\n",
    ),
    Mutant(
        "a trial has the settings of now",
        "behaviour/driver.py",
        "        records = [_record(entry.trial, unused_uuid(self._system)) for entry in born]\n",
        "        records = [_record(entry.trial, unused_uuid(self._system)) for entry in born]\n"
        "        for entry in born:\n"
        "            now = self._system.handle(entry.start.of).context().settings\n"
        "            entry.start = entry.start._replace(settings={**now, **entry.start.settings})\n",
    ),
    Mutant(
        "a plan draws from another seed each time",
        "behaviour/searches.py",
        "random.Random(seed).randrange",
        "random.Random(system._random_bytes(8)).randrange",
    ),
    Mutant(
        "prune deletes a history that living trials go on from",
        "store/queries.sql",
        "UNION SELECT a.parent_uuid FROM agents a JOIN needed n ON n.uuid = a.uuid WHERE a.parent_uuid IS NOT NULL",
        "UNION SELECT a.supervisor_uuid FROM agents a JOIN needed n ON n.uuid = a.uuid"
        " WHERE a.supervisor_uuid IS NOT NULL",
    ),
    # What tests find
    Mutant(
        "trials live in the shard of the history that they go on from",
        "store/queries.sql",
        "(SELECT p.shard FROM agents p WHERE p.uuid = :supervisor), 0),\n",
        "(SELECT p.shard FROM agents p WHERE p.uuid = :parent), 0),\n",
        test=_BIRTHS,
    ),
    Mutant(
        "a probe is answered from before its place",
        "behaviour/bisections.py",
        "for call in turn.calls if call.position > place)",
        "for call in turn.calls)",
        test="tests/behaviour/test_bisections.py",
    ),
    Mutant(
        "copies of calls have no ids",
        "behaviour/cases.py",
        "        copies.append((message.kind, text, {**data, **_calls_with_ids(message, text, iter(ids))}))",
        "        copies.append((message.kind, text, data))",
        test=_REPLAYS,
    ),
    Mutant(
        "a sample without a verdict counts as a pass",
        "behaviour/rates.py",
        "[sample for sample in samples if sample is not None] for case",
        "[1.0 if sample is None else sample for sample in samples] for case",
        test=_REGRESSIONS,
    ),
    Mutant(
        "the baseline is ignored",
        "behaviour/rates.py",
        "means, usual = _means(changed), _means(baseline or {})",
        "means, usual = _means(changed), _means({})",
        test=_REGRESSIONS,
    ),
    Mutant(
        "samples are counted as cases",
        "behaviour/rates.py",
        "{case: fmean(samples) for case, samples in judged.items() if samples}",
        "{case * 100 + place: one for case, some in judged.items() for place, one in enumerate(some)}",
        test=_REGRESSIONS,
    ),
    Mutant(
        "a difference has the position of the replay",
        "behaviour/differences.py",
        'differences.append(Difference(call.position, "arguments"',
        'differences.append(Difference(other.position, "arguments"',
        test=_REPLAYS,
    ),
    Mutant(
        "the forecast counts trials that are judged already",
        "behaviour/driver.py",
        "range(first, last + 1)",
        "range(1, last + 1)",
        test=_FORECASTS,
    ),
    Mutant(
        "trials that were cut off go on before the forecast, and in a dry run",
        "behaviour/driver.py",
        "                    self._cut_off.append(agent)",
        "                    resume_trial(agent)",
        test=_FORECASTS,
    ),
    Mutant(
        "the forecast of the baseline counts the changed model",
        "behaviour/replays.py",
        "change = {} if arm == BASELINE else terms.change\n            check_answered",
        "change = terms.change\n            check_answered",
        test=_FORECASTS,
    ),
    Mutant(
        "the default model is no new reader",
        "behaviour/expectations.py",
        'own = _own(system, then) if not writers or then.get("model") or then.get("compact_model") else set()',
        "own = _own(system, then)",
        test=_FORECASTS,
    ),
    Mutant(
        "the last request of a typed turn counts twice",
        "behaviour/turns.py",
        "        if message.may_cost and ((spent",
        "        if ((spent",
        test=_TURNS,
    ),
    Mutant(
        "the verdicts of another check are reported",
        "behaviour/replays.py",
        "is_of_another = judgement.by != by and",
        "is_of_another = judgement.by == by and",
        test=_REGRESSIONS,
    ),
    Mutant(
        "the picture of a recorded result is left out",
        "behaviour/turns.py",
        "*([list(call.attached)] if call.attached else [])]",
        "]",
        test=_REPLAYS,
    ),
    Mutant(
        "a replayed step goes on with its results",
        "behaviour/replays.py",
        'allowed = effects(once=True) if terms.each == "step" else',
        'allowed = effects(once=True) if terms.each == "reply" else',
        test=_REPLAYS,
    ),
    Mutant(
        "a log goes on from messages that were taken back",
        "behaviour/cases.py",
        "and view.shows(earlier.opens, head):",
        "and True:",
        test=_REPLAYS,
    ),
    Mutant(
        "a log goes on over a summary",
        "behaviour/cases.py",
        "return place if is_whole and then.lens_place == view.lens_place else None",
        "return place",
        test=_REPLAYS,
    ),
    Mutant(
        "a typed step is asked for another value",
        "agent/turn/typed.py",
        'return bool(effects.get("once"))',
        "return False",
        test=_REPLAYS,
    ),
    Mutant(
        "a value that does not fit is undecided",
        "behaviour/replays.py",
        "if isinstance(run.error, OutputError):",
        "if False:",
        test=_REGRESSIONS,
    ),
)
"""All of them."""
