"""Many model streams at once: more than any of the client's pools has connections by default."""

import asyncio
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from ikigai_actors import ActorSystem, AnthropicProvider, Request
from ikigai_actors.agent.subscriptions import Event, Streamed
from ikigai_actors.providers.service_client import CONNECTIONS
from ikigai_actors.records.messages.messages import Kind, Message
from tests.kit.descriptors import allow_open_files
from tests.kit.messages_server.server import Ending, MessagesServer, Says

STREAMS = 1_200
"""The client's transports stop at 100 or at 1,000 unless they are told otherwise; what is beyond waits in silence."""

PATIENCE = 300.0
"""Seconds; on an idle machine all streams open in five. The client's own default to connect is five, which is too few
beside a machine at work: nothing is measured here.
"""


class Beginnings:
    """The agents whose replies have begun."""

    def __init__(self, expected: int) -> None:
        self.agents: set[str] = set()
        self.errors: list[str] = []
        """Why others have none."""
        self._expected = expected
        self._told = threading.Event()

    def hear(self, event: Event) -> None:
        """Take what a system publishes."""
        if isinstance(event, Streamed):
            self.agents.add(event.agent_uuid)
        elif isinstance(event, Message) and event.kind == Kind.ERROR:
            self.errors.append(event.content)
        if self.errors or len(self.agents) == self._expected:
            self._told.set()

    def wait(self) -> bool:
        """Whether all have begun, in time; False at the first that fails."""
        return self._told.wait(PATIENCE) and not self.errors


@pytest.mark.thorough("a thousand streams")
@pytest.mark.timeout(2 * PATIENCE)
def test_more_streams_than_the_clients_default_run_at_once() -> None:
    beginnings = Beginnings(STREAMS)
    with allow_open_files(2 * STREAMS), MessagesServer() as server:  # both ends of a connection are in this process
        server.script += [Says.text("at once", Ending.PAUSE)] * STREAMS
        provider = AnthropicProvider(base_url=server.url, api_key="none", timeout=PATIENCE)
        with ActorSystem.open("sqlite:///:memory:", provider) as system:
            system.subscribe(beginnings.hear)
            forks = [system.root.aio.fork() for _ in range(STREAMS)]
            agents = [fork.get(timeout=PATIENCE) for fork in forks]
            replies = [agent.prompt("Begin.") for agent in agents]
            assert beginnings.wait(), f"{len(beginnings.agents)} of {STREAMS} are open: {beginnings.errors}"
            server.release()
            assert {reply.get(timeout=PATIENCE).text for reply in replies} == {"at once"}


class Watched(dict[str, Any]):
    """Settings that tell when they are read: that is when a request is made up."""

    def __init__(self, read: Callable[[], object]) -> None:
        super().__init__()
        self._read = read

    def get(self, key: str, default: Any = None) -> Any:
        """See `dict.get`."""
        if key == "max_tokens":
            self._read()
        return super().get(key, default)


def test_of_many_requests_of_the_same_moment_few_start_in_one_turn_of_the_event_loop() -> None:
    began: list[int] = []

    async def run(provider: AnthropicProvider) -> None:
        now = 0

        async def count() -> None:
            nonlocal now
            while True:
                now += 1
                await asyncio.sleep(0)

        def request() -> Request:
            hello = ({"role": "user", "content": [{"type": "text", "text": "Hello"}]},)
            return Request("uuid", None, "", "", hello, (), Watched(lambda: began.append(now)))

        counting = asyncio.create_task(count())
        replies = await asyncio.gather(*(provider.respond(request(), lambda _: None) for _ in range(30)))
        counting.cancel()
        await provider.close()
        assert {reply.text for reply in replies} == {"ok"}

    with MessagesServer() as server:
        asyncio.run(run(AnthropicProvider(base_url=server.url, api_key="none")))
    assert len(began) == 30
    assert max(Counter(began).values()) <= CONNECTIONS
