"""An agent of another system: a server of the official package for A2A, on this machine."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from a2a.helpers import new_task_from_user_message, new_text_message, new_text_part
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_rest_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import a2a_pb2 as sdk
from starlette.applications import Starlette

from ikigai_actors.http_server.acceptor import ConnectionLimits, listen
from ikigai_actors.http_server.server import HttpServer


class TeaAgent(AgentExecutor):
    """Asks how strong the tea is to be, where the message says ``ask``; fails where it says ``fail``."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        assert context.message is not None
        said = context.get_user_input()
        self.heard.append(said)
        if context.current_task is None:
            await event_queue.enqueue_event(new_task_from_user_message(context.message))
        assert context.task_id is not None
        assert context.context_id is not None
        updater = TaskUpdater(event_queue, context.task_id, context.context_id)
        if said == "ask":
            await updater.requires_input(new_text_message("How strong?"))
        elif said == "fail":
            await updater.failed(new_text_message("No tea is left."))
        else:
            await updater.start_work()
            await updater.add_artifact([new_text_part(f"{said} is ready")])
            await updater.complete()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        raise NotImplementedError


class _Served:
    """An application of Starlette, which needs no word before it ends."""

    def __init__(self, app: Starlette) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Any, out: Any) -> None:
        await self._app(scope, receive, out)

    def drain(self) -> None:
        """Do nothing."""


@asynccontextmanager
async def tea_agent() -> AsyncIterator[tuple[str, TeaAgent]]:
    """Serve it; its address, and what it has heard."""
    listening, stop, agent = listen("127.0.0.1", 0), asyncio.Event(), TeaAgent()
    url = f"http://127.0.0.1:{listening.getsockname()[1]}"
    interface = sdk.AgentInterface(url=url, protocol_binding="HTTP+JSON", protocol_version="1.0")
    card = sdk.AgentCard(
        name="Tea", description="Makes tea.", version="1", supported_interfaces=[interface],
        capabilities=sdk.AgentCapabilities(streaming=True), default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=[sdk.AgentSkill(id="tea", name="Tea", description="Makes tea.", tags=["tea"])],
    )  # fmt: skip
    handler = DefaultRequestHandler(agent, InMemoryTaskStore(), card)
    app = Starlette(routes=[*create_agent_card_routes(card), *create_rest_routes(handler)])
    serving = asyncio.create_task(HttpServer(_Served(app), listening, ConnectionLimits()).serve(stop, 10.0))
    try:
        yield url, agent
    finally:
        stop.set()
        await serving
