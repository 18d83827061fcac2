"""The Agent Client Protocol, version 1, for editors: each session is an agent of the tree.

    door            one client: its requests and the events of its agents, each given to its part
    sessions        what a client does with sessions
    prompts         its prompts that are not answered yet
    permissions     the calls that it is asked about
    view            what it was shown of agents, and is shown next
    session_tree, updates   which session an agent's traffic goes to; messages as updates (pure)
    client_prompt   content blocks as a prompt (pure)

Written by hand, since the package's own client and router refuse what the protocol has learnt since; its schema is the
oracle of the tests.
"""
