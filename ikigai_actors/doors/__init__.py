"""Protocols by which other programs reach the agents of a database: MCP, ACP, AG-UI and the network API.

    program             a door as a process
    mcp, mcp_tasks      the Model Context Protocol, and turns as tasks
    mcp_forms           the questions of people, as forms of a client of MCP
    acp                 the Agent Client Protocol, for editors
    agui                AG-UI, for web applications
    api                 the network API: every verb by HTTP
    hosting             the host that runs the agents
    lines, json_rpc     standard input and output; the messages of editors
    mcp_lines, mcp_http MCP by lines and by HTTP
    protocols           MCP and AG-UI by HTTP
    call_title          a call as one line, for a question of a client

A door is a process of its own, attached to the database. A door decides nothing, owns no agent, and has no state that a
``kill -9`` could lose.
"""
