"""AG-UI by HTTP: a run is a turn of an agent, as events that a web application shows, and that can be heard again.

    POST /agui/AGENT                    prompts the agent with what the user has said last; ``runId`` is the key of that
    GET  /agui/AGENT?after=POSITION     all events after a message of the history, and those to come

Events that end a message have its position as their id: who was cut off goes on there, by ``after`` or, as browsers do
it, by the header ``Last-Event-ID``. The history is the agent's, so earlier messages of a request are not read. A call
that waits for a decision ends the run as an interrupt; ``resume`` decides on it, and follows the rest of the turn.
"""

import asyncio
import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, TypeVar

from aiohttp import web

from ikigai_actors.agent.subscriptions import StreamCut, Streamed
from ikigai_actors.agent.turn.calls import PendingCall
from ikigai_actors.doors.access import EVERY_PROMPT, Access
from ikigai_actors.doors.acp.updates import Live, call_title, message_id
from ikigai_actors.doors.turns import MAIL, TURN, SeenTurn, TurnHandle, TurnReader
from ikigai_actors.errors import BadInput, IkigaiError, TurnInterrupted
from ikigai_actors.providers.base import Reply
from ikigai_actors.records.agents.registry import Died
from ikigai_actors.records.hosts.keyed import KeyedCall
from ikigai_actors.records.mail.prompts import KeepPrompt
from ikigai_actors.records.messages.messages import Kind, Message
from ikigai_actors.records.messages.replies import calls_in
from ikigai_actors.system.lifecycle import prompt_text

LOOK_AGAIN = 1.0
"""Seconds between two looks at a turn, at most: not all that ends one is a message."""

T = TypeVar("T")
WebEvent = Mapping[str, Any]


def events_of(message: Message, live: Live | None = None) -> Iterator[WebEvent]:
    """The events of a message; ``live`` is what was streamed of it already."""
    match message.kind:
        case Kind.ASSISTANT:
            goes_on = live is not None and live.is_whole and message.content.startswith(live.text)
            under = live.id if goes_on and live is not None else message_id(message)
            rest = message.content[len(live.text) :] if goes_on and live is not None else message.content
            if rest or goes_on:
                yield from [] if goes_on else [_text("START", under, role="assistant")]
                yield from [_text("CONTENT", under, delta=rest)] if rest else []
                yield _text("END", under)
            for call in calls_in(message):
                yield _call("START", call.id, toolCallName=call.name, parentMessageId=under)
                yield _call("ARGS", call.id, delta=json.dumps(dict(call.input)))
                yield _call("END", call.id)
        case Kind.TOOL_RESULT:
            told = {"messageId": message_id(message), "content": message.content, "role": "tool"}
            yield _call("RESULT", str(message.data.get("tool_use_id")), **told)


def _text(what: str, under: str, **more: Any) -> WebEvent:
    return {"type": f"TEXT_MESSAGE_{what}", "messageId": under, **more}


def _call(what: str, call: str, **more: Any) -> WebEvent:
    return {"type": f"TOOL_CALL_{what}", "toolCallId": call, **more}


def end_of(seen: SeenTurn, asks: list[PendingCall], run: Mapping[str, str]) -> WebEvent | None:
    """The event that ends a run; None while it goes on."""
    if isinstance(seen.end, Reply):
        return {"type": "RUN_FINISHED", **run, "outcome": {"type": "success"}}
    if isinstance(seen.end, TurnInterrupted):
        return {"type": "RUN_FINISHED", **run, "outcome": {"type": "cancelled"}}
    if seen.end is not None:
        return {"type": "RUN_ERROR", "message": str(seen.end)}
    if not asks:
        return None
    interrupts = [
        {"id": one.full_name, "reason": "approval", "message": call_title(one.tool, one.input), "toolCallId": one.id}
        for one in asks
    ]
    return {"type": "RUN_FINISHED", **run, "outcome": {"type": "interrupt", "interrupts": interrupts}}


