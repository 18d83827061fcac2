"""The tools that a model can call: functions, MCP servers, a workspace; and what is known of a tool before it runs."""
