"""Commands as rules read them: what is called plain bash runs as exactly these words, and denials look everywhere."""

import random
import subprocess

import pytest

from ikigai_actors.tools.rules.commands import fits, may_run, pattern_words, plain_words

ALPHABET = "git log-n3'\"\\ $`;&|<>(){}*?[]~#!=\t\nX/.é%,:@+^"
HOSTILE = [
    "git log; id", "git log && id", "git log || id", "git log | sh", "git log & id", "git log\nid", "git log $(id)",
    "git log `id`", "git log > x", "git log >x", "git log 2>&1", "git log < f", "X=1 git log", "PATH=. git log",
    "git log <(id)", "git log ${x}", "git l\\og", "git 'log' ; id", "git log # x\nid", "git log\tx;id",
    'git log "$(id)"', 'git log "`id`"', "$'git' log", "git log {a,b}", "git log *", "~/git log", "! git log",
    "(git log)", "{ git log; }", "git log\r\nid", "git\u00a0log", "git log \u2028 id", "git log;", "git log 'a",
    'git log "a', "function git { id; }", "git(){ id; }", "\\git log", "git log !!", "git log [a-z]",
    "git log ~root", "a=b", "git log\0id", "git log \x1b[A", "time git log", "if git log", "git log '\x07'",
    "git log '\u202egnp'", "%1", "'' git log", "", " \t", "git log \"a!b\"", 'git log "\\\n"', "coproc git log",
]  # fmt: skip


def differences(seed: int, count: int) -> tuple[int, list[str]]:
    """How many random texts are called plain, and those that bash does not run as exactly these words."""
    chance = random.Random(seed)
    texts = ("".join(chance.choice(ALPHABET) for _ in range(chance.randint(1, 12))) for _ in range(count))
    called = [(text, words) for text in texts if (words := plain_words(f"p {text}")) is not None]
    prelude = "p() { [ $# -eq 0 ] || printf '%s\\0' \"$@\"; printf '\\1\\0'; }\n"
    script = prelude + "".join(f"p {text}\n" for text, _ in called)
    ran = subprocess.run(["bash", "--noprofile", "--norc"], input=script.encode(), capture_output=True, check=False)
    parsed = [tuple(part.decode().split("\0")[:-1]) for part in ran.stdout.split(b"\1\0")[:-1]]
    assert len(parsed) == len(called)
    return len(called), [text for (text, words), run in zip(called, parsed, strict=True) if words != ("p", *run)]


def test_bash_runs_a_plain_command_as_exactly_its_words() -> None:
    plain, wrong = differences(5, 6_000)
    assert wrong == []
    assert plain > 300


@pytest.mark.thorough("100,000 texts take seconds")
def test_bash_runs_many_plain_commands_as_exactly_their_words() -> None:
    plain, wrong = differences(random.randrange(2**32), 100_000)
    assert wrong == []
    assert plain > 5_000


@pytest.mark.parametrize("text", HOSTILE)
def test_no_hostile_text_is_plain(text: str) -> None:
    assert plain_words(text) is None


@pytest.mark.parametrize(
    ("pattern", "text", "fit"),
    [
        ("git log *", "git log", True),
        ("git log *", "git log -n 3", True),
        ("git log *", "git 'log' --format='%h %s'", True),
        ("git log *", 'git log --author="A B"', True),
        ("git log *", "git status", False),
        ("git log *", "gitlog", False),
        ("git log", "git log -n 3", False),
        ("git * -v", "git remote -v", True),
        ("git * -v", "git -v", False),
        ("*", "ls", True),
        ("echo '*'", "echo '*'", True),
        ("echo '*'", "echo x", False),
        ("git commit -m 'a * b'", 'git commit -m "a * b"', True),
    ],
)
def test_words_fit_a_pattern(pattern: str, text: str, fit: bool) -> None:
    wanted, words = pattern_words(pattern), plain_words(text)
    assert wanted is not None
    assert words is not None
    assert fits(wanted, words) is fit


