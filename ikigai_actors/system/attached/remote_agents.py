"""Remote agents: what this process asks of agents that another one runs, and what it still awaits of them.

    remote = RemoteAgents(store, client, check_open, publish)
    remote.actor(uuid).told(on.Prompt("tea", future))       # a row, committed when this returns
    remote.look(follower.news)                              # settles the future once the turn is over

Prompts are mail, and wait for the next host when there is none. Every other command is a request: its row gets an
answer, which the future is given. A request that nobody can take up is withdrawn, so that it does not happen later,
behind the back of the one who was told that it failed.

It starts no thread: whoever owns it calls `look` whenever something may have been committed, and now and then without
a cause, since a host that was killed commits nothing. No wait begins while a look is under way, so that none falls
between two looks.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ikigai_actors.actors.clock import Clock
from ikigai_actors.actors.futures import Future, refuse_to_block
from ikigai_actors.actors.threads import current_threads
from ikigai_actors.agent.requests import Adopt, Asked, Move, encode
from ikigai_actors.agent.subscriptions import Event, PromptKept
from ikigai_actors.agent.turn import events as on
from ikigai_actors.arguments import check_timeout
from ikigai_actors.errors import AgentDead, HostElsewhere, IkigaiError, NoTurn, SystemClosed
from ikigai_actors.providers.base import Reply
from ikigai_actors.records import registry
from ikigai_actors.records.heads import section
from ikigai_actors.records.mail import WithdrawPrompt
from ikigai_actors.records.messages import Message
from ikigai_actors.records.registry import AgentRecord
from ikigai_actors.records.replies import last_outcome, outcome_of
from ikigai_actors.records.requests import Answered, RequestKey, answer_of
from ikigai_actors.store.base import Store, Transaction
from ikigai_actors.store.hosts.rows import HostRecord
from ikigai_actors.store.writer import Writer
from ikigai_actors.system.attached.client import Client, no_host, nobody_asked
from ikigai_actors.system.attached.follower import Follower, News
from ikigai_actors.system.attached.turn import RemoteTurn
from ikigai_actors.system.lifecycle import CommandTarget, Lifecycle
from supervisors.signals import Status


class RemoteAgents:
    """The agents of one database that other processes run, as far as this one asks something of them."""

    def __init__(
        self,
        store: Store,
        client: Client,
        check_open: Callable[[], None],
        publish: Callable[[Event], object],
        follower: Follower,
    ) -> None:
        """Put the parts together.

        Args:
            store: where agents and their logs are read.
            client: writes what is asked.
            check_open: raises `SystemClosed` when nothing may be asked any more.
            publish: takes a `PromptKept`.
            follower: follows all agents, or those of whom something is awaited.
        """
        self.follower = follower
        """Reads what is new, in a `look`."""
        self._store, self._client, self._check_open, self._publish = store, client, check_open, publish
        self._looking = current_threads().lock()  # held for a look, and to begin a wait
        self._awaited: list[tuple[RemoteTurn, Future[Reply]]] = []
        self._asked: dict[RequestKey, Future[Any]] = {}
        self._ended: IkigaiError | None = None
        self.hosts: Sequence[HostRecord] = ()
        """Who ran the agents at the latest look, the latest first."""
        self._former: HostRecord | None = None  # who ran them last, when nobody does

    @property
    def host(self) -> HostRecord | None:
        """The latest of those who ran the agents at the latest look; None for nobody."""
        return next(iter(self.hosts), None)

    def actor(self, uuid: str) -> "RemoteActor":
        """What stands for the actor of an agent. Raises `SystemClosed`."""
        self._check_open()
        return RemoteActor(self, uuid)

    def look(
        self, read: Callable[[], News], tell: Callable[[News, Sequence[HostRecord]], object] = lambda news, before: None
    ) -> None:
        """Settle what has ended. Raises `StoreError`.

        Args:
            read: gives what was committed since the latest look, of all agents that are awaited at least.
            tell: takes these news, and who ran the agents at the look before; called before any future is settled.
        """
        with self._looking:
            if not self.follower.follows_all:
                self.follower.keep(self._whom())
            answers = self._answers()  # read before the news, so that what they tell of is told before
            news = read()
            before, self.hosts = self.hosts, news.hosts
            self._former = self.host or self._former
            tell(news, before)
            self._settle(answers)
            awaited, self._awaited = self._awaited, []
            for turn, future in awaited:
                if news.tells_of(turn.agent) and (end := turn.take(news)) is not None:
                    future.settle(end)
                else:
                    self._await(turn, future)
            if not self.hosts and self._asked:
                self._withdraw()
                self._settle(self._answers())

    def awaited(self) -> frozenset[str]:
        """The agents, by uuid, of whom something is awaited."""
        with self._looking:
            return self._whom()

    def await_prompt(self, uuid: str, mail: int, future: Future[Reply]) -> None:
        """Give a future the outcome of the turn that a prompt opens which is mail already."""
        with self._looking:
            self.follower.follow(uuid)
            self._await(RemoteTurn(uuid, prompt=mail), future)

    def prompt(self, uuid: str, text: str, future: Future[Reply]) -> None:
        """Leave a prompt, committed when this returns; the future is given the outcome of its turn."""
        self._check_open()
        refuse_to_block()
        with self._looking:
            self.follower.follow(uuid)
            mail = self._client.prompt(uuid, text)
            turn = RemoteTurn(uuid, prompt=mail.id)
            future.withdraw = lambda: self._withdraw_prompt(turn, mail.id, future)
            self._await(turn, future)
        if self._client.get(uuid).status == Status.STOPPED:
            self._publish(PromptKept(uuid, mail.id, text))

    def reply(self, uuid: str, future: Future[Reply]) -> None:
        """Give a future the outcome of the turn in progress, or else of the latest one."""

        def read(tx: Transaction) -> tuple[AgentRecord, list[Message]]:
            record = registry.get(tx, uuid)
            return record, section(tx, uuid, record.turn or record.fork_message_id)

        with self._looking:
            self.follower.follow(uuid)
            record, messages = self._store.read(read)
            if record.turn:
                self._await(RemoteTurn(uuid, turn=record.turn, messages=messages), future)
                return
        if record.living:
            never: IkigaiError = NoTurn(f"Agent {uuid} has had no turn of its own yet; prompt it first.", uuid)
            future.settle(outcome_of(messages) or never)
        else:
            gone = AgentDead(f"Agent {record.short} is dead: {record.exit_reason or 'no reason is known'}.", uuid)
            future.settle(last_outcome(messages) or gone)

    def request(self, uuid: str, command: Asked) -> None:
        """Ask an agent to do something itself, committed when this returns; the caller is given the answer.

        When no process runs the agents, nothing is asked, and the caller gets `NoHost`. Raises `AgentNotFound`,
        `AgentDead` and `StoreError`.
        """
        self._check_open()
        refuse_to_block()
        kind, body = encode(command)
        with self._looking:
            if self._ended is not None or not self.hosts:
                command.caller.settle(self._ended or nobody_asked(self._former))
            else:
                key = self._client.request(uuid, kind, body)
                self._asked[key] = command.caller
                command.caller.withdraw = lambda: self._client.withdraw(key, command.caller.refusal)

    def close(self) -> None:
        """Settle with `SystemClosed` whatever is awaited, now or later: nobody looks any more. Requests stay."""
        with self._looking:
            error = self._ended = SystemClosed("The system was closed before this was answered.")
            futures = [*(future for _, future in self._awaited), *self._asked.values()]
            self._awaited, self._asked = [], {}
        for future in futures:
            future.settle(error)

    def elsewhere(self) -> IkigaiError:
        """Why this process does not do what only the one can that runs the agents. Raises `SystemClosed`."""
        self._check_open()
        if not self.hosts:
            return no_host(self._former)
        where = " or ".join(map(str, self.hosts))
        return HostElsewhere(f"Only the process that runs the agents knows its tools: {where}.")

    def _await(self, turn: RemoteTurn, future: Future[Reply]) -> None:
        if self._ended is not None or not self.hosts:
            future.settle(self._ended or no_host(self._former))
        else:
            self._awaited.append((turn, future))

    def _whom(self) -> frozenset[str]:
        return frozenset((*(turn.agent for turn, _ in self._awaited), *(key.agent for key in self._asked)))

    def _answers(self) -> dict[RequestKey, Answered]:
        """The answers that have come since the latest look."""
        if not self._asked:
            return {}
        found = self._store.read(lambda tx: [(key, answer_of(tx, key)) for key in self._asked])
        return {key: answer for key, answer in found if answer is not None}

    def _settle(self, answers: Mapping[RequestKey, Answered]) -> None:
        for key, answer in answers.items():
            self._asked.pop(key).settle(answer.value)

    def _withdraw_prompt(self, turn: RemoteTurn, mail: int, future: Future[Reply]) -> None:
        """Take back a prompt whose sender would close a circle of waits by waiting for it, unless it was taken up."""
        if self._client.write(WithdrawPrompt(turn.agent, mail)):
            with self._looking:
                self._awaited = [one for one in self._awaited if one[0] is not turn]
            future.settle(future.refusal)

    def _withdraw(self) -> None:
        """Take back the requests that nobody has answered: the answer is `NoHost` then."""
        for key in self._asked:
            self._client.withdraw(key, nobody_asked(self._former))


class RemoteActor(CommandTarget):
    """Stands for the actor of an agent that another process runs: commands are rows, which that process takes up."""

    __slots__ = ("_remote", "_uuid")

    def __init__(self, remote: RemoteAgents, uuid: str) -> None:
        self._remote, self._uuid = remote, uuid

    def told(self, message: Any) -> bool:
        """Take a command. Its row is committed when this returns.

        Raises `AgentNotFound`, `AgentDead`, `SystemClosed` and `StoreError`.
        """
        match message:
            case on.Prompt() if message.mail:
                self._remote.await_prompt(self._uuid, message.mail, message.caller)
            case on.Prompt():
                self._remote.prompt(self._uuid, message.text, message.caller)
            case on.GetOutcome():
                self._remote.reply(self._uuid, message.caller)
            case _:
                self._remote.request(self._uuid, message)
        return True


class RemoteLifecycle(Lifecycle):
    """Commits what handles do to the lifecycle of agents that another process runs."""

    def __init__(self, store: Store, writer: Writer, clock: Clock, remote: RemoteAgents) -> None:
        """Put the parts together.

        Args:
            store: where descendants are looked up.
            writer: commits the signals.
            clock: gives the time of a signal.
            remote: asks agents to adopt others.
        """
        super().__init__(store, writer, clock)
        self._remote = remote

    def adopt(self, child: str, by: str, timeout: float | None = None) -> None:
        check_timeout(timeout)
        adopted: Future[None] = Future()
        self._remote.request(by, Adopt(child, adopted))
        adopted.get(timeout=timeout)

    def move(self, uuid: str, host: str) -> Future[None]:
        moved: Future[None] = Future(uuid)
        self._remote.request(uuid, Move(host, moved))
        return moved
