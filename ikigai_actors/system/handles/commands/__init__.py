"""Every command of an agent, once: a future, with its whole docstring.

    mast = await agent.fork("Plan the mast.", name="mast")   # an `AsyncAgentRef`: each gives a future
    mast = agent.fork("Plan the mast.", name="mast")         # an `AgentRef` waits for it

Its modules:

    turns, forks    prompts and replies; children
    history, life   what the model sees; signals, death, place in the tree
    budgets, rules  what the agent may spend, and what its tools may do
    mail, groups    what it says and hears, also of deaths
    timers          what it is reminded of
    base, every     how a command leaves; all commands together
"""
