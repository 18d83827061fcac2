"""The commands that limit, show and charge the spending of an agent."""

from collections.abc import Mapping
from typing import Any

from ikigai_actors.actors.futures import Future
from ikigai_actors.arguments import check_count
from ikigai_actors.errors import BadInput
from ikigai_actors.programs.acts import VerbAct, program_frame
from ikigai_actors.records.budgets.budget import MOST, Budget, BudgetStatus, as_budget, checked_limits, micro_dollars
from ikigai_actors.system.handles.base import H
from ikigai_actors.system.handles.commands.base import CommandBase


class BudgetCommands(CommandBase[H]):
    """The commands that limit, show and charge the spending of an agent."""

    __slots__ = ()

    def grant(
        self,
        *,
        tokens: int | None = None,
        usd: float | None = None,
        agents: int | None = None,
        agents_ever: int | None = None,
        seconds: float | None = None,
        requests_per_minute: int | None = None,
        timeout: float | None = None,
    ) -> Future[BudgetStatus]:
        """Raise the limits of the agent's nearest budget. Agents that wait for the budget go on, in order.

        Args:
            tokens: how many more tokens may be spent. See `Budget` for this and the next limits.
            usd: how many more dollars may be spent.
            agents: how many more agents may live.
            agents_ever: how many more agents may ever be born.
            seconds: how much longer requests may be made.
            requests_per_minute: how many more requests may be made in a minute.
            timeout: seconds to wait; None waits forever.

        Returns:
            The limits of the budget now, and the agent that has the budget.

        Raises:
            AgentNotFound: there is no such agent.
            BadInput: the budget does not have this limit, or a value is no amount.
        """
        more = Budget(tokens, usd, agents, agents_ever, seconds, requests_per_minute).limits()
        if not any(more.values()):
            raise BadInput("Expected what to grant, e.g. grant(tokens=100_000) or grant(usd=5); got nothing.")
        if (frame := program_frame("grant", timeout=timeout)) is not None:
            amounts = {"tokens": tokens, "usd": usd, "agents": agents, "agents_ever": agents_ever, "seconds": seconds}
            asked = {"agent": self.uuid, **amounts, "requests_per_minute": requests_per_minute}
            return VerbAct(frame, "grant", asked, lambda status: BudgetStatus(**status))
        from ikigai_actors.records.budgets.grants import Grant

        return self._write(Grant(self.uuid, more), timeout, lambda served: served.status)

    def set_budget(self, budget: Budget | Mapping[str, Any], *, timeout: float | None = None) -> Future[BudgetStatus]:
        """Set the limits of the agent's own budget. An agent without a budget gets one.

        Agents that wait for the budget go on, in order. The limits of tokens and dollars are never set below the
        amounts that are spent and reserved already. A new limit counts from now on, for the agent and all its
        descendants.

        Args:
            budget: the limits, such as ``{"usd": 5}``. Limits that are not named stay as they are. ``strict`` can be
                set only when the budget is made.
            timeout: seconds to wait; None waits forever.

        Returns:
            The limits of the budget now.

        Raises:
            AgentNotFound: there is no such agent.
            BadInput: the agent has no budget, and a descendant has one: no budget can be put above that of a
                descendant. Or a value is no amount.
        """
        limits = checked_limits(as_budget(budget))
        from ikigai_actors.records.budgets.limits import SetBudget

        return self._write(SetBudget(self.uuid, limits), timeout, lambda served: served.status)

    def charge(self, *, usd: float = 0, tokens: int = 0, timeout: float | None = None) -> Future[None]:
        """Charge the agent for the cost of a tool, before the tool acts: ``current_agent().charge(usd=0.02)``.

        A strict budget must have room for the charge. Any other budget records it even if too little is left, and the
        next request to the model waits.

        Args:
            usd: the cost in dollars.
            tokens: the cost in tokens, if the tool asks a model itself.
            timeout: seconds to wait; None waits forever.

        Raises:
            BudgetExceeded: a budget above the agent is strict, and too little is left. Nothing is recorded.
            AgentDead: the agent is dead.
        """
        amounts = check_count(tokens, "tokens", most=MOST), micro_dollars(usd)
        from ikigai_actors.records.budgets.charges import ChargeAgent

        return self._write(ChargeAgent(self.uuid, *amounts), timeout, lambda _: None)
