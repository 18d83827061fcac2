"""Mutants of what agents remember: summaries, forks at a position, merges, exported files, pruned histories.

nice python -m tests.mutants --memory --shrink --seconds 60
"""

from tests.mutants import Edit, Mutant

MEMORY_MUTANTS = (
    Mutant(
        "a summary keeps from one message later on",
        "agent/turn/compaction.py",
        'return {"keep_from": plan.keep_from,',
        'return {"keep_from": plan.keep_from + 1,',
    ),
    Mutant(
        "a summary cuts between a call and its result",
        "records/log/boundaries.py",
        "    return all(call.id in answered for call in calls_in(first))",
        "    return True",
        test="tests/records/test_boundaries.py",
    ),
    Mutant(
        "a summary cuts within a step",
        "agent/turn/plan.py",
        "        if message.kind not in (Kind.USER, Kind.ASSISTANT) or not _may_cut(log, message.id - 1):\n"
        "            continue\n        if size > allowed",
        "        if size > allowed",
    ),
    Mutant(
        "a question to a person counts as a result",
        "records/log/boundaries.py",
        "for message in messages if message.kind == Kind.TOOL_RESULT}",
        "for message in messages if message.kind in (Kind.TOOL_RESULT, Kind.APPROVAL)}",
        test="tests/records/test_boundaries.py",
    ),
    Mutant(
        "a child has the summary that its parent got after the fork",
        "records/log/log.py",
        "EMPTY if parent is None else parent.view(fork)",
        "EMPTY if parent is None else parent.view(fork)._replace(lens=parent.view(parent.head).lens)",
    ),
    Mutant(
        "a rewind drops no summary",
        "records/log/history.py",
        "    while lens is not None and lens.keep_from > end + 1:",
        "    while False:",
    ),
    Mutant(
        "a rewind drops every summary",
        "records/log/history.py",
        "    while lens is not None and lens.keep_from > end + 1:",
        "    while lens is not None:",
    ),
    Mutant(
        "uncompact takes off all summaries",
        "records/log/history.py",
        "            return view._replace(lens=view.lens.earlier)",
        "            return view._replace(lens=None)",
    ),
    Mutant(
        "uncompact takes back what was said since",
        "records/log/history.py",
        "            return view._replace(lens=view.lens.earlier)",
        "            kept = Segment(view.start, view.lens.id - 1, view.closed)\n"
        "            return view._replace(start=message.id - 1, closed=kept, lens=view.lens.earlier)",
    ),
    Mutant(
        "the open prompt is summarised",
        "agent/turn/plan.py",
        "        prompt.id if prompt is not None and prompt.id < keep_from else 0,",
        "        0,",
    ),
    Mutant(
        "an answered prompt is shown as open",
        "agent/turn/plan.py",
        "    prompt = log.latest_prompt(turn) if turn else None",
        "    prompt = log.latest_prompt(turn or None)",
    ),
    Mutant(  # a cancelled call says nothing, and the machine would not believe it
        "a late summary is believed",
        "agent/turn/machine.py",
        "    return state.phase is Phase.COMPACTING and state.request == request",
        "    return state.phase is Phase.COMPACTING",
        (
            Edit(
                "agent/jobs.py",
                "        if not self._ends():\n            return\n        try:",
                "        self._ends()\n        try:",
            ),
        ),
    ),
    Mutant(
        "a fork at a position has the settings of then",
        "agent/turn/fork.py",
        "        settings = {**since, **event.settings}",
        "        settings = {**event.settings}",
    ),
    Mutant(
        "mail is not exported",
        "records/transfer/export.py",
        "        return all_mail(uuid, self._tx) if self.agents[uuid].pruned_at is None else []",
        "        return []",
    ),
    Mutant(
        "an imported merge names the agent of the file",
        "records/transfer/graft.py",
        'for name in ("child", "parent", "of", "by", "from") if name in data',
        'for name in ("child", "parent", "of", "by") if name in data',
    ),
    Mutant(
        "a prune looks at children only",
        "store/queries.sql",
        "a JOIN needed n ON n.uuid = a.uuid WHERE a.parent_uuid IS NOT NULL)\nSELECT a.uuid FROM agents a\n WHERE a.st",
        "a WHERE (a.status <> 'dead' OR a.ended_at >= CAST(:before AS BIGINT)) AND a.parent_uuid IS NOT NULL)\n"
        "SELECT a.uuid FROM agents a\n WHERE a.st",
    ),
    Mutant(
        "an agent with its own summary counts as sharing blocks",
        "agent/assembly.py",
        "    if not log.fork or (lens is not None and lens.id > log.fork):",
        "    if not log.fork:",
    ),
    Mutant(
        "recall shows messages that were cleared or taken back",
        "agent/builtin_calls/memory.py",
        "        history = StoredHistory(tx, read_lineage(tx, self.agent))",
        "        history = StoredHistory(tx, read_lineage(tx, self.agent, whole=True))",
        (
            Edit(
                "agent/builtin_calls/memory.py",
                "        if history.view().shows(self.position, head):",
                "        if self.position:",
            ),
        ),
    ),
    Mutant(
        "the length of a request is read as the window",
        "providers/too_long.py",
        r"exceed context limit: (?P<tokens>\d+) \+ \d+ > (?P<window>\d+)",
        r"exceed context limit: (?P<window>\d+) \+ \d+ > (?P<tokens>\d+)",
        test="tests/providers/test_too_long.py",
    ),
    Mutant(
        "results that are kept are shown by reference",
        "agent/turn/elision.py",
        "    return message.id < elide and message.kind",
        "    return elide > 0 and message.kind",
    ),
    Mutant(
        "children are listed by their fork points",
        "records/agents/registry.py",
        "record.created_at if adopted else record.born, record.born)",
        "record.created_at if adopted else record.fork_message_id, record.born)",
        test="tests/system/test_fork_at.py",
    ),
    Mutant(
        "tools that were found before an undo stay found",
        "records/log/log.py",
        "                yield from (one for one in reversed(log._finds) if low < one.id <= upper)",
        "                yield from (one for one in reversed(log._finds) if one.id <= upper)",
        test="tests/agent/test_found_tools.py",
    ),
    Mutant(
        "a summary forgets the tools that were found",
        "agent/turn/compaction.py",
        "    found = {FOUND_NAMES: [*plan.found]} if plan.found else {}",
        "    found: dict[str, object] = {}",
        test="tests/agent/test_found_tools.py",
    ),
    Mutant(
        "tools that were found come in the order of their names",
        "agent/toolbox.py",
        "        shown = [name for name in found.shown if",
        "        shown = [name for name in sorted(found.shown) if",
        test="tests/agent/test_toolbox.py",
    ),
    Mutant(
        "a tool that is loaded later has the mark of the cache",
        "providers/prompt_cache.py",
        'if not block.get("defer_loading")), default',
        "if block), default",
        test="tests/providers/test_found_tools.py",
    ),
    Mutant(
        "a result refers to a tool that is gone",
        "agent/turn/request.py",
        "for one in named_in(message.data) if one not in gone)",
        "for one in named_in(message.data))",
        test="tests/providers/test_found_tools.py",
    ),
    Mutant(
        "a strict budget does not see tools that were found",
        "agent/costs.py",
        "        return NOTHING_FOUND if log is None or not head else found_in(log, head, new)",
        "        return NOTHING_FOUND",
        test="tests/agent/test_found_tools.py",
    ),
    Mutant(
        "a summary forgets the skills that were loaded",
        "agent/turn/skills.py",
        "    return {SKILLS: [*kept]} if kept else {}",
        "    return {}",
        test="tests/system/test_skills.py",
    ),
    Mutant(
        "a summary repeats the skills that it keeps",
        "agent/turn/skills.py",
        "            found.pop(name, None)\n            found[name] =",
        "            found[f'{name}{message.id}'] =",
        (
            Edit("agent/turn/skills.py", 'found |= {kept["name"]: kept for kept', "found |= {str(kept): kept for kept"),
            Edit("agent/turn/skills.py", 'found[one["sha256"], ""] = one["message"]', "pass"),
        ),
        test="tests/system/test_skills.py",
    ),
    Mutant(
        "a prune takes the files of pinned skills",
        "records/messages/blobs.py",
        "    for one in skills if isinstance(skills, list) else ():\n        yield from hashes_in(one)",
        "    for one in ():\n        yield from hashes_in(one)",
        test="tests/system/test_skills.py",
    ),
    Mutant(
        "a skill is taken as it is in the database, whatever its digest",
        "agent/builtin_calls/skills.py",
        "        if data is None or sha256(data).hexdigest() != self.sha256:",
        "        if data is None:",
        test="tests/system/test_skills.py",
    ),
    Mutant(
        "a prompt brings the text of a skill that the model sees already",
        "agent/turn/machine.py",
        "    return replace(event, data=without_loaded(event.data, loaded_in(log, seen)))",
        "    return event",
        test="tests/system/test_skills.py",
    ),
    Mutant(
        "a prompt that replaces one without an answer loses the text of its skill",
        "agent/turn/machine.py",
        "    seen = event.repeats - 1 if event.repeats else state.head",
        "    seen = state.head",
        test="tests/system/test_skills.py",
    ),
    Mutant(
        "the files of a skill are laid out as the database has them",
        "tools/workspace/skill_files.py",
        '    if data is None or sha256(data).hexdigest() != one["sha256"]:',
        "    if data is None:",
        test="tests/tools/test_skill_files.py",
    ),
    Mutant(
        "a file of a skill leads out of its place",
        "tools/workspace/skill_files.py",
        '    if path.is_absolute() or ".." in path.parts:',
        "    if path.is_absolute():",
        test="tests/tools/test_skill_files.py",
    ),
    Mutant(
        "commands can write the files of skills",
        "tools/fence/enclosure.py",
        "(os.path.realpath(directories.skills), SKILL_MOUNT, False)",
        "(os.path.realpath(directories.skills), SKILL_MOUNT, True)",
        (
            Edit(
                "tools/workspace/skill_files.py",
                "0o555 if mode == 0o755 else 0o444",
                "0o777 if mode == 0o755 else 0o666",
            ),
        ),
        test="tests/tools/test_skill_files.py",
    ),
    Mutant(
        "a skill that was refused is before the model",
        "system/skills.py",
        'pinned(one.manifest, one.source) | ({"off": True} if off else {}) for one in picked]',
        "pinned(one.manifest, one.source) for one in picked]",
        test="tests/verbs/test_skills_verb.py",
    ),
    Mutant(
        "nobody hears of a skill that has changed",
        "system/skills.py",
        "if entries.get(name) != digest]",
        "if name not in entries]",
        test="tests/verbs/test_skills_verb.py",
    ),
)
"""All of them."""
