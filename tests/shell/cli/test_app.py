"""Providers and tools of one's own at the terminal: --provider MODULE:CLASS, --app, and the shell of a program."""

import io
import re
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ikigai_actors import ActorSystem, BadInput, ScriptedProvider
from ikigai_actors.shell import run as run_shell
from ikigai_actors.shell.cli import main
from ikigai_actors.verbs.opening import Options
from tests.kit.blocking_provider import DEADLINE

MODULE = '''
from ikigai_actors import Reply, ToolCall, tool

@tool(read_only=True)
def price(tea: str) -> str:
    """The price of a tea."""
    return "5 euros"

class Clerk:
    name = "clerk"
    model = "small"

    async def respond(self, request, on_delta):
        last = request.messages[-1]["content"][-1]
        if last["type"] == "tool_result":
            return Reply(f"It is {last['content']}.")
        if "price" in last["text"]:
            return Reply("", (ToolCall("price", {"tea": "Assam"}),))
        return Reply(f"{request.model} has heard {last['text']}")

    async def close(self):
        pass

def app():
    return {"provider": Clerk(), "tools": [price]}

def noted():
    return {"provider": Clerk(), "settings": {"max_tokens": 7}, "approvals": "allow"}
'''


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a module of the current directory, whose provider has answered agent ann in team.db."""
    name = f"shop_{tmp_path.name}"
    (tmp_path / f"{name}.py").write_text(MODULE, "utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    monkeypatch.setattr(sys, "path", [*sys.path])
    with ActorSystem.open("team.db", **Options(None, None, None, app=f"{name}:app").arguments(False)) as system:
        ann = system.root.fork(name="ann")
        for prompt in ("We sell tea.", "What is the price of Assam?"):
            ann.prompt(prompt).get(timeout=DEADLINE)
        system.export(ann, "ann.jsonl")
    return name


Say = Callable[..., int]


@pytest.fixture
def say(monkeypatch: pytest.MonkeyPatch) -> Say:
    """Runs the program with lines as its standard input."""

    def run(*arguments: str, lines: str = "") -> int:
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(isatty=lambda: False, buffer=io.BytesIO(lines.encode())))
        return main.run(["--database", "team.db", *arguments])

    return run


def test_the_shell_asks_a_class_or_an_app_by_its_name(shop: str, say: Say, capsys: pytest.CaptureFixture[str]) -> None:
    for options, model in (
        (["--provider", f"{shop}:Clerk"], "small"),
        (["--provider", f"{shop}:Clerk", "--model", "large"], "large"),
        (["--provider", f"{shop}:Clerk", "--model", "clerk:large"], "large"),
        (["--app", f"{shop}:app"], "small"),
    ):
        assert say(*options, lines="/switch ann\nAnd milk.\n") == 0
        assert f"{model} has heard And milk." in capsys.readouterr().out


def test_a_provider_that_the_configuration_names_is_to_be_chosen_by_its_model(
    shop: str, say: Say, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("ikigai.toml").write_text(f'[providers.clerk]\nclass = "{shop}:Clerk"\n')
    assert say(lines="/switch ann\nAnd milk.\n") == 1
    captured = capsys.readouterr()
    for said in (captured.err, captured.out):
        assert "and no model is named here. The offline provider answers only what it wrote alone. Name it" in said
        assert "--model clerk:small" in said
    assert say("regress", "ann", "--with", "system=x") == 2
    assert "Name it (--model clerk:small, or model = 'clerk:small' in ikigai.toml), or" in capsys.readouterr().err
    assert say("--model", "clerk:small", lines="/switch ann\nAnd milk.\n") == 0
    assert "small has heard And milk." in capsys.readouterr().out


def test_a_command_says_which_options_only_the_process_that_runs_the_agents_could_follow(
    shop: str, say: Say, capsys: pytest.CaptureFixture[str]
) -> None:
    with ActorSystem.open("team.db", "offline"):
        for command in (("prompt", "ann", "And milk.", "--wait"), ("regress", "ann", "--with", "system=x")):
            say("--app", f"{shop}:app", *command)
            errors = capsys.readouterr().err
            assert "Without effect here, since the process that runs the agents decides: --app." in errors, errors
        assert say("--app", f"{shop}:app", "agents") == 0
        assert capsys.readouterr().err == ""


def test_without_it_the_shell_says_whose_provider_is_missing(
    shop: str, say: Say, capsys: pytest.CaptureFixture[str]
) -> None:
    assert say(lines="/switch ann\nAnd milk.\n/fork Sugar? --name kid\n") == 1
    captured = capsys.readouterr()
    assert "clerk:small wrote in this database, and its provider 'clerk' is not here." in captured.err
    assert len(re.findall("clerk:small wrote this history.*--provider MODULE:CLASS", captured.out)) == 2
    assert "You said" not in captured.out


SEARCH = ["--plan", "best:1", "--option", "price?", "--score", "wc -w"]


@pytest.mark.thorough("a second verb with the tools of an application")
@pytest.mark.sample(1, "a command each")
@pytest.mark.parametrize("place", ["before", "behind"])
def test_experiments_run_with_the_tools_of_an_app(
    shop: str, say: Say, place: str, capsys: pytest.CaptureFixture[str]
) -> None:
    app = ["--app", f"{shop}:app"]
    for arguments, printed in (
        (["replay", "ann", "--run", "price"], "2 replayed, none differs.\n"),
        (["replay", "ann.jsonl", "--run", "price"], "2 replayed, none differs.\n"),
        (["regress", "ann.jsonl", "--check", "text", "--json", "--dry-run"], '"new_readers": []'),
        (["search", "ann", *SEARCH, "--run", "price"], "It is 5 euros."),
        (["bisect", "ann", "--ask", "And milk?", "--judge", "true"], "Nothing is wrong"),
    ):
        command_line = [*app, *arguments] if place == "before" else [arguments[0], *app, *arguments[1:]]
        assert say(*command_line) == 0
        assert printed in capsys.readouterr().out


@pytest.mark.sample(2, "words")
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--provider", "nowhere:P"], "--provider 'nowhere:P' cannot be imported: ModuleNotFoundError"),
        (
            ["--provider", "opnai:gpt"],
            "No module named 'opnai'. Those that are known by name: anthropic, offline, openai.",
        ),
        (["--provider", "{shop}:Clerk", "--model", "other:large"], "disagree"),
        (["--provider", "nowhere"], "There is no provider 'nowhere'"),
        (["--provider", "{shop}:price"], "--provider {shop}:price"),
        (["--app", "{shop}:Clerk"], "Expected --app {shop}:Clerk to return a dict of arguments"),
        (["--app", "{shop}:app", "--budget", "usd=1"], "Leave out --budget: with --app the app decides."),
    ],
)
def test_what_cannot_be_used_is_one_line(
    shop: str, say: Say, words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert say(*[word.format(shop=shop) for word in words], lines="Hello.\n") == 1
    said = capsys.readouterr()
    assert (said.out, said.err.count("\n")) == ("", 1)
    assert message.format(shop=shop) in said.err


def test_a_known_provider_with_its_model_is_no_module(shop: str, tmp_path: Path) -> None:
    (tmp_path / "ikigai.toml").write_text('[providers.math]\nbase_url = "http://127.0.0.1:1"\n')
    for provider in ("anthropic:claude", "math:pi", "json:tool"):
        options = Options(None, provider, None, provider_url=("json=http://127.0.0.1:1",))
        assert options.chosen()[0] == provider


def test_an_app_may_decide_who_approves(shop: str) -> None:
    assert Options(None, None, None, app=f"{shop}:app").arguments(True)["approvals"] == "ask"
    assert Options(None, None, None, app=f"{shop}:app").arguments(False)["approvals"] == "deny"
    assert Options(None, None, None, app=f"{shop}:noted").arguments(True)["approvals"] == "allow"


def test_a_program_shows_its_own_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = io.BytesIO(b"We sell tea.\n/agents\n")
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(isatty=lambda: False, buffer=lines))
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    with ActorSystem.open(":memory:", ScriptedProvider(["Noted."])) as system:
        assert run_shell(system) == 0
        assert "Noted." in capsys.readouterr().out
        assert len(system.root.history()) == 2  # it is still open
        raised: list[BadInput] = []

        def elsewhere() -> None:
            try:
                run_shell(system)
            except BadInput as error:
                raised.append(error)

        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
        assert "on the main thread" in str(raised[0])
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before
    wrong: Any = "team.db"
    with pytest.raises(BadInput, match="to be an open ActorSystem"):
        run_shell(wrong)
