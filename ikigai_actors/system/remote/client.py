"""A client: reads and writes a database whose agents another process runs, or nobody at the moment.

    with Client.open("team.db") as client:
        kid = client.find("kid")
        mail = client.prompt(kid.uuid, "and now?")

Works on the thread of the caller, without futures. Each write is a transaction of its own, and committed when the
method returns; the host follows it. `AttachedSystem` adds a thread, futures and handles; the commands of ``ikigai`` add
words. Modules that take long to import are imported by the methods that need them.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self, TypeVar

from ikigai_actors.actors.clock import Clock, SystemClock
from ikigai_actors.actors.closing import ClosedByBlock
from ikigai_actors.agent.turn.state import HOSTLESS, IN_A_TURN, WAITS_FOR_TIME, Phase, waits_for, waits_for_person
from ikigai_actors.arguments import check_since
from ikigai_actors.errors import IkigaiError, NoHost
from ikigai_actors.frozen import NO_DATA
from ikigai_actors.records.agents import registry
from ikigai_actors.records.agents.registry import AgentRecord
from ikigai_actors.records.hosts.host_waits import published_state
from ikigai_actors.store.base import Store
from ikigai_actors.store.database_clock import clock_of
from ikigai_actors.store.existing import open_existing
from ikigai_actors.store.hosts.rows import HostRecord, open_hosts, owner
from ikigai_actors.store.unit import Unit, write_alone

if TYPE_CHECKING:
    from ikigai_actors.attachments import Attachment
    from ikigai_actors.records.budgets.spendings import Spending
    from ikigai_actors.records.hosts.remote_commands import RemoteCommandKey
    from ikigai_actors.records.lives.deaths import LifecycleChange
    from ikigai_actors.records.messages.messages import Message
    from ikigai_actors.store.base import Transaction
    from ikigai_actors.store.hosts.rows import HostRecord
    from ikigai_actors.system.remote.turn import RemoteTurn
    from supervisors.signals import Signal

SPENDING_BATCH = 10_000
"""The number of messages that `Client.spending` reads in one query."""

T = TypeVar("T")


def shown_state(record: AgentRecord, hosts: Sequence[HostRecord]) -> str:
    """Return the state of an agent for people, by the agent's row and the hosts that run the agents."""
    if record.status != "running":
        return record.status
    if record.waits_for is not None:
        return Phase.WAITING_FOR_BUDGET.value
    waits = published_state(hosts, record.uuid) if record.turn else ""
    return waits or turn_state(record, bool(hosts))


def turn_state(record: AgentRecord, hosted: bool) -> str:
    """Return the state of a running agent by its row. Only its host knows the phase of a turn in progress."""
    if not record.turn:
        return Phase.IDLE
    if record.cut_off:
        return Phase.INTERRUPTED
    if record.asks is not None and (hosted or record.parked):
        return waits_for_person(record.asks)
    if record.parked > 0:
        return waits_for(record.awaits) or WAITS_FOR_TIME
    return IN_A_TURN if hosted else HOSTLESS


def no_host(former: HostRecord | None = None) -> NoHost:
    """Return the error for a prompt that no host answers; ``former`` is the last host, if known."""
    return NoHost(
        f"No process runs the agents now{_gone(former)}. What was not answered waits in the database: leave, and start "
        f"{_starter(former)}, which then runs them."
    )


def nobody_asked(former: HostRecord | None = None) -> NoHost:
    """Return the error for a remote command that no host answers; ``former`` is the last host, if known."""
    return NoHost(
        f"No process runs the agents now{_gone(former)}, so this was not done, and will not be done later. Start "
        f"{_starter(former)}, which then runs them, and try again."
    )


def _gone(former: HostRecord | None) -> str:
    return "" if former is None else f": {former.called} is gone"


def _starter(former: HostRecord | None) -> str:
    return "ikigai" if former is None or former.name is None else f"ikigai host --name {former.name}"


