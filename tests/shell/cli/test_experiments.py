"""``ikigai search``, ``replay`` and ``regress``, in this process, with the offline provider."""

import json
import re
from pathlib import Path

import pytest

from ikigai_actors import ActorSystem, ScriptedProvider
from ikigai_actors.behaviour import MCTS, Beam, BestOf
from ikigai_actors.shell.cli import main
from ikigai_actors.shell.cli.trials import parse_plan
from tests.kit.blocking_provider import DEADLINE


@pytest.fixture
def shop(tmp_path: Path) -> str:
    """A database with an agent that has answered twice; beside it a file of that agent."""
    database = str(tmp_path / "shop.db")
    with ActorSystem.open(database, "offline") as system:
        clerk = system.root.fork(name="clerk")
        for tea in ("Assam?", "Ceylon?"):
            clerk.prompt(tea).get(timeout=DEADLINE)
        system.export(clerk, tmp_path / "shop.jsonl")
    return database


def ikigai(database: str, *arguments: str) -> int:
    return main.run(["--database", database, "--provider", "offline", *arguments])


WORDS = [
    (
        ["search", "clerk", "--plan", "beam:2x3", "--option", "one", "--option", "two", "--score", "wc -c"],
        "At most 10 trials, 10 requests to offline, about 330 tokens in and 110 out by the record",
        "$0.55",
    ),
    (
        ["bisect", "clerk", "--ask", "And now?", "--judge", "true", "--most", "7"],
        "At most 7 trials, 7 requests to offline, about 231 tokens in and 77 out by the record",
        "$0.385000",
    ),
    (
        ["replay", "clerk"],
        "At most 2 trials, 2 requests to offline, about 23 tokens in and 31 out by the record",
        "$0.085000",
    ),
    (
        ["regress", "clerk", "--samples", "3"],
        "At most 12 trials, 12 requests to offline, about 138 tokens in and 186 out by the record",
        "$0.51",
    ),
    (
        ["evaluate", "clerk", "--case", "Oolong?", "--case", "Keemun?", "--judge", "true"],
        "At most 2 trials, 2 requests to offline, about 66 tokens in and 22 out by the record",
        "$0.11",
    ),
]
"""Commands, what they ask, and the dollars for that."""


