"""Waiting for mail and agents through the library: on every database, and against agents that are busy."""

import asyncio
import threading
from collections.abc import Callable
from functools import partial
from random import Random

import pytest

from ikigai_actors import (
    ActorSystem,
    AgentDead,
    AgentRef,
    AmbiguousAgent,
    BadInput,
    FunctionProvider,
    OfflineProvider,
    Reply,
    Request,
    ScriptedProvider,
    Signal,
    current_agent,
)
from ikigai_actors.errors import WouldWaitForItself
from ikigai_actors.records.mail.mail import Send
from ikigai_actors.store import open_store
from ikigai_actors.store.unit import write_alone
from tests.kit.blocking_provider import DEADLINE, Gate
from tests.kit.databases import eventually
from tests.kit.tool_scripts import calling, results

LONG = 600.0
"""Seconds of a wait that ends before."""


def open_system(database: str) -> ActorSystem:
    return ActorSystem.open(database, OfflineProvider())


class Waiting:
    """A wait on a thread of its own."""

    def __init__(self, wait: Callable[[], object]) -> None:
        self._wait = wait
        self._answer: object = None
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._answer = self._wait()
        except Exception as error:
            self._answer = error

    @property
    def answer(self) -> object:
        """What came of it."""
        self._thread.join(DEADLINE)
        assert not self._thread.is_alive(), "the wait did not end"
        return self._answer

    @property
    def goes_on(self) -> bool:
        return self._thread.is_alive()


def test_a_look_tells_of_each_agent_what_it_is(database: str) -> None:
    gate = Gate()
    with ActorSystem.open(database, gate.provider) as system:
        root = system.root
        idle, writer, stopped, gone, busy = (
            root.fork(name=name) for name in ("idle", "writer", "stop", "gone", "busy")
        )
        writer.send(root, "text")
        stopped.signal(Signal.STOP)
        gone.kill()
        turn = busy.prompt("go")
        gate.wait_until_asked()
        answers = root.wait([idle, "writer", stopped, gone.uuid, busy, "nobody"], timeout=0)
        assert answers == {
            idle: "idle",
            "writer": "mail",
            stopped: "stopped",
            gone.uuid: "dead",
            busy: "timeout",
            "nobody": "unknown",
        }
        gate.open()
        turn.get(timeout=DEADLINE)


def test_without_agents_a_wait_tells_whose_mail_is_unread(database: str) -> None:
    with open_system(database) as system:
        root, first, other = system.root, system.root.fork(), system.root.fork()
        assert root.wait(timeout=0) == {}
        first.send(root, "text")
        system.send(root, "text")
        other.kill()
        assert root.wait() == {first: "mail", "": "mail", other: "dead"}
        root.read_mail()
        assert root.wait(timeout=0) == {}


def test_mail_that_was_read_is_no_answer_but_its_sender_may_be_idle(database: str) -> None:
    with open_system(database) as system:
        root, kid = system.root, system.root.fork()
        kid.send(root, "text")
        root.read_mail()
        assert root.wait([kid], timeout=DEADLINE) == {kid: "idle"}


def test_an_agent_that_sent_mail_and_died_is_told_as_mail(database: str) -> None:
    with open_system(database) as system:
        root, kid = system.root, system.root.fork()
        kid.send(root, "text")
        kid.kill()
        assert root.wait([kid]) == {kid: "mail"}
        root.read_mail()
        assert root.wait([kid]) == {kid: "dead"}


@pytest.mark.parametrize("end", ["mail", "idle", "dead", "stopped"])
def test_what_happens_during_a_wait_ends_it(database: str, end: str) -> None:
    gate = Gate()
    with ActorSystem.open(database, gate.provider) as system:
        root, child = system.root, system.root.fork(name="child")
        child.prompt("go")
        gate.wait_until_asked()
        waiting = Waiting(lambda: root.wait([child], timeout=LONG))
        eventually(lambda: system.statistics().waits, "the wait")
        match end:
            case "mail":
                child.send(root, "text")
            case "idle":
                gate.open()
            case "dead":
                child.kill()
            case "stopped":
                child.signal(Signal.STOP)
        assert waiting.answer == {child: end}
        gate.open()
        assert system.statistics().waits == 0


def test_a_wait_goes_on_until_each_agent_has_answered(database: str) -> None:
    gates = [Gate(), Gate()]
    providers = {
        "one": FunctionProvider(gates[0]._answer, name="one"),
        "two": FunctionProvider(gates[1]._answer, name="two"),
    }
    with ActorSystem.open(database, OfflineProvider(), providers=providers) as system:
        root = system.root
        children = [root.fork("go", model=f"{name}:x") for name in providers]
        for gate in gates:
            gate.wait_until_asked()
        waiting = Waiting(lambda: root.wait(children, timeout=LONG))
        gates[0].open()
        children[0].reply(timeout=DEADLINE)
        assert root.wait(children[:1], timeout=LONG) == {children[0]: "idle"}
        assert waiting.goes_on
        children[0].send(root, "after it was idle")  # told, though it was idle before
        gates[1].open()
        assert waiting.answer == {children[0]: "mail", children[1]: "idle"}


