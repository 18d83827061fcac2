"""bash: a shell for each agent, that keeps exit codes, takes one call at a time, and leaves no process behind."""

import asyncio
import os
import resource
import sys
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import NoReturn, TypeVar

import pytest

from ikigai_actors import ActorSystem, ScriptedProvider, Workspace
from ikigai_actors.tools import process
from ikigai_actors.tools.effect_keys import CurrentCall, acting_call
from ikigai_actors.tools.function import LIMIT, Result
from ikigai_actors.tools.process import ExitWaiter, living_processes
from ikigai_actors.tools.workspace.bash import OUTPUT_KEPT, Bash, CommandOutput
from ikigai_actors.tools.workspace.shells import Shells, bash_tool
from tests.kit.blocking_provider import DEADLINE
from tests.kit.databases import eventually
from tests.kit.program import Program
from tests.kit.tool_scripts import calling, requests_of, results, scripted

pytestmark = pytest.mark.slow("starts shells")

T = TypeVar("T")

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere only the shell's process group is found")

BUSY = "echo $$ > session.tmp; timeout 100 sleep 99 & mv session.tmp session; sleep 98"
"""A command that says which session it runs in, and has a child in a process group of its own."""


def living(session: int) -> list[int]:
    """The processes of a session."""
    return living_processes([session]).get(session, [])


def in_shells(directory: Path, work: Callable[[Shells], Awaitable[T]], idle: float = 600.0) -> T:
    """Do something with shells on an event loop, and close them."""

    async def begin() -> T:
        shells = Shells(directory, {"PATH": os.environ["PATH"]}, idle)
        try:
            return await work(shells)
        finally:
            await shells.close()

    return asyncio.run(begin())


@LINUX
def test_a_shell_whose_last_words_nobody_waits_for_is_closed_all_the_same(tmp_path: Path) -> None:
    async def play() -> bool:
        exits = ExitWaiter()
        shell = await Bash.start("/bin/bash", tmp_path, {"PATH": os.environ["PATH"]}, exits)
        await shell.run("setsid sleep 2 & echo", DEADLINE)  # who has left the session holds the pipe open
        gone, ending = exits.wait_for(shell.pid), shell.stop()
        await gone
        for _ in range(10):  # turns of the loop, until it waits for them
            await asyncio.sleep(0)
        ending.cancel()
        await asyncio.wait({ending})
        return shell._reading.is_closing()

    assert asyncio.run(play())


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="from there on a policy has no watcher of child processes")
def test_a_shell_needs_no_watcher_of_child_processes_of_the_programs_policy(tmp_path: Path) -> None:
    class NoWatcher(asyncio.DefaultEventLoopPolicy):
        """A policy that watches no child processes, as uvloop's."""

        def get_child_watcher(self) -> NoReturn:
            raise NotImplementedError

    before = asyncio.get_event_loop_policy()
    asyncio.set_event_loop_policy(NoWatcher())
    try:
        assert said(tmp_path, "echo tea; exit 3") == [
            Result("tea\n[the shell ended with exit code 3; the next call gets a new shell]", True)
        ]
    finally:
        asyncio.set_event_loop_policy(before)


def test_a_shell_needs_few_descriptors(tmp_path: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (200, before[1]))
    try:
        assert said(tmp_path, "cd / && pwd", "pwd") == [Result("/")] * 2
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_a_start_that_is_cancelled_at_any_turn_of_the_loop_leaves_no_descriptor_and_no_error(tmp_path: Path) -> None:
    async def cancel_after(turns: int) -> None:
        starting = asyncio.create_task(Bash.start("/bin/bash", tmp_path, {}, ExitWaiter()))
        for _ in range(turns):
            await asyncio.sleep(0)
        if not starting.cancel():
            starting.result().stop()
        await asyncio.wait({starting})
        await asyncio.sleep(0)  # a turn, in which its end is told
        while others := asyncio.all_tasks() - {asyncio.current_task()}:
            await asyncio.gather(*others)

    async def play() -> None:
        await cancel_after(0)
        before = set(Path("/dev/fd").iterdir())
        for turns in range(1, 8):
            await cancel_after(turns)
        assert set(Path("/dev/fd").iterdir()) == before

    asyncio.run(play())


def said(directory: Path, *commands: str, seconds: float = DEADLINE) -> list[Result]:
    """What the commands of one agent give, one after the other; the news of the first shell is left out."""

    async def work(shells: Shells) -> list[Result]:
        assert (await shells.run("agent", ":", DEADLINE)).content == f"[new shell in {directory}]"
        return [await shells.run("agent", command, seconds) for command in commands]

    return in_shells(directory, work)


