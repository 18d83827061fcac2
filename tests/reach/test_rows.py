"""What a page is told of rows and of replies on their way, whatever comes and whenever it asks."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ikigai_actors.reach.replies_on_their_way import RepliesOnTheirWay
from ikigai_actors.reach.rows import ROW_COLUMNS, LiveRows, state_after, state_at
from ikigai_actors.records.log.moments import GOES_ON, Glance, LogMark
from ikigai_actors.records.messages.messages import Kind, Message

AGENTS = ("a", "b", "c")


def glance(uuid: str, turn: int = 0, status: str = "running", unread: int = 0, waits_for: str | None = None) -> Glance:
    ended = 9 if status == "dead" else None
    return Glance(uuid, None, None, None, 0, status, turn, 1, ended, unread, 0, 0, waits_for, None, "host")


def message(uuid: str, number: int, kind: str, content: str = "", **data: Any) -> Message:
    return Message(uuid, number, kind, content, data, 1_000 + number)


looks = st.lists(
    st.builds(
        glance,
        st.sampled_from(AGENTS),
        st.integers(0, 2),
        st.sampled_from(["running", "stopped", "dead"]),
        st.integers(0, 2),
    ),
    unique_by=lambda delta: delta.uuid,
).map(lambda row: ("look", row))
messages = st.builds(message, st.sampled_from(AGENTS), st.integers(1, 9), st.sampled_from([*Kind]))
happenings = st.lists(
    st.one_of(
        looks,
        st.tuples(st.just("hear"), messages),
        st.tuples(st.just("stream"), st.sampled_from(AGENTS)),
        st.tuples(st.just("die"), st.sampled_from(AGENTS)),
        st.tuples(st.just("status"), st.tuples(st.sampled_from(AGENTS), st.sampled_from(["running", "stopped"]))),
        st.tuples(st.just("mail"), st.sampled_from(AGENTS)),
        st.tuples(st.just("ask"), st.none()),
    ),
    max_size=25,
)


@given(happenings)
def test_a_page_that_asks_now_and_then_has_what_there_is(news: list[tuple[str, Any]]) -> None:
    rows, page, version = LiveRows("epoch"), dict[str, dict[str, Any]](), 0
    for clock, (what, given_) in enumerate([*news, ("ask", None)]):
        match what:
            case "look":
                rows.refresh(given_, {})
            case "hear":
                rows.hear(given_, clock)
            case "stream":
                rows.stream(given_, 8, clock, clock / 2)
            case "die":
                rows.die(given_, clock)
            case "status":
                rows.set_status(*given_)
            case "mail":
                rows.add_unread(given_)
            case "ask":
                rows.tick(clock / 2)
                changes = rows.since(version)
                version = changes.version
                for changed in changes.rows:
                    page.setdefault(changed["uuid"], {}).update(changed)
    table = {row[0]: dict(zip(ROW_COLUMNS, row, strict=True)) for row in rows.table()[1]}
    assert page == table
    assert rows.since(version).rows == []


def test_what_is_heard_is_shown_before_the_next_look() -> None:
    rows = LiveRows("epoch")
    rows.refresh([glance("a"), glance("b", status="dead")], {})
    usage = {"input_tokens": 10, "output_tokens": 5}
    rows.hear(message("a", 1, Kind.ASSISTANT, usage=usage), 1)
    rows.add_unread("a")
    for uuid in ("a", "b", "c"):
        rows.set_status(uuid, "stopped")
    row_by_agent = {row[0]: dict(zip(ROW_COLUMNS, row, strict=True)) for row in rows.table()[1]}
    shown = [row_by_agent["a"][name] for name in ("state", "tokens", "unread")]
    assert (shown, row_by_agent["b"]["state"]) == (["stopped", 15, 1], "dead")
    rows.set_status("a", "running")
    assert dict(zip(ROW_COLUMNS, rows.table()[1][0], strict=True))["state"] == "idle"


def test_the_state_of_an_agent_is_that_of_its_latest_message() -> None:
    rows = LiveRows("epoch")
    rows.refresh(
        [glance("a", turn=3), glance("b"), glance("c", turn=1, waits_for="usd")],
        {"a": LogMark(4, "tool_call", 5, "bash")},
    )
    assert states(rows) == {"a": "tool", "b": "idle", "c": "budget"}
    for kind, content, data, state in (
        (Kind.TOOL_CALL, "wait", {}, "waiting"),
        (Kind.APPROVAL, "", {}, "asking"),
        (Kind.TOOL_RESULT, "", {}, "thinking"),
        (Kind.ASSISTANT, "", {"stop_reason": "tool_use"}, "tool"),
        (Kind.FORK, "", {"child": "k"}, "tool"),
        (Kind.FORK, "", {"parent": "k", "go": True}, "thinking"),
        (Kind.ASSISTANT, "", {"stop_reason": "end_turn"}, "idle"),
    ):
        rows.hear(message("a", 9, kind, content, **data), 1)
        assert states(rows)["a"] == state
    assert state_after(LogMark(1, Kind.INTERRUPTED, 1, None), "tool") == "idle"
    assert rows.head("a") == 9
    assert rows.unplaced([glance("a", turn=1), glance("z", turn=1)]) == ["z"]


def test_the_state_at_a_moment_is_that_after_the_latest_message_that_says_one() -> None:
    def after(*kinds: tuple[str, str | None]) -> str:
        return state_at(LogMark(1, kind, 1, label) for kind, label in reversed(kinds))

    birth, child = (Kind.FORK, None), (Kind.FORK, "child")
    assert after() == after(birth) == after(birth, child) == after(birth, (Kind.CONFIGURE, None)) == "idle"
    assert after((Kind.FORK, GOES_ON)) == after(birth, (Kind.USER, None)) == "thinking"
    assert after((Kind.USER, None), child, (Kind.NOTE, None)) == "thinking"
    assert after((Kind.TOOL_CALL, "bash"), child) == "tool"
    assert after((Kind.USER, None), (Kind.ASSISTANT, None), child) == "idle"


def states(rows: LiveRows) -> dict[str, str]:
    return {row[0]: row[ROW_COLUMNS.index("state")] for row in rows.table()[1]}


@given(st.lists(st.one_of(st.text(min_size=1, max_size=5), st.sampled_from([None, "ask"])), max_size=30))
def test_a_page_has_the_text_of_the_reply_however_seldom_it_asks(pieces: list[str | None]) -> None:
    replies, seen, page, whole = RepliesOnTheirWay(), (0, 0), "", ""
    for step in [*pieces, "ask"]:
        if step is None:
            replies.close("a")
            whole = ""
        elif step == "ask":
            if (piece := replies.behind("a", seen)) is not None:
                page = page[: piece.at] + piece.text
                seen = (piece.number, piece.at + len(piece.text))
            elif not replies.is_open("a", seen[0]):
                page = ""
            assert page == whole
        else:
            replies.add("a", step)
            whole += step
