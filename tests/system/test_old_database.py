"""A database of an earlier version, opened by this one."""

from collections.abc import Callable
from contextlib import closing

import pytest

from ikigai_actors import ActorSystem, OfflineProvider
from ikigai_actors.records.fsck.check import check
from ikigai_actors.store import Transaction, open_store
from ikigai_actors.store.migrations import newest, schema_version
from ikigai_actors.store.queries import split
from tests.kit.databases import DEADLINE, sql
from tests.store.test_migrations import FIRST_PUBLISHED

pytestmark = pytest.mark.empty

AGENTS = """
INSERT INTO hosts (id, hostname, pid, epoch, started_at, lease_until, ended_at) VALUES ('host', 'here', 1, 1, 1, 0, 2);
INSERT INTO agents (uuid, fork_message_id, status, created_at, owner, epoch)
VALUES ('root', 0, 'running', 1, 'host', 1);
INSERT INTO agents (uuid, name, parent_uuid, supervisor_uuid, fork_message_id, status, created_at, owner, epoch)
VALUES ('child-1', 'one', 'root', 'root', 0, 'running', 2, 'host', 1),
       ('child-2', 'two', 'root', 'root', 1, 'running', 3, 'host', 1),
       ('kid-1', 'kid', 'child-2', 'child-2', 2, 'running', 4, 'host', 1);
INSERT INTO messages (agent_uuid, id, kind, content, data, created_at)
VALUES ('root', 1, 'fork', '', '{"child":"child-1"}', 2), ('child-1', 1, 'fork', '', '{"parent":"root"}', 2),
       ('root', 2, 'fork', '', '{"child":"child-2"}', 3), ('child-2', 2, 'fork', '', '{"parent":"root"}', 3),
       ('child-2', 3, 'fork', '', '{"child":"kid-1"}', 4), ('kid-1', 3, 'fork', '', '{"parent":"child-2"}', 4);
"""


def test_the_agents_of_an_earlier_version_go_on(durable_url: Callable[[], str]) -> None:
    url = durable_url()

    def make_old(tx: Transaction) -> None:
        for statement in split(FIRST_PUBLISHED + AGENTS):
            sql(tx, statement)
        tx.run("set_schema_version", version=1)

    with closing(open_store(url)) as store:
        store.write(make_old)
        with ActorSystem.open(url, OfflineProvider()) as system:
            assert schema_version(system.store) == newest()
            root, one, two, kid = (system.agent(name).record for name in ("root", "one", "two", "kid"))
            assert kid.shard == two.shard
            assert len({root.shard, one.shard, two.shard}) > 1
            for agent in (root, one, two, kid):
                assert system.handle(agent.uuid).prompt("still there?").get(timeout=DEADLINE).text
        assert check(store) == []
