"""The setting ``notify``: an idle agent is told of unread mail once, until its mailbox was looked at."""

from contextlib import closing

import pytest

from ikigai_actors import ActorSystem, AgentRef, BadInput, ScriptedProvider
from ikigai_actors.records.fsck import check as fsck
from ikigai_actors.records.mail.mail import Send
from ikigai_actors.store import open_store
from ikigai_actors.store.unit import write_alone
from tests.kit.blocking_provider import DEADLINE, Gate
from tests.kit.databases import eventually
from tests.kit.tool_scripts import calling, prompts, scripted


def notices(agent: AgentRef) -> list[str]:
    """What an agent was told of its mailbox."""
    return [message.content for message in agent.history(all=True) if message.kind == "mail"]


def notice_of(number: int) -> str:
    return f"You have {number} unread mail{'s' * (number != 1)}: check_mail looks at the mailbox, read_mail reads."


def quiet(agent: AgentRef) -> None:
    """Let what has begun come to an end."""
    agent.system.root.wait([agent], timeout=DEADLINE)
    agent.configure(max_tokens=1000)  # behind all that the agent did by itself


def test_an_idle_agent_is_told_once_until_it_has_looked(database: str) -> None:
    script = scripted(kid=[calling("check_mail"), "looked", calling("read_mail"), "read"])
    with ActorSystem.open(database, script) as system:
        kid = system.root.fork(name="kid")
        kid.configure(notify=True)
        for text in "ab":
            system.root.send(kid, text)
            quiet(kid)
        assert notices(kid) == [notice_of(1)]
        assert kid.prompt("go").get(timeout=DEADLINE).text == "looked"
        assert prompts(script.requests[0]) == [notice_of(1), "go"]
        quiet(kid)
        assert notices(kid) == [notice_of(1), notice_of(2)]  # it has looked, and left it there
        assert kid.prompt("go").get(timeout=DEADLINE).text == "read"
        quiet(kid)
        system.root.send(kid, "c")
        quiet(kid)
        assert notices(kid) == [notice_of(1), notice_of(2), notice_of(1)]


def test_who_has_not_the_setting_is_told_nothing_and_who_gets_it_at_once(database: str) -> None:
    with ActorSystem.open(database, ScriptedProvider(lambda request: "done")) as system:
        kid = system.root.fork()
        system.root.send(kid, "text")
        kid.prompt("go").get(timeout=DEADLINE)
        quiet(kid)
        assert notices(kid) == []
        kid.configure(notify=True)
        quiet(kid)
        assert notices(kid) == [notice_of(1)]
        kid.read_mail()
        kid.configure(notify=False)
        system.root.send(kid, "text")
        quiet(kid)
        assert notices(kid) == [notice_of(1)]
        with pytest.raises(BadInput, match="True or False"):
            kid.configure(notify="on")


def test_mail_that_comes_during_a_turn_is_told_of_at_its_end(database: str) -> None:
    gate = Gate()
    with ActorSystem.open(database, gate.provider) as system:
        kid = system.root.fork()
        kid.configure(notify=True)
        turn = kid.prompt("go")
        gate.wait_until_asked()
        system.root.send(kid, "one")
        system.root.fork().kill()
        system.root.send(kid, "two")
        gate.open()
        turn.get(timeout=DEADLINE)
        quiet(kid)
        assert [message.kind for message in kid.history()][-2:] == ["mail", "configure"]
        assert notices(kid) == [notice_of(2)]


def test_who_reads_by_a_handle_has_looked(database: str) -> None:
    with ActorSystem.open(database, ScriptedProvider(lambda request: "done")) as system:
        kid = system.root.fork()
        kid.configure(notify=True)
        system.root.send(kid, "text")
        quiet(kid)
        kid.read_mail()
        system.root.send(kid, "text")
        quiet(kid)
        assert notices(kid) == [notice_of(1), notice_of(1)]


def mail_from_elsewhere(database: str, agent: AgentRef) -> None:
    """Another process sends an agent its first mail, and it is told, for it is awake."""
    quiet(agent)
    with closing(open_store(database)) as store:
        write_alone(store, Send(agent.uuid, None, "text", 5))
    eventually(lambda: notices(agent) == [notice_of(1)], "the notice")


def test_a_restart_repeats_nothing(durable: str) -> None:
    with ActorSystem.open(durable, ScriptedProvider(lambda request: "done")) as system:
        for name in ("kid", "witness"):
            system.root.fork(name=name).configure(notify=True)
        system.root.send("kid", "text")
        quiet(system.agent("kid"))
    with ActorSystem.open(durable, ScriptedProvider(lambda request: "done")) as system:
        kid = system.agent("kid")
        system.root.send(kid, "text")
        kid.prompt("go").get(timeout=DEADLINE)
        mail_from_elsewhere(durable, system.agent("witness"))  # the kid, older, was bidden to look before it
        quiet(kid)
        assert notices(kid) == [notice_of(1)]
        kid.clear()  # it knows no more that it was told
        system.root.send(kid, "text")
        quiet(kid)
        assert notices(kid) == [notice_of(1), notice_of(3)]
        assert list(fsck.check(system._store)) == []


def test_mail_of_another_process_is_told_of(durable: str) -> None:
    with ActorSystem.open(durable, ScriptedProvider(lambda request: "done")) as system:
        kid = system.root.fork()
        kid.configure(notify=True)
        mail_from_elsewhere(durable, kid)


def test_a_childs_settings_tell_it_of_its_own_mail_alone(database: str) -> None:
    with ActorSystem.open(database, ScriptedProvider(lambda request: "done")) as system:
        boss = system.root.fork()
        boss.configure(notify=True)
        system.root.send(boss, "text")
        quiet(boss)
        kid = boss.fork("go")
        kid.reply(timeout=DEADLINE)
        quiet(kid)
        assert [message.agent_uuid for message in kid.history() if message.kind == "mail"] == [boss.uuid]
