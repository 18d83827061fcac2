"""What nothing but a pattern allows does what it would do in a new shell, whatever earlier commands have defined."""

import asyncio
import os
import random
import shlex
import subprocess
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TypeVar

import pytest

from ikigai_actors.tools.base import HostPaths
from ikigai_actors.tools.effect_keys import CurrentCall, acting_call
from ikigai_actors.tools.fence.enclosure import open_enclosure
from ikigai_actors.tools.fence.policy import Fence
from ikigai_actors.tools.function import Result
from ikigai_actors.tools.rules.commands import of_shell, plain_words
from ikigai_actors.tools.workspace.apart import places_for, why_not
from ikigai_actors.tools.workspace.bash import PlaceOfShell
from ikigai_actors.tools.workspace.shells import Shells
from tests.kit.blocking_provider import DEADLINE
from tests.kit.fences import needs

T = TypeVar("T")

ASKED, APART = False, True

COMMAND = "tool a 'b  c'"
TOOL = r"""#!/usr/bin/env bash
printf '%s|' tool "$@" "$PWD" "$(umask)" "$(ulimit -c)" "$(trap)" "$-"
for place in /dev/fd/*; do [ -e "$place" ] && printf '%s|' "${place##*/}"; done
while IFS= read -r line; do printf '%s|' "$line"; done < <(env | grep -v '^_=' | sort)
"""
"""A program that says all that it was given."""

EVIL = "printf '#!/bin/sh\\necho EVIL\\n' > evil/tool; chmod +x evil/tool; "

POLLUTING = [
    "tool() { echo EVIL; }",
    "function tool { echo EVIL; }; export -f tool; readonly -f tool",
    "shopt -s expand_aliases; alias tool='echo EVIL'",
    f"{EVIL}hash -p evil/tool tool",
    f"{EVIL}PATH=$PWD/evil:$PATH",
    f"{EVIL}export PATH=evil:$PATH; hash -r",
    "trap 'echo EVIL' DEBUG",
    "set -o functrace; trap 'echo EVIL' RETURN; trap 'echo EVIL' EXIT ERR",
    "eval() { echo EVIL; }; builtin() { echo EVIL; }; command() { echo EVIL; }",
    "cd() { echo EVIL; }; case() { echo EVIL; }; printf() { echo EVIL; }; exec() { echo EVIL; }; unset -f printf",
    "command_not_found_handle() { echo EVIL; }; PATH=",
    "enable -n echo; enable -n cd",
    "IFS=o; GLOBIGNORE='*'; set -f",
    "set -x; PS4='EVIL '",
    "set -e; set -u; set -o pipefail; set -o posix",
    "set -k; set -a; TOOL=EVIL",
    "set -- EVIL; shift 0",
    "shopt -s extglob nullglob failglob nocasematch lastpipe",
    "export GIT_DIR=EVIL GIT_EXTERNAL_DIFF=EVIL PAGER=EVIL LESSOPEN='|EVIL' PYTHONSTARTUP=EVIL NODE_OPTIONS=EVIL",
    "export LD_PRELOAD= LD_LIBRARY_PATH=EVIL PERL5LIB=EVIL HOME=EVIL",
    "export BASH_ENV=evil/env ENV=evil/env PROMPT_COMMAND='echo EVIL'; printf 'echo EVIL\\n' > evil/env",
    "export SHELLOPTS; export BASHOPTS; declare -x BASH_XTRACEFD=1",
    "readonly _top=/; export _top _code=EVIL",
    "umask 077; ulimit -S -c 0; ulimit -S -n 64",
    "exec 3>evil/three 4<evil; exec 2>/dev/null",
    "exec >/dev/null",
    "printf 'tool() { echo EVIL; }\\n' > evil/env; . evil/env; source evil/env",
    "coproc tool { echo EVIL; }; declare -n tool=PATH",
    "sleep 100 & disown; jobs() { echo EVIL; }; (sleep 101 &)",
    "cd -P evil && cd ..; export OLDPWD=EVIL; PWD=EVIL; DIRSTACK=EVIL",
]


def in_shells(directory: Path, work: Callable[[Shells], Awaitable[T]], mode: str = "none") -> T:
    """Do something with shells on an event loop, and close them."""
    (directory / "bin").mkdir()
    (directory / "desk" / "evil").mkdir(parents=True)
    (directory / "bin" / "tool").write_text(TOOL)
    (directory / "bin" / "tool").chmod(0o755)
    environment = {"PATH": f"{directory / 'bin'}:{os.defpath}"}

    async def begin(shells: Shells) -> T:
        try:
            return await work(shells)
        finally:
            await shells.close()

    if mode == "none":
        return asyncio.run(begin(Shells(directory / "desk", environment, 600.0)))
    needs(mode)
    fence, paths = Fence(mode=mode, read=[directory / "bin"]), HostPaths(directory / "state")
    enclosure = open_enclosure(fence, paths, str(directory / "desk"), environment, {}, print)
    return asyncio.run(begin(Shells(directory / "desk", environment, 600.0, enclosure)))


