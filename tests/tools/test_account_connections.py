"""The connections of the accounts at a remote server: how many there are, and when they are closed."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from ikigai_actors.testing import ManualClock
from ikigai_actors.tools.function import Result, ToolError
from ikigai_actors.tools.mcp.account_connections import (
    IDLE_CONNECTION,
    MOST_CONNECTIONS_OF_ACCOUNTS,
    AccountConnections,
)
from ikigai_actors.tools.mcp.remote import RemoteConnection, RemoteRun
from ikigai_actors.tools.mcp.server import LINE_LIMIT, START_TIMEOUT
from tests.kit.remote_mcp import RemoteMcp

pytestmark = pytest.mark.slow("starts servers on loopback")


class Everybody:
    """Accounts that are all connected."""

    async def token(self, server: str, subject: str, refused: str = "") -> str | None:
        return f"token-of-{subject}"


class Bank:
    """The connections of everybody to a server, with a clock that a test sets."""

    def __init__(self, server: RemoteMcp) -> None:
        self.server, self.clock = server, ManualClock()
        remotes: Any = Everybody()
        self.connections = AccountConnections(server.url, "user", {}, remotes, self._made, self.clock.monotonic)

    def _made(self) -> RemoteConnection:
        return RemoteConnection(
            lambda on_end, bearer: RemoteRun("t", self.server.url, {}, START_TIMEOUT, LINE_LIMIT, on_end, bearer),
            lambda run, tools: None,
        )

    async def add(self, user: str) -> Result:
        result: Result = await self.connections.call_as(user, lambda it: it.call("add", {"a": 2, "b": 3}))
        return result

    def run(self, work: Callable[[], Awaitable[None]]) -> None:
        async def main() -> None:
            try:
                await work()
            finally:
                await self.connections.close()

        asyncio.run(main())


@pytest.fixture
def bank() -> Iterator[Bank]:
    server = RemoteMcp().start()
    yield Bank(server)
    server.stop()


def test_a_connection_that_was_idle_for_ten_minutes_is_closed_and_made_again(bank: Bank) -> None:
    async def calls() -> None:
        await bank.add("anna")
        bank.clock.advance(IDLE_CONNECTION - 1)
        await bank.add("bob")
        await bank.add("anna")
        assert bank.server.connections == 2
        bank.clock.advance(IDLE_CONNECTION)
        await bank.add("bob")  # closes that of anna, and goes on with its own
        assert bank.server.connections == 2
        assert await bank.add("anna") == Result("5")
        assert bank.server.connections == 3

    bank.run(calls)


@pytest.mark.thorough("a race of closes; every run has a connection that is closed and made again")
def test_calls_that_close_the_same_connections_at_once_do_not_disturb_one_another(bank: Bank) -> None:
    async def calls() -> None:
        for user in ("anna", "bob", "carla"):
            await bank.add(user)
        bank.clock.advance(IDLE_CONNECTION)
        answers = await asyncio.gather(*(bank.add(user) for user in ("dora", "emil", "bob", "carla")))
        assert answers == [Result("5")] * 4

    bank.run(calls)


def test_of_a_hundred_connections_the_one_unused_longest_makes_room_and_none_in_use_does(bank: Bank) -> None:
    async def calls() -> None:
        async def first(connection: RemoteConnection) -> RemoteConnection:
            return connection

        users = [f"user-{number}" for number in range(MOST_CONNECTIONS_OF_ACCOUNTS)]
        had = {}
        for user in users:
            had[user] = await bank.connections.call_as(user, first)
            bank.clock.advance(1)
        await bank.add("one more")
        assert await bank.connections.call_as(users[1], first) is had[users[1]]
        assert await bank.connections.call_as(users[0], first) is not had[users[0]]

    bank.run(calls)


def test_a_call_beyond_a_hundred_that_are_in_use_did_not_run_and_runs_later(bank: Bank) -> None:
    async def calls() -> None:
        free = asyncio.Event()

        async def busy(connection: RemoteConnection) -> None:
            connection.calls += 1  # as a call does that is on its way
            await free.wait()
            connection.calls -= 1

        users = [f"user-{number}" for number in range(MOST_CONNECTIONS_OF_ACCOUNTS)]
        tasks = [asyncio.ensure_future(bank.connections.call_as(user, busy)) for user in users]
        await asyncio.sleep(0)
        with pytest.raises(ToolError, match=r"100 accounts at .* are in use at once\. This call did not run"):
            await bank.add("one more")
        assert not bank.server.calls
        free.set()
        await asyncio.gather(*tasks)
        assert await bank.add("one more") == Result("5")

    bank.run(calls)
