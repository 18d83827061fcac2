"""A transcript by itself, in an application that shows nothing else: what other threads lay out, clicks, folds."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor, Future
from dataclasses import replace
from typing import Any

import pytest
from textual.app import App, ComposeResult
from textual.pilot import Pilot

from ikigai_actors.records.messages.messages import Message
from ikigai_actors.shell.app.transcript.layout import HEAVY
from ikigai_actors.shell.app.transcript.pieces import Piece
from ikigai_actors.shell.app.transcript.readable import HitCount, ReadableTranscript
from ikigai_actors.shell.app.transcript.widget import BUDGET, Transcript
from tests.kit.app_pilot import DEADLINE
from tests.kit.trees import says

HEAVY_TEXT = "**bold** " * (HEAVY // 8)


class Held(Executor):
    """Does its work when the test says so."""

    def __init__(self) -> None:
        self.work: list[tuple[Future[Any], Callable[[], Any]]] = []

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """See `Executor.submit`."""
        self.work.append((Future(), lambda: fn(*args, **kwargs)))
        return self.work[-1][0]

    def go_on(self) -> None:
        """Do the oldest piece of work."""
        future, work = self.work.pop(0)
        future.set_result(work())


class Shown(App[None]):
    """A transcript and nothing else."""

    def __init__(self, budget: float) -> None:
        super().__init__()
        self.threads = Held()
        self.transcript = ReadableTranscript(self.threads, budget)
        self.wanted: list[int] = []
        self.opened: list[Piece] = []

    def compose(self) -> ComposeResult:
        """All there is."""
        yield self.transcript

    def on_mount(self) -> None:
        """Lay out what is left to do, as the shell does."""
        self.ticks = self.set_interval(0.01, self.transcript.tick)

    @property
    def arranged(self) -> bool:
        """Whether all is laid out."""
        return len(self.transcript._starts) > len(self.transcript._blocks)

    async def lay_out(self) -> None:
        """Do what is to be done elsewhere, the oldest first, and take it."""
        await until(lambda: self.arranged and self.threads.work)
        self.threads.go_on()
        await asyncio.sleep(0)
        await until(lambda: self.arranged)

    def on_transcript_wanted(self, event: Transcript.Wanted) -> None:
        """Keep what it asked for."""
        self.wanted.append(event.position)

    def on_readable_transcript_opened(self, event: ReadableTranscript.Opened) -> None:
        """Keep what was opened."""
        self.opened.append(event.piece)


def shown(
    play: Callable[[Shown, "Pilot[None]"], Awaitable[None]], size: tuple[int, int] = (60, 20), budget: float = BUDGET
) -> Shown:
    """Run a transcript for the length of a play; returns it, ended."""

    async def run() -> Shown:
        app = Shown(budget)
        async with app.run_test(size=size) as pilot:
            await play(app, pilot)
        return app

    return asyncio.run(run())


def log(*ids: int, content: str = "hello", kind: str = "user", **data: Any) -> list[Message]:
    return [replace(message, data=data) for message in says("a", *ids, content=content, kind=kind)]


def heavy(position: int) -> list[Message]:
    return log(position, content=HEAVY_TEXT, kind="assistant", stop_reason="end_turn")


SLOW = pytest.mark.parametrize("budget", [BUDGET, 0.0], ids=["in time", "one block a tick"])
"""On a machine that is busy too."""


def top(transcript: Transcript) -> str:
    """The first two lines in sight: a blank one, and one that tells which."""
    return (transcript.render_line(0).text + transcript.render_line(1).text).strip()


async def until(condition: Callable[[], object]) -> None:
    """Let the application go on until something is the case."""
    deadline = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.001)  # to other tasks, the application's


def test_what_is_heavy_is_plain_until_another_thread_has_laid_it_out_and_then_stays_in_its_place() -> None:
    async def play(app: Shown, pilot: "Pilot[None]") -> None:
        transcript = app.transcript
        transcript.add([*heavy(1), *log(2, 3)])
        assert "**bold**" in transcript.text
        await app.lay_out()
        assert transcript.text.count("bold") == HEAVY // 8
        assert "**" not in transcript.text
        assert transcript.text.rstrip().endswith("› hello\n\n› hello")

    shown(play)


@SLOW
def test_what_is_laid_out_above_moves_nothing_that_is_in_sight(budget: float) -> None:
    async def play(app: Shown, pilot: "Pilot[None]") -> None:
        transcript = app.transcript
        transcript.add(heavy(1))
        for at in range(2, 32):
            transcript.add(log(at, content=f"prompt {at}"))
        await until(lambda: app.arranged)
        transcript.scroll_relative(y=-10, animate=False, immediate=True)
        before, below = top(transcript), transcript.max_scroll_y - transcript.scroll_y
        await app.lay_out()
        assert "**" not in transcript.text
        assert (top(transcript), transcript.max_scroll_y - transcript.scroll_y) == (before, below)
        assert not transcript.following

    shown(play, budget=budget)


def test_lines_that_were_laid_out_for_another_width_are_not_taken() -> None:
    async def play(app: Shown, pilot: "Pilot[None]") -> None:
        transcript = app.transcript
        transcript.add(heavy(1))
        await pilot.resize_terminal(40, 20)
        await until(lambda: len(app.threads.work) == 2)  # once for each width
        await app.lay_out()
        assert "**bold**" in transcript.text
        await app.lay_out()
        assert "**" not in transcript.text
        assert max(map(len, transcript.text.split("\n"))) <= 40
        assert not app.threads.work  # nothing is asked for twice

    shown(play)


def test_earlier_messages_that_no_longer_fit_are_asked_for_again() -> None:
    async def play(app: Shown, pilot: "Pilot[None]") -> None:
        transcript = app.transcript
        transcript.add(log(90))
        await pilot.pause()
        transcript.restart(log(190))
        transcript.prepend(log(88, 89, content="of old"))
        assert "of old" not in transcript.text
        transcript.tell("told")
        await pilot.pause()
        assert app.wanted == [90, 190]

    shown(play)


def test_a_click_unfolds_what_is_folded_and_folds_it_again() -> None:
    async def play(app: Shown, pilot: "Pilot[None]") -> None:
        app.transcript.add(log(1, content="\n".join(f"line {number}" for number in range(30))))
        app.transcript.add(log(2, content="a reply", kind="assistant", stop_reason="end_turn"))
        await pilot.pause()
        folded = app.transcript.text
        assert "line 29" not in folded
        for expected in (True, False):
            app.transcript.scroll_to(y=0, animate=False, immediate=True)
            await pilot.click(ReadableTranscript, offset=(3, 2))
            assert ("line 29" in app.transcript.text) is expected
        await pilot.click(ReadableTranscript, offset=(3, app.transcript.text.split("\n").index("a reply")))
        await pilot.click(ReadableTranscript, offset=(3, 19))
        assert app.transcript.text == folded  # an answer does not fold, nor what is below it

    shown(play)


@pytest.mark.sample(1, "speeds")
@SLOW
def test_folding_keeps_what_is_in_sight_there_and_reads_what_is_above_again(budget: float) -> None:
    def thought(at: int) -> list[Message]:
        blocks = [{"type": "thinking", "thinking": "hm\nwell"}]
        return log(at, content=f"answer {at}", kind="assistant", stop_reason="end_turn", blocks=blocks)

    async def play(app: Shown, pilot: "Pilot[None]") -> None:
        transcript = app.transcript
        for at in range(1, 31):
            transcript.add(thought(at))
        await until(lambda: app.arranged)
        transcript.scroll_to(y=4 * 10, animate=False, immediate=True)
        transcript.fold(thinking=True)
        await until(lambda: app.wanted)
        assert transcript.text.split("\n")[:4] == ["▾ hm", "  well", "", "answer 11"]
        assert (transcript.scroll_y, transcript.following) == (0, False)
        assert app.wanted == [11]
        assert transcript.text.endswith("answer 30")

    shown(play, budget=budget)


@SLOW
def test_a_result_above_moves_nobody_to_the_end(budget: float) -> None:
    async def play(app: Shown, pilot: "Pilot[None]") -> None:
        transcript = app.transcript
        uses = [{"type": "tool_use", "id": "x", "name": "erase", "input": {}}]
        transcript.add(log(1, kind="assistant", stop_reason="tool_use", blocks=uses))
        for at in range(2, 32):
            transcript.add(log(at, content=f"prompt {at}"))
        await until(lambda: app.arranged)
        transcript.scroll_relative(y=-10, animate=False, immediate=True)
        before = transcript.scroll_y
        transcript.add(log(32, content="done", kind="tool_result", tool_use_id="x", name="erase"))
        await until(lambda: app.arranged)
        assert "└ done" in transcript.text
        assert (transcript.scroll_y, transcript.following) == (before, False)

    shown(play, budget=budget)


def test_nobody_who_has_scrolled_up_is_taken_to_an_end_that_is_not_known_yet() -> None:
    """Also when the screen is arranged anew while most is not laid out."""

    async def play(app: Shown, pilot: "Pilot[None]") -> None:
        transcript = app.transcript
        for at in range(1, 61):
            transcript.add(log(at, content=f"prompt {at}"))
        await until(lambda: app.arranged)
        transcript.scroll_to(y=60, animate=False, immediate=True)
        seen = top(transcript)
        app.ticks.pause()
        transcript.fold(results=True)  # all is to be laid out anew, of which one block is
        assert not app.arranged
        assert transcript.following is False
        app.screen.refresh(layout=True)
        await pilot.pause(0)
        assert (top(transcript), transcript.following) == (seen, False)
        app.ticks.resume()
        await until(lambda: app.arranged)
        assert (top(transcript), transcript.following) == (seen, False)

    shown(play, budget=0.0)


def calls(position: int, result: str) -> list[Message]:
    uses = [{"type": "tool_use", "id": f"x{position}", "name": "erase", "input": {"path": f"file {position}"}}]
    called = log(position, content="", kind="assistant", stop_reason="tool_use", blocks=uses)
    return [*called, *log(position + 1, content=result, kind="tool_result", tool_use_id=f"x{position}", name="erase")]


def at_hit(transcript: ReadableTranscript) -> str:
    """The first line of what the person is at: a hit, or the piece at the mark."""
    height = transcript.size.height
    lines = [transcript.render_line(y) for y in range(height)]
    here = [line for line in lines if any(part.style and part.style.reverse for part in line)]
    return here[0].text.strip()


@pytest.mark.sample(1, "speeds")
@SLOW
def test_a_search_goes_through_hits_unfolds_what_hides_one_and_folds_it_again(budget: float) -> None:
    async def play(app: Shown, pilot: "Pilot[None]") -> None:
        transcript = app.transcript
        transcript.add([*log(1, content="a mast of Pine"), *calls(2, "well\nof pine"), *calls(4, "nothing\nelse")])
        for at in range(6, 36):
            transcript.add(log(at, content=f"prompt {at}"))
        transcript.add(log(36, content="pine again"))
        await until(lambda: app.arranged)
        before = transcript.text
        transcript.look_for("pine")
        assert transcript.hit_count == HitCount(0, 2, False, False)  # in sight or not, but nothing that is folded
        for number, line in ((3, "› pine again"), (2, "of pine"), (1, "› a mast of Pine"), (1, "› a mast of Pine")):
            transcript.go_to_hit(-1)
            await until(lambda: not transcript.hit_count.looking)
            assert transcript.hit_count == HitCount(number, 3, False, False)
            assert at_hit(transcript) == line
        transcript.go_to_hit(1)
        assert "else" not in transcript.text
        transcript.go_to_hit(1)
        transcript.end_search()
        await until(lambda: app.arranged)
        assert transcript.text == before

    shown(play, budget=budget)


def test_a_search_reads_earlier_messages_until_there_is_a_hit() -> None:
    async def play(app: Shown, pilot: "Pilot[None]") -> None:
        transcript = app.transcript
        for at in range(90, 120):
            transcript.add(log(at, content=f"prompt {at}"))
        await until(lambda: app.arranged)
        transcript.look_for("mast")
        transcript.go_to_hit(-1)
        await until(lambda: app.wanted == [90])
        assert transcript.hit_count == HitCount(0, 0, True, True)
        transcript.prepend(log(*range(80, 90)))
        await until(lambda: app.wanted == [90, 80])
        transcript.prepend([*log(78, content="the mast"), *log(79)])
        await until(lambda: transcript.hit_count == HitCount(1, 1, True, False))
        assert at_hit(transcript) == "› the mast"
        transcript.go_to_hit(-1)
        await until(lambda: app.wanted[-1] == 78)
        transcript.prepend(None)  # the database does not answer
        assert transcript.hit_count == HitCount(1, 1, True, False)

    shown(play)


def test_the_arrows_mark_what_folds_and_keys_fold_and_open_it() -> None:
    async def play(app: Shown, pilot: "Pilot[None]") -> None:
        transcript = app.transcript
        transcript.add([*calls(1, "one\ntwo"), *calls(3, "three\nfour")])
        await until(lambda: app.arranged)
        transcript.begin()
        await pilot.press("up")
        assert at_hit(transcript).startswith("▸ erase  path: file 1")
        await pilot.press("space")
        assert "▾ erase" in transcript.text
        assert ("two" in transcript.text, "four" in transcript.text) == (True, False)
        await pilot.press("left", "down", "enter")
        assert "▾" not in transcript.text
        assert [piece.result for piece in app.opened] == ["three\nfour"]

    shown(play)


def test_forks_that_follow_each_other_and_what_a_call_prints_are_shown_as_they_come() -> None:
    async def play(app: Shown, pilot: "Pilot[None]") -> None:
        transcript = app.transcript
        transcript.add(calls(1, "")[:1])
        transcript.add([replace(line, created_at=5_000) for line in log(2, kind="tool_call", tool_use_id="x1")])
        for at, name in ((3, "ann"), (4, "bob")):
            transcript.add(log(at, kind="fork", content="", child=str(at) * 22, name=name))
        transcript.show_running(9_000, {"x1": "gone\n1\n2\n3\n", "x9": "of another"})
        await until(lambda: app.arranged)
        running = ["▶ erase  path: file 1 · 4 s", "  │ 1", "  │ 2", "  │ 3", "┄ forked ann and bob"]
        assert transcript.text.split("\n") == running
        transcript.show_running(None, {})
        assert transcript.text.split("\n") == ["▶ erase  path: file 1", "┄ forked ann and bob"]
        transcript.show_running(9_000, {"x1": "1"})
        transcript.add(log(5, content="done", kind="tool_result", tool_use_id="x1", name="erase"))
        await until(lambda: app.arranged)
        assert transcript.text.split("\n") == ["▸ erase  path: file 1", "  └ done", "┄ forked ann and bob"]

    shown(play)
