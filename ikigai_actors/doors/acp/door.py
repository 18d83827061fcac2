"""One client of ACP: hands its requests, and the events of its agents, to sessions, prompts, permissions and view."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from importlib.metadata import version
from typing import Any

from ikigai_actors.agent.subscriptions import Event
from ikigai_actors.doors.acp.permissions import Permissions
from ikigai_actors.doors.acp.prompts import Prompts
from ikigai_actors.doors.acp.sessions import METHODS, Sessions
from ikigai_actors.doors.acp.view import ClientView
from ikigai_actors.doors.json_rpc import METHOD_NOT_FOUND, GivenUp, Params, RpcConnection, RpcError, RpcRequest
from ikigai_actors.errors import IkigaiError
from ikigai_actors.reach.access import Access
from ikigai_actors.records.agents.registry import Died
from ikigai_actors.records.messages.messages import Kind, Message

PROTOCOL = 1


class AcpDoor:
    """Answers one ACP client, and shows it the agents of its sessions."""

    def __init__(self, access: Access, workspace: str | None, waiting: Callable[[], int] = lambda: 0) -> None:
        """Put the parts together; `begin` gives it its client.

        Args:
            access: what the client reaches.
            workspace: the directory of the agents' tools, if it is known.
            waiting: how many bytes the client has not read yet.
        """
        self._access, self._workspace, self._waiting = access, workspace, waiting
        self._pool = ThreadPoolExecutor(8, thread_name_prefix="ikigai-door")
        self._loop = asyncio.get_running_loop()
        self._ready = asyncio.Event()
        self._asking = set[asyncio.Task[None]]()

    def begin(self, connection: RpcConnection) -> None:
        """Serve this client; subscribe as soon as there is a database."""
        access = self._access
        self._view = ClientView(access, connection.notify, self._waiting)
        self._sessions = Sessions(access, self._workspace, self._view)
        self._prompts = Prompts(access, self._view, self._pool)
        self._permissions = Permissions(access, self._view, self._pool, connection.ask)
        self._loop.create_task(self._serve())

    async def _serve(self) -> None:
        while not self._ready.is_set():
            with suppress(IkigaiError):
                await self._loop.run_in_executor(self._pool, lambda: self._access.system.subscribe(self.hear))
                self._ready.set()
        await self._prompts.watch()

    async def request(self, request: RpcRequest, notify: Callable[[str, Params], object]) -> Any:
        """The result of a request. Raises `RpcError`."""
        if request.method == "initialize":
            return self._initialize(request.params)
        work = METHODS.get(request.method)
        if request.method == "session/prompt":
            return await self._prompts.answer(request, self._ready)
        if work is None:
            raise RpcError(METHOD_NOT_FOUND, f"Method not found: {request.method}")
        await self._ready.wait()
        if request.method == "session/close":
            await self._prompts.cancel(request.params)
        result = await self._loop.run_in_executor(self._pool, work, self._sessions, request.params)
        await self._permissions.ask_what_is_open()
        return result

    def notified(self, request: RpcRequest) -> None:
        """Take a notification."""
        if request.method == "session/cancel":
            self._loop.create_task(self._prompts.cancel(request.params))

    def give_up(self, request: RpcRequest) -> GivenUp:
        """End a prompt as ``session/cancel`` does, which answers it; refuse to go on with any other request."""
        if request.method != "session/prompt":
            return GivenUp.REFUSED
        self._loop.create_task(self._prompts.give_up(request))
        return GivenUp.ANSWERED

    def _initialize(self, params: Params) -> dict[str, Any]:
        given = params.get("clientCapabilities")
        known = given if isinstance(given, dict) else {}
        session = known.get("session")
        compaction = isinstance(session, dict) and session.get("compaction") is not None
        self._view.adapt(subagents=known.get("subagents") is not None, compaction=compaction)
        return {
            "protocolVersion": PROTOCOL,
            "agentInfo": {"name": "ikigai", "title": "ikigai", "version": version("ikigai-actors")},
            "authMethods": [],
            "agentCapabilities": {
                "loadSession": True,
                "promptCapabilities": {"image": True, "audio": True, "embeddedContext": True},
                "sessionCapabilities": {"list": {}, "resume": {}, "close": {}, "fork": {}, "delete": {}},
            },
        }

    def hear(self, event: Event) -> None:
        """Take an event of the agents, on the subscription's thread."""
        with self._view.lock:
            self._view.hear(event)
            if isinstance(event, Message | Died):
                self._prompts.answer_ended(event.agent_uuid)
        if isinstance(event, Message) and (event.kind == Kind.APPROVAL or self._permissions.asked):
            with suppress(RuntimeError):  # the loop has ended: no coroutine is made that nobody would await
                self._loop.call_soon_threadsafe(self._ask_soon)

    def _ask_soon(self) -> None:
        """Ask for the decisions that are open, on the loop's thread."""
        task = self._loop.create_task(self._permissions.ask_what_is_open())
        self._asking.add(task)  # the loop itself holds no task
        task.add_done_callback(self._asking.discard)
