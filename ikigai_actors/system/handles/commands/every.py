"""All commands of an agent, in one class."""

from ikigai_actors.system.handles.base import H
from ikigai_actors.system.handles.commands.budgets import BudgetCommands
from ikigai_actors.system.handles.commands.forks import ForkCommands
from ikigai_actors.system.handles.commands.groups import GroupCommands
from ikigai_actors.system.handles.commands.history import HistoryCommands
from ikigai_actors.system.handles.commands.life import LifeCommands
from ikigai_actors.system.handles.commands.mail import MailCommands
from ikigai_actors.system.handles.commands.rules import RuleCommands
from ikigai_actors.system.handles.commands.timers import TimerCommands
from ikigai_actors.system.handles.commands.turns import TurnCommands


class Commands(
    TurnCommands[H],
    ForkCommands[H],
    HistoryCommands[H],
    LifeCommands[H],
    BudgetCommands[H],
    MailCommands[H],
    GroupCommands[H],
    RuleCommands[H],
    TimerCommands[H],
):
    """The commands of an agent. Each returns a future; ``timeout`` is the number of seconds to wait for it."""

    __slots__ = ()
