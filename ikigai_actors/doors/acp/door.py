"""One client of ACP: passes its requests, and the events of its agents, to sessions, prompts, permissions and view."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from importlib.metadata import version
from typing import Any

from acp.schema import (
    AgentCapabilities,
    CancelNotification,
    CloseSessionRequest,
    Implementation,
    InitializeResponse,
    PromptCapabilities,
    PromptRequest,
    SessionCapabilities,
    SessionCloseCapabilities,
    SessionDeleteCapabilities,
    SessionForkCapabilities,
    SessionListCapabilities,
    SessionResumeCapabilities,
)

from ikigai_actors.agent.subscriptions import Event
from ikigai_actors.doors.acp.models import checked, dumped
from ikigai_actors.doors.acp.permissions import Permissions
from ikigai_actors.doors.acp.prompts import Prompts
from ikigai_actors.doors.acp.sessions import METHODS, Sessions
from ikigai_actors.doors.acp.view import ClientView
from ikigai_actors.doors.json_rpc import METHOD_NOT_FOUND, GivenUp, Params, RpcConnection, RpcError, RpcRequest
from ikigai_actors.errors import BadInput, IkigaiError
from ikigai_actors.reach.access import Access
from ikigai_actors.records.agents.registry import Died
from ikigai_actors.records.messages.messages import Kind, Message

PROTOCOL = 1

CAPABILITIES = AgentCapabilities(
    load_session=True,
    prompt_capabilities=PromptCapabilities(image=True, audio=True, embedded_context=True),
    session_capabilities=SessionCapabilities(
        list=SessionListCapabilities(),
        resume=SessionResumeCapabilities(),
        close=SessionCloseCapabilities(),
        fork=SessionForkCapabilities(),
        delete=SessionDeleteCapabilities(),
    ),
)


class AcpDoor:
    """Answers the requests of one client of ACP, and shows the client the agents of its sessions."""

    def __init__(self, access: Access, workspace: str | None, waiting: Callable[[], int] = lambda: 0) -> None:
        """Make the door; `begin` connects the client.

        Args:
            access: the agents that the client may reach.
            workspace: the directory of the agents' tools; None if unknown.
            waiting: returns how many bytes the client has not read yet.
        """
        self._access, self._workspace, self._waiting = access, workspace, waiting
        self._pool = ThreadPoolExecutor(8, thread_name_prefix="ikigai-door")
        self._loop = asyncio.get_running_loop()
        self._ready = asyncio.Event()
        self._asking = set[asyncio.Task[None]]()

    def begin(self, connection: RpcConnection) -> None:
        """Serve a client on this connection. The door subscribes to the events of agents once the database is there."""
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
        """Carry out a request, and return its result. Raises `RpcError`."""
        if request.method == "initialize":
            return self._initialize(request.params)
        if request.method == "session/prompt":
            prompt = checked(PromptRequest, request.params)
            return dumped(await self._prompts.answer(request.id, prompt, self._ready))
        if request.method not in METHODS:
            raise RpcError(METHOD_NOT_FOUND, f"Method not found: {request.method}")
        model, work = METHODS[request.method]
        asked = checked(model, request.params)
        await self._ready.wait()
        if isinstance(asked, CloseSessionRequest):
            await self._prompts.cancel(asked.session_id)
        result = await self._loop.run_in_executor(self._pool, work, self._sessions, asked)
        await self._permissions.ask_what_is_open()
        return dumped(result)

    def notified(self, request: RpcRequest) -> None:
        """Carry out a notification of the client: a cancelled turn; ignore any other."""
        if request.method == "session/cancel":
            with suppress(BadInput):  # a notification has no answer
                cancelled = checked(CancelNotification, request.params)
                self._loop.create_task(self._prompts.cancel(cancelled.session_id))

    def give_up(self, request: RpcRequest) -> GivenUp:
        """End a prompt as ``session/cancel`` does, which answers it. For any other request, return the refusal."""
        if request.method != "session/prompt":
            return GivenUp.REFUSED
        self._loop.create_task(self._prompts.give_up(request.id))
        return GivenUp.ANSWERED

    def _initialize(self, params: Params) -> dict[str, Any]:
        capabilities = params.get("clientCapabilities")  # as it came: the package drops those that it does not know
        known = capabilities if isinstance(capabilities, dict) else {}
        session = known.get("session")
        compaction = isinstance(session, dict) and session.get("compaction") is not None
        elicitation = known.get("elicitation")
        forms = isinstance(elicitation, dict) and elicitation.get("form") is not None
        self._view.adapt(subagents=known.get("subagents") is not None, compaction=compaction, forms=forms)
        return dumped(
            InitializeResponse(
                protocol_version=PROTOCOL,
                agent_info=Implementation(name="ikigai", title="ikigai", version=version("ikigai-actors")),
                auth_methods=[],
                agent_capabilities=CAPABILITIES,
            )
        )

    def hear(self, event: Event) -> None:
        """Show an event of an agent to the client. Called on the subscription's thread."""
        with self._view.lock:
            self._view.hear(event)
            if isinstance(event, Message | Died):
                self._prompts.answer_ended(event.agent_uuid)
        if isinstance(event, Message) and (event.kind == Kind.APPROVAL or self._permissions.asked):
            with suppress(RuntimeError):  # the loop has ended: no coroutine is made that nobody would await
                self._loop.call_soon_threadsafe(self._ask_soon)

    def _ask_soon(self) -> None:
        """Ask the client soon for all open decisions, on the event loop's thread."""
        task = self._loop.create_task(self._permissions.ask_what_is_open())
        self._asking.add(task)  # the loop itself holds no task
        task.add_done_callback(self._asking.discard)
