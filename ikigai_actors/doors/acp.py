"""``ikigai acp``: the Agent Client Protocol, version 1, for editors: each session is an agent of the tree.

Written by hand, since the package's own client and router refuse what the protocol has learnt since; its schema is the
oracle of the tests.

One lock orders all that the client is shown. The subscription's thread shows what agents commit and stream; a load
shows a history under the same lock, and what it has shown does not come again. A prompt is answered when the rows say
that its turn is over and all its messages were shown: so no text comes after the answer, and none is missing.
"""

import asyncio
import hashlib
import json
import logging
import secrets
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

from ikigai_actors.agent.remote_commands import encode
from ikigai_actors.agent.subscriptions import Event, StreamCut, Streamed
from ikigai_actors.agent.turn.calls import EXACT, PendingCall
from ikigai_actors.doors.access import EVERY_PROMPT, Access
from ikigai_actors.doors.acp_updates import (
    Live,
    Route,
    SessionTree,
    call_title,
    mail_update,
    prompt_of,
    sent_mail,
    subagent_update,
    text_chunk,
    updates_of,
)
from ikigai_actors.doors.json_rpc import METHOD_NOT_FOUND, Params, RequestId, RpcConnection, RpcError, RpcRequest
from ikigai_actors.doors.turns import MAIL, TurnHandle, TurnReader
from ikigai_actors.errors import BadInput, IkigaiError, ProviderError, StoreError, TurnInterrupted
from ikigai_actors.providers.base import Reply
from ikigai_actors.providers.windows import anthropic_window
from ikigai_actors.records.agents.identity import is_agent_uuid, new_agent_uuid
from ikigai_actors.records.agents.registry import AgentRecord, Died, Renamed
from ikigai_actors.records.budgets.budget import shown_amount
from ikigai_actors.records.hosts.keyed import KeyedCall
from ikigai_actors.records.hosts.remote_commands import AddRemoteCommand, RemoteCommandKey
from ikigai_actors.records.log.heads import latest_times
from ikigai_actors.records.mail.mail import KeepPrompt, WithdrawPrompt
from ikigai_actors.records.messages.messages import Kind, Message
from ikigai_actors.records.messages.replies import reply_of
from ikigai_actors.system.lifecycle import GRACE, data_of, new_children, new_fork, prompt_text
from ikigai_actors.text import iso_time
from supervisors.signals import Signal

logger = logging.getLogger(__name__)

PROTOCOL = 1

BIRTH = 20.0
"""Seconds within which a host has made the agent of a new session."""

_LOOK = 0.5
"""Seconds between two looks at the turns that a client waits for: not all that ends one is a message."""

MOST_WAITING = 8 * 1024 * 1024
"""Bytes that a client has not read, beyond which pieces of replies are left out: it gets them with the message."""

_PAGE = 100
"""Sessions of one answer of ``session/list``."""

MOST_REQUESTS = "max_turn_requests"
STOP_REASONS = {"max_tokens": "max_tokens", "refusal": "refusal", MOST_REQUESTS: MOST_REQUESTS}
"""Why a turn has ended, as the protocol says it; any other reason is ``end_turn``."""

ALWAYS = "allow_always"
OPTIONS = (
    {"optionId": "allow_once", "name": "Allow", "kind": "allow_once"},
    {"optionId": ALWAYS, "name": "Always for this agent and below", "kind": "allow_always"},
    {"optionId": "reject_once", "name": "Deny", "kind": "reject_once"},
)
"""How a call may be decided."""

DEFAULT, ADAPTIVE = "default", "adaptive"

