"""AG-UI by HTTP: a run is a turn of an agent, as events that a web application shows, and that can be heard again.

    POST /agui/AGENT                    prompts the agent with what the user has said last; ``runId`` is the key of that
    GET  /agui/AGENT?after=POSITION     all events after a message of the history, and those to come

Events that end a message have its position as their id: who was cut off goes on there, by ``after`` or, as browsers do
it, by the header ``Last-Event-ID``. The history is the agent's: of the earlier messages of a request it is read only
which of them the client has, so that it does not get them twice. A call that waits for a decision ends the run as an
interrupt; ``resume`` decides on it, and follows the rest of the turn.
"""

import asyncio
import json
from collections.abc import Mapping
from time import monotonic
from typing import Any, NamedTuple

from aiohttp import web

from ikigai_actors.agent.turn.calls import CHANGED, PendingCall
from ikigai_actors.doors.acp.updates import call_title
from ikigai_actors.doors.agui.stream import LOOK_AGAIN, AgentStream, latest_of
from ikigai_actors.doors.agui.transcript import ClientMessages, WebEvent, call_id
from ikigai_actors.doors.sent_events import SentEvents
from ikigai_actors.errors import BadInput, IkigaiError, TurnInterrupted
from ikigai_actors.providers.base import Reply
from ikigai_actors.reach.access import Access
from ikigai_actors.reach.news import NewsFeed, NewsWatch
from ikigai_actors.reach.turns import TURN, SeenTurn, TurnHandle, TurnReader
from ikigai_actors.reach.views import position_of, scrollback_of
from ikigai_actors.records.messages.messages import Kind
from ikigai_actors.records.once import KeyedCall
from ikigai_actors.verbs.acts.changes import decide_on
from ikigai_actors.verbs.acts.turns import kept_prompt

_LONGEST_PAUSE = 8.0
"""Seconds between two looks at a turn of which nothing comes, at most: not all that ends one is a message."""

LONGEST_POSITION = 16
"""Digits that no position has."""


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
        {
            "id": one.full_name,
            "reason": "approval",
            "message": call_title(one.tool, one.input) + (f"\n{CHANGED}\n{one.change}" if one.former else ""),
            "toolCallId": call_id(one.reply, one.id),
        }
        for one in asks
    ]
    return {"type": "RUN_FINISHED", **run, "outcome": {"type": "interrupt", "interrupts": interrupts}}


class BegunRun(NamedTuple):
    """A run that was asked for."""

    handle: TurnHandle
    names: Mapping[str, str]
    """The ids of thread and run, as each end of it bears them."""
    has: ClientMessages
    """The messages that its client has."""
    after: int = 0
    """The message after which it begins; 0 for the one that opens the turn."""


