"""Where the offline provider answers though nobody asked for it, and where it does not."""

from collections.abc import Callable, Mapping

import pytest

from ikigai_actors import ActorSystem, AgentRef, OfflineProvider, ScriptedProvider
from ikigai_actors.behaviour import BestOf, ask, bisect, evaluate, recorded, regress, replay, search
from ikigai_actors.behaviour.results import ExperimentResult
from ikigai_actors.errors import ProviderMissing
from ikigai_actors.system.attached import AttachedSystem
from tests.conftest import NewDatabase
from tests.kit.blocking_provider import DEADLINE

NOTED = ["Noted."] * 4


@pytest.fixture(autouse=True)
def no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def mixed(durable_url: NewDatabase) -> str:
    """A database with an agent that a provider of one's own has answered, and one that the offline provider has."""
    url = durable_url()
    with ActorSystem.open(url, ScriptedProvider(lambda request: "Noted.")) as system:
        real = system.root.fork(name="real")
        for tea in ("We sell tea. " * 2_000, *["And Assam. " * 2_000] * 3):
            real.prompt(tea).get(timeout=DEADLINE)
        toy = system.root.fork(name="toy", model="offline")
        toy.prompt("We sell tea.").get(timeout=DEADLINE)
        toy.configure(model=None)
    return url


def replies(agent: AgentRef) -> list[str]:
    return [message.content for message in agent.history() if message.kind == "assistant"]


@pytest.mark.slow("takes a tenth of a second")
def test_the_stand_in_does_not_answer_in_what_another_provider_wrote(mixed: str) -> None:
    with ActorSystem.open(mixed) as system:
        real = system.agent("real")
        kid = real.fork("And coffee?", name="kid")
        new = system.root.fork(name="new")
        reason = r"scripted wrote this history.*MODULE:CLASS.*--model offline"
        with pytest.raises(ProviderMissing, match=reason):
            kid.reply(timeout=DEADLINE)
        with pytest.raises(ProviderMissing, match=reason):
            real.prompt("And milk?").get(timeout=DEADLINE)
        with pytest.raises(ProviderMissing, match="scripted wrote in this database"):
            new.prompt("Hello?").get(timeout=DEADLINE)
        assert (replies(real), replies(kid), replies(new)) == (NOTED, NOTED, [])
        assert system.agent("toy").prompt("And coffee?").get(timeout=DEADLINE).text.startswith("You said")
    with ActorSystem.open(mixed), AttachedSystem.open(mixed) as elsewhere:
        with pytest.raises(ProviderMissing, match="scripted wrote this history"):
            elsewhere.agent("real").prompt("And sugar?").get(timeout=DEADLINE)
        assert replies(elsewhere.agent("real")) == NOTED
    with ActorSystem.open(mixed, ScriptedProvider(["Later."])) as system:
        assert system.agent("kid").resume()  # nothing is lost: the turn goes on when there is a model
        assert system.agent("kid").reply(timeout=DEADLINE).text == "Later."


@pytest.mark.slow("takes a tenth of a second")
def test_the_stand_in_answers_anywhere_when_it_is_asked_for(mixed: str) -> None:
    for asked in ("offline", OfflineProvider()):
        with ActorSystem.open(mixed, asked) as system:
            assert system.agent("real").prompt("And milk?").get(timeout=DEADLINE).text.startswith("You said")
    with ActorSystem.open(mixed) as system:
        kid = system.agent("real").fork(name="kid", model="offline")
        assert kid.prompt("And milk?").get(timeout=DEADLINE).text.startswith("You said")
        with pytest.raises(ProviderMissing):  # it wrote the last replies, and not the first one
            system.agent("real").prompt("And milk?").get(timeout=DEADLINE)
        with pytest.raises(ProviderMissing):
            system.agent("real").compact(timeout=DEADLINE)
        assert all(message.kind != "summary" for message in system.agent("real").history(all=True))


VERBS: Mapping[str, Callable[[AgentRef], ExperimentResult]] = {
    "search": lambda agent: search(agent, lambda run: 1.0, plan=BestOf(1), options=["Go on."]),
    "bisect": lambda agent: bisect(agent, lambda run: True, probe="Well?", most=3),
    "replay": lambda agent: replay(recorded(agent)),
    "regress": lambda agent: regress(recorded(agent)),
    "evaluate": lambda agent: evaluate(agent, ["And milk?"], lambda run: True),
}


