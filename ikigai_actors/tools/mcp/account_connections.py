"""The connections of a remote server whose callers have accounts of their own: one for each subject.

A call without a credential did not run, and names the account that somebody has to connect (`AccountNeeded`). A
credential that the server refuses is renewed once; rights that it lacks are asked for beside those that it has.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from ikigai_actors.actors.threads import in_thread
from ikigai_actors.tools.base import RemoteTools
from ikigai_actors.tools.effect_keys import acting_call
from ikigai_actors.tools.function import Result, ToolError
from ikigai_actors.tools.mcp.oauth import challenge_in, union_of
from ikigai_actors.tools.mcp.remote import NotRun, RemoteConnection

MOST_CONNECTIONS_OF_ACCOUNTS = 100
"""Subjects of a server that are connected at once."""

IDLE_CONNECTION = 600.0
"""Seconds after its last call after which a connection is closed."""


class AccountNeeded(Exception):
    """Raised if somebody has to connect an account before the call can run; ``connect`` names the account."""

    def __init__(self, connect: Mapping[str, Any]) -> None:
        super().__init__(f"an account of {connect['subject']} at {connect['server']} is needed")
        self.connect = connect


class AccountConnections:
    """The connections of accounts to one remote server, by subject. Belongs to one event loop."""

    def __init__(
        self,
        server: str,
        label: str,
        client: Mapping[str, str],
        remotes: RemoteTools,
        make: Callable[[], RemoteConnection],
        monotonic: Callable[[], float],
    ) -> None:
        """Begin without connections.

        Args:
            server: the URL of the server.
            label: the label of an agent that says whose account it uses.
            client: the client that was registered by hand: its id, and the reference to its secret.
            remotes: has the tokens of the accounts.
            make: makes a connection, which connects at its first call.
            monotonic: the time, in seconds.
        """
        self._server, self._label, self._client, self._remotes = server, label, client, remotes
        self._make, self._monotonic = make, monotonic
        self._by_subject: dict[str, RemoteConnection] = {}
        self._used: dict[str, float] = {}

    async def call_here(self, work: Callable[[RemoteConnection], Awaitable[Result]]) -> Result:
        """Call ``work`` with the connection of the acting agent's account.

        Raises the errors of `RemoteConnection.call`. Without a credential, the result names the account that somebody
        has to connect.
        """
        current = acting_call.get(None)
        if current is None:
            raise ToolError("This call belongs to no agent, so it has no account. It did not run.")
        agent = current.agent
        subject = await in_thread(lambda: self._remotes.subject(agent, self._label), "ikigai-mcp-subject")
        if subject is None:
            raise ToolError(
                f"This agent has no label {self._label}, which says whose account at {self._server} it uses. This call "
                "did not run. Ask the person who made the agent to give it the label."
            )
        try:
            result: Result = await self.call_as(subject, work)
        except AccountNeeded as needed:
            said = f"This call did not run: {needed}, and nobody can be asked here. Ask the person to connect it."
            return Result(said, True, connect=needed.connect)
        return result

    async def call_as(self, subject: str, work: Callable[[RemoteConnection], Any]) -> Any:
        """Call ``work`` with the connection of a subject; return its result."""
        token = await self._remotes.token(self._server, subject)
        if token is None:
            raise AccountNeeded(self._account(subject, ""))
        connection = await self._of(subject)
        connection.use_bearer(token)
        try:
            return await work(connection)
        except NotRun as error:
            challenge = challenge_in(error.about.challenge)
            if error.about.status == 403 and challenge.error == "insufficient_scope":
                scope = union_of(await self._remotes.scope(self._server, subject), challenge.scope)
                raise AccountNeeded(self._account(subject, scope)) from error
            if error.about.status != 401:
                raise
        renewed = await self._remotes.token(self._server, subject, refused=token)
        if renewed is None or renewed == token:
            raise AccountNeeded(self._account(subject, ""))
        connection = await self._of(subject)
        connection.use_bearer(renewed)
        try:
            return await work(connection)
        except NotRun as error:
            if error.about.status == 401:
                raise AccountNeeded(self._account(subject, challenge_in(error.about.challenge).scope)) from error
            raise

    def _account(self, subject: str, scope: str) -> dict[str, Any]:
        scoped = {"scope": scope} if scope else {}
        return {"server": self._server, "label": self._label, "subject": subject, **scoped, **self._client}

    async def _of(self, subject: str) -> RemoteConnection:
        """Return the connection of a subject. Connections that were idle for long, or are too many, are closed."""
        now = self._monotonic()
        idle = [other for other, connection in self._by_subject.items() if not connection.calls and other != subject]
        idle.sort(key=self._used.__getitem__)
        old = [other for other in idle if now - self._used[other] >= IDLE_CONNECTION]
        if subject not in self._by_subject:
            old = idle[: max(len(old), len(self._by_subject) + 1 - MOST_CONNECTIONS_OF_ACCOUNTS)]
        for other in old:
            del self._used[other]
        for connection in [self._by_subject.pop(other) for other in old]:  # nobody finds those that are being closed
            await connection.close()
        self._used[subject] = now
        if subject not in self._by_subject:
            if len(self._by_subject) >= MOST_CONNECTIONS_OF_ACCOUNTS:
                raise ToolError(
                    f"{MOST_CONNECTIONS_OF_ACCOUNTS} accounts at {self._server} are in use at once. This call did not "
                    "run. Call again later."
                )
            self._by_subject[subject] = self._make()
        return self._by_subject[subject]

    async def close(self) -> None:
        """Close all connections."""
        connections, self._by_subject = self._by_subject, {}
        for connection in connections.values():
            await connection.close()
