"""OpenAI Agents: ``create_branch_from_turn`` writes a row of ``message_structure`` for each message before the turn.

The messages themselves are shared. The branch becomes the current one; the next fork goes back to ``main`` first.
"""

import asyncio
from pathlib import Path
from typing import Any

from agents import Agent, Model, ModelResponse, Runner, Usage, set_tracing_disabled
from agents.extensions.memory import AdvancedSQLiteSession
from openai.types.responses import ResponseOutputMessage, ResponseOutputText

from benchmarks.population import PROMPT, REPLY

set_tracing_disabled(True)  # it would go to a service


class Answers(Model):
    """A plain function in place of a model."""

    async def get_response(self, *_: Any, input: Any, **__: Any) -> ModelResponse:  # noqa: A002 - its name for it
        """Answer from the last message."""
        said = ResponseOutputText(annotations=[], text=f"Heard: {input[-1]['content']}", type="output_text")
        reply = ResponseOutputMessage(id="1", content=[said], role="assistant", status="completed", type="message")
        return ModelResponse(output=[reply], usage=Usage(), response_id=None)

    def stream_response(self, *_: Any, **__: Any) -> Any:
        """Nobody streams here."""
        raise NotImplementedError("a turn here is not streamed")


_AGENT = Agent(name="benchmark", model=Answers())


class OpenAISession:
    """A session in an SQLite file, with a prompt more than is inherited: a branch begins before a prompt."""

    def __init__(self, directory: Path, _: str, count: int) -> None:
        self._runner = asyncio.Runner()
        self._session: Any = AdvancedSQLiteSession(
            session_id="benchmark", db_path=directory / "openai.db", create_tables=True
        )
        items = [
            {"role": "user", "content": PROMPT.format(place)}
            if place % 2
            else {"role": "assistant", "content": REPLY.format(place)}
            for place in range(1, count + 2)
        ]
        if count % 2:
            items[-1] = {"role": "user", "content": PROMPT.format(count + 1)}
        self._runner.run(self._session.add_items(items))
        self._turn = sum(item["role"] == "user" for item in items)

    def fork(self) -> None:
        """See `Session.fork`."""
        self._runner.run(self._session.create_branch_from_turn(self._turn))

    def rest(self) -> None:
        """See `Session.rest`."""
        self._runner.run(self._session.switch_to_branch("main"))

    def append(self, count: int) -> None:
        """See `Session.append`."""
        for _ in range(count):
            self._runner.run(self._session.add_items([{"role": "user", "content": "Look at it from the other side."}]))

    def read(self) -> int:
        """See `Session.read`."""
        return len(self._runner.run(self._session.get_items()))

    def turn(self) -> None:
        """See `Session.turn`."""
        self._runner.run(Runner.run(_AGENT, "And now?", session=self._session))

    def close(self) -> None:
        """See `Session.close`."""
        self._session.close()
        self._runner.close()