class Client(ClosedByBlock):
    """Reads and writes one database from outside of the process that runs its agents.

    Any method may raise `StoreError`.
    """

    def __init__(
        self,
        store: Store,
        clock: Clock | None = None,
        on_commit: Callable[[Any], object] = lambda answer: None,
    ) -> None:
        """Use a store that is open already; see `open`.

        Args:
            store: the caller closes it, unless `close` is called.
            clock: for times that are stored; None for that of the database.
            on_commit: takes the answer of each unit that concerns others. See `Journal`.
        """
        self._store, self._on_commit = store, on_commit
        self._given_clock = clock

    @classmethod
    def open(cls, database: str | None = None) -> Self:
        """Open an existing database. Raises the errors of `open_existing`."""
        return cls(open_existing(database))

    @cached_property
    def _clock(self) -> Clock:
        return self._given_clock or clock_of(self._store, SystemClock())

    def close(self) -> None:
        """Close the database."""
        self._store.close()

    @property
    def location(self) -> str:
        """The path or URL of the database, without a password."""
        return self._store.location

    def now_ms(self) -> int:
        """The time of the database, in milliseconds since 1970."""
        return self._clock.now_ms()

    # Reading

    def why_late(self, uuid: str) -> str:
        """Return a sentence on why an agent has not answered yet; empty when the agent has nothing to do."""
        from ikigai_actors.system.remote.lateness import late_by_rows

        def read(tx: "Transaction") -> str:
            record = registry.get(tx, uuid)
            return late_by_rows(tx, record, shown_state(record, open_hosts(tx)))

        return self._store.read(read)

    def read(self, work: "Callable[[Transaction], T]") -> T:
        """Run a function that reads, within one transaction, and return the result."""
        return self._store.read(work)

    def root(self) -> AgentRecord | None:
        """Return agent 0; None before it was made."""
        return self._store.read(registry.root)

    def get(self, uuid: str) -> AgentRecord:
        """Return the agent with a uuid. Raises `AgentNotFound`."""
        return self._store.read(lambda tx: registry.get(tx, uuid))

    def label(self, uuid: str) -> str:
        """Return the name by which people see an agent; see `registry.shown_name_of`."""
        return self._store.read(lambda tx: registry.shown_name_of(tx, uuid))

    def find(self, text: str) -> AgentRecord:
        """Return the agent with a uuid, name, or unique prefix; see `registry.find`."""
        return self._store.read(lambda tx: registry.find(tx, text))

    def find_all(self, texts: Sequence[str]) -> list[AgentRecord]:
        """Return several agents, read at one moment, in the order of the texts; see `registry.find`."""
        return self._store.read(lambda tx: [registry.find(tx, text) for text in texts])

    def host(self) -> HostRecord | None:
        """Return the host that runs the agents; None if no process runs them."""
        return self._store.read(owner)

    def hosts(self) -> "list[HostRecord]":
        """Return the hosts that run the agents, and recently ended hosts, in the order of their start."""
        from ikigai_actors.store.hosts.rows import recent_hosts

        return self._store.read(recent_hosts)

    def check_types(self) -> None:
        """Raise `StoreUnusable` if a value of the database has a wrong type. Large tables are not checked."""
        from ikigai_actors.store.migrations import check_types

        check_types(self._store)

    def spending_by(self, by: str, since: str | None) -> "dict[str, Spending]":
        """The amounts spent, by the value of a label; see `ActorSystem.spending`."""
        from ikigai_actors.records.agents.labels import check_label_key
        from ikigai_actors.records.budgets.spendings import spending

        key, start = check_label_key(by), check_since(since, self._clock.now_ms())
        return self._store.read(lambda tx: spending(tx, key, start))

    def spending(self) -> "Iterator[Message]":
        """Yield every message that may have the cost of a request. Raises `HistoryError` for a wrong row."""
        from ikigai_actors.records.figures import FIRST_PLACE, MessagePlace, spending_after

        place: MessagePlace | None = FIRST_PLACE
        while place is not None:
            batch = spending_after(self._store, place, SPENDING_BATCH)
            place = batch.place
            for error in batch.damaged:
                raise error
            yield from batch.messages

    # Writing

    def write(self, unit: Unit) -> Any:
        """Commit a unit, and return its answer. All methods of the client write by this one.

        Raises the unit's refusal, and the errors of `Store.write`.
        """
        answer = write_alone(self._store, unit)
        if unit.concerns_others:
            self._on_commit(answer)
            freed: tuple[str, ...] = getattr(answer, "freed", ())  # a `LifecycleChange` has some, and a `Served`
            for budget in freed:
                from ikigai_actors.records.budgets.grants import Serve

                self.write(Serve(budget))  # what waits for it goes on
        return answer

    def prompt(
        self,
        uuid: str,
        text: str,
        data: Mapping[str, Any] = NO_DATA,
        blobs: "tuple[Attachment, ...]" = (),
        key: str | None = None,
    ) -> int:
        """Store a prompt as mail, which the host takes up when the agent is idle; return the number of the mail.

        Raises the errors of `Send`, and `KeyTaken`.

        Args:
            text: the prompt.
            data: further data of the message that the prompt will become.
            blobs: the attachments of the prompt.
            key: names the prompt for the agent: a second prompt with the key is not stored.
        """
        from ikigai_actors.errors import Repeated
        from ikigai_actors.records.mail.mail import PROMPT, Send
        from ikigai_actors.records.once import KeyedCall, Once, left_as

        now = self._clock.now_ms()
        send = Send(uuid, None, text, now, PROMPT, data, blobs)
        if key is None:
            return int(self.write(send).id)
        call = KeyedCall(key, "prompt", {"text": text, **data}, uuid, uuid, text)
        try:
            return int(self.write(Once(send, call, now, lambda mail: left_as(mail.id))).id)
        except Repeated as repeated:
            return int(repeated.gave["mail"])

    def add_command(self, uuid: str, kind: str, body: str, blobs: "tuple[Attachment, ...]" = ()) -> "RemoteCommandKey":
        """Add a remote command, which the host carries out; return its key. Raises the errors of `AddRemoteCommand`."""
        from ikigai_actors.records.hosts.remote_commands import AddRemoteCommand, RemoteCommandKey

        return RemoteCommandKey(uuid, self.write(AddRemoteCommand(uuid, kind, body, self._clock.now_ms(), blobs)))

    def withdraw(self, key: "RemoteCommandKey", why: "IkigaiError") -> bool:
        """Answer a remote command with an error, so that it is not carried out; False if it has an answer already."""
        from ikigai_actors.records.hosts.remote_commands import AnswerRemoteCommand

        return bool(self.write(AnswerRemoteCommand(key, why, self._clock.now_ms())))

    def first_turn(self, child: str) -> "RemoteTurn":
        """Return the first turn of a child that was forked with a prompt.

        A feed that began before this call follows it. Raises `AgentNotFound`.
        """
        from ikigai_actors.records.log.heads import section
        from ikigai_actors.records.messages.messages import Kind
        from ikigai_actors.system.remote.follower import News
        from ikigai_actors.system.remote.turn import RemoteTurn

        messages = self._store.read(lambda tx: section(tx, child, registry.get(tx, child).fork_message_id))
        opening = next(message.id for message in messages if message.kind == Kind.USER)
        turn = RemoteTurn(child, turn=opening)
        turn.follow(News(messages, (), {child: opening}, ()))  # of which a part may be published again
        return turn

    def signal(self, uuid: str, name: "Signal", *, cascade: bool, reason: str, grace: float) -> "LifecycleChange":
        """Send a signal as a person; arguments as for `AgentRef.signal`. Raises the errors of `SendSignal`."""
        from ikigai_actors.records.lives.deaths import LifecycleChange
        from ikigai_actors.records.lives.signals import SendSignal, milliseconds

        now, within = self._clock.now_ms(), milliseconds(grace)
        done: LifecycleChange = self.write(SendSignal(uuid, name, now, spread=cascade, reason=reason, grace=within))
        return done

    def interrupt(self, uuid: str, turn: int) -> None:
        """End the turn of an agent that the message ``turn`` opened, and no later turn.

        Raises the errors of `SendSignal`.
        """
        from ikigai_actors.records.lives.signals import SendSignal
        from supervisors.signals import Signal

        self.write(SendSignal(uuid, Signal.INT, self._clock.now_ms(), turn=turn))

    def drain(self, host: str) -> "HostRecord":
        """Ask a host, by name or id, to give all its agents to other hosts; return its row at once. Raises `NoHost`."""
        from ikigai_actors.store.hosts.rows import find_host
        from ikigai_actors.store.hosts.shards import Drain

        target = self._store.read(lambda tx: find_host(tx, host))
        self.write(Drain(target.id))
        return target
