"""The command line: it does what it is asked to, or says in a line why not, with exit status 1 or 2."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ikigai_actors import ActorSystem, OfflineProvider
from ikigai_actors.shell.cli.main import run
from tests.fuzz.hostile import controls, fuzzed, texts
from tests.fuzz.shells import printed


def _given_by_a_process(text: str) -> bool:
    """Whether the operating system could hand it over: bytes without a zero, perhaps no UTF-8."""
    return "\0" not in text and not any("\ud800" <= sign <= "\udfff" and not sign >= "\udc80" for sign in text)


words = st.one_of(
    texts.filter(_given_by_a_process),
    st.sampled_from(["\udcff", "--all", "--json", "--as", "--cascade", "--reason", "--grace", "--database", "-h"]),
    st.sampled_from(["buyer", "KILL", "STOP", "CONT", "INT", "TERM", "hello", "0"]),
)

arguments = st.one_of(
    st.lists(words, min_size=1, max_size=4),
    st.builds(
        lambda command, rest: [command, *rest],
        st.sampled_from(["agents", "send", "prompt", "kill", "signal", "fsck"]),
        st.lists(words, max_size=4),
    ),
    st.builds(lambda text, rest: ["send", "buyer", "--", text, *rest], words, st.lists(words, max_size=2)),
    st.builds(lambda text: ["signal", "CONT", "buyer", "--reason", text], words),
)


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> str:
    url = f"sqlite:///{tmp_path_factory.mktemp('fuzz') / 'agents.db'}"
    with ActorSystem.open(url, OfflineProvider()) as system:
        system.root.fork(name="buyer")
    return url


def _is_complaint(line: str) -> bool:
    return line.startswith(("ikigai: ", "Error: "))


@fuzzed(30)
@given(arguments)
def test_a_command_line_is_obeyed_or_refused_in_a_line(database: str, given_words: list[str]) -> None:
    with printed() as paper:
        status = run(["--database", database, *given_words])
    assert status in (0, 1, 2), paper.text
    assert not controls(paper.text), paper.text
    if status == 2:
        assert sum(map(_is_complaint, paper.text.split("\n"))) == 1, paper.text
    if status == 1 and "fsck" not in given_words:
        assert _is_complaint(paper.text), paper.text
        assert paper.text.count("\n") == 1, paper.text


@fuzzed(30)
@given(words)
def test_whatever_names_a_database_is_refused_in_a_line_when_it_is_none(tmp_path: Path, place: str) -> None:
    with printed() as paper:
        status = run(["--database", f"{tmp_path}/none/{place}", "agents"])
    assert status == 1, paper.text
    assert _is_complaint(paper.text), paper.text
    assert paper.text.count("\n") == 1, paper.text
    assert "the output cannot be written" not in paper.text, paper.text
    with printed() as paper:
        status = run(["--database", f"postgresql://{place}:{place}@127.0.0.1:1/x?connect_timeout=1", "agents"])
    assert (status, paper.text.count("\n")) == (1, 1), paper.text
    assert not controls(paper.text), paper.text
