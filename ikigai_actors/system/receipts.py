"""Receipts: futures of the positions at which steering messages enter the histories of their agents."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from ikigai_actors.actors.futures import Future, refuse_to_block
from ikigai_actors.actors.wait_graph import Until
from ikigai_actors.errors import IkigaiError, Withdrawn
from ikigai_actors.records.messages.steered import Steered

_LATE = "the word waits for the agent, which reads it before its next request to the model."


class Receipt(Future[Steered]):
    """A future of the position at which a steering message enters a history.

    It raises `Withdrawn`, `AgentDead`, or the error that kept the message from being stored.
    """

    def __init__(self, agent: str, delete: Callable[[int], bool]) -> None:
        """Make a receipt that is not settled yet.

        Args:
            agent: the agent that gets the steering message, by uuid.
            delete: deletes the mail with this number if it is unread; returns whether it has deleted the mail.
        """
        super().__init__(agent, late=_LATE, until=Until.STEP)
        self.kept: Future[int] = Future()
        """The number of the steering message in the mailbox, once it is committed."""
        self._agent, self._delete = agent, delete

    @property
    def stored_as(self) -> int:
        """The number of the steering message in the mailbox; 0 while it is not committed, or if it was refused."""
        return self.kept.get() if self.kept.done() and self.kept.exception() is None else 0

    def settle(self, value: object) -> None:
        super().settle(value)
        if isinstance(value, BaseException):
            self.kept.settle(value)

    def refuse(self, asked: "Future[Any]") -> None:
        """Settle the receipt with the error of ``asked``, if the message could not be stored."""
        if (error := asked.exception()) is not None:
            self.settle(error)

    def wait_until_kept(self) -> None:
        """Wait until the steering message is committed or refused. If it is refused, the receipt raises the error."""
        with suppress(IkigaiError):
            self.kept.get()

    def withdraw(self) -> bool:
        """Withdraw the steering message if the agent has not read it; return whether it was withdrawn.

        Raises:
            WouldDeadlock: called on a thread of the runtime.
            StoreError: the database does not answer.
        """
        refuse_to_block()
        if self.done():
            return False
        withdrawn = self._delete(self.kept.get())
        if withdrawn:
            self.settle(Withdrawn("The word was withdrawn.", self._agent))
        return withdrawn
