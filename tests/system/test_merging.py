"""Branches of a conversation come back together: diffs and merges, of programs, people and models."""

from ikigai_actors import ActorSystem, ScriptedProvider
from ikigai_actors.system.attached import AttachedSystem
from ikigai_actors.system.remote.client import Client
from tests.kit.blocking_provider import DEADLINE
from tests.kit.echo import echo
from tests.kit.sessions import OpenSession
from tests.kit.tool_scripts import calling, requests_of, results, scripted


def test_a_diff_tells_what_is_in_common_and_what_each_has_said_since(durable: str) -> None:
    with ActorSystem.open(durable, ScriptedProvider(echo)) as system:
        root = system.root
        root.prompt("tea").get(timeout=DEADLINE)
        root.mark("here")
        child = root.fork("coffee", name="kid")
        child.reply(timeout=DEADLINE)
        root.prompt("milk").get(timeout=DEADLINE)
        found = root.diff("kid")
        assert (found.common, found.holder) == (3, root.uuid)
        assert [one.kind for one in found.a.messages] == ["fork", "user", "assistant"]
        assert [one.content for one in found.b.messages] == ["", "coffee", "coffee / 3"]
        assert (found.b.agent, found.b.name, found.b.head, found.b.forgets) == (child.uuid, "kid", 6, False)
        child.rewind()
        back = child.diff(root)
        assert back.b == found.a
        assert ([one.kind for one in back.a.messages], back.a.forgets) == (["rewind"], False)
        child.clear()
        child.kill()
        assert root.diff(child).b.messages == ()
        assert root.diff(child).b.forgets
        assert root.diff(root).common == root.diff(root).a.head
        with AttachedSystem.open(durable) as attached, Client.open(durable) as client:
            assert attached.root.diff("kid") == root.diff("kid") == client.diff(root.uuid, "kid")


def test_a_model_sees_the_diff_of_its_child(database: str) -> None:
    provider = scripted(["tea", calling(("diff", {"agent": "kid"})), calling(("diff", {"agent": "nobody"})), "done"])
    with ActorSystem.open(database, provider) as system:
        system.root.prompt("brew").get(timeout=DEADLINE)
        child = system.root.fork(name="kid")
        child.mark()
        system.root.prompt("look").get(timeout=DEADLINE)
    [seen] = results(requests_of(provider, None)[2])
    assert seen.content.splitlines() == [
        "In common: the messages up to 2.",
        "",
        "You: 2 more",
        "  4 user: look",
        "  5 assistant: [calls diff]",
        "",
        f"kid ({child.uuid}): nothing more",
    ]
    assert results(requests_of(provider, None)[3])[0].is_error


def test_the_shell_shows_a_diff(open_session: OpenSession) -> None:
    session = open_session(ScriptedProvider(echo))
    lines = session("tea", "/fork --name kid --no-follow", "/diff kid", "/diff nobody")
    root, child = session.system.root.uuid[:6], session.system.agent("kid").uuid[:6]
    at = lines.index("In common: the messages up to 2.")
    assert lines[at + 1 : -1] == [
        "",
        f"{root}: 1 more                         │ kid ({child}): 1 more",
        f"   3  fork  forked {child}              │    3  fork  inherited: 2 messages from",
        f"                                       │       {root}",
    ]
    assert lines[-1].startswith("error: No agent is named 'nobody'")
