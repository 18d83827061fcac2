"""Who calls a verb: what only looks commits nothing, a role gives its rights, and no branch sees another."""

import hashlib
import hmac
from collections.abc import Iterator, Mapping
from pathlib import Path

import click
import pytest
from click.types import StringParamType

from ikigai_actors import ActorSystem, AgentNotFound, Budget, OfflineProvider, Reply
from ikigai_actors.actors.futures import Future
from ikigai_actors.agent.turn import events
from ikigai_actors.errors import IkigaiError, LooksOnly, NotAllowed
from ikigai_actors.reach.access import Access
from ikigai_actors.store.asker import LOOKER, acting_for
from ikigai_actors.system.attached import AttachedSystem
from ikigai_actors.verbs.arguments import OfferingAgents
from ikigai_actors.verbs.principal import RIGHTS, Principal, has_right
from ikigai_actors.verbs.rights import Callers, Right
from ikigai_actors.verbs.table import TABLE, load, names
from ikigai_actors.verbs.tools import CalledPlace, ToolAnswer, call
from ikigai_actors.verbs.verb import LocalOption, Verb, VerbGroup

OPERATIONS = {
    f"{name}/{verb.name}" if isinstance(loaded, VerbGroup) else name: verb
    for name in names(Callers.PROTOCOLS)
    for loaded in (load(name),)
    for verb in (loaded.verbs if isinstance(loaded, VerbGroup) else (loaded,))
    if verb.callers & Callers.PROTOCOLS
}
"""The verbs that protocols may call, by their words."""
VERBS = [*OPERATIONS.values()]
THE_SUBSCRIPTION = "the subscription"
"""In arguments, the place of an id that the database gives."""
CHANGES: tuple[tuple[str, Mapping[str, object]], ...] = (
    ("prompt", {"agent": "kid", "text": "tea"}),
    ("prompt", {"agent": "kid", "text": "tea", "steer": True}),
    ("queue", {"agent": "kid", "text": "tea"}),
    ("fork", {"agent": "kid", "prompt": "tea"}),
    ("fork", {"agent": "kid", "count": 2}),
    ("send", {"recipient": "kid", "text": "tea"}),
    ("send", {"recipient": "kid", "text": "tea", "after": "1h"}),
    ("timers", {"agent": "kid", "text": "tea", "after": "1h"}),
    ("read-mail", {"agent": "kid"}),
    ("delete-mail", {"agent": "kid", "number": 1}),
    ("mark", {"agent": "kid", "label": "here"}),
    ("undo", {"agent": "kid"}),
    ("clear", {"agent": "kid"}),
    ("compact", {"agent": "kid"}),
    ("set", {"agent": "kid", "name": "temperature", "value": ["0.5"]}),
    ("model", {"agent": "kid", "name": "offline:"}),
    ("system", {"agent": "kid", "text": "Be brief."}),
    ("rename", {"agent": "kid", "name": "boy"}),
    ("notify", {"agent": "kid", "what": "on"}),
    ("rules", {"agent": "kid", "what": "add", "decision": "ask", "tool": "bash"}),
    ("group", {"agent": "kid", "what": "join", "name": "tasters"}),
    ("monitor", {"agent": "kid", "watched": "other"}),
    ("supervise", {"agent": "kid", "intensity": 2}),
    ("orphans", {"agent": "kid", "policy": "cascade"}),
    ("signal", {"agent": "kid", "name": "STOP"}),
    ("adopt", {"agent": "kid", "child": "other"}),
    ("merge", {"agent": "root", "child": "kid"}),
    ("budget", {"owner": "kid", "more": "usd=5"}),
    ("doc/write", {"path": "a", "text": "tea"}),
    ("doc/delete", {"path": "menu"}),
    ("endpoint/add", {"name": "desk", "to": "kid", "scheme": "hmac", "plain": ["a secret of the desk"]}),
    ("endpoint/pause", {"name": "shop"}),
    ("endpoint/resume", {"name": "shop"}),
    ("endpoint/replay", {"name": "shop", "dead": True}),
    ("endpoint/replay", {"name": "shop", "delivery": "d1"}),
    ("endpoint/remove", {"name": "shop"}),
    ("subscription/add", {"url": "https://example.com", "plain": ["a secret of the desk"], "under": "kid"}),
    ("subscription/redeliver", {"subscription": THE_SUBSCRIPTION, "received": True}),
    ("subscription/resume", {"subscription": THE_SUBSCRIPTION}),
    ("subscription/pause", {"subscription": THE_SUBSCRIPTION}),
    ("subscription/rotate", {"subscription": THE_SUBSCRIPTION, "plain": "another secret"}),
    ("subscription/remove", {"subscription": THE_SUBSCRIPTION}),
    ("finish", {"agent": "kid"}),
    ("kill", {"agent": "kid", "cascade": True}),
)
LOOKING: tuple[tuple[str, Mapping[str, object]], ...] = (
    ("approvals", {}), ("budget", {}), ("check-mail", {"agent": "kid"}), ("context", {"agent": "kid"}),
    ("diff", {"agent": "kid", "other": "other"}), ("experiments", {}), ("filter-mail", {"agent": "kid"}),
    ("find", {"agent": "kid", "text": "tea"}), ("group", {}),
    ("endpoint/list", {}), ("endpoint/show", {"name": "shop"}),
    ("subscription/list", {}), ("subscription/show", {"subscription": THE_SUBSCRIPTION}), ("questions/list", {}),
    ("history", {"agent": "kid"}), ("hosts", {}), ("doc/list", {}), ("doc/show", {"path": "menu"}),
    ("doc/log", {"path": "menu"}), ("model", {"agent": "kid"}), ("orphans", {"agent": "kid"}),
    ("rules", {"agent": "kid"}),
    ("settings", {"agent": "kid"}), ("supervise", {"agent": "kid"}), ("system", {"agent": "kid"}), ("timers", {}),
    ("queue", {"agent": "kid"}), ("wait", {"agent": "kid", "seconds": 0}),
)  # fmt: skip


