"""How an experiment is run: the same for all five verbs."""

from collections.abc import Callable
from typing import Any

import pytest

from ikigai_actors import ActorSystem, AgentRef, BadInput, ScriptedProvider
from ikigai_actors.behaviour import BestOf, bisect, evaluate, recorded, regress, replay, search

VERBS: dict[str, Callable[..., Any]] = {
    "search": lambda agent, **how: search(agent, lambda _: 1, plan=BestOf(2), options=["a"], **how),
    "bisect": lambda agent, **how: bisect(agent, lambda _: True, probe="?", most=2, **how),
    "replay": lambda agent, **how: replay(recorded(agent), **how),
    "regress": lambda agent, **how: regress(recorded(agent), **how),
    "evaluate": lambda agent, **how: evaluate(agent, ["a", "b"], lambda _: 1, **how),
}


def talker(system: ActorSystem) -> AgentRef:
    """An agent that has answered twice."""
    agent = system.root.fork(name="talker")
    for text in ("one", "two"):
        agent.prompt(text).get(timeout=60)
    return agent


@pytest.mark.parametrize("verb", VERBS)
def test_a_wrong_argument_is_refused_by_every_verb_before_anything_is_made(verb: str) -> None:
    wrong: list[dict[str, Any]] = [
        {"name": "two words"},
        {"name": 3},
        {"under": "root"},
        {"parallel": 0},
        {"parallel": 1_001},
        {"budget": {"colours": 3}},
        {"fresh": "no"},
    ]
    provider = ScriptedProvider(lambda _: "yes")
    with ActorSystem.open(":memory:", provider) as system, ActorSystem.open(":memory:", provider) as other:
        agent = talker(system)
        for how in [*wrong, {"under": other.root}]:
            with pytest.raises(BadInput):
                VERBS[verb](agent, **how)
        assert len(system.agents()) == 2


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_goes_on_with_an_experiment_by_its_name_however_that_is_spelt(verb: str) -> None:
    with ActorSystem.open(":memory:", ScriptedProvider(lambda _: "yes")) as system:
        agent, above = talker(system), system.root.fork(name="above")
        first = VERBS[verb](agent, name="zo\N{LATIN SMALL LETTER E WITH DIAERESIS}", under=above)
        again = VERBS[verb](agent, name="zoe\N{COMBINING DIAERESIS}", under=above)
        assert (first.resumed, again.resumed) == (False, True)
        assert again.experiment.agent == first.experiment.agent
        assert first.experiment.agent.supervisor == above
        assert VERBS[verb](agent, name="zoë", under=above, fresh=True).experiment.agent.record.name == "zoë.2"
        again.end()
        assert not any(one.living for one in system.agents() if one.supervisor_uuid == first.experiment.agent.uuid)
