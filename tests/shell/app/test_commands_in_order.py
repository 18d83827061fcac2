"""What was submitted on the screen when the person leaves: it is done, or counted."""

import threading

from ikigai_actors.shell.app.place import SerialExecutor
from tests.kit.blocking_provider import DEADLINE


def test_what_was_submitted_is_done_before_the_end() -> None:
    done: list[str] = []
    executor = SerialExecutor(lambda error: None)
    for line in ("one", "", "two"):
        executor.do(lambda line=line: done.append(line), line)  # type: ignore[misc]
    assert executor.finish(DEADLINE) == []
    assert done == ["one", "", "two"]


def test_the_lines_that_wait_for_one_that_takes_long_are_named_and_never_done() -> None:
    begun, go_on, done = threading.Event(), threading.Event(), list[str]()

    def wait() -> None:
        begun.set()
        go_on.wait(DEADLINE)

    executor = SerialExecutor(lambda error: None)
    executor.do(wait, "/wait 60")
    executor.do(lambda: done.append("a key"))
    executor.do(lambda: done.append("hello"), "hello")
    begun.wait(DEADLINE)
    assert executor.finish(0) == ["/wait 60", "hello"]
    go_on.set()
    executor.close(DEADLINE)
    assert done == []
