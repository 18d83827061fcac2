"""bash behind a fence, in a system: it is refused, told and ended as without one, and leaves nothing behind."""

import contextlib
import signal
from pathlib import Path

import pytest

from ikigai_actors import ActorSystem, BadInput, ScriptedProvider, Workspace
from ikigai_actors.agent.subscriptions import Event, ToolTrouble
from ikigai_actors.tools.fence.tiers import TIER_VARIABLE
from tests.kit.blocking_provider import DEADLINE
from tests.kit.databases import eventually
from tests.kit.fences import needs
from tests.kit.tool_scripts import calling, requests_of
from tests.kit.zygote import PYTHON, popen

pytestmark = pytest.mark.slow("starts shells")

TIERS = ("required", "landlock")


@pytest.fixture
def work(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


def said(work: Path, *commands: str, fence: str = "required", timeout: float = DEADLINE) -> list[str]:
    """What the commands of one agent give, one after the other."""
    needs(fence)
    calls = [calling(("bash", {"command": command, "timeout": timeout})) for command in commands]
    script = ScriptedProvider([*calls, "done"])
    tools = [Workspace(work, fence=fence)]
    with ActorSystem.open(work.parent / "d.db", script, tools=tools, approvals="allow") as system:
        system.root.prompt("go").get(timeout=DEADLINE)
        return [message.content for message in system.root.history() if message.kind == "tool_result"]


def alive(marker: str) -> list[int]:
    """The processes with a variable in their environment."""
    pids = []
    for place in Path("/proc").iterdir():
        if place.name.isdigit():
            try:
                if f"{marker}\0".encode() in (place / "environ").read_bytes() + b"\0":
                    pids.append(int(place.name))
            except OSError:
                pass
    return pids


def launched(work: Path) -> list[Path]:
    """The launchers of shells that have their private directory beside a workspace."""
    place = str(work.parent / "home" / "fence").encode()
    processes = []
    for process in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if process.name.isdigit() and place in (process / "cmdline").read_bytes():
                processes.append(process)
    return processes


def fenced_directories(tmp_path: Path) -> list[Path]:
    place = tmp_path / "home" / "fence"
    return list(place.iterdir()) if place.exists() else []


@pytest.mark.sample(1, "a tier each; a shell ends with its jobs in both")
@pytest.mark.parametrize("fence", TIERS)
def test_a_shell_keeps_its_directory_variables_and_exit_codes(work: Path, fence: str) -> None:
    first, *others = said(work, "mkdir in; cd in; tea=green", "pwd; echo $tea; false", "exit 3", "pwd", fence=fence)
    assert first == f"[new shell in {work}]"
    assert others == [
        f"{work}/in\ngreen\n[exit code 1]",
        "[the shell ended with exit code 3; the next call gets a new shell]",
        f"[new shell in {work}; the one before had ended]\n{work}",
    ]
    assert fenced_directories(work.parent) == []


def test_a_person_hears_once_of_a_protected_name_that_an_agent_has_made(work: Path) -> None:
    needs("required")
    (work / ".vscode").mkdir()
    commands = ("mkdir .claude; echo 'touch x' > .envrc", "echo more >> .envrc; touch .vscode/tasks.json")
    script = ScriptedProvider([*(calling(("bash", {"command": command})) for command in commands), "done"])
    heard: list[Event] = []
    options = {"tools": [Workspace(work, fence="required")], "approvals": "allow"}
    with ActorSystem.open(work.parent / "d.db", script, **options) as system:  # type: ignore[arg-type]
        system.subscribe(heard.append, only=(ToolTrouble,))
        system.root.prompt("go").get(timeout=DEADLINE)
        first, second = [message.content for message in system.root.history() if message.kind == "tool_result"]
        eventually(lambda: heard, "the news")
    notice = f"An agent has made {work}/.envrc and {work}/.claude. Programs that you start there may run that unasked"
    assert f"[{notice}: look at it first.]" in first
    assert "An agent has made" not in second
    assert [notice in str(event) for event in heard] == [True]


@pytest.mark.thorough("a second shell that ends")
@pytest.mark.sample(1, "a tier each; a shell ends with its jobs in both")
@pytest.mark.parametrize("fence", TIERS)
def test_a_command_that_takes_too_long_is_ended_with_its_daemons(work: Path, fence: str) -> None:
    marker = f"MARK={work}"
    command = f"export {marker}; (trap '' TERM; setsid sleep 300 &) ; sleep 299"
    [_, result] = said(work, ":", command, fence=fence, timeout=1)
    assert "not finished after 1 s, so it was ended, and the shell with it" in result
    assert alive(marker) == []


@pytest.mark.thorough("a second shell that ends")
@pytest.mark.parametrize("fence", TIERS)
def test_a_shell_that_ends_gives_its_jobs_time_to_end(work: Path, fence: str) -> None:
    job = "(trap 'echo tidied > tidied; exit' TERM; touch ready; while :; do sleep 0.01; done) &"
    said(work, f"{job} until [ -e ready ]; do :; done; exit", fence=fence)
    assert (work / "tidied").read_text() == "tidied\n"


HOST = """
import sys
from ikigai_actors import ActorSystem, ScriptedProvider, Workspace
from tests.kit.tool_scripts import calling
database, work, fence, marker = sys.argv[1:]
command = f"export {marker}; setsid sleep 300 & (trap '' TERM; sleep 299) & touch ready; sleep 298"
script = ScriptedProvider([calling(("bash", {"command": command}))])
with ActorSystem.open(database, script, tools=[Workspace(work, fence=fence)], approvals="allow") as system:
    system.root.prompt("go").get()
"""


@pytest.mark.sample(1, "a tier each; a shell ends with its jobs in both")
@pytest.mark.parametrize("fence", TIERS)
def test_a_host_that_is_killed_leaves_no_process_and_the_next_one_removes_its_files(work: Path, fence: str) -> None:
    needs(fence)
    marker = f"MARK={work}"
    host = popen([*PYTHON, "-c", HOST, str(work.parent / "d.db"), str(work), fence, marker])
    eventually((work / "ready").exists, "the command")
    assert alive(marker)
    host.send_signal(signal.SIGKILL)
    host.wait()
    eventually(lambda: not alive(marker), "the end of its processes")
    assert str(work) not in Path("/proc/self/mountinfo").read_text()
    assert fenced_directories(work.parent)
    with ActorSystem.open(":memory:", "offline", tools=[Workspace(work)]):
        assert len(fenced_directories(work.parent)) == 1
    assert fenced_directories(work.parent) == []


def test_a_workspace_that_holds_the_database_is_refused(work: Path) -> None:
    with pytest.raises(BadInput, match=r"The workspace .* holds .*d\.db, which .* Move one of them"):
        ActorSystem.open(work / "d.db", "offline", tools=[Workspace(work)])


def test_a_workspace_that_holds_the_configuration_is_refused(work: Path) -> None:
    (work / "ikigai.toml").write_text("")
    with pytest.raises(BadInput, match=r"holds .*ikigai\.toml"):
        ActorSystem.open(":memory:", "offline", tools=[Workspace(work)], config=work / "ikigai.toml")


def test_where_no_fence_is_required_ends_in_an_error_and_auto_tells_a_person(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(TIER_VARIABLE, "none")
    for fence, network in (("required", "all"), ("landlock", "all"), ("auto", "none")):
        refused = Workspace(work, fence=fence, network=network)
        with pytest.raises(BadInput, match="cannot be had"):
            ActorSystem.open(":memory:", "offline", tools=[refused])
    heard: list[Event] = []
    with ActorSystem.open(":memory:", "offline", tools=[Workspace(work)]) as system:
        system.subscribe(heard.append)
        eventually(lambda: any(isinstance(event, ToolTrouble) for event in heard), "the news")
    [notice] = [event.text for event in heard if isinstance(event, ToolTrouble)]
    assert notice.startswith("No fence holds here, so programs of agents do what you may do")


def test_the_model_hears_what_its_commands_may_write(work: Path) -> None:
    needs("required")
    script = ScriptedProvider(["hello"])
    with ActorSystem.open(":memory:", script, tools=[Workspace(work, fence="required", network="none")]) as system:
        system.root.prompt("go").get(timeout=DEADLINE)
    [description] = [tool["description"] for tool in requests_of(script, None)[0].tools if tool["name"] == "bash"]
    assert f"Fenced (namespaces). Commands may write {work}, $HOME, $TMPDIR. Network: none." in description


CROWD = """
import sys
from ikigai_actors import ActorSystem, ScriptedProvider, Workspace
from tests.kit.tool_scripts import calling, scripted
database, work, fence, marker = sys.argv[1:]
names = [f"agent{number}" for number in range(8)]
def command(name):
    return f"export {marker}; setsid sleep 300 & (trap '' TERM; sleep 299) & touch {name}; sleep 298"
script = scripted(**{name: [calling(("bash", {"command": command(name)}))] for name in names})
with ActorSystem.open(database, script, tools=[Workspace(work, fence=fence)], approvals="allow") as system:
    for child in [system.root.fork("go", name=name) for name in names]:
        child.reply()
"""


def progress(work: Path) -> int:
    """How far eight shells have come: their directories, the processes of their fences, and the commands that run."""
    private = sum(len([*place.glob("of-*")]) for place in fenced_directories(work.parent))
    return private + len(launched(work)) + len([*work.iterdir()])


MOMENTS = 25
WHOLE = 32
"""The progress when all have come far: each has a directory, two processes of its fence, and its command."""


@pytest.mark.thorough("a second host that is killed")
@pytest.mark.sample(1, "eight shells for each of fifty moments of a kill")
@pytest.mark.parametrize("fence", TIERS)
@pytest.mark.parametrize("moment", range(MOMENTS))
def test_a_host_that_is_killed_while_shells_start_leaves_no_process_and_no_mount(
    work: Path, fence: str, moment: int
) -> None:
    needs(fence)
    marker = f"MARK={work}"
    host = popen([*PYTHON, "-c", CROWD, str(work.parent / "d.db"), str(work), fence, marker])
    so_far = round(moment * WHOLE / (MOMENTS - 1))
    eventually(lambda: progress(work) >= so_far and bool(fenced_directories(work.parent)), "the shells")
    host.send_signal(signal.SIGKILL)
    host.wait()
    eventually(lambda: not alive(marker) and not launched(work), "the end of its processes")
    assert str(work) not in Path("/proc/self/mountinfo").read_text()
    with ActorSystem.open(":memory:", "offline", tools=[Workspace(work)]):
        assert len(fenced_directories(work.parent)) == 1
