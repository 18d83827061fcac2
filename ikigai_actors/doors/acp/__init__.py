"""The Agent Client Protocol, version 1, for editors: each session is an agent of the tree.

    door            one client: passes its requests, and the events of its agents, to the modules below
    sessions        the requests of a client about sessions
    prompts         the prompts of a client that are not answered yet
    permissions     the questions to a client: calls that wait for a decision, and questions of models
    view            the updates about agents that a client was shown, and the next ones
    session_tree, updates   the session to which an agent's messages are sent; messages as updates (pure)
    client_prompt   the content blocks of a client as a prompt (pure)
    models          messages by the models of the package: parameters checked, results as JSON

Requests, answers and updates are models of ``agent-client-protocol``, which the extra ``acp`` brings. Three parts of
that package are not used:

- The router knows no ``session/delete``, and has ``session/fork`` and ``session/resume`` only if all unstable methods
  are allowed.
- The connection gives the id of a request to no handler, so a repeated prompt would count as a second prompt. The
  connection ignores ``$/cancel_request``.
- The models drop the capabilities ``subagents`` and ``session.compaction``, which the code here reads from the JSON.
  The models lack the updates of both, which the code here writes as objects of JSON.
"""
