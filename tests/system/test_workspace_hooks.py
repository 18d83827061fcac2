"""The commands of a workspace as hooks: foreign until a person has said so, pinned by digest, run in the fence."""

import json
from pathlib import Path
from typing import Any

import pytest

from ikigai_actors import ActorSystem, BadInput, Request, ScriptedProvider, tool
from ikigai_actors.records.fsck.check import check
from ikigai_actors.records.messages.hook_commands import are_pinned_commands, pinned_command
from ikigai_actors.records.transfer.rights import lifting, restricted
from ikigai_actors.shell.cli.notices import skill_notices
from ikigai_actors.tools import Workspace
from ikigai_actors.verbs.opening import Options
from tests.kit.blocking_provider import DEADLINE
from tests.kit.fences import needs
from tests.kit.sessions import Session
from tests.kit.tool_scripts import calling, results


@tool
def pay(amount: int) -> str:
    return f"paid {amount}"


def paying(request: Request) -> Any:
    return results(request)[0].content if results(request) else calling(("pay", {"amount": 8}))


def write_hook(workspace: Path, command: str, event: str = "PreToolUse") -> None:
    place = workspace / ".claude"
    place.mkdir(exist_ok=True)
    entry = {"matcher": "pay", "hooks": [{"type": "command", "command": command}]}
    (place / "settings.json").write_text(json.dumps({"hooks": {event: [entry]}}), encoding="utf-8")


def opened(database: str, *tools: Any) -> ActorSystem:
    return ActorSystem.open(database, ScriptedProvider(paying), tools=[pay, *tools])


def say(system: ActorSystem) -> str:
    return system.root.prompt("pay").get(timeout=DEADLINE).text


@pytest.mark.slow("takes a tenth of a second")
def test_a_command_of_a_workspace_runs_once_somebody_has_said_so_and_not_before(durable: str, tmp_path: Path) -> None:
    workspace = tmp_path / "src"
    workspace.mkdir()
    write_hook(workspace, "echo asked >> asked.txt; echo 'not today' >&2; exit 2")
    with opened(durable, Workspace(workspace)) as system:
        assert say(system) == "paid 8"
        assert not (workspace / "asked.txt").exists()
        [notice] = [line for line in skill_notices(system) if "Hooks" in line]
        name = notice.split(": ")[1].split(".")[0]
        system.root.use_hooks(only=[name])
        assert not any("Hooks" in line for line in skill_notices(system))
        assert say(system) == f"Hook {name} denies this call: not today"
        assert (workspace / "asked.txt").read_text(encoding="utf-8") == "asked\n"
        child = system.root.fork("pay")
        assert "not today" in child.reply(timeout=DEADLINE).text
        assert check(system._store) == []
    write_hook(workspace, "exit 0")
    with opened(durable, Workspace(workspace)) as system:  # a changed file changes no agent, and asks again
        [notice] = [line for line in skill_notices(system) if "Hooks" in line]
        assert name not in notice
        assert "not today" in say(system)
    with opened(durable) as system:
        assert "There is no workspace here" in say(system)


@pytest.mark.slow("takes a tenth of a second")
def test_a_command_of_a_workspace_runs_in_its_fence(tmp_path: Path) -> None:
    needs("required")
    workspace, outside = tmp_path / "src", tmp_path / "outside.txt"
    workspace.mkdir()
    write_hook(workspace, f"echo in > inside.txt; echo out > {outside}; echo $HOME > home.txt; exit 0")
    with opened(":memory:", Workspace(workspace, fence="required")) as system:
        system.root.use_hooks()
        assert say(system) == "paid 8"
    assert (workspace / "inside.txt").read_text(encoding="utf-8") == "in\n"
    assert not outside.exists()
    assert (workspace / "home.txt").read_text(encoding="utf-8") != f"{Path.home()}\n"


def test_a_person_lists_uses_and_refuses_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_hook(tmp_path, "./check.sh --all")
    with opened(":memory:", Workspace(tmp_path, fence="none")) as system:
        session = Session(system, capsys)
        listed = session("/hooks")
        name = listed[0].split()[0]
        assert listed == [f"{name}   new   {tmp_path}/.claude/settings.json", "    PreToolUse pay: ./check.sh --all"]
        assert session(f"/hooks off {name}") == [f"{name}: refused"]
        assert " refused " in session("/hooks")[0]
        assert say(system) == "paid 8"
        with pytest.raises(BadInput, match="There is no hook Stop-1 in"):
            system.root.use_hooks(only=["Stop-1"])
        session(f"/hooks use {name}")
        assert "exit code 127" in say(system)


def test_commands_that_come_with_a_file_do_not_count_and_those_above_hold() -> None:
    manifest = {"event": "Stop", "matcher": "", "command": "./check.sh", "timeout": 60.0}
    entry = pinned_command(manifest, "/src/.claude/settings.json")
    assert are_pinned_commands([entry])
    assert not are_pinned_commands([{**entry, "command": "./other.sh"}])
    assert "hook_commands" in lifting({"hook_commands": [entry]})
    assert restricted({}, {"hook_commands": [entry]}) == {"hook_commands": [entry]}
    assert restricted({"hook_commands": [entry]}, {"hook_commands": [entry]}) == {}
    assert restricted({"hook_commands": [{**entry, "off": True}]}, {"hook_commands": [entry]}) == {
        "hook_commands": [entry]
    }


def test_a_command_line_asks_the_hooks_of_the_user_s_own_file_and_opens_nothing_while_that_is_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("IKIGAI_HOME", str(tmp_path))
    monkeypatch.syspath_prepend(tmp_path)
    app = f"hooked_{tmp_path.name}"
    audit = 'hook("before_call", tools="pay", name="audit")(lambda call: HookVerdict.ask("is it right?"))'
    source = f"from ikigai_actors.hooks import HookVerdict, hook\n\ndef app():\n    return {{'hooks': [{audit}]}}\n"
    (tmp_path / f"{app}.py").write_text(source, encoding="utf-8")
    options = Options(":memory:", None, None, workspace=str(tmp_path), fence="none")
    assert "hooks" not in options.arguments(False)
    file = tmp_path / "hooks.json"
    entry = {"matcher": "pay", "hooks": [{"type": "command", "command": "pwd >&2; exit 2"}]}
    file.write_text(json.dumps({"hooks": {"PreToolUse": [entry]}}), encoding="utf-8")
    with ActorSystem.open(":memory:", ScriptedProvider(paying), tools=[pay], **hooks_in(options)) as system:
        assert say(system) == f"Hook user-PreToolUse-1.1 denies this call: {tmp_path}"
        assert "user-PreToolUse-1.1   before_call   pay" in Session(system, capsys)("/hooks")[0]
    named = [each.name for each in Options(":memory:", None, None, app=f"{app}:app").arguments(False)["hooks"]]
    assert named == ["audit", "user-PreToolUse-1.1"]
    file.write_text("{not JSON", encoding="utf-8")
    with pytest.raises(BadInput, match=r"The hooks in .*hooks\.json cannot be read: .* line 1"):
        options.arguments(False)


def hooks_in(options: Options) -> dict[str, Any]:
    return {"hooks": options.arguments(False)["hooks"]}
