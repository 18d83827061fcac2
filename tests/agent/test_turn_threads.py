"""The threads of a turn whose model is a plain function: few, and nothing that is promised depends on which."""

import threading
from contextlib import suppress
from functools import partial
from itertools import takewhile

import pytest

from ikigai_actors import AgentRef, Request, Signal, TurnInterrupted
from ikigai_actors.testing import Faults, ProcessCrashed, Simulation, simulated
from ikigai_actors.testing.simulation.faults import Luck
from tests.kit.echo import kinds
from tests.kit.programs import cheaper, crash_points, each_commit
from tests.kit.simulated_workers import open_on_workers


def test_one_thread_takes_a_prompt_commits_it_calls_the_function_and_commits_its_reply() -> None:
    """So a prompt passes from thread to thread twice: to that one, and back with the reply."""
    with simulated() as world:
        seen = list[threading.Thread]()

        def answer(request: Request) -> str:
            seen.append(threading.current_thread())
            return "heard"

        root = open_on_workers(world, answer).root
        root.prompt("once").get()  # what is made once
        seen.clear()
        world.watchers.append(lambda changes: seen.append(threading.current_thread()))
        assert root.prompt("again").get().text == "heard"
        assert len(seen) == 3
        assert len(set(seen)) == 1


def texts(request: Request) -> list[str]:
    """The prompts of the conversation."""
    return [message["content"][-1]["text"] for message in request.messages if message["role"] == "user"]


def answer_with(helpers: list[AgentRef], request: Request) -> str:
    """Ask the helpers, where all are asked."""
    if texts(request)[-1] == "all":
        return " ".join(helper.prompt("one").get().text for helper in helpers)
    return "done"


@pytest.mark.slow("takes a tenth of a second")
@cheaper("seeds", 1, 10, "more schedules")
def test_a_function_that_waits_for_other_agents_is_answered_by_one_worker(seeds: int) -> None:
    for seed in range(seeds):
        with simulated(seed) as world:
            helpers = list[AgentRef]()
            system = open_on_workers(world, partial(answer_with, helpers), workers=1)
            helpers += [system.root.fork() for _ in range(3)]
            everyone = [system.root.fork() for _ in range(3)]
            replies = [agent.prompt("all") for agent in everyone]
            assert [reply.get().text for reply in replies] == ["done done done"] * 3


def bustle(world: Simulation) -> None:
    """Prompts of several agents at once, forks, and an interrupt; each sender's prompts come in order."""

    def answer(request: Request) -> str:
        return f"{len(texts(request))}: {texts(request)[-1]}"

    system = open_on_workers(world, answer)
    agents = [system.root.fork(name=name) for name in "abc"]
    prompts = [[agent.prompt(f"{number}") for number in range(3)] for agent in agents]
    child = agents[0].fork("born")
    agents[2].signal(Signal.INT)
    for replies in prompts[:2]:
        assert [reply.get().text for reply in replies] == ["1: 0", "2: 1", "3: 2"]
    assert child.reply().text.endswith("born")
    for reply in prompts[2]:
        with suppress(TurnInterrupted):
            reply.get()
    for agent in agents:
        users = [message.content for message in agent.history() if message.kind == "user"]
        assert users == ["0", "1", "2"], agent
    world.settle()


@pytest.mark.slow("a run for each seed")
@cheaper("seeds", 1, 12, "more schedules")
def test_prompts_forks_and_interrupts_keep_their_promises_whichever_threads_run_them(seeds: int) -> None:
    for seed in range(seeds):
        with simulated(seed) as world:
            bustle(world)


@pytest.mark.thorough("crashes on real threads; test_simulation.py has some in every run")
@each_commit(8)
def test_a_crash_at_any_commit_loses_nothing_that_was_committed_and_the_turn_goes_on(step: int) -> None:
    def answer(request: Request) -> str:
        return "heard"

    for point in takewhile(lambda point: point.commit < 12, crash_points(step)):
        with simulated(point.commit) as world:
            system = open_on_workers(world, answer)
            anna = system.root.fork(name="anna")
            world.crash_at(point)
            try:
                for _ in range(6):
                    anna.prompt("x").get()
            except ProcessCrashed:
                world.recover()
            kinds_seen = kinds(world.system.agent("anna").history())
            assert kinds_seen[1:] == ["user", "assistant"] * (len(kinds_seen) // 2), (point, kinds_seen)


@pytest.mark.thorough("a fault at each commit; every run has a crash at each")
@pytest.mark.sample(2, "a fault each")
@pytest.mark.slow("a run for each fault")
@pytest.mark.parametrize("fault", ["busy", "full", "lost", "unheard", "unanswered"])
@cheaper("seeds", 1, 12, "more schedules")
def test_a_fault_of_the_store_while_a_worker_commits_leaves_the_same_history(fault: str, seeds: int) -> None:
    seen = 0
    for seed in range(12):
        with simulated(seed) as world:
            root = open_on_workers(world, lambda request: "heard").root
            agents = [root.fork(name=name) for name in "abc"]
            world.luck = Luck(Faults(**{fault: 8}))
            replies = [agent.prompt(f"{number}") for number in range(4) for agent in agents[: 3 - number // 2]]
            assert {reply.get().text for reply in replies} == {"heard"}
            for agent, turns in zip(agents, (4, 4, 2), strict=True):
                assert kinds(agent.history())[-2 * turns :] == ["user", "assistant"] * turns
            seen += sum(line.kind == "fault" for line in world.trace.lines)
        if seen and seed + 1 >= seeds:
            break
    assert seen
