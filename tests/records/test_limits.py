"""The limits of texts, wherever a person or a model is told of them."""

import inspect
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from ikigai_actors import ActorSystem, AgentRef
from ikigai_actors.agent.builtin_calls.documents import DocumentWriteCall
from ikigai_actors.agent.builtin_calls.mail import SendCall
from ikigai_actors.records.documents import DOCUMENT_LIMIT, Documents
from ikigai_actors.records.mail.mail import MAIL_LIMIT
from ikigai_actors.text import binary_size

MAIL_PAGE = Path(__file__).parents[2] / "docs" / "build" / "mail.md"


def docstring_of(function: Callable[..., object]) -> str:
    """What the docstring of a function says."""
    return inspect.getdoc(function) or ""


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 bytes"), (1, "1 bytes"), (1_000, "1,000 bytes"), (1024, "1 KiB"), (65_536, "64 KiB"), (1_048_576, "1 MiB"),
     (1_048_577, "1,048,577 bytes"), (1_049_600, "1,025 KiB")],
)  # fmt: skip
def test_a_size_is_told_in_the_largest_unit_that_leaves_it_whole(count: int, text: str) -> None:
    assert binary_size(count) == text


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        (SendCall.arguments["body"].description, MAIL_LIMIT),
        (docstring_of(ActorSystem.send), MAIL_LIMIT),
        (docstring_of(AgentRef.send), MAIL_LIMIT),
        (MAIL_PAGE.read_text(encoding="utf-8"), MAIL_LIMIT),
        (DocumentWriteCall.arguments["body"].description, DOCUMENT_LIMIT),
        (docstring_of(Documents.write), DOCUMENT_LIMIT),
    ],
    ids=["send", "system.send", "agent.send", "docs/build/mail.md", "document_write", "documents.write"],
)
def test_whoever_tells_a_limit_tells_the_one_that_holds(text: str, limit: int) -> None:
    assert re.findall(r"[\d,]+ [KM]iB", text) == [binary_size(limit)]
