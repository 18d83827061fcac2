"""What an imported agent sends to its model is what the program sent that recorded it."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from ikigai_actors import ActorSystem, Request, ScriptedProvider
from ikigai_actors.recordings import read_sessions
from ikigai_actors.records.fsck.check import check
from tests.kit.real_sessions import REAL_SESSIONS, Sent
from tests.kit.recordings import SAMPLES


def asked_by(folder: Path, data: bytes, suffix: str = ".jsonl") -> Request:
    """The request of an imported agent that goes on."""
    file = folder / f"ship{suffix}"
    file.write_bytes(data)
    asked: list[Request] = []

    def answer(request: Request) -> str:
        asked.append(request)
        return "Well."

    with ActorSystem.open(":memory:", ScriptedProvider(answer)) as system:
        system.import_(read_sessions(file)).prompt("And?").get(timeout=30)
        assert check(system._store) == []
    return asked[-1]


def sent_in(messages: Sequence[Mapping[str, Any]]) -> list[Sent]:
    """Messages without the prompt at the end: what one side says in a row is one, and its order does not count."""
    turns: list[tuple[str, list[str]]] = []
    for message in messages:
        if not turns or turns[-1][0] != message["role"]:
            turns.append((message["role"], []))
        turns[-1][1].extend(piece for block in message["content"] for piece in pieces_of(block))
    assert turns.pop() == ("user", ["And?"])
    return [(role, tuple(sorted(pieces))) for role, pieces in turns]


def pieces_of(block: Mapping[str, Any]) -> Iterator[str]:
    """What a block says."""
    if block["type"] == "tool_use":
        yield f"{block['name']} {json.dumps(block['input'])}"
    elif block["type"] == "tool_result":
        yield f"= {block['content']}"
    else:
        said = block["text"].strip("\n")
        inner = said.partition(">\n")[2].removesuffix("\n</summary>") if said.startswith("<summary ") else said
        yield from inner.split("\n\n")


@pytest.mark.parametrize("name", REAL_SESSIONS)
def test_an_imported_agent_asks_what_the_real_program_asked(tmp_path: Path, name: str) -> None:
    session = REAL_SESSIONS[name]
    sent = [
        (role, tuple(sorted(paragraph for text in said for paragraph in text.split("\n\n"))))
        for role, said in session.sent
    ]
    assert sent_in(asked_by(tmp_path, session.data).messages) == sent


@pytest.mark.slow("takes a tenth of a second")
def test_an_agent_that_was_made_of_requests_sends_the_last_one_again(tmp_path: Path) -> None:
    expected: list[Sent] = [
        ("user", ("Look.",)),
        ("assistant", ('bash {"command": "ls"}',)),
        ("user", ("= mast",)),
        ("assistant", ("A mast.",)),
    ]
    for name, suffix in (("otel", ".jsonl"), ("langfuse", ".json")):
        request = asked_by(tmp_path, SAMPLES[name], suffix)
        assert (sent_in(request.messages), "Build." in request.system) == (expected, True)
    request = asked_by(tmp_path, SAMPLES["openai"])
    assert sent_in(request.messages) == [*expected, ("user", ("Of wood.",)), ("assistant", ("Oak.",))]