class WebRuns:
    """Serves AG-UI."""

    def __init__(self, access: Access) -> None:
        self._access, self._feed = access, NewsFeed(lambda: access.system)

    async def post(self, request: web.Request) -> web.StreamResponse:
        """Prompt an agent, or decide on its calls, and stream the run."""
        try:
            asked = json.loads(await request.read())
            run = await asyncio.to_thread(self._begun, request.match_info["agent"], asked)
        except (IkigaiError, ValueError, RecursionError) as error:
            return web.json_response({"error": str(error)}, status=400)
        async with SentEvents(request) as stream, self._feed.watch(run.handle.agent, pieces=True) as news:
            await stream.send({"type": "RUN_STARTED", **run.names})
            try:
                await stream.send(await self._stream_run(stream, news, run))
            except IkigaiError as error:
                await stream.send({"type": "RUN_ERROR", "message": str(error)})
        return stream.response

    async def get(self, request: web.Request) -> web.StreamResponse:
        """Stream all events of an agent after a message."""
        after = request.query.get("after") or request.headers.get("Last-Event-ID") or "0"
        if not is_position(after):
            refused = f"Expected after to be the position of a message; got {after[:40]!r}."
            return web.json_response({"error": refused}, status=400)
        try:
            agent = (await asyncio.to_thread(self._access.find, request.match_info["agent"])).uuid
        except IkigaiError as error:
            return web.json_response({"error": str(error)}, status=404)
        async with SentEvents(request) as stream, self._feed.watch(agent, pieces=True) as news:
            shown = await AgentStream.after(int(after), self._access, stream, news, prompts=True)
            await shown.send_messages(await asyncio.to_thread(self._head, agent))
            while not stream.is_left:
                found = shown.news()
                await shown.send_messages(found.head)
                await shown.send_reply(found)
                await shown.wait()
        return stream.response

    async def _stream_run(self, stream: SentEvents, news: NewsWatch, run: BegunRun) -> WebEvent:
        """Send what a turn says; return the event that ends the run. Raises `IkigaiError` and `ConnectionError`."""
        while not (opening := await asyncio.to_thread(self._reader().opening, run.handle)):
            end, _ = await asyncio.to_thread(self._look_at_turn, run)
            if end is not None:
                return end  # its agent is dead
            await news.news(LOOK_AGAIN)
        shown = await AgentStream.after(run.after or opening, self._access, stream, news, has=run.has)
        due = pause = 0.0
        while True:
            found = shown.news()
            if (comes := found.head > shown.place) or monotonic() >= due:
                pause = LOOK_AGAIN if comes else min(2 * pause or LOOK_AGAIN, _LONGEST_PAUSE)
                due = monotonic() + pause
                end, until = await asyncio.to_thread(self._look_at_turn, run)
                await shown.send_messages(until)
                if end is not None:
                    return end
            await shown.send_reply(found)
            await shown.wait()

    def _look_at_turn(self, run: BegunRun) -> tuple[WebEvent | None, int]:
        """The event that ends a run, if it is over, and the message up to which it goes."""
        agent = run.handle.agent
        head = self._head(agent)  # before the turn is looked at: while that is open, all up to there is of it
        seen = self._reader().seen(run.handle)
        if seen.end is not None:
            return end_of(seen, [], run.names), seen.position
        asks = [one for one in self._access.system.approvals.pending() if one.agent == agent and one.reply <= head]
        return end_of(seen, asks if seen.is_open else [], run.names), head

    def _head(self, agent: str) -> int:
        return position_of(self._access.system, agent)

    def _reader(self) -> TurnReader:
        return self._access.turns

    def _begun(self, text: str, asked: Any) -> BegunRun:
        """The run that is asked for: its prompt is committed, or its decisions."""
        if not isinstance(asked, dict) or not isinstance(run := asked.get("runId"), str):
            raise BadInput("Expected a RunAgentInput: an object with threadId, runId and messages.")
        names = {"threadId": str(asked.get("threadId")), "runId": run}
        has = ClientMessages.of(asked.get("messages"))
        if asked.get("resume"):
            handle, after = self._resumed(text, asked["resume"])
            return BegunRun(handle, names, has, after)
        said, is_new = _latest_text(asked.get("messages"))
        keyed = self._access.under(KeyedCall(run, "agui", {"agent": text, "text": said}))
        if not is_new and not keyed.was_done():
            raise BadInput("Expected the latest of messages to be what the user says.")
        return BegunRun(kept_prompt(keyed, text, said), names, has)

    def _resumed(self, text: str, entries: Any) -> tuple[TurnHandle, int]:
        """The turn that goes on, and the reply that asked."""
        record, approvals = self._access.find(text), self._access.system.approvals
        given = {
            str(one.get("interruptId")): one for one in entries if isinstance(entries, list) and isinstance(one, dict)
        }
        asked = max((reply for name in given if (reply := self._asking_reply(record.uuid, name))), default=0)
        if not asked:
            raise BadInput(f"Agent {record.short} has asked nothing of that name: resume what an interrupt gave.")
        for call in [one for one in approvals.pending() if one.agent == record.uuid and one.full_name in given]:
            entry = given[call.full_name]
            payload = entry.get("payload")
            allowed = payload.get("approved") if isinstance(payload, dict) else payload
            allow = entry.get("status") == "resolved" and allowed is True
            decide_on(self._access, record.uuid, call.full_name, allow)
        scrollback = scrollback_of(self._access.client, record.uuid)
        return TurnHandle(record.uuid, TURN, latest_of(scrollback, asked, lambda one: one.kind == Kind.USER)), asked

    def _asking_reply(self, agent: str, name: str) -> int:
        """The reply that asks by a call of this full name; 0 for none."""
        number = name.partition("/")[0]
        if not is_position(number):
            return 0
        found = scrollback_of(self._access.client, agent).between(int(number) - 1, int(number))
        calls = [PendingCall(agent, one.id, c.id, c.name, c.input) for one in found for c in one.calls]
        return next((call.reply for call in calls if f"{name}/".startswith(f"{call.full_name}/")), 0)


def is_position(text: str) -> bool:
    """Whether a text of a request can be the position of a message, in digits."""
    return text.isascii() and text.isdecimal() and len(text) < LONGEST_POSITION


def _latest_text(messages: Any) -> tuple[str, bool]:
    """The latest words of the user, and whether nothing came after them. Raises `BadInput`."""
    found = [one for one in messages if isinstance(one, dict)] if isinstance(messages, list) else []
    said = [one for one in found if one.get("role") == "user"]
    content = said[-1].get("content") if said else None
    if isinstance(content, list):
        parts = [one.get("text") for one in content if isinstance(one, dict) and one.get("type") == "text"]
        content = "\n".join(one for one in parts if isinstance(one, str))
    if not isinstance(content, str):
        raise BadInput("Expected messages with one that the user says.")
    return content, found[-1] is said[-1]
