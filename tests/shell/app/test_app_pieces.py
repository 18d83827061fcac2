"""What a transcript is made of, without a screen: chunks of markdown, pieces of messages, lines, what was submitted."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from ikigai_actors import ActorSystem, OfflineProvider, Signal, TurnInterrupted
from ikigai_actors.agent.subscriptions import StoreTrouble, StreamCut, Streamed
from ikigai_actors.frozen import NO_DATA
from ikigai_actors.reach.conversation import Questions, Words
from ikigai_actors.reach.snapshots import Snapshots, Wish
from ikigai_actors.records.messages.messages import Message
from ikigai_actors.records.spending import Expenses
from ikigai_actors.shell.app.input_history import Recall
from ikigai_actors.shell.app.page_events import MESSAGES_KEPT, PageEvents
from ikigai_actors.shell.app.theme import DARK, LIGHT, Palette
from ikigai_actors.shell.app.transcript.code_block import TEXT_COLUMNS
from ikigai_actors.shell.app.transcript.layout import Frame, lay_out
from ikigai_actors.shell.app.transcript.markdown_chunks import Chunks, chunked
from ikigai_actors.shell.app.transcript.pieces import Look, Piece, few, pieces_of, progress_of
from ikigai_actors.verbs.place import last_active
from tests.kit.blocking_provider import DEADLINE, Hanging

MARKDOWN = st.lists(
    st.sampled_from(["text", " ", "\n", "\n\n", "```\n", "~~~\n", "- item\n", "   indented\n", "# head\n", "1. one\n"])
).map("".join)


@pytest.mark.parametrize(
    ("text", "chunks"),
    [
        ("", []),
        ("one", ["one"]),
        ("one\n\ntwo\n", ["one", "two"]),
        ("one\n\n\n\ntwo", ["one", "two"]),
        ("```\na\n\nb\n```\n\nafter", ["```\na\n\nb\n```", "after"]),
        ("- item\n\n  of the item\n\nafter", ["- item\n\n  of the item", "after"]),
        ("````\n```\n\na\n````\n\nb", ["````\n```\n\na\n````", "b"]),
        ("```\nnever closed\n\nmore", ["```\nnever closed\n\nmore"]),
    ],
)
def test_a_blank_line_outside_of_a_fence_closes_a_chunk(text: str, chunks: list[str]) -> None:
    assert chunked(text) == chunks


@given(MARKDOWN, st.integers(1, 7))
def test_chunks_are_the_same_in_however_many_pieces_a_text_comes(text: str, size: int) -> None:
    growing, closed = Chunks(), 0
    for place in range(0, len(text), size):
        growing.add(text[place : place + size])
        assert len(growing.closed) >= closed  # what is closed stays closed
        closed = len(growing.closed)
    assert chunked(text)[:closed] == growing.closed


@given(MARKDOWN)
def test_no_line_is_lost_in_chunks(text: str) -> None:
    def lines(whole: str) -> list[str]:
        return [line for line in whole.split("\n") if line.strip()]

    assert [line for chunk in chunked(text) for line in lines(chunk)] == lines(text)


def message(number: int, kind: str, content: str = "", **data: object) -> Message:
    return Message("a" * 22, number, kind, content, data or NO_DATA, 0)


def test_a_result_stands_with_its_call_and_one_without_a_call_alone() -> None:
    blocks = [
        {"type": "thinking", "thinking": "hm"},
        {"type": "tool_use", "id": "x", "name": "ls", "input": {"path": "."}},
    ]
    pieces = pieces_of(
        [
            message(1, "tool_result", "earlier", tool_use_id="w", name="cat"),
            message(2, "assistant", "", stop_reason="tool_use", blocks=blocks),
            message(3, "tool_call", "ls", tool_use_id="x"),
            message(4, "tool_result", "a\nb", tool_use_id="x", name="ls", is_error=True),
        ]
    )
    assert [(piece.look, piece.text, piece.result, piece.failed) for piece in pieces] == [
        (Look.CALL, "cat", "earlier", False),
        (Look.THINKING, "hm", None, False),
        (Look.CALL, "ls path: .", "a\nb", True),
    ]


TEXTS = st.text(st.sampled_from("ab 茶器\n\t") | st.characters(codec="utf-8"), max_size=300)


@given(st.sampled_from(list(Look)), TEXTS, st.one_of(st.none(), TEXTS), st.integers(10, 100), st.booleans())
def test_no_line_is_wider_than_the_screen(
    look: Look, text: str, result: str | None, width: int, unfolded: bool
) -> None:
    from ikigai_actors.shell.app.transcript.pieces import tidy

    piece = Piece(look, tidy(text), 1, tidy(result) if result is not None else None)
    for strip in lay_out(piece, Frame(width, thinking=unfolded, results=unfolded)):
        assert cell_len(strip.text) <= width + 1  # a wide character may stick out of a cell; it is cut when drawn


def test_in_a_wide_window_text_stays_readable_and_tables_calls_and_results_use_the_room() -> None:
    table = f"| a | b |\n|---|---|\n| {'x ' * 40} | {'y ' * 40} |"
    wide = [
        Piece(Look.MARKDOWN, table),
        Piece(Look.TOLD, "x" * 140),
        Piece(Look.CALL, f"bash {'x' * 200}", 1, "y" * 200),
    ]
    read = [Piece(Look.MARKDOWN, text) for text in ("word " * 60, f"- {'word ' * 60}", f"> {'word ' * 60}")]
    read += [Piece(look, "word " * 60) for look in (Look.PROMPT, Look.ERROR, Look.PLAIN)]

    def columns(piece: Piece) -> int:
        return max(cell_len(strip.text.rstrip()) for strip in lay_out(piece, Frame(156)))

    assert min(map(columns, wide)) > 130
    assert {90 < columns(piece) <= TEXT_COLUMNS for piece in read} == {True}


def test_what_follows_a_line_that_is_very_long_is_shown_too() -> None:
    shown = lay_out(Piece(Look.TOLD, "x" * 5_000 + "\nthe end"), Frame(80))
    assert sum(len(strip.text) for strip in shown[:-1]) == 5_000
    assert shown[-1].text == "the end"


def test_an_answer_that_says_nothing_is_told_of() -> None:
    [piece] = pieces_of([message(1, "assistant", "", stop_reason="end_turn", blocks=[])])
    assert (piece.look, piece.text) == (Look.NOTE, "[an empty answer]")


def test_what_was_submitted_is_gone_through_and_found_again(tmp_path: Path) -> None:
    recall = Recall(tmp_path / "deep" / "history")
    for text in ("one", "two\nlines", "two\nlines", "three"):
        recall.remember(text)
    assert [recall.earlier("unsent") for _ in range(4)] == ["three", "two\nlines", "one", None]
    assert [recall.later() for _ in range(4)] == ["two\nlines", "three", "unsent", None]
    again = Recall(tmp_path / "deep" / "history")
    assert again.entries == ["one", "two\nlines", "three"]
    assert again.search("T") == ["three", "two\nlines"]
    assert (tmp_path / "deep" / "history").stat().st_mode & 0o777 == 0o600


def test_a_feed_keeps_the_answer_on_its_way_and_a_bounded_number_of_messages() -> None:
    with ActorSystem.open("sqlite:///:memory:", OfflineProvider()) as system:
        feed = PageEvents(system, lambda: None)
        agent = system.root.uuid
        feed.follow(agent)
        for number in range(1, MESSAGES_KEPT + 10):
            feed.hear(replace(message(number, "mark"), agent_uuid=agent))
        news = feed.news_of(agent)
        assert news is not None
        assert [each.id for each in news.messages] == list(range(10, MESSAGES_KEPT + 10))
        assert feed.news_of(agent) is None
        feed.close()


def test_a_feed_keeps_an_answer_on_its_way_as_text_and_nothing_else() -> None:
    with ActorSystem.open("sqlite:///:memory:", OfflineProvider()) as system:
        feed = PageEvents(system, lambda: None)
        for kind, count in (("thinking", 300), ("text", 500)):
            for number in range(count):
                feed.hear(Streamed(system.root.uuid, f"{number} ", kind))
        news = feed.news_of(system.root.uuid)
        assert news is not None
        assert [(kind, "".join(texts).split()[-1]) for kind, texts in news.pieces] == [
            ("thinking", "299"),
            ("text", "499"),
        ]
        feed.close()


def test_a_feed_forgets_the_messages_of_a_page_that_is_dropped_but_not_an_answer_on_its_way() -> None:
    with ActorSystem.open("sqlite:///:memory:", OfflineProvider()) as system:
        feed, agent = PageEvents(system, lambda: None), system.root.uuid
        feed.follow(agent)
        feed.hear(replace(message(1, "user"), agent_uuid=agent))
        feed.hear(Streamed(agent, "so it began", "text"))
        feed.forget(agent)
        feed.forget("an agent of which nothing was heard")
        feed.hear(replace(message(2, "mark"), agent_uuid=agent))
        news = feed.news_of(agent)
        assert news is not None
        assert (news.messages, news.ended, news.pieces) == ([], False, [("text", ["so it began"])])
        feed.close()


def test_a_feed_drops_the_answer_that_is_cut_off_with_its_host_for_a_page_too_that_has_taken_it() -> None:
    with ActorSystem.open("sqlite:///:memory:", OfflineProvider()) as system:
        feed, agent = PageEvents(system, lambda: None), system.root.uuid
        feed.hear(Streamed(agent, "nobody", "text"))
        feed.hear(StreamCut(agent))
        assert feed.news_of(agent) is None
        feed.follow(agent)
        feed.hear(replace(message(1, "user"), agent_uuid=agent))
        for event in (Streamed(agent, "so it", "text"), StreamCut(agent), Streamed(agent, "anew", "text")):
            feed.hear(event)
        news = feed.news_of(agent)
        assert news is not None
        assert ([message.id for message in news.messages], news.ended, news.pieces) == ([1], True, [("text", ["anew"])])
        feed.close()


def test_a_feed_tells_of_an_outage_but_not_of_the_end_which_the_application_tells_itself() -> None:
    with ActorSystem.open("sqlite:///:memory:", OfflineProvider()) as system:
        feed = PageEvents(system, lambda: None)
        feed.hear(StoreTrouble("it is down", final=True))
        assert feed.notices() == []
        feed.hear(StoreTrouble("it is down"))
        assert ["it is down" in notice for notice in feed.notices()] == [True]
        feed.close()


def test_looking_at_an_agent_reads_no_log(tmp_path: Path) -> None:
    database = str(tmp_path / "a.db")
    with ActorSystem.open(database, OfflineProvider()) as system:
        system.root.configure(model="offline:slow-not")
        system.root.prompt("hello").get(timeout=60)
        system.root.fork(name="kid").fork(name="grandkid")
    with ActorSystem.open(database, OfflineProvider()) as system:
        snapshots = Snapshots(
            system, Questions(system.approvals), Words(), last_active(system).uuid, print, print, Expenses()
        )
        snapshot = snapshots._take(system.agent("grandkid").uuid, Wish())
        assert snapshot.model == "offline:slow-not"
        assert (snapshot.parent, snapshot.previous, snapshot.children) == (system.agent("kid").record, None, 0)
        assert len(snapshot.listed) == 3
        assert system.statistics().read_logs == 0


def test_of_an_agent_that_is_summarised_a_snapshot_tells_of_how_many_messages() -> None:
    hanging = Hanging("the notes so far")
    with ActorSystem.open(":memory:", OfflineProvider(), providers={"hanging": hanging}) as system:
        for text in ("one", "two", "three"):
            system.root.prompt(text).get(timeout=DEADLINE)
        system.root.configure(compact_model="hanging:model")
        summary = system.root.aio.compact()
        hanging.wait_until_asked()
        snapshots = Snapshots(system, Questions(system.approvals), Words(), system.root.uuid, print, print, Expenses())
        assert snapshots._take(system.root.uuid, None).state == "summarising 6 messages"
        assert system.root.signal(Signal.INT)
        with pytest.raises(TurnInterrupted):
            summary.get(timeout=DEADLINE)
        assert snapshots._take(system.root.uuid, None).state == "idle"


def test_neighbouring_forks_are_one_line_with_names() -> None:
    def fork(position: int, **data: object) -> Message:
        return replace(message(position, "fork"), data=data)

    names = {"b" * 22: "ann"}
    messages = [
        message(1, "user", "go"),
        fork(2, child="b" * 22),
        fork(3, child="c" * 22, name="bob"),
        *(fork(position, parent="d" * 22, name="cy") for position in range(4, 9)),
        fork(9, child="e" * 22, name="dan", number=1, prompt="well"),
        fork(10, child="f" * 22, name="eve"),
    ]
    lines = [
        "forked ann and bob",
        "inherited: 7 messages from cy, cy and 3 more",
        "trial 1 (dan): well",
        "forked eve",
    ]
    assert [piece.text for piece in pieces_of(messages, names.get)][1:] == lines
    assert [few(names) for names in (["a"], ["a", "b", "c"], ["a", "b", "c", "d"])] == [
        "a", "a, b and c", "a, b and 2 more",
    ]  # fmt: skip


def test_a_call_that_runs_shows_for_how_long_and_its_last_lines() -> None:
    assert progress_of(999, "") == ()
    assert progress_of(999, "line") == ("", "line")
    assert progress_of(1_000, "") == ("1 s",)
    assert progress_of(130_000, "1\n2\n\n3\x1b[2K\n4") == ("2 min", "2", "3\\x1b[2K", "4")
    piece = Piece(Look.CALL, "bash make", 1, progress=progress_of(9_000, "cc a.c\ncc b.c"))
    assert [strip.text for strip in lay_out(piece, Frame(40))] == ["▶ bash  make · 9 s", "  │ cc a.c", "  │ cc b.c"]
    assert next(strip.text for strip in lay_out(piece, Frame(12))) == "▶ bas… · 9 s"


CODE = "```python\n# why\ndef f() -> int:\n    return 12 + 'x'\n```\n\n```diff\n-old\n+new\n```"


@pytest.mark.parametrize("colours", [DARK, LIGHT])
def test_code_has_the_colours_of_the_theme_and_no_other(colours: Palette) -> None:
    used = {}
    for strip in lay_out(Piece(Look.MARKDOWN, CODE), Frame(60, colours)):
        for text, style, _ in strip:
            if text.strip() and style is not None and style.color is not None:
                used[text.strip()] = style.color.name
                assert style.bgcolor is not None
                assert style.bgcolor.name == colours.raised
    wanted = {"# why": colours.past, "12": colours.accent, "-old": colours.failed, "+new": colours.accent}
    assert {text: used[text] for text in wanted} == wanted
    assert {*used.values()} <= {colours.ink, colours.past, colours.accent, colours.failed}


def test_headings_are_bold_at_the_left() -> None:
    lines = lay_out(Piece(Look.MARKDOWN, "# The fair\n\n## Tea"), Frame(40))
    assert [strip.text.rstrip() for strip in lines] == ["", "The fair", "", "Tea"]
    assert all(style is not None and style.bold for strip in lines for text, style, _ in strip if text.strip())
