"""Groups and monitors of a running system: handles, tools, other processes and hosts, terminals."""

import asyncio

import pytest
from click.testing import CliRunner

from ikigai_actors import ActorSystem, AgentRef, BadInput, OfflineProvider, Reply, ScriptedProvider, ToolCall
from ikigai_actors.errors import GroupEmpty
from ikigai_actors.records.agents.words import words_of
from ikigai_actors.shell.cli.main import cli
from ikigai_actors.system.attached import AttachedSystem
from ikigai_actors.testing import CrashPoint, ProcessCrashed, simulated
from tests.kit.blocking_provider import DEADLINE
from tests.kit.echo import echo
from tests.kit.sessions import OpenSession


def bodies(agent: AgentRef) -> list[str]:
    return [mail.body for mail in agent.read_mail()]


def test_a_mail_to_a_group_ends_the_waits_of_its_members(durable: str) -> None:
    with ActorSystem.open(durable, OfflineProvider()) as system, AttachedSystem.open(durable) as attached:
        root = system.root
        ann, ben = root.fork(name="ann"), root.fork(name="ben")
        assert (ann.join("team"), attached.agent("ben").join("team"), ben.join("team")) == (True, True, False)
        [(name, members)] = system.groups().items()
        assert (name, {member.name for member in members}) == ("team", {"ann", "ben"})
        waiting = ben.aio.wait(timeout=DEADLINE)
        assert ann.send("group:team", "tea") == 1
        assert waiting.get(timeout=DEADLINE) == {ann: "mail"}
        assert system.send("group:team", "of a person") == 2
        assert attached.root.send("group:team", "of another process") == 2
        assert bodies(ben) == ["tea", "of a person", "of another process"]
        assert ben.leave("team")
        with pytest.raises(GroupEmpty):
            ann.send("group:team", "nobody else")
        with pytest.raises(BadInput, match="sent later"):
            ann.send("group:team", "tea", after=5)
        with pytest.raises(BadInput, match="A name is"):
            ann.send("group:", "tea")


def test_an_agent_monitors_one_that_is_not_its_child(durable: str) -> None:
    with ActorSystem.open(durable, OfflineProvider()) as system, AttachedSystem.open(durable) as attached:
        ann, ben, cai = (system.root.fork(name=name) for name in ("ann", "ben", "cai"))
        ann.monitor(ben)
        attached.agent("cai").monitor("ben")
        cai.monitor(ben)
        assert cai.demonitor(ben)
        assert not cai.demonitor(ben)
        waiting = ann.aio.wait(timeout=DEADLINE)
        ben.exit("the answer")
        assert waiting.get(timeout=DEADLINE) == {ben: "dead"}
        [mail] = ann.read_mail()
        assert (mail.kind, mail.sender, mail.body) == ("exit", ben.uuid, "the answer")
        assert cai.read_mail() == []
        cai.monitor(ben)
        assert [mail.body for mail in cai.read_mail(ben)] == ["the answer"]


def test_an_asyncio_program_joins_and_leaves() -> None:
    async def run(agent: AgentRef) -> list[bool]:
        return [await agent.aio.join("team"), await agent.aio.leave("team"), await agent.aio.leave("team")]

    with ActorSystem.open(":memory:", OfflineProvider()) as system:
        assert asyncio.run(run(system.root)) == [True, True, False]


@pytest.mark.parametrize("committed", [False, True])
def test_a_crash_at_the_commit_of_a_mail_to_a_group_leaves_it_with_all_or_with_nobody(committed: bool) -> None:
    with simulated() as world:
        root = world.open(ScriptedProvider(echo)).root
        kids = root.fork(prompts=[None] * 3)
        for kid in kids:
            kid.join("team")
        world.crash_at(CrashPoint(1, committed=committed))
        with pytest.raises(ProcessCrashed):
            root.send("group:team", "tea")
        world.recover()
        assert [bodies(world.system.handle(kid.uuid)) for kid in kids] == [["tea"] if committed else []] * 3


