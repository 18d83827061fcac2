"""The base of all commands: how a command is sent.

Commands that the agent carries out itself go to its actor, in this process or through its host (`_tell`). Commands that
only write rows go to the writer (`_write`). Arguments are checked before anything is sent, and bad ones raise at once.
All other errors are raised by the future.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import itemgetter
from typing import Any, TypeVar

from ikigai_actors.actors.futures import MAY_HAPPEN, Future, may_block, refuse_to_block
from ikigai_actors.actors.wait_graph import Until
from ikigai_actors.actors.wait_registry import acting_code
from ikigai_actors.arguments import check_timeout
from ikigai_actors.programs.frames import refuse_in_program
from ikigai_actors.records.once import KeyedCall, answer_under
from ikigai_actors.store.unit import Unit
from ikigai_actors.system.handles.base import BaseRef, H
from ikigai_actors.system.lateness import why_late
from ikigai_actors.system.skills import skill_texts

T = TypeVar("T")


class CommandBase(BaseRef[H]):
    """The parts that all commands of an agent share."""

    __slots__ = ()

    _waits = False
    """Whether the caller blocks until the answer is there. Where it may not, nothing is asked for."""

    def _tell(
        self,
        command: Callable[[Future[Any]], object],
        future: Future[Any],
        call: KeyedCall | None = None,
        repeated: Callable[[dict[str, Any]], Any] = itemgetter("value"),
    ) -> Future[Any]:
        """Send a command to the agent, which settles the future; once, if the command is a call under a key.

        ``repeated`` makes the future's value from the recorded answer of an earlier call under the key.
        """
        refuse_in_program()
        if call is None:
            return self._go(lambda: self.system._tell(self.uuid, command(future)), future)
        future.keyed = call, repeated
        future.doubted = lambda error: self._look_again(call, repeated, future, error)

        def ask() -> None:
            if (known := self.system._store.read(lambda tx: answer_under(tx, call))) is not None:
                future.settle(repeated(known))
            else:
                self.system._tell(self.uuid, command(future))

        return self._look_up(ask, future)

    def _look_again(
        self, call: KeyedCall, repeated: Callable[[dict[str, Any]], Any], future: Future[Any], error: BaseException
    ) -> None:
        """Settle a future with the answer of another call under the same key, or else with the error."""

        def take(looked: Future[dict[str, Any] | None]) -> None:
            known = None if looked.exception() is not None else looked.get()
            future.settle(error if known is None else repeated(known))

        self.system._beside.read(lambda: self.system._store.read(lambda tx: answer_under(tx, call))).add_done_callback(
            take
        )

    def _look_up(self, ask: Callable[[], object], future: Future[T]) -> Future[T]:
        """Call ``ask``, which reads rows and settles the future; on another thread if an event loop runs in this one.

        So the event loop is not blocked.
        """
        if self._waits or may_block():
            ask()
        else:
            self.system._beside.post(ask, future)
        return future

    def _call(self, key: str | None, verb: str, arguments: Mapping[str, Any], about: str) -> KeyedCall | None:
        """Return the keyed call of a command, by which it is carried out once; None without a key.

        Raises `BadInput` for a key that cannot be used.
        """
        return None if key is None else KeyedCall(key, verb, arguments, self.uuid, self.uuid, about)

    def _skill_texts(self, skills: Sequence[str]) -> dict[str, Any]:
        """Return the data of a prompt with the texts of skills. Raises `BadInput`."""
        commands = self.system._workspace is not None
        return skill_texts(self.system._store, lambda: self.system._log_cache.load(self.uuid), skills, commands)

    def _go(self, act: Callable[[], object], future: Future[T], checks: bool = True) -> Future[T]:
        """Call ``act``, which settles the future.

        It runs on another thread if it writes a row and this thread runs an event loop.
        """
        if self._waits:
            if checks:
                future.check_wait()
            act()
        elif self.system._here(self.uuid) is not None or may_block():
            act()
        else:
            self.system._beside.post(act, future)
        return future

    def _beside(
        self, ask: Callable[[], Future[T]], timeout: float | None = None, *, cancels: bool = False
    ) -> Future[T]:
        """Call ``ask``, which first reads rows, and return a future of its result.

        It runs on another thread if an event loop runs in this one, except in the code of an agent.
        """
        if self._waits or may_block() or acting_code.get(None) is not None:
            return ask().within(timeout)
        return self.system._beside.forward(ask, cancels=cancels).within(timeout)

    def _write(
        self,
        unit: Unit,
        timeout: float | None,
        make: Callable[[Any], Any] | None = None,
        call: KeyedCall | None = None,
    ) -> Future[Any]:
        """Commit a unit, once if it is a call under a key; return a future of ``make(answer)``."""
        refuse_in_program()
        self.system._check_open()
        if call is None or make is None:
            return self.system._writer.ask(unit, make, timeout=timeout, waits=self._waits)
        return self.system._write_once(unit, call, make, timeout, waits=self._waits)

    def _check_wait(self, timeout: float | None) -> None:
        """Raise `BadInput` or `WouldDeadlock` for a time-out with which the caller could not wait.

        Called before a command whose future cannot raise them.
        """
        if self._waits:
            refuse_to_block()
        check_timeout(timeout)

    def _future(
        self,
        timeout: float | None,
        make: Callable[[Any], Any] | None = None,
        *,
        late: str = MAY_HAPPEN,
        until: Until = Until.TURN,
        rescue: Callable[[BaseException], object] | None = None,
    ) -> Future[Any]:
        """Return a future for the answer of the agent; its `TimedOut` says why no answer came."""
        why = partial(why_late, self.system, self.uuid)
        return Future(self.uuid, make, late=late, until=until, why=why, timeout=timeout, rescue=rescue)
