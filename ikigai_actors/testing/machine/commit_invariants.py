"""Invariants that are checked after each commit, from its changes. The checks are cheap.

    owner       the positions of a log grow by one, and a reply or result is written only in an open turn
    fenced      a dead agent writes nothing, sends nothing, forks nothing, and stays dead
    name        no two living agents have the same name, and dead agents keep theirs
    tree        a commit with a birth, a death or a new supervisor has locked the row of ``tree``
    barrier     no agent forks at its head while an ordinary call of its last reply has no result
    mail        the mails of an agent are numbered in order of commit; the commit that shows a mail to a model marks the
                mail as read, each mail once
    prompt      a prompt by mail opens one turn, in the commit that marks the prompt as taken up
    turn        the commit of the last message of a turn also closes the turn
    output      a typed turn ends with a value of its type, never with a text; the model is asked again twice at most
    blobs       the commit of a message has the bytes to which the message refers, or the bytes exist already
    late        no log has a reply that came after its request was cancelled
    signals     a paused agent gets no reply, and opens no turn except one that ends at once
    int         if another process has interrupted a prompt, the commit that opens the prompt's turn also ends the turn
    intensity   a supervisor restarts at most as many children within its period as it may, and gives up no earlier
    cut-off     a prompt by mail ends no open turn, except a person's prompt after the host has left the turn; a host
                resumes a turn without progress twice at most, and writes no heartbeat of a turn that it leaves
    life        a host writes heartbeats at most every 2 s, of existing agents alone, and within the limit of agents
    otp         a child that ends is restarted according to its restart type, or removed, as OTP's ``supervisor`` does

Each name begins the message of its failures.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ikigai_actors.agent.boot import MOST_CUT_OFFS
from ikigai_actors.agent.builtin_calls.table import BUILTIN_CALLS
from ikigai_actors.agent.turn.calls import calls_of
from ikigai_actors.agent.turn.typed import MOST_REPAIRS
from ikigai_actors.records.hosts.host_signs import MOST_SIGNS, HostSigns, decode_signs
from ikigai_actors.records.lives.supervision import GAVE_UP
from ikigai_actors.records.mail.mail import MAIL, PROMPT
from ikigai_actors.records.messages.blob_references import blobs_of
from ikigai_actors.records.messages.blobs import read_blobs
from ikigai_actors.records.messages.forms import ASKER
from ikigai_actors.records.messages.messages import ENDINGS, IN_TURN, Kind, Message
from ikigai_actors.records.messages.outputs import Expected, expected_in, problems
from ikigai_actors.records.messages.reply_data import INTERRUPTED
from ikigai_actors.store.base import Row, Transaction
from ikigai_actors.system.host.sign_board import SIGNS_EVERY
from ikigai_actors.testing.simulation.changes import SHARED_TREE, RanStatement, StoredChange, Written
from ikigai_actors.testing.simulation.remote import LATE
from supervisors.causes import Cause
from supervisors.intensity import DEFAULT_INTENSITY, DEFAULT_PERIOD

if TYPE_CHECKING:
    from ikigai_actors.testing.simulation.world import Simulation

SLACK = 2_000
"""The milliseconds that may pass between a decision and its commit, while the store is busy."""

_CHANGES_TREE = frozenset({"rename", "adopt", "bury"})
_RESTARTED_AFTER = {"permanent": {Cause.CRASHED, Cause.EXITED}, "transient": {Cause.CRASHED}, "temporary": set[Cause]()}
"""By restart type, the ends of a child after which its supervisor restarts it.
https://www.erlang.org/doc/man/supervisor
"""

_SHOWN = re.compile(r"^mail (\d+) from ", re.MULTILINE)


@dataclass(slots=True)
class Standing:
    """The state of an agent according to the commits so far."""

    supervisor: str | None
    head: int
    turn: int = 0
    restart: str = "permanent"
    status: str = "running"
    calls: set[str] = field(default_factory=set)
    """The ordinary calls of the agent's last reply that have no result and do not wait for a person."""
    cut_off: bool = False
    """Whether these calls were another host's and the turn was not resumed. Then none of them runs, and forks do not
    wait for them.
    """
    is_moved: bool = False
    """Whether a host has given the agent to another host, which is no crash."""
    left: bool = False
    """Whether the agent's turn was cut off, and its host does not resume it."""
    said_since: set[int] = field(default_factory=set)
    """The prompts that people have left since then, which end that turn: none of a timer or of a program."""
    resumed: tuple[int, int] = (0, 0)
    """The position that the turn had reached when a host last resumed it, and how often it was resumed from there."""
    batched: int = 0
    """The position at which the agent's latest request joined a batch."""
    mailed: int = 0
    unread: dict[int, str] = field(default_factory=dict)
    """The unread mails except prompts: the sender by the number of the mail, empty for a person."""
    prompts: set[int] = field(default_factory=set)
    """The numbers of the agent's mails of kind ``prompt`` that it has not taken up."""
    interrupted: set[int] = field(default_factory=set)
    """The prompts among them that another process has interrupted."""
    withdrawn: set[int] = field(default_factory=set)
    """The prompts among them that were withdrawn, or that were taken up before somebody tried to withdraw them."""
    paused: bool = False
    """Whether the agent is stopped, has got the signal, and has no request in flight."""
    heard_stop: bool = False
    """Whether the agent is stopped and has got the signal, even if a request is in flight."""
    intensity: int = DEFAULT_INTENSITY
    period: int = DEFAULT_PERIOD
    restarts: list[int] = field(default_factory=list)
    """The times at which the agent restarted children, since its own restart or the latest change of its
    supervision.
    """
    uncertain: bool = False
    """Whether the agent's rules have changed, so that decisions by the earlier rules may still be committed."""
    gave_up: bool = False
    name: str | None = None
    asked_for: Expected | None = None
    """The type of value for which the agent's latest prompt asks; None for any answer."""


