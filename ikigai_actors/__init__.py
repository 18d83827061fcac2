"""ikigai: Erlang's process model for LLM agents.

    from ikigai_actors import ActorSystem

    with ActorSystem.open() as system:
        child = system.root.fork("analyse the schema", name="dba")
        print(child.reply(timeout=60).text)

Layers, top first; each imports itself and those below (a test holds it):

    shell                                                    the terminal
    system; attached                                         the composition root; beside another process
    workspace, mcp_server                                    tools that work in a directory; of MCP servers
    ref, agent, process_tools, approvals > agentmail         handles, and the actor of an agent
        > errands > runtime, post
    awaited > follower; writer                               what a host commits, as others see it
    host, journal, boot, outside, publisher, reader,         one each: what performs effects, and counts
        statistics, toolbox
    dispatch, seeded > pooled > inbox                        which actor runs when
    machine > toolsteps > forks > drafts > state             pure: what an agent does next
    mcp_server > mcp_run                                     tools of other programs
    tools, toolsets > events > descriptions > calls          what can be asked of it, and called by it
    futures, assembly, providers > threads                   what goes in and out
    acts > documents, waits                                  what is written and read, and waited for
        > units, registry, log, mailbox > locks
    store                                                    the database
    history, clock, settings, messages, identity, errors     the words
"""

from ikigai_actors.lazy import handed_on

__getattr__, __all__ = handed_on(__name__)
