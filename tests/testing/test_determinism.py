"""Same choices, same run, byte for byte: nothing else than the schedule decides."""

import os
import random
import subprocess
import sys
import threading
import time
from random import Random

import pytest

from ikigai_actors import IkigaiError, ScriptedProvider, Signal
from ikigai_actors.testing import AgentTreeMachine, Faults, ProcessCrashed, Schedule, simulated
from ikigai_actors.testing.simulation.faults import ALL
from tests.kit.bustle import a_bit_of_everything

pytestmark = pytest.mark.slow("each run twice")


def trace(schedule: Schedule | Random | int, faults: Faults = ALL) -> tuple[str, Schedule]:
    """The trace of a run in which much happens, and the schedule that leads there."""
    with simulated(schedule, faults=faults) as world:
        try:
            a_bit_of_everything(world)
        except ProcessCrashed:
            world.recover()
        except IkigaiError as error:
            world.note("test", type(error).__name__)
        return str(world.trace), world.schedule


def played(seed: int) -> str:
    """The trace of a run of the machine in which every rule that aims is taken, on a bad day."""
    machine = AgentTreeMachine()
    machine.begin(schedule=Schedule.seeded(seed), misfortunes=ALL)
    for who in (0, 0, 1):
        machine.fork(who=who, prompt="go", reply="ok")
    machine.crash_soon(commit=1 + seed % 6, committed=seed % 2 == 0)
    machine.prompt_slow_model(who=1, signal=Signal.INT)
    machine.signal(who=1, signal=Signal.CONT, spread=False)
    machine.prompt_and_wait(who=0, other=1)
    machine.prompt_to_work(who=2)
    machine.prompt_to_wait(who=2, signal=Signal.STOP)
    machine.fork_line(who=2, length=2)
    machine.fail_beside(who=1)
    machine.stop_and_prompt(who=1)
    machine.mark_and_rewind(who=2, between="" if seed % 2 else "clear")
    machine.crash_twice(who=3, pause=True)
    machine.send_and_read(sender=0, recipient=2, bodies=["a", "b"])
    machine.kill(who=3, spread=False)
    machine.write_of_earlier_owner(who=1, ours=True)
    machine.take_over(resume=True)
    machine.teardown()
    return str(machine.world.trace)


SEEDS = range(2)


def test_the_same_seed_gives_the_same_trace_byte_for_byte_and_seeds_differ() -> None:
    traces = [trace(seed)[0] for seed in SEEDS]
    assert trace(SEEDS[-1])[0] == traces[-1]
    assert len(set(traces)) > len(SEEDS) // 2


@pytest.mark.thorough("two runs; the same seed gives the same trace in each run")
def test_the_choices_that_a_run_has_drawn_lead_there_again() -> None:
    for seed in range(2):
        for chance in (seed, Random(seed)):
            traced, schedule = trace(chance)
            assert trace(Schedule.parse(str(schedule)))[0] == traced


PLANTS = {
    "nothing": "str(len(request.messages))",
    "the clock of the machine": "str(time.time_ns())",
    "chance": "str(random.random())",
    "a thread": "str(threading.get_native_id())",
    "the order of hashes": "''.join({'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'})",
    "an address": "str(id(request))",
}
"""What a model answers with: code, and what it depends on."""


def planted(code: str) -> str:
    """The trace of a run in which a model's answer is what some code gives."""
    with simulated(1) as world:
        names = {"time": time, "random": random, "threading": threading}
        world.open(ScriptedProvider(lambda request: str(eval(code, names, {"request": request}))))
        world.system.root.prompt("go").get()
        return str(world.trace)


@pytest.mark.thorough("processes with several hash seeds; in one process each run is compared above")
def test_no_order_of_hashes_and_no_clock_of_the_machine_decides_anything() -> None:
    """And the same comparison finds each source that a run must not depend on, when it is planted."""
    code = (
        "import hashlib, logging; logging.disable(); "
        "from tests.testing.test_determinism import PLANTS, planted, played, trace; "
        "digest = lambda told: hashlib.sha256(told.encode()).hexdigest(); "
        "told = ''.join(trace(seed)[0] + played(seed) for seed in range(3)); "
        "print(digest(told), *map(digest, map(planted, PLANTS.values())))"
    )
    runs = []
    for hashes, zone in (("1", "UTC"), ("2", "Asia/Tokyo")):
        environment = {**os.environ, "PYTHONHASHSEED": hashes, "TZ": zone}
        run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
        runs.append(run.stdout.split())
    differs = [line != other for line, other in zip(*runs, strict=True)]
    assert not differs.pop(0)
    assert [name for name, other in zip(PLANTS, differs, strict=True) if other] == list(PLANTS)[1:]
