"""Export and import: what comes out of a file is what went in, or nothing is."""

import json
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ikigai_actors import (
    ActorSystem,
    AgentDead,
    AgentRef,
    BadInput,
    Budget,
    BudgetExceeded,
    Child,
    HistoryPruned,
    Message,
    Reply,
    Request,
    ScriptedProvider,
    Signal,
    ToolCall,
)
from ikigai_actors.agent.waits import WaitResult
from ikigai_actors.errors import AlreadyMerged, HostElsewhere, IkigaiError, ImportRefused
from ikigai_actors.records.fsck.check import check
from ikigai_actors.records.lives.supervision import GAVE_UP
from ikigai_actors.records.log.chain import HashChain
from ikigai_actors.records.log.pruning import prune_logs
from ikigai_actors.records.transfer.format import LONGEST_RECORD, file_lines
from ikigai_actors.records.transfer.graft import Import, Imported, ImportFile
from ikigai_actors.store import open_store
from ikigai_actors.system.attached import AttachedSystem
from ikigai_actors.system.host.importing import import_file
from ikigai_actors.testing import CrashPoint, ProcessCrashed, simulated
from ikigai_actors.testing.strategies import Tree, agent_trees
from tests.conftest import NewDatabase
from tests.kit.blocking_provider import DEADLINE, Hanging
from tests.kit.databases import eventually
from tests.kit.exported_files import Records, of, put, signed
from tests.kit.pictures import PNG
from tests.kit.program import run
from tests.kit.sessions import OpenSession
from tests.kit.trees import change

MEMORY = "sqlite:///:memory:"


def provider() -> ScriptedProvider:
    """Answers everything."""
    return ScriptedProvider(lambda request: "well")


def ask(agent: AgentRef, text: str, **how: Any) -> None:
    """Prompt an agent, and wait for the answer."""
    agent.prompt(text, **how).get(timeout=DEADLINE)


def family(system: ActorSystem) -> AgentRef:
    """A branch with something of everything; returns its top."""
    root = system.root
    ask(root, "We sell tea.")
    root.mark("start")
    root.configure(system="You sell tea.")
    ask(root, "And coffee — ☕?")
    outside = root.fork("Taste it.")
    outside.reply(timeout=DEADLINE)
    root.merge(outside)
    top = root.fork("You buy.", name="buyer", on_orphan="continue")
    top.reply(timeout=DEADLINE)
    top.mark("here")
    ask(top, "Look.", attach=[PNG])
    early = top.fork(name="early", at=4)
    ask(early, "From the beginning.")
    late = top.fork("Go.", name="late", restart="permanent")
    late.reply(timeout=DEADLINE)
    top.merge(late)
    late.rewind("start")
    late.configure(temperature=0.5)
    top.rewind("here")
    ask(top, "so many words that there is something to save " * 40)
    ask(top, "Again.")
    top.compact()
    leaf = late.fork("Deeper.", name="leaf")
    leaf.reply(timeout=DEADLINE)
    leaf.clear()
    ask(leaf, "Anew.")
    top.supervise(strategy="one_for_all", intensity=7, period=9)
    adopted = root.fork("A stray.", name="stray")
    adopted.reply(timeout=DEADLINE)
    top.adopt(adopted)
    top.send(late, "Is it ready?", key="k1")
    late.read_mail()
    root.send(late, "From outside.")
    for merged in (leaf, adopted):
        top.merge(merged)
    adopted.kill(reason="sold out")
    early.signal(Signal.STOP)
    early.prompt("When you go on.")
    assert not early.resume()  # answered behind the prompt, which is kept as mail by then
    system.documents.write("plans/tea.md", "# Tea\n", author=top.uuid, key="tea")
    system.documents.write("plans/tea.md", "# Tea, more\n", author=root.uuid)
    system.documents.write("elsewhere.md", "no", author=root.uuid)
    return top


def lines(file: Path) -> list[dict[str, Any]]:
    """The records of a file."""
    return [json.loads(line) for line in file.read_bytes().splitlines()]


def contents(file: Path) -> list[dict[str, Any]]:
    """What must be the same when a file was imported and exported again: all but who is outside, and so the hashes."""
    kept = [line for line in lines(file) if line["record"] not in ("header", "origin", "end")]
    for record in kept:
        record.pop("outside", None)
        record.pop("hash", None)
        if record["record"] == "message" and record["kind"] == "fork":
            record["data"].pop("parent", None)
        if record["record"] == "agent" and record["parent"].startswith("origin:"):
            record["born"] = record["fork_message_id"] + 1
    return kept


def meaning(agent: AgentRef) -> Mapping[str, Any]:
    """What an agent remembers, and how."""

    def facts(message: Message) -> tuple[Any, ...]:
        data = {key: value for key, value in message.data.items() if key not in ("child", "parent", "agents", "from")}
        return (message.id, message.kind, message.content, data, message.created_at)

    context = agent.context()
    return {
        "history": [facts(message) for message in agent.history()],
        "all": [facts(message) for message in agent.history(all=True)],
        "settings": context.settings,
        "marks": context.marks,
        "mail": [(mail.id, mail.kind, mail.body, mail.read_at) for mail in agent.mails()],
        "unread": agent.record.unread,
    }


def below(agent: AgentRef) -> list[AgentRef]:
    """An agent and those that it supervises, in order of birth."""
    agents = [agent]
    for child in agent.children():
        agents += below(child)
    return agents


