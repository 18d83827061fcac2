"""All commands of an agent. Each command is written once, as a method that returns a future.

    mast = await agent.fork("Plan the mast.", name="mast")   # an `AsyncAgentRef`: each gives a future
    mast = agent.fork("Plan the mast.", name="mast")         # an `AgentRef` waits for it

Its modules:

    turns, forks    prompts and replies; children
    history, life   the history that the model sees, and settings; signals, death, place in the tree
    budgets, rules  the spending of the agent; rules about calls of its tools
    mail, groups    mail, groups, and news of the deaths of other agents
    timers          timers, which remind the agent
    base, every     the base of all commands; all commands in one class
"""
