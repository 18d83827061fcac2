"""``ikigai trace export``: a file of spans, and what it refuses."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from ikigai_actors import ActorSystem, Reply, ScriptedProvider, Usage
from ikigai_actors.shell.cli.main import cli
from tests.kit.collector import collector


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("traced") / "d.db"
    with ActorSystem.open(file, ScriptedProvider([Reply("a secret", usage=Usage(5, 2)), "two", "three"])) as system:
        system.root.prompt("one").get(timeout=30)
        system.root.fork(name="kid").prompt("two").get(timeout=30)
        system.agent("kid").fork(name="below").prompt("three").get(timeout=30)
    return file


def export(place: Path, *words: str, **env: str) -> Result:
    alone = {"OTEL_EXPORTER_OTLP_ENDPOINT": None, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": None, **env}
    return CliRunner().invoke(cli, ["--database", str(place), "trace", "export", *words], env=alone)


def names(file: Path) -> list[str]:
    lines = [json.loads(line)["resourceSpans"][0] for line in file.read_text().splitlines()]
    return [span["name"] for line in lines for span in line["scopeSpans"][0]["spans"]]


def test_turns_become_lines_of_json(place: Path, tmp_path: Path) -> None:
    file = tmp_path / "spans.jsonl"
    done = export(place, "--to", str(file), OTEL_SERVICE_NAME="mine")
    assert done.exit_code == 0, done.output
    assert done.output.startswith(f"Exported 6 spans of 3 turns to {file}. Later ones: --since 20")
    assert [name.split()[0] for name in names(file)] == ["invoke_agent", "chat"] * 3
    assert "mine" in file.read_text()
    assert "secret" not in file.read_text()
    branch = tmp_path / "branch.jsonl"
    assert export(place, "kid", "--content", "--to", str(branch)).exit_code == 0
    assert [name for name in names(branch) if name.startswith("invoke")] == ["invoke_agent kid", "invoke_agent below"]
    assert "three" in branch.read_text()
    assert export(place, "--since", "0m", "--to", str(tmp_path / "none")).output.startswith("Exported 0 spans of 0")


def test_what_cannot_be_done_is_said_and_leaves_nothing(place: Path, tmp_path: Path) -> None:
    file = tmp_path / "spans.jsonl"
    for words, wrong in (
        ((), "Expected --to URL or --to FILE"),
        (("--to", str(place)), "There is something at"),
        (("--to", str(file), "--format", "protobuf"), "A file has lines of JSON"),
        (("nobody", "--to", str(file)), "nobody"),
        (("--to", str(file), "--since", "soon"), "Expected since"),
        (("--to", "grpc://c:4317"), "Expected http"),
    ):
        refused = export(place, *words)
        assert refused.exit_code == 1
        assert wrong in str(refused.exception)
    assert list(tmp_path.iterdir()) == []


def test_spans_that_a_collector_does_not_keep_are_told_and_are_a_failure(place: Path) -> None:
    with collector((200, b"\x0a\x15\x08\x02\x12\x11spans are too old")) as url:
        refused = export(place, "--to", url)
    assert refused.exit_code == 1
    assert str(refused.exception).startswith(
        f"Of 6 spans of 3 turns, {url} has rejected 2 spans. It says: “spans are too old”. "
        "The others are exported. Later ones: --since 20"
    )
    with collector((413, b"")) as url:
        assert "finds these too large, so they are left out: invoke_agent " in str(export(place, "--to", url).exception)
    with collector((200, b"\x0a\x0b\x12\x09slow down")) as url:
        warned = export(place, "--to", url)
    assert (warned.exit_code, warned.output.strip()[-9:]) == (0, "slow down")


def test_tokens_are_those_of_requests_alone_for_tools_that_add_them_up(place: Path, tmp_path: Path) -> None:
    def spans_with_tokens(*words: str) -> list[str]:
        file = tmp_path / f"spans{len(words)}.jsonl"
        assert export(place, "--to", str(file), *words).exit_code == 0
        lines = [json.loads(line)["resourceSpans"][0] for line in file.read_text().splitlines()]
        spans = [span for line in lines for span in line["scopeSpans"][0]["spans"]]
        counted = [
            span["name"] for span in spans if any(a["key"] == "gen_ai.usage.output_tokens" for a in span["attributes"])
        ]
        return sorted({name.split()[0] for name in counted})

    assert spans_with_tokens() == ["chat", "invoke_agent"]
    assert spans_with_tokens("--usage", "chat") == ["chat"]
