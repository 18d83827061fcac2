"""Protocols by which other programs reach the agents of a database.

    program             a door as a process
    mcp, mcp_tools, mcp_tasks       the Model Context Protocol, its tools, and turns as tasks
    acp, acp_updates    the Agent Client Protocol, and what a client is shown
    agui                AG-UI, for web applications
    access, turns       what a client reaches; turns by handles
    importers           sessions of other programs, as agents
    hosting             the host that runs the agents
    claude_sessions     sessions of the Claude Agent SDK
    langgraph_saver     checkpoints of LangGraph
    openai_session      sessions of the OpenAI Agents SDK
    guest_database      the database for adapters of other libraries
    json_rpc, lines, mcp_http, bell     messages; standard input and output; HTTP; who waits for news

A door is a process of its own, attached to the database. It decides nothing, owns no agent and holds nothing that a
``kill -9`` may take.
"""
