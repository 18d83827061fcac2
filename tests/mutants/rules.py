"""Mutants of rules.

nice python -m tests.mutants --rules --examples 200 --seconds 60
"""

from tests.mutants import Mutant

RULE_MUTANTS = (
    Mutant(
        "a child's rule that allows beats one above it that asks",
        "tools/rules/rule.py",
        "_STRICTEST_FIRST = (Policy.DENY, Policy.ASK, Policy.ALLOW)",
        "_STRICTEST_FIRST = (Policy.DENY, Policy.ALLOW, Policy.ASK)",
    ),
    Mutant(
        "an adopted agent keeps the rules of its old place",
        "store/queries.sql",
        "WITH RECURSIVE above(uuid, supervisor_uuid) AS (\n    SELECT a.uuid, a.supervisor_uuid FROM agents a\n"
        "     WHERE a.uuid = :uuid AND EXISTS",
        "WITH RECURSIVE above(uuid, supervisor_uuid) AS (\n    SELECT a.uuid, a.parent_uuid FROM agents a\n"
        "     WHERE a.uuid = :uuid AND EXISTS",
    ),
    Mutant(
        "a call begins by the rules in memory",
        "records/log/append.py",
        "            check_rules(tx, unit.agent, unit.rules)\n",
        "            pass\n",
    ),
    Mutant(
        "a built-in call begins by the rules in memory",
        "records/log/append.py",
        "            check_rules(tx, uuid, self._rules)\n",
        "            pass\n",
    ),
    Mutant(
        "a rule that is taken back stays in force",
        "store/queries.sql",
        "UPDATE rules SET removed_at = :now WHERE agent_uuid = :agent AND id = :id",
        "UPDATE rules SET removed_at = NULL WHERE agent_uuid = :agent AND id = :id AND :now > 0",
        test="tests/system/test_rules.py",
    ),
    Mutant(
        "a rule for its agent alone holds below it",
        "store/queries.sql",
        "r.removed_at IS NULL AND (r.scope = 'below' OR r.agent_uuid = :uuid)",
        "r.removed_at IS NULL AND (r.scope = r.scope OR r.agent_uuid = :uuid)",
        test="tests/system/test_rules.py",
    ),
    Mutant(
        "a denial misses a piece of a compound command",
        "tools/rules/commands.py",
        '_SEPARATORS = ";&|()`\\n"',
        '_SEPARATORS = ";&()`\\n"',
        test="tests/tools/test_command_words.py",
    ),
    Mutant(
        "a question does not end when rules decide on it",
        "system/host/remote_commands.py",
        "            self._processes.look_at_rules(self._rules_for)\n",
        "            pass\n",
        test="tests/system/test_rules.py",
    ),
    Mutant(
        "a rule of a file that allows calls counts",
        "records/transfer/rights.py",
        "    return rule.decision is not Policy.ALLOW\n",
        "    return True\n",
        test="tests/records/test_imported_rights.py",
    ),
    Mutant(
        "a rule allows all of a bash that has no fence",
        "tools/rules/rule.py",
        " and not (unfenced and rule.is_whole)]",
        "]",
        test="tests/system/test_rules.py",
    ),
    Mutant(
        "a command that only a pattern allows runs in the shell of the agent",
        "tools/workspace/shells.py",
        "                if current is not None and current.by_pattern:\n",
        "                if current is not None and current.by_pattern and False:\n",
        test="tests/system/test_rules.py",
    ),
    Mutant(
        "what a command apart defines stays in the clean shell",
        "tools/workspace/bash.py",
        "( unset -v OLDPWD; eval {command} ) </dev/null >&{marks}",
        "unset -v OLDPWD; eval {command} </dev/null >&{marks}",
        test="tests/tools/test_commands_apart.py",
    ),
    Mutant(
        "the clean shell runs the commands of the agent as well",
        "tools/workspace/bash.py",
        'printf %s \\"$_ikigai\\" >&{kept}',
        'printf %s \\"$_ikigai\\" >&{kept}; eval \\"$_ikigai\\"',
        test="tests/tools/test_commands_apart.py",
    ),
    Mutant(
        "a pattern allows commands outside of the workspace",
        "tools/workspace/apart.py",
        "else (PlaceOfShell.TOP, PlaceOfShell.BENEATH)",
        "else tuple(PlaceOfShell)",
        test="tests/tools/test_commands_apart.py",
    ),
    Mutant(
        "a program with a path from the current directory is allowed in any directory",
        "tools/workspace/apart.py",
        'relative = "/" in program and not program.startswith("/")',
        "relative = False",
        test="tests/tools/test_commands_apart.py",
    ),
    Mutant(
        "a pattern allows what changes the shell",
        "tools/rules/rule.py",
        "return self.decision is not Policy.ALLOW or not of_shell(words)",
        "return True",
        test="tests/system/test_rules.py",
    ),
    Mutant(
        "a rule with a pattern decides before one that allows all",
        "tools/rules/rule.py",
        "(_STRICTEST_FIRST.index(rule.decision), bool(rule.pattern))",
        "_STRICTEST_FIRST.index(rule.decision)",
        test="tests/system/test_rules.py",
    ),
    Mutant(
        "a call that somebody approved counts as allowed by a pattern alone",
        "agent/turn/calls.py",
        "if call.rule is not None and call.rule.pattern and not call.approved\n",
        "if call.rule is not None and call.rule.pattern\n",
        test="tests/system/test_rules.py",
    ),
    Mutant(
        "the verdict of hooks is not read back after a crash",
        "agent/turn/calls.py",
        "                calls = with_verdict(calls, message.data)\n",
        "                pass\n",
        test="tests/agent/test_hooks.py",
    ),
    Mutant(
        "a call runs with its first arguments, whatever hooks have changed",
        "agent/turn/calls.py",
        'input=said.get("input", call.input),',
        "input=call.input,",
        test="tests/agent/test_hooks.py",
    ),
    Mutant(
        "hooks are asked about what a rule denies",
        "agent/turn/tool_steps.py",
        "            return Step(state, LogUnit(state.uuid, ()))  # to hear of rules: what",
        "            pass  # to hear of rules: what",
        test="tests/agent/test_hooks.py",
    ),
    Mutant(
        "a hook that fails lets the call run",
        "tools/hooks/function.py",
        '    return HookVerdict.deny(f"the hook failed: {result.content}")',
        "    return HookVerdict()",
        test="tests/agent/test_hooks.py",
    ),
    Mutant(
        "a later hook takes back what one has asked for",
        "tools/hooks/verdict.py",
        'self.decision if kept or said.decision == "allow" else said.decision',
        "said.decision",
        test="tests/agent/test_hooks.py",
    ),
    Mutant(
        "a host without a hook lets the call run",
        "agent/hooks.py",
        "{call.id: missing for call in covered} if missing else {},",
        "{},",
        test="tests/agent/test_hooks.py",
    ),
    Mutant(
        "a hook hears of a call that was denied",
        "agent/turn/calls.py",
        "if after.get(call.id) and (call.attempt or _builtin(call, tools)))",
        "if after.get(call.id))",
        test="tests/agent/test_hooks.py",
    ),
    Mutant(
        "a command that fails is no objection",
        "tools/hooks/command_hooks.py",
        "        if ran.code != 0:\n",
        "        if ran.code < 0:\n",
        test="tests/agent/test_command_hooks.py",
    ),
    Mutant(
        "a command gets all variables of the program",
        "tools/hooks/command_hooks.py",
        'if name in PASSED_ON or name.startswith("LC_")}',
        "if name or PASSED_ON}",
        test="tests/agent/test_command_hooks.py",
    ),
    Mutant(
        "the verdict of a hook comes along with a file",
        "agent/turn/calls.py",
        "    if said.get(STARTED_ELSEWHERE):\n        return calls\n",
        "",
        test="tests/agent/test_hooks.py",
    ),
)
"""All of them."""
