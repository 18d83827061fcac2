"""How errors name agents."""

import pytest

from ikigai_actors import ActorSystem, OfflineProvider
from ikigai_actors.errors import AgentDead, BadInput, StoreUnavailable
from ikigai_actors.records.agents.words import words_of
from ikigai_actors.verbs.text.naming import said_by, shown_name_in
from tests.kit.sessions import Session

UUID = "EpL9x5QoKz7wP1mN9sT2aA"


def out_of_reach(uuid: str) -> str:
    raise StoreUnavailable("no database")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (AgentDead(f"Agent {UUID} is dead.", UUID), "Agent brave-otter is dead."),
        (AgentDead("It is dead.", UUID), "It is dead."),
        (AgentDead("Agent buyer is dead.", "buyer"), "Agent buyer is dead."),
        (BadInput(f"Expected a mail; got {UUID}."), f"Expected a mail; got {UUID}."),
    ],
)
def test_an_error_calls_its_agent_by_words(error: Exception, said: str) -> None:
    assert said_by(error) == said_by(error, out_of_reach) == said


def test_an_error_calls_its_agent_by_its_name_where_a_database_tells_it() -> None:
    with ActorSystem.open(":memory:", OfflineProvider()) as system:
        kid = system.root.fork(name="kid")
        error = AgentDead(f"Agent {kid.uuid} is dead.", kid.uuid)
        assert said_by(error, shown_name_in(system)) == "Agent kid is dead."
        assert said_by(error) == f"Agent {words_of(kid.uuid)} is dead."


def test_the_shell_says_who_takes_no_mail(session: Session) -> None:
    session.system.root.fork(name="buyer").kill()
    assert session('/send buyer "Where are you?"')[0].startswith("error: Agent buyer is dead")
