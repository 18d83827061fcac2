"""`os.fork` under an open system: the child can do nothing with it, and nothing there hangs or harms the parent."""

import faulthandler
import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from ikigai_actors import ActorSystem, FunctionProvider, StoreInUse
from ikigai_actors.system.attached import AttachedSystem
from tests.kit.blocking_provider import DEADLINE
from tests.kit.databases import python

pytestmark = pytest.mark.slow("forks processes")

OPEN = 'ActorSystem.open(sys.argv[1], FunctionProvider(lambda _: "well"))'

PROGRAM = f"""
import os, sys, warnings
from ikigai_actors import ActorSystem, FunctionProvider, StoreInUse
from ikigai_actors.system.attached import AttachedSystem
warnings.simplefilter("ignore", DeprecationWarning)

with {OPEN} as system:
    child = system.root.fork(name="kid")
    assert child.prompt("one").get(timeout=60).text == "well"
    for end in ("leave", "exit", "error", "close"):
        if (pid := os.fork()) == 0:
            if end == "exit":
                sys.exit(3)
            if end == "error":
                raise ZeroDivisionError
            if end == "close":
                system.close()
            break
        _, status = os.waitpid(pid, 0)
        print(end, os.waitstatus_to_exitcode(status), flush=True)
    else:
        assert child.prompt("two").get(timeout=60).text == "well"
        system.root.send(child, "mail")
        if os.fork() == 0:  # this process has just lost its own
            sys.exit()
        os.wait()
        try:
            {OPEN}
        except StoreInUse:
            print("in use", flush=True)
        assert [message.content for message in child.history() if message.kind == "user"] == ["one", "two"]
        print("parent done", flush=True)
"""


@pytest.mark.sample(1, "five processes")
def test_children_that_leave_the_block_end_and_the_parent_and_its_database_are_unharmed(durable: str) -> None:
    ran = python(PROGRAM, durable)
    said, complained = ran.communicate(timeout=120)
    assert said.splitlines() == ["leave 0", "exit 3", "error 1", "close 0", "in use", "parent done"]
    assert "ZeroDivisionError" in complained
    assert "SystemClosed" not in complained
    assert ran.returncode == 0
    with ActorSystem.open(durable, FunctionProvider(lambda _: "well")) as system:
        assert [mail.body for mail in system.agent("kid").read_mail()] == ["mail"]


def in_child(ask: Callable[[], object]) -> str:
    """What asking this comes to in a forked process, in time."""
    here, there = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid == 0:
        answer = "nothing"
        faulthandler.dump_traceback_later(DEADLINE, exit=True)  # a child that hangs tells where
        try:
            answer = f"gave {ask()!r}"
        except BaseException as error:
            answer = f"{type(error).__name__}: {error}"
        finally:
            os.write(there, answer.encode())
            os._exit(0)
    os.close(there)
    with os.fdopen(here) as pipe:
        answer = pipe.read()
    os.waitpid(pid, 0)
    return answer


@contextmanager
def attached_to(durable: str) -> Iterator[tuple[Any, Any]]:
    """An attached system, and its host."""
    with ActorSystem.open(durable, FunctionProvider(lambda _: "well")) as host, AttachedSystem.open(durable) as system:
        yield system, host


ASKED: dict[str, Callable[[Any, Any], object]] = {
    "root": lambda system, root: system.root,
    "agents": lambda system, root: system.agents(),
    "agent": lambda system, root: system.agent(root.uuid),
    "statistics": lambda system, root: system.statistics(),
    "subscribe": lambda system, root: system.subscribe(print),
    "mail of a person": lambda system, root: system.send(root, "mail"),
    "documents": lambda system, root: system.documents.list(),
    "approvals": lambda system, root: system.approvals.pending(),
    "prompt": lambda system, root: root.prompt("go"),
    "fork": lambda system, root: root.fork(),
    "mail": lambda system, root: root.send(root, "mail"),
    "read mail": lambda system, root: root.read_mail(),
    "wait": lambda system, root: root.wait(),
    "kill": lambda system, root: root.kill(),
    "signal": lambda system, root: root.signal("INT"),
    "mark": lambda system, root: root.mark(),
    "clear": lambda system, root: root.clear(),
    "configure": lambda system, root: root.configure(system="new"),
    "supervise": lambda system, root: root.supervise(intensity=1),
    "history": lambda system, root: root.history(),
    "state": lambda system, root: root.state,
    "record": lambda system, root: root.record,
    "reply": lambda system, root: root.reply(),
}
"""What a program asks of a system and its agents."""


@pytest.mark.sample(1, "a process for each")
@pytest.mark.parametrize("asked", ASKED.values(), ids=ASKED)
def test_whatever_is_asked_in_a_child_ends_in_one_clear_error(asked: Callable[[Any, Any], object]) -> None:
    with ActorSystem.open(":memory:", FunctionProvider(lambda _: "well")) as system:
        root = system.root
        answer = in_child(lambda: asked(system, root))
        assert answer.startswith("SystemClosed: This process (pid ")
        assert f"a fork of the one that opened the system (pid {os.getpid()})" in answer
        assert "'spawn'" in answer
        assert root.prompt("go").get(timeout=DEADLINE).text == "well"


@pytest.mark.sample(1, "a call each")
@pytest.mark.parametrize(
    "asked", [ASKED[name] for name in ("root", "agents", "prompt", "mail", "subscribe", "history")]
)
def test_an_attached_system_is_of_one_process_too(durable: str, asked: Callable[[Any, Any], object]) -> None:
    with attached_to(durable) as (system, host):
        root = system.root
        assert "a fork of the one that opened" in in_child(lambda: asked(system, root))
        assert in_child(system.close) == "gave None"
        assert root.prompt("go").get(timeout=DEADLINE).text == "well"
        assert host.root.uuid == root.uuid


def test_what_was_taken_from_a_system_before_is_of_one_process_too() -> None:
    with ActorSystem.open(":memory:", FunctionProvider(lambda _: "well")) as system:
        documents, approvals = system.documents, system.approvals
        for ask in (documents.list, approvals.pending, lambda: documents.write("a", "b")):
            assert in_child(ask).startswith("SystemClosed: ")


def test_a_child_may_open_a_system_of_its_own(durable: str, database_of_another: str) -> None:
    def own() -> str:
        with ActorSystem.open(database_of_another, FunctionProvider(lambda _: "well")) as own:
            return own.root.prompt("go").get(timeout=DEADLINE).text

    with ActorSystem.open(durable, FunctionProvider(lambda _: "well")) as system:
        assert in_child(own) == "gave 'well'"

        def same() -> None:
            with pytest.raises(StoreInUse):
                ActorSystem.open(durable, FunctionProvider(lambda _: "well"))

        assert in_child(same) == "gave None"
        assert system.root.prompt("go").get(timeout=DEADLINE).text == "well"


@pytest.fixture
def database_of_another(durable_url: Callable[[], str]) -> str:
    """A second database of the same kind."""
    return durable_url()


def test_a_name_that_a_system_does_not_have_is_an_attribute_error_as_everywhere() -> None:
    with ActorSystem.open(":memory:", FunctionProvider(lambda _: "well")) as system:
        with pytest.raises(AttributeError, match="'ActorSystem' object has no attribute 'agentz'"):
            system.agentz  # type: ignore[attr-defined]  # noqa: B018 - the mistake
        assert not system._forked
