"""Signals are raised only where they do no harm, and one that leaves a block is not disturbed by the next."""

import gc
import signal
import sys
import threading
import weakref
from collections.abc import Callable, Iterator

import pytest

from ikigai_actors.shell.line.interrupts import Interrupts
from tests.kit.databases import DEADLINE


@pytest.fixture
def interrupts() -> Iterator[Interrupts]:
    """Handlers of this process's signals, while the test runs."""
    installed = Interrupts().install()
    yield installed
    installed.remove()


@pytest.mark.parametrize("depth", [1, 2])
def test_a_signal_that_comes_while_another_unwinds_is_kept_for_the_next_block(
    interrupts: Interrupts, depth: int
) -> None:
    unwound = []

    def leave(blocks: int) -> None:
        with interrupts.heard():
            try:
                if blocks > 1:
                    leave(blocks - 1)
                signal.raise_signal(signal.SIGTERM)
            finally:
                signal.raise_signal(signal.SIGINT)
                unwound.append(blocks)

    with pytest.raises(SystemExit) as left:
        leave(depth)
    assert left.value.code == 128 + signal.SIGTERM
    assert len(unwound) == depth
    assert interrupts.pending == signal.SIGINT
    with pytest.raises(KeyboardInterrupt), interrupts.heard():
        pytest.fail("The block began although a signal had come.")
    assert not interrupts.pending
    with pytest.raises(KeyboardInterrupt), interrupts.heard():
        signal.raise_signal(signal.SIGINT)


class Breaking:
    """Does something in its end, where Python raises no error."""

    def __init__(self, work: Callable[[], object] = lambda: None) -> None:
        self._work = work

    def __del__(self) -> None:
        self._work()


def collect_garbage(work: Callable[[], object]) -> None:
    """Do something in a callback of the garbage collector."""

    def callback(phase: str, info: dict[str, int]) -> None:
        gc.callbacks.remove(callback)
        work()

    gc.callbacks.append(callback)
    gc.collect(0)


def drop_what_is_referred_to(work: Callable[[], object]) -> None:
    """Do something in the callback of a weak reference."""
    kept = Breaking()
    reference = weakref.ref(kept, lambda _: work())
    del kept
    assert reference() is None


@pytest.mark.slow("takes a tenth of a second")
@pytest.mark.sample(1, "signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("lose", [collect_garbage, Breaking, drop_what_is_referred_to])
def test_a_signal_that_is_raised_where_python_raises_nothing_comes_again(
    interrupts: Interrupts, lose: Callable[[Callable[[], object]], object], number: int
) -> None:
    def wait() -> None:
        with interrupts.heard():
            lose(lambda: signal.raise_signal(number))
            lose(lambda: threading.Event().wait(DEADLINE))  # it comes again, and is lost again
            threading.Event().wait(DEADLINE)

    with pytest.raises((KeyboardInterrupt, SystemExit)) as left:
        wait()
    assert left.type is (KeyboardInterrupt if number == signal.SIGINT else SystemExit)
    assert not interrupts.pending


@pytest.mark.slow("takes a tenth of a second")
def test_a_signal_that_is_lost_at_the_end_of_a_block_comes_in_the_next_one(interrupts: Interrupts) -> None:
    def wait() -> None:
        with interrupts.heard():
            collect_garbage(lambda: signal.raise_signal(signal.SIGINT))
        with interrupts.heard():
            pytest.fail("The block began although a signal had come.")

    with pytest.raises(KeyboardInterrupt):
        wait()


@pytest.mark.slow("takes a tenth of a second")
def test_other_errors_that_python_cannot_raise_go_to_the_hook_before() -> None:
    reports: list[object] = []
    before, sys.unraisablehook = sys.unraisablehook, lambda unraisable: reports.append(unraisable.exc_type)
    try:
        hook = sys.unraisablehook
        interrupts = Interrupts().install()
        collect_garbage(lambda: int("none"))
        interrupts.remove()
        assert sys.unraisablehook is hook
    finally:
        sys.unraisablehook = before
    assert reports == [ValueError]
