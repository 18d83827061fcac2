"""Guests: sessions of other agent libraries in this database. Each adapter is a module, and needs an extra.

Its modules:

    claude_sessions     sessions of the Claude Agent SDK
    langgraph_saver     checkpoints of LangGraph
    openai_session      sessions of the OpenAI Agents SDK
"""
