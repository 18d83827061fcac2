"""pi-durable-python: ``fork`` of a conversation is a record that refers to an entry, and five documents beside it."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pi_durable import AssistantEntry, Harness, Model, UserEntry, create_registry, define_extension, define_tool
from pi_durable.context import BACKGROUND_CONTEXT
from pi_durable.providers.base import ProviderModels
from pi_durable.providers.stream import ProviderStream, now_ms
from pi_durable.providers.usage import zero_usage
from pi_durable.storage.sqlite.posix import open_posix_sqlite_storage

from benchmarks.population import PROMPT, REPLY

CHUNK = 1_000
"""Entries of one commit."""


class Answer(ProviderStream):
    """The reply of a plain function, in the place of a model's stream."""

    async def _produce(self) -> None:
        self.emit("start")
        why = "toolUse" if self.output["content"][-1]["type"] == "toolCall" else "stop"
        self.output["stopReason"] = why
        self.emit("done", reason=why, message=self.output)


class Models(ProviderModels):
    """A plain function in place of models: it makes the part of a reply from the messages."""

    def __init__(self, answer: Callable[[list[Any]], dict[str, Any]]) -> None:
        super().__init__([Model(provider="function", model_id="echo", context_window=10**9, max_tokens=1_000)])
        self._answer = answer

    def stream_simple(self, model: Any, context: Any, options: Any = None) -> Answer:
        """Answer at once."""
        said = [self._answer(context["messages"])]
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
        self._harness, self._root = await _opened(path, Models(_heard), create_registry())
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
        await _take_turn(self._root, "And now?")

    def close(self) -> None:
        """See `Session.close`."""
        self._runner.run(self._end())
        self._runner.close()

    async def _end(self) -> None:
        await self._harness.close(BACKGROUND_CONTEXT)  # begins at once, so it wants a loop


def long_turn(directory: Path, prompt: str, result: str, calls: int) -> None:
    """One turn of this many model calls. Each but the last calls a tool, which returns this result."""
    asyncio.run(_long_turn(directory / "pi.db", prompt, result, calls))


async def _long_turn(path: Path, prompt: str, result: str, calls: int) -> None:
    def answer(messages: list[Any]) -> dict[str, Any]:
        step = sum(message["role"] == "assistant" for message in messages) + 1
        call = {"type": "toolCall", "id": f"call_{step}", "name": "look", "arguments": {"step": step}}
        return {"type": "text", "text": "Done."} if step == calls else call

    async def look(arguments: Any, api: Any, context: Any) -> dict[str, Any]:
        return {"output": [{"type": "text", "text": result}]}

    parameters = {"type": "object", "properties": {"step": {"type": "integer"}}}
    tool = define_tool({"name": "look", "description": "Look up.", "parameters": parameters, "execute": look})
    registry = create_registry()
    extension = define_extension(name="looking", tools=[tool])
    registry.install(extension)
    harness, root = await _opened(path, Models(answer), registry, extension)
    try:
        await _take_turn(root, prompt)
        said = (await root.context(BACKGROUND_CONTEXT))["messages"]
        assert sum(message["role"] == "assistant" for message in said) == calls
    finally:
        await harness.close(BACKGROUND_CONTEXT)


async def _opened(path: Path, models: Models, registry: Any, *extensions: Any) -> tuple[Any, Any]:
    """A harness, and its first conversation."""
    storage = await open_posix_sqlite_storage(str(path))
    options: dict[str, Any] = {"models": models, "registry": registry}
    harness = await Harness.open(storage, options, BACKGROUND_CONTEXT)
    agent = {"model": {"provider": "function", "modelId": "echo"}, "extensions": list(extensions)}
    return harness, await harness.root(BACKGROUND_CONTEXT, {"agent": agent})


async def _take_turn(conversation: Any, said: str) -> None:
    submission = await conversation.submit({"type": "input", "content": said}, BACKGROUND_CONTEXT)
    settled = await submission.wait(BACKGROUND_CONTEXT)
    if settled["status"] != "done":
        raise AssertionError(f"Expected an answer, got {settled}")


def _heard(messages: list[Any]) -> dict[str, Any]:
    return {"type": "text", "text": f"Heard: {messages[-1]['content']}"}


def _entry(place: int) -> dict[str, Any]:
    """A prompt, or a reply."""
    if place % 2 == 0:
        return {"kind": UserEntry.kind, "model": [{"role": "user", "content": PROMPT.format(place), "timestamp": 0}]}
    said = [{"type": "text", "text": REPLY.format(place)}]
    return {"kind": AssistantEntry.kind, "model": [{"role": "assistant", "content": said, "timestamp": 0}]}
