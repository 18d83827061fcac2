"""A system that was closed says so, in one way, whatever is asked of it."""

from collections.abc import Callable
from typing import cast

from ikigai_actors import ActorSystem, AgentRef, OfflineProvider, Signal
from ikigai_actors.records.agents.words import words_of
from ikigai_actors.system.attached import AttachedSystem

Use = Callable[[ActorSystem, AgentRef], object]

USES: dict[str, Use] = {
    "record": lambda system, agent: agent.record,
    "name": lambda system, agent: agent.name,
    "parent": lambda system, agent: agent.parent,
    "supervisor": lambda system, agent: agent.supervisor,
    "children": lambda system, agent: agent.children(),
    "state": lambda system, agent: agent.state,
    "history": lambda system, agent: agent.history(),
    "whole history": lambda system, agent: agent.history(all=True),
    "ranges": lambda system, agent: agent.ranges(),
    "context": lambda system, agent: agent.context(),
    "tools": lambda system, agent: agent.tools(),
    "check_mail": lambda system, agent: agent.check_mail(),
    "check_mail within a time": lambda system, agent: agent.check_mail(timeout=30),
    "read_mail": lambda system, agent: agent.read_mail(timeout=30),
    "mails": lambda system, agent: agent.mails(),
    "send": lambda system, agent: agent.send(agent, "text"),
    "wait": lambda system, agent: agent.wait([agent.uuid], timeout=0),
    "prompt": lambda system, agent: agent.prompt("hello").get(timeout=30),
    "fork": lambda system, agent: agent.fork(timeout=30),
    "reply": lambda system, agent: agent.reply(timeout=30),
    "mark": lambda system, agent: agent.mark(timeout=30),
    "signal": lambda system, agent: agent.signal(Signal.STOP, timeout=30),
    "interrupt": lambda system, agent: agent.signal(Signal.INT, timeout=30),
    "kill": lambda system, agent: agent.kill(timeout=30),
    "exit": lambda system, agent: agent.exit(timeout=30),
    "supervise": lambda system, agent: agent.supervise(intensity=1, timeout=30),
    "adopt": lambda system, agent: agent.adopt(agent, timeout=30),
    "root": lambda system, agent: system.root,
    "agent": lambda system, agent: system.agent("kid"),
    "agents": lambda system, agent: system.agents(),
    "a mail of a person": lambda system, agent: system.send(agent, "text", timeout=30),
    "subscribe": lambda system, agent: system.subscribe(print),
    "resume": lambda system, agent: system.resume(),
    "touch": lambda system, agent: system._touch(agent),
    "documents, written": lambda system, agent: system.documents.write("plan.md", "text", timeout=30),
    "documents, read": lambda system, agent: system.documents.read("plan.md"),
    "documents, listed": lambda system, agent: system.documents.list(),
    "approvals": lambda system, agent: system.approvals.pending(),
}


CLOSED = "SystemClosed: The system is closed; open it again."


def outcome(use: Use, system: ActorSystem, agent: AgentRef) -> str:
    """What comes of it, in words."""
    try:
        return repr(use(system, agent))
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def test_whatever_is_asked_of_a_closed_system_it_says_that_it_is_closed(database: str) -> None:
    with ActorSystem.open(database, OfflineProvider()) as system:
        agent = system.root.fork(name="kid")
        agent.history()  # at hand, and yet not given any more
        system.documents.write("plan.md", "text")
    assert {name: outcome(use, system, agent) for name, use in USES.items()} == dict.fromkeys(USES, CLOSED)


def test_so_does_an_attached_system_with_all_that_it_has(durable: str) -> None:
    with ActorSystem.open(durable, OfflineProvider()) as host:
        host.root.fork(name="kid")
        with AttachedSystem.open(durable) as attached:
            agent = attached.agent("kid")
        system = cast("ActorSystem", attached)
        outcomes = {name: outcome(use, system, agent) for name, use in USES.items() if name != "resume"}
    assert set(outcomes.values()) == {CLOSED}, outcomes


def test_a_handle_is_a_handle_also_when_the_system_is_closed() -> None:
    with ActorSystem.open(":memory:", OfflineProvider()) as system:
        agent = system.root.fork(name="kid")
        same = system.handle(agent.uuid)
    assert agent == same
    assert words_of(agent.uuid) in repr(agent)
    system.close()