async def run(shells: Shells, command: str, apart: bool, agent: str = "ann") -> Result:
    acting_call.set(CurrentCall("key", 1, agent, "call", by_pattern=apart))
    return await shells.run(agent, command, DEADLINE)


async def ran(shells: Shells, command: str, apart: bool, agent: str = "ann") -> str:
    """The lines of a result, but for what it says of shells."""
    result = await run(shells, command, apart, agent)
    return "\n".join(line for line in result.content.splitlines() if not line.startswith(("[new shell", "[run apart")))


async def check(shells: Shells, histories: Sequence[Sequence[str]]) -> list[str]:
    """The histories after which a command apart does not do what it did in a new shell. Each is of an agent."""
    wrong = []
    for number, history in enumerate(histories):
        agent = f"agent {number}"
        expected = await ran(shells, COMMAND, APART, agent)
        assert expected.startswith("tool|a|b  c|")
        acting_call.set(CurrentCall("key", 1, agent, "call"))
        for polluting in history:
            await shells.run(agent, polluting, 1.0)
        if await ran(shells, COMMAND, APART, agent) != expected:
            wrong.append("; ".join(history))
        await shells.leave(agent)
    return wrong


@pytest.mark.thorough("made-up commands; every run has made-up histories")
@pytest.mark.slow("starts shells")
def test_no_earlier_command_changes_what_one_apart_does(tmp_path: Path) -> None:
    assert in_shells(tmp_path, lambda shells: check(shells, [[command] for command in POLLUTING])) == []


@pytest.mark.slow("starts shells")
def test_no_history_of_commands_changes_what_one_apart_does(tmp_path: Path) -> None:
    chance = random.Random(7)
    histories = [chance.sample(POLLUTING, chance.randint(2, 5)) for _ in range(5)]
    assert in_shells(tmp_path, lambda shells: check(shells, histories)) == []


@pytest.mark.sample(1, "fences")
@pytest.mark.slow("starts shells")
@pytest.mark.parametrize("mode", ["required", "landlock"])
def test_behind_a_fence_neither(tmp_path: Path, mode: str) -> None:
    histories = [POLLUTING[:1], POLLUTING[4:5], POLLUTING[6:7]]
    assert in_shells(tmp_path, lambda shells: check(shells, histories), mode) == []


def test_a_function_of_an_earlier_command_holds_for_those_that_are_asked_about_alone(tmp_path: Path) -> None:
    async def work(shells: Shells) -> list[str]:
        await run(shells, POLLUTING[0], ASKED)
        return [await ran(shells, "tool", kind) for kind in (ASKED, APART, ASKED)]

    first, apart, last = in_shells(tmp_path, work)
    assert (first, apart.partition("|")[0], last) == ("EVIL", "tool", "EVIL")


def test_a_command_apart_runs_in_the_directory_of_the_shell_and_defines_nothing_there(tmp_path: Path) -> None:
    async def work(shells: Shells) -> list[str]:
        await run(shells, "cd evil; tea=green", ASKED)
        defining = ("printf -v tea black", "printf -v PATH evil", "builtin cd /", "exit")
        apart = [await ran(shells, command, APART) for command in ("pwd", *defining, "tool")]
        return [*apart, await ran(shells, "pwd; echo $tea", ASKED)]

    place = f"{tmp_path}/desk/evil"
    *apart, tool, kept = in_shells(tmp_path, work)
    assert apart == [place, "", "", "", ""]
    assert tool.startswith(f"tool|{place}|")
    assert kept == f"{place}\ngreen"