@pytest.mark.parametrize("text", ["", " ", "a;b", "git*", "a $x", "a 'b", "a\nb", "'\x07'"])
def test_what_is_no_pattern(text: str) -> None:
    assert pattern_words(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "git push", "git push origin main", "ls; git push", "ls && git push -f", "ls | xargs git push", "(git push)",
        "{ git push; }", "X=1 git push", "X=$HOME git push", "/usr/bin/git push", "g'i't pu\\sh", '"git" "push"',
        "sudo -u bob git push", "timeout 5 git push", "env A=b git push", "bash -c 'git push'",
        "bash -c 'ls; git push'",
        "if true; then git push; fi", "for x in a b\ndo git push\ndone", "echo $(git push)", 'echo "$(git push)"',
        "echo `git push`", 'echo "`git push`"', "git push > log 2>&1", "2> log git push", "! git push", "git $what",
        "$git push", "git\tpush", "git \\\npush", "find . -exec git push \\;", "ls & git push", "time git push",
        "git push 'open", "case x in x) git push;; esac", "cat <(git push)", "eval git push", "ls >x; git push",
        "bash -c \"bash -c 'git push'\"", "~/bin/git push", "cd a &>/dev/null; git push",
        "bash <<< 'git push'", "bash <<EOF\ngit push\nEOF",
    ],
)  # fmt: skip
def test_a_denial_finds_a_command_wherever_it_begins(text: str) -> None:
    pattern = pattern_words("git push *")
    assert pattern is not None
    assert may_run(pattern, text)


@pytest.mark.parametrize(
    "text",
    [
        "git status", "git commit -m 'never git push'", 'echo "git push"', "ls git push", "cd $HOME && git status",
        "grep 'git push' log", "cat x > git", "echo a; ls", "", "git pull; echo push", "rg push > 'git push'",
    ],
)  # fmt: skip
def test_a_denial_does_not_reach_other_commands(text: str) -> None:
    pattern = pattern_words("git push *")
    assert pattern is not None
    assert not may_run(pattern, text)


@pytest.mark.parametrize(
    "text",
    [
        "git -C . push origin main", "git -c a=b push", "git --no-pager push", "git --git-dir .git --work-tree=. push",
        "/usr/bin/git -P -C /src push", "git \\\n push", "git \\\n  -C . \\\n push", "gi\\\nt push", "time -p git push",
        "function f { git push; }; f", "f() { git push; }", "coproc X { git push; }", "coproc git push",
        "echo ${x:-$(git push)}", "echo ${x:-`git push`}", "echo push | xargs git", "xargs -n 1 git -C . < list",
        "taskset 1 git push", "chrt 1 git push", "uv run git push", "npx git push", "systemd-run git push",
        "git${IFS}push", "{git,push}", "g{i,}t push", "git $action", "git $(echo push)", "git `echo push` now",
    ],
)  # fmt: skip
def test_a_denial_finds_what_models_write_and_what_only_bash_can_know(text: str) -> None:
    pattern = pattern_words("git push *")
    assert pattern is not None
    assert may_run(pattern, text)


@pytest.mark.parametrize(
    "text",
    [
        "git -C push status", "git -c push=1 log", "$PYTHON -m pytest", "ls $dir && echo {a,b}", "git log | xargs echo",
        "awk '{ print $1 }' push", "git commit -m \"$(date) push\"", "echo ${push:-git}", "find . | xargs grep push",
    ],
)  # fmt: skip
def test_a_denial_leaves_alone_what_is_surely_another_command(text: str) -> None:
    pattern = pattern_words("git push *")
    assert pattern is not None
    assert not may_run(pattern, text)


def test_commands_nested_too_deep_are_found_by_their_first_word() -> None:
    pattern, text = pattern_words("git push *"), "git push"
    assert pattern is not None
    for _ in range(20):
        text = "eval '" + text.replace("'", "'\"'\"'") + "'" if len(text) < 3_000 else f"eval {text}"
    assert may_run(pattern, text)
    assert may_run(pattern, "(" * 10_000 + "git push" + ")" * 10_000)
