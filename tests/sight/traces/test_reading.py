"""The spans of a database: which turns, linked to whose, and the same whoever reads them."""

from ikigai_actors import ActorSystem, Reply, ScriptedProvider, ToolCall
from ikigai_actors.reach.turn_sources import TurnSources
from ikigai_actors.sight.traces import conventions as name
from ikigai_actors.sight.traces.reading import TraceScope, ended_turns
from ikigai_actors.sight.traces.spans import TraceSpan

TIMEOUT = 60


def calls(*made: tuple[str, dict[str, object]]) -> Reply:
    return Reply("", tuple(ToolCall(tool, arguments, f"c{place}") for place, (tool, arguments) in enumerate(made)))


def open_team(database: str) -> ActorSystem:
    script = {
        "top": [
            calls(("fork", {"prompt": "look", "name": "kid"}), ("send", {"to": "reader", "body": "hi"})),
            Reply("done"),
            calls(("merge", {"agent": "kid", "how": "result"})),
            Reply("merged"),
        ],
        "kid": [calls(("fork", {"prompt": "look closer", "name": "grandkid"})), Reply("looked")],
        "grandkid": [Reply("seen")],
        "reader": [calls(("read_mail", {})), Reply("read")],
    }
    return ActorSystem.open(database, ScriptedProvider(script))


def traced(system: ActorSystem, **scope: object) -> dict[tuple[str, int], list[TraceSpan]]:
    """The turns, by the name of the agent and their number."""
    turns: dict[tuple[str, int], list[TraceSpan]] = {}
    for turn in ended_turns(TurnSources.of(system), TraceScope(**scope)):  # type: ignore[arg-type]
        agent = str(turn[0].attributes[name.AGENT_NAME])
        turns[agent, 1 + sum(known == agent for known, _ in turns)] = turn
    return turns


def play(system: ActorSystem) -> None:
    reader, top = (system.root.fork(name=child) for child in ("reader", "top"))
    top.prompt("go").get(timeout=TIMEOUT)
    for child in ("kid", "grandkid"):
        system.agent(child).reply(timeout=TIMEOUT)
    reader.prompt("read").get(timeout=TIMEOUT)
    top.prompt("merge").get(timeout=TIMEOUT)


def test_forks_mail_and_merges_are_links_to_the_turns_they_came_from(database: str) -> None:
    with open_team(database) as system:
        play(system)
        turns = traced(system)
        again = traced(system)
    assert again == turns
    roots = {turn[0].id: whose for whose, turn in turns.items()}
    linked = {
        (whose, span.name, link.why, roots[link.span])
        for whose, turn in turns.items()
        for span in turn
        for link in span.links
    }
    assert linked == {
        (("kid", 1), "invoke_agent kid", "fork", ("top", 1)),
        (("grandkid", 1), "invoke_agent grandkid", "fork", ("kid", 1)),
        (("reader", 1), "execute_tool read_mail", "mail", ("top", 1)),
        (("top", 2), "invoke_agent top", "merge", ("kid", 1)),
    }
    traces = {turn[0].id: turn[0].trace for turn in turns.values()}
    assert all(link.trace == traces[link.span] for turn in turns.values() for span in turn for link in span.links)


def test_joined_children_are_in_the_trace_of_the_call_that_forked_them(database: str) -> None:
    with open_team(database) as system:
        play(system)
        turns, apart = traced(system, join=True), traced(system)
        grandkid = system.agent("grandkid").uuid
        alone = traced(system, join=True, agents=[grandkid])
    top, kid, below = (turns[whose, 1] for whose in ("top", "kid", "grandkid"))
    assert {span.trace for turn in (top, kid, below) for span in turn} == {top[0].trace}
    forks = {span.name: span.id for span in top if span.name == "execute_tool fork"}
    assert kid[0].parent == forks["execute_tool fork"]
    assert below[0].parent == next(span.id for span in kid if span.name == "execute_tool fork")
    ids = [[[span.id for span in turn] for turn in group.values()] for group in (turns, apart)]
    assert ids[0] == ids[1]
    assert turns["top", 2][0].trace == apart["top", 2][0].trace
    assert alone == {("grandkid", 1): below}


def test_turns_are_chosen_by_when_they_ended(database: str) -> None:
    with ActorSystem.open(database, ScriptedProvider(["one", "two", "three"])) as system:
        root = system.root
        for text in ("a", "b", "c"):
            root.prompt(text).get(timeout=TIMEOUT)
        spread = "UPDATE messages SET created_at = 1000 * id"
        system._store.write(lambda tx: tx.schema.execute(spread))
        everything = traced(system)
        second = everything[root.record.short, 2]
        assert [turn[0].end for turn in everything.values()] == [2_000, 4_000, 6_000]
        for since, until, expected in (
            (4_000, 4_001, [second]),
            (3_000, 6_000, [second]),
            (4_001, 6_000, []),
            (2_001, 2**62, list(everything.values())[1:]),
        ):
            assert list(traced(system, since=since, until=until).values()) == expected
