"""The Agent Client Protocol, version 1, for editors: each session is an agent of the tree.

    door            one client: its requests and the events of its agents, each given to its part
    sessions        what a client does with sessions
    prompts         its prompts that are not answered yet
    permissions     the calls that it is asked about
    view            what it was shown of agents, and is shown next
    session_tree, updates   which session an agent's traffic goes to; messages as updates (pure)
    client_prompt   content blocks as a prompt (pure)
    models          the package's models of messages: checked, and as JSON

Requests, answers and updates are models of ``agent-client-protocol``, which the extra ``acp`` brings. Three parts of
that package are not used:

- Its router knows no ``session/delete``, and has ``session/fork`` and ``session/resume`` only where all that is
  unstable is allowed.
- Its connection gives the id of a request to nobody, so a prompt that is sent again would be a second one; and it hears
  no ``$/cancel_request``.
- Its models drop the capabilities ``subagents`` and ``session.compaction``, which are read here as they came. They lack
  the updates of both, which are objects of JSON here.
"""
