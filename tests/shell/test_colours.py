"""The colours of subcommands: what they mean, that texts stay plain, and when there are none."""

import io

import pytest

from ikigai_actors import AgentRef
from ikigai_actors.reach.statistics import Figures
from ikigai_actors.records.messages.messages import Message
from ikigai_actors.shell.cli.paint import painted
from ikigai_actors.shell.cli.stats import as_lines
from ikigai_actors.shell.line.output import is_coloured
from ikigai_actors.verbs.text.colours import Coloured, Meaning, coloured, meaning_of_agent, meaning_of_message
from ikigai_actors.verbs.text.tree import tree_lines
from supervisors.signals import Signal
from tests.kit.sessions import Session

AMBER, RED, GREY = Meaning.PERSON, Meaning.FAILURE, Meaning.PAST


class Terminal(io.StringIO):
    """A stream that is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stream", "variables", "expected"),
    [
        (Terminal(), {}, True),
        (Terminal(), {"NO_COLOR": "1"}, False),
        (Terminal(), {"TERM": "dumb"}, False),
        (io.StringIO(), {}, False),
        (None, {}, False),
    ],
    ids=["a terminal", "NO_COLOR", "dumb", "a pipe", "closed"],
)
def test_colours_are_for_terminals(
    stream: io.StringIO | None, variables: dict[str, str], expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"NO_COLOR": "", "TERM": "xterm", **variables}.items():
        monkeypatch.setenv(name, value)
    assert is_coloured(stream) is expected


def test_each_part_of_a_line_is_painted_by_what_it_means() -> None:
    line = coloured("kid  ", ("stopped", AMBER), "  \x1b[31m2 own")
    assert line.text == "kid  stopped  \\x1b[31m2 own"
    assert painted(line) == "kid  \x1b[33mstopped\x1b[0m  \\x1b[31m2 own"
    assert painted(Coloured("gone", ()), dim=True) == "\x1b[2mgone\x1b[0m"


def parts(line: Coloured) -> dict[str, Meaning]:
    """What the parts of a line mean that mean something."""
    return {line.text[span.start : span.end]: span.meaning for span in line.spans}


def test_the_tree_says_what_each_state_means(session: Session) -> None:
    root: AgentRef = session.system.root
    stopped, killed, busy = (root.fork(name=name) for name in ("stopped-one", "killed-one", "busy-one"))
    stopped.signal(Signal.STOP)
    killed.kill()
    records = session.system.agents()
    states = {busy.uuid: "waiting for approval", root.uuid: "idle"}
    lines = tree_lines(
        records, {}, lambda pair: states.get(pair.uuid, pair.status), wanted=lambda uuid: True, hosts={"": "here"}
    )
    assert [parts(Coloured(line.text, line.spans)) for line in lines[:-1]] == [
        {}, {"stopped": AMBER}, {"dead": GREY}, {"waiting for approval": AMBER}
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "data", "meaning"),
    [
        ("user", {}, None),
        ("assistant", {}, None),
        ("tool_result", {"is_error": True}, RED),
        ("tool_result", {"is_error": False}, None),
        ("error", {}, RED),
        ("approval", {}, AMBER),
        ("mark", {}, GREY),
    ],
)
def test_the_kind_of_a_message_is_coloured_by_what_it_means(
    kind: str, data: dict[str, bool], meaning: Meaning | None
) -> None:
    assert meaning_of_message(Message("uuid", 1, kind, "", data, 0)) is meaning


def test_a_death_is_a_failure_only_when_it_was_one(session: Session) -> None:
    kid = session.system.root.fork(name="kid")
    kid.kill()
    assert meaning_of_agent(kid.record, "dead") is GREY


def figures(**other: object) -> Figures:
    """Figures of a database in which nothing has happened."""
    nothing = dict.fromkeys(
        ("turns", "messages", "mails", "unread", "prompts", "documents", "versions", "restarts", "hosts"), 0
    )
    fields = {"database": "x", "host": "host a", "agents": {"running": 1}, **nothing, "spent_in_all": {}}
    return Figures(**{**fields, "spent": {}, "branches": {}, "budgets": [], **other})  # type: ignore[arg-type]


def test_figures_mark_what_waits_and_what_failed() -> None:
    agents = {"running": 2, "stopped": 1, "terminating": 0, "dead": 3}
    shown = figures(host=None, agents=agents, prompts=2, restarts=4)
    marked = {text: meaning for line in as_lines(shown) for text, meaning in parts(line).items()}
    assert marked == {
        "none: no process runs these agents": AMBER, "1 stopped": AMBER, "3 dead": GREY, "2 not taken up": AMBER,
        "4": RED,
    }  # fmt: skip
    assert all(not line.spans for line in as_lines(figures()))
