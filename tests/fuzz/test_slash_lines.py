"""The line that a person types, or a pipe gives: done, or refused with one clear line; the shell goes on."""

import io
import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ikigai_actors import ActorSystem, OfflineProvider
from ikigai_actors.shell.line.input import Pipe
from ikigai_actors.shell.line.interrupts import Interrupts
from ikigai_actors.shell.line.output import Screen
from ikigai_actors.shell.line.repl import LineMode
from ikigai_actors.shell.line.session import Shell
from ikigai_actors.shell.slash import commands
from tests.fuzz.hostile import controls, fuzzed, texts
from tests.fuzz.shells import Typist, no_defects, printed

NEVER_ENDS = ("/wait", "/exit")
"""What waits as long as it is told to, or ends the session: tried by itself."""

OPTIONS = (
    "--name", "--model", "--follow", "--no-follow", "--all", "--from", "--last", "--reason", "--cascade", "--grace",
    "--strategy", "--intensity", "--period", "--version", "--expect", "--file", "--always", "--help",
)  # fmt: skip

GOOD = (
    "buyer",
    "on",
    "off",
    "INT",
    "CONT",
    "one_for_all",
    "cascade",
    "show",
    "write",
    "log",
    "plan.md",
    "1",
    "3",
    "0.5",
)

words = st.one_of(texts, st.sampled_from(OPTIONS), st.sampled_from(GOOD))


def quoted(word: str) -> str:
    return shlex.quote(word)


names = st.sampled_from([name for name in sorted(commands.commands) if name not in NEVER_ENDS])

lines = st.one_of(
    texts,
    texts.map(lambda text: f"/{text}"),
    st.builds(lambda name, rest: f"{name} {rest}", names, texts),
    st.builds(lambda name, rest: " ".join([name, *map(quoted, rest)]), names, st.lists(words, max_size=4)),
    st.builds(lambda verb, rest: " ".join(["/doc", verb, *map(quoted, rest)]),
              st.sampled_from(["list", "show", "write", "delete", "log"]), st.lists(words, max_size=3)),
)  # fmt: skip


def is_allowed(line: str) -> bool:
    return not line.lstrip("/ ").startswith(("wait", "exit"))


@fuzzed(20)
@given(st.lists(lines.filter(is_allowed), min_size=1, max_size=6))
def test_every_line_is_done_or_refused_with_one_line(typed: list[str]) -> None:
    with (
        ActorSystem.open("sqlite:///:memory:", OfflineProvider()) as system,
        no_defects(),
        Typist(system) as typist,
    ):
        typist.do("/fork --name buyer")
        for line in typed:
            said = typist.do(line)
            assert not controls(said), said
            if said.startswith("error: "):
                assert said.count("\n") == 1, said
                assert said.strip() != "error:"
        assert "running" in typist.do("/agents")


@pytest.mark.thorough("a second source of lines")
@fuzzed(20)
@given(
    st.lists(
        st.one_of(st.binary(max_size=20), lines.filter(is_allowed).map(lambda text: text.encode(errors="replace")))
    )
)
def test_a_pipe_may_hold_any_bytes(given_lines: list[bytes]) -> None:
    probe = b"\n".join([*given_lines, b"/agents --all", b""])
    with ActorSystem.open("sqlite:///:memory:", OfflineProvider()) as system, no_defects(), printed() as paper:
        status = LineMode(Shell(system, Pipe(io.BytesIO(probe)), Screen(), Interrupts())).run()
    assert status == 0
    assert not controls(paper.text), paper.text
    assert " running" in paper.text.rstrip("\n").rpartition("\n")[2]
