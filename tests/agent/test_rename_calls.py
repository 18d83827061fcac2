"""A model gives its agent another name."""

import pytest

from ikigai_actors import ActorSystem, ScriptedProvider
from ikigai_actors.records.agents.registry import Renamed
from tests.kit.blocking_provider import DEADLINE
from tests.kit.tool_scripts import Seen, calling, results, scripted


def test_a_model_names_its_agent_renames_it_and_takes_the_name_away(database: str) -> None:
    provider = ScriptedProvider(
        [calling(("rename", {"name": "boss"}), ("rename", {"name": "top"})), calling("rename"), "done"]
    )
    heard: list[object] = []
    with ActorSystem.open(database, provider) as system:
        root = system.root
        subscription = system.subscribe(heard.append)
        assert root.prompt("go").get(timeout=DEADLINE).text == "done"
        subscription.close()
        assert root.name is None
    first, second = provider.requests[1:]
    assert results(first) == [
        Seen("1", "Your name is boss now.", False),
        Seen("2", "Your name is top now.", False),
    ]
    assert [result.content for result in results(second)] == ["You have no name any more."]
    assert first.name == "top"
    assert [event.name for event in heard if isinstance(event, Renamed)] == ["boss", "top", None]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("kid", "A living agent is named 'kid'; choose another name."),
        ("two words", "A name is 1 to 64 letters"),
        (7, "rename wants name to be text, got 7."),
    ],
)
def test_a_name_that_cannot_be_had_is_an_error_that_says_what_to_do(database: str, name: object, message: str) -> None:
    provider = scripted([calling(("rename", {"name": name})), "done"])
    with ActorSystem.open(database, provider) as system:
        system.root.fork(name="kid")
        system.root.prompt("go").get(timeout=DEADLINE)
        assert system.root.name is None
    [result] = results(provider.requests[1])
    assert result.is_error
    assert message in result.content