def session_in(directory: Path) -> int:
    """The session of `BUSY`, once all its processes run: shell, guard, sleep, timeout and its sleep."""
    eventually((directory / "session").exists, "the command")
    session = int((directory / "session").read_text())
    eventually(lambda: len(living(session)) >= 5, "the children")
    return session


async def until(condition: Callable[[], bool]) -> None:
    """Let the event loop run until something is so."""
    async with asyncio.timeout(DEADLINE):
        while not condition():
            await asyncio.sleep(0.005)


def test_directory_and_variables_stay_from_call_to_call(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    assert said(tmp_path, "cd below; tea=green", "basename $PWD; echo $tea") == [Result(""), Result("below\ngreen")]


def test_an_exit_code_is_kept_and_said_unless_it_is_0(tmp_path: Path) -> None:
    assert said(tmp_path, "echo no; false", "exec_me_not 2>/dev/null", "(exit 42)", "true") == [
        Result("no\n[exit code 1]", True),
        Result("[exit code 127]", True),
        Result("[exit code 42]", True),
        Result(""),
    ]


def test_output_of_any_length_comes_whole_with_its_exit_code(tmp_path: Path) -> None:
    lengths = [*range(4_040, 4_110), 65_536 % OUTPUT_KEPT, OUTPUT_KEPT - 1, OUTPUT_KEPT]
    results = said(tmp_path, *(f"printf '%{length}s' x; (exit 123)" for length in lengths))
    assert [result.content for result in results] == ["x".rjust(length) + "\n[exit code 123]" for length in lengths]


def test_output_over_the_limit_is_cut_at_its_beginning_which_is_said(tmp_path: Path) -> None:
    [result] = said(tmp_path, "head -c 1000000 /dev/zero | tr '\\0' x; echo end")
    assert result.content == f"[cut: {1_000_004 - OUTPUT_KEPT} bytes before this]\n" + "x" * (OUTPUT_KEPT - 4) + "end"
    assert len(result.content) < LIMIT


def test_binary_output_does_no_harm(tmp_path: Path) -> None:
    result, after = said(tmp_path, "head -c 5000 /dev/urandom; printf '\\0\\377end'", "echo ok")
    assert result.content.endswith("\0\ufffdend")
    assert after == Result("ok")


def test_a_quote_that_is_not_closed_is_an_error_at_once_and_harms_no_later_command(tmp_path: Path) -> None:
    result, after = said(tmp_path, 'echo "half', "if true; then { echo ok; }; fi")
    assert "unexpected EOF" in result.content
    assert result.content.endswith("[exit code 2]")
    assert after == Result("ok")


@pytest.mark.sample(2, "a command each")
@pytest.mark.parametrize(
    "spoiling",
    [
        "eval(){ :; }",
        "printf(){ :; }",
        "shopt -s expand_aliases; alias printf=true eval=true builtin=true unset=true command=true",
        "builtin(){ :; }",
        "builtin(){ :; }; command(){ :; }",
        "builtin(){ :; }; unset(){ :; }",
        "command(){ :; }; unset(){ :; }; eval(){ :; }; printf(){ :; }",
        "set(){ :; }; trap(){ :; }; exec(){ :; }; exit(){ :; }; read(){ :; }",
        "PROMPT_COMMAND='exit 3'; PS1=x; PS2=x",
        "IFS=0123456789",
        "set -u; set -f; set -o noclobber",
        "trap 'true' DEBUG ERR",
        "set -o posix",
        "exec 3>/dev/null",
        "exec 219>&-",
    ],
)
def test_what_a_command_leaves_behind_does_not_spoil_the_next_one(tmp_path: Path, spoiling: str) -> None:
    first, *after = said(tmp_path, spoiling, "echo tea; false", "echo coffee", "sh -c 'exit 10'")
    assert first == Result("")
    assert after == [Result("tea\n[exit code 1]", True), Result("coffee"), Result("[exit code 10]", True)]


def test_a_command_that_leads_the_output_elsewhere_is_obeyed_and_its_end_is_told(tmp_path: Path) -> None:
    assert said(tmp_path, "exec >kept.txt", "echo tea; false") == [Result(""), Result("[exit code 1]", True)]
    assert (tmp_path / "kept.txt").read_text() == "tea\n"


@pytest.mark.sample(1, "ways to spoil it")
@pytest.mark.parametrize("spoiling", ["enable -n printf", "set -n", "builtin(){ :; }; unset(){ :; }; command(){ :; }"])
def test_a_shell_that_is_spoiled_for_good_is_ended_and_the_next_one_is_not(tmp_path: Path, spoiling: str) -> None:
    async def work(shells: Shells) -> list[Result]:
        await shells.run("agent", spoiling, 1.0)
        return [await shells.run("agent", "echo tea", seconds) for seconds in (1.0, DEADLINE, DEADLINE)]

    *_, after = in_shells(tmp_path, work)
    assert after == Result("tea")


def test_no_command_is_handed_the_descriptor_that_tells_of_its_end(tmp_path: Path) -> None:
    [result] = said(tmp_path, "for fd in /dev/fd/*; do basename $fd; done | sort -n | tail -n 1; echo mine >&219")
    assert "219: Bad file descriptor" in result.content
    assert "219\n" not in result.content


def test_a_command_that_bash_would_alter_and_a_time_out_of_bounds_are_refused(tmp_path: Path) -> None:
    tool = bash_tool(Shells(tmp_path, {}, 600.0))
    assert "NUL" in asyncio.run(tool.call_async({"command": "rm a\0b"})).content
    assert "less than or equal to 600" in asyncio.run(tool.call_async({"command": "ls", "timeout": 601})).content


def test_standard_input_is_empty_and_here_documents_work(tmp_path: Path) -> None:
    assert said(tmp_path, "cat; echo end", "cat <<'X'\nit's $here\nX") == [Result("end"), Result("it's $here")]


def test_a_shell_that_a_command_ends_is_followed_by_a_new_one(tmp_path: Path) -> None:
    ended, after = said(tmp_path, "tea=green; echo bye; exit 3", "echo [$tea]")
    assert ended == Result("bye\n[the shell ended with exit code 3; the next call gets a new shell]", True)
    assert after == Result(f"[new shell in {tmp_path}; the one before had ended]\n[]")


def test_a_shell_that_ends_does_not_wait_for_its_background_jobs_and_ends_them(tmp_path: Path) -> None:
    [ended] = said(tmp_path, "echo $$; sleep 99 & exit 0")
    session, _, rest = ended.content.partition("\n")
    assert rest == "[the shell ended with exit code 0; the next call gets a new shell]"
    assert living(int(session)) == []


def late(directory: Path, seconds: float, trap: str = "") -> list[Result]:
    """What a command gives that takes too long, and the one after it. Whatever it is to end runs by then."""

    async def work(shells: Shells) -> list[Result]:
        await shells.run("agent", f"{trap}({BUSY}) > /dev/null &", DEADLINE)
        session = await asyncio.to_thread(session_in, directory)
        result = await shells.run("agent", "echo so far; sleep 97", seconds)
        assert living(session) == []
        return [result, await shells.run("agent", "echo ok", DEADLINE)]

    return in_shells(directory, work)


@LINUX
def test_a_command_that_takes_too_long_is_ended_with_all_that_runs_in_its_shell(tmp_path: Path) -> None:
    result, after = late(tmp_path, 2.0)
    assert result == Result(
        "so far\n[not finished after 2 s, so it was ended, and the shell with it; the next call gets a new shell]", True
    )
    assert after == Result(f"[new shell in {tmp_path}; the one before had ended]\nok")


@LINUX
def test_a_cancelled_call_leaves_no_process_and_the_next_one_gets_a_new_shell(tmp_path: Path) -> None:
    async def work(shells: Shells) -> Result:
        running = asyncio.create_task(shells.run("agent", BUSY, DEADLINE))
        session = await asyncio.to_thread(session_in, tmp_path)
        waiting = asyncio.create_task(shells.run("agent", "echo ok", DEADLINE))
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert living(session) == []
        return await waiting

    result = in_shells(tmp_path, work)
    why = "the one before was ended with a call that was cancelled"
    assert result == Result(f"[new shell in {tmp_path}; {why}]\nok")


def test_an_agent_that_never_ran_a_command_leaves_nothing_behind(tmp_path: Path) -> None:
    in_shells(tmp_path, lambda shells: shells.leave("agent"))


def test_a_shell_that_ends_takes_no_command(tmp_path: Path) -> None:
    async def work() -> CommandOutput:
        shell = await Bash.start("/bin/bash", tmp_path, {}, ExitWaiter())
        await shell.stop()
        return await asyncio.wait_for(shell.run("touch late", 3600.0), DEADLINE)

    assert asyncio.run(work()) == CommandOutput("", 0, None)
    assert not (tmp_path / "late").exists()


def test_agents_have_shells_of_their_own(tmp_path: Path) -> None:
    async def work(shells: Shells) -> str:
        await shells.run("parent", "tea=green", DEADLINE)
        return (await shells.run("child", "echo [$tea]", DEADLINE)).content

    assert in_shells(tmp_path, work) == f"[new shell in {tmp_path}]\n[]"


def test_a_shell_without_calls_is_closed_after_a_while(tmp_path: Path) -> None:
    async def work(shells: Shells) -> Result:
        session = int((await shells.run("agent", "echo $$", DEADLINE)).content.splitlines()[1])
        await until(lambda: not living(session))
        return await shells.run("agent", "echo ok", DEADLINE)

    result = in_shells(tmp_path, work, idle=0.05)
    assert result == Result(f"[new shell in {tmp_path}; the one before was closed after 0.05 s without a call]\nok")


def test_a_shell_that_cannot_be_started_is_an_error_result(tmp_path: Path) -> None:
    async def work(shells: Shells) -> Result:
        tmp_path.rmdir()
        return await shells.run("agent", "echo ok", DEADLINE)

    result = in_shells(tmp_path, work)
    tmp_path.mkdir()
    assert result.is_error
    assert result.content.startswith("A shell could not be started: ")


def test_calls_of_one_reply_take_turns_and_read_what_was_passed_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "a secret")
    monkeypatch.setenv("IKIGAI_DATABASE_URL", "another secret")
    slow = "for ((i = 0; i < 20000; i++)); do :; done; step=one"
    calls = calling(("bash", {"command": slow}), ("bash", {"command": "echo $step"}), ("bash", {"command": "env"}))
    script = ScriptedProvider([calls, "done"])
    workspace = Workspace(tmp_path, fence="none", environment={"COLOUR": "blue"})
    with ActorSystem.open(":memory:", provider=script, tools=[workspace], approvals="allow") as system:
        system.root.prompt("go").get(timeout=DEADLINE)
    first, second, third = results(requests_of(script, None)[1])
    assert (first.content, second.content) == (f"[new shell in {tmp_path}]", "one")
    assert "COLOUR=blue\n" in third.content
    assert "PATH=" in third.content
    assert "secret" not in third.content


