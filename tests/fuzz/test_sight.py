"""What a person sees: whatever others have written moves no cursor, sets no title and fakes no prompt."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ikigai_actors import ActorSystem, IkigaiError, Kind, Message, Reply, ScriptedProvider, ToolCall
from ikigai_actors import tool as as_tool
from ikigai_actors.records.messages.replies import reply_message_data
from ikigai_actors.shell.app.transcript.layout import Frame, lay_out
from ikigai_actors.shell.app.transcript.pieces import pieces_of
from ikigai_actors.text import storable
from ikigai_actors.verbs.text.harmless import harmless
from ikigai_actors.verbs.text.wrap import MARGIN, Margin, width
from tests.fuzz.hostile import SPELLS, controls, fuzzed, texts
from tests.fuzz.shells import Typist, no_defects
from tests.kit.app_pilot import Stage, on_stage

COLUMNS = 40

_PROMPT = re.compile(r"[\w.+@-]+( \([^)]*\))?> ")


def rows(printed: str) -> list[str]:
    """The rows of a terminal that this makes, when none is too long for it."""
    lines = printed.split("\n")
    assert all(width(line) <= COLUMNS for line in lines), lines
    return lines


@fuzzed(60)
@given(st.lists(texts, max_size=5), st.booleans())
def test_only_the_program_begins_a_row_at_the_edge(pieces: list[str], own: bool) -> None:
    margin = Margin(lambda: COLUMNS)
    said = ["".join(pieces)] if own else pieces  # what the program says itself comes in one piece
    first, *others = rows("".join(margin.put(harmless(piece), own) for piece in said))
    assert not first or own or first.startswith(MARGIN)
    for row in others:
        assert not row or row.startswith(MARGIN if not own else " "), row


@fuzzed(40)
@given(texts)
def test_what_is_set_off_says_the_same(text: str) -> None:
    shown = harmless(text).expandtabs(1)
    assert re.sub(r"\s", "", Margin(lambda: COLUMNS).put(harmless(text))) == re.sub(r"\s", "", shown)


class Hostile:
    """A system in which everything that can be written is a hostile text."""

    def __init__(self, text: str) -> None:
        def look() -> str:
            return text

        look.__doc__ = text
        calls = Reply(text, (ToolCall("look", {"a": text}, "call"), ToolCall("none", {text: text}, "none")), "tool_use")
        self.system = ActorSystem.open(
            "sqlite:///:memory:",
            ScriptedProvider([text, calls, Reply(text, stop_reason=text or "x")]),
            tools=[as_tool(look)],
        )

    def fill(self, text: str) -> None:
        """Put the text wherever it can be put."""
        root, documents, stored = self.system.root, self.system.documents, storable(text)
        other = root.fork(name="buyer")
        for work in (
            lambda: root.send(root, stored),
            lambda: root.prompt(f"{stored}.").get(timeout=60),
            lambda: root.prompt(f"call {stored}").get(timeout=60),
            lambda: root.configure(model=stored),
            lambda: root.configure(colour=text),
            lambda: root.configure(system=stored),
            lambda: root.mark(stored),
            lambda: documents.write("plan.md", stored),
            lambda: documents.write(stored, stored),
            lambda: other.kill(reason=stored),
        ):
            try:
                work()
            except IkigaiError:
                continue  # what is refused is not shown


LINES = (
    "/history 100", "/context", "/agents --all", "/check-mail", "/read-mail --all", "/filter-mail", "/doc",
    "/doc show plan.md", "/doc log plan.md", "/tools", "/tools look", "/model", "/system", "/rewind", "/switch buyer",
    "/send nobody x", "/help",
)  # fmt: skip


@pytest.mark.thorough("a page for each example")
@fuzzed(5)
@given(texts)
def test_what_others_have_written_never_looks_like_a_prompt_in_line_mode(text: str) -> None:
    hostile = Hostile(text)
    with hostile.system as system, no_defects(), Typist(system, COLUMNS) as typist:
        hostile.fill(text)
        said = [typist.do("once more"), *map(typist.do, LINES)]
        for page in said:
            assert not controls(page, but="\n"), page
            for row in rows(page):
                assert _PROMPT.match(row) is None, page


messages = st.builds(
    lambda kind, content, data, position: Message("a" * 22, position, kind, storable(content), data, 0),
    st.sampled_from([*Kind, "unknown"]),
    texts,
    st.one_of(
        st.just({}),
        st.builds(lambda text: {"child": text, "parent": text, "name": text, "tool_use_id": text, text: text}, texts),
        st.builds(
            lambda text: reply_message_data(
                Reply(
                    text, (ToolCall(text, {text: text}, text),), text, blocks=({"type": "thinking", "thinking": text},)
                ),
                text,
            ),
            texts,
        ),
    ),
    st.integers(1, 9),
)


@fuzzed(30)
@given(st.lists(messages, max_size=3), texts, st.integers(1, 100), st.booleans())
def test_no_line_of_a_transcript_holds_a_control_character(
    said: list[Message], printed: str, columns: int, unfolded: bool
) -> None:
    frame = Frame(columns, thinking=unfolded, results=unfolded)
    for piece in pieces_of(said):
        for strip in lay_out(piece, frame):
            assert not controls(strip.text, but=""), (piece, strip.text)


@pytest.mark.thorough("an application; each line of a transcript is tried in each run")
def test_no_screen_of_the_application_shows_a_control_character() -> None:
    text = "".join(f"{spell[:60]} | " for spell in SPELLS).replace("\0", "")
    hostile = Hostile(text)

    async def play(stage: Stage) -> None:
        async def is_clean() -> None:
            await stage.pilot.pause()
            assert not controls(stage.text, but="\n"), repr(stage.text)

        for line in LINES:
            if not line.startswith("/switch"):  # what the others print stands with the agent that is shown
                stage.application._do(stage.application.main.page.agent, line)
        await stage.until(lambda: "/move" in stage.transcript, "/help, which ends with it")
        await is_clean()
        assert not controls(stage.transcript, but="\n")
        for key in ("f3", "f4", "f5", "f6"):
            await stage.press(key)

            await is_clean()
            await stage.press("enter")
            await is_clean()
            await stage.press("escape")

    with hostile.system as system:
        hostile.fill(text)
        on_stage(system, play, size=(120, 60))
