"""Remote commands: rows that other processes commit, and that the actors of this host carry out.

Another process on the database writes rows and nothing else; the host that runs the agents follows them:

    changes       statuses, deaths, names and interrupted turns that others have written into the registry; rules, which
                  may decide calls that wait for approval
    prompts       mail of kind ``prompt`` that opened no turn yet: the agent's actor takes it up when the agent is idle
    commands      rows without an answer: the actor carries the command out, and its unit writes the answer
    listeners     the processes that want to see replies in progress

A command is given to its actor once, and again only when an attempt has left it undecided
(`ikigai_actors.agent.remote_commands`). The rows ensure that a command is carried out once. Commands that write no row,
such as resuming a turn, are not begun twice because they are given once.

Two threads take turns: the thread that follows the database (`ikigai_actors.system.remote.following`), at each hint,
and the thread of the supervision, when an agent has got its next actor. Neither waits for a database that is down: a
failed read is repeated half a second later.
"""

from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeVar

from ikigai_actors.actors.clock import Clock
from ikigai_actors.actors.threads import Threads
from ikigai_actors.agent.remote_commands import OutcomeHandler, RemoteCaller, decode
from ikigai_actors.agent.turn import events as on
from ikigai_actors.errors import IkigaiError, NoHost, StoreUnavailable
from ikigai_actors.records.agents.rules import rules_for
from ikigai_actors.records.hosts.changes import Changes, changes_since
from ikigai_actors.records.hosts.remote_commands import (
    AnswerRemoteCommand,
    NewRemoteCommand,
    RemoteCommandKey,
    ask_new_remote_commands,
)
from ikigai_actors.records.lives.moves import UNSHARED
from ikigai_actors.records.mail.prompts import NewPrompt, ask_new_prompts
from ikigai_actors.records.messages.pieces import listened_for
from ikigai_actors.store.base import Store, Transaction
from ikigai_actors.store.writer import Writer
from ikigai_actors.system.host.processes import ProcessTable
from ikigai_actors.tools.rules.rule import Rules

T = TypeVar("T")


class RemoteCommands(OutcomeHandler):
    """Gives the actors of one host the changes, prompts and commands that other processes have committed."""

    def __init__(
        self,
        store: Store,
        writer: Writer,
        processes: ProcessTable,
        clock: Clock,
        threads: Threads,
        retry: Callable[[], object],
        host: str,
        listen: Callable[[float], object],
    ) -> None:
        """Make the object; the threads that follow the database call `follow`.

        Args:
            store: where the rows of other processes are read.
            writer: commits answers.
            clock: gives the time of an answer.
            threads: makes the lock by which threads take turns.
            retry: has `follow` called again, later; never waits.
            host: the id of this host.
            listen: gets the seconds for which other processes want to see replies in progress; never waits.
        """
        self._store, self._writer, self._processes = store, writer, processes
        self._clock, self._retry = clock, retry
        self._handlers: dict[type[Any], Callable[[Any, RemoteCaller], object]] = {}
        self._host, self._listen = host, listen
        self._following = threads.lock()
        self._given: set[RemoteCommandKey] = set()  # workers take away, who follows adds
        self.version = 0
        """The version of the tree up to which the actors have followed."""

    def handle(self, kind: type[T], handler: Callable[[T, RemoteCaller], object]) -> None:
        """Have the host itself carry out commands of a class, by a function that never waits."""
        self._handlers[kind] = handler

    def follow(self, since: int | None = None) -> bool:
        """Give the actors the changes in the registry, then the prompts and commands of other processes.

        With ``since``, changes after that version are given once more, for agents that were read earlier than the
        others. Returns whether anything has changed.
        """
        with self._following:
            if since is not None:
                self.version = min(self.version, since)
            try:
                changed = self._follow_changes()
                self._hand_over()
            except StoreUnavailable:
                self._retry()
                return True  # for all that is known
        return changed

    def _follow_changes(self) -> bool:
        """Give the actors the changes in the registry; return whether there were any.

        The commits of this host are among the changes, and have no effect.
        """
        is_any = False
        # This host may commit the next change between the read and what follows from it: read until nothing is new.
        while (changes := self._changes()).agents:
            is_any = True
            if all(self._processes.catch_up(change) for change in changes.agents):
                self.version = changes.version
        if is_any:
            self._processes.look_at_rules(self._rules_for)
        return is_any

    def _changes(self) -> Changes:
        self._processes.begin_look()
        return self._store.read(lambda tx: changes_since(tx, self.version))

    def _rules_for(self, agents: Collection[str]) -> Mapping[str, Rules]:
        return self._store.read(lambda tx: {uuid: rules_for(tx, uuid) for uuid in agents})

    def _hand_over(self) -> None:
        """Give the actors the prompts that their agents have not taken up, and the unanswered commands.

        All are read at one moment, and prompts are given first, because a command knows which prompts were sent before
        it. A prompt that an actor has already changes nothing. Also note which processes want to see replies in
        progress.
        """
        before = frozenset(self._given)  # one that is left meanwhile may be read, and given again before it is answered
        prompts, commands, listened = self._store.read(self._asked)
        self._listen(listened)
        for prompt in prompts:
            self._processes.prompt(*prompt)
        for command in commands:
            if command.key not in before:
                self._given.add(command.key)
                self._give(command)
        self._given.difference_update(before.difference(command.key for command in commands))  # these have answers

    def _asked(self, tx: Transaction) -> tuple[list[NewPrompt], list[NewRemoteCommand], float]:
        prompts, commands = ask_new_prompts(tx, self._host), ask_new_remote_commands(tx, self._host)
        listened = listened_for(tx, self._host)
        return prompts(), commands(), listened

    def committed(self, key: RemoteCommandKey, kind: str, value: Any) -> None:
        if kind == "decide" and value:
            self._processes.resume_cut_off(key.agent)

    def answer(self, key: RemoteCommandKey, kind: str, value: Any) -> None:
        self._writer.ask(AnswerRemoteCommand(key, value, self._clock.now_ms()))

    def leave(self, key: RemoteCommandKey) -> None:
        self._given.discard(key)
        self._retry()

    def _give(self, row: NewRemoteCommand) -> None:
        """Give a command to its actor, or carry the command out here. A refusal becomes the answer."""
        caller = RemoteCaller(self, row.key, row.kind, row.mailed)
        try:
            command = decode(row.kind, row.body, caller)
            if self._processes.wake(row.agent) is None:
                self._given.discard(row.key)
            elif (handler := self._handlers.get(type(command))) is not None:
                handler(command, caller)
            elif not isinstance(command, on.Command):
                caller.settle(NoHost(UNSHARED))
            elif not self._processes.command(row.agent, command):
                self._given.discard(row.key)
        except IkigaiError as error:
            caller.settle(error)