@LINUX
@pytest.mark.thorough("an actor that stops; every run has an agent that is killed and a system that closes")
def test_an_agent_that_is_gone_leaves_no_shell(tmp_path: Path) -> None:
    call = calling(("bash", {"command": f"({BUSY}) > /dev/null & echo started"}))
    with ActorSystem.open(
        ":memory:",
        provider=scripted(child=[call, "done"]),
        tools=[Workspace(tmp_path, fence="none")],
        approvals="allow",
    ) as system:
        agent = system.root.fork("go", name="child")
        agent.reply(timeout=DEADLINE)
        session = session_in(tmp_path)
        system._actor(agent.uuid).stop()
        eventually(lambda: not living(session), "the end of its shell")


@pytest.mark.sample(1, "a signal each")
@LINUX
@pytest.mark.parametrize("trap", ["", "trap '' TERM; "])
def test_a_kill_ends_all_that_the_agents_tool_runs_also_what_is_deaf_to_term(tmp_path: Path, trap: str) -> None:
    script = scripted(child=[calling(("bash", {"command": f"{trap}{BUSY}"}))])
    with ActorSystem.open(
        ":memory:", provider=script, tools=[Workspace(tmp_path, fence="none")], approvals="allow"
    ) as system:
        child = system.root.fork("go", name="child")
        session = session_in(tmp_path)
        assert living(session)
        child.kill()
        eventually(lambda: not living(session), "the end of its processes")


