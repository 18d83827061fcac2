"""The simulation kit: run a team of agents under schedules, crashes and models that misbehave, all drawn by chance.

The smallest example. A test is a function of a world. `simulate` runs the test under a hundred schedules. If the test
fails, `simulate` prints the simplest failing schedule, as a story, with the line that replays it:

    >>> from ikigai_actors import ScriptedProvider
    >>> from ikigai_actors.testing import simulate
    >>> def test_both_answer():
    ...     def team(world):
    ...         system = world.open(ScriptedProvider(lambda request: "done"))
    ...         children = [system.root.fork(f"part {number}") for number in range(2)]
    ...         assert [child.reply().text for child in children] == ["done", "done"]
    ...
    ...     simulate(team)
    >>> test_both_answer()

The real runtime runs: the same actors, supervisors, mailboxes and SQL. Only what is below them differs: one thread at a
time, a clock that leaps when no thread can go on, a database in memory, and a network on which replies overtake one
another. So a test neither sleeps nor waits, a thousand schedules take a minute, and **the same choices give the same
run, byte for byte**.

Crashes. ``faults`` says what may go wrong, `Faults` lists it: crashes, a store that is busy, full, or whose connection
breaks before COMMIT or during it, a second host that takes over, a wall clock that leaps, errors of models and tools.
After a crash the program is gone, as after ``kill -9``; the system is opened again and goes on, and ``after`` says what
must be true in the end:

    simulate(team, faults=Faults(crashes=2), after=lambda world: ...)

By hand: ``simulated(crash=CrashPoint(3))`` or ``world.crash_at(CrashPoint(3))`` ends the process at the third commit,
``world.crash()`` at once, ``world.reopen()`` begins the next; ``world.take_over()`` lets a second host open the
database while the first, fenced, goes on; ``world.clock.jump(-3600)`` sets the wall clock back. ``world.settle()`` lets
everything happen that can, ``world.sleep(60)`` lets time pass. A call that blocks when the process ends raises
`ProcessCrashed`; `TakenOver` when it loses the database.

Several hosts. ``hosts=3`` opens the system in three processes that share the agents, ``a``, ``b`` and ``c``:
``world.hosts[1].system`` gives the handles of the second. Each host can ``kill()`` and ``start()``, ``freeze()`` and
``thaw()``, ``partition()`` and ``heal()``, ``drain()``, and ``move(agent, to)``; ``Faults(freezes=1, partitions=1,
unrung=1)`` stops hosts, cuts them off and loses their hints by chance. After each commit, ownership is checked:

    simulate(team, hosts=3, faults=Faults(crashes=1, freezes=1), after=lambda world: ...)

Schedules. At each step the world chooses the next thread or event, plainly in order; a `Schedule` lists the choices
that are not plain, by number: ``"17:1 23:2"``. Each choice delays what would have come next. A failure ends with such
a line: ``Replay: '17:1'``. Run it again with ``simulate(team, replay="17:1")``, and keep that as a test of its own, or
under ``@given`` as ``@example(Schedule.parse("17:1"))``. How many schedules `simulate` tries is ``examples``, else what
the profile of Hypothesis says (``max_examples``): ``IKIGAI_PROFILE=fast pytest`` tries the same fifty each time,
``thorough`` ten thousand new ones (`register_profiles`). A machine that fails prints its program; that is a test as
well.

Without `simulate`: ``with simulated() as world`` runs in plain order, ``simulated(7)`` under the schedule of that
number, ``simulated(schedule)`` under one that the strategy `schedules` has drawn for a ``@given``. The fixture
``simulated_system`` opens a system in plain order.

Drawn programs: `AgentTreeMachine` is a state machine of Hypothesis with rules for all that can be done to a tree of
agents, and invariants with names; subclass it to add rules, tools and invariants of your own. `FleetMachine` is one for
agents that several hosts share, and for what becomes of the hosts. Strategies for your own
properties: `agent_trees`, `prompts`, `replies`, `signals`, `schedules`, `faults`.

Every run is checked, whatever the test says: the database is sound after each commit (``fsck``), the Messages API would
take each request, and no request leaves before the message that it answers is committed.

Limits. Tools and providers may block in calls of this package. Any other wait (a socket, ``time.sleep``, a lock of your
own between threads of your own) is not simulated, and a step that takes a minute of real time is reported as `Stuck`.
Code that reads the machine's clock or its randomness is not reproducible. Hypothesis is needed for `simulate`, the
strategies and the machine: install ``ikigai-actors[testing]``.

Inside: `simulation/` is the world, `machine/` draws and checks programs, `runner` and `profiles` run the schedules.
"""

from ikigai_actors.lazy import handed_on

__getattr__, __dir__, __all__ = handed_on(__name__)
