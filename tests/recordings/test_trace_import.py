"""Traces as agents: OpenAI's messages, spans of OpenTelemetry, generations of Langfuse."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from ikigai_actors import ActorSystem, AgentRef
from ikigai_actors.errors import ImportRefused
from ikigai_actors.reach.turn_sources import TurnSources
from ikigai_actors.recordings import read_sessions
from ikigai_actors.sight.traces.otlp import spans_as_json
from ikigai_actors.sight.traces.reading import TraceScope, ended_turns
from tests.kit.imported import imported, importing, said
from tests.kit.recordings import BEGUN, SAMPLES, encoded, otlp, otlp_span, part, text

LOOKED = [("user", "Look."), ("assistant", ""), ("tool_result", "mast"), ("assistant", "A mast.")]


@pytest.fixture
def system() -> Iterator[ActorSystem]:
    with importing() as opened:
        yield opened


def replies(agent: AgentRef) -> list[tuple[str, int]]:
    """The models of an agent's replies, and their tokens."""
    every = (message.data for message in agent.history() if message.kind == "assistant")
    return [(data.get("model", ""), sum(data.get("usage", {}).values())) for data in every]


def test_requests_that_begin_alike_are_one_conversation_and_its_forks(system: ActorSystem, tmp_path: Path) -> None:
    top, branch = imported(system, tmp_path, SAMPLES["openai"])
    assert said(top) == [*LOOKED, ("user", "Of wood."), ("assistant", "Oak.")]
    assert said(branch) == [*LOOKED, ("user", "Of steel."), ("assistant", "Riveted.")]
    assert top.context().settings["system"] == "Build."
    assert replies(top) == [("", 0), ("openai:gpt-5", 15), ("openai:gpt-5", 15)]
    assert top.prompt("Well?").get(timeout=30).text == "4 prompts"


def test_a_file_may_be_one_conversation_or_have_many(system: ActorSystem, tmp_path: Path) -> None:
    messages = [{"role": "user", "content": "One."}, {"role": "assistant", "content": "Two."}]
    [top] = imported(system, tmp_path, encoded(messages))
    assert said(top) == [("user", "One."), ("assistant", "Two.")]
    other = [
        {"role": "user", "content": [text("Three.")]},
        {"role": "assistant", "content": "Four."},
    ]
    folder, *both = imported(system, tmp_path, encoded([{"messages": messages}, {"messages": other}]))
    assert [said(agent)[0][1] for agent in both] == ["One.", "Three."]
    assert said(folder) == []


def test_a_message_may_be_in_the_form_of_anthropic(system: ActorSystem, tmp_path: Path) -> None:
    call = {"type": "tool_use", "id": "c1", "name": "bash", "input": {"command": "ls"}}
    result = {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "mast"}]}
    rows = [
        {"role": "user", "content": "Look."},
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [result]},
        {"role": "assistant", "content": [{"type": "text", "text": "A mast."}]},
    ]
    [top] = imported(system, tmp_path, encoded(rows))
    assert said(top) == LOOKED


def test_spans_with_their_input_are_the_requests_of_a_conversation(system: ActorSystem, tmp_path: Path) -> None:
    [top] = imported(system, tmp_path, SAMPLES["otel"])
    assert said(top) == LOOKED
    assert replies(top) == [("anthropic:claude-sonnet-5-5", 115)] * 2
    assert top.context().settings["system"] == "Build."


def test_the_facts_of_a_span_may_be_messages_one_by_one(system: ActorSystem, tmp_path: Path) -> None:
    facts = {"role": "assistant", "tool_calls.0.name": "bash", "tool_calls.0.id": "c1"}
    facts["tool_calls.0.arguments"] = '{"command": "ls"}'
    attributes = {"prompt.0.role": "user", "prompt.0.content": "Look."}
    attributes |= {f"completion.0.{name}": fact for name, fact in facts.items()}
    spans = [otlp_span(1, "chat", attributes)]
    for number, (asked, answer) in enumerate((("Hm?", "Yes."), ("And?", "No.")), 2):
        messages = [{"role": "user", "parts": [part("text", content=asked)]}]
        reply = [{"role": "assistant", "parts": [part("text", content=answer)]}]
        said_in = {"conversation.id": "x", "input.messages": messages, "output.messages": reply}
        spans.append(otlp_span(number, "chat", said_in))
    _, first, second = imported(system, tmp_path, encoded([otlp(*spans)]))
    assert said(first) == [("user", "Look."), ("assistant", ""), ("interrupted", "")]
    assert [text for _, text in said(second)] == ["Hm?", "Yes.", "And?", "No."]