def test_the_pattern_of_a_rule_holds_only_where_it_means_what_it_says(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()

    async def work(shells: Shells) -> list[str]:
        await run(shells, EVIL + "ln -s ../../outside evil/out; mkdir evil/gone", ASKED)
        outputs = [await ran(shells, "evil/tool", APART)]
        for where in ("evil", "../evil/out", "/", "/proc/self", f"{tmp_path}/desk/evil/gone"):
            await run(shells, f"cd {where}; [ $PWD = {tmp_path}/desk/evil/gone ] && rmdir $PWD", ASKED)
            outputs += [await ran(shells, command, APART) for command in ("./tool", "echo tea")]
        return outputs

    first, beneath, tea, *others = in_shells(tmp_path, work)
    assert (first, tea) == ("EVIL", "tea")
    assert beneath.startswith(f"Nothing was run: your shell is in {tmp_path}/desk/evil, beneath")
    assert beneath.endswith(f"or begin it with `cd {tmp_path}/desk/evil &&`: then it asks.")
    places = [f"{tmp_path}/outside", f"{tmp_path}/outside", "/", "/"]
    for result, place in zip(others, places, strict=False):
        assert result.startswith(f"Nothing was run: your shell is in {place}, outside of the workspace")
    assert all(result.startswith("Nothing was run:") for result in others)
    assert others[-1] == why_not(PlaceOfShell.GONE, "")


@pytest.mark.parametrize(
    ("command", "places"),
    [("./x", 1), ("'./x' -v", 1), ("bin/x", 1), ("../x", 1), ("/bin/x ./y", 2), ("x", 2), ("x bin/y", 2), ("ls; x", 1)],
)
def test_a_program_with_a_path_from_the_current_directory_is_meant_in_the_top_one(command: str, places: int) -> None:
    assert places_for(command) == (PlaceOfShell.TOP, PlaceOfShell.BENEATH)[:places]


def test_what_jobs_print_before_a_command_is_refused_comes_with_the_next_result(tmp_path: Path) -> None:
    async def work(shells: Shells) -> list[str]:
        job = "(until [ -e go ]; do sleep 0.01; done; echo late; touch printed) & cd /"
        outputs = [await ran(shells, job, ASKED)]
        (tmp_path / "desk" / "go").touch()
        while not (tmp_path / "desk" / "printed").exists():
            await asyncio.sleep(0.01)  # to the job
        return [*outputs, await ran(shells, "echo tea", APART), await ran(shells, "true", ASKED)]

    first, refused, after = in_shells(tmp_path, work)
    assert (first, after) == ("", "late")
    assert refused.startswith("Nothing was run: your shell is in /, outside")


@pytest.mark.sample(2, "ends of a shell")
@pytest.mark.slow("starts shells")
@pytest.mark.parametrize("ending", ["kill -KILL $(pgrep -s 0 -x bash)", "pkill -KILL -P $$", "exit 3", "exec true"])
def test_a_shell_ends_with_its_clean_shell_and_the_next_call_gets_both_anew(tmp_path: Path, ending: str) -> None:
    async def work(shells: Shells) -> list[str]:
        await run(shells, ending, ASKED)
        while "[new shell" not in (await run(shells, "true", ASKED)).content:
            await asyncio.sleep(0.01)  # to its end
        return [await ran(shells, "echo tea", kind) for kind in (APART, ASKED)]

    assert in_shells(tmp_path, work) == ["tea", "tea"]


def test_a_result_says_once_and_after_each_failure_what_does_not_hold_apart(tmp_path: Path) -> None:
    async def work(shells: Shells) -> list[bool]:
        flags = []
        for command, kind in (
            ("true", APART), ("tea=green", ASKED), ("true", APART), ("true", APART), ("false", APART), ("false", ASKED),
        ):  # fmt: skip
            flags.append("[run apart from your shell" in (await run(shells, command, kind)).content)
        return flags

    assert in_shells(tmp_path, work) == [False, False, True, False, True, False]


REVIEWED = {
    ":", "[", "break", "builtin", "caller", "command", "compgen", "continue", "echo", "false", "help", "kill", "printf",
    "pwd", "test", "times", "true", "type",
}  # fmt: skip
"""Builtins of bash that may run apart: they do there what they do anywhere, or nothing."""


def test_every_builtin_of_bash_is_known_as_one_that_may_run_apart_or_may_not() -> None:
    listed = subprocess.run(["bash", "-c", "compgen -b"], capture_output=True, text=True, check=True).stdout.split()
    assert {name for name in listed if not of_shell([name])} == REVIEWED


@pytest.mark.parametrize(
    ("command", "changes"),
    [
        ("cd src", True), ("command cd src", True), ("builtin -- export A", True), ("command -p cd x", True),
        (". env.sh", True), ("command -v cd", False), ("type cd", False), ("git cd", False), ("'cd' x", True),
    ],
)  # fmt: skip
def test_what_changes_the_shell_is_found_behind_what_calls_builtins(command: str, changes: bool) -> None:
    words = plain_words(command)
    assert words is not None
    assert of_shell(words) is changes
    assert shlex.join(words)
