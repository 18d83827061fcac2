"""The log of one agent in memory: read when its actor needs it, extended after each commit, dropped when idle."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any

from ikigai_actors.actors.inbox import Inbox
from ikigai_actors.agent.messages import LoadFailed, LogRead, LookedUp, WholeRead
from ikigai_actors.agent.runtime import Runtime
from ikigai_actors.agent.turn import events as on
from ikigai_actors.agent.turn import machine
from ikigai_actors.agent.turn.calls import focus_in, recover
from ikigai_actors.agent.turn.hooked import ending_in
from ikigai_actors.agent.turn.state import ReadChild
from ikigai_actors.agent.turn.typed import misfits_in
from ikigai_actors.errors import IkigaiError
from ikigai_actors.frozen import replace
from ikigai_actors.records.log.history import View
from ikigai_actors.records.log.log import Log, NotHeld
from ikigai_actors.records.log.log_cache import LogCache
from ikigai_actors.records.log.merge_source import MergeSource
from ikigai_actors.records.log.merges import head_moved
from ikigai_actors.records.messages.forms import ASKER
from ikigai_actors.records.messages.kept import awaited_reply
from ikigai_actors.records.messages.messages import Kind, Message
from ikigai_actors.records.messages.replies import outcome_of


class AgentLog:
    """The log of one agent.

    Only the agent's actor calls these methods, except that any thread may ask when the log was used.
    """

    __slots__ = ("_inbox", "_runtime", "_uuid", "child", "current", "loading", "used")

    def __init__(self, runtime: Runtime, inbox: Inbox, uuid: str) -> None:
        self._runtime, self._inbox, self._uuid = runtime, inbox, uuid
        self.current: Log | None = None
        """The log; None while it is not in memory."""
        self.child: Log | None = None
        """The log of the agent that is being merged, when a summary of it is asked for."""
        self.used = 0.0
        """The time when the log was last read or grew, by the host's clock."""
        self.loading = False
        """Whether the log is being read."""

    def load(self, whole: bool = False) -> None:
        """Read the log on the reader's thread, which posts `LogRead` or `LoadFailed` to the inbox; never waits.

        ``whole``: including the messages that a summary replaces.
        """
        if self.loading:
            return
        self.loading = True
        inbox = self._inbox
        self._read(lambda log: inbox.put_urgent(LogRead(log) if isinstance(log, Log) else LoadFailed(log)), whole)

    def read_whole(self) -> None:
        """Ask for the complete log. The agent handles no message until `WholeRead` brings it."""
        inbox = self._inbox
        self._read(lambda log: inbox.release(WholeRead(log)), whole=True)

    def _read(self, done: Callable[[Log | IkigaiError], None], whole: bool) -> None:
        self._runtime.log_loader.read(self._uuid, done, whole)

    @property
    def lacks_what_is_shown(self) -> bool:
        """Return whether some messages that the model sees are not in memory.

        A rewind, or taking off a summary, makes older messages visible again.
        """
        return self.current is not None and not self.current.shows(self.current.head)

    def hold_whole(self, log: Log) -> None:
        """Use this log, which is complete, in place of the one in memory."""
        self.current = log
        self._use(log.held)

    def look_up(self, command: on.ForkAt) -> None:
        """Read the settings at the fork point of a command, without waiting.

        The inbox gets `LookedUp` with the command and the settings, or with the error.
        """
        inbox, uuid = self._inbox, self._uuid

        def done(outcome: Mapping[str, Any] | IkigaiError) -> None:
            if isinstance(outcome, IkigaiError):
                inbox.put_urgent(LookedUp(command, outcome))
            else:
                inbox.put_urgent(LookedUp(replace(command, then=outcome)))

        self._runtime.log_loader.look_up(lambda cache: cache.settings_at(uuid, command.at), done)

    def index_words(self, below: bool) -> None:
        """Index the messages for searches by words, so that the next search is faster. Never waits."""
        uuid = self._uuid
        self._runtime.log_loader.look_up(lambda cache: cache.index_words(uuid, below), lambda _: None)

    def look_at_child(self, effect: ReadChild) -> None:
        """Read the data of an agent that is to be merged; the inbox gets them as `on.ChildRead`. Never waits."""
        inbox, uuid = self._inbox, self._uuid

        def look(cache: LogCache) -> tuple[MergeSource, Log | None]:
            source = cache.look_at_child(uuid, effect.child)
            log = cache.load(source.agent) if effect.with_log else None
            if log is not None and log.head != source.head:  # it may show less than the head that was looked at
                raise head_moved(source.agent, source.head, log.head)
            return source, log

        def done(outcome: tuple[MergeSource, Log | None] | IkigaiError) -> None:
            if isinstance(outcome, IkigaiError):
                inbox.put_urgent(on.ChildRead(effect.request, error=outcome))
            else:
                source, self.child = outcome
                inbox.put_urgent(on.ChildRead(effect.request, source))

        self.child = None
        self._runtime.log_loader.look_up(look, done)

    def hold(self, log: Log, turn: int) -> on.Loaded:
        """Set the log in memory, and return the facts from it that the machine needs.

        Args:
            turn: the position of the message that opened the agent's turn; 0 when no turn is open.

        Raises `NotHeld` when messages are needed that are not in memory.
        """
        self.loading = False
        view, failed = log.view(log.head), machine.failed_turn(log.newest_first())
        opened = log.since(turn or failed) if turn or failed else []
        self.hold_whole(log)
        return on.Loaded(
            log.head,
            view,
            recover(log.since(turn)) if turn else (),
            outcome_of(log.back_to_ending()),
            machine.notice_of(_shown(log, view)) if view.settings.get("notify") else 0,
            failed,
            opened[0].data.get("output") if opened else None,
            misfits_in(opened),
            focus_in(opened) if turn else None,
            opened[0].data.get("labels", {}) if opened else {},
            opened[0].data.get("mail", 0) if opened and ASKER in opened[0].data else 0,
            ending_in(opened) if turn else None,
            awaited_reply(log.newest_first(), self._uuid) if turn else None,
        )

    def inherited(self, settings: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the settings with which the agent was born.

        ``settings`` are returned when the log in memory does not go back to the birth.
        """
        log = self.current
        if log is None or not log.fork:
            return {}
        try:
            return log.view(_end_of_birth(log)).settings
        except (ValueError, NotHeld):
            return settings

    def grow(self, messages: Sequence[Message]) -> None:
        """Add committed messages, and notify subscribers."""
        if self.current is None:  # it has forked, for which its head was enough
            self._runtime.log_cache.forget(self._uuid)
        else:
            self.current = self._runtime.log_cache.grow(self.current, messages)
            self._use(len(messages))
        for message in messages:
            self._runtime.publisher.publish(message)

    def drop(self) -> None:
        """Drop the complete log from memory. The next command reads it again."""
        self.current = None

    def abandon(self) -> None:
        """Drop the log from memory after a unit that failed, because messages may be missing from it."""
        self.drop()
        self._runtime.log_cache.forget(self._uuid)

    def _use(self, messages: int) -> None:
        self.used = self._runtime.clock.monotonic()
        self._runtime.log_eviction.grew(messages)


def _shown(log: Log, view: View) -> Iterator[Message]:
    return takewhile(lambda message: message.id > view.floor, log.newest_first())


def _end_of_birth(log: Log) -> int:
    """Return the position of the last message that belongs to the agent's birth.

    A child that was forked at an earlier position, or has a kind, gets a ``configure`` message at its birth.
    """
    changes, born_at = False, 0
    for message in log.between(log.fork, log.fork + 3):
        born_at = born_at or message.created_at
        changes = changes or "at" in message.data or message.kind == Kind.CLEAR
        if message.kind == Kind.CONFIGURE and changes and message.created_at == born_at:
            return message.id
    return log.fork
