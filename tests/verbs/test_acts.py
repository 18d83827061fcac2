"""Acts: declared once, with the schema that models see, and the right of a verb; on a host itself, too."""

import pytest

from ikigai_actors import ActorSystem, OfflineProvider
from ikigai_actors.errors import BadInput
from ikigai_actors.reach.access import Access
from ikigai_actors.verbs.acts import ACTS
from ikigai_actors.verbs.acts.turns import Begun, begun_turn
from ikigai_actors.verbs.rights import Right
from tests.kit.databases import eventually


def test_an_act_needs_the_right_of_its_verb() -> None:
    needed = {name: act.needs for name, act in ACTS.items()}
    assert needed["kill"] is needed["signal"] is needed["grant"] is Right.OPERATE
    assert needed["decide"] is Right.APPROVE
    assert needed["answer"] is Right.PROMPT  # whether that one is asked is the question's
    assert needed["fork"] is needed["steer"] is needed["documents"] is Right.PROMPT
    assert {name for name, act in ACTS.items() if act.reads} == {
        name for name, role in needed.items() if role is Right.LOOK
    }


def test_a_model_must_give_what_a_person_may_leave_out() -> None:
    fork, decide = ACTS["fork"], ACTS["decide"]
    assert (fork.schema["required"], fork.schema_for_models["required"]) == ([], ["prompt"])
    assert decide.schema_for_models["properties"]["always"]["type"] == "boolean"
    assert "for_models" not in str([act.listed() for act in ACTS.values()])


@pytest.mark.parametrize(
    ("name", "arguments", "error"),
    [
        ("fork", {"at": -1}, "fork: at: -1 is less than the minimum of 0"),
        ("fork", {"nmae": "kid"}, "Additional properties are not allowed"),
        ("prompt", {"agent": "kid"}, "'text' is a required property"),
        ("decide", {"agent": "kid", "call": "c", "allow": True, "always": "ever"}, "decide: always: 'ever'"),
        ("grant", {"agent": "kid", "usd": "much"}, "grant: usd: 'much' is not of type 'number'"),
    ],
)
def test_what_does_not_fit_an_act_is_refused_before_anything_is_done(
    name: str, arguments: dict[str, object], error: str
) -> None:
    with ActorSystem.open(":memory:", OfflineProvider()) as system, pytest.raises(BadInput, match=error):
        ACTS[name].call(Access.of(system), arguments)


def test_what_an_act_leaves_on_a_host_its_agents_take_up_at_once(database: str) -> None:
    with ActorSystem.open(database, OfflineProvider(), budget={"tokens": 10_000}) as system:
        reach = Access.of(system, quick=20)
        born = [ACTS["fork"].call(reach, {"prompt": "tea", "name": "kid", "key": "k1"}) for _ in range(2)]
        assert all(isinstance(begun, Begun) for begun in born)
        [kid, again] = [begun_turn(reach, begun) for begun in born]
        assert kid == again == {"agent": system.agent("kid").uuid, "handle": kid["handle"]}
        prompted = begun_turn(reach, ACTS["prompt"].call(reach, {"agent": "kid", "text": "more"}))
        [handle] = ACTS["wait"].call(reach, {"handles": [prompted["handle"]]}).handles
        eventually(lambda: reach.turns.look_at(handle)["status"] == "done", "the turn of the prompt")
        assert ACTS["send"].call(reach, {"agent": "kid", "text": "a mail"}) == {"agent": kid["agent"], "mail": 2}
        assert ACTS["grant"].call(reach, {"agent": "kid", "tokens": 5})["granted"] == {"tokens": 10_005}
        change = {"agent": "kid", "settings": {"max_tokens": 400, "temperature": 0.5}, "key": "k2"}
        changed = [ACTS["configure"].call(reach, change) for _ in range(2)]
        assert changed == [{"agent": kid["agent"], "request": 1, "done": True}] * 2
        with pytest.raises(BadInput, match="mood"):
            ACTS["configure"].call(reach, {"agent": "kid", "settings": {"mood": "good"}})
        ACTS["configure"].call(reach, {"agent": "kid", "settings": {"temperature": None}})
        assert ACTS["settings"].call(reach, {"agent": "kid"}) == {
            "agent": kid["agent"],
            "settings": {"max_tokens": 400},
        }
        assert ACTS["kill"].call(reach, {"agent": "kid"}) == [kid["agent"]]
