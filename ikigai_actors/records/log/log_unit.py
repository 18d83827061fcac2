"""The writes of an agent about itself, as data: messages of its log, the turn that they open or close, children.

`ikigai_actors.records.log.append` turns it into statements.
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
    """A child that is about to be born, and the first messages of its log."""

    uuid: str
    name: str | None
    parent_uuid: str
    """The agent whose history it inherits."""
    fork_message_id: int
    turn: int
    restart: str
    created_at: int
    messages: tuple[Message, ...]
    born: int
    """Position of the ``fork`` message in the parent's log."""
    limit: int | None = None
    """The birth is refused when this many agents live in the branch already (`records.branches`); None is no limit."""
    limit_is_set: bool = False
    """Whether a setting says so; else it is the usual limit, which a budget of agents replaces."""
    on_orphan: str | None = None
    """The fate of its children when it dies; None inherits."""
    supervisor_uuid: str | None = None
    """The agent that makes it, and supervises it; None for its parent."""
    budget: Budget | None = None
    """A budget of its own, beside those above its parent; None for none."""
    labels: str = ""
    """The labels, as one text (`records.agents.labels`)."""


@dataclass(frozen=True, slots=True)
class LogUnit:
    """The writes of an agent about itself: messages of its log, the turn it opens or closes, children."""

    agent: str
    messages: tuple[Message, ...]
    turn: int | None = None
    """The new value of ``agents.turn``; None leaves it."""
    births: tuple[Birth, ...] = ()
    """The new children, in order."""
    copied: tuple[Copied, ...] = ()
    """The directories of which the children get trees (`records.agents.trees`)."""
    prompt: int = 0
    """The mail of kind ``prompt`` that the turn takes up; 0 for none."""
    words: tuple[int, ...] = ()
    """The mails that its last messages are; the unit is refused with `WordsGone` where one was withdrawn."""
    blobs: tuple[Attachment, ...] = ()
    """The blobs that the messages refer to, as far as they may not be stored yet."""
    definitions: tuple[Definition, ...] = ()
    """The definitions of tools for which the questions in these messages hold."""
    questions: tuple[NewQuestion, ...] = ()
    """The questions that it asks."""
    settled: tuple[SettledQuestion, ...] = ()
    """The questions that wait no more with it."""
    asks: bool = False
    """Whether a request to the model may follow: what that needs is held. The actor knows how much it is: ``need``."""
    may_wait: bool = True
    """Whether that request may wait for a budget; else the unit is refused with `BudgetExceeded`."""
    need: Need | None = None
    """The need of that request."""
    charge: Charge | None = None
    """The cost of the request that ends with this; None when none has ended."""
    inherited: int | None = None
    """Of births by a call of the model: how many tokens the children inherit, 0 when nobody has told. Then the results
    end with what is left of the budgets (`ikigai_actors.records.log.left`). None where nothing is added.
    """
    merged: MergeEntry | None = None
    """The row that goes with a message ``merge``; the unit is refused when the child has gone on, or was merged."""
    unpaused: bool = False
    """Whether the agent has waited for a budget until now: its request never left."""
    labels: str = ""
    """The labels of the turn that it opens, where the prompt has put some over those of the agent; else empty."""
    rules: Rules | None = None
    """By which rules it was decided that calls begin, are asked about or denied; None where it begins no call. The unit
    is refused with `RulesChanged` where others are in force.
    """
    rule: NewRule | None = None
    """A rule that the agent gets with this. ``rules`` of the unit as it was written are those in force after it."""
    spent: tuple[SpendingRow, ...] = ()
    """The costs of the requests in these messages."""
    asked: tuple[int, ...] = ()
    """The prompts of programs whose turns end with this, by the numbers of their mails."""
    cancels: bool = False
    """Whether its turn ends without an answer, and with it what the agent has asked of others as a program."""
    resumed_at: int = 0
    """The position to which the turn had come that goes on with this, since it was cut off; 0 where none does."""
    rests: bool = False
    """Whether the turn that goes on only waits for people and other agents. So it cannot be what ended its host, and a
    further cut does not count.
    """