QuestionKey = tuple[str, int, str]
T = TypeVar("T")


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
        self._id = secrets.token_hex(16)  # of the connection
        self._pool = ThreadPoolExecutor(8, thread_name_prefix="ikigai-door")
        self._loop = asyncio.get_running_loop()
        self._connection: RpcConnection
        self._turns: TurnReader
        self._ready = asyncio.Event()
        self._lock = threading.Lock()
        self._above: dict[str, str | None] = {}
        self._tree = SessionTree(self._supervisor)
        self._compaction = False
        self._live: dict[str, Live] = {}
        self._lives = 0
        self._shown: dict[str, int] = {}
        self._heard: dict[str, int] = {}
        self._states: dict[str, str] = {}
        self._replies: dict[str, Message] = {}
        self._prompts: dict[TurnHandle, asyncio.Future[Any]] = {}
        self._asked: dict[QuestionKey, asyncio.Task[None]] = {}
        self._asking = asyncio.Lock()

    def begin(self, connection: RpcConnection) -> None:
        """Serve this client; subscribe as soon as there is a database."""
        self._connection = connection
        self._loop.create_task(self._subscribe())

    async def _subscribe(self) -> None:
        while not self._ready.is_set():
            with suppress(IkigaiError):
                await self._work(self._begin_to_hear)
                self._ready.set()
        while True:
            await asyncio.sleep(_LOOK)
            if self._prompts:
                with suppress(IkigaiError):
                    await self._work(self._look_at_prompts)

    def _begin_to_hear(self) -> None:
        system = self._access.system
        self._turns = TurnReader(system._store, system.approvals.pending)
        system.subscribe(self.hear)

    async def _work(self, work: Callable[[], T]) -> T:
        return await self._loop.run_in_executor(self._pool, work)

    # What the client asks

    async def request(self, request: RpcRequest, notify: Callable[[str, Params], object]) -> Any:
        """The result of a request. Raises `RpcError`."""
        if request.method == "initialize":
            return self._initialize(request.params)
        work = _METHODS.get(request.method)
        if work is None and request.method != "session/prompt":
            raise RpcError(METHOD_NOT_FOUND, f"Method not found: {request.method}")
        await self._ready.wait()
        if work is None:
            return await self._prompt(request)
        result = await self._work(partial(work, self, request.params))
        await self._ask_what_is_open()
        return result

    def notified(self, request: RpcRequest) -> None:
        """Take a notification."""
        if request.method == "session/cancel":
            self._loop.create_task(self._cancel(request.params))

    def _initialize(self, params: Params) -> dict[str, Any]:
        given = params.get("clientCapabilities")
        known = given if isinstance(given, dict) else {}
        session = known.get("session")
        with self._lock:
            self._tree.subagents = known.get("subagents") is not None
            self._compaction = isinstance(session, dict) and session.get("compaction") is not None
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

    def new(self, params: Params) -> dict[str, Any]:
        """Fork the topmost agent: the child is the session."""
        self._check_place(params)
        return self._opened(self._forked(self._access.find(None).uuid, None))

    def fork(self, params: Params) -> dict[str, Any]:
        """Fork the agent of a session, at its end or at an earlier position."""
        self._check_place(params)
        ours = (params.get("_meta") or {}).get("ikigai") or {}
        return self._opened(self._forked(self._session(params).uuid, ours.get("at")))

    def load(self, params: Params) -> dict[str, Any]:
        """Open a session, and show its history."""
        self._check_place(params)
        record = self._session(params)
        with self._lock:
            history = self._access.system.handle(record.uuid).history()
            self._tree.open.add(record.uuid)
            for message in history:
                self._show(record.uuid, updates_of(message, replayed=True, compaction=self._compaction))
                self._show_mail(message)
            self._shown[record.uuid] = max((message.id for message in history), default=0)
            self._live.pop(record.uuid, None)
        return {"configOptions": self._options(record.uuid)}

    def resume(self, params: Params) -> dict[str, Any]:
        """Open a session without its history."""
        self._check_place(params)
        opened = self._opened(self._session(params).uuid)
        return {"configOptions": opened["configOptions"]}

    def list(self, params: Params) -> dict[str, Any]:
        """The living agents, oldest first, a page at a time."""
        access, cursor = self._access, str(params.get("cursor") or "0")
        if not cursor.isdecimal():
            raise BadInput(f"Expected a cursor that session/list gave; got {cursor[:40]!r}.")
        mine = [one for one in access.below(None) if one.living and one.supervisor_uuid is not None]
        mine.sort(key=lambda one: (one.created_at, one.born, one.uuid))
        page = mine[int(cursor) : int(cursor) + _PAGE]
        times = access.client.read(lambda tx: latest_times(tx, [one.uuid for one in page]))
        sessions = [
            {
                "sessionId": one.uuid,
                "cwd": self._workspace or params.get("cwd") or str(Path.cwd()),
                "title": one.short,
                "updatedAt": iso_time(times.get(one.uuid, one.created_at)),
                "_meta": {"ikigai": {"parent": one.supervisor_uuid}},
            }
            for one in page
        ]
        more = {"nextCursor": str(int(cursor) + _PAGE)} if len(mine) > int(cursor) + _PAGE else {}
        return {"sessions": sessions, **more}

    def close(self, params: Params) -> dict[str, Any]:
        """Show a session no more; its agent goes on."""
        with self._lock:
            self._tree.forget(self._session_id(params))
        return {}

    def delete(self, params: Params) -> dict[str, Any]:
        """End the agent of a session."""
        self._signal(self._session(params).uuid, Signal.KILL)
        return {}

    def set_option(self, params: Params) -> dict[str, Any]:
        """Change a setting of the agent of a session."""
        uuid, name, value = self._session(params).uuid, params.get("configId"), params.get("value")
        if name == "model" and isinstance(value, str):
            settings: dict[str, Any] = {"model": None if value == DEFAULT else value}
        elif name == "thinking" and value in (DEFAULT, ADAPTIVE):
            settings = {"thinking": None if value == DEFAULT else {"type": ADAPTIVE}}
        else:
            raise BadInput("Expected model with a name as provider:model, or thinking with default or adaptive.")
        self._access.check_hosted(BIRTH)
        self._access.system.handle(uuid).configure(timeout=BIRTH, **settings)
        return {"configOptions": self._options(uuid)}

    def _check_place(self, params: Params) -> None:
        """Refuse a directory that the agents' tools do not have, and servers that would run elsewhere."""
        if params.get("mcpServers"):
            raise BadInput(
                "The agents have the tools of their host: give servers to it, with ikigai --mcp COMMAND, and none here."
            )
        cwd, ours = params.get("cwd"), self._workspace
        if not isinstance(cwd, str) or not Path(cwd).is_absolute():
            raise BadInput("Expected cwd to be an absolute path.")
        if ours is not None and Path(cwd).resolve() != Path(ours).resolve():
            raise BadInput(f"The agents' workspace is {ours}, not {cwd}. Open that one, or start ikigai for this one.")

    def _session_id(self, params: Params) -> str:
        found = params.get("sessionId")
        if not isinstance(found, str):
            raise BadInput("Expected a sessionId.")
        return found

    def _session(self, params: Params) -> AgentRecord:
        return self._access.find(self._session_id(params))

    def _opened(self, uuid: str) -> dict[str, Any]:
        with self._lock:
            self._tree.open.add(uuid)
        return {"sessionId": uuid, "configOptions": self._options(uuid)}

    def _options(self, uuid: str) -> Sequence[Mapping[str, Any]]:
        """The settings that a client may change."""
        settings = self._access.client.scrollback(uuid).settings()
        model = str(settings.get("model") or DEFAULT)
        thinks = ADAPTIVE if settings.get("thinking") else DEFAULT
        return [
            _option("model", "Model", "model", model, dict.fromkeys((model, DEFAULT))),
            _option("thinking", "Thinking", "thought_level", thinks, (DEFAULT, ADAPTIVE)),
        ]

    def _forked(self, parent: str, at: object) -> str:
        """The uuid of a new child."""

        def unit() -> AddRemoteCommand:
            children = new_children(lambda: new_agent_uuid(self._access.system._random_bytes))
            fork = new_fork(children, at=at if at is None or isinstance(at, int) else -1, on_orphan="reparent")
            return AddRemoteCommand(parent, *encode(fork(None)), self._access.client.now_ms())

        kept = self._access.once(None, unit, lambda unit, number: {"request": number}, hosted=True)
        answer = self._access.answer(RemoteCommandKey(parent, kept["request"]), BIRTH)
        if answer is None:
            raise BadInput("The agent is busy: the fork happens after its step. List the sessions later.")
        if isinstance(answer.value, IkigaiError):
            raise answer.value
        return str(answer.value)

    # Prompts

    async def _prompt(self, request: RpcRequest) -> dict[str, Any]:
        handle = await self._work(partial(self._store_prompt, request.id, request.params))
        future = self._prompts[handle] = self._loop.create_future()
        try:
            await self._work(self._look_at_prompts)
            answer: dict[str, Any] = await future
            return answer
        finally:
            self._prompts.pop(handle, None)

    def _store_prompt(self, number: RequestId | None, params: Params) -> TurnHandle:
        """Keep a prompt, once for a request: one that the client sends again is the same prompt."""
        uuid, said = self._session(params).uuid, prompt_of(params.get("prompt"))
        data, blobs = data_of(None, list(said.attached))
        text = prompt_text(said.text)

        def unit() -> KeepPrompt:
            return KeepPrompt(uuid, text, self._access.client.now_ms(), EVERY_PROMPT, data, blobs)

        digest = hashlib.sha256(json.dumps([self._id, number]).encode()).hexdigest()
        call = KeyedCall(f"acp {digest}", "session/prompt", {"agent": uuid, "prompt": params.get("prompt")})
        mail = self._access.once(call, unit, lambda unit, kept: {"mail": kept.mail})["mail"]
        if self._access.find(uuid).turn:
            with self._lock:
                waits = "Your prompt waits until the turn in progress is over."
                self._show(uuid, [text_chunk("agent_thought_chunk", waits, f"{uuid}:m{mail}")])
        return TurnHandle(uuid, MAIL, mail)

    def _look_at_prompts(self) -> None:
        """Answer each prompt once its turn is over and the client has all of it."""
        with self._lock:
            self._answer_prompts(lambda handle: True)

    def _answer_prompts(self, concerns: Callable[[TurnHandle], bool]) -> None:
        for handle in [one for one in list(self._prompts) if concerns(one)]:  # the loop changes them meanwhile
            end: object = None
            try:
                seen = self._turns.seen(handle)
                if seen.end is not None and self._heard.get(handle.agent, 0) >= seen.position:
                    end = seen.end
                    if isinstance(end, ProviderError) and self._turns.steps_ended(seen):
                        end = Reply("", stop_reason=MOST_REQUESTS)
            except StoreError:  # it is looked at again soon
                continue
            except IkigaiError as error:
                end = error
            if end is not None:
                self._loop.call_soon_threadsafe(self._answer, handle, end)

    def _answer(self, handle: TurnHandle, end: object) -> None:
        future = self._prompts.get(handle)
        if future is None or future.done():
            return
        if isinstance(end, Reply):
            future.set_result({"stopReason": STOP_REASONS.get(end.stop_reason, "end_turn"), **_usage(end)})
        elif isinstance(end, TurnInterrupted):
            future.set_result({"stopReason": "cancelled"})
        elif isinstance(end, IkigaiError):
            future.set_exception(end)

    async def _cancel(self, params: Params) -> None:
        """End the turn of a session's agent, and take back its prompts that wait."""
        with suppress(IkigaiError):
            uuid = (await self._work(partial(self._session, params))).uuid
            for handle in [one for one in self._prompts if one.agent == uuid]:
                unit = WithdrawPrompt(uuid, handle.number)
                if await self._work(partial(self._access.client.write, unit)):
                    self._answer(handle, TurnInterrupted("withdrawn", uuid))
            await self._work(partial(self._signal, uuid, Signal.INT))

    def _signal(self, uuid: str, signal: Signal) -> None:
        self._access.client.signal(uuid, signal, cascade=False, reason="", grace=GRACE)

    # What the client is shown

    def hear(self, event: Event) -> None:
        """Take an event of the agents, on the subscription's thread."""
        with self._lock:
            match event:
                case Streamed():
                    self._stream(event)
                case StreamCut():
                    self._cut(event.agent_uuid)
                case Message():
                    self._hear_message(event)
                case Renamed():
                    self._update_child(event.agent_uuid, title=event.name)
                case Died():
                    self._above.clear()  # its children have other supervisors
                    self._update_child(event.agent_uuid, state={"state": "idle"})
                    self._answer_prompts(lambda handle: handle.agent == event.agent_uuid)
        if isinstance(event, Message) and (event.kind == Kind.APPROVAL or self._asked):
            with suppress(RuntimeError):  # the loop has ended
                asyncio.run_coroutine_threadsafe(self._ask_what_is_open(), self._loop)

    def _hear_message(self, message: Message) -> None:
        uuid = message.agent_uuid
        self._heard[uuid] = message.id
        live = self._live.pop(uuid, None) if message.kind == Kind.ASSISTANT else None
        if message.id > self._shown.get(uuid, 0) and (route := self._route(uuid)) is not None:
            if route.session == uuid:
                self._show(uuid, updates_of(message, live, compaction=self._compaction))
                self._show_mail(message)
                self._show_usage(message)
            elif message.kind == Kind.ASSISTANT:
                calls = [one for one in updates_of(message) if one["sessionUpdate"] == "tool_call"]
                self._show(route.session, [{**one, "title": f"{self._name(uuid)}: {one['title']}"} for one in calls])
            elif message.kind in (Kind.TOOL_CALL, Kind.TOOL_RESULT):
                self._show(route.session, updates_of(message))
            self._update_state(uuid)
        self._answer_prompts(lambda handle: handle.agent == uuid)

    def _show_mail(self, message: Message) -> None:
        """Show a mail to another agent to a client that knows subagents, after what has to be announced before."""
        if message.kind == Kind.ASSISTANT:
            self._replies[message.agent_uuid] = message
        sent = sent_mail(message, self._replies.get(message.agent_uuid)) if self._tree.subagents else None
        if sent is not None:
            to, body = sent
            with suppress(IkigaiError):  # several agents have that name now, or none
                to = self._access.find(to).uuid
            known = is_agent_uuid(to) and self._route(to) is not None
            self._show(message.agent_uuid, [mail_update(message, to if known else None, body)])

    def _show_usage(self, message: Message) -> None:
        """Show how full the window of the model is, and what the agent has cost, where both are known."""
        reply = reply_of(message) if message.kind == Kind.ASSISTANT else None
        if reply is not None and reply.usage is not None and (size := _window(str(message.data.get("model")))):
            spent = shown_amount("usd", self._access.client.get(message.agent_uuid).spent_usd)
            cost = {"cost": {"amount": spent, "currency": "USD"}}
            told = {"sessionUpdate": "usage_update", "used": reply.usage.all_tokens, "size": size, **cost}
            self._show(message.agent_uuid, [told])

    def _stream(self, piece: Streamed) -> None:
        uuid = piece.agent_uuid
        route = self._route(uuid)
        if route is None or route.session != uuid:
            return
        live = self._live.get(uuid)
        if live is None:
            self._lives += 1
            live = Live(f"{uuid}:live{self._lives}")
        if self._waiting() > MOST_WAITING:
            self._live[uuid] = live._replace(is_whole=False)
            return
        if piece.kind == "text":
            self._live[uuid] = live._replace(text=live.text + piece.text)
            self._show(uuid, [text_chunk("agent_message_chunk", piece.text, live.id)])
        else:
            self._live[uuid] = live
            self._show(uuid, [text_chunk("agent_thought_chunk", piece.text, f"{live.id}:thought")])

    def _cut(self, uuid: str) -> None:
        if self._live.pop(uuid, None) is not None:
            told = text_chunk("agent_thought_chunk", "The reply was cut off, and begins again.", f"{uuid}:cut")
            self._show(uuid, [{**told, "_meta": {"ikigai": {"cut": True}}}])

    def _route(self, uuid: str) -> Route | None:
        """Where the traffic of an agent goes, after what has to be announced before."""
        route = self._tree.route(uuid)
        if route is None:
            return None
        for parent, child in route.first:
            record = self._access.client.get(child)
            state = self._states[child] = "running" if record.turn else "idle"
            told = {"title": record.short, "capabilities": {"cancel": {}}, "state": {"state": state}}
            self._show(parent, [subagent_update(child, **told)])
        self._tree.announce(route)
        return route

    def _update_child(self, uuid: str, **fields: Any) -> None:
        if (parent := self._tree.announced.get(uuid)) is not None:
            self._show(parent, [subagent_update(uuid, **fields)])

    def _update_state(self, uuid: str) -> None:
        """Show whether an announced child is in a turn, if that has changed."""
        if uuid in self._tree.announced:
            state = "running" if self._access.client.get(uuid).turn else "idle"
            if self._states.get(uuid) != state:
                self._states[uuid] = state
                self._update_child(uuid, state={"state": state})

    def _show(self, session: str, updates: Any) -> None:
        for update in updates:
            self._connection.notify("session/update", {"sessionId": session, "update": update})

    def _supervisor(self, uuid: str) -> str | None:
        if uuid not in self._above:
            self._above[uuid] = self._access.client.get(uuid).supervisor_uuid
        return self._above[uuid]

    def _name(self, uuid: str) -> str:
        return self._access.client.get(uuid).short

    # Permissions

    async def _ask_what_is_open(self) -> None:
        """Ask the client about each call that waits below its sessions, once; take back what was decided elsewhere."""
        async with self._asking:  # so that no older look decides after a later one
            found = await self._work(self._questions)
            for key in [key for key in self._asked if key not in found]:
                self._asked.pop(key).cancel()
            for key, (call, route) in found.items():
                if key not in self._asked:
                    self._asked[key] = self._loop.create_task(self._ask(call, route))

    def _questions(self) -> dict[QuestionKey, tuple[PendingCall, Route]]:
        pending = self._access.system.approvals.pending()
        with self._lock:
            routes = [(call, route) for call in pending if (route := self._route(call.agent)) is not None]
        return {(call.agent, call.reply, call.id): (call, route) for call, route in routes}

    async def _ask(self, call: PendingCall, route: Route) -> None:
        title = call_title(call.tool, call.input)
        if route.session != call.agent:
            title = f"{await self._work(partial(self._name, call.agent))}: {title}"
        told = {"toolCallId": call.id, "title": title, "rawInput": dict(call.input), "status": "pending"}
        options = [one for one in OPTIONS if call.always or one["optionId"] != ALWAYS]
        asked = {"sessionId": route.session, "toolCall": told, "options": options}
        with suppress(RpcError, IkigaiError):  # it stays open: the next client is asked again
            said = await self._connection.ask("session/request_permission", asked)
            outcome = said.get("outcome") if isinstance(said, dict) else None
            if isinstance(outcome, dict) and outcome.get("outcome") == "selected":
                await self._work(partial(self._decide, call, outcome.get("optionId")))

    def _decide(self, call: PendingCall, option: object) -> None:
        approvals = self._access.system.approvals
        if option == "allow_once":
            approvals.approve(call, timeout=BIRTH)
        elif option == ALWAYS:
            approvals.approve(call, always=EXACT if EXACT in call.always else True, timeout=BIRTH)
        elif option == "reject_once":
            approvals.deny(call, timeout=BIRTH)


def _option(name: str, title: str, category: str, value: str, values: Any) -> dict[str, Any]:
    options = [{"value": one, "name": one} for one in values]
    return {
        "id": name, "name": title, "category": category, "type": "select", "currentValue": value, "options": options
    }  # fmt: skip


def _window(model: str) -> int:
    """How many tokens a model takes; 0 when it is not known."""
    provider, _, name = model.partition(":")
    return anthropic_window(name) if provider == "anthropic" else 0


def _usage(reply: Reply) -> dict[str, Any]:
    """The tokens of the latest request of a turn, where the service has counted them."""
    if (used := reply.usage) is None:
        return {}
    told = {"inputTokens": used.input_tokens, "outputTokens": used.output_tokens}
    return {"usage": {"totalTokens": used.input_tokens + used.output_tokens, **told}}


_METHODS: Mapping[str, Callable[[AcpDoor, Params], Any]] = {
    "session/new": AcpDoor.new,
    "session/fork": AcpDoor.fork,
    "session/load": AcpDoor.load,
    "session/resume": AcpDoor.resume,
    "session/list": AcpDoor.list,
    "session/close": AcpDoor.close,
    "session/delete": AcpDoor.delete,
    "session/set_config_option": AcpDoor.set_option,
}
