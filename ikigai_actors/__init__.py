"""ikigai: Erlang's process model for LLM agents.

    from ikigai_actors import ActorSystem

    with ActorSystem.open() as system:
        child = system.root.fork("analyse the schema", name="dba")
        print(child.reply(timeout=60).text)

This package has the names that most programs need. The other public names are in a module for each subject: `errors`,
`providers`, `tools`, `hooks`, `budgets`, `events`, `types`, `behaviour`, `cluster`, `sight`, `testing` and `shell`. All
else is private.
What follows from a signal, a crash or a death is decided in `supervisors`, beside this package: restarts, orphans,
cascades. The docstring of a room names what is in each of its modules, unless each is called after its subject: a
command, a screen, a part of fsck. The rooms, top first; each knows those below it, bottom last:

    shell, testing                       the terminal; the simulation kit
    cluster, doors                       hosts that Ray starts; protocols for other programs: MCP, ACP, AG-UI
    sight                                the observer's page
    behaviour                            search, bisect, replay and regress over forks
    guests                               sessions of other agent libraries in this database
    verbs                                what can be asked of agents: one table, and the words for what is answered
    reach                                what faces read: which agents a client reaches, turns by handles, rows, pages
    system                               open, close, handles; hosts: supervision, shares; remote agents
    programs                             agents that are Python functions, whose acts are remembered
    agent                                one agent: its turn, commands, calls, requests to models, log in memory
    recordings                           sessions and traces of other programs as agents, and agents as sessions
    records                              what the database says, a module for each subject: budgets, mail, forks; fsck
    store, tools, providers              the database, its writer, hosts; functions, MCP, a workspace; models
    http_server                          which requests come in to a server of ours
    actors                               inbox, dispatcher, futures, the seam to threads and time
    errors, extras, arguments, text, attachments, whole_pictures, frozen, lazy    words that all use
    api, budgets, events, hooks, types   the public names of one subject each, from the rooms above
"""

from ikigai_actors.lazy import handed_on

__getattr__, __dir__, __all__ = handed_on(__name__)
