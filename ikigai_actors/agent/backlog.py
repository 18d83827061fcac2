"""The commands that one agent has yet to begin, and their order. No thread, no store, no caller.

The agent's actor adds commands as they come, and asks `Backlog.next` whenever no unit of the agent is being committed.
Commands that begin or follow a turn keep their order. There are these exceptions:

    `Needs.STEP_OVER`              goes first: a fork needs a step boundary, not the end of the turn
    `Needs.LOG`                    passes the commands before it, since it needs no end of a turn. Only a question for
                                   the outcome of a turn waits for the command that resumes that turn
    a prompt to a stopped agent    is stored as mail until CONT, and all other commands pass it. A prompt to a busy
                                   agent that must be stored now becomes mail, too, but keeps its place
    a prompt after a waiting turn  is passed by the commands that such a turn allows: the turn's request waits for a
                                   budget or for its service
    a prompt of another process    waits in the mailbox, like a prompt that an earlier host stored. The mail number
                                   decides between it and prompts of this process that are mail, too. It comes before
                                   commands of this process that were added after it
    a steering message             enters the turn in progress: `Backlog.words` gives the waiting ones to every step.
                                   Without a turn in progress it counts as a prompt of another process, and comes after
                                   the commands of this one
    a prompt that an INT came for  opens a turn that ends at once; a stopped agent carries this out, too
"""

from collections.abc import Collection, Iterable, Sequence
from typing import Any, TypeGuard

from ikigai_actors.actors.inbox import INBOX_CAPACITY
from ikigai_actors.agent.remote_commands import mails_before
from ikigai_actors.agent.turn import events as on
from ikigai_actors.agent.turn.calls import ended_by_words
from ikigai_actors.agent.turn.machine import accepts, puts_aside
from ikigai_actors.agent.turn.state import NOT_ASKED, Phase, State
from ikigai_actors.frozen import replace
from ikigai_actors.records.mail.words import SIZE_AT_ONCE, WORDS_AT_ONCE
from supervisors.signals import Status