class RunStream:
    """The events of one agent for one client, in order."""

    def __init__(self, access: Access, agent: str, response: web.StreamResponse) -> None:
        self._access, self._agent, self.response = access, agent, response
        self._loop = asyncio.get_running_loop()
        self._news: asyncio.Queue[Any] = asyncio.Queue()
        self._live: Live | None = None
        self._lives = 0
        self.place = 0
        """The latest message that was sent."""

    def hear(self, event: Any) -> None:
        """Take an event of any agent, on the subscription's thread."""
        if event.agent_uuid == self._agent:
            with suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(self._news.put_nowait, event)

    async def begin(self, after: int, until: int = EVERY_PROMPT) -> None:
        """Send what there is between two messages, the second one included."""
        self.place = after
        scrollback = await asyncio.to_thread(self._access.client.scrollback, self._agent)
        for message in await asyncio.to_thread(scrollback.between, after, until):
            await self._send_message(message)

    async def follow(self, *, sends: bool = True) -> None:
        """Send what comes next, or pass it over; return when something has come, or after a second."""
        with suppress(TimeoutError):
            event = await asyncio.wait_for(self._news.get(), LOOK_AGAIN)
            match event if sends else None:
                case Message() if event.id > self.place:
                    await self._send_message(event)
                case Streamed(kind="text"):
                    await self._send_piece(event.text)
                case StreamCut() if self._live is not None:
                    await self.send(_text("END", self._live.id))
                    self._live = None

    async def send(self, event: WebEvent, place: int = 0) -> None:
        """Send an event; ``place`` is the message that it completes."""
        number = f"id: {place}\n" if place else ""
        await self.response.write(f"{number}data: {json.dumps(event)}\n\n".encode())

    async def _send_message(self, message: Message) -> None:
        live, self._live = (self._live, None) if message.kind == Kind.ASSISTANT else (None, self._live)
        events = [*events_of(message, live)]
        for event in events[:-1]:
            await self.send(event)
        for event in events[-1:]:
            await self.send(event, message.id)
        self.place = message.id

    async def _send_piece(self, text: str) -> None:
        if self._live is None:
            self._lives += 1
            self._live = Live(f"{self._agent}:live{self._lives}")
            await self.send(_text("START", self._live.id, role="assistant"))
        self._live = self._live._replace(text=self._live.text + text)
        await self.send(_text("CONTENT", self._live.id, delta=text))