@pytest.mark.slow("takes a tenth of a second")
def test_no_experiment_asks_the_stand_in_unless_it_wrote_the_record(mixed: str) -> None:
    with ActorSystem.open(mixed) as system:
        born = len(system.agents())
        for verb in VERBS.values():
            with pytest.raises(ProviderMissing, match="scripted wrote this history"):
                verb(system.agent("real"))
        with pytest.raises(ProviderMissing, match="Nobody named a model"):
            VERBS["evaluate"](system.root)
        assert len(system.agents()) == born
        assert [verb(system.agent("toy")).ended for verb in VERBS.values()] == [""] * 5
        assert regress(recorded(system.agent("real")), change={"model": "offline"}, baseline=False).samples == 4


@pytest.mark.thorough("a second host without a key")
def test_an_experiment_beside_a_host_without_a_provider_has_no_verdict_and_goes_on_later(mixed: str) -> None:
    with (
        ActorSystem.open(mixed),
        AttachedSystem.open(mixed) as elsewhere,
        pytest.raises(ProviderMissing, match="scripted wrote this history"),
    ):
        regress(recorded(elsewhere.agent("real")), name="mine")
    with ActorSystem.open(mixed, ScriptedProvider(lambda request: "Noted.")) as system:
        report = regress(recorded(system.agent("real")), name="mine")
        assert (report.resumed, report.rate, report.undecided) == (True, 1.0, 0)


@pytest.fixture
def named(durable_url: NewDatabase) -> str:
    """A database with agents that name their model, which has answered them; the key is gone."""
    url = durable_url()
    real = ScriptedProvider(lambda request: "Noted.")
    with ActorSystem.open(url, providers={"openai": real, "anthropic": real}) as system:
        for name, model in (("clerk", "openai:gpt"), ("cook", "anthropic:claude"), ("both", "openai:a,anthropic:b")):
            agent = system.root.fork(name=name, model=model)
            for text in ("We sell tea.", "And Assam."):
                agent.prompt(text).get(timeout=DEADLINE)
    return url


def test_no_experiment_begins_when_the_model_that_an_agent_names_has_no_key(named: str) -> None:
    with ActorSystem.open(named, ScriptedProvider(["Yes."] * 9)) as system:
        born = len(system.agents())
        for verb in VERBS.values():
            with pytest.raises(ProviderMissing, match="There is no key for OpenAI"):
                verb(system.agent("clerk"))
        with pytest.raises(ProviderMissing, match="There is no key for the Anthropic API"):
            VERBS["evaluate"](system.agent("cook"))
        with pytest.raises(ProviderMissing, match="There is no key for OpenAI"):
            VERBS["evaluate"](system.agent("both"))
        with pytest.raises(ProviderMissing, match="There is no key for OpenAI"):
            evaluate(system.root, ["Hello?"], ask("Polite?", model="openai:gpt"))
        assert len(system.agents()) == born
    spare = ScriptedProvider(lambda request: "Noted.")
    with ActorSystem.open(named, providers={"anthropic": spare}) as system:
        assert evaluate(system.agent("both"), ["And milk?"], lambda run: True).rate == 1.0  # the next model answers


@pytest.mark.thorough("a second host without a key")
@pytest.mark.sample(2, "an experiment each")
@pytest.mark.parametrize("verb", VERBS)
def test_a_trial_whose_host_has_no_key_for_its_model_has_no_verdict_and_is_asked_later(named: str, verb: str) -> None:
    with (
        ActorSystem.open(named),
        AttachedSystem.open(named) as elsewhere,
        pytest.raises(ProviderMissing, match="There is no key for OpenAI"),
    ):
        VERBS[verb](elsewhere.agent("clerk"))
    real = ScriptedProvider(lambda request: "Noted.")
    with ActorSystem.open(named, providers={"openai": real}) as system:
        result = VERBS[verb](system.agent("clerk"))
        assert (result.resumed, result.ended) == (True, "")
        assert real.requests


@pytest.mark.slow("takes a tenth of a second")
def test_a_judge_whose_host_has_no_key_for_its_model_is_asked_later(named: str) -> None:
    polite = ask("Polite?", model="openai:gpt")
    with (
        ActorSystem.open(named, ScriptedProvider(lambda request: "Yes.")),
        AttachedSystem.open(named) as elsewhere,
        pytest.raises(ProviderMissing, match="There is no key for OpenAI"),
    ):
        evaluate(elsewhere.root, ["Hello?"], polite)
    yes = ScriptedProvider(lambda request: "Yes.")
    with ActorSystem.open(named, yes, providers={"openai": yes}) as system:
        report = evaluate(system.root, ["Hello?"], polite)
        assert (report.resumed, report.rate, report.undecided) == (True, 1.0, 0)
