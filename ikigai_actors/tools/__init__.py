"""The tools that a model can call: functions, MCP servers, and a workspace.

The package also has the traits of a tool that are known before the tool runs.

Its modules:

    function, signature     a Python function as a tool; its schema for a model, and the check of arguments
    base                    toolsets: tools that share a resource, for example a server
    definitions             the digest of a tool's definition, as models and people see it
    builds                  the versions of an app's code, each by a name or a digest
    effect_keys             keys by which a service recognises a repeated call
    fitted, plain_schema    tools, and the schemas of their arguments, in a form that every service takes
    policy                  traits of a tool: whether it may run, and how
    rules/                  rules that allow, ask about or deny each call of a tool
    hooks/                  functions and commands that look at calls before and after they run
    a2a                     agents of other systems as tools
    mcp/, workspace/        servers that speak MCP; a directory with files and a shell
    process, commands       starts and ends child processes; commands that run to their end
    removal                 removes a directory, whatever an agent has left in it
"""

from ikigai_actors.lazy import handed_on

__getattr__, __dir__, __all__ = handed_on(__name__)