@pytest.mark.thorough("a second verb; every run has a regression")
def test_turns_of_an_agent_and_of_a_file_are_replayed(
    shop: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "diff.html"
    for source in ("clerk", str(tmp_path / "shop.jsonl")):
        assert ikigai(shop, "replay", source, "--html", str(page)) == 0
        captured = capsys.readouterr()
        assert captured.out == "2 replayed, none differs.\n"
        assert "At most 2 trials, 2 requests to offline, about 23 tokens in and 31 out by the record" in captured.err
        assert re.findall(r"turn (\d+) of clerk: same\n", captured.err) == ["2", "4"]
        assert "<h1>Replay</h1>" in page.read_text("utf-8")
    with ActorSystem.open(shop, "offline") as system:
        first = next(message.id for message in system.agent("clerk").history() if message.kind == "user")
    assert ikigai(shop, "replay", "clerk", "--edit", f"{first}=Oolong?", "--json") == 0
    captured = capsys.readouterr()
    assert re.search(rf"turn {first} of clerk: {first + 1} text: .* → .*\n", captured.err)
    shown = json.loads(captured.out)
    assert shown["differences"] == {"text": 1}
    assert "Oolong?" in shown["turns"][0]["replayed"]["text"]
    assert ikigai(shop, "replay", "clerk", "--from", str(first + 1), "--dry-run") == 0
    assert capsys.readouterr().out.startswith("At most 1 trial, 1 request to offline")


@pytest.mark.thorough("a second replay")
def test_a_replay_of_a_file_does_not_go_on_with_one_that_is_in_it(
    shop: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ikigai(shop, "replay", "clerk") == 0
    with ActorSystem.open(shop, "offline") as system:
        system.export(system.root, tmp_path / "all.jsonl")
    capsys.readouterr()
    assert ikigai(shop, "replay", str(tmp_path / "all.jsonl")) == 0
    assert len(re.findall(r"turn \d+ of clerk: same", capsys.readouterr().err)) == 2


def test_the_process_that_runs_the_agents_is_asked_when_there_is_one(
    shop: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with ActorSystem.open(shop, "offline"):
        assert main.run(["--database", shop, "replay", "clerk"]) == 0
        assert capsys.readouterr().out == "2 replayed, none differs.\n"


def test_a_regression_ends_with_the_status_of_its_verdict(
    shop: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = str(tmp_path / "shop.jsonl")
    assert ikigai(shop, "regress", file, "--check", "text", "--samples", "2", "--margin", "0.7") == 0
    captured = capsys.readouterr()
    assert captured.out.startswith("pass: right 100.0 %")
    lines = re.findall(r"ikigai: turn (\d+) of clerk( \(baseline\))?: 1\n", captured.err)
    samples = [("2", ""), ("2", " (baseline)"), ("4", ""), ("4", " (baseline)")]
    assert lines == samples * 2
    assert ikigai(shop, "regress", file, "--check", "grep -q euros", "--no-baseline") == 1
    assert ikigai(shop, "regress", file, "--check", "sh -c 'exit 125'") == 3
    assert ikigai(shop, "regress", file, "--check", "text", "--at-least", "0.3") == 0
    assert ikigai(shop, "regress", file, "--check", "text", "--at-least", "2") == 2
    capsys.readouterr()
    assert ikigai(shop, "regress", file, "--check", "false") == 3
    captured = capsys.readouterr()
    assert "Nothing was right without the change either" in captured.out
    assert "a verdict takes about 189 cases like these; these would pass at 65.8 %." in captured.out
    for check in ("schema:nowhere:Path", "schema:builtins:nothing", "", "nowhere"):
        assert ikigai(shop, "regress", file, "--check", check) == 2
        assert "trials" not in capsys.readouterr().err  # it is said before anything is asked
    assert ikigai(shop, "regress", file, "--check", "schema:builtins:int", "--no-baseline", "--json") == 1
    capsys.readouterr()
    assert ikigai(shop, "regress", file, "--with", "model=nowhere:big", "--yes") == 2
    assert "not registered" in capsys.readouterr().err


@pytest.mark.thorough("a program for each verb; one is in every run")
def test_an_evaluation_ends_with_the_status_of_its_verdict(
    shop: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "cases.txt").write_text("Oolong?\n\nKeemun?\n", "utf-8")
    arguments = ["evaluate", "clerk", "--case", "Assam?", "--cases", str(tmp_path / "cases.txt")]
    assert ikigai(shop, *arguments, "--judge", "grep -q said", "--at-least", "0.4") == 0
    captured = capsys.readouterr()
    assert captured.out.startswith("pass: right 100.0 % (43.9 to 100.0), to be at least 40.0 %\n3 cases, 3 samples")
    assert re.findall(r"trial (\d): 1\n", captured.err) == ["1", "2", "3"]
    named = ["--name", "other"]
    assert ikigai(shop, *arguments, *named, "--judge", "grep -q euros", "--at-least", "0.8", "--samples", "2") == 1
    assert "Keemun?" in capsys.readouterr().out
    assert ikigai(shop, *arguments, "--judge", "true", "--name", "third") == 3
    assert "A verdict needs at_least" in capsys.readouterr().out
    for wrong in (["--at-least", "0.8", "--baseline"], ["--with", "model=nowhere:m", "--yes"], ["--run", "fly"]):
        assert ikigai(shop, *arguments, *wrong, "--judge", "true", "--name", "fourth") == 2
    assert ikigai(shop, "evaluate", "clerk", "--judge", "true") == 2
    assert "--case PROMPT" in capsys.readouterr().err


@pytest.mark.thorough("a second verb; every run has a regression")
def test_a_search_prints_the_best_continuation_and_keeps_it(shop: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["search", "clerk", "--plan", "best:2", "--option", "one", "--option", "seven", "--score", "wc -c"]
    assert ikigai(shop, *arguments, "--keep", "winner") == 0
    captured = capsys.readouterr()
    assert "by trials 2\n" in captured.out
    assert "seven" in captured.out
    assert re.fullmatch(r"ikigai: At most 2 .*\nikigai: trial 1: \d+\nikigai: trial 2: \d+\n", captured.err)
    with ActorSystem.open(shop, "offline") as system:
        assert any("seven" in message.content for message in system.agent("winner").history())
    assert ikigai(shop, *arguments, "--keep", "winner") == 0  # as where it was killed behind that
    again = capsys.readouterr()
    assert again.out == captured.out
    assert re.match(r"ikigai: Goes on with search-\w+: .*whatever judges now", again.err)
    assert ikigai(shop, *arguments[:-1], "echo no", "--name", "other") == 1
    assert "to print a number" in capsys.readouterr().err


@pytest.mark.thorough("a second end of an experiment; test_bisections.py shows it")
def test_a_judge_that_breaks_ends_a_bisection_and_calls_nothing_bad(
    shop: str, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["bisect", "clerk", "--ask", "?", "--name", "mine"]
    for how in ("kill -9 $$", "exit 128"):
        assert ikigai(shop, *arguments, "--judge", f"sh -c '{how}'") == 1
        captured = capsys.readouterr()
        assert "Fix it and run" in captured.err
        assert "bad" not in captured.err
    hangs = [*arguments[:-1], "other", "--judge", "sleep 9", "--timeout", "0.001", "--most", "1"]
    assert ikigai(shop, *hangs) == 0
    assert "trial 1: not judged: sleep took longer than 0.001 seconds" in capsys.readouterr().err
    assert ikigai(shop, *arguments, "--judge", "true") == 0
    assert "Nothing is wrong" in capsys.readouterr().out


@pytest.mark.thorough("a second way to a status; every run has that of a verdict")
@pytest.mark.sample(2, "a command each")
@pytest.mark.parametrize("arguments", [arguments for arguments, *_ in WORDS], ids=[words[0] for words, *_ in WORDS])
def test_without_a_key_nothing_is_asked_of_the_stand_in_and_the_status_says_so(
    tmp_path: Path, arguments: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    database = str(tmp_path / "shop.db")
    with ActorSystem.open(database, ScriptedProvider(["Tea."])) as system:
        system.root.fork("Assam?", name="clerk").reply(timeout=DEADLINE)
        system.export(system.agent("clerk"), tmp_path / "shop.jsonl")
    sources = ["clerk", str(tmp_path / "shop.jsonl")] if arguments[0] in ("replay", "regress") else ["clerk"]
    for source in sources:
        words = [source if argument == "clerk" else argument for argument in arguments]
        assert main.run(["--database", database, *words]) == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        assert re.search("scripted wrote this history.* --model offline", captured.err)
        assert main.run(["--database", database, *words, "--dry-run"]) == 2
        assert main.run(["--database", database, "--model", "offline", *words, "--dry-run"]) == 0
        capsys.readouterr()


@pytest.mark.sample(1, "a command each")
@pytest.mark.parametrize("arguments", [arguments for arguments, *_ in WORDS], ids=[words[0] for words, *_ in WORDS])
def test_without_the_key_of_the_model_that_an_agent_names_the_status_says_so(
    tmp_path: Path, arguments: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    database = str(tmp_path / "shop.db")
    with ActorSystem.open(database, providers={"openai": ScriptedProvider(["Tea."])}) as system:
        system.root.fork("Assam?", name="clerk", model="openai:gpt").reply(timeout=DEADLINE)
    for how in ([], ["--dry-run"]):
        assert main.run(["--database", database, *arguments, *how]) == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        assert "There is no key for OpenAI" in captured.err
    with ActorSystem.open(database, "offline") as system:
        assert len(system.agents()) == 2


def test_a_database_that_is_not_there_is_not_begun(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    database = tmp_path / "typo.db"
    assert ikigai(str(database), "bisect", "clerk", "--judge", "true") == 1
    assert "There is no database" in capsys.readouterr().err
    assert not database.exists()


@pytest.mark.thorough("a program for each verb; one is in every run")
def test_the_first_bad_turn_is_found_by_a_program(shop: str, capsys: pytest.CaptureFixture[str]) -> None:
    with ActorSystem.open(shop, "offline") as system:
        first = system.agent("clerk").history()[-1].id
        for tea in ("Darjeeling?", "Keemun?"):
            system.agent("clerk").prompt(tea).get(timeout=DEADLINE)
        bad = system.agent("clerk").history()[-3].id
    program = """sh -c '! grep -qE "remember [45] prompts"'"""  # the offline provider says how many prompts there were
    assert ikigai(shop, "bisect", "clerk", "--ask", "And now?", "--judge", program) == 0
    captured = capsys.readouterr()
    assert captured.out.startswith(f"Message {bad} ends the first bad turn (99.")
    asked, *lines = captured.err.splitlines()
    assert asked.startswith("ikigai: At most 60 trials, 60 requests to offline")
    assert len(lines) > 5
    assert all(re.fullmatch(r"ikigai: trial \d+: (good|bad)", line) for line in lines)
    arguments = ["bisect", "clerk", "--ask", "And now?", "--judge", "true", "--json", "--at", str(first)]
    assert ikigai(shop, *arguments) == 0
    assert json.loads(capsys.readouterr().out)["answer"] == "nothing"
    assert ikigai(shop, "bisect", "clerk", "--ask", "Well?", "--judge", "sh -c 'exit 125'") == 0
    captured = capsys.readouterr()
    assert re.fullmatch(r"Unsure: no answer has more than \d+\.\d % after \d+ probes\.\n", captured.out)


@pytest.mark.sample(1, "a command each")
@pytest.mark.parametrize(("arguments", "asked", "usd"), WORDS, ids=[arguments[0] for arguments, *_ in WORDS])
def test_each_command_says_what_it_asks_and_a_dry_run_only_says_it(
    shop: str, tmp_path: Path, arguments: list[str], asked: str, usd: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "ikigai.toml").write_text("[prices.offline]\ninput = 1000\noutput = 2000", "utf-8")
    priced = ["--config", str(tmp_path / "ikigai.toml"), *arguments, "--dry-run"]
    assert ikigai(shop, *priced) == 0
    assert capsys.readouterr().out == f"{asked}: {usd}.\n"
    assert ikigai(shop, *priced, "--json") == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["models"], shown["usd"], shown["new_readers"]) == (["offline:"], float(usd[1:]), [])
    with ActorSystem.open(shop, "offline") as system:
        assert len(system.agents()) == 2
    assert ikigai(shop, *arguments) == (3 if arguments[0] in ("regress", "evaluate") else 0)
    assert capsys.readouterr().err.startswith(f"ikigai: {asked}; no price is known here for offline.\n")


def test_into_a_pipe_no_new_model_and_no_new_service_reads_a_history_without_a_yes(
    shop: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "unused")  # without one nothing would be read anyway
    search = ["search", "clerk", "--plan", "best:1", "--option", "one", "--score", "wc -c"]
    refused = {"offline:large": ["replay", "clerk", "--with", "model=offline:large"], "openai": search}
    for new, arguments in refused.items():
        assert ikigai(shop, "--provider", new.partition(":")[0], *arguments) == 1
        errors = capsys.readouterr().err
        assert f"Recorded histories are read by {new}" in errors
        assert "say --yes" in errors
    with ActorSystem.open(shop, "offline") as system:
        assert len(system.agents()) == 2
    assert ikigai(shop, *refused["offline:large"], "--yes") == 0
    capsys.readouterr()
    assert ikigai(shop, "--provider", "offline:large", *search) == 0  # the same service, and nobody has named it
    assert "Recorded histories are read by offline:large, which has written none of them." in capsys.readouterr().err


@pytest.mark.sample(2, "a mistake each")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["replay", "nobody"], "nobody"),
        (["replay", "clerk", "--with", "colour=red"], "no setting 'colour'"),
        (["replay", "clerk", "--with", "system"], "SETTING=VALUE"),
        (["replay", "clerk", "--with", "system=@nowhere.txt"], "cannot be read"),
        (["replay", "clerk", "--edit", "x=y"], "--edit N=TEXT"),
        (["replay", "clerk", "--run", "fly"], "no tool 'fly'"),
        (["replay", "clerk", "--edit", "²=y"], "--edit N=TEXT"),
        (["replay", "clerk", "--from", "999"], "from message 999 on, so there is nothing to replay"),
        (["replay", "clerk", "--html", "nowhere/diff.html"], "'nowhere' is no directory that you may write to"),
        (["replay", "clerk", "--html", "."], "it is a directory"),
        (["bisect", "clerk", "--ask", "x", "--judge", "grep 'x"], "No closing quotation"),
        (["bisect", "clerk", "--ask", "x", "--judge", "wc", "--files", "overlay"], "on_fork='overlay'"),
        (["search", "clerk", "--plan", "dfs:3", "--option", "x", "--score", "wc"], "--plan best:N"),
        (
            ["search", "clerk", "--plan", "best:1", "--option", "x", "--score", "/nowhere/x"],
            "no program '/nowhere/x' for --score",
        ),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(
    shop: str, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ikigai(shop, *arguments) == 1
    assert message in capsys.readouterr().err


def test_plans_are_written_as_words() -> None:
    assert [parse_plan(text, None) for text in ("best:8", "beam:3x4", "mcts:200")] == [BestOf(8), Beam(3, 4), MCTS(200)]
    assert parse_plan("mcts:5", 0.5) == MCTS(5, enough=0.5)