@pytest.mark.slow("takes a tenth of a second")
@pytest.mark.sample(1, "four pairs of databases; every run has a file and a server")
@pytest.mark.parametrize("other", ["postgres", "sqlite"])
def test_a_branch_is_the_same_on_another_database_and_back_again(
    durable: str, other: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    elsewhere: NewDatabase = request.getfixturevalue(f"new_{other}")
    with ActorSystem.open(durable, provider()) as system:
        top = family(system)
        exported = top.system.export(top, tmp_path / "1")
        before = {agent.name: meaning(agent) for agent in below(top)}
    assert (exported.agents, exported.mails, exported.documents, exported.blobs) == (5, 4, 2, 1)
    assert lines(tmp_path / "1")[0]["counts"]["merge"] == 3
    there = elsewhere()
    done = import_file(there, ImportFile.of(tmp_path / "1"))
    assert (len(done.agents), done.renewed) == (5, {})
    with ActorSystem.open(there, provider()) as system:
        assert check(system._store) == []
        assert {agent.name: meaning(agent) for agent in below(system.agent("buyer"))} == before
        system.agent("early").signal(Signal.CONT)
        assert system.agent("early").reply(timeout=DEADLINE).text == "well"  # the prompt that waited
        assert system.agent("late").prompt("And now?").get(timeout=DEADLINE).text == "well"
        assert system.agent("leaf").fork("More.").reply(timeout=DEADLINE).text == "well"
        with pytest.raises(AlreadyMerged):
            system.agent("buyer").merge("stray")
        assert system.agent("buyer").uncompact() > 0
    with AttachedSystem.open(there) as system:
        assert check(system._store) == []
    counts: list[tuple[int, int]] = []
    counted = replace(ImportFile.of(tmp_path / "1"), advance=lambda *count: counts.append(count))
    import_file(second := elsewhere(), counted)
    assert counts == [(0, len(lines(tmp_path / "1")) - 1)]  # but for the line that ends it
    with closing(open_store(second)) as store, AttachedSystem.open(second) as system:
        system.export("buyer", tmp_path / "2")
        assert contents(tmp_path / "2") == contents(tmp_path / "1")
        assert check(store) == []


@pytest.mark.slow("takes a tenth of a second")
def test_what_was_done_under_a_key_is_known_where_an_agent_comes_to_live_and_no_copy_has_its_keys(
    tmp_path: Path,
) -> None:
    def acts(kid: AgentRef) -> list[Any]:
        return [
            kid.prompt("tea", key="k1").get(timeout=DEADLINE).text,
            kid.fork("mast", key="k2").uuid,
            [child.uuid for child in kid.fork(prompts=["sail", "keel"], key="k3")],
            kid.send(kid, "done", key="k4"),
            kid.merge(kid.children()[0].uuid, key="k5"),
            kid.system.documents.write("plan.md", "tea", author=kid, key="k6"),
            kid.steer("now", key="k7").get(timeout=DEADLINE).position,
        ]

    with ActorSystem.open(MEMORY, provider()) as system:
        kid = system.root.fork(name="kid")
        kid.fork("said").reply(timeout=DEADLINE)
        done = acts(kid)
        kid.remind("later", after=3600, key="k8")
        for each in (kid, *kid.children()):
            each.reply(timeout=DEADLINE)  # who is in a turn would come stopped
        system.export(kid, tmp_path / "1")
        copy = system.import_(tmp_path / "1")
        assert copy.prompt("coffee", key="k1").get(timeout=DEADLINE).text == "well"
    with ActorSystem.open(MEMORY, ScriptedProvider([])) as system:
        kid = system.import_(tmp_path / "1")
        agents = len(system.agents())
        assert acts(kid) == done
        assert len(system.agents()) == agents
        kid.remind("another time", after=60, key="k8")  # timers stay behind, and so their keys
        assert check(system._store) == []


@pytest.mark.slow("takes a tenth of a second")
def test_importing_twice_makes_a_copy_whose_uuids_are_its_own(tmp_path: Path) -> None:
    with ActorSystem.open(MEMORY, provider()) as system:
        top = family(system)
        mine = below(top)
        before = [meaning(agent) for agent in mine]
        system.export(top, tmp_path / "1")
        first, second = system.import_(tmp_path / "1"), system.import_(tmp_path / "1", under="late")
        assert check(system._store) == []
        assert [meaning(agent) for agent in below(first)] == [meaning(agent) for agent in below(second)] == before
        assert (first.name, second.name) == ("buyer-2", "buyer-3")
        assert len({agent.uuid for agent in (*below(top), *below(first))}) == 12
        assert second.supervisor == system.agent("late")
        texts = [
            message.data
            for agent in below(first)
            for message in agent.history(all=True)
            if message.kind in ("fork", "merge")
        ]
        named = {data[name] for data in texts for name in ("child", "parent", "from") if name in data}
        assert not named & {agent.uuid for agent in below(top)}
        ask(first, "You are another one.")
        assert [meaning(agent) for agent in mine] == before
        system.export(system.root, tmp_path / "all")  # with what came from files
        whole = system.import_(tmp_path / "all")
        assert check(system._store) == []
        assert len(whole.history(all=True)) == len(system.root.history(all=True))
        assert whole.parent == system.root
        second.adopt(whole)  # it was agent 0, and inherits nothing
        for number, agent in enumerate((whole, second)):
            system.export(agent, tmp_path / f"again {number}")
            again = system.import_(tmp_path / f"again {number}")
            assert check(system._store) == []
            assert [meaning(child) for child in below(again)] == [meaning(child) for child in below(agent)]


def test_what_was_open_is_interrupted_and_who_was_terminating_is_dead(tmp_path: Path) -> None:
    calls = ScriptedProvider([Reply("", (ToolCall("wait", {"agents": ["kid"], "timeout": 600}),))])
    with ActorSystem.open(MEMORY, calls, {"hanging": (hanging := Hanging(""))}) as system:
        waits = system.root.fork(name="waits")
        kid = waits.fork(name="kid", model="hanging:x")
        grandchild = kid.fork(name="grandchild")
        kid.prompt("Go.")
        hanging.wait_until_asked()
        waits.prompt("Wait.")
        eventually(lambda: waits.state == "waits for kid", "that it waits")
        change(system._store, kid.uuid, "status = 'terminating', deadline = 99, exit_reason = 'enough'")
        system.export(waits, tmp_path / "1")
        copy = system.import_(tmp_path / "1", go=True)
        assert copy.state == "interrupted"
        [started] = [message for message in copy.history() if message.kind == "tool_call"]
        [died] = [record for record in system.agents() if record.name == "kid" and record.imported_at]
        assert started.data["agents"] == [["kid", died.uuid]]
        assert (died.status, died.exit_cause, died.exit_reason, died.turn) == ("dead", "terminated", "enough", 0)
        [orphan] = copy.children()
        assert orphan.name == "grandchild-2"
        assert grandchild.name == "grandchild"
        assert check(system._store) == []


def test_who_comes_stopped_begins_nothing_before_it_is_continued(tmp_path: Path) -> None:
    with ActorSystem.open(MEMORY, provider()) as system:
        top = system.root.fork(name="top")
        for name in ("stopped", "given-up", "dead"):
            top.fork(name=name)
        system.agent("stopped").signal(Signal.STOP)
        system.agent("stopped").aio.prompt("Go.")
        eventually(
            lambda: system._store.read(lambda tx: tx.run("new_prompts", host=None)), "the prompt in the database"
        )
        system.agent("dead").kill()
        change(system._store, system.agent("given-up").uuid, f"status = 'stopped', exit_reason = '{GAVE_UP}'")
        system.export(top, tmp_path / "1")
        copy = system.import_(tmp_path / "1", stopped=True)
        statuses = {record.name: record.status for record in system.agents() if record.imported_at and record.name}
        assert statuses == {"top-2": "stopped", "stopped-2": "stopped", "given-up-2": "stopped", "dead": "dead"}
        woken = system.agent("stopped-2")
        assert system.root.wait([woken], timeout=DEADLINE) == {woken: WaitResult.STOPPED}
        copy.signal(Signal.CONT, cascade=True)
        assert system.root.wait([woken], timeout=DEADLINE) == {woken: WaitResult.IDLE}
        assert woken.reply(timeout=DEADLINE).text
        with pytest.raises(BadInput, match="stopped"):
            system.import_(tmp_path / "1", stopped="yes")  # type: ignore[arg-type]  # what is tested
        assert check(system._store) == []


def test_what_was_cleared_goes_along_with_a_notice_or_is_left_out(tmp_path: Path) -> None:
    with ActorSystem.open(MEMORY, provider()) as system:
        ask(system.root, "The secret.")
        before = system.root.fork(name="before")  # sees it
        system.root.clear()
        ask(system.root, "Harmless.")
        after = system.root.fork("Go.", name="after")
        after.reply(timeout=DEADLINE)
        notices: list[str] = []
        assert system.export(after, tmp_path / "1", notice=notices.append).hidden == 3
        assert notices[0].startswith("3 messages that were cleared before the fork go along")
        assert b"The secret." in (tmp_path / "1").read_bytes()
        notices.clear()
        assert system.export(after, tmp_path / "2", from_clear=True, notice=notices.append).hidden == 0
        assert not notices
        assert b"The secret." not in (tmp_path / "2").read_bytes()
        copy = system.import_(tmp_path / "2")
        assert [message.content for message in copy.history()] == [message.content for message in after.history()]
        assert copy.history(all=True)[0].kind == "omitted"
        after.adopt(before)
        system.export(after, tmp_path / "3", from_clear=True)
        assert b"The secret." in (tmp_path / "3").read_bytes()
        assert check(system._store) == []


def forking(request: Request) -> Reply | str:
    """Forks two agents by one reply when it is asked to, and answers everything else."""
    part = request.messages[-1]["content"][-1]
    if part.get("text") != "Fork.":
        return "well"
    return Reply("", tuple(ToolCall("fork", {"prompt": name, "name": name}) for name in ("called", "calls")))


def heirs(outside: AgentRef, acts: str) -> list[AgentRef]:
    """What an agent does, a letter each; the agents that it has forked."""
    made: list[AgentRef] = []
    for number, act in enumerate(acts):
        if act == "p":
            ask(outside, f"Prompt {number}.")
        elif act == "c":
            outside.clear()
        elif act == "t":
            ask(outside, "Fork.")
            made += [outside.system.agent(name) for name in ("called", "calls")]
        else:
            made.append(outside.fork(f"Heir {number}.", at=None if act == "f" else int(act)))
    for heir in made:
        heir.reply(timeout=DEADLINE)
    return made


SHARED: dict[str, tuple[str, int, int]] = {
    "at different fork points": ("pfpf", 1, 0),
    "twice at the same one": ("ppf95", 3, 0),
    "with a clear between": ("pfpcpf", 1, 2),
    "with what is cleared for all": ("pcpfpcpf", 1, 9),
    "from before the fork of their parent": ("pf13f", 1, 0),
    "by calls in the midst of a turn": ("ptpf", 1, 0),
}


@pytest.mark.slow("takes a tenth of a second")
@pytest.mark.sample(1, "five files for each")
@pytest.mark.parametrize("case", SHARED)
def test_what_many_inherit_from_one_outside_stands_once_in_the_file(tmp_path: Path, case: str) -> None:
    acts, written, hidden = SHARED[case]
    with ActorSystem.open(MEMORY, ScriptedProvider(forking)) as system:
        ask(system.root, "We sell tea.")
        outside = system.root.fork("From here.", name="outside")  # whose history is stored in two logs
        outside.reply(timeout=DEADLINE)
        top = system.root.fork(name="top", at=0)
        made = heirs(outside, acts)
        made.append(made[0].fork("Below."))
        made[-1].reply(timeout=DEADLINE)
        for heir in made[:-1]:
            top.adopt(heir)
        before = [meaning(heir) for heir in made]
        done = system.export(top, tmp_path / "1")
        assert system.export(top, tmp_path / "2", from_clear=True).hidden == 0
        records = lines(tmp_path / "1")
        assert [record["outside"] for record in records if record["record"] == "origin"] == [
            system.root.record.short,
            "outside",
        ]
        assert done.hidden == hidden
        shared = next(
            record["parent"] for record in records if record["record"] == "agent" and record["uuid"] == made[0].uuid
        )
        furthest = max(heir.record.fork_message_id for heir in made[:-1])
        log = [record for record in records if record["record"] == "message" and record["agent"] == shared]
        assert len(log) == furthest + written
        assert [message["kind"] for message in log[furthest:]] == ["fork"] * written
        omitted = [line for line in lines(tmp_path / "2") if line.get("kind") == "omitted"]
        assert len(omitted) == hidden
        with ActorSystem.open(MEMORY, provider()) as elsewhere:
            elsewhere.root.fork(name="below")
            for there, file, under in ((system, "1", None), (elsewhere, "2", "below"), (elsewhere, "1", "below")):
                copy = there.import_(tmp_path / file, under=under)
                copies = copy.children()
                copies.append(copies[0].children()[0])
                assert check(there._store) == []
                for was, copied in zip(before, copies, strict=True):
                    now = meaning(copied)
                    assert {**now, "all": 0} == {**was, "all": 0}
                    assert file == "2" or now["all"] == was["all"]
                    assert copied.prompt("Go on.").get(timeout=DEADLINE).text == "well"
                    assert copied.fork("Deeper.").reply(timeout=DEADLINE).text == "well"
                assert check(there._store) == []
            elsewhere.import_(tmp_path / "1")
        with ActorSystem.open(MEMORY, provider()) as elsewhere:
            copy = elsewhere.import_(tmp_path / "1")
            elsewhere.export(copy, tmp_path / "3")
            assert contents(tmp_path / "3") == contents(tmp_path / "1")


def test_a_branch_comes_without_an_agent_that_it_has_made_of_another_history_and_given_away(tmp_path: Path) -> None:
    with ActorSystem.open(MEMORY, provider()) as system:
        source, top, other = (system.root.fork(name=name) for name in ("source", "top", "other"))
        maker = top.fork(name="maker")
        [made] = maker.fork_many([Child(source)])
        other.adopt(made)
        system.export(top, tmp_path / "1")
        with ActorSystem.open(MEMORY, provider()) as elsewhere:
            for there in (system, elsewhere, elsewhere):
                copy = there.import_(tmp_path / "1")
                assert [kid.history()[-1].data["child"] for kid in copy.children()] == [made.uuid]
                assert check(there._store) == []


def test_a_file_of_format_1_where_each_agent_has_an_origin_of_its_own_is_imported_as_it_was() -> None:
    file = Path(__file__).with_name("format_1.jsonl")
    wanted = {
        "early": ["We sell tea.", "well, We sell tea.", "early", "well, early"],
        **{str(word): ["And coffee.", "well, And coffee.", word, f"well, {word}"] for word in ("a", "bb", "ccc")},
    }
    with ActorSystem.open(MEMORY, provider()) as system:
        for _ in range(2):
            experiment = system.import_(file)
            assert check(system._store) == []
            heard = [
                [message.content for message in child.history() if message.kind in ("user", "assistant")]
                for child in experiment.children()
            ]
            assert heard == list(wanted.values())
        for child in experiment.children():
            assert child.prompt("Go on.").get(timeout=DEADLINE).text == "well"
        assert check(system._store) == []


@pytest.mark.slow("takes a tenth of a second")
def test_a_document_that_is_here_is_kept_or_appended_or_refuses_the_file(tmp_path: Path) -> None:
    with ActorSystem.open(MEMORY, provider()) as system:
        kid = system.root.fork(name="kid")
        for text in ("one", "two"):
            system.documents.write("a.md", text, author=kid.uuid)
        system.export(kid, tmp_path / "1")
        with ActorSystem.open(MEMORY, provider()) as other:
            other.documents.write("a.md", "one")
            other.import_(tmp_path / "1")
            assert [other.documents.read("a.md", version=number).body for number in (1, 2)] == ["one", "two"]
            assert other.documents.log("a.md")[-1].author == kid.uuid
            other.documents.write("a.md", "three")
            other.import_(tmp_path / "1")  # the same, and more
            other.documents.write("b.md", "x")
            assert len(other.documents.log("a.md")) == 3
        with ActorSystem.open(MEMORY, provider()) as other:
            other.documents.write("a.md", "mine")
            with pytest.raises(ImportRefused, match=r"document 'a.md' is here with other texts.*--documents keep"):
                other.import_(tmp_path / "1")
            assert len(other.agents()) == 1
            other.import_(tmp_path / "1", documents="keep")
            assert len(other.documents.log("a.md")) == 1
            other.import_(tmp_path / "1", documents="append")
            assert other.documents.read("a.md").body == "two"
            assert len(other.documents.log("a.md")) == 3
            assert check(other._store) == []


def test_budgets_count_who_comes_and_not_what_they_have_spent(tmp_path: Path) -> None:
    with ActorSystem.open(MEMORY, provider()) as system:
        top = system.root.fork("Go.", name="top")
        top.reply(timeout=DEADLINE)
        top.charge(tokens=500)
        top.fork()
        system.export(top, tmp_path / "1")
        tight = system.root.fork(name="tight", budget=Budget(agents=1, tokens=100))
        roomy = system.root.fork(name="roomy", budget=Budget(agents=2, tokens=100))
        with pytest.raises(BudgetExceeded, match="allows 1 agents below it"):
            system.import_(tmp_path / "1", under=tight)
        copy = system.import_(tmp_path / "1", under=roomy)
        assert roomy.budget is not None
        assert roomy.budget.spent == {"agents": 2, "tokens": 0}
        assert copy.record.spent_tokens >= 500
        assert check(system._store) == []


def test_who_is_dead_elsewhere_or_nobody_takes_no_import(tmp_path: Path, new_sqlite: NewDatabase) -> None:
    with ActorSystem.open(database := new_sqlite(), provider()) as system:
        kid = system.root.fork(name="kid")
        system.export(kid, tmp_path / "1")
        with pytest.raises(BadInput, match=r"There is something at .* already, and an export overwrites nothing"):
            system.export(kid, tmp_path / "1")
        kid.kill()
        with pytest.raises(AgentDead, match="Agent kid is dead: nobody can be imported under it"):
            system.import_(tmp_path / "1", under=kid)
        with AttachedSystem.open(database) as attached, pytest.raises(HostElsewhere, match="type /import FILE there"):
            attached.import_(tmp_path / "1")
        for wrong in ("nowhere", "", "a\0b"):
            with pytest.raises(BadInput):
                system.import_(tmp_path / wrong if wrong == "nowhere" else wrong)
        assert [record.name for record in system.agents()] == [None, "kid"]
        outcome = run("--database", database, "import", str(tmp_path / "1"))
        assert outcome.returncode == 1
        assert f"Import there: /import {tmp_path / '1'}" in outcome.stderr


def test_a_pruned_agent_within_goes_along_as_it_is_and_one_on_top_is_refused(tmp_path: Path) -> None:
    with ActorSystem.open(MEMORY, provider()) as system:
        top = system.root.fork("Go.", name="top")
        old = top.fork("Go.", name="old")
        stray = system.root.fork("Go.", name="stray")
        for agent in (top, old, stray):
            agent.reply(timeout=DEADLINE)
        top.adopt(stray)
        for agent in (old, stray):
            agent.kill()
        prune_logs(system._store, 10**15, 7)
        system.export(top, tmp_path / "1")
        copy = system.import_(tmp_path / "1")
        assert check(system._store) == []
        assert [record.pruned_at for record in system.agents() if record.supervisor_uuid == copy.uuid] == [7, 7]
        with pytest.raises(HistoryPruned):
            system.export(old, tmp_path / "2")
        assert not (tmp_path / "2").exists()


Act = tuple[int, str]

ACTS = ("prompt", "mark", "rewind", "clear", "configure", "fork", "fork at", "send", "read", "write", "kill", "adopt")


def host_of(system: ActorSystem) -> str:
    """The id of the host that a system is."""
    owner = system.root.record.owner
    assert owner is not None
    return owner


def act(system: ActorSystem, agents: list[AgentRef], number: int, what: str) -> None:
    """One agent does something; what it may not do at the moment is left out."""
    acting, other = agents[number % len(agents)], agents[number * 7 % len(agents)]
    works: dict[str, Callable[[], object]] = {
        "prompt": lambda: ask(acting, f"prompt {number}"),
        "mark": lambda: acting.mark(f"m{number % 3}"),
        "rewind": lambda: acting.rewind(f"m{number % 3}"),
        "clear": acting.clear,
        "configure": lambda: acting.configure(temperature=number / 100),
        "fork": lambda: agents.append(acting.fork()),
        "fork at": lambda: agents.append(acting.fork(at=number % (len(acting.history(all=True)) + 1))),
        "send": lambda: acting.send(other, f"mail {number}"),
        "read": acting.read_mail,
        "write": lambda: system.documents.write(f"d{number % 2}", f"text {number}", author=acting.uuid),
        "kill": acting.kill,
        "adopt": lambda: acting.adopt(other),
    }
    with suppress(IkigaiError):
        works[what]()


@pytest.mark.slow("takes a tenth of a second")
@settings(max_examples=25)
@given(agent_trees(4), st.lists(st.tuples(st.integers(0, 99), st.sampled_from(ACTS)), max_size=14), st.integers(0, 9))
def test_random_branches_mean_the_same_when_they_were_exported_and_imported(
    tmp_path_factory: pytest.TempPathFactory, tree: Tree, acts: list[Act], top: int
) -> None:
    file = tmp_path_factory.getbasetemp() / "random"
    with ActorSystem.open(MEMORY, provider()) as system:
        agents = tree.grow(system.root)
        for number, what in acts:
            act(system, agents, number, what)
        chosen = agents[top % len(agents)]
        file.unlink(missing_ok=True)
        system.export(chosen, file)
        unit = Import(ImportFile.of(file, "keep"), None, host_of(system), 1, system._random_bytes)
        done: Imported = system._writer.perform(unit)
        assert check(system._store) == []
        branch = [system.handle(line["uuid"]) for line in lines(file) if line["record"] == "agent"]
        for agent, other in zip(branch, done.agents, strict=True):
            assert meaning(system.handle(other.uuid)) == meaning(agent)
        with ActorSystem.open(MEMORY, provider()) as elsewhere:
            elsewhere.import_(file)
            assert check(elsewhere._store) == []
            for agent in branch:
                assert meaning(elsewhere.handle(agent.uuid)) == meaning(agent)


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A file with something of everything."""
    file = tmp_path_factory.mktemp("sound") / "1"
    with ActorSystem.open(MEMORY, provider()) as system:
        system.export(family(system), file)
    return file.read_bytes()


def looked_at(file: Path, data: bytes) -> ImportFile:
    """A file with these bytes, read as it is before an import."""
    file.write_bytes(data)
    return ImportFile.of(file)


@given(st.floats(0, 1, exclude_max=True), st.integers(0, 40), st.binary(max_size=3), st.booleans())
def test_damage_anywhere_in_a_file_refuses_all_of_it(
    sound: bytes, tmp_path_factory: pytest.TempPathFactory, place: float, length: int, put: bytes, cut: bool
) -> None:
    start = int(place * len(sound))
    damaged = sound[:start] if cut else sound[:start] + put + sound[start + length :]
    file = tmp_path_factory.getbasetemp() / "damaged"
    if damaged != sound:
        with pytest.raises(ImportRefused, match=r"cannot be imported, and nothing of it was: line \d+: "):
            looked_at(file, damaged)


@pytest.mark.slow("takes a tenth of a second")
def test_two_lines_that_change_places_and_one_that_comes_twice_refuse_a_file(sound: bytes, tmp_path: Path) -> None:
    rows = sound.splitlines(keepends=True)
    for place in range(len(rows)):
        with pytest.raises(ImportRefused):
            looked_at(tmp_path / "1", b"".join([*rows[: place + 1], *rows[place:]]))
        if place and rows[place] != rows[place - 1]:
            swapped = [*rows[: place - 1], rows[place], rows[place - 1], *rows[place + 1 :]]
            with pytest.raises(ImportRefused):
                looked_at(tmp_path / "1", b"".join(swapped))


def tell(kind: str, /, **data: Any) -> Callable[[Records], object]:
    """Change the data of the first message, which becomes one of this kind; its form is looked at, and nothing else."""
    return lambda records: of(records, "message").update(kind=kind, data=data)


def nested(depth: int) -> dict[str, Any]:
    """Data in data in data."""
    data: dict[str, Any] = {}
    for _ in range(depth):
        data = {"data": data}
    return data


def drop(kind: str, /, number: int = 0, **fields: Any) -> Callable[[Records], object]:
    """Leave a record out, and count that in the header."""

    def work(records: Records) -> None:
        records.remove(of(records, kind, number, **fields))
        records[0]["counts"][kind] -= 1

    return work


def twice(kind: str) -> Callable[[Records], object]:
    """A record that comes twice, and is counted so."""

    def work(records: Records) -> None:
        record = of(records, kind)
        records.insert(records.index(record) + 1, dict(record))
        records[0]["counts"][kind] += 1

    return work


def cut(number: int) -> Callable[[Records], object]:
    """Leave out the latest messages of the first origin."""

    def work(records: Records) -> None:
        log = [record for record in records if record["record"] == "message" and record["agent"].startswith("origin:")]
        for message in log[-number:]:
            records.remove(message)
        records[0]["counts"]["message"] -= number

    return work


def prune(name: str) -> Callable[[Records], object]:
    """Delete the log of an agent."""

    def work(records: Records) -> None:
        agent = of(records, "agent", name=name)
        agent.update(pruned_at=9)
        own = [record for record in records if record["record"] == "message" and record["agent"] == agent["uuid"]]
        for message in own:
            records.remove(message)
        records[0]["counts"]["message"] -= len(own)

    return work


NOBODY = "abcdefghijklmnopqrstuv"

CRAFTED: dict[str, tuple[Callable[[Records], object], str]] = {
    "a newer format": (put("header", format=6), "has format 6, and this ikigai knows those up to 5: upgrade"),
    "no format": (lambda records: records[0].pop("format"), "expected the header"),
    "an unknown record": (put("blob", record="timer"), "expected one of the records .*; got 'timer'"),
    "an unknown field": (put("mail", colour="red"), "unknown field 'colour' of the record mail"),
    "a missing field": (lambda records: of(records, "agent").pop("turn"), "missing field 'turn'"),
    "another type": (put("message", id="1"), "the field id of the record message has a value of another type: '1'"),
    "a truth as a number": (put("message", id=True), "another type: True"),
    "a number out of range": (put("message", created_at=2**63), "out of range"),
    "an agent twice": (twice("agent"), "a second agent"),
    "an origin twice": (twice("origin"), "a second origin"),
    "a message twice": (twice("message"), "expected message 2 of origin:"),
    "a mail twice": (twice("mail"), "expected a mail after"),
    "a version twice": (twice("document"), "expected version 2 of 'plans/tea.md'"),
    "a merge twice": (twice("merge"), "a second merge at message"),
    "a merge of nobody": (put("merge", **{"from": NOBODY}), "expected an agent of this file"),
    "a key twice": (twice("keyed_call"), "a second call of .* under key 'k1'"),
    "a key of nobody": (put("keyed_call", scope=NOBODY), "expected an agent of this file"),
    "a key that is none": (put("keyed_call", key=""), "a key of 1 to 200 printable characters"),
    "a key of no call": (put("keyed_call", asked="x"), "expected asked to be 64 hexadecimal digits"),
    "an answer that the call never gives": (put("keyed_call", gave={"mail": 1}), "the answer that 'send' gives"),
    "a blob twice": (twice("blob"), "a second blob"),
    "a hole": (drop("message", 2), "expected message 3 of origin:"),
    "a missing blob": (drop("blob"), "it refers to blob .*, which is not in the file"),
    "a changed blob": (put("blob", bytes="AAAA"), "expected the bytes of blob"),
    "a blob that is no base64": (put("blob", bytes="?"), "in base64"),
    "a missing origin": (drop("origin"), "expected the parent 'origin:.*' of agent .* before it"),
    "an origin that ends before a fork point": (cut(4), "to go on up to the fork point of agent .*; it ends at"),
    "an origin that does not tell of a birth": (cut(1), "to record the birth of agent .*; it does not"),
    "an origin named after somebody else": (put("agent", 1, parent=NOBODY), "expected the parent"),
    "an origin of the pruned and of others": (prune("stray"), "to be pruned, or none"),
    "a message of nobody": (put("message", agent=NOBODY), "expected a message of an agent of this file"),
    "mail of nobody": (put("mail", sender=NOBODY), "expected an agent of this file"),
    "a document of nobody": (put("document", author=NOBODY), "expected an agent of this file"),
    "a parent that is nobody": (put("agent", 2, parent=NOBODY), "expected the parent"),
    "no parent": (put("agent", 2, parent=None), "to have a parent"),
    "a supervisor that is nobody": (put("agent", 1, supervisor=NOBODY), "the supervisor of agent"),
    "a top that is nobody": (put("header", top=NOBODY), "to be in the file"),
    "no uuid": (put("agent", uuid="x"), "expected the uuid of an agent"),
    "an unknown status": (put("agent", status="asleep"), "expected its status to be one of"),
    "a living one with an end": (put("agent", ended_at=5), "expected no time of death"),
    "a name that is none": (put("agent", name="a b"), "A name is 1 to 64"),
    "two living of one name": (put("agent", 1, name="buyer"), "a second living agent named 'buyer'"),
    "a path that is none": (put("document", path="../x"), "name"),
    "an unknown kind of mail": (put("mail", kind="parcel"), "expected mail of the kind"),
    "a NUL": (put("message", content="a\0b"), "holds a NUL character"),
    "half of a character": (put("message", content="\ud800"), "holds half of a character"),
    "an unknown kind of message": (
        put("message", kind="novelty"),
        "a kind of message that this ikigai knows, got 'novel",
    ),
    "a usage that is no number": (
        tell("assistant", usage={"input_tokens": "x"}),
        "usage to be an object of whole numb",
    ),
    "a usage of nothing": (
        tell("assistant", usage={"output_tokens": None}),
        "usage to be an object of whole numbers from 0",
    ),
    "a negative usage": (tell("merge", usage={"output_tokens": -1}), "usage to be an object of whole numbers from 0"),
    "a usage beyond all bounds": (
        tell("assistant", usage={"input_tokens": 10**19}),
        "usage to be an object of whole num",
    ),
    "a usage that no budget grants": (tell("assistant", usage={"input_tokens": 10**16 // 2}), "1,000,000,000,000,000"),
    "a part of a number": (tell("assistant", usage={"input_tokens": 0.5}), "usage to be an object of whole numbers"),
    "a model that is no text": (tell("assistant", model=5), "expected its model to be text, got 5"),
    "a maker that is no text": (tell("assistant", made_by=[]), "expected its made_by to be text"),
    "arguments that are no object": (
        tell("assistant", tool_calls=[{"name": "wait", "input": [1], "id": "a"}]),
        "tool_calls to be a list of objects, each with name, input and id",
    ),
    "a block without text": (
        tell("assistant", blocks=[{"type": "text", "text": 5}]),
        "expected its blocks to be a list",
    ),
    "a size of tokens that is none": (
        tell("summary", tokens_per_byte=float("nan")),
        "expected its tokens_per_byte to be",
    ),
    "a type that is none": (tell("user", output=5), "expected its output to be an object with a schema"),
    "a schema that is none": (tell("user", output={"schema": {"type": 5}}), "Expected output to be a JSON schema"),
    "a prompt by mail for a type that is none": (
        lambda records: of(records, "mail", kind="prompt").update(data={"output": {"schema": {"type": 5}}}),
        "Expected output to be a JSON schema",
    ),
    "more tokens than there are": (
        put("agent", spent_tokens=2**63 - 1),
        "spent_tokens of the record agent is out of range",
    ),
    "more tokens together than a budget grants": (
        put("agent", spent_tokens=10**15 + 1),
        "spent_tokens of all agents to be",
    ),
    "no period": (put("agent", period=0), "expected the period of agent .* to be above 0"),
    "an unknown cause of death": (
        lambda records: of(records, "agent", status="dead").update(exit_cause="boredom"),
        "expected an agent to end by one of .*; got 'boredom'",
    ),
    "a time beyond all calendars": (
        put("message", created_at=10**15),
        "created_at of the record message is out of range",
    ),
    "fewer than told": (lambda records: records[0]["counts"].update(mail=9), "as the header says"),
}


def test_a_file_whose_records_were_signed_again_is_read(sound: bytes, tmp_path: Path) -> None:
    looked_at(tmp_path / "1", signed([json.loads(line) for line in sound.splitlines()]))


@pytest.mark.parametrize("case", CRAFTED)
def test_a_file_with_right_sums_and_wrong_records_is_refused_for_one_clear_reason(
    sound: bytes, tmp_path: Path, case: str
) -> None:
    spoil, message = CRAFTED[case]
    records = [json.loads(line) for line in sound.splitlines()]
    spoil(records)
    with pytest.raises(ImportRefused, match=message):
        looked_at(tmp_path / "1", signed(records))


def test_what_has_no_end_of_a_line_is_read_no_further_than_a_line_may_be_long(sound: bytes, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"The file /dev/zero cannot be read: it is no regular file"):
        ImportFile.of(Path("/dev/zero"))
    with (tmp_path / "1").open("wb") as file:
        file.truncate(6 * 2**30)  # a hole
    with pytest.raises(ImportRefused, match="line 1: expected a line of 1 MiB at most"):
        ImportFile.of(tmp_path / "1")


@pytest.mark.thorough("a line of many megabytes")
def test_a_line_behind_the_header_has_a_bound_too(sound: bytes, tmp_path: Path) -> None:
    with (tmp_path / "1").open("wb") as file:
        file.write(sound[: sound.index(b"\n") + 1])
        file.truncate(200 * 2**20)
    with pytest.raises(ImportRefused, match="line 2: expected a line of 128 MiB at most"):
        ImportFile.of(tmp_path / "1")
    long = ("message", {"agent": NOBODY, "content": "x" * LONGEST_RECORD})
    with pytest.raises(BadInput, match=f"A message of {NOBODY} has more than 128 MiB, and no import would take it"):
        list(file_lines([long]))


JUDGED: dict[str, tuple[Callable[[Records], object], str]] = {
    "a setting of a wrong type": (put("message", 3, data={"system": 5}), "data: "),
    "data that is no object": (put("message", 3, data="[1]"), "data: "),
    "a fork that names nobody": (
        lambda records: of(records, "message", kind="fork", agent=of(records, "agent")["uuid"]).update(data={}),
        "fork-message: ",
    ),
    "a merge without its message": (put("merge", message=5), "merge: "),
    "a message without its merge": (drop("merge"), "merge: "),
    "a time before 1970": (put("message", created_at=0), "time: "),
    "a birth of which its parent does not tell": (put("agent", 1, born=9), "fork-message: "),
}


@pytest.mark.sample(3, "damages")
@pytest.mark.parametrize("case", JUDGED)
def test_histories_that_fsck_would_call_damaged_are_undone_before_the_commit(
    sound: bytes, tmp_path: Path, case: str
) -> None:
    spoil, message = JUDGED[case]
    records = [json.loads(line) for line in sound.splitlines()]
    spoil(records)
    (tmp_path / "1").write_bytes(signed(records))
    with ActorSystem.open(MEMORY, provider()) as system:
        with pytest.raises(ImportRefused, match=message):
            system.import_(tmp_path / "1")
        assert len(system.agents()) == 1
        assert check(system._store) == []
        ask(system.root, "It goes on.")


def test_a_file_that_changes_between_the_looks_is_undone(sound: bytes, tmp_path: Path) -> None:
    looked = looked_at(tmp_path / "1", sound)
    (tmp_path / "1").write_bytes(sound.replace(b"We sell tea.", b"We sell gum."))
    with ActorSystem.open(MEMORY, provider()) as system:
        with pytest.raises(ImportRefused, match="checksum"):
            system._writer.perform(Import(looked, None, host_of(system), 1, system._random_bytes))
        assert len(system.agents()) == 1
        ask(system.root, "It goes on.")


def test_any_text_and_any_data_comes_out_as_it_went_in(tmp_path: Path) -> None:
    odd = '{"a": 1.0, "b":"\\ud800","c":"\\u00e9"}'
    with ActorSystem.open(MEMORY, provider()) as system:
        kid = system.root.fork('quotes " and \\ and \u2028 and ☕\r\n\x01', name="kid")
        kid.reply(timeout=DEADLINE)
        row = (kid.uuid, 4, "note", "new", odd, 5)
        system._store.write(lambda tx: tx.append(HashChain().link(tx, [row])))
        system.export(kid, tmp_path / "1")
        copy = system.import_(tmp_path / "1")
        rows = [
            system._store.read(lambda tx: tx.run("log_section", uuid=uuid, start=1, end=99))  # noqa: B023
            for uuid in (kid.uuid, copy.uuid)
        ]
        assert [row[2:] for row in rows[0]] == [row[2:] for row in rows[1]]
        assert rows[1][-1][4] == odd


@pytest.mark.parametrize("committed", [False, True])
def test_after_a_crash_all_agents_of_a_file_are_there_or_none(sound: bytes, tmp_path: Path, committed: bool) -> None:
    (tmp_path / "1").write_bytes(sound)
    with simulated() as world:
        system = world.open(ScriptedProvider(lambda request: "well"))
        ask(system.root, "Before.")
        world.crash_at(CrashPoint(1, committed=committed))
        with pytest.raises(ProcessCrashed):
            system.import_(tmp_path / "1")
        system = world.open(ScriptedProvider(lambda request: "well"))
        assert len(system.agents()) == (7 if committed else 1)
        assert check(system._store) == []
        if committed:
            ask(system.agent("late"), "And now?")
        assert system.import_(tmp_path / "1").name == ("buyer-2" if committed else "buyer")


@pytest.mark.slow("takes a tenth of a second")
def test_the_shell_and_the_commands_export_and_import(tmp_path: Path, new_sqlite: NewDatabase) -> None:
    first, second = new_sqlite(), new_sqlite()
    with ActorSystem.open(first, provider()) as system:
        family(system)
    done = run("--database", first, "export", "buyer", str(tmp_path / "1"))
    assert done.stdout == (
        "Exported 5 agents with 46 messages, 4 mails, 2 document versions, 1 attachment to "
        f"{tmp_path / '1'}; budgets are not in it.\n"
    )
    imported = run("--database", second, "import", "--stopped", str(tmp_path / "1"))
    assert imported.stdout == "Imported 5 agents, of which 4 live, with buyer on top.\n"
    assert run("--database", second, "fsck").stdout == "7 agents, 46 messages: no violation\n"
    refused = run("--database", second, "import", str(tmp_path / "1"), "--under", "nobody")
    assert (refused.returncode, refused.stdout) == (1, "")
    read = run("--database", first, "export", "buyer", str(tmp_path / "2"), "--markdown")
    assert read.stdout == f"Wrote the histories of 5 agents to {tmp_path / '2'}.\n"
    text = (tmp_path / "2").read_text()
    assert text.startswith("# buyer and all below it\n")
    assert "> We sell tea." in text
    assert text.count(" and 1 more inherit\n") == 1
    assert "## Mail 1 to buyer" in text


def test_slash_commands_export_the_current_agent_and_import_beside_it(
    open_session: OpenSession, tmp_path: Path
) -> None:
    session = open_session(provider())
    exported, _, imported = session(f"/export {tmp_path / '1'}", f"/import --stopped {tmp_path / '1'}")[-3:]
    assert exported.endswith(f": 1 agent, 0 messages to {tmp_path / '1'}")
    assert imported.startswith("imported ")
    assert [record.status for record in session.system.agents() if record.imported_at] == ["stopped"]
