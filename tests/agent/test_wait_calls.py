"""Models that wait: for mail, for children that they fork in the same reply, over a crash, and very many at once."""

import json
import signal
import threading
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from ikigai_actors import (
    ActorSystem,
    AgentRef,
    Reply,
    Request,
    ScriptedProvider,
    Signal,
)
from ikigai_actors.agent.turn.request import NOT_RUN
from ikigai_actors.providers.scripted import Script
from ikigai_actors.store import open_store
from ikigai_actors.store.migrations import ensure_schema
from tests.kit.blocking_provider import DEADLINE
from tests.kit.databases import eventually, python
from tests.kit.programs import cheaper
from tests.kit.tool_scripts import calling, requests_of, results, scripted, trail
from tests.kit.trees import plant

"""Models that wait at once."""


def waits(agent: AgentRef) -> bool:
    """Whether the agent has begun a ``wait`` that is not over."""
    kinds = [(message.kind, message.content) for message in agent.history(all=True)]
    return kinds[-1:] == [("tool_call", "wait")] and agent.system.statistics().waits > 0


def test_fork_wait_and_read_in_one_reply_is_the_usual_orchestration(database: str) -> None:
    forks = [("fork", {"name": name, "prompt": f"be {name}"}) for name in "abc"]
    reply: Script = [calling("check_mail", *forks, ("wait", {"children": True}), "check_mail", "read_mail"), "all told"]
    sent: dict[str, Script] = {
        name: [calling(("send", {"to": "boss", "body": f"I am {name}"})), "ok"] for name in "abc"
    }
    script = scripted(boss=reply, **sent)
    with ActorSystem.open(database, script) as system:
        boss = system.root.fork(name="boss")
        assert boss.prompt("go").get(timeout=DEADLINE).text == "all told"
        before, waited, after, read, *forked = results(requests_of(script, "boss")[1])
        assert before.content == "No unread mail."
        assert json.loads(waited.content) == {child.record.short: "mail" for child in boss.children()}
        assert after.content.startswith("3 unread: 1 from ")
        for name in "abc":
            assert f" from {name}:\nI am {name}" in read.content
            outcomes = results(requests_of(script, name)[0])
            assert [result.content for result in outcomes if result.content == NOT_RUN][-3:] == [NOT_RUN] * 3
        assert len(forked) == 3
        assert boss.check_mail().unread == 0


def test_children_that_ended_before_the_wait_began_are_told_as_long_as_nobody_read_of_it(database: str) -> None:
    script = scripted(
        [
            calling(("fork", {"name": "kid"})),
            calling(("wait", {"agents": ["kid"]})),
            calling(("wait", {"children": True}), "read_mail", ("wait", {"children": True})),
            "done",
        ],
        kid=[calling(("exit", {"result": "the answer"}))],
    )
    with ActorSystem.open(database, script) as system:
        assert system.root.prompt("go").get(timeout=DEADLINE).text == "done"
        [first] = results(requests_of(script, None)[2])
        again, read, nobody = results(requests_of(script, None)[3])
        assert json.loads(first.content) in ({"kid": "dead"}, {"kid": "unknown"})
        assert json.loads(again.content) == {"kid": "dead"}
        assert read.content == "mail 1 from kid:\n[exit] the answer"
        assert nobody.content == "You have no children to wait for."


def test_without_agents_a_wait_ends_with_mail_or_with_its_time(database: str) -> None:
    script = scripted([calling(("wait", {"timeout": 0})), calling("wait"), "done"])
    with ActorSystem.open(database, script) as system:
        other = system.root.fork()
        turn = system.root.prompt("go")
        eventually(lambda: len(requests_of(script, None)) == 2 and waits(system.root), "the second wait")
        other.send(system.root, "text")
        assert turn.get(timeout=DEADLINE).text == "done"
        assert results(requests_of(script, None)[1])[0].content == "No mail came in that time."
        assert json.loads(results(requests_of(script, None)[2])[0].content) == {other.uuid: "mail"}


