"""Remote agents: commands from this process to agents that another process runs, and the answers that it awaits.

    remote = RemoteAgents(store, client, publish, follower)
    remote.actor(uuid).deliver(on.Prompt("tea", future))       # a row, committed when this returns
    remote.refresh(follower.news)                              # settles the future once the turn is over

Prompts are mail, and wait for the next host when there is none. Every other command is a *remote command*: its row gets
an answer, which the future is given. If no host runs the agents, the command is withdrawn, so that it is not carried
out after its caller has got the error. A host that has just gone may come back, as after a restart of the database's
server, so commands to its agents wait some seconds more.

A caller always gets the answer, since no message or row that belongs to the answer is missed:

- An agent is followed before a command to it is committed, so all of the turn comes after the agent's place.
- A turn that was begun by the actor of an agent which has moved to another host is read from the position that the
  actor knew, and followed from the moment of that read.
- A look that advances the place of an agent passes the messages in between to all callers that wait for the agent:
  `News` names every agent whose place the look advances, even if subscribers have got the messages already.

The module starts no thread. The thread of a caller posts the command, and carries out all posted commands in their
order, so the next command of a program comes after it. For a thread that may not wait, such as one of the runtime, the
loop (`ikigai_actors.system.remote.following`) does that, soon after `wake`. The loop also finds the turns and commands
that have ended. No wait begins during a look, so that none is missed. The future of a command raises all its errors.
"""

import logging
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from ikigai_actors.actors.futures import Future, may_block
from ikigai_actors.actors.threads import current_threads
from ikigai_actors.agent.messages import TakeBack
from ikigai_actors.agent.remote_commands import RemoteCaller, RemoteCommand, encode
from ikigai_actors.agent.subscriptions import PromptKept
from ikigai_actors.agent.succession import Heir
from ikigai_actors.agent.turn import events as on
from ikigai_actors.errors import (
    AgentDead,
    Fenced,
    HostElsewhere,
    IkigaiError,
    NoTurn,
    SystemClosed,
    TurnInterrupted,
    Withdrawn,
)
from ikigai_actors.providers.base import Reply
from ikigai_actors.records.agents import registry
from ikigai_actors.records.agents.registry import AgentRecord, Died
from ikigai_actors.records.hosts.remote_commands import Answered, RemoteCommandKey, answer_of
from ikigai_actors.records.log.heads import section
from ikigai_actors.records.mail.prompts import WithdrawPrompt
from ikigai_actors.records.mail.words import KeepWord, KeptWord
from ikigai_actors.records.messages.messages import Message
from ikigai_actors.records.messages.pieces import LISTENS_FOR, Listen
from ikigai_actors.records.messages.replies import last_outcome, outcome_of
from ikigai_actors.store.asker import for_asker
from ikigai_actors.store.base import Store, Transaction
from ikigai_actors.store.hosts.rows import HostRecord
from ikigai_actors.system.receipts import Receipt
from ikigai_actors.system.remote.client import Client, no_host, nobody_asked
from ikigai_actors.system.remote.follower import Follower, News
from ikigai_actors.system.remote.publisher import SharedPublisher
from ikigai_actors.system.remote.turn import RemoteTurn, RemoteWord
from supervisors.signals import Signal, Status

if TYPE_CHECKING:
    from ikigai_actors.agent.messages import Handover

logger = logging.getLogger(__name__)

RENEW = LISTENS_FOR / 3
"""Seconds between two notices of this process to the hosts that it still listens."""


