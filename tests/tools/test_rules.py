"""Rules decide on calls of tools: the strictest that fits, for the kinds of patterns that tools have."""

from itertools import product

import pytest

from ikigai_actors.errors import BadInput
from ikigai_actors.tools.policy import Asked, Compared, Policy
from ikigai_actors.tools.rules.rule import Rule, Scope, check_rule, deciding

ALLOW, ASK, DENY = Policy.ALLOW, Policy.ASK, Policy.DENY


def rule(decision: Policy, tool: str, pattern: str = "", id_: int = 1, agent: str = "a") -> Rule:
    return Rule(agent, id_, decision, tool, pattern)


def command(text: str) -> Asked:
    return Asked(Compared.COMMAND, text)


def path(text: str) -> Asked:
    return Asked(Compared.PATH, text)


@pytest.mark.parametrize("order", [*product([ALLOW, ASK, DENY], repeat=3)])
def test_the_strictest_rule_that_fits_decides_wherever_it_stands(order: tuple[Policy, ...]) -> None:
    rules = [rule(decision, "bash", id_=number) for number, decision in enumerate(order)]
    deciding_rule = deciding(rules, "bash", command("ls"))
    assert deciding_rule is not None
    assert deciding_rule.decision is max(order, key=[ALLOW, ASK, DENY].index)
    assert deciding_rule is rules[order.index(deciding_rule.decision)]


def test_of_rules_that_allow_a_call_one_without_a_pattern_decides() -> None:
    rules = [rule(ALLOW, "bash", "git *", 1), rule(ALLOW, "b*", "", 2), rule(ALLOW, "bash", "", 3)]
    assert deciding(rules, "bash", command("git log")) is rules[1]
    assert deciding([*rules, rule(ASK, "bash", "git log", 4)], "bash", command("git log")) == rule(
        ASK, "bash", "git log", 4
    )


def test_where_no_rule_fits_none_decides() -> None:
    rules = [rule(DENY, "write"), rule(ALLOW, "bash", "git *"), rule(ASK, "b")]
    assert deciding(rules, "bash", command("ls")) is None
    assert deciding((), "bash", command("ls")) is None


@pytest.mark.parametrize(
    ("decision", "pattern", "text", "fit"),
    [
        (ALLOW, "git log *", "git log -n 3", True),
        (ALLOW, "git log *", "git log; id", False),
        (ALLOW, "", "git log; id", True),
        (ALLOW, "*", "X=1 git log", False),
        (ALLOW, "*", "cd src", False),
        (ALLOW, "cd *", "cd src", False),
        (ALLOW, "", "cd src", True),
        (DENY, "cd *", "cd src", True),
        (DENY, "git push *", "ls; git push", True),
        (ASK, "git push *", "ls; git push", True),
        (DENY, "git push *", "git pull", False),
        (DENY, "src/**", "src/**", True),
    ],
)
def test_patterns_of_commands(decision: Policy, pattern: str, text: str, fit: bool) -> None:
    assert rule(decision, "bash", pattern).fits("bash", command(text)) is fit


@pytest.mark.parametrize(
    ("pattern", "text", "fit"),
    [
        ("src/*.py", "src/a.py", True),
        ("src/*.py", "src/b/a.py", False),
        ("src/**", "src/b/a.py", True),
        ("src/**", "src", True),
        ("src/**", "srcs/a", False),
        ("**/*.py", "a.py", True),
        ("**/*.py", "b/c/a.py", True),
        ("**/test/**/*.py", "b/test/c/a.py", True),
        ("*", "a", True),
        ("*", "a/b", False),
        ("**", "a/b/.c", True),
        ("a*b*c", "a-b-b-c", True),
        ("a*bc*c", "abc", False),
        (".env", ".env", True),
        ("a?c", "abc", False),
        ("/".join(["**"] * 50 + ["x"]), "/".join(["y"] * 500), False),
        ("*".join("a" * 500), "a" * 5_000 + "b", False),
    ],
)
def test_patterns_of_paths(pattern: str, text: str, fit: bool) -> None:
    assert rule(ALLOW, "edit", pattern).fits("edit", path(text)) is fit


@pytest.mark.parametrize(
    ("named", "tool", "fit"),
    [
        ("bash", "bash", True), ("bash", "bashful", False), ("*", "bash", True), ("git__*", "git__push", True),
        ("git__*", "git_push", False), ("*sh", "bash", True), ("b*h", "bash", True), ("ba*ash", "bash", False),
    ],
)  # fmt: skip
def test_the_name_of_a_tool_may_be_a_pattern(named: str, tool: str, fit: bool) -> None:
    assert rule(DENY, named).fits(tool, None) is fit


def test_a_pattern_for_a_tool_without_patterns_denies_and_asks_and_allows_nothing() -> None:
    assert [rule(decision, "search", "x").fits("search", None) for decision in Policy] == [False, True, True]
    assert rule(ALLOW, "search").fits("search", None)


def test_a_pattern_for_several_tools_that_is_no_command_is_strict_for_bash() -> None:
    fits = [rule(decision, "*", "$x").fits("bash", command("ls")) for decision in Policy]
    assert fits == [False, True, True]


@pytest.mark.parametrize(
    ("decision", "tool", "pattern", "scope", "said"),
    [
        ("perhaps", "bash", "", "below", "Expected decision to be one of allow, ask, deny"),
        ("deny", "", "", "below", "Expected tool to be 1 to 128"),
        ("deny", "a b", "", "below", "Expected tool to be 1 to 128"),
        ("deny", "a" * 129, "", "below", "Expected tool to be 1 to 128"),
        ("deny", "bash", "  ", "below", "Expected pattern to be up to 2,000"),
        ("deny", "edit", "a\nb", "below", "Expected pattern to be up to 2,000"),
        ("deny", "edit", "a" * 2_001, "below", "Expected pattern to be up to 2,000"),
        ("allow", "bash", "git log; id", "below", "Expected a pattern for bash to be words of one command"),
        ("deny", "bash", "git*", "below", "Expected a pattern for bash to be words of one command"),
        ("deny", "bash", "", "above", "Expected scope to be one of below, self"),
    ],
)
def test_a_bad_rule_is_refused(decision: str, tool: str, pattern: str, scope: str, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        check_rule(decision, tool, pattern, scope)


def test_a_rule_says_what_it_is() -> None:
    assert str(rule(DENY, "bash", "git push *")) == "deny bash git push *"
    assert str(Rule("a", 1, ALLOW, "edit", scope=Scope.SELF)) == "allow edit (this agent alone)"