@LINUX
def test_a_system_that_closes_leaves_no_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "_GRACE", 0.2)
    script = ScriptedProvider([calling(("bash", {"command": f"trap '' TERM; {BUSY}"}))])
    with ActorSystem.open(
        ":memory:", provider=script, tools=[Workspace(tmp_path, fence="none")], approvals="allow"
    ) as system:
        system.root.prompt("go")
        session = session_in(tmp_path)
    assert living(session) == []


@LINUX
def test_a_host_that_is_killed_leaves_no_process(tmp_path: Path) -> None:
    where = ("--database", str(tmp_path / "notes.db"), "--workspace", str(tmp_path), "--fence", "none")
    with Program.by_pipe(*where, "--yes") as program:
        program.say(f'@bash {{"command": "trap \'\' TERM HUP; {BUSY}"}}')
        session = session_in(tmp_path)
        program.kill()
    eventually(lambda: not living(session), "the end of its processes")


def test_what_a_running_command_has_printed_is_at_hand_by_the_id_of_its_call(tmp_path: Path) -> None:
    async def play(shells: Shells) -> list[Mapping[str, str]]:
        acting_call.set(CurrentCall("key", 1, "agent", "call-1"))
        command = "echo one; echo two; until [ -e go ]; do sleep 0.01; done"
        call = asyncio.ensure_future(shells.run("agent", command, DEADLINE))
        while "two" not in shells.printed("agent").get("call-1", ""):
            await asyncio.sleep(0.01)  # to the shell
        seen = [shells.printed("agent"), shells.printed("another")]
        (tmp_path / "go").touch()
        assert (await call).content.endswith("one\ntwo")
        return [*seen, shells.printed("agent")]

    assert in_shells(tmp_path, play) == [{"call-1": "one\ntwo\n"}, {}, {}]
