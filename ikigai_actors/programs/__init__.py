"""Durable programs: an agent that is a Python function, whose acts are calls in its own log.

    from ikigai_actors import ActorSystem, current_agent
    from ikigai_actors.programs import gather, program, step

    @program
    def lead(task: str) -> str:
        me = current_agent()
        kids = [me.fork(name=name, model="anthropic") for name in ("mast", "sail")]
        reviews = gather(*(kid.prompt(task) for kid in kids))
        step(publish, [review.text for review in reviews])
        return "published"

    with ActorSystem.open("team.db", programs=[lead]) as system:
        boss = system.root.fork(name="lead", model=lead, key="lead")
        print(boss.prompt("Plan the ship.", key="monday").get().text)

The function is the model of its agent. Each act of the function is a call in the agent's log. The call is committed
before the act is done, and its result is committed before any effect that follows from it. After a crash the function
is called again, and gets the results that the log has at once. So no child is forked twice, nobody is prompted twice,
and a step is done once at most.

Its modules:

    acts         the requests of a program, as futures of their outcomes
    frames       one call of the function, on a thread or driven by hand
    records      the acts in the log of a turn, and how a later run recognises them
    changes      changed functions: a function asks for other acts than the log of its turn has
    provider     the function as a provider
    tools        the programs of a system, and the tools that carry out acts
"""

from ikigai_actors.lazy import handed_on

__getattr__, __dir__, __all__ = handed_on(__name__)
