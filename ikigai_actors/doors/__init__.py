"""Protocols by which other programs reach the agents of a database: MCP, ACP, AG-UI and the network API.

    program             the processes of doors: one for each client, or one by HTTP for all clients
    mcp, mcp_tasks      the Model Context Protocol, and turns as tasks
    mcp_forms           questions to people, as forms that a client of MCP shows
    acp                 the Agent Client Protocol, for editors
    agui                AG-UI, for web applications
    api                 the network API: every verb by HTTP
    hosting             the host process that a door uses: a running one, or one that the door starts
    lines, json_rpc     standard input and output as lines; JSON-RPC 2.0, in which editors talk
    mcp_lines, mcp_http MCP by lines and by HTTP
    protocols           MCP and AG-UI by HTTP, after a guard
    call_title          the title of a call, one line, for a question to a client or for a list

A door is a process of its own, attached to the database. A door decides nothing, owns no agent, and has no state that a
``kill -9`` could lose.
"""
