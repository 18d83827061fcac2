"""The tools that a model can call: functions, MCP servers, a workspace; and what is known of a tool before it runs.

Its modules:

    function, signature     a Python function as a tool, and what a model must know of it
    base                    toolsets: tools that share something
    definitions             the digest of what models and people see of a tool
    builds                  the code of an app, by a name or a digest
    effect_keys             keys by which a service knows a call that is made again
    fitted, plain_schema    tools, and the schemas of their arguments, in a form that every service takes
    policy                  whether a tool may run, and how
    rules/                  what decides on each call of a tool
    mcp/, workspace/        servers that speak MCP; a directory with files and a shell
    process                 how child processes are started, and ended
    removal                 the end of a directory, whatever an agent has left in it
"""

from ikigai_actors.lazy import handed_on

__getattr__, __dir__, __all__ = handed_on(__name__)
