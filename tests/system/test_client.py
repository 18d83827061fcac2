"""Clients: what is read and written beside a host, without threads."""

from pathlib import Path

import pytest

from ikigai_actors import ActorSystem, Reply, ScriptedProvider
from ikigai_actors.errors import StoreUnusable
from ikigai_actors.reach.following import commits_of
from ikigai_actors.shell.agent_lists import read_list
from ikigai_actors.system.attached import AttachedSystem
from ikigai_actors.system.remote.client import Client
from ikigai_actors.system.remote.turn import RemoteTurn
from tests.kit.blocking_provider import DEADLINE
from tests.kit.echo import echo


def test_a_turn_of_another_process_is_prompted_and_waited_for(durable: str) -> None:
    with ActorSystem.open(durable, ScriptedProvider(echo)) as system, Client.open(durable) as client:
        kid = system.root.fork(name="kid")
        assert client.find("kid").uuid == kid.uuid
        with commits_of(client, [kid.uuid]) as feed:
            turn = RemoteTurn(kid.uuid, prompt=client.prompt(kid.uuid, "tea"))
            end = feed.await_turn(turn, DEADLINE, lambda: pytest.fail("There is a host."))
        assert isinstance(end, Reply)
        assert end.text == "tea / 1"
        assert read_list(client).state(client.get(kid.uuid)) == "idle"


def test_a_turn_that_nobody_takes_up_is_waited_for_no_longer_than_asked(durable: str) -> None:
    with ActorSystem.open(durable, ScriptedProvider(echo)) as system:
        root = system.root.uuid
    with Client.open(durable) as client, commits_of(client, [root]) as feed:
        assert client.host() is None
        mail = client.prompt(root, "tea")
        assert feed.await_turn(RemoteTurn(root, prompt=mail), 0, lambda: None) is None


@pytest.mark.parametrize("kind", [Client, AttachedSystem])
def test_a_database_that_is_not_there_is_refused_and_not_made(
    tmp_path: Path, kind: type[Client] | type[AttachedSystem]
) -> None:
    with pytest.raises(StoreUnusable, match="There is no database"):
        kind.open(str(tmp_path / "none.db"))
    assert list(tmp_path.iterdir()) == []
