"""The profile for macOS says what the reach says. Nobody here runs it: there is no Mac."""

import asyncio
import re
from pathlib import Path
from subprocess import DEVNULL
from typing import Any

import pytest

from ikigai_actors.tools.fence.launch import FencedStart, trial
from ikigai_actors.tools.fence.policy import Network, Reach
from ikigai_actors.tools.fence.seatbelt import SANDBOX_EXEC, seatbelt_command, seatbelt_profile
from ikigai_actors.tools.process import ChildProcess

REACH = Reach(
    "/Users/ann/src",
    (),
    (("/usr", "/usr", False), ("/Users/ann/src", "/Users/ann/src", True), ("/srv/docs", "/srv/docs", False)),
    protect=(("/Users/ann/src", ".git/hooks"),),
)
Expression = list[Any]


def parsed(profile: str) -> list[Expression]:
    """The rules of a profile, as nested lists of words."""
    stack: list[Expression] = [[]]
    for quoted, mark in re.findall(r'"((?:[^"\\]|\\.)*)"|([()]|[^\s()"]+)', profile):
        if mark == "(":
            stack.append([])
        elif mark == ")":
            done = stack.pop()
            stack[-1].append(done)
        else:
            stack[-1].append(mark or re.sub(r"\\(.)", lambda texts: {"n": "\n"}.get(texts[1], texts[1]), quoted))
    [rules] = stack
    return rules


def allowed(profile: str, operation: str, path: str) -> bool:
    """What the rules say of an operation on a path: the last one that fits counts."""
    answer = False
    for decision, *words in parsed(profile)[2:]:
        filters = [word for word in words if isinstance(word, list)]
        named = any(
            operation == word or (word.endswith("*") and operation.startswith(word[:-1]))
            for word in words
            if isinstance(word, str)
        )
        if named and any(path == to or (kind == "subpath" and path.startswith(f"{to}/")) for kind, to, *_ in filters):
            answer = decision == "allow"
    return answer


@pytest.mark.parametrize(
    ("operation", "path", "allowed_there"),
    [
        ("file-read-data", "/Users/ann/src/a.py", True),
        ("file-write-create", "/Users/ann/src/a.py", True),
        ("file-write-create", "/Users/ann/src/.git/hooks/x", False),
        ("file-read-data", "/Users/ann/src/.git/hooks/x", True),
        ("file-write-data", "/usr/bin/ls", False),
        ("file-read-data", "/usr/bin/ls", True),
        ("file-read-data", "/srv/docs/x", True),
        ("file-write-data", "/srv/docs/x", False),
        ("file-read-data", "/Users/ann/.ssh/id", False),
        ("file-read-metadata", "/Users/ann", True),
        ("file-read-data", "/Users/ann", False),
        ("file-read-data", "/Users/ann/srcs", False),
        ("file-write-data", "/state/of-a/home/x", True),
        ("file-read-data", "/state/of-b/home/x", False),
        ("file-write-data", "/dev/null", True),
    ],
)
def test_a_profile_allows_what_the_reach_lists_and_nothing_beside_it(
    operation: str, path: str, allowed_there: bool
) -> None:
    profile = seatbelt_profile(REACH, "/state/of-a")
    assert parsed(profile)[:2] == [["version", "1"], ["deny", "default"]]
    assert allowed(profile, operation, path) is allowed_there


@pytest.mark.parametrize(
    ("network", "lines"),
    [
        (Network(), ["(allow network*)", "(allow system-socket)"]),
        (Network("none"), []),
        (Network("ports", (443, 53)), ['(allow network-outbound (remote tcp "*:443") (remote tcp "*:53"))']),
        (Network("proxy", (3128,)), ['(allow network-outbound (remote tcp "localhost:3128"))']),
    ],
)
def test_a_profile_opens_the_network_as_far_as_it_is_given(network: Network, lines: list[str]) -> None:
    profile = seatbelt_profile(Reach("", (), (), network=network), "/p")
    assert [line for line in profile.splitlines() if "network" in line or "socket" in line] == lines


@pytest.mark.parametrize("name", ['a"b', "a\\", 'a") (allow default) (x "', "a\nb", "ä 💡"])
def test_no_name_of_a_directory_changes_a_profile(name: str) -> None:
    profile = seatbelt_profile(Reach("", (), ((f"/{name}", f"/{name}", True),)), "/p")
    assert ["subpath", f"/{name}"] in [part for rule in parsed(profile) for part in rule]
    assert [rule[1] for rule in parsed(profile) if rule[0] == "deny"] == ["default", "file-write-setugid"]
    assert not any(rule[1] == "default" for rule in parsed(profile) if rule[0] == "allow")


def test_without_protected_names_nothing_is_denied_again() -> None:
    assert seatbelt_profile(Reach("", (), ()), "/p").count("deny") == 2


def test_a_program_runs_by_the_program_of_the_system() -> None:
    assert seatbelt_command("(version 1)", ["bash", "-c", "ls"]) == [
        "/usr/bin/sandbox-exec", "-p", "(version 1)", "bash", "-c", "ls",
    ]  # fmt: skip


def test_where_that_program_is_missing_a_trial_says_so(tmp_path: Path) -> None:
    if Path(SANDBOX_EXEC).exists():
        pytest.skip("this is a Mac")
    said = trial(FencedStart(b"", tmp_path, profile=seatbelt_profile(REACH, str(tmp_path))), {"PATH": "/usr/bin:/bin"})
    assert SANDBOX_EXEC in said


def test_a_program_starts_by_the_profile_of_its_fence(tmp_path: Path) -> None:
    if Path(SANDBOX_EXEC).exists():
        pytest.skip("this is a Mac")

    async def start() -> None:
        fence = FencedStart(b"", tmp_path, profile="(version 1)")
        await ChildProcess().spawn(["true"], environment={}, stderr=DEVNULL, fence=fence)

    with pytest.raises(FileNotFoundError, match=SANDBOX_EXEC):
        asyncio.run(start())