def test_a_wait_for_oneself_and_other_mistakes_are_results_that_help(database: str) -> None:
    wrong: list[Mapping[str, Any]] = [
        {"agents": ["boss"]},
        {"timeout": -1},
        {"timeout": "5"},
        {"agents": "kid"},
        {"agents": [""]},
        {"who": "kid"},
    ]
    script = scripted(boss=[calling(*(("wait", arguments) for arguments in wrong)), "done"])
    with ActorSystem.open(database, script) as system:
        assert system.root.fork(name="boss").prompt("go").get(timeout=DEADLINE).text == "done"
        outcomes = results(requests_of(script, "boss")[1])
        assert all(result.is_error for result in outcomes)
        assert [result.content.split(",")[0] for result in outcomes] == [
            "That is you: you would wait for the end of your own turn. Wait for others.",
            "wait wants timeout to be 0 to 604",
            "wait wants timeout to be a number",
            "wait wants agents to be a list of texts",
            "wait wants agents to be a list of texts",
            "wait takes agents",
        ]


def test_a_death_and_a_stop_end_nothing_but_their_own(database: str) -> None:
    with ActorSystem.open(database, scripted(a=[calling("wait"), "a"], b=[calling("wait"), "b"])) as system:
        a, b = system.root.fork(name="a"), system.root.fork(name="b")
        a.prompt("go")
        turn = b.prompt("go")
        eventually(lambda: system.statistics().waits == 2, "both waits")
        a.kill()
        eventually(lambda: system.statistics().waits == 1, "the end of one")
        b.signal(Signal.STOP)
        system.root.send(b, "text")
        eventually(lambda: not system.statistics().waits, "the end of the other")
        assert not turn.done()
        b.signal(Signal.CONT)
        assert turn.get(timeout=DEADLINE).text == "b"


def test_an_approved_process_call_is_performed(database: str) -> None:
    script = scripted([calling(("send", {"to": "kid", "body": "text"})), "done"])
    with ActorSystem.open(database, script, approvals=lambda call: True) as system:
        kid = system.root.fork(name="kid")
        system.root.set_rule("ask", "send")
        assert system.root.prompt("go").get(timeout=DEADLINE).text == "done"
        assert [mail.body for mail in kid.mails()] == ["text"]
        assert results(requests_of(script, None)[1])[0].content == "Sent: mail 1 in its mailbox."


def test_a_wait_goes_on_after_a_restart_with_the_deadline_that_it_had(durable: str) -> None:
    with ActorSystem.open(durable, scripted([calling(("wait", {"timeout": 500}))])) as system:
        system.root.prompt("go")
        eventually(lambda: waits(system.root), "the wait")
        [begun] = [message for message in system.root.history(all=True) if message.kind == "tool_call"]
        assert begun.data["deadline"] - begun.created_at == 500_000
    script = scripted(["done"])
    with ActorSystem.open(durable, script, resume=False) as system:
        assert system.root.state == "interrupted"
        assert system.statistics().waits == 0
        assert system.root.resume(timeout=DEADLINE)
        eventually(lambda: system.statistics().waits, "the wait")
        system.send(system.root, "text")
        assert system.root.reply(timeout=DEADLINE).text == "done"
        assert json.loads(results(script.requests[0])[0].content) == {"a person outside": "mail"}
        assert trail(system.root.history(all=True))[1:] == [
            ("assistant", ""),
            ("tool_call", "1"),
            ("tool_result", "1"),
            ("assistant", ""),
        ]