def test_what_this_program_exports_comes_back(system: ActorSystem, tmp_path: Path) -> None:
    agent = system.root.fork(name="builder")
    for prompt in ("We build a ship.", "call", "Well?"):
        agent.prompt(prompt).get(timeout=30)
    turns = ended_turns(TurnSources.of(system), TraceScope((agent.uuid,), content=True))
    spans = [span for turn in turns for span in turn]
    lines = spans_as_json(spans, {}).encode() + b"\n"
    [again] = imported(system, tmp_path, lines)
    assert said(again) == said(agent)
    assert again.record.name == "builder-2"
    request = json.loads(lines)
    for span in request["resourceSpans"][0]["scopeSpans"][0]["spans"]:  # of a model that needs no time
        span["startTimeUnixNano"] = f"{BEGUN}000000"
        span["endTimeUnixNano"] = f"{BEGUN + span['name'].startswith('invoke_agent')}000000"
    [again] = imported(system, tmp_path, encoded([request]))
    assert said(again) == said(agent)


def test_generations_of_langfuse_are_requests_with_their_costs(system: ActorSystem, tmp_path: Path) -> None:
    left_out: list[str] = []
    [top] = imported(system, tmp_path, SAMPLES["langfuse"], notice=left_out.append)
    assert left_out == []
    assert said(top) == LOOKED
    assert (top.record.name, replies(top), top.record.spent_usd) == ("shipyard", [("openai:gpt-5", 15)] * 2, 500_000)


def test_generations_one_a_line_in_the_names_of_the_blob_export(system: ActorSystem, tmp_path: Path) -> None:
    observations = json.loads(SAMPLES["langfuse"])["observations"]
    names = {"traceId": "trace_id", "startTime": "start_time", "endTime": "end_time", "usageDetails": "usage_details"}
    rows = [
        {names.get(key, key): value for key, value in observation.items()} | {"trace_name": "yard"}
        for observation in observations
    ]
    for row in rows:
        row["input"] = json.dumps(row["input"])
    [top] = imported(system, tmp_path, encoded(rows))
    assert (top.record.name, said(top)) == ("yard", LOOKED)


@pytest.mark.sample(2, "contents")
@pytest.mark.parametrize(
    ("content", "text"),
    [(7, "7"), ({"a": 1}, '{"a": 1}'), (["one", {"type": "text", "text": "two"}], "one\ntwo"), (None, "")],
)
def test_no_content_is_left_out_whatever_its_type(
    system: ActorSystem, tmp_path: Path, content: object, text: str
) -> None:
    said_so = [{"role": "user", "content": content}, {"role": "assistant", "content": "Well."}]
    [top] = imported(system, tmp_path, encoded([{"messages": said_so}]))
    assert said(top) == [("user", text), ("assistant", "Well.")]


@pytest.mark.sample(2, "times")
@pytest.mark.parametrize("stamp", ["1e999", "-1e999", "1e99", '"x"', "[]"])
def test_a_time_that_is_none_is_no_time(system: ActorSystem, tmp_path: Path, stamp: str) -> None:
    line = '{"messages": [{"role": "user", "content": "One."}], "created_at": ' + stamp + "}"
    [top] = imported(system, tmp_path, line.encode())
    assert said(top)[0] == ("user", "One.")


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b'{"messages": 7}\n{"messages": []}\n', "line 1: expected messages to be a list"),
        (b'{"messages": []}\n{"a": 1}\n', "line 2: expected messages, or a message"),
        (b'{"role": "oracle", "content": "x"}\n', "line 1: a message of the unknown role 'oracle'"),
        (b'{"resourceSpans": []}\n{"a": 1}\n', "line 2: expected a request of OTLP"),
        (b'[{"type": "GENERATION", "traceId": "t"},\n {"a": 1]', "line 2: expected JSON"),
    ],
)
def test_a_damaged_file_is_refused_with_the_line(tmp_path: Path, data: bytes, problem: str) -> None:
    recorder = "otel" if b"resource" in data else "langfuse" if b"GENERATION" in data else "openai"
    (tmp_path / "ship.jsonl").write_bytes(data)
    with pytest.raises(ImportRefused, match=problem):
        read_sessions(tmp_path / "ship.jsonl", recorder)