class RemoteAgents:
    """Sends commands to agents that other processes run, and settles the futures of the callers."""

    def __init__(
        self,
        store: Store,
        client: Client,
        publisher: SharedPublisher,
        follower: Follower,
        who: str,
    ) -> None:
        """Make the object; the loop that follows the database calls `carry_out` and `refresh`.

        Args:
            store: where agents and their logs are read.
            client: writes what is asked.
            publisher: takes a `PromptKept`, and knows which messages of agents were published already.
            follower: follows all agents, or those of which something is awaited.
            who: names this process as a reader of replies in progress: the id of a host, else random.
        """
        self.follower = follower
        """Reads what is new, in a `refresh`."""
        self.wake: Callable[[], object] = lambda: None
        """Has `carry_out` called soon; set by the owner of the thread that calls it."""
        self._store, self._client, self._publisher = store, client, publisher
        self._looking = current_threads().lock()  # held for a look, and to ask
        self._posted: deque[Callable[[], object]] = deque()
        self._awaited: list[tuple[RemoteTurn | RemoteWord, Future[Any]]] = []
        self._asked: dict[RemoteCommandKey, Future[Any]] = {}
        self._ended: IkigaiError | None = None
        self._who, self._renew_at = who, 0.0
        self._listens = (False, False)  # whether somebody is here, and wants to see replies, as the hosts know it
        self.hosts: Sequence[HostRecord] = ()
        """The hosts that ran the agents at the latest look, the latest first."""
        self._deserted = True  # whether nobody runs them, and nobody is expected to go on by itself
        self._former: HostRecord | None = None  # who ran them last, when nobody does

    @property
    def host(self) -> HostRecord | None:
        """The host that ran the agents at the latest look, the newest of several; None if no host ran them."""
        return next(iter(self.hosts), None)

    def actor(self, uuid: str) -> "RemoteActor":
        """Return the proxy of an agent's actor, which sends the commands as rows."""
        return RemoteActor(self, uuid)

    def tell(self, uuid: str, command: Any) -> None:
        """Send a command to an agent: its row is committed when this returns, unless this thread may not wait."""
        self.post(uuid, command, wait=may_block())

    def post(self, uuid: str, command: Any, *, wait: bool = False) -> None:
        """Send a command to an agent soon; or ``wait`` until its row is committed."""
        self._post_for(command.caller, partial(self._ask, uuid, command), wait)

    def inherit(self, uuid: str, handover: "Handover") -> None:
        """Take over the callers and commands of an actor whose agent has moved to another host. Never waits.

        The agent may have gone on there, so the log after the last position that the actor knew is read.
        """
        for caller in handover.callers:
            if handover.turn:
                turn = RemoteTurn(uuid, turn=handover.turn)
                self._post_for(caller, partial(self.await_turn, turn, handover.turn, caller))
            else:  # whether it has begun was not known
                self.post(uuid, on.GetOutcome(caller))
        for command in handover.commands:
            if isinstance(command, on.Prompt) and command.interrupted:
                self._post_for(command.caller, partial(self._give_up, uuid, command))
            elif isinstance(command, on.Prompt) and command.mail:
                turn = RemoteTurn(uuid, prompt=command.mail)
                self._post_for(command.caller, partial(self.await_turn, turn, handover.head, command.caller))
            else:
                self.take_over(uuid, command)
        for mail, receipt in handover.receipts:
            self.await_word(uuid, mail, handover.head, receipt)

    def await_word(self, uuid: str, mail: int, behind: int, receipt: Receipt) -> None:
        """Settle a receipt when a stored steering message enters the history after message ``behind``. Never waits."""
        self._post(partial(self._try, receipt, partial(self.await_turn, RemoteWord(uuid, mail), behind, receipt)))

    def steer(self, uuid: str, word: KeepWord, receipt: Receipt) -> None:
        """Send an agent a steering message; its row is committed on return, unless this thread may not wait."""
        self._post(partial(self._try, receipt, partial(self._steer, uuid, word, receipt)), wait=may_block())

    def take_over(self, uuid: str, message: Any) -> None:
        """Send on a message that the ended actor of an agent has not handled. Never waits."""
        caller = getattr(message, "caller", None)
        if isinstance(caller, RemoteCaller):
            caller.settle(Fenced(f"Agent {uuid} is left to another host.", uuid))  # it finds the row itself
        elif isinstance(message, on.Prompt) and message.interrupted:
            self._post_for(caller, partial(self._give_up, uuid, message))
        elif (isinstance(message, on.Prompt) and message.mail) or (isinstance(message, on.Interrupt) and message.turn):
            pass  # it finds these rows, too, and nobody here waits
        elif caller is not None:
            self.post(uuid, message)

    def _give_up(self, uuid: str, prompt: on.Prompt) -> None:
        """Withdraw a prompt that was interrupted before its agent moved to another host."""
        if prompt.mail:
            self._client.write(WithdrawPrompt(uuid, prompt.mail))
        prompt.caller.settle(TurnInterrupted("The turn was interrupted before it began.", uuid))

    def _post_for(self, caller: Any, ask: Callable[[], object], wait: bool = False) -> None:
        if isinstance(caller, Future):
            caller.take_back = lambda: self._post(partial(self._take_back, caller))
        self._post(partial(self._try, caller, ask), wait)

    def _post(self, task: Callable[[], object], wait: bool = False) -> None:
        self._posted.append(for_asker(task))
        if wait or self._ended is not None:
            self.carry_out()
        else:
            self.wake()

    def carry_out(self) -> bool:
        """Carry out the commands posted since the last call; return whether there were any."""
        with self._looking:
            return self._carry_out()

    def _carry_out(self) -> bool:
        has_posted = bool(self._posted)
        while self._posted:
            self._posted.popleft()()
        return has_posted

    def refresh(
        self, read: Callable[[], News], tell: Callable[[News, Sequence[HostRecord]], object] = lambda news, before: None
    ) -> None:
        """Settle the futures of turns and commands that have ended. Raises `StoreError`.

        Args:
            read: returns the commits since the latest look, at least those of the agents with waiting callers.
            tell: takes these news, and the hosts that ran the agents at the previous look; called before any future is
                settled.
        """
        with self._looking:
            awaits = self._whom()  # their callers need all that is new of them, also if others published it
            self.follower.is_told = lambda uuid: 0 if uuid in awaits else self._publisher.place(uuid)
            if not self.follower.follows_all:
                self.follower.keep(awaits)
            answers = self._answers()  # read before the news, so that what they report is published before
            news = read()
            before, self.hosts, self._deserted = self.hosts, news.hosts, news.deserted
            self._former = self.host or self._former
            tell(news, before)
            self._settle(answers)
            awaited, self._awaited = self._awaited, []
            for turn, future in awaited:
                if (end := turn.follow(news)) is not None:
                    future.settle(end)
                else:
                    self._await(turn, future)
            if self._deserted and self._asked:
                self._withdraw()
                self._settle(self._answers())

    def follow(self, all_are_wanted: Callable[[], bool], now: int) -> None:
        """Follow all agents after this call, or only those with waiting callers; ``now`` in milliseconds since 1970."""
        if all_are_wanted() != self.follower.follows_all:
            with self._looking:  # it is asked once more: somebody may have subscribed meanwhile
                if not all_are_wanted():
                    self.follower.follow_only(self._whom())
                elif not self.follower.follows_all:
                    self.follower.follow_all(now)

    def between_looks(self) -> AbstractContextManager[object]:
        """Return a context manager that keeps the loop from reading the database during its block."""
        return self._looking

    def listen(self, wants: Callable[[], tuple[bool, bool]], now: float) -> None:
        """Note in the database that this process wants to see replies in progress, so that hosts write them.

        Call it again and again, to renew that. If it cannot be written, replies are published when they are committed.

        Args:
            wants: returns whether this process listens at all, and whether it wants replies in progress. It is called
                under the lock, because an earlier answer may be out of date.
            now: seconds of a monotonic clock.
        """
        with self._looking, suppress(IkigaiError):  # the next look reports a trouble with the store
            wanted = is_here, replies = wants()
            if wanted == self._listens and (not is_here or now < self._renew_at):
                return
            self._listens, self._renew_at = wanted, now + RENEW
            if replies:
                self.follower.listen(self._who)
            else:
                self.follower.listen_no_more()
            self._client.write(Listen(self._who, LISTENS_FOR if is_here else 0, replies))

    def awaited(self) -> frozenset[str]:
        """Return the uuids of the agents with waiting callers."""
        with self._looking:
            return self._whom()

    def _whom(self) -> frozenset[str]:
        return frozenset((*(turn.agent for turn, _ in self._awaited), *(key.agent for key in self._asked)))

    def _try(self, caller: Any, ask: Callable[[], object]) -> None:
        try:
            if self._ended is not None:
                raise self._ended
            if isinstance(caller, Future) and caller.refusal is not None:
                raise caller.refusal
            ask()
        except IkigaiError as error:
            caller.settle(error)
        except Exception as error:  # a defect of ours: the caller must not wait forever
            logger.exception("An agent of another host could not be asked")
            caller.settle(error)

    def _ask(self, uuid: str, command: Any) -> None:
        match command:
            case on.Prompt():
                self._prompt(uuid, command)
            case on.GetOutcome():
                self._reply(uuid, command.caller)
            case on.Interrupt():
                change = self._client.signal(uuid, Signal.INT, cascade=False, reason="", grace=0)
                command.caller.settle(not change.ignored)
            case TakeBack():
                command.caller.settle(self._takes_back(uuid, command.command))
            case _:
                self._remote_command(uuid, command)

    def await_turn(self, turn: RemoteTurn | RemoteWord, behind: int, future: Future[Any]) -> None:
        """Settle a future with the outcome of a turn, or with the position of a steering message.

        ``behind``: the message after which the turn or the steering message comes.
        """

        def read(tx: Transaction) -> tuple[AgentRecord, list[Message]]:
            return registry.get(tx, turn.agent), section(tx, turn.agent, behind)

        self.follower.follow(turn.agent)
        record, messages = self._store.read(read)
        died = [] if record.living else [Died(record.uuid, record.exit_cause or "", record.exit_reason or "")]
        if (end := turn.follow(News(messages, died, {record.uuid: record.turn}, ()))) is not None:
            future.settle(end)
        else:
            self._await(turn, future)

    def _prompt(self, uuid: str, prompt: on.Prompt) -> None:
        """Store a prompt as mail; the caller's future gets the outcome of the turn."""
        self.follower.follow(uuid)
        mail = self._client.prompt(uuid, prompt.text, prompt.data, prompt.blobs)
        if prompt.stored is not None:
            prompt.stored.settle(mail)
        self._await(RemoteTurn(uuid, prompt=mail), prompt.caller)
        if self._client.get(uuid).status == Status.STOPPED:
            self._publisher.publish(PromptKept(uuid, mail, prompt.text))

    def _steer(self, uuid: str, word: KeepWord, receipt: Receipt) -> None:
        self.follower.follow(uuid)
        kept: KeptWord = self._client.write(word)
        receipt.kept.settle(kept.mail.id)
        if kept.entered is not None:
            receipt.settle(kept.entered)
            return
        self._await(RemoteWord(uuid, kept.mail.id), receipt)

    def _reply(self, uuid: str, future: Future[Reply]) -> None:
        """Settle a future with the outcome of the turn in progress, or else of the latest turn."""

        def read(tx: Transaction) -> tuple[AgentRecord, list[Message]]:
            record = registry.get(tx, uuid)
            return record, section(tx, uuid, record.turn or record.fork_message_id)

        self.follower.follow(uuid)
        record, messages = self._store.read(read)
        if record.cut_off:
            text = f"{record.short}'s turn was cut off; resume() goes on with it."
            future.settle(TurnInterrupted(text, uuid))
        elif record.turn:
            self.await_turn(RemoteTurn(uuid, turn=record.turn), record.turn, future)
        elif record.living:
            never: IkigaiError = NoTurn(f"Agent {record.short} has had no turn of its own yet; prompt it first.", uuid)
            future.settle(outcome_of(reversed(messages)) or never)
        else:
            gone = AgentDead(f"Agent {record.short} is dead: {record.exit_reason or 'no reason is known'}.", uuid)
            future.settle(last_outcome(reversed(messages)) or gone)

    def _remote_command(self, uuid: str, command: RemoteCommand) -> None:
        """Send an agent a remote command; the caller's future gets the answer.

        When no process runs the agents, nothing is sent, and the caller gets `NoHost`.
        """
        if self._deserted:
            raise nobody_asked(self._former)
        self._asked[self._client.add_command(uuid, *encode(command), getattr(command, "blobs", ()))] = command.caller

    def close(self) -> None:
        """Settle all waiting futures, and all later ones, with `SystemClosed`. Stored remote commands stay."""
        with self._looking:
            error = self._ended = SystemClosed("The system was closed before this was answered.")
            futures = [*(future for _, future in self._awaited), *self._asked.values()]
            self._awaited, self._asked = [], {}
            self._carry_out()
        for future in futures:
            future.settle(error)

    def refusal(self) -> IkigaiError:
        """Return the error for a command that only the process that runs the agents can carry out."""
        if not self.hosts:
            return no_host(self._former)
        where = " or ".join(map(str, self.hosts))
        return HostElsewhere(f"Only the process that runs the agents knows its tools: {where}.")

    def silence(self) -> IkigaiError | None:
        """Return the error that no process runs the agents; None while a process runs them, or is expected to."""
        return no_host(self._former) if self._deserted else None

    def _await(self, turn: RemoteTurn | RemoteWord, future: Future[Any]) -> None:
        if self._deserted:
            future.settle(no_host(self._former))
        else:
            self._awaited.append((turn, future))

    def _answers(self) -> dict[RemoteCommandKey, Answered]:
        """Return the answers to remote commands that were committed since the latest look."""
        if not self._asked:
            return {}
        answers = self._store.read(lambda tx: [(key, answer_of(tx, key)) for key in self._asked])
        return {key: answer for key, answer in answers if answer is not None}

    def _settle(self, answers: Mapping[RemoteCommandKey, Answered]) -> None:
        for key, answer in answers.items():
            self._asked.pop(key).settle(answer.value)

    def _take_back(self, caller: Future[Any]) -> None:
        """Withdraw a command, if not begun yet, for whose answer the caller's thread would wait in vain."""
        try:
            for key in [key for key, future in self._asked.items() if future is caller]:
                self._client.withdraw(key, caller.refusal or nobody_asked())
            for turn, future in [entry for entry in self._awaited if entry[1] is caller]:
                if (
                    isinstance(turn, RemoteTurn)
                    and turn.prompt
                    and self._client.write(WithdrawPrompt(turn.agent, turn.prompt))
                ):
                    self._awaited.remove((turn, future))
                    caller.settle(caller.refusal)
        except IkigaiError as error:  # then it is done, and nobody waits for it
            logger.info("A request could not be taken back: %s", error)

    def _takes_back(self, uuid: str, caller: Future[Any]) -> bool:
        """Withdraw a command that its agent has not carried out; return whether it was withdrawn in time."""
        for key in [key for key, future in self._asked.items() if future is caller]:
            if self._client.withdraw(key, Withdrawn("The command was taken back.", uuid)):
                self._asked.pop(key).settle(Withdrawn("The command was taken back.", uuid))
                return True
        return False

    def _withdraw(self) -> None:
        """Withdraw the remote commands without an answer; their callers get `NoHost`."""
        for key in self._asked:
            self._client.withdraw(key, nobody_asked(self._former))


class RemoteActor(Heir):
    """Represents the actor of an agent that another process runs: it writes commands as rows for that process."""

    __slots__ = ("_remote", "_uuid")

    def __init__(self, remote: RemoteAgents, uuid: str) -> None:
        self._remote, self._uuid = remote, uuid

    def deliver(self, message: Any) -> bool:
        """Take a command. Its row is committed when this returns, unless the thread may not wait."""
        self._remote.tell(self._uuid, message)
        return True

    def steer(self, word: KeepWord, receipt: Receipt) -> None:
        """Send the agent a steering message, as `RemoteAgents.steer` does."""
        self._remote.steer(self._uuid, word, receipt)

    def inherit(self, handover: "Handover") -> None:
        self._remote.inherit(self._uuid, handover)

    def take_over(self, message: Any) -> None:
        self._remote.take_over(self._uuid, message)
