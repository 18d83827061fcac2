"""Hooks at a shell: those of this process, and those that are missing."""

import json
from pathlib import Path

import pytest

from ikigai_actors import ActorSystem, OfflineProvider
from ikigai_actors.hooks import command_hooks, hook
from ikigai_actors.tools.hooks.verdict import HookedCall
from tests.kit.sessions import Session


@hook("before_call", tools="push", timeout=10, on_error="allow")
def no_force(call: HookedCall) -> None:
    """It has no objection."""


def test_a_person_sees_which_hooks_are_asked_and_which_are_missing(
    session: Session, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert session("/hooks") == [
        "There are no hooks. ActorSystem.open(hooks=[...]) has some, .claude/settings.json others."
    ]
    session.system.root.configure(hooks=["audit"])
    assert session("/hooks") == ["audit   missing here: what it decides on is denied"]
    file = tmp_path / "settings.json"
    entry = {"matcher": "Bash", "hooks": [{"type": "command", "command": "./check.sh"}]}
    file.write_text(json.dumps({"hooks": {"PreToolUse": [entry]}}), encoding="utf-8")
    with ActorSystem.open(":memory:", OfflineProvider(), hooks=[no_force, *command_hooks(file)]) as system:
        assert Session(system, capsys)("/hooks") == [
            "no_force   before_call   push   10 s, a failure denies nothing",
            "PreToolUse-1.1   before_call   bash   60 s, a failure denies   runs ./check.sh",
        ]