@pytest.mark.slow("takes a tenth of a second")
def test_an_agent_with_a_prompt_that_was_accepted_is_not_idle(database: str) -> None:
    with ActorSystem.open(database, ScriptedProvider(lambda request: "answered")) as system:
        root, child = system.root, system.root.fork()
        for _ in range(10):
            turn = child.prompt("go")
            assert root.wait([child], timeout=DEADLINE) == {child: "idle"}
            assert turn.done()
            assert child.record.turn == 0


@pytest.mark.thorough("a race by chance")
def test_mail_that_an_agent_sends_just_before_it_is_idle_is_never_missed(database: str) -> None:
    def answer(request: Request) -> str | Reply:
        return "sent" if results(request) else calling(("send", {"to": "boss", "body": "the result"}))

    with ActorSystem.open(database, ScriptedProvider(answer)) as system:
        boss = system.root.fork(name="boss")
        for _ in range(15):
            children = [boss.fork("go") for _ in range(4)]
            assert boss.wait(children, timeout=DEADLINE) == dict.fromkeys(children, "mail")
            assert len(boss.read_mail()) == 4


@pytest.mark.slow("takes a tenth of a second")
def test_no_wait_sleeps_through_what_ends_it(database: str) -> None:
    """Agents that send, work, and end at random moments, while others begin to wait for them."""
    random = Random(5)
    with ActorSystem.open(database, ScriptedProvider(lambda request: "done")) as system:
        root = system.root
        waiters = [root.fork() for _ in range(3)]
        for _ in range(5):
            workers = [root.fork() for _ in range(3)]
            for worker in workers:
                worker.prompt("go")
            waiting = [Waiting(partial(who.wait, workers, timeout=LONG)) for who in waiters]
            anybody = [Waiting(partial(who.wait, timeout=LONG)) for who in waiters]
            for worker in random.sample(workers, 3):
                if random.random() < 0.5:
                    worker.aio.send(random.choice(waiters), "text")
                if random.random() < 0.3:
                    worker.aio.exit("done")
            for caller in waiting:
                answers = caller.answer
                assert isinstance(answers, dict), answers
                assert set(answers.values()) <= {"mail", "idle", "dead"}
            for who in waiters:
                root.send(who, "now")
            assert all(isinstance(caller.answer, dict) and caller.answer for caller in anybody)
            for who in waiters:
                who.read_mail()
        assert system.statistics().waits == 0


@pytest.mark.thorough("mail that ends a wait, as above, from elsewhere")
def test_mail_of_another_process_ends_a_wait(durable: str) -> None:
    with open_system(durable) as system:
        waiting = Waiting(lambda: system.root.wait(timeout=LONG))
        eventually(lambda: system.statistics().waits, "the wait")
        store = open_store(durable)  # a connection of its own, as another process has
        write_alone(store, Send(system.root.uuid, None, "from outside", 5))
        store.close()
        assert waiting.answer == {"": "mail"}


def test_what_makes_no_sense_is_refused(database: str) -> None:
    with open_system(database) as system:
        root = system.root
        for timeout in (-1, float("nan"), float("inf")):
            with pytest.raises(BadInput, match="timeout"):
                root.wait(timeout=timeout)
        with pytest.raises(BadInput, match="Expected an agent"):
            root.wait([5])  # type: ignore[list-item]
        gone = root.fork()
        gone.kill()
        with pytest.raises(AgentDead):
            gone.wait()
        assert root.wait([], timeout=LONG) == {}
        with pytest.raises(AmbiguousAgent):
            several(root)


def several(root: AgentRef) -> None:
    """Wait for a prefix that is not unique."""
    from tests.kit.trees import add

    for uuid in ("abcd" + "x" * 18, "abcd" + "y" * 18):
        root.system._store.write(lambda tx, uuid=uuid: add(tx, uuid, root.uuid))  # type: ignore[misc]
    root.wait(["abcd"], timeout=0)


def test_code_of_an_agent_does_not_wait_for_its_own_turn(database: str) -> None:
    def answer(request: Request) -> str:
        me = current_agent()
        with pytest.raises(WouldWaitForItself):
            me.wait([me])
        with pytest.raises(WouldWaitForItself):
            me.system.root.wait([me])
        return str(me.wait([me.system.root], timeout=DEADLINE)[me.system.root])

    with ActorSystem.open(database, FunctionProvider(answer)) as system:
        assert system.root.fork().prompt("go").get(timeout=DEADLINE).text == "idle"


def test_an_await_that_is_cancelled_ends_its_wait_and_no_other(database: str) -> None:
    with open_system(database) as system:
        root = system.root

        async def interrupted() -> object:
            cancelled, other = (asyncio.ensure_future(root.aio.wait(timeout=LONG)) for _ in range(2))
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(root.aio.wait(timeout=LONG), 0.001)
            assert system.statistics().waits == 2
            cancelled.cancel()
            with pytest.raises(asyncio.CancelledError):
                await cancelled
            assert system.statistics().waits == 1
            await root.aio.send(root, "text")
            return await asyncio.wait_for(other, DEADLINE)

        assert asyncio.run(interrupted()) == {root: "mail"}
        assert system.statistics().waits == 0
