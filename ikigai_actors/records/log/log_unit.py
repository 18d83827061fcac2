"""The data of one write of an agent: messages for its log, the turn that they open or close, and new children.

`ikigai_actors.records.log.append` turns them into SQL statements.
"""

from dataclasses import dataclass

from ikigai_actors.attachments import Attachment
from ikigai_actors.records.budgets.amounts import Charge, Need, SpendingRow
from ikigai_actors.records.budgets.budget import Budget
from ikigai_actors.records.log.merge_source import MergeEntry
from ikigai_actors.records.messages.messages import Message
from ikigai_actors.records.questions.asked import NewQuestion, SettledQuestion
from ikigai_actors.tools.definitions import Definition
from ikigai_actors.tools.rules.rule import NewRule, Rules
from ikigai_actors.tools.trees.tree import Copied


@dataclass(frozen=True, slots=True)
class Birth:
    """A child that is about to be born, with the first messages of its log."""

    uuid: str
    name: str | None
    parent_uuid: str
    """The uuid of the agent whose history the child inherits."""
    fork_message_id: int
    turn: int
    restart: str
    created_at: int
    messages: tuple[Message, ...]
    born: int
    """The position of the ``fork`` message in the parent's log."""
    limit: int | None = None
    """The most living agents of the branch, above which the birth is refused (`records.branches`); None for no
    limit.
    """
    limit_is_set: bool = False
    """Whether a setting has set this limit. Otherwise it is the default, which a budget of agents replaces."""
    on_orphan: str | None = None
    """The orphan policy of the child; None inherits."""
    supervisor_uuid: str | None = None
    """The uuid of the agent that makes and supervises the child; None for its parent."""
    budget: Budget | None = None
    """The child's own budget, in addition to those above its parent; None for none."""
    labels: str = ""
    """The labels, encoded as one text (`records.agents.labels`)."""


@dataclass(frozen=True, slots=True)
class LogUnit:
    """The writes of an agent about itself: messages of its log, the turn that it opens or closes, and children."""

    agent: str
    messages: tuple[Message, ...]
    turn: int | None = None
    """The new value of ``agents.turn``; None leaves it unchanged."""
    births: tuple[Birth, ...] = ()
    """The new children, in order."""
    copied: tuple[Copied, ...] = ()
    """The directories of which the children get their own trees (`records.agents.trees`)."""
    prompt: int = 0
    """The number of the mail of kind ``prompt`` that the turn takes up; 0 for none."""
    words: tuple[int, ...] = ()
    """The mails of the steering messages at the end of the unit. If one was withdrawn, the unit is refused with
    `WordsGone`.
    """
    blobs: tuple[Attachment, ...] = ()
    """The blobs to which the messages refer, if they may not be stored yet."""
    definitions: tuple[Definition, ...] = ()
    """The definitions of tools to which the questions in these messages refer."""
    questions: tuple[NewQuestion, ...] = ()
    """The questions that the unit asks."""
    settled: tuple[SettledQuestion, ...] = ()
    """The questions that the unit closes."""
    asks: bool = False
    """Whether a request to the model may follow, whose cost is reserved. The actor fills in ``need``."""
    may_wait: bool = True
    """Whether that request may wait for a budget. Otherwise the unit is refused with `BudgetExceeded`."""
    need: Need | None = None
    """The need of that request."""
    charge: Charge | None = None
    """The cost of the request that ends with this unit; None if none ends."""
    inherited: int | None = None
    """For births by a call of the model: the number of tokens that the children inherit, 0 if unknown. Then the results
    end with the amounts left of the budgets (`ikigai_actors.records.log.left`). None adds nothing.
    """
    merged: MergeEntry | None = None
    """The row of a ``merge`` message. If the child has gone on, or was merged already, the unit is refused."""
    unpaused: bool = False
    """Whether the agent has waited for a budget until now, so its request was never sent."""
    labels: str = ""
    """The labels of the turn that the unit opens, encoded as one text, if the prompt adds some; else empty."""
    rules: Rules | None = None
    """The rules by which calls were decided; None if the unit begins no call. If other rules are in force, the unit is
    refused with `RulesChanged`.
    """
    rule: NewRule | None = None
    """A rule that the agent gets with this unit. In the written unit, ``rules`` are those in force after it."""
    spent: tuple[SpendingRow, ...] = ()
    """The costs of the requests in these messages."""
    asked: tuple[int, ...] = ()
    """The turns that end with this unit and that programs asked for: the numbers of their prompts by mail."""
    cancels: bool = False
    """Whether the agent's turn ends without an answer, which cancels its requests to other agents as a program."""
    resumed_at: int = 0
    """The position to which the turn had come that goes on with this, since it was cut off; 0 where none does."""
    rests: bool = False
    """Whether the turn that goes on only waits for people and other agents. So it cannot be what ended its host, and a
    further cut does not count.
    """
