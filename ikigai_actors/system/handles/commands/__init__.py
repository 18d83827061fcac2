"""All commands of an agent. Each is written once, as a method that returns a future, with its full docstring.

    mast = await agent.fork("Plan the mast.", name="mast")   # an `AsyncAgentRef`: each gives a future
    mast = agent.fork("Plan the mast.", name="mast")         # an `AgentRef` waits for it

Its modules:

    turns, forks    prompts and replies; children
    history, life   what the model sees; signals, death, place in the tree
    budgets, rules  what the agent may spend, and what its tools may do
    mail, groups    mail, groups, and news of the deaths of other agents
    timers          reminders
    base, every     how a command is sent; all commands together
"""