@pytest.mark.slow("several simulated hosts")
def test_members_and_watchers_on_other_hosts_are_reached() -> None:
    with simulated(hosts=3) as world:
        world.open(ScriptedProvider(echo))
        world.sleep(5)
        a, b, c = world.hosts
        ann, ben = a.system.root.fork(name="ann"), a.system.root.fork(name="ben")
        a.move(ann, b)
        a.move(ben, c)
        for kid in (ann, ben):
            b.system.handle(kid.uuid).join("team")
        b.system.handle(ann.uuid).monitor(ben.uuid)
        assert c.system.handle(ben.uuid).send("group:team", "tea") == 1
        a.system.handle(ben.uuid).kill(reason="enough")
        assert [(mail.kind, mail.body) for mail in ann.read_mail()] == [("mail", "tea"), ("exit", "killed: enough")]
        assert [member.uuid for member in a.system.groups()["team"]] == [ann.uuid]


@pytest.mark.slow("takes a tenth of a second")
def test_a_model_joins_sends_and_monitors_and_is_told_what_it_may_not() -> None:
    calls = [
        ToolCall("join_group", {"group": "team"}),
        ToolCall("join_group", {"group": "team"}),
        ToolCall("send", {"to": "group:team", "body": "tea"}),
        ToolCall("send", {"to": "group:others", "body": "tea"}),
        ToolCall("send", {"to": "group:o t", "body": "tea"}),
        ToolCall("monitor", {"agent": "ben"}),
        ToolCall("monitor", {"agent": "nobody"}),
        ToolCall("leave_group", {"group": "team"}),
        ToolCall("leave_group", {"group": "-"}),
    ]
    script: list[str | Reply] = [Reply("", tuple(calls)), "done"]
    with simulated() as world:
        root = world.open(ScriptedProvider(lambda request: script.pop(0))).root
        ann, ben = root.fork(name="ann"), root.fork(name="ben")
        ben.join("team")
        ann.prompt("go").get(timeout=60)
        results = [message.content for message in ann.history() if message.kind == "tool_result"]
        assert results[:3] == ["Joined.", "You were a member already.", "Sent to 1 members."]
        assert "Nobody else is in group others" in results[3]
        assert "A name is" in results[4]
        assert results[5] == "You will get mail when it ends."
        assert "nobody" in results[6]
        assert results[7] == "Left."
        assert "A name is" in results[8]
        ben.kill()
        assert [mail.kind for mail in ann.read_mail()] == ["exit"]


def test_a_person_uses_groups_and_monitors_at_a_terminal(open_session: OpenSession) -> None:
    session = open_session(OfflineProvider())
    assert session("/group") == ["No groups."]
    ann = session.system.root.fork(name="ann")
    ann.join("team")
    root = words_of(session.system.root.uuid)
    assert session("/group join team", "/group join team") == [f"{root} is now in team", f"{root} was already in team"]
    assert session("/group") == [f"team: {', '.join(sorted(['ann', root]))}"]
    assert session("/send group:team tea time") == ["mail to 1 members of team"]
    assert session("/group leave team", "/group leave team") == [f"{root} has left team", f"{root} was not in team"]
    assert session("/monitor ann")[0].startswith(f"{root} will hear of the death of ann")
    assert session("/monitor ann --off")[0].startswith(f"{root} hears no more of ann")
    for wrong, message in (("/group join", "Say which group"), ("/group join a:b", "A name is"), ("/monitor x1", "x1")):
        assert message in " ".join(session(wrong))


def test_a_command_sends_to_a_group_beside_a_running_system(durable: str) -> None:
    with ActorSystem.open(durable, OfflineProvider()) as system:
        ann = system.root.fork(name="ann")
        ann.join("team")
        sent = CliRunner().invoke(cli, ["--database", durable, "send", "group:team", "tea"])
        assert (sent.exit_code, sent.stdout) == (0, "mail to 1 members of team\n")
        assert CliRunner().invoke(cli, ["--database", durable, "send", "group:none", "tea"]).exit_code == 1
        assert bodies(ann) == ["tea"]