def called(system: AttachedSystem, place: CalledPlace, name: str, arguments: Mapping[str, object]) -> ToolAnswer:
    """Call a verb by its words, with the right that it needs in the table."""
    if arguments.get("subscription") == THE_SUBSCRIPTION:
        arguments = {**arguments, "subscription": system.subscriptions.list()[0].id}
    return call(place, OPERATIONS[name], arguments, TABLE[name.partition("/")[0]].needs)


@pytest.fixture
def system(durable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[AttachedSystem]:
    """A system that is attached to a host with agents root, kid and other, an endpoint and a paused subscription."""
    (tmp_path / "key").write_text("a1" * 32)
    monkeypatch.setenv("IKIGAI_KEYS", f"file:{tmp_path}/key")
    with ActorSystem.open(durable, OfflineProvider()) as host:
        host.root.rename("root")
        host.root.set_budget(Budget(usd=5))
        host.root.fork(name="kid")
        host.root.fork(name="other")
        host.documents.write("menu", "tea")
        host.send("kid", "milk")
        host.subscriptions.pause(host.subscriptions.add("https://example.com", [f"file:{tmp_path}/key"], ["arrival"]))
        host.endpoints.add("shop", host.agent("kid"), "hmac", [f"file:{tmp_path}/key"], template="Order {id}")
        proof = hmac.new(b"a1" * 32, b"no JSON", hashlib.sha256).hexdigest()
        host.endpoints.receive("shop", {"X-Signature": proof, "X-Delivery": "d1"}, b"no JSON")
        assert host.endpoints.counts("shop") == {"dead": 1}
        host._store.write(lambda tx: tx.schema.execute("UPDATE deliveries SET due_at = NULL"))
        with AttachedSystem.open(durable) as attached:
            yield attached


def content(system: AttachedSystem) -> list[object]:
    """All that a verb may change."""
    tables = [
        "agents",
        "mail",
        "messages",
        "signals",
        "requests",
        "documents",
        "rules",
        "timers",
        "budgets",
        "groups",
        "endpoints",
        "arrivals",
        "subscriptions",
        "deliveries",
    ]
    return system._store.read(
        lambda tx: [sorted(map(repr, tx.schema.execute(f"SELECT * FROM {table}"))) for table in tables]
    )


@pytest.mark.slow("takes a tenth of a second")
def test_what_only_looks_commits_nothing(system: AttachedSystem) -> None:
    before, access = content(system), Access.of(system)
    for name, arguments in CHANGES:
        with pytest.raises(LooksOnly):
            called(system, CalledPlace(access, looks=True), name, arguments)
        with pytest.raises(LooksOnly):
            called(system, CalledPlace(access, Principal("eve", "Eve", frozenset({"look"}))), name, arguments)
    assert content(system) == before
    assert {name for name, _ in CHANGES + LOOKING} >= OPERATIONS.keys() - {
        "questions/answer", "questions/show", "approve", "deny", "bad", "good", "skip", "move", "resume", "rewind",
        "uncompact",
    }  # fmt: skip


@pytest.mark.slow("takes a tenth of a second")
def test_an_operator_changes_endpoints_and_subscriptions_by_the_same_calls(system: AttachedSystem) -> None:
    before = content(system)
    for name, arguments in CHANGES:
        if name.startswith(("endpoint/", "subscription/")):
            called(system, CalledPlace(Access.of(system)), name, arguments)
            after = content(system)
            assert after != before, name
            before = after


@pytest.mark.slow("takes a tenth of a second")
def test_what_reads_does_so_for_a_principal_who_may_only_look(system: AttachedSystem) -> None:
    eve = Principal("eve", "Eve", frozenset({"look"}))
    for name, arguments in LOOKING:
        looking = called(system, CalledPlace(Access.of(system), eve), name, arguments)
        assert looking == called(system, CalledPlace(Access.of(system)), name, arguments)


def test_no_statement_of_a_thread_that_may_only_look_is_committed(system: AttachedSystem) -> None:
    with acting_for(LOOKER), pytest.raises(LooksOnly):
        system._store.write(lambda tx: tx.run("tree_change"))


def test_another_thread_carries_out_what_was_posted_for_who_posted_it(system: AttachedSystem) -> None:
    answer, kid = Future[Reply](), system.agent("kid")
    with acting_for(LOOKER):
        system._others.post(kid.uuid, events.Prompt("tea", answer))  # the thread that follows the host carries it out
    with pytest.raises(LooksOnly):
        answer.get(timeout=30)


@pytest.mark.parametrize("right", RIGHTS)
def test_a_right_has_those_before_it(right: str) -> None:
    anna = Principal("anna", "Anna", frozenset({right, "lead"}))
    assert [other for other in Right if has_right(anna, other)] == [lower for lower in Right if lower <= RIGHTS[right]]
    assert not has_right(anna._replace(roles=frozenset({"lead"})), Right.LOOK)


def test_a_verb_is_refused_without_the_role_that_it_needs(system: AttachedSystem) -> None:
    access, before = Access.of(system), content(system)
    for name, arguments in (*CHANGES, ("approve", {"agent": "kid", "call": "1/a/b"})):
        weaker = [right for right, rank in RIGHTS.items() if Right.LOOK < rank < TABLE[name.partition("/")[0]].needs]
        for right in weaker:
            anna = Principal("anna", "Anna", frozenset({right}))
            with pytest.raises(NotAllowed, match="needs the role"):
                called(system, CalledPlace(access, anna), name, arguments)
    with pytest.raises(NotAllowed):
        called(system, CalledPlace(access, Principal("nobody", "", frozenset())), "history", {"agent": "kid"})
    assert content(system) == before


@pytest.mark.slow("takes a tenth of a second")
def test_a_branch_reaches_nothing_of_another_by_any_parameter(system: AttachedSystem) -> None:
    access = Access.of(system, top="kid")
    for verb in VERBS:
        schema = {param.name: param for param in verb.params_of_tool()}
        agents = [name for name, param in schema.items() if isinstance(param.type, OfferingAgents)]
        if verb.script.text:
            agents.append("agent")
        for name in agents:
            arguments: dict[str, object] = {**dict.fromkeys(agents, "kid"), **_required(verb), name: "other"}
            arguments |= {
                parameter: [arguments[parameter]]
                for parameter in agents
                if parameter in schema and schema[parameter].nargs == -1
            }
            with pytest.raises((AgentNotFound, NotAllowed)) as refused:
                call(CalledPlace(access), verb, arguments)
            assert isinstance(refused.value, NotAllowed) or str(refused.value) == str(_unknown(system)), verb.name


@pytest.mark.slow("takes a tenth of a second")
def test_a_verb_about_all_agents_is_refused_to_a_branch(system: AttachedSystem) -> None:
    before, place = content(system), CalledPlace(Access.of(system, top="kid"))
    about_all = [each for each in CHANGES + LOOKING if OPERATIONS[each[0]].everywhere]
    assert len(about_all) >= len([verb for verb in VERBS if verb.everywhere])
    for name, arguments in about_all:
        with pytest.raises(NotAllowed, match="about all agents"):
            called(system, place, name, arguments)
    with pytest.raises(NotAllowed, match="out of reach"):
        called(system, place, "budget", {"owner": "kid", "more": "+5usd"})
    assert content(system) == before


def test_what_several_agents_have_is_shown_of_those_in_reach(system: AttachedSystem) -> None:
    system.agent("kid").remind("tea", after=3600)
    system.agent("other").remind("milk", after=3600)
    shown = call(CalledPlace(Access.of(system, top="kid")), OPERATIONS["timers"], {})
    assert "tea" in shown.text
    assert "milk" not in shown.text


def _unknown(system: AttachedSystem) -> IkigaiError:
    try:
        system.agent("nobody-of-this-name")
    except AgentNotFound as error:
        return AgentNotFound(str(error).replace("nobody-of-this-name", "other"))
    raise AssertionError


def _required(verb: Verb) -> dict[str, object]:
    """Something for each argument that must be given and names no agent."""
    return {
        param.name or "": param.type.choices[0]
        if isinstance(param.type, click.Choice)
        else "x"
        if isinstance(param.type, StringParamType)
        else 1
        for param in verb.params_of_tool()
        if param.required and not isinstance(param.type, OfferingAgents)
    }


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.name)
def test_no_parameter_of_a_tool_opens_a_file_or_hides_an_agent(verb: Verb) -> None:
    for param in verb.params_of_tool():
        assert not isinstance(param, LocalOption)
        assert not isinstance(param.type, click.File | click.Path)
        if (param.metavar or "") in ("ID", "[ID]", "[ID…]", "AGENT") or param.name in ("other", "child", "owner"):
            assert isinstance(param.type, OfferingAgents), param.name


def test_a_text_of_a_dash_is_no_input_of_the_server(system: AttachedSystem, tmp_path: Path) -> None:
    call(CalledPlace(Access.of(system)), OPERATIONS["doc/write"], {"path": "dash", "text": "-"})
    assert system.documents.read("dash").body == "-"


def test_a_decision_names_the_principal(system: AttachedSystem) -> None:
    anna = Principal("anna", "Anna", frozenset({"operate"}))
    assert CalledPlace(Access.of(system), anna).principal.id == "anna"
    assert "@" in CalledPlace(Access.of(system)).principal.id