WAITER = """
    import json, sys, threading
    from ikigai_actors import ActorSystem, FunctionProvider, Message, Reply, ToolCall

    def answer(request):
        if request.name == "kid":
            threading.Event().wait()
        return Reply(tool_calls=(ToolCall("wait", {"agents": ["kid"], "timeout": float(sys.argv[2])}, "1"),))

    system = ActorSystem.open(sys.argv[1], FunctionProvider(answer))
    kid = system.root.fork("work", name="kid")
    system.subscribe(lambda event: event.kind == "tool_call" and print("waits", flush=True)
                     if isinstance(event, Message) else None)
    system.root.prompt("go")
    threading.Event().wait()
"""


def killed_while_it_waited(durable: str, timeout: float) -> None:
    """Leave a database whose host was killed hard while agent 0 waited for ``kid``."""
    process = python(WAITER, durable, timeout)
    assert process.stdout is not None
    assert process.stdout.readline().strip() == "waits"
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=DEADLINE)


def open_again(durable: str, script: ScriptedProvider) -> ActorSystem:
    """Open a database whose host was killed: PostgreSQL believes it for a while."""
    from ikigai_actors import StoreInUse

    clock = threading.Event()
    while True:
        try:
            return ActorSystem.open(durable, script, resume=True)
        except StoreInUse:
            clock.wait(0.5)


def test_after_kill_9_a_wait_goes_on_and_hears_of_the_child_that_goes_on_too(durable: str) -> None:
    killed_while_it_waited(durable, 600)
    script = scripted(["done"], kid=[calling(("send", {"to": "nobody", "body": "x"})), "worked"])
    with open_again(durable, script) as system:
        assert system.root.reply(timeout=DEADLINE).text == "done"
        [outcome] = results(requests_of(script, None)[0])
        assert json.loads(outcome.content) == {"kid": "idle"}
        assert [message.kind for message in system.root.history(all=True)].count("tool_call") == 1


def children_of_root(url: str, count: int) -> list[str]:
    """So many agents in a new database; their uuids."""
    uuids = [f"{number:022}" for number in range(count)]
    store = open_store(url)
    ensure_schema(store)
    plant(store, **dict.fromkeys(uuids, "root"))
    store.close()
    return uuids


@pytest.mark.thorough("many agents")
@cheaper("many", 30, 1_000, "a thousand agents")
def test_many_agents_wait_at_once_and_hold_no_thread(new_sqlite: Callable[[], str], many: int) -> None:
    """On SQLite alone: it is the threads that are counted."""
    url = new_sqlite()
    uuids = children_of_root(url, many)

    def answer(request: Request) -> str | Reply:
        return "done" if results(request) else calling(("wait", {"timeout": 6000}))

    with ActorSystem.open(url, ScriptedProvider(answer)) as system:
        children = [system.handle(uuid) for uuid in uuids]
        turns, before = [], 0
        for child in children:  # one at a time: threads are made for those that act at once
            turns.append(child.prompt("go"))
            eventually(lambda: system.statistics().waits == len(turns), "another wait")
            before = before or threading.active_count()
        assert threading.active_count() <= before + 4  # the workers of one turn: two places, and what runs aside
        assert {child.state for child in children} == {"running tools"}
        for child in children:
            system.root.aio.send(child, "text")
        assert {turn.get(timeout=3 * DEADLINE).text for turn in turns} == {"done"}
        assert system.statistics().waits == 0


@pytest.mark.thorough("ten thousand agents")
def test_ten_thousand_waits_of_programs_hold_no_thread(new_sqlite: Callable[[], str]) -> None:
    url = new_sqlite()
    uuids = children_of_root(url, 10_000)
    with ActorSystem.open(url, ScriptedProvider(lambda request: "done")) as system:
        children = [system.handle(uuid) for uuid in uuids]
        before = threading.active_count()
        waiting = [child.aio.wait(timeout=6000) for child in children]
        assert system.statistics().waits == len(uuids)
        assert threading.active_count() <= before
        for child in children:
            system.root.aio.send(child, "text")
        answers = [future.get(timeout=DEADLINE) for future in waiting]
        assert answers == [{system.root: "mail"}] * len(uuids)
        assert system.statistics().waits == 0
