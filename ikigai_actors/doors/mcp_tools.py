"""What the tools of ``ikigai mcp`` do. `mcp_catalog` says what each takes and gives.

A tool that opens a turn gives a handle, and so does each further call under the same key. Only ``wait`` waits.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, NamedTuple

from ikigai_actors.agent.remote_commands import encode
from ikigai_actors.agent.turn import events as on
from ikigai_actors.agent.turn.calls import EXACT
from ikigai_actors.agent.turn.ways import WAYS
from ikigai_actors.errors import BadInput, IkigaiError, NameTaken
from ikigai_actors.reach.access import EVERY_PROMPT, Access
from ikigai_actors.reach.turns import TurnHandle, TurnReader, first_turn, spent_by
from ikigai_actors.records.agents.identity import new_agent_uuid
from ikigai_actors.records.budgets.budget import Budget, BudgetStatus
from ikigai_actors.records.budgets.grants import Grant
from ikigai_actors.records.hosts.keyed import KeyedCall
from ikigai_actors.records.hosts.remote_commands import AddRemoteCommand, RemoteCommandKey, answer_of
from ikigai_actors.records.log.diff import Tail
from ikigai_actors.records.log.heads import latest_times
from ikigai_actors.records.mail.mail import Mail, Send
from ikigai_actors.records.mail.prompts import KeepPrompt
from ikigai_actors.records.messages.messages import Kind, Message
from ikigai_actors.records.messages.replies import calls_in
from ikigai_actors.system.lifecycle import GRACE, new_children, new_fork, prompt_text
from supervisors.signals import Signal

LONGEST_TURN_WAIT = 45.0
"""Seconds after which a wait answers with what it has: clients drop answers that take a minute."""

MOST_HANDLES, MOST_MESSAGES, MOST_AGENTS, CUT = 100, 200, 1_000, 4_000
"""The most handles that are waited for, messages and agents that are listed, and characters of a message."""


class Begun(NamedTuple):
    """Turns that a call gives: as they are when they are over, or when the time is."""

    handles: Sequence[TurnHandle]
    give: Callable[[list[dict[str, Any]]], Any]
    """Makes the answer of the turns, in the order of the handles."""
    seconds: float
    any: bool = False
    """Whether one that is over is enough."""
    is_task: bool = False
    """Whether it is one turn, which may be a task."""


class AgentTools:
    """Does what the tools are called for. Each method waits for the database, and for nothing that takes long."""

    def __init__(self, access: Access) -> None:
        self.access = access

    @cached_property
    def turns(self) -> TurnReader:
        """How turns are."""
        return TurnReader(self.access.system._store, self.access.system.approvals.pending)

    # Turns

    def fork(self, given: Mapping[str, Any]) -> Begun:
        """Fork, and prompt the child."""
        count, name, prompt = given.get("count"), given.get("name"), prompt_text(given["prompt"])

        def unit() -> AddRemoteCommand:
            parent = self.access.find(given.get("of"))
            random_bytes = self.access.system._random_bytes
            children = new_children(lambda: new_agent_uuid(random_bytes), prompt, name, count=count)
            model, system, at, budget = (given.get(one) for one in ("model", "system", "at", "budget"))
            kind, body = encode(new_fork(children, model=model, system=system, at=at, budget=budget)(None))
            return AddRemoteCommand(parent.uuid, kind, body, self.access.client.now_ms())

        asked = self._asked("fork", given, unit)
        handles = [TurnHandle(asked.agent, "r", asked.id, child) for child in range(count or 1)]

        def give(seen: list[dict[str, Any]]) -> Any:
            answer = self.access.client.read(lambda tx: answer_of(tx, asked))
            if answer is not None and isinstance(answer.value, IkigaiError):
                return {**self.turns.look_at(self._existing(asked.agent, answer.value, prompt)), "existed": True}
            known = [{**turn, "handle": str(self.turns.settled(one))} for turn, one in zip(seen, handles, strict=True)]
            return known[0] if count is None else known

        return Begun(handles, give, self.access.quick, is_task=count is None)

    def _existing(self, parent: str, refusal: IkigaiError, prompt: str) -> TurnHandle:
        """The first turn of the living child that has the name already and began so. Raises why there was no fork."""
        if not isinstance(refusal, NameTaken) or parent not in refusal.above:
            raise refusal
        try:
            handle, said = self.access.client.read(lambda tx: first_turn(tx, refusal.holder))
        except IkigaiError:
            raise refusal from None
        if said != prompt:
            raise refusal
        return handle

    def prompt(self, given: Mapping[str, Any]) -> Begun:
        """Prompt an agent."""
        text = prompt_text(given["text"])

        def unit() -> KeepPrompt:
            to = self.access.find(given["agent"])
            return KeepPrompt(to.uuid, text, self.access.client.now_ms(), known=EVERY_PROMPT)

        kept = self.access.once(
            _call("prompt", given), unit, lambda unit, kept: {"agent": unit.recipient, "mail": kept.mail}
        )
        handle = TurnHandle(self.access.check(kept["agent"]), "m", kept["mail"])
        return Begun([handle], lambda seen: seen[0], self.access.quick, is_task=True)

    def wait(self, given: Mapping[str, Any]) -> Begun:
        """Wait for turns."""
        handles = [TurnHandle.parse(text) for text in given["handles"]]
        for uuid in {handle.agent for handle in handles}:
            self.access.check(uuid)
        seconds = min(float(given.get("seconds", 30)), LONGEST_TURN_WAIT)
        return Begun(handles, lambda seen: seen, seconds, given.get("any", False))

    # Mail, documents

    def send(self, given: Mapping[str, Any]) -> Any:
        """Send a mail."""

        def unit() -> Send:
            return Send(self.access.find(given["agent"]).uuid, None, given["text"], self.access.client.now_ms())

        return self.access.once(
            _call("send", given), unit, lambda unit, mail: {"agent": mail.recipient, "mail": mail.id}
        )

    def read_mail(self, given: Mapping[str, Any]) -> Any:
        """Read the mail of an agent."""
        agent = self.access.ref(given["agent"])
        if given.get("take", False):
            found = agent.read_mail()
        else:
            found = [
                mail for mail in agent.mails(latest=MOST_MESSAGES) if mail.read_at is None and mail.kind != "prompt"
            ]
        return [_mail(mail) for mail in found]

    def documents(self, given: Mapping[str, Any]) -> Any:
        """List, read or write documents."""
        known, do, path = self.access.system.documents, given["do"], given.get("path")
        if do == "list":
            return [{"path": one.path, "version": one.version} for one in known.list(path or "")]
        if path is None:
            raise BadInput(f"Give the path of the document to {do}.")
        if do == "read":
            found = known.read(path, given.get("version"))
            return [{"path": found.path, "version": found.version, "text": found.body}]
        if (text := given.get("text")) is None:
            raise BadInput("Give the text to write.")
        return [{"path": path, "version": known.write(path, text, expect=given.get("version"))}]

    # Looking

    def agents(self, given: Mapping[str, Any]) -> Any:
        """List agents."""
        access = self.access
        shown, more = access.below(given.get("under"), MOST_AGENTS, given.get("dead", False))
        times = access.client.read(lambda tx: latest_times(tx, [one.uuid for one in shown]))
        return {
            "result": [
                {
                    "agent": one.uuid,
                    "name": one.name,
                    "state": access.system.state_of(one),
                    "parent": one.supervisor_uuid if one.uuid != access.top else None,
                    "spent": spent_by(one),
                    "last_activity": _time(times.get(one.uuid, one.created_at)),
                }
                for one in shown
            ],
            "more": more,
        }

    def history(self, given: Mapping[str, Any]) -> Any:
        """Show the latest messages of a history."""
        scrollback = self.access.client.scrollback(self.access.find(given["agent"]).uuid)
        most, before = given.get("last", 20), given.get("before")
        return [
            _message(one) for one in (scrollback.latest(most) if before is None else scrollback.before(before, most))
        ]

    def diff(self, given: Mapping[str, Any]) -> Any:
        """Show where two histories part."""
        found = self.access.ref(given["a"]).diff(self.access.ref(given["b"]))
        return {"common": found.common, "a": _tail(found.a), "b": _tail(found.b)}

    # Acting

    def merge(self, given: Mapping[str, Any]) -> Any:
        """Take in what a child has said."""
        how = given.get("how", WAYS[0])

        def unit() -> AddRemoteCommand:
            child = self.access.find(given["child"]).uuid
            kind, body = encode(on.Merge(child, how, tuple(given.get("positions", ())), None))
            return AddRemoteCommand(self.access.find(given["agent"]).uuid, kind, body, self.access.client.now_ms())

        asked = self._asked("merge", given, unit)
        told = {"agent": asked.agent, "request": asked.id}
        answer = self.access.answer(asked, self.access.quick)
        if answer is None:
            return {**told, "done": False}
        if isinstance(answer.value, IkigaiError):
            raise answer.value
        return {**told, "done": True, "position": answer.value["position"], "text": answer.value["text"][:CUT]}

    def signal(self, given: Mapping[str, Any]) -> Any:
        """Send a signal."""
        return self._signalled(given, Signal(given["signal"]))

    def kill(self, given: Mapping[str, Any]) -> Any:
        """End an agent."""
        return self._signalled(given, Signal.KILL)

    def _signalled(self, given: Mapping[str, Any], signal: Signal) -> list[str]:
        uuid = self.access.find(given["agent"]).uuid
        change = self.access.client.signal(
            uuid, signal, cascade=given.get("cascade", False), reason=given.get("reason", ""), grace=GRACE
        )
        return [*change.dead]

    def decide(self, given: Mapping[str, Any]) -> Any:
        """Decide on the call that was shown under its full name, while it waits."""
        approvals = self.access.system.approvals
        call = approvals.find(self.access.find(given["agent"]).uuid, given["call"])
        if call is None:
            return False
        self.access.check_hosted(self.access.quick)
        if given["allow"]:
            exact = EXACT if EXACT in call.always else True
            return approvals.approve(call, always=given.get("always", False) and exact, timeout=self.access.quick)
        return approvals.deny(call, given.get("reason", ""), timeout=self.access.quick)

    def grant(self, given: Mapping[str, Any]) -> Any:
        """Grant more of a budget."""

        def unit() -> Grant:
            more = Budget(tokens=given.get("tokens"), usd=given.get("usd")).limits()
            if not any(more.values()):
                raise BadInput("Say how much to grant: usd or tokens.")
            return Grant(self.access.find(given["agent"]).uuid, more)

        return self.access.once(_call("grant", given), unit, lambda unit, served: _budget(served.status))

    def _asked(self, name: str, given: Mapping[str, Any], unit: Callable[[], AddRemoteCommand]) -> RemoteCommandKey:
        """Ask an agent to do something itself, once under the key."""
        kept = self.access.once(
            _call(name, given), unit, lambda unit, number: {"agent": unit.agent, "request": number}, hosted=True
        )
        return RemoteCommandKey(self.access.check(kept["agent"]), kept["request"])


def _call(name: str, given: Mapping[str, Any]) -> KeyedCall | None:
    """The call as its key names it; None without a key."""
    key = given.get("key")
    return None if key is None else KeyedCall(key, name, {one: given[one] for one in given if one != "key"})


def _time(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="milliseconds")


def _message(message: Message) -> dict[str, Any]:
    """A message, with the calls of a reply, and of a result the call that it answers."""
    made = calls_in(message) if message.kind == Kind.ASSISTANT else ()
    calls = [(call, json.dumps(dict(call.input), ensure_ascii=False)) for call in made]
    cut = any(len(text) > CUT for text in (message.content, *(given for _, given in calls)))
    told: dict[str, Any] = {"position": message.id, "kind": str(message.kind), "text": message.content[:CUT]}
    if calls:
        told["calls"] = [{"id": call.id, "tool": call.name, "arguments": given[:CUT]} for call, given in calls]
    if message.kind == Kind.TOOL_RESULT:
        told |= {"id": message.data.get("tool_use_id"), "tool": message.data.get("name")}
        told |= {"is_error": True} if message.data.get("is_error") else {}
    return {**told, "cut": True} if cut else told


def _tail(tail: Tail) -> dict[str, Any]:
    """The latest messages that one of two agents has and the other has not."""
    shown = tail.messages[-MOST_MESSAGES:]
    return {"agent": tail.agent, "name": tail.name, "messages": [_message(one) for one in shown]}


def _mail(mail: Mail) -> dict[str, Any]:
    return {"mail": mail.id, "from": mail.sender, "kind": mail.kind, "text": mail.body, "at": _time(mail.created_at)}


def _budget(status: BudgetStatus) -> dict[str, Any]:
    return {"agent": status.owner, "granted": dict(status.granted), "spent": dict(status.spent)}