class WebRuns:
    """Serves AG-UI."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._turns: TurnReader | None = None

    async def post(self, request: web.Request) -> web.StreamResponse:
        """Prompt an agent, or decide on its calls, and stream the run."""
        try:
            asked = json.loads(await request.read())
            handle = await asyncio.to_thread(self._begun, request.match_info["agent"], asked)
        except (IkigaiError, ValueError, RecursionError) as error:
            return web.json_response({"error": str(error)}, status=400)
        run = {"threadId": str(asked.get("threadId")), "runId": str(asked.get("runId"))}
        async with _Streaming(self._access, request, handle.agent) as stream:
            await stream.send({"type": "RUN_STARTED", **run})
            while not (opening := await asyncio.to_thread(self._reader().opening, handle)):
                if (end := await asyncio.to_thread(self._end, handle, EVERY_PROMPT, run)) is not None:
                    await stream.send(end)  # its agent is dead
                    return stream.response
                await stream.follow(sends=False)
            seen = await asyncio.to_thread(self._reader().seen, handle)
            await stream.begin(opening, EVERY_PROMPT if seen.end is None else seen.position)
            while (end := await asyncio.to_thread(self._end, handle, stream.place, run)) is None:
                await stream.follow()
            await stream.send(end)
            return stream.response

    async def get(self, request: web.Request) -> web.StreamResponse:
        """Stream all events of an agent after a message."""
        after = request.query.get("after") or request.headers.get("Last-Event-ID") or "0"
        try:
            if not after.isdecimal():
                raise BadInput(f"Expected after to be a position; got {after[:40]!r}.")
            agent = (await asyncio.to_thread(self._access.find, request.match_info["agent"])).uuid
        except IkigaiError as error:
            return web.json_response({"error": str(error)}, status=404)
        async with _Streaming(self._access, request, agent) as stream:
            await stream.begin(int(after))
            while request.transport is not None and not request.transport.is_closing():
                await stream.follow()
            return stream.response

    def _reader(self) -> TurnReader:
        if self._turns is None:
            self._turns = TurnReader(self._access.system._store, self._access.system.approvals.pending)
        return self._turns

    def _begun(self, text: str, asked: Any) -> TurnHandle:
        """The turn of a run: prompted for, or gone on with."""
        if not isinstance(asked, dict) or not isinstance(run := asked.get("runId"), str):
            raise BadInput("Expected a RunAgentInput: an object with threadId, runId and messages.")
        if asked.get("resume"):
            return self._resumed(text, asked["resume"])
        said = _latest_text(asked.get("messages"))
        kept = self._access.once(
            KeyedCall(run, "agui", {"agent": text, "text": said}),
            lambda: KeepPrompt(
                self._access.find(text).uuid, prompt_text(said), self._access.client.now_ms(), EVERY_PROMPT
            ),
            lambda unit, kept: {"agent": unit.recipient, "mail": kept.mail},
        )
        return TurnHandle(self._access.check(kept["agent"]), MAIL, kept["mail"])

    def _resumed(self, text: str, entries: Any) -> TurnHandle:
        record, approvals = self._access.find(text), self._access.system.approvals
        given = {one.get("interruptId"): one for one in entries if isinstance(one, dict)}
        for call in [one for one in approvals.pending() if one.agent == record.uuid and one.full_name in given]:
            entry = given[call.full_name]
            payload = entry.get("payload")
            allowed = payload.get("approved") if isinstance(payload, dict) else payload
            if entry.get("status") == "resolved" and allowed is True:
                approvals.approve(call, timeout=LOOK_AGAIN)
            else:
                approvals.deny(call, timeout=LOOK_AGAIN)
        if not record.turn:
            raise BadInput(f"Agent {record.short} is in no turn: there is nothing to resume.")
        return TurnHandle(record.uuid, TURN, record.turn)

    def _end(self, handle: TurnHandle, place: int, run: Mapping[str, str]) -> WebEvent | None:
        seen = self._reader().seen(handle)
        if seen.end is not None and place < seen.position:
            return None  # not all of it is sent
        asks = [one for one in self._access.system.approvals.pending() if one.agent == handle.agent]
        return end_of(seen, asks if seen.is_open else [], run)


def _latest_text(messages: Any) -> str:
    """The latest thing that the user has said. Raises `BadInput`."""
    latest = messages[-1] if isinstance(messages, list) and messages else None
    content = latest.get("content") if isinstance(latest, dict) and latest.get("role") == "user" else None
    if isinstance(content, list):
        parts = [one.get("text") for one in content if isinstance(one, dict) and one.get("type") == "text"]
        content = "\n".join(one for one in parts if isinstance(one, str))
    if not isinstance(content, str):
        raise BadInput("Expected the latest of messages to be what the user says.")
    return content


class _Streaming:
    """An answer of events, and the subscription that feeds it."""

    def __init__(self, access: Access, request: web.Request, agent: str) -> None:
        self._access, self._request, self._agent = access, request, agent

    async def __aenter__(self) -> "RunStream":
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-store"})
        stream = RunStream(self._access, self._agent, response)
        only = (Message, Streamed, StreamCut, Died)
        self._heard = await asyncio.to_thread(self._access.system.subscribe, stream.hear, only)
        await response.prepare(self._request)
        return stream

    async def __aexit__(self, *error: object) -> None:
        await asyncio.to_thread(self._heard.close)
