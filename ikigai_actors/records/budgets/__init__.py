"""Budgets: limits on what an agent and all its descendants may spend.

    budget.py    the limits that a person sets, and the status that people read
    amounts.py   the amounts that a request needs, reserves and costs
    ceilings.py  the arithmetic: what is left in a chain of budgets, what a request may reserve, which notices are due
    purse.py     the portions of this host, in a transaction that many agents share
    ledger.py    a whole chain, in a transaction of its own
    grants.py    units that grant an amount, and units that let waiting agents go on
    charges.py   the costs of tools
    holds.py     the reserved amount of an open request, in the agent's row; requests that a dead host left
    limits.py    the first limits of a budget, and later changes
    status.py    the status of a budget for people
    spendings.py the cost of each request, and the account that pays for it

A budget belongs to an agent, its owner, and limits the owner and all its descendants (for births: the agents below the
owner). So an agent has a chain of budgets above it, from its nearest one to agent 0's. Each counts everything that the
agent spends. No budget is split off from another one, so a death gives nothing back.

A request to a model is sent only when its possible cost is reserved at every budget of the chain, in the agent's own
row and in a portion of each limit. The unit that writes the end of the request settles the actual cost. Both are part
of units that agents write anyway (`ikigai_actors.records.log.append`). Each host has its own portions; while they
suffice, no other host is involved, and no budget's row is locked (`Purse`). Otherwise the unit gets a separate
transaction. It locks the chain, takes back the unused amounts of other portions, or else makes the agent wait
(`BudgetLedger`).

The state of a request:

    none      agents.held_at = 0
    held      agents.held_at > 0; the request may have left
    waiting   a row of ``pauses``; the request has not left

The unit that ends a held request, or finds a request that an ended host has left, moves its amount from ``held`` to
``spent``, or gives it back. This happens once: only if ``held_at`` is not 0, under the lock of the agent's row.
"""
