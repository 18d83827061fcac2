"""Words of memory: what agents said is found by words, as their histories have it now, on both databases."""

import pytest

from ikigai_actors import ActorSystem, AgentRef, BadInput, Reply, Request, ScriptedProvider, ToolCall
from ikigai_actors.records.log.words import WORTH_AN_INDEX
from tests.kit.blocking_provider import DEADLINE
from tests.kit.databases import ROOT, eventually
from tests.kit.sessions import Session

FACTS = ("The mast is 30 m high.", "The keel weighs 9 t.", "The sail is white, the mast is grey.")


def answer(request: Request) -> Reply:
    """A model that recalls what it is told to recall."""
    last = request.messages[-1]["content"][-1]
    text = str(last.get("text", "")) if last["type"] == "text" else ""
    word, _, rest = text.partition(" ")
    if word not in ("recall", "below"):
        return Reply("Noted.")
    where = {"agents": "below"} if word == "below" else {}
    return Reply(tool_calls=(ToolCall("recall", {"query": rest, **where}, "r"),))


@pytest.mark.slow("takes a tenth of a second")
def test_words_find_what_counts_now_in_the_own_history_and_in_all_below(database: str) -> None:
    with ActorSystem.open(database, ScriptedProvider(answer)) as system:
        lead = system.root.fork(name="lead")
        for fact in FACTS:
            lead.prompt(fact).get(timeout=DEADLINE)
        child = lead.fork("The rudder is of oak.", name="child")
        child.reply(timeout=DEADLINE)

        def said(query: str, agent: AgentRef = lead) -> list[str]:
            return [hit.text for hit in system.find(query, under=agent)]

        assert said("MAST height high") == [FACTS[0], FACTS[2]]
        assert said("wei") == [FACTS[1]]
        assert said("rudder oak")[0] == "The rudder is of oak."
        assert said("mast", child) == []
        assert said("m_st") == []
        assert [hit.agent_uuid for hit in system.find("rudder")] == [child.uuid]
        lead.undo()
        assert said("mast") == [FACTS[0]]
        child.prompt("recall mast keel").get(timeout=DEADLINE)
        [result] = [message.content for message in child.history() if message.kind == "tool_result"]
        assert FACTS[0] in result
        assert FACTS[1] in result
        assert FACTS[2] in result
        lead.prompt("The mast is blue.").get(timeout=DEADLINE)
        child.prompt("recall blue").get(timeout=DEADLINE)
        assert [message.content for message in child.history() if message.kind == "tool_result"][-1].startswith(
            "No message"
        )
        lead.prompt("below oak").get(timeout=DEADLINE)
        lead.prompt("recall nowhere").get(timeout=DEADLINE)
        own, none = [message.content for message in lead.history() if message.kind == "tool_result"]
        assert own.endswith("] The rudder is of oak.")
        assert "child" in own
        assert none == "No message has these words. Try others for the same thing."
        lead.clear()
        assert [hit for hit in system.find("mast", under=lead) if hit.agent_uuid == lead.uuid] == []
        with pytest.raises(BadInput, match="Expected a query with words"):
            system.find("…?")


@pytest.mark.slow("takes a tenth of a second")
def test_a_search_of_many_messages_makes_an_index_and_a_model_s_search_adds_to_it(durable: str) -> None:
    with ActorSystem.open(durable, ScriptedProvider(answer)) as system:
        lead = system.root.fork(name="lead")
        clerk, other = lead.fork(name="clerk"), lead.fork(name="other")
        store = system._store

        def says(agent: AgentRef, count: int) -> None:
            head = agent.history(all=True)[-1].id
            texts = [f"line {number}" for number in range(count - 1)] + ["The rudder is of oak."]
            rows = [(agent.uuid, head + place, "user", text, None, 1, b"0" * 32) for place, text in enumerate(texts, 1)]
            store.write(lambda tx: tx.append(rows))

        def indexed(agent: AgentRef) -> bool:
            return store.read(lambda tx: tx.words.is_there() and agent.uuid in tx.words.seen([agent.uuid]))

        says(clerk, WORTH_AN_INDEX)
        lead.prompt("below oak").get(timeout=DEADLINE)
        eventually(lambda: indexed(clerk), "the index has what the clerk said")
        says(other, 3)
        hits = system.find("rudder", under=lead)  # the lead's result quotes the clerk
        assert {hit.agent_uuid for hit in hits} - {lead.uuid} == {clerk.uuid, other.uuid}
        says(other, WORTH_AN_INDEX)
        assert len(system.find("rudder", under=lead)) == len(hits) + 1
        assert indexed(other)


def test_a_person_finds_words_below_an_agent(session: Session) -> None:
    session("The mast is 30 m high.", "/fork --name child --no-follow The mast is grey.")
    session.system.agent("child").reply(timeout=DEADLINE)
    [first, *_] = session("/find --below grey mast")
    assert first.startswith("child ")
    assert "The mast is grey." in first
    assert session("/find --below rudder") == ["Nothing that was said has words of “rudder”."]


def test_the_example_of_a_dreamer_is_a_kind_that_finds_what_those_below_it_said() -> None:
    with ActorSystem.open(":memory:", ScriptedProvider(answer)) as system:
        system.root.use_kinds(ROOT / "examples" / "dreamer.md")
        dreamer = system.root.fork(name="dreamer", kind="dreamer")
        dreamer.fork(FACTS[0], name="clerk").reply(timeout=DEADLINE)
        dreamer.prompt("below mast").get(timeout=DEADLINE)
        [content] = [message.content for message in dreamer.history() if message.kind == "tool_result"]
        assert FACTS[0] in content
        assert {"document_write", "recall"} <= {str(tool["name"]) for tool in dreamer.tools()}
