"""pi-durable-python: ``fork`` of a conversation is a record that refers to an entry, and five documents beside it."""

import asyncio
from pathlib import Path
from typing import Any

from pi_durable import AssistantEntry, Harness, Model, UserEntry, create_registry
from pi_durable.context import BACKGROUND_CONTEXT
from pi_durable.providers.base import ProviderModels
from pi_durable.providers.stream import ProviderStream, now_ms
from pi_durable.providers.usage import zero_usage
from pi_durable.storage.sqlite.posix import open_posix_sqlite_storage

from benchmarks.population import PROMPT, REPLY

CHUNK = 1_000
"""Entries of one commit."""


class Answer(ProviderStream):  # type: ignore[misc]  # where it is not installed
    """The reply of a plain function, in the place of a model's stream."""

    async def _produce(self) -> None:
        self.emit("start")
        self.output["stopReason"] = "stop"
        self.emit("done", reason="stop", message=self.output)


class Models(ProviderModels):  # type: ignore[misc]  # where it is not installed
    """Plain functions in place of models."""

    def stream_simple(self, model: Any, context: Any, options: Any = None) -> Answer:
        """Answer from the last message."""
        said = [{"type": "text", "text": f"Heard: {context['messages'][-1]['content']}"}]
        reply = {"role": "assistant", "content": said, "api": "function", "provider": model.provider}
        reply |= {"model": model.model_id, "usage": zero_usage(), "stopReason": "pending", "timestamp": now_ms()}
        return Answer(reply)

    stream = stream_simple


class PiConversation:
    """A conversation of a harness, in an SQLite file."""

    def __init__(self, directory: Path, _: str, count: int) -> None:
        self._runner = asyncio.Runner()
        self._runner.run(self._open(directory / "pi.db", count))

    async def _open(self, path: Path, count: int) -> None:
        storage = await open_posix_sqlite_storage(str(path))
        models = Models([Model(provider="function", model_id="echo", context_window=10**9, max_tokens=1_000)])
        options: dict[str, Any] = {"models": models, "registry": create_registry()}
        self._harness: Any = await Harness.open(storage, options, BACKGROUND_CONTEXT)
        agent = {"agent": {"model": {"provider": "function", "modelId": "echo"}}}
        self._root: Any = await self._harness.root(BACKGROUND_CONTEXT, agent)
        self._last: Any = await self._say(_entry(0))
        for start in range(1, count, CHUNK):
            self._last = await self._say(*(_entry(place) for place in range(start, min(start + CHUNK, count))))

    async def _say(self, *entries: dict[str, Any]) -> Any:
        """Append these entries in one commit; return the id of the last."""

        async def append(transaction: Any) -> Any:
            for entry in entries:
                appended = await transaction.append_entry(self._root.id, entry)
            return appended["id"]

        return await self._harness.commit(append, BACKGROUND_CONTEXT)

    def fork(self) -> None:
        """See `Session.fork`."""
        options = {"ownership": {"kind": "ownerless"}}
        self._runner.run(self._root.fork(self._last, options, BACKGROUND_CONTEXT))

    def rest(self) -> None:
        """Nothing: the next fork begins at the same entry."""

    def append(self, count: int) -> None:
        """See `Session.append`."""
        for place in range(count):
            self._runner.run(self._say(_entry(place)))

    def read(self) -> int:
        """See `Session.read`."""
        return len(self._runner.run(self._root.context(BACKGROUND_CONTEXT))["messages"])

    def turn(self) -> None:
        """See `Session.turn`."""
        self._runner.run(self._turn())

    async def _turn(self) -> None:
        prompt = {"type": "input", "content": "And now?"}
        submission = await self._root.submit(prompt, BACKGROUND_CONTEXT)
        settled = await submission.wait(BACKGROUND_CONTEXT)
        if settled["status"] != "done":
            raise AssertionError(f"Expected an answer, got {settled}")

    def close(self) -> None:
        """See `Session.close`."""
        self._runner.run(self._end())
        self._runner.close()

    async def _end(self) -> None:
        await self._harness.close(BACKGROUND_CONTEXT)  # begins at once, so it wants a loop


def _entry(place: int) -> dict[str, Any]:
    """A prompt, or a reply."""
    if place % 2 == 0:
        return {"kind": UserEntry.kind, "model": [{"role": "user", "content": PROMPT.format(place), "timestamp": 0}]}
    said = [{"type": "text", "text": REPLY.format(place)}]
    return {"kind": AssistantEntry.kind, "model": [{"role": "assistant", "content": said, "timestamp": 0}]}
