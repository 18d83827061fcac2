"""MCP servers whose tools models call."""
