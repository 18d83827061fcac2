"""What a skill asks to use, as rules: exactly what it says, or nothing."""

import pytest

from ikigai_actors.tools.policy import Asked, Compared, Policy
from ikigai_actors.tools.rules.rule import Rule, deciding
from ikigai_actors.tools.skills.allowed_tools import allowed_tools
from ikigai_actors.tools.skills.front_matter import read_front_matter


def rules_of(*entries: str) -> list[Rule]:
    made = allowed_tools(entries).rules
    return [Rule("agent", number, *rule) for number, rule in enumerate(made, 1)]


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ("Bash(git add:*)", "allow bash git add *"),
        ("Bash(git add *)", "allow bash git add *"),
        ("Bash(npm run build)", "allow bash npm run build"),
        ("Bash(./scripts/fill.sh:*)", "allow bash ./scripts/fill.sh *"),
        ("Read", "allow read"),
        ("Edit", "allow edit"),
        ("Glob", "allow glob"),
        ("Edit(src/**)", "allow edit src/**"),
        ("Read(docs/a.md)", "allow read docs/a.md"),
        ("mcp__github__get_issue", "allow github__get_issue"),
    ],
)
def test_an_entry_becomes_the_rule_that_says_the_same(entry: str, expected: str) -> None:
    assert list(map(str, rules_of(entry))) == [expected]


@pytest.mark.parametrize(
    "entry",
    [
        "Bash", "Bash()", "Bash(*)", "Bash(:*)", "Bash( *)", "Bash(git*)", "Bash(git * --all)", "Bash(git add:* *)",
        "Bash(env:*)", "Bash(sudo rm:*)", "Bash(/usr/bin/env git:*)", "Bash(bash -c:*)", "Bash(xargs:*)",
        "Bash(find:*)", "Bash(eval:*)", "Bash(cd:*)", "Bash(FOO=1 git:*)", "Bash(git add; rm:*)",
        "Bash(git add && rm:*)",
        "Bash(git add `rm x`:*)", "Bash(git add $HOME:*)", "Bash(git add\nrm:*)", "Bash(git add > x)",
        "Bash(echo '*')",
        "*", "bash", "kill", "Task", "Agent", "WebFetch(domain:example.com)", "WebFetch", "Grep(src/**)",
        "Read(*.md)", "Read(a.md)", "Read(/etc/**)", "Read(//etc/**)", "Read(~/x/y)", "Read(../x/y)", "Read(x/../y)",
        "Read(x/*)", "Read(!x/y)", "mcp__github", "mcp__github__*", "mcp____x", "mcp__a b__c", "", "Read\n",
    ],
)  # fmt: skip
def test_of_an_entry_that_no_rule_says_exactly_none_is_made_and_it_is_named(entry: str) -> None:
    assert allowed_tools([entry]) == ((), (entry,))


def test_what_is_read_from_a_file_is_never_more_than_it_says() -> None:
    document = read_front_matter("---\nallowed-tools: Bash(git add:*), Read Bash(rm -rf, Write\n---\n")
    made = allowed_tools(document.texts("allowed-tools"))
    assert [(rule.tool, rule.pattern) for rule in made.rules] == [("bash", "git add *"), ("read", ""), ("write", "")]
    assert "Bash" in made.left
    assert str(allowed_tools(["Bash", "Read"])) == "allows read; not allowed by it, and decided at each call: Bash"


@pytest.mark.parametrize(
    "command",
    [
        "git add $(rm x)", "git add `rm x`", "git add x; rm -rf y", "git add x && rm y", "git add x || rm y",
        "git add x | rm y", "git add x & rm y", "git add x\nrm y", "git add x > y", "git add <(rm x)", "X=1 git add x",
        "env git add x", "GIT_SSH=rm git add x", "sudo git add x", "git -c core.pager=rm add x", "git  address x",
        "git addx", "git", "(git add x)", "{ git add x; }", "! git add x", "git add \"$(rm x)\"", "git add ${x:=rm}",
        "git add *", "git add ~", "\\git add x", "git add x #", "./git add x", "git add x\r\nrm y", "git add x\x00rm",
    ],
)  # fmt: skip
def test_no_command_passes_a_rule_of_a_skill_but_a_plain_one_that_begins_with_its_words(command: str) -> None:
    rules = rules_of("Bash(git add:*)")
    fits = {text: deciding(rules, "bash", Asked(Compared.COMMAND, text)) for text in ("git add x", "git add", command)}
    assert fits == {"git add x": rules[0], "git add": rules[0], command: None}
    denies = Rule("agent", 9, Policy.DENY, "bash", "git *")
    assert deciding([*rules, denies], "bash", Asked(Compared.COMMAND, "git add x")) == denies
