"""Progress bars of long commands: part done, rate, and remaining time.

A separate module since rich loads slowly; `ikigai_actors.shell.cli.progress` loads it at a terminal only.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text

_MINUTE = 60


class _Rate(ProgressColumn):
    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text("" if speed is None else f"{speed:,.0f}/s" if speed >= 1 else f"{speed * _MINUTE:,.1f}/min")


@contextmanager
def bar_on(
    console: Console, what: str, get_time: Callable[[], float] = monotonic, refreshed: bool = True
) -> Iterator[Callable[[int, int], None]]:
    """Show a progress bar on a console until the block ends.

    The block gets a function. Call it with the number of items that are done, and the number of all items.

    Args:
        console: the console that shows the bar.
        what: the name of the counted items.
        get_time: the clock of rate and time left, in seconds.
        refreshed: whether a thread of its own draws the bar; otherwise each call does.
    """
    columns = (
        TextColumn("{task.completed:,.0f} of {task.total:,.0f} {task.description}"),
        BarColumn(),
        _Rate(),
        TimeRemainingColumn(),
        TextColumn("left"),
    )
    with Progress(*columns, console=console, transient=True, get_time=get_time, auto_refresh=refreshed) as bar:
        task = bar.add_task(what, total=1, visible=False)

        def advance(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total, visible=True, refresh=not refreshed)

        yield advance