class CommitCheck:
    """Checks each commit of a run against the invariants of this module."""

    def __init__(self, world: "Simulation") -> None:
        self._world = world
        self.agents: dict[str, Standing] = {}
        self._tree = 0
        self._wrong: list[str] = []
        self._wrote_signs: dict[str, float] = {}
        """When each host wrote heartbeats last, by the monotonic clock."""
        self._timed: set[str] = set()
        """The texts of all timers."""
        self._last: dict[str, Message] = {}
        """The last message of each agent that the commit at hand writes."""

    def committed(self, changes: Sequence[StoredChange]) -> None:
        """Check the changes of one commit."""
        turns = {uuid: agent.turn for uuid, agent in self.agents.items()}
        was_unread = {uuid: dict(agent.unread) for uuid, agent in self.agents.items() if agent.unread}
        waited = {uuid: set(agent.prompts) for uuid, agent in self.agents.items() if agent.prompts}
        for change in changes:
            if isinstance(change, RanStatement):
                self._ran(change.query, change.parameters)
            elif change.table == "messages":
                self._wrote(change.row, turns)
            elif change.table == "mail":
                self._mailed(change.row)
        self._check_prompts(changes, waited, turns)
        self._check_turns()
        self._check_shown(changes, was_unread)
        before, self._tree = self._tree, self._world.process.looked_at.read(_tree_version)
        ran = {each.query for each in changes if isinstance(each, RanStatement)}
        if self._tree == before and (_CHANGES_TREE & ran or ("register" in ran and SHARED_TREE not in changes)):
            self._broken(f"tree: it was not locked for {'; '.join(map(str, changes))}")
        wrong, self._wrong = self._wrong, []
        if wrong:
            self._world.process.broken("; ".join(wrong))

    def _broken(self, what: str) -> None:
        self._wrong.append(what)

    def _wrote(self, row: Row, turns: dict[str, int]) -> None:
        message = Message.from_row(row)
        uuid, kind = message.agent_uuid, message.kind
        agent = self.agents[uuid]
        if agent.status == "dead":
            self._broken(f"fenced: agent {uuid} is dead, and writes {kind} {message.content!r}")
        if message.id != agent.head + 1:
            self._broken(f"owner: expected position {agent.head + 1} next in the log of agent {uuid}, got {message.id}")
        before = self._last.get(uuid)
        at_once = kind == Kind.INTERRUPTED and before is not None and before.kind == Kind.USER
        agent.head, self._last[uuid] = message.id, message
        if kind in IN_TURN and not (turns.get(uuid) or agent.turn or at_once):
            self._broken(f"owner: agent {uuid} writes {kind} {message.content!r}, and no turn is open")
        if agent.paused and kind in (Kind.ASSISTANT, Kind.STEER):
            self._broken(f"signals: agent {uuid} is stopped, and writes {kind} {message.content!r}")
        if agent.heard_stop and kind == Kind.STEER:
            self._broken(f"signals: agent {uuid} is stopped, knows it, and reads {message.content!r}")
        agent.cut_off = agent.cut_off and kind not in IN_TURN
        self._check_output(agent, message)
        self._check_blobs(message)
        if kind == Kind.ASSISTANT:
            if message.content == LATE:
                self._broken(f"late: the log of agent {uuid} has a reply to a call that was cancelled")
            agent.calls = {call.id for call in calls_of(message) if call.name not in BUILTIN_CALLS}
        elif kind in (Kind.TOOL_RESULT, Kind.APPROVAL):
            agent.calls.discard(str(message.data.get("tool_use_id")))
        if not agent.turn:
            agent.calls = set()

    def _mailed(self, row: Row) -> None:
        recipient, number, sender, kind = row[:4]
        agent = self.agents[recipient]
        agent.mailed += 1
        if number != agent.mailed:
            self._broken(f"mail: expected mail {agent.mailed} of agent {recipient}, got {number}")
        if agent.status == "dead":
            self._broken(f"fenced: agent {recipient} is dead, and gets mail {number}")
        if kind == MAIL and sender and self.agents[sender].status == "dead":
            self._broken(f"fenced: agent {sender} is dead, and sends mail {number} to {recipient}")
        if kind == PROMPT:
            agent.prompts.add(number)
            if agent.left and row[4] not in self._timed and ASKER not in str(row[7]):
                agent.said_since.add(number)
        else:
            agent.unread[number] = sender or ""

    def _ran(self, query: str, parameters: Mapping[str, Any]) -> None:
        match query:
            case "register_root":
                self.agents.setdefault(parameters["uuid"], Standing(None, 0))
            case "register":
                self._born(parameters)
                self._named(parameters)
            case "rename":
                self._named(parameters)
            case "claim_shards" | "claim_some_shards" | "give_shards" | "move_agents":
                for agent in self.agents.values():
                    agent.cut_off = True
                    agent.is_moved = agent.is_moved or query in ("give_shards", "move_agents")
            case "adopt":
                for uuid in parameters["uuids"]:
                    self.agents[uuid].supervisor = parameters["by"]
            case "set_turn" | "keep_hold":
                if parameters["turn"] is not None:
                    self.agents[parameters["uuid"]].turn, self.agents[parameters["uuid"]].left = (
                        parameters["turn"],
                        False,
                    )
            case "add_timer":
                self._timed.add(parameters["body"])
            case "leave_cut_off":
                for agent in (self.agents[uuid] for uuid in parameters["uuids"]):
                    agent.left, agent.said_since = True, set()
            case "go_on_cut_off":
                self._goes_on(self.agents[parameters["uuid"]], parameters["uuid"], parameters["at"])
            case "add_member":
                self.agents[parameters["agent"]].batched = parameters["position"]
            case "bury":
                self._buried(parameters)
            case "set_status":
                self._status(parameters)
            case "mark_read":
                agent, sender = self.agents[parameters["recipient"]], parameters["sender"]
                for number in [n for n, of in agent.unread.items() if n <= parameters["last"] and sender in (None, of)]:
                    del agent.unread[number]
            case "take_prompt":
                self.agents[parameters["recipient"]].prompts.discard(parameters["id"])
            case "interrupt_prompts":
                for agent in (self.agents[uuid] for uuid in parameters["uuids"]):
                    waiting = agent.prompts - agent.interrupted - agent.withdrawn
                    agent.interrupted |= {min(waiting)} if waiting else set()
            case "withdraw_prompt":
                self.agents[parameters["recipient"]].withdrawn.add(parameters["id"])
            case "take_words":
                self.agents[parameters["recipient"]].prompts -= set(map(int, parameters["ids"]))
            case "mark_one_read" | "delete_mail":
                self.agents[parameters["recipient"]].unread.pop(parameters["id"], None)
            case "set_supervision":
                agent = self.agents[parameters["uuid"]]
                agent.intensity = agent.intensity if parameters["intensity"] is None else parameters["intensity"]
                agent.period = agent.period if parameters["period"] is None else parameters["period"]
                agent.restarts, agent.uncertain = [], True
            case "add_restart":
                self._restarted(parameters["agent"], parameters["supervisor"], parameters["now"])
            case "publish_signs":
                self._signs(parameters["host"], decode_signs(parameters["signs"]))

    def _born(self, parameters: Mapping[str, Any]) -> None:
        uuid, parent, maker = parameters["uuid"], parameters["parent"], parameters["supervisor"]
        agent = self.agents[parent]
        if self.agents[maker].status == "dead":  # trials go on from the histories of the dead, too
            self._broken(f"fenced: agent {maker} is dead, and forks {uuid}")
        if agent.calls and not agent.cut_off and parameters["fork"] == agent.head:
            self._broken(f"barrier: agent {parent} forks while calls {', '.join(sorted(agent.calls))} have no result")
        self.agents[uuid] = Standing(maker, parameters["fork"], parameters["turn"], parameters["restart"])

    def _named(self, parameters: Mapping[str, Any]) -> None:
        uuid, name = parameters["uuid"], parameters["name"]
        if self.agents[uuid].status == "dead":
            self._broken(f"fenced: agent {uuid} is dead, and is renamed")
        others = [other for other, agent in self.agents.items() if other != uuid and agent.status != "dead"]
        if name is not None and (same := [other for other in others if self.agents[other].name == name]):
            self._broken(f"name: agents {uuid} and {same[0]} live, and both are named {name!r}")
        self.agents[uuid].name = name

    def _buried(self, parameters: Mapping[str, Any]) -> None:
        for uuid in parameters["uuids"]:
            agent = self.agents[uuid]
            if agent.status == "dead":
                self._broken(f"fenced: agent {uuid} dies a second time")
            if parameters["cause"] in _RESTARTED_AFTER[agent.restart]:
                self._broken(f"otp: agent {uuid} is {agent.restart}, has {parameters['cause']}, and is buried")
            if parameters["cause"] == GAVE_UP and agent.supervisor is not None:
                self._gave_up(agent.supervisor)
            agent.status, agent.turn, agent.paused, agent.heard_stop = "dead", 0, False, False

    def _status(self, parameters: Mapping[str, Any]) -> None:
        for uuid in parameters["uuids"]:
            agent = self.agents[uuid]
            if agent.status == "dead":
                self._broken(f"fenced: agent {uuid} is dead, and becomes {parameters['status']}")
            if parameters["reason"] == GAVE_UP and agent.supervisor is not None:
                self._gave_up(agent.supervisor)
                self.agents[agent.supervisor].gave_up = True
            agent.status, agent.paused, agent.heard_stop = parameters["status"], False, False

    def _restarted(self, uuid: str, by: str, now: int) -> None:
        agent, above = self.agents[uuid], self.agents[by]
        if agent.restart == "temporary":
            self._broken(f"otp: agent {uuid} is temporary, and is restarted")
        if uuid != by:
            above.restarts.append(now)
            counted = [then for then in above.restarts[:-1] if abs(now - then) <= above.period]
            if len(counted) + 1 > above.intensity and not above.gave_up and agent.status == "running":
                self._broken(
                    f"intensity: agent {by} restarts {uuid} at {now}, and may do so {above.intensity} times "
                    f"within {above.period} ms; it did at {counted}"
                )
        agent.restarts, agent.uncertain, agent.gave_up = [], False, False

    def _goes_on(self, agent: Standing, uuid: str, at: int) -> None:
        """Note that a cut-off turn goes on, and check that a turn does not go on too often without progress.

        A turn that only waits, for others (0) or for a batch, may go on as often as it likes.
        """
        if at in (0, agent.batched):
            agent.left = False
            return
        times = agent.resumed[1] + 1 if agent.resumed[0] == at else 1
        if times >= MOST_CUT_OFFS and not agent.left and not agent.is_moved:
            self._broken(
                f"cut-off: the turn of agent {uuid} goes on from {at} for the time {times}, and came no further"
            )
        agent.resumed, agent.left = (at, times), False

    def _signs(self, host: str, signs: HostSigns) -> None:
        now = self._world.clock.monotonic()
        if now - self._wrote_signs.get(host, float("-inf")) < SIGNS_EVERY - 0.001:
            self._broken(f"life: host {host} writes signs at {now:.3f}, and did at {self._wrote_signs[host]:.3f}")
        self._wrote_signs[host] = now
        if left := [uuid for uuid in signs.signs if uuid in self.agents and self.agents[uuid].left]:
            self._broken(f"cut-off: host {host} writes heartbeats of {left}, whose turns it has left")
        if len(signs.signs) > MOST_SIGNS or signs.signs.keys() - self.agents.keys():
            self._broken(f"life: host {host} writes {len(signs.signs)} signs: too many, or of agents that nobody knows")

    def _gave_up(self, uuid: str) -> None:
        agent, now = self.agents[uuid], self._world.clock.now_ms()
        counted = [then for then in agent.restarts if now - then <= agent.period + SLACK]
        if not agent.uncertain and len(counted) < agent.intensity:
            self._broken(
                f"intensity: agent {uuid} gives up at {now}, and may restart {agent.intensity} times "
                f"within {agent.period} ms; it did at {counted}"
            )

    def _check_output(self, agent: Standing, message: Message) -> None:
        """Check that a turn's value has the requested type, and that a model is not asked again too often."""
        if message.kind == Kind.USER or (message.kind == Kind.FORK and "go" in message.data):
            agent.asked_for = expected_in(message.data)
        value = message.data.get("output")
        if message.kind == Kind.OUTPUT and (agent.asked_for is None or problems(agent.asked_for, value)):
            self._broken(f"output: agent {message.agent_uuid} gives {value!r} for {agent.asked_for}")
        if message.data.get("repair", 0) > MOST_REPAIRS:
            self._broken(f"output: agent {message.agent_uuid} is asked again: {message.content!r}")

    def _check_blobs(self, message: Message) -> None:
        """Check that the bytes of each blob to which a message refers are stored."""
        if mentioned := {blob.sha256 for blob in blobs_of(message)}:
            stored = self._world.process.looked_at.read(lambda tx: read_blobs(tx, mentioned))
            if missing := mentioned - stored.keys():
                self._broken(f"blobs: message {message.id} of agent {message.agent_uuid} refers to {missing}")

    def _check_turns(self) -> None:
        """Check that a turn which ended in the log is closed in the registry, and has the value that was requested."""
        written, self._last = self._last, {}
        for uuid, message in written.items():
            words = message.kind == Kind.ASSISTANT and message.data.get("stop_reason") != INTERRUPTED
            if words and not calls_of(message) and self.agents[uuid].asked_for is not None:
                self._broken(
                    f"output: the turn of agent {uuid} ends with {message.content!r}, and was asked for a value"
                )
            if message.kind in ENDINGS and not calls_of(message) and self.agents[uuid].turn:
                self._broken(f"turn: {message.kind} {message.content!r} ends the turn of agent {uuid}, and it is open")

    def _check_prompts(
        self, changes: Sequence[StoredChange], waited: dict[str, set[int]], turns: Mapping[str, int]
    ) -> None:
        """Check that each mail taken up as a prompt waited until this commit, and that no turn begins that must not."""
        for change in changes:
            if isinstance(change, Written) and change.table == "messages" and change.row[2] == Kind.USER:
                uuid, number = change.row[0], json.loads(change.row[4] or "{}").get("mail")
                agent, ends = self.agents[uuid], self._last[uuid].kind == Kind.INTERRUPTED
                if agent.paused and not ends:
                    self._broken(f"signals: agent {uuid} is stopped, and writes user {change.row[3]!r}")
                if number is not None and turns.get(uuid) and number not in agent.said_since:
                    self._broken(f"cut-off: agent {uuid} begins with its mail {number}, and a turn was open")
                if number in agent.interrupted and not ends:
                    self._broken(f"int: agent {uuid} begins with its mail {number}, for which an INT had come")
                if number is not None and number not in waited.get(uuid, set()) - self.agents[uuid].prompts:
                    self._broken(f"prompt: agent {uuid} takes up its mail {number} once more, or leaves it")

    def _check_shown(self, changes: Sequence[StoredChange], was_unread: dict[str, dict[int, str]]) -> None:
        """Check that mail in the result of a model's ``read_mail`` was unread until this commit, and is read since."""
        for change in changes:
            if not (isinstance(change, Written) and change.row[2] == Kind.TOOL_RESULT and change.table == "messages"):
                continue
            data = json.loads(change.row[4] or "{}")
            if data.get("name") != "read_mail" or data.get("is_error"):
                continue
            uuid, shown = change.row[0], set(map(int, _SHOWN.findall(change.row[3])))
            came = {
                each.row[1]
                for each in changes
                if isinstance(each, Written) and (each.table, each.row[0]) == ("mail", uuid)
            }
            after = self.agents[uuid].unread
            if again := shown - was_unread.get(uuid, {}).keys() - came:
                self._broken(f"mail: the model of agent {uuid} is shown mails {sorted(again)}, which were read before")
            if left := shown & after.keys():
                self._broken(f"mail: the model of agent {uuid} is shown mails {sorted(left)}, which stay unread")


def _tree_version(tx: Transaction) -> int:
    return int(tx.schema.execute("SELECT version FROM tree")[0][0])
