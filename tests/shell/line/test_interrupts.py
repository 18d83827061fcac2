"""Signals are raised only where they do no harm, and one that leaves a block is not disturbed by the next."""

import signal
from collections.abc import Iterator

import pytest

from ikigai_actors.shell.line.interrupts import Interrupts


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
