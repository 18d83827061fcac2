"""Commands as hooks: a settings file of Claude Code works as it is, and what is unclear denies."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from ikigai_actors import ActorSystem, BadInput, ProviderError, Request, ScriptedProvider
from ikigai_actors.hooks import command_hooks
from tests.agent.test_hooks import Model, Till, say
from tests.kit.tool_scripts import calling, prompts, results

DENY = "echo 'not today' >&2; exit 2"
FOR_EVER = "tail -f /dev/null"


def settings(place: Path, *commands: str, event: str = "PreToolUse", matcher: str = "pay", **further: Any) -> Path:
    hooks = [{"type": "command", "command": command, **further} for command in commands]
    file = place / "settings.json"
    file.write_text(json.dumps({"hooks": {event: [{"matcher": matcher, "hooks": hooks}]}}), encoding="utf-8")
    return file


def says(**output: Any) -> str:
    return f"cat > /dev/null; echo '{json.dumps({'hookSpecificOutput': output})}'"


def outcome(file: Path, directory: Path, text: str = "pay 8") -> tuple[str, list[int], Model]:
    till, model = Till(), Model()
    hooks = command_hooks(file, directory=directory)
    with ActorSystem.open(":memory:", model.provider, tools=[till.tool()], hooks=hooks) as system:
        return say(system, text), till.paid, model


@pytest.mark.sample(6, "commands")
@pytest.mark.parametrize(
    ("command", "message", "paid"),
    [
        ("true", "paid 8", [8]),
        ("echo fine", "paid 8", [8]),
        (DENY, "Hook PreToolUse-1.1 denies this call: not today", []),
        ("exit 1", "exit code 1: it says nothing", []),
        ("no-such-command-at-all", "exit code 127", []),
        ('echo \'{"hookSpecificOutput": {"permissionDecision": "perhaps"}}\'', "'perhaps' is unknown", []),
        ("echo '{broken'", "the hook failed", []),
        ("head -c 70000 /dev/zero", "more than 65,536 bytes", []),
        (says(permissionDecision="deny", permissionDecisionReason="no money"), "no money", []),
        (says(permissionDecision="ask"), "nobody can be asked here", []),
        (says(updatedInput={"amount": 3}), "[arguments changed by PreToolUse-1.1]\npaid 3", [3]),
        ('echo \'{"decision": "block", "reason": "closed"}\'', "closed", []),
        ('echo \'{"continue": false, "stopReason": "enough"}\'', "enough", []),
    ],
)
def test_a_command_says_by_its_exit_code_and_its_json_what_becomes_of_the_call(
    tmp_path: Path, command: str, message: str, paid: list[int]
) -> None:
    text, ran, _ = outcome(settings(tmp_path, command), tmp_path)
    assert message in text
    assert ran == paid


def test_a_command_gets_the_call_as_json_and_few_variables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_KEY", "hush")
    file = settings(tmp_path, 'cat > "$CLAUDE_PROJECT_DIR/call.json"; env > env.txt', matcher="Bash|p.*")
    assert outcome(file, tmp_path)[1] == [8]
    call = json.loads((tmp_path / "call.json").read_text(encoding="utf-8"))
    assert (call["tool_name"], call["tool_input"], call["hook_event_name"]) == ("pay", {"amount": 8}, "PreToolUse")
    assert (call["cwd"], set(call)) == (
        str(tmp_path), {"session_id", "cwd", "hook_event_name", "tool_name", "tool_input", "tool_use_id"}
    )  # fmt: skip
    assert "hush" not in (tmp_path / "env.txt").read_text(encoding="utf-8")


@pytest.mark.slow("takes a tenth of a second")
def test_a_command_that_does_not_end_denies_and_an_entry_may_let_the_call_pass(tmp_path: Path) -> None:
    text, paid, _ = outcome(settings(tmp_path, FOR_EVER, timeout=0.2), tmp_path)
    assert "did not finish within" in text
    assert paid == []
    assert outcome(settings(tmp_path, "exit 1", onFailure="continue"), tmp_path)[1] == [8]
    assert outcome(settings(tmp_path, DENY, onFailure="continue"), tmp_path)[1] == []


@pytest.mark.parametrize(("stream", "why"), [("1", "it printed more than"), ("2", "it wrote more than 65,536 bytes")])
def test_a_command_that_writes_without_end_denies(tmp_path: Path, stream: str, why: str) -> None:
    text, paid, _ = outcome(settings(tmp_path, f"yes >&{stream}"), tmp_path)
    assert why in text
    assert paid == []


def test_what_a_command_leaves_in_the_background_is_not_waited_for(tmp_path: Path) -> None:
    text, paid, _ = outcome(settings(tmp_path, "sleep 50 > /dev/null & echo no >&2; exit 2"), tmp_path)
    assert (text, paid) == ("Hook PreToolUse-1.1 denies this call: no", [])


def test_a_command_after_a_call_adds_what_it_says(tmp_path: Path) -> None:
    file = settings(tmp_path, "grep -q 'paid 8' && echo 'keep the receipt' >&2; exit 2", event="PostToolUse")
    text, paid, model = outcome(file, tmp_path)
    assert (text, paid) == ("paid 8", [8])
    assert model.told == ['<context from="PostToolUse-1.1">\nkeep the receipt\n</context>']
    file = settings(tmp_path, says(additionalContext="fine"), event="PostToolUse", matcher="")
    assert outcome(file, tmp_path)[2].told == ['<context from="PostToolUse-1.1">\nfine\n</context>']


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "cannot be read"),
        ('{"hooks": []}', "an object of lists"),
        ('{"hooks": {"PreToolUse": ["x"]}}', "to have a list of hooks"),
        ('{"hooks": {"PreToolUse": [{"hooks": [{"type": "prompt", "prompt": "Is it safe?"}]}]}}', "of type command"),
        ('{"hooks": {"PreToolUse": [{"matcher": "^Ba(sh)", "hooks": []}]}}', "names of tools with | between them"),
    ],
)
def test_a_file_of_another_form_is_refused(tmp_path: Path, text: str, says: str) -> None:
    file = tmp_path / "settings.json"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(BadInput, match=says.replace("|", r"\|")):
        command_hooks(file)


def test_events_that_are_not_asked_about_are_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert command_hooks(settings(tmp_path, "true", event="Notification")) == []
    assert "Hooks for Notification" in caplog.text


def opened(file: Path, directory: Path, answer: Any) -> ActorSystem:
    hooks = command_hooks(file, directory=directory)
    return ActorSystem.open(":memory:", ScriptedProvider(answer), hooks=hooks)


@pytest.mark.sample(3, "commands")
@pytest.mark.parametrize(
    ("command", "reads"),
    [
        ("true", "hello"),
        ("echo it is Monday", 'hello|<context from="UserPromptSubmit-1.1">\nit is Monday\n</context>'),
        (says(additionalContext="fine"), 'hello|<context from="UserPromptSubmit-1.1">\nfine\n</context>'),
        (DENY, "Hook UserPromptSubmit-1.1 denies this request: not today"),
        ('echo \'{"decision": "block", "reason": "closed"}\'', "denies this request: closed"),
        ("exit 1", "exit code 1: it says nothing"),
        (says(permissionDecision="ask"), "the hook failed: a hook for before_request cannot ask"),
    ],
)
def test_a_command_at_a_prompt_adds_to_it_or_ends_the_turn(tmp_path: Path, command: str, reads: str) -> None:
    file = settings(tmp_path, f'tee "$CLAUDE_PROJECT_DIR/asked.json" > /dev/null; {command}', event="UserPromptSubmit")
    with opened(file, tmp_path, lambda request: "|".join(prompts(request))) as system:
        try:
            text = say(system, "hello")
        except ProviderError as error:
            text = str(error)
        assert text == reads or (not reads.startswith("hello") and reads in text)
    asked = json.loads((tmp_path / "asked.json").read_text(encoding="utf-8"))
    assert (asked["hook_event_name"], asked["prompt"]) == ("UserPromptSubmit", "hello")


@pytest.mark.parametrize("blocks", [DENY, 'echo \'{"decision": "block", "reason": "not today"}\''])
def test_a_command_at_the_end_of_a_turn_has_it_go_on_and_reads_whether_it_has_before(
    tmp_path: Path, blocks: str
) -> None:
    command = f"grep -q '\"stop_hook_active\": true' && exit 0; {blocks}"
    with opened(
        settings(tmp_path, command, event="Stop"), tmp_path, lambda request: "|".join(prompts(request))
    ) as system:
        assert say(system, "hello") == '<context from="Stop-1.1">\nnot today\n</context>'
        assert [message.kind for message in system.root.history()].count("assistant") == 2


@pytest.mark.parametrize("ends", ["exit 1", "true", 'echo \'{"continue": false, "stopReason": "enough"}\''])
def test_a_command_that_says_nothing_at_the_end_of_a_turn_lets_it_end(tmp_path: Path, ends: str) -> None:
    with opened(settings(tmp_path, ends, event="Stop"), tmp_path, lambda request: "done") as system:
        assert say(system, "hello") == "done"
        assert [message.kind for message in system.root.history()] == ["user", "assistant", "hook", "hook"]


@pytest.mark.slow("takes a tenth of a second")
def test_a_command_stands_before_a_fork_and_hears_of_an_exit(tmp_path: Path) -> None:
    def answer(request: Request) -> Any:
        return results(request)[0].content if results(request) else calling(("fork", {"prompt": "work"}))

    file = settings(tmp_path, DENY, event="SubagentStart", matcher="")
    with opened(file, tmp_path, answer) as system:
        assert say(system, "go") == "Hook SubagentStart-1.1 denies this call: not today"
    with opened(settings(tmp_path, DENY, event="SubagentStart", matcher="reviewer"), tmp_path, answer) as system:
        assert say(system, "go").startswith("Forked: ")
    heard = tmp_path / "heard"
    os.mkfifo(heard)
    file = settings(tmp_path, f"cat > {heard}", event="SubagentStop", matcher="")
    with opened(file, tmp_path, lambda request: calling(("exit", {"result": "4"}))) as system:
        kid = system.root.fork("add")
        text = json.loads(heard.read_text(encoding="utf-8"))
    assert (text["hook_event_name"], text["agent_id"]) == ("SubagentStop", kid.uuid)
    assert text["last_assistant_message"] == "4"
