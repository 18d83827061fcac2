"""Lists of rows, by themselves and on the screens: the cursor, the window, clicks, and rows as they look."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from rich.text import Text
from textual.app import App, ComposeResult
from textual.pilot import Pilot

from ikigai_actors import ActorSystem, Message, OfflineProvider
from ikigai_actors.errors import IkigaiError, StoreUnavailable
from ikigai_actors.reach.conversation import Questions, Words
from ikigai_actors.reach.snapshots import Snapshot, Snapshots
from ikigai_actors.records.spending import Expenses
from ikigai_actors.shell.app.theme import DARK, variables
from ikigai_actors.shell.app.widgets.rows import Rows
from ikigai_actors.store import open_store
from tests.kit.databases import eventually
from tests.kit.faults import FaultyStore
from tests.kit.open_on import open_on


class Listed(App[None]):
    """A list and nothing else."""

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return variables(DARK)

    def __init__(self) -> None:
        super().__init__()
        self.rows = Rows(str, lambda number: Text(f"row {number}"))
        self.chosen: list[str] = []

    def compose(self) -> ComposeResult:
        """All there is."""
        yield self.rows

    def on_rows_chosen(self, event: Rows.Chosen) -> None:
        """Keep what was chosen."""
        self.chosen.append(event.key)

    def window(self) -> list[str]:
        """What is in sight."""
        return [self.rows.render_line(y).text.strip() for y in range(self.rows.size.height)]


def listed(play: Callable[[Listed, "Pilot[None]"], Awaitable[None]]) -> None:
    async def run() -> None:
        app = Listed()
        async with app.run_test(size=(30, 10)) as pilot:
            app.rows.focus()
            await pilot.pause()
            await play(app, pilot)

    asyncio.run(run())


def test_the_cursor_is_kept_in_sight_and_within_the_list() -> None:
    async def play(app: Listed, pilot: "Pilot[None]") -> None:
        app.rows.show(range(50))
        for key, row, first in [
            ("up", "0", 0), ("pagedown", "9", 0), ("pagedown", "18", 9), ("end", "49", 40), ("down", "49", 40),
            ("pageup", "40", 40), ("up", "39", 39), ("home", "0", 0),
        ]:  # fmt: skip
            await pilot.press(key)
            assert (app.rows.key, app.window()[0]) == (row, f"row {first}"), key
        app.rows.show(range(50), "25")
        await pilot.pause()
        assert app.window()[-1] == "row 25"
        app.rows.show(range(20, 50))
        assert app.rows.key == "25"
        app.rows.show(range(3))
        assert app.rows.key == "2"

    listed(play)


def test_the_row_at_the_cursor_is_scrolled_sideways_until_its_name_is_whole() -> None:
    async def play(app: Listed, pilot: "Pilot[None]") -> None:
        app.rows._line, app.rows._whole = lambda number: Text(f"{'─' * 40}name-{number} more"), lambda number: 46
        app.rows.show(range(3))
        assert app.window()[:2] == [f"{'─' * 23}name-0…", f"{'─' * 29}…"]
        await pilot.press("down")
        assert app.window()[:2] == [f"{'─' * 29}…", f"{'─' * 23}name-1…"]

    listed(play)


def test_a_click_chooses_the_row_in_that_place_and_below_the_last_one_nothing() -> None:
    async def play(app: Listed, pilot: "Pilot[None]") -> None:
        app.rows.show(range(50))
        await pilot.press("end")
        await pilot.click(Rows, offset=(3, 2))
        assert (app.chosen, app.rows.key) == (["42"], "42")
        app.rows.show(range(3))
        await pilot.pause()
        await pilot.click(Rows, offset=(3, 5))
        app.rows.show([])
        await pilot.press("enter")
        assert app.chosen == ["42"]

    listed(play)


def watching(
    system: ActorSystem, deliver: Callable[[Snapshot], None] = print, fail: Callable[[IkigaiError], None] = print
) -> Snapshots:
    return Snapshots(system, Questions(system.approvals), Words(), system.root.uuid, deliver, fail, Expenses())


def test_snapshots_go_on_when_the_store_is_back() -> None:
    taken: list[Snapshot] = []
    failed: list[IkigaiError] = []
    store = FaultyStore(open_store("sqlite:///:memory:"))
    with open_on(store, lambda _: "done") as system:
        snapshots = watching(system, taken.append, failed.append)
        store.unreadable, store.unreadable_by = StoreUnavailable("down, as planned"), "ikigai-snapshots"
        snapshots.start()
        eventually(lambda: store.refused, "a reading that fails")
        assert not taken
        store.unreadable = None
        snapshots.poke()
        eventually(lambda: taken, "a snapshot")
        snapshots.close()
    assert not failed


def test_an_agent_whose_rows_are_wrong_is_shown_without_its_model(tmp_path: Path) -> None:
    path = str(tmp_path / "a.db")
    with ActorSystem.open(path, OfflineProvider()) as system:
        kid = system.root.fork(name="kid")
        *row, _, created = Message(kid.uuid, kid.history(all=True)[-1].id + 1, "configure", "", {}, 1).row()
        system._store.write(lambda tx: tx.append([(*row, "no JSON", created, b"")]))
    with ActorSystem.open(path, OfflineProvider()) as system:
        snapshot = watching(system)._take(kid.uuid, None)
        assert (snapshot.current.name, snapshot.model) == ("kid", "")
