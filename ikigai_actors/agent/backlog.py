"""The commands that one agent has yet to begin, and their order. No thread, no store, no caller.

The agent's actor adds commands as they come, and asks `Backlog.next` whenever no unit of the agent is being committed.
Commands that begin or follow a turn keep their order. There are four exceptions:

    a fork                         goes first: it needs a step boundary, not the end of the turn
    `AT_ANY_TIME`                  passes the commands before it: it needs the log, but no end of a turn
    a prompt to a stopped agent    is passed by everything, and is kept as mail until CONT
    a prompt of another process    waits in the mailbox; its number there decides between it and other commands,
                                   as far as they know of it
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from ikigai_actors.actors.inbox import INBOX_CAPACITY
from ikigai_actors.agent.requests import mails_before
from ikigai_actors.agent.turn import events as on
from ikigai_actors.agent.turn.machine import accepts
from ikigai_actors.agent.turn.state import Phase, State
from supervisors.signals import Status

AT_ANY_TIME = (on.GetOutcome, on.Decide, on.Interrupt)
"""The commands that need the log, but not the end of a turn."""

VOLATILE = (on.Prompt, on.Clear, on.SetMark, on.Rewind, on.Undo, on.Configure, on.ExitNow)
"""The commands, beside a fork, that are lost with the process while they wait for the end of a turn."""


class Backlog:
    """The commands of one agent that wait. Only its actor changes it; any thread may read the counts."""

    __slots__ = ("_commands", "_forks", "_passing", "_remote", "has_news")

    def __init__(self, commands: Iterable[on.TurnEvent] = ()) -> None:
        """Start with the commands that an earlier actor of the agent handed over, in their order."""
        self._forks: list[on.Fork] = []
        self._commands = list(commands)
        self._passing = sum(isinstance(one, AT_ANY_TIME) for one in self._commands)  # how many of `AT_ANY_TIME`
        self._remote: list[on.Prompt] = []
        self.has_news = False
        """Whether mail has come that the agent is to be told of when it is idle."""

    def __len__(self) -> int:
        """How many commands of this process wait."""
        return len(self._forks) + len(self._commands)

    @property
    def is_full(self) -> bool:
        """Whether a further command of this process is refused."""
        return len(self) >= INBOX_CAPACITY

    @property
    def latest_mail(self) -> int:
        """The number of the latest prompt of another process that waits here; 0 for none."""
        return self._remote[-1].mail if self._remote else 0

    @property
    def needs_log(self) -> bool:
        """Whether a command waits that needs the log. News of mail is no reason to read it."""
        return bool(self._forks or self._commands or self._remote)

    @property
    def volatile(self) -> int:
        """How many commands are lost with the process: neither prompts that are kept as mail, nor requests."""
        waiting = (*self._forks, *(one for one in self._commands if isinstance(one, VOLATILE)))
        return sum(not _mail_of(one) and mails_before(one) is None for one in waiting)

    def add(self, command: on.TurnEvent) -> None:
        """Append a command of this process."""
        if isinstance(command, on.Fork):
            self._forks.append(command)
        else:
            self._commands.append(command)
            self._passing += isinstance(command, AT_ANY_TIME)

    def add_first(self, command: on.Resume | on.TurnPoisoned) -> None:
        """Put an event of the open turn before every command that waits for the end of that turn."""
        self._commands.insert(0, command)

    def add_remote(self, prompt: on.Prompt) -> None:
        """Append a prompt that another process sent as mail, unless it is here: a mail may be announced twice."""
        if all(prompt.mail != known.mail for known in (*self._remote, *self._prompts())):
            self._remote.append(prompt)

    def next(self, state: State, loading: bool = False) -> on.TurnEvent | None:
        """Take the event that the machine can decide on now; None when everything must wait.

        A prompt to a stopped agent is returned, but stays here: call `keep` once it is mail, or `discard` if it cannot
        be.

        Args:
            state: the agent's state.
            loading: whether its log is being read; a fork that could do without the log then waits for it.
        """
        if state.status is Status.STOPPED and (unkept := [one for one in self._prompts() if not one.mail]):
            return unkept[0]
        if state.phase is Phase.UNLOADED:
            return None if loading else self._next_fork(state)
        return self._next_between_turns(state) or self._next_fork(state) or self._next_command(state)

    def keep(self, caller: on.Caller, mail: int) -> None:
        """Note that the prompt of this caller is kept as the mail of this number; it keeps its place."""
        place = self._place(caller)
        prompt = self._commands[place]
        assert isinstance(prompt, on.Prompt)  # no other command is kept
        self._commands[place] = replace(prompt, mail=mail)

    def discard(self, caller: on.Caller) -> None:
        """Drop the prompt of this caller, which could not be kept as mail."""
        del self._commands[self._place(caller)]

    def discard_remote(self) -> None:
        """Drop the prompts of other processes. They stay in the mailbox."""
        self._remote = []

    def discard_resumption(self) -> None:
        """Drop the event that would have gone on with the open turn."""
        self._commands = [one for one in self._commands if not isinstance(one, on.Resume | on.TurnPoisoned)]

    def take_all(self) -> tuple[on.TurnEvent, ...]:
        """Take every command of this process: forks first, then the others in their order."""
        taken = (*self._forks, *self._commands)
        self._forks, self._commands, self._passing = [], [], 0
        return taken

    def _next_between_turns(self, state: State) -> on.TurnEvent | None:
        """The event that an idle agent begins by itself: news of mail, or a prompt of another process."""
        if state.phase is not Phase.IDLE or state.status is not Status.RUNNING:
            return None
        if self.has_news and wants_news(state):
            self.has_news = False
            return on.LookAtMail(None)
        if not self._remote:
            return None
        earlier = not self._commands or _is_later(self._commands[0], self._remote[0].mail)
        return self._remote.pop(0) if earlier else None

    def _next_fork(self, state: State) -> on.Fork | None:
        return self._forks.pop(0) if self._forks and accepts(state, self._forks[0]) else None

    def _next_command(self, state: State) -> on.TurnEvent | None:
        """The first command, if the machine accepts it; else the first one that may pass it."""
        stopped = state.status is Status.STOPPED
        first = True
        for place, command in enumerate(self._commands if stopped or self._passing else self._commands[:1]):
            if stopped and isinstance(command, on.Prompt):
                continue
            if (first or isinstance(command, AT_ANY_TIME)) and accepts(state, command):
                del self._commands[place]
                self._passing -= isinstance(command, AT_ANY_TIME)
                return command
            first = False
        return None

    def _prompts(self) -> list[on.Prompt]:
        return [one for one in self._commands if isinstance(one, on.Prompt)]

    def _place(self, caller: on.Caller) -> int:
        return next(place for place, one in enumerate(self._commands) if getattr(one, "caller", None) is caller)


def wants_news(state: State) -> bool:
    """Whether the agent's settings say that it is told of new mail."""
    return bool(state.view.settings.get("notify"))


def _is_later(command: on.TurnEvent, mail: int) -> bool:
    """Whether a command comes after the prompt that was sent as this mail, as far as is known."""
    if (before := mails_before(command)) is not None:
        return before >= mail
    return isinstance(command, on.Prompt) and command.mail > mail


def _mail_of(command: Any) -> int:
    return getattr(command, "mail", 0)
