"""The tools that a model can call: functions, MCP servers, and a workspace.

The package also has the facts about a tool that are known before it runs.

Its modules:

    function, signature     a Python function as a tool, and what a model must know of it
    base                    toolsets: tools that share something
    definitions             the digest of a tool's definition, as models and people see it
    builds                  the code of an app, by a name or a digest
    effect_keys             keys by which a service recognises a repeated call
    fitted, plain_schema    tools, and the schemas of their arguments, in a form that every service takes
    policy                  whether a tool may run, and how
    rules/                  what decides on each call of a tool
    hooks/                  functions and commands that look at what agents do
    a2a                     agents of other systems as tools
    mcp/, workspace/        servers that speak MCP; a directory with files and a shell
    process, commands       how child processes are started, and ended; commands that run to their end
    removal                 removes a directory, whatever an agent has left in it
"""

from ikigai_actors.lazy import handed_on

__getattr__, __dir__, __all__ = handed_on(__name__)
