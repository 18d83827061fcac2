"""Experiments whose trials several hosts run: the same trials and verdicts as on one, whoever drives them."""

from collections.abc import Callable
from typing import Any

import pytest

from ikigai_actors import ActorSystem, FunctionProvider, Request, ScriptedProvider
from ikigai_actors.behaviour import MCTS, TrialRun, bisect, search
from ikigai_actors.errors import StoreConflict
from ikigai_actors.records.fsck.check import check
from ikigai_actors.testing import ProcessCrashed, simulated
from tests.behaviour.test_bisections import clerk, currency, is_good
from tests.behaviour.test_searches import closeness, echo, player
from tests.conftest import NewDatabase
from tests.kit.blocking_provider import DEADLINE
from tests.kit.databases import eventually

Watch = Callable[[TrialRun], object]
"""What is done when a trial is judged."""


class Searching:
    """A search of ten trials, by the name of exp."""

    answer = staticmethod(echo)

    @staticmethod
    def begin(system: ActorSystem) -> None:
        player(system)

    @staticmethod
    def drive(system: ActorSystem, watch: Watch = lambda run: None) -> list[Any]:
        def judge(run: TrialRun) -> Any:
            watch(run)
            return closeness(run)

        result = search(system.agent("player"), judge, plan=MCTS(10), options=["a", "b"], parallel=3, name="exp")
        return list(result.trials)


class Bisecting:
    """A bisection of nine turns, by the name of exp."""

    answer = staticmethod(currency)

    @staticmethod
    def begin(system: ActorSystem) -> None:
        clerk(system, 9, 4)

    @staticmethod
    def drive(system: ActorSystem, watch: Watch = lambda run: None) -> list[Any]:
        def judge(run: TrialRun) -> Any:
            watch(run)
            return is_good(run)

        result = bisect(system.agent("clerk"), judge, probe="?", parallel=3, name="exp")
        return [result.position, *result.curve, *(trial.place for trial in result.experiment.book.trials.values())]


Verb = type[Searching] | type[Bisecting]
BOTH = pytest.mark.parametrize("verb", [Searching, Bisecting], ids=["search", "bisect"])


def on_one_host(verb: Verb) -> list[Any]:
    with ActorSystem.open(":memory:", ScriptedProvider(verb.answer)) as system:
        verb.begin(system)
        return verb.drive(system)


def elsewhere(system: ActorSystem) -> None:
    """Move the experiment, with its trials, to the other host."""
    experiment = system.agent("exp")
    [other] = [host.name for host in system.hosts() if host.id != experiment.record.owner]
    assert other is not None
    system.move(experiment, other, timeout=DEADLINE)


@pytest.mark.thorough("two more plays of hosts")
@pytest.mark.sample(1, "two hosts for each")
@BOTH
@pytest.mark.parametrize("at", [3, 5])
def test_trials_go_on_at_the_other_host_when_that_of_the_driver_drains(verb: Verb, at: int) -> None:
    with simulated(hosts=2) as world:
        world.open(ScriptedProvider(verb.answer))
        world.sleep(5)
        first = world.hosts[0]
        verb.begin(first.system)
        trials = verb.drive(first.system, lambda run: first.drain(DEADLINE) if run.trial.number == at else None)
        assert trials == on_one_host(verb)


@pytest.mark.thorough("two more plays of hosts")
@pytest.mark.sample(1, "two hosts for each")
@BOTH
@pytest.mark.parametrize("apart", [False, True])
def test_an_experiment_whose_driver_dies_goes_on_at_another_host_with_the_same_trials(verb: Verb, apart: bool) -> None:
    with simulated(hosts=2) as world:
        world.open(ScriptedProvider(verb.answer))
        world.sleep(5)
        first, second = world.hosts
        verb.begin(first.system)

        def watch(run: TrialRun) -> None:
            if run.trial.number == 3 and apart:
                elsewhere(first.system)
            elif run.trial.number == 5:
                first.kill()

        with pytest.raises(ProcessCrashed):
            verb.drive(first.system, watch)
        world.sleep(5)
        assert verb.drive(second.system) == on_one_host(verb)


@pytest.mark.sample(1, "two hosts for each")
@BOTH
def test_two_hosts_run_the_trials_of_one_experiment_and_a_second_driver_ends_the_first(
    verb: Verb, new_postgres: NewDatabase
) -> None:
    url = new_postgres()
    asked: list[str] = []

    def opened(name: str) -> ActorSystem:
        def answer(request: Request) -> str:
            asked.append(name)
            return verb.answer(request)

        return ActorSystem.open(url, FunctionProvider(answer, "code"), join=True, name=name, balance=None)

    with opened("a") as a, opened("b") as b:
        verb.begin(a)
        eventually(lambda: {host.shards for host in a.hosts()} == {512}, "half of the shards for each")
        asked.clear()

        def watch(run: TrialRun) -> None:
            if run.trial.number == 3:
                elsewhere(a)
            elif run.trial.number == 5:
                verb.drive(b)

        with pytest.raises(StoreConflict, match="run by another process"):
            verb.drive(a, watch)
        assert set(asked) == {"a", "b"}
        assert verb.drive(a) == on_one_host(verb)
        assert check(a._store) == []
