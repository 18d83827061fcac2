"""ikigai: Erlang's process model for LLM agents.

    from ikigai_actors import ActorSystem

    with ActorSystem.open() as system:
        child = system.root.fork("analyse the schema", name="dba")
        print(child.reply(timeout=60).text)

This package has the names that most programs need. The other public names are in a module for each subject: `errors`,
`providers`, `tools`, `hooks`, `budgets`, `events`, `types`, `behaviour`, `cluster`, `sight`, `testing` and `shell`. All
else is private.
The package `supervisors`, beside this one, decides what follows from a signal, a crash or a death: restarts, orphans,
cascades. The docstring of each package describes its modules, unless these are named after their subjects: commands,
screens, parts of fsck. The packages, top first; each imports only packages that follow it in the list, bottom last:

    shell, testing                       the terminal; the simulation kit
    cluster, doors                       hosts that Ray starts; protocols for other programs: MCP, ACP, AG-UI
    sight                                the observer's page
    behaviour                            search, bisect, replay and regress over forks
    guests                               sessions of other agent libraries in this database
    verbs                                requests about agents, each declared once, and the texts of their results
    reach                                readings for shells, pages and doors: agents in reach, turns, rows, pages
    system                               a running system: open, close, handles; hosts, supervision; remote agents
    programs                             durable programs: agents that are Python functions, with their acts in a log
    agent                                one agent: its turn, commands, calls, requests to models, log in memory
    recordings                           sessions and traces of other programs as agents, and agents as sessions
    records                              the tables of the database, by subject: budgets, mail, forks; fsck
    store, tools, providers              the database, its writer, hosts; functions, MCP, a workspace; models
    http_server                          rules for all HTTP servers: accepted requests, limits on connections
    actors                               inbox, dispatcher, futures, and the interfaces to threads and time
    errors, extras, arguments, text, attachments, certificates, whole_pictures, frozen, lazy   modules for all packages
    api, budgets, events, hooks, types   the public names of one subject each, from the packages above
"""

from ikigai_actors.lazy import handed_on

__getattr__, __dir__, __all__ = handed_on(__name__)
