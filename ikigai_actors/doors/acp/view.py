"""The updates about agents that a client was shown, and the next updates that the client must get.

One lock orders the updates. The subscription's thread shows committed messages and streamed texts. The load of a
session shows a history under the same lock, so no message is shown twice.
"""

import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

from acp.schema import Cost, ToolCallStart, UsageUpdate
from pydantic import BaseModel

from ikigai_actors.agent.subscriptions import Event, StreamCut, Streamed
from ikigai_actors.doors.acp.models import dumped
from ikigai_actors.doors.acp.session_tree import Route, SessionTree
from ikigai_actors.doors.acp.updates import (
    Live,
    Update,
    mail_update,
    said_chunk,
    sent_mail,
    subagent_update,
    thought_chunk,
    updates_of,
)
from ikigai_actors.doors.json_rpc import Params
from ikigai_actors.errors import IkigaiError
from ikigai_actors.reach.access import Access
from ikigai_actors.reach.views import window_of
from ikigai_actors.records.agents.identity import is_agent_uuid
from ikigai_actors.records.agents.registry import Died, Renamed
from ikigai_actors.records.messages.messages import Kind, Message
from ikigai_actors.verbs.text.budgets import dollars

MOST_WAITING = 8 * 1024 * 1024
"""The most unread bytes of a client. Beyond that, pieces of replies are left out, and it gets the message at the
end.
"""


