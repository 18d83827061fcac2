"""The machine of hooks, kinds and batches: programs that Hypothesis makes up, under kills and signals."""

import logging
from collections.abc import Iterator

import pytest

from ikigai_actors.testing import Broken, CrashPoint
from ikigai_actors.testing.simulation.faults import NONE
from ikigai_actors.testing.simulation.schedule import PLAIN
from tests.kit.programs import programs, run_programs
from tests.machines.guarded_rules import GuardedMachine
from tests.machines.hook_rules import WAYS


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Faults are planned here: nobody wants to read of each."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.fixture
def machine() -> Iterator[GuardedMachine]:
    """One that has begun, to take rules by hand."""
    made = GuardedMachine()
    made.begin(schedule=PLAIN, misfortunes=NONE)
    yield made
    made.teardown()


@programs(few=2, many=60)
def test_made_up_programs_with_hooks_kinds_and_batches_keep_every_invariant(examples: int) -> None:
    run_programs(GuardedMachine, examples, steps=20)


@pytest.mark.thorough("a crash at each point; test_hooks.py has some in every run")
def test_the_hook_decides_once_on_each_call_wherever_the_host_ends(machine: GuardedMachine) -> None:
    for commit in range(1, 9, 2):
        machine.call_with_hooks(who=0, ways=list(WAYS), crash=CrashPoint(commit, committed=True))
        machine.comes_to_rest()
        machine.a_verdict_is_given_once()
    assert {"allow", "deny", "fail", "change", "add", "ask"} == set(machine.hooked.ways.values())
    denied = [token for token, way in machine.hooked.ways.items() if way in ("deny", "fail")]
    assert not any(machine.work.runs[token] for token in denied)


def test_a_child_of_a_kind_and_one_with_hooks_keep_what_they_were_forked_with(machine: GuardedMachine) -> None:
    machine.fork_a_kind(who=0, prompt="look")
    machine.comes_to_rest()
    for back in (0, 1):
        machine.fork_at(who=1, prompt="see", back=back)
    machine.fork_with_hooks(who=0)
    machine.drop_hooks(who=4)
    machine.comes_to_rest()
    machine.a_child_drops_no_hook()
    assert (len(machine.of_kind), len(machine.bound)) == (3, 1)
    kept = [machine.system.handle(agent).context().settings for agent in (*machine.of_kind, *machine.bound)]
    assert ["system" in settings for settings in kept] == [True, True, True, False]


def test_a_request_that_waits_for_a_batch_is_paid_once_and_one_that_was_taken_back_is_not_sent(
    machine: GuardedMachine,
) -> None:
    machine.wait_for_a_batch(who=0, lost=True, outcome="expired")
    machine.batches_go_on(seconds=70)
    machine.crash()
    machine.batches_go_on(seconds=700)
    machine.wait_for_a_batch(who=0, lost=False, outcome="succeeded")
    machine.interrupt_a_batch(which=1)
    machine.comes_to_rest()
    machine.a_batch_is_paid_for_once()
    assert (sorted(machine.service.bought.values()), len(machine.withdrawn)) == ([1], 1)


def test_what_breaks_a_law_of_hooks_or_batches_is_found(machine: GuardedMachine) -> None:
    machine.call_with_hooks(who=0, ways=["deny"], crash=None)
    [token] = machine.hooked.ways
    machine.work.runs[token] += 1
    with pytest.raises(Broken, match=f"gate: a call whose hook would deny ran as {token}"):
        machine.a_verdict_is_given_once()
    machine.work.runs.clear()
    machine.hooked.verdicts[token] += 1
    with pytest.raises(Broken, match=f"verdict: hooks have decided twice on the calls {token}"):
        machine.a_verdict_is_given_once()
    machine.hooked.verdicts.clear()
    machine.wait_for_a_batch(who=0, lost=False, outcome="succeeded")
    machine.batches_go_on(seconds=150)
    [body] = machine.service.bought
    machine.service.bought[body] += 1
    with pytest.raises(Broken, match="paid: a request was paid for again"):
        machine.a_batch_is_paid_for_once()