class Backlog:
    """The commands of one agent that wait. Only the agent's actor changes it; any thread may read the counts."""

    __slots__ = (
        "_behind", "_commands", "_forks", "_interrupted", "_kept", "_mails", "_passing", "_remote", "_unstored",
        "_words", "has_news", "latest_mail",
    )  # fmt: skip

    def __init__(self, commands: Iterable[on.Deferrable] = ()) -> None:
        """Start with the commands that an earlier actor of the agent handed over, in their order."""
        self._forks: list[on.Deferrable] = []
        self._commands = waiting = list(commands)
        self._passing = sum(map(_passes, waiting)) if waiting else 0  # how many may pass others
        self._unstored = sum(map(_must_be_stored, waiting)) if waiting else 0
        self._interrupted = sum(map(_is_interrupted, waiting)) if waiting else 0
        self._remote: list[on.Prompt] = []
        self._words: list[on.Prompt] = []
        self._behind: dict[on.Caller, int] = {}  # the mail of the latest prompt in `_remote` before a command came
        self._kept = 0  # the prompts before this place of `_commands` are kept as mail
        # Of all prompts that wait. A dict: an empty set is 0.2 KB, and every idle agent would have one.
        self._mails = {mail: None for command in waiting if (mail := _mail_of(command))} if waiting else {}
        self.latest_mail = max(self._mails) if self._mails else 0
        """The number of the latest prompt that is mail and has waited here; 0 for none."""
        self.has_news = False
        """Whether mail has come of which the agent gets a notice when it is idle."""

    def __len__(self) -> int:
        return len(self._forks) + len(self._commands)

    @property
    def resumes(self) -> bool:
        """Whether a `Resume` command waits."""
        return any(isinstance(command, on.Resume) for command in self._commands)

    @property
    def is_empty(self) -> bool:
        """Whether nothing waits: no command, and no prompt or steering message that is stored as mail."""
        return not (len(self) or self._remote or self._words)

    @property
    def is_full(self) -> bool:
        """Whether further commands of this process are refused."""
        return len(self._forks) + len(self._commands) >= INBOX_CAPACITY

    def needs_log(self, status: Status) -> bool:
        """Whether a command waits that needs the log of an agent with this status.

        A notice of new mail does not need the log, and neither does a prompt of another process while the agent is
        stopped.
        """
        if self._forks or self._commands:
            return True
        if not (self._remote or self._words):
            return False
        return any(status is not Status.STOPPED or line[0].interrupted for line in self._from_elsewhere)

    @property
    def volatile(self) -> int:
        """The number of waiting commands that are lost with the process: neither stored as mail nor remote commands."""
        waiting = (fork for fork in (*self._forks, *self._commands) if fork.needs is not on.Needs.LOG)
        return sum(not _mail_of(command) and mails_before(command) is None for command in waiting)

    @property
    def kept(self) -> list[on.Prompt]:
        """The waiting prompts of this process that are stored as mail, so that they outlive the process."""
        return [command for command in tuple(self._commands) if isinstance(command, on.Prompt) and command.mail]

    @property
    def durable(self) -> int:
        """The number of waiting prompts and steering messages that are stored as mail, so they outlive the process."""
        return len(self.kept) + len(self._words)

    def add(self, command: on.Deferrable) -> None:
        """Append a command of this process."""
        if command.needs is on.Needs.STEP_OVER:
            self._forks.append(command)
        else:
            self._commands.append(command)
            self._passing += _passes(command)
            self._unstored += _must_be_stored(command)
            if self._remote and (caller := getattr(command, "caller", None)) is not None:
                self._behind[caller] = self._remote[-1].mail
            self._know(_mail_of(command))

    def add_first(self, command: on.Resume | on.TurnPoisoned | on.Interrupt) -> None:
        """Put an event of the open turn before every command that waits for the end of that turn."""
        self._commands.insert(0, command)
        self._passing += _passes(command)
        self._kept += 1

    def add_remote(self, prompt: on.Prompt) -> None:
        """Append a prompt of another process or a steering message. A mail that is announced twice is added once."""
        if prompt.mail not in self._mails:
            (self._words if prompt.is_word else self._remote).append(prompt)
            self._know(prompt.mail)

    def interrupt(self, mail: int = 0, *, words: bool = True) -> on.Prompt | None:
        """Mark the oldest prompt so that its turn ends as soon as it begins; return this prompt.

        Args:
            mail: the number of the mail whose prompt is marked instead of the oldest.
            words: whether a steering message may be marked.

        Returns:
            The prompt as marked; None if no unmarked prompt was found.
        """
        line: list[Any] = self._commands
        place = _first_prompt(line, mail)
        for others in (self._remote, self._words if words else []):
            first = _first_prompt(others, mail)
            if first is not None and (place is None or self._is_later(line[place], others[first].mail)):
                line, place = others, first
        if place is None:
            return None
        prompt: on.Prompt = line[place]
        line[place] = replace(prompt, interrupted=True)
        self._interrupted += line is self._commands
        return prompt

    @property
    def words(self) -> Sequence[on.Prompt]:
        """The steering messages that may enter the turn together, oldest first. They stay here until `drop_words`."""
        size = 0
        for place, word in enumerate(self._words):
            size += len(word.text.encode())
            if place and (place == WORDS_AT_ONCE or size > SIZE_AT_ONCE):
                return self._words[:place]
        return tuple(self._words)

    def drop_words(self, mails: Collection[int]) -> None:
        """Drop steering messages that have entered the turn, or that were withdrawn."""
        self._forget([word for word in self._words if word.mail in mails])
        self._words = [word for word in self._words if word.mail not in mails]

    def next(self, state: State, loading: bool = False, more: bool = False) -> on.TurnEvent | None:
        """Take the event that the machine can decide on now; None when everything must wait.

        A prompt that must be stored as mail is returned, but stays in the backlog: call `keep` once it is stored, or
        `discard` if that failed.

        Args:
            loading: whether the agent's log is being read. Then a fork that could do without the log waits for it.
            more: whether commands wait in the inbox. A steering message overtakes these, but opens no turn before them,
                since one of them may be the prompt of the turn for which the message is meant.
        """
        if not (self._commands or self._forks or self._remote or self._words or self.has_news):
            return None
        if (unkept := self._next_unkept(state)) is not None:
            return unkept
        if state.phase is Phase.UNLOADED:
            return None if loading else self._next_fork(state)
        taken = self._next_words(state) if self._words and state.status is not Status.STOPPED else None
        return taken or self._next_between_turns(state, more) or self._next_fork(state) or self._next_command(state)

    def keep(self, caller: on.Caller, mail: int) -> None:
        """Note that a prompt is stored as the mail with this number. The prompt keeps its place in the order.

        ``caller`` identifies the prompt.
        """
        place = self._place(caller)
        prompt = self._commands[place]
        assert isinstance(prompt, on.Prompt)  # no other command is kept
        self._unstored -= _must_be_stored(prompt)
        self._commands[place] = replace(prompt, mail=mail)
        self._know(mail)

    def discard(self, caller: on.Caller) -> None:
        """Drop the prompt of this caller because it could not be stored as mail."""
        self._remove(self._place(caller))

    def take_back(self, caller: on.Caller) -> bool:
        """Drop this caller's command, unless it is a prompt that is stored as mail.

        Return whether the command was here.
        """
        for place, command in enumerate(self._forks):
            if getattr(command, "caller", None) is caller:
                del self._forks[place]
                return True
        for place, command in enumerate(self._commands):
            if getattr(command, "caller", None) is caller and not _mail_of(command):
                self._remove(place)
                return True
        return False

    def discard_remote(self) -> None:
        """Drop the prompts of other processes, and the steering messages. They stay in the mailbox."""
        self._forget((*self._remote, *self._words))
        self._remote, self._words = [], []

    def discard_resumption(self) -> None:
        """Drop the event that would have resumed the open turn."""
        self._commands = [command for command in self._commands if not isinstance(command, on.Resume | on.TurnPoisoned)]
        self._kept = 0

    def take_all(self) -> tuple[on.Deferrable, ...]:
        """Take every command of this process: forks first, then the others in their order."""
        taken = (*self._forks, *self._commands)
        self._forget(taken)
        self._forks, self._commands, self._passing, self._unstored, self._kept = [], [], 0, 0, 0
        self._interrupted = 0
        self._behind = {}
        return taken

    @property
    def _from_elsewhere(self) -> list[list[on.Prompt]]:
        """Return the prompts of other processes, and the steering messages; without empty lists."""
        return [line for line in (self._remote, self._words) if line]

    def _next_words(self, state: State) -> on.TakeWords | None:
        """Return the command that lets steering messages into an unfinished step: they cut it off or end a ``wait``."""
        at_once = any(word.at_once for word in self._words)
        match state.phase:
            case Phase.WAITING_FOR_BUDGET:
                return on.TakeWords()
            case Phase.WAITING_FOR_MODEL if at_once:
                return on.TakeWords(at_once)
            case Phase.RUNNING_TOOLS if ended_by_words(state.calls, at_once):
                return on.TakeWords(at_once)
        return None

    def _next_between_turns(self, state: State, more: bool) -> on.TurnEvent | None:
        """Return the next event of an idle agent that is no command of this process; None without one.

        The event is a notice of mail, a prompt of another process, or a steering message.
        """
        runs = state.status is Status.RUNNING
        if state.phase is not Phase.IDLE or not (runs or state.status is Status.STOPPED):
            return None
        if runs and self.has_news and wants_news(state):
            self.has_news = False
            return on.LookAtMail(None)
        if not (self._remote or self._words):
            return None
        lines = (line for line in self._from_elsewhere if runs or line[0].interrupted)
        others = [line for line in lines if not (more and line is self._words)]
        if not others:
            return None
        first = min(others, key=lambda line: line[0].mail)
        if self._commands and not self._is_later(self._commands[0], first[0].mail):
            return None
        prompt = first.pop(0)
        self._forget((prompt,))
        return prompt

    def _next_fork(self, state: State) -> on.Deferrable | None:
        return self._forks.pop(0) if self._forks and accepts(state, self._forks[0]) else None

    def _next_command(self, state: State) -> on.Deferrable | None:
        """Take the first command, or the first that the machine accepts and that may pass the others; else None."""
        stopped = state.status is Status.STOPPED
        no_prompts = stopped or state.phase in (*NOT_ASKED, Phase.WAITING_FOR_PROGRAM)
        elsewhere = len(self._remote) + len(self._words)
        if stopped and not self._interrupted and self._kept == len(self._commands) == len(self._mails) - elsewhere:
            return None  # kept prompts are all there is
        first, resumes = True, False
        for place, command in enumerate(self._commands if no_prompts or self._passing else self._commands[:1]):
            if no_prompts and isinstance(command, on.Prompt) and not command.interrupted:
                continue
            may_go = (first or _passes(command)) and not (resumes and isinstance(command, on.GetOutcome))
            if may_go and accepts(state, command):
                self._remove(place)
                return command
            first, resumes = False, resumes or isinstance(command, on.Resume)
        return None

    def _next_unkept(self, state: State) -> on.Prompt | None:
        """Return the first prompt of this process that must be stored as mail and is not stored yet.

        The prompt stays in the backlog.
        """
        if state.status is not Status.STOPPED:
            if not self._unstored:
                return None
            unstored = filter(_must_be_stored, self._commands)
            return next((prompt for prompt in unstored if puts_aside(state, prompt)), None)
        while self._kept < len(self._commands):
            command = self._commands[self._kept]
            if isinstance(command, on.Prompt) and not (command.mail or command.interrupted):
                return command
            self._kept += 1
        return None

    def _is_later(self, command: on.Deferrable, mail: int) -> bool:
        """Return whether a command came after the mail with this number, as far as is known."""
        if (before := mails_before(command)) is not None:
            return before >= mail
        if isinstance(command, on.Prompt) and command.mail:
            return command.mail > mail
        return self._behind.get(getattr(command, "caller", None), 0) >= mail

    def _know(self, mail: int) -> None:
        if mail:
            self._mails[mail] = None
            self.latest_mail = max(self.latest_mail, mail)

    def _forget(self, commands: Iterable[on.Deferrable]) -> None:
        for command in commands:
            self._mails.pop(_mail_of(command), None)

    def _remove(self, place: int) -> None:
        command = self._commands.pop(place)
        self._kept -= place < self._kept
        self._passing -= _passes(command)
        self._unstored -= _must_be_stored(command)
        self._interrupted -= _is_interrupted(command)
        self._behind.pop(getattr(command, "caller", None), None)
        self._forget((command,))

    def _place(self, caller: on.Caller) -> int:
        places = range(self._kept, len(self._commands))
        return next(place for place in places if getattr(self._commands[place], "caller", None) is caller)


def wants_news(state: State) -> bool:
    """Return whether the agent's setting ``notify`` asks for notices of new mail."""
    return bool(state.view.settings.get("notify"))


def _passes(command: on.Deferrable) -> bool:
    """Return whether a command overtakes those before it. Commands that resume a turn do not."""
    passes = command.needs in (on.Needs.LOG, on.Needs.CALLS_OVER)
    return passes and not isinstance(command, on.Resume | on.TurnPoisoned)


def _must_be_stored(command: on.Deferrable) -> TypeGuard[on.Prompt]:
    """Return whether the command is a prompt whose caller wants it stored now, and that is not stored yet."""
    return isinstance(command, on.Prompt) and command.stored is not None and not command.mail


def _is_interrupted(command: on.Deferrable) -> bool:
    return isinstance(command, on.Prompt) and command.interrupted


def _first_prompt(line: Sequence[on.Deferrable], mail: int) -> int | None:
    prompts = (
        (place, command)
        for place, command in enumerate(line)
        if isinstance(command, on.Prompt) and not command.interrupted
    )
    return next((place for place, prompt in prompts if mail in (0, prompt.mail)), None)


def _mail_of(command: Any) -> int:
    return getattr(command, "mail", 0)