class ClientView:
    """Shows one client of ACP the agents of its sessions, as updates."""

    def __init__(self, access: Access, notify: Callable[[str, Params], object], waiting: Callable[[], int]) -> None:
        """Show the agents by notifications; ``waiting`` returns how many bytes the client has not read yet."""
        self._access, self._notify, self._waiting = access, notify, waiting
        self.lock = threading.Lock()
        """The lock of the view: callers of `hear`, `show` and `route`, and readers of `heard`, hold it."""
        self.heard: dict[str, int] = {}
        """The position of the latest message of each agent that the view has handled; an open session was shown it."""
        self._above: dict[str, str | None] = {}
        self._tree = SessionTree(self._supervisor)
        self._compaction = False
        self.shows_forms = False
        """Whether the client shows forms to its user."""
        self._live: dict[str, Live] = {}
        self._lives = 0
        self._shown: dict[str, int] = {}
        self._states: dict[str, str] = {}
        self._replies: dict[str, Message] = {}

    def adapt(self, *, subagents: bool, compaction: bool, forms: bool) -> None:
        """Adapt the updates to a client, which may support subagents or summaries."""
        with self.lock:
            self.shows_forms = forms
            self._tree.subagents, self._compaction = subagents, compaction

    def open(self, uuid: str) -> None:
        """Show the client an agent from now on."""
        with self.lock:
            self._tree.open.add(uuid)

    def open_with_history(self, uuid: str) -> None:
        """Show the client an agent from its first message on."""
        with self.lock:
            history = self._access.system.handle(uuid).history()
            self._tree.open.add(uuid)
            for message in history:
                self.show(uuid, updates_of(message, replayed=True, compaction=self._compaction))
                self._show_mail(message)
            self._shown[uuid] = max((message.id for message in history), default=0)
            self._live.pop(uuid, None)

    def close(self, uuid: str) -> None:
        """Stop showing the client an agent."""
        with self.lock:
            self._tree.forget(uuid)

    def hear(self, event: Event) -> None:
        """Show an event of an agent to the client, if it concerns an open session."""
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

    def _hear_message(self, message: Message) -> None:
        uuid = message.agent_uuid
        self.heard[uuid] = message.id
        live = self._live.pop(uuid, None) if message.kind == Kind.ASSISTANT else None
        if message.id > self._shown.get(uuid, 0) and (route := self.route(uuid)) is not None:
            if route.session == uuid:
                self.show(uuid, updates_of(message, live, compaction=self._compaction))
                self._show_mail(message)
                self._show_usage(message)
            elif message.kind == Kind.ASSISTANT:
                calls = [update for update in updates_of(message) if isinstance(update, ToolCallStart)]
                self.show(route.session, [_titled(call, f"{self.name(uuid)}: {call.title}") for call in calls])
            elif message.kind in (Kind.TOOL_CALL, Kind.TOOL_RESULT):
                self.show(route.session, updates_of(message))
            self._update_state(uuid)

    def _show_mail(self, message: Message) -> None:
        """Show an agent's mail to another agent to a client that supports subagents, after the needed announcements."""
        if message.kind == Kind.ASSISTANT:
            self._replies[message.agent_uuid] = message
        sent = sent_mail(message, self._replies.get(message.agent_uuid)) if self._tree.subagents else None
        if sent is not None:
            to, body = sent
            with suppress(IkigaiError):  # several agents have that name now, or none
                to = self._access.find(to).uuid
            known = is_agent_uuid(to) and self.route(to) is not None
            self.show(message.agent_uuid, [mail_update(message, to if known else None, body)])

    def _show_usage(self, message: Message) -> None:
        """Show the used part of the model's window, and the cost of the agent, if both are known."""
        reply = message.reply if message.kind == Kind.ASSISTANT else None
        if reply is not None and reply.usage is not None and (size := window_of(str(message.data.get("model")))):
            spent = dollars(self._access.client.get(message.agent_uuid).spent_usd)
            cost = Cost(amount=spent, currency="USD")
            used = UsageUpdate(session_update="usage_update", used=reply.usage.all_tokens, size=size, cost=cost)
            self.show(message.agent_uuid, [used])

    def _stream(self, piece: Streamed) -> None:
        uuid = piece.agent_uuid
        route = self.route(uuid)
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
            self.show(uuid, [said_chunk(piece.text, live.id)])
        else:
            self._live[uuid] = live
            self.show(uuid, [thought_chunk(piece.text, f"{live.id}:thought")])

    def _cut(self, uuid: str) -> None:
        if self._live.pop(uuid, None) is not None:
            meta = {"ikigai": {"cut": True}}
            self.show(uuid, [thought_chunk("The reply was cut off, and begins again.", f"{uuid}:cut", meta)])

    def route(self, uuid: str) -> Route | None:
        """Return the session for an agent's messages, after announcing the sessions that must come first."""
        route = self._tree.route(uuid)
        if route is None:
            return None
        for parent, child in route.first:
            record = self._access.client.get(child)
            state = self._states[child] = "running" if record.turn else "idle"
            fields = {"title": record.short, "capabilities": {"cancel": {}}, "state": {"state": state}}
            self.show(parent, [subagent_update(child, **fields)])
        self._tree.announce(route)
        return route

    def _update_child(self, uuid: str, **fields: Any) -> None:
        if (parent := self._tree.announced.get(uuid)) is not None:
            self.show(parent, [subagent_update(uuid, **fields)])

    def _update_state(self, uuid: str) -> None:
        """Show whether an announced child is in a turn, if that has changed."""
        if uuid in self._tree.announced:
            state = "running" if self._access.client.get(uuid).turn else "idle"
            if self._states.get(uuid) != state:
                self._states[uuid] = state
                self._update_child(uuid, state={"state": state})

    def show(self, session: str, updates: Iterable[Update]) -> None:
        """Send updates to a session of the client."""
        for update in updates:
            content = dumped(update) if isinstance(update, BaseModel) else update
            self._notify("session/update", {"sessionId": session, "update": content})

    def _supervisor(self, uuid: str) -> str | None:
        if uuid not in self._above:
            self._above[uuid] = self._access.client.get(uuid).supervisor_uuid
        return self._above[uuid]

    def name(self, uuid: str) -> str:
        """Return the shown name of an agent."""
        return self._access.client.get(uuid).short


def _titled(call: ToolCallStart, title: str) -> ToolCallStart:
    return call.model_copy(update={"title": title})
