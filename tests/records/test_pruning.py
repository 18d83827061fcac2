"""Pruning: whole histories of those who were dead for long go, nothing that anybody needs, and the file shrinks."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ikigai_actors import ActorSystem, AgentRef, HistoryPruned, ScriptedProvider, Signal, StoreInUse
from ikigai_actors.errors import CommitUnknown
from ikigai_actors.records.agents import registry
from ikigai_actors.records.fsck.check import check
from ikigai_actors.records.log.pruning import Pruned, prunable, prune_logs
from ikigai_actors.store import Store, open_store
from ikigai_actors.store.migrations import ensure_schema
from ikigai_actors.system.attached import AttachedSystem
from ikigai_actors.testing.strategies import Tree, agent_trees
from tests.kit.blocking_provider import DEADLINE
from tests.kit.databases import sql
from tests.kit.faults import FaultyStore
from tests.kit.pictures import GIF, PNG
from tests.kit.program import run
from tests.kit.programs import each_commit
from tests.kit.trees import change, plant

OLD, CUT, LATE = 1_000, 2_000, 3_000
"""When agents died: before the cut, or after it."""


def dies(store: Store, agent: AgentRef | str, at: int = OLD) -> None:
    """An agent is killed, and its row tells another time."""
    uuid = agent if isinstance(agent, str) else agent.uuid
    if isinstance(agent, AgentRef):
        agent.kill()
    change(store, uuid, f"ended_at = {at}")


def team(system: ActorSystem) -> dict[str, AgentRef]:
    """Agents that live or died, each of whom has said something. Those of "old" and below it are needed by nobody."""
    agents = {"root": system.root}
    parents = {"above": "root", "kid": "above", "old": "root", "older": "old", "late": "root", "leaf": "kid"}
    for name, parent in parents.items():
        agents[name] = agents[parent].fork(f"You are {name}.", name=name)
        agents[name].reply(timeout=DEADLINE)
    agents["old"].prompt("Look.", attach=[PNG]).get(timeout=DEADLINE)
    agents["kid"].prompt("Look.", attach=[GIF]).get(timeout=DEADLINE)
    agents["kid"].send(agents["old"], "are you there?")
    agents["old"].send(agents["kid"], "I am.")
    for signal in (Signal.STOP, Signal.CONT, Signal.STOP, Signal.CONT):
        agents["old"].signal(signal)
    for name, at in {"older": OLD, "old": OLD, "above": OLD, "late": LATE, "leaf": OLD}.items():
        dies(system._store, agents[name], at)
    return agents


def histories(agents: dict[str, AgentRef]) -> dict[str, list[str] | str]:
    """What each agent remembers; of one that was pruned, that."""

    def remembered(agent: AgentRef) -> list[str] | str:
        try:
            return [message.content for message in agent.history(all=True)]
        except HistoryPruned as error:
            return f"pruned at {error.at}"

    return {name: remembered(agent) for name, agent in agents.items()}


def provider() -> ScriptedProvider:
    """Answers everything."""
    return ScriptedProvider(lambda request: "well")


@pytest.mark.slow("takes a tenth of a second")
def test_whole_logs_of_those_who_are_needed_by_nobody_go_and_nothing_else(durable: str) -> None:
    with ActorSystem.open(durable, provider()) as system:
        agents, store = team(system), system._store
        before = histories(agents)
        foretold = store.read(lambda tx: prunable(tx, CUT))
        assert (foretold.agents, foretold.messages, foretold.mails, foretold.blobs) == (3, 12, 2, 1)
        assert prune_logs(store, CUT, 7) == foretold
        gone = dict.fromkeys(("old", "older", "leaf"), "pruned at 7")
        with AttachedSystem.open(durable) as reader:  # nothing is in its memory
            assert histories({name: reader.handle(agent.uuid) for name, agent in agents.items()}) == before | gone
            assert reader.handle(agents["kid"].uuid).mails()[0].body == "I am."
            assert reader.handle(agents["old"].uuid).mails() == []
        assert check(store) == []
        assert agents["old"].record.pruned_at == 7
        assert agents["kid"].prompt("And now?").get(timeout=DEADLINE).text == "well"
        assert prune_logs(store, CUT, 9) == Pruned(0, 0, 0, 0, 0)
        assert agents["old"].record.pruned_at == 7


@pytest.mark.slow("takes a tenth of a second")
def test_reading_a_pruned_history_in_any_way_is_one_error_that_tells_the_date(new_sqlite: Callable[[], str]) -> None:
    with ActorSystem.open(database := new_sqlite(), provider()) as system:
        agents = team(system)
        prune_logs(system._store, CUT, 86_400_000)
    with AttachedSystem.open(database) as system:
        old = system.handle(agents["old"].uuid)
        reads: tuple[Callable[[], object], ...] = (
            old.history, lambda: old.history(all=True), old.ranges, old.context, lambda: old.fork(at=1),
            lambda: old.fork(), old.compact,
        )  # fmt: skip
        for read in reads[:4]:
            with pytest.raises(HistoryPruned, match=r"was deleted on 1970-01-02 by ikigai prune; only its row"):
                read()
        for read in reads[4:]:
            with pytest.raises(Exception, match=r"dead|pruned"):
                read()
    outcome = run("--database", database, "log", "old")
    assert (outcome.returncode, outcome.stdout) == (1, "")
    assert outcome.stderr.startswith("ikigai: The history of agent ")


@pytest.mark.slow("takes a tenth of a second")
@given(agent_trees(), st.lists(st.sampled_from(["lives", "old", "late"]), min_size=8, max_size=8))
def test_what_is_pruned_is_what_no_walk_from_the_living_reaches(tree: Tree, fates: list[str]) -> None:
    parents = {str(number): str(parent) for number, parent in enumerate(tree.parents, 1)}
    fate = {"0": "lives"} | dict(zip(parents, fates, strict=False))
    with closing(open_store("sqlite:///:memory:")) as store:
        ensure_schema(store)
        plant(store, **{f"n{uuid}": "root" if parent == "0" else f"n{parent}" for uuid, parent in parents.items()})
        for uuid in parents:
            if fate[uuid] != "lives":
                at = OLD if fate[uuid] == "old" else LATE
                change(store, f"n{uuid}", f"status = 'dead', ended_at = {at}, exit_cause = 'killed', exit_reason = ''")
        prune_logs(store, CUT, 9)
        pruned = {record.uuid[1:] for record in store.read(registry.every) if record.pruned_at}
    needed: set[str] = set()
    for uuid in fate:
        above: str | None = uuid
        while above is not None and fate[uuid] != "old":
            needed.add(above)
            above = parents.get(above)
    assert pruned == fate.keys() - needed


@pytest.mark.thorough("a host ends at each commit")
@pytest.mark.sample(1, "a crash at each commit")
@pytest.mark.parametrize("committed", [False, True])
@each_commit(2)
def test_what_a_crash_has_left_of_a_prune_the_next_one_finishes(step: int, committed: bool) -> None:
    commit, finished = 0, False
    while not finished:
        with ActorSystem.open("sqlite:///:memory:", provider()) as system:
            agents = team(system)
            store = FaultyStore(system._store)
            for _ in range(commit):
                store.works()
            store.breaks_during_commit(committed=committed)
            before = histories(agents)
            try:
                prune_logs(store, CUT, 7, batch=3)
                finished = True  # there was no such commit
            except CommitUnknown:
                assert check(store) == []
            store.recovers()
            prune_logs(store, CUT, 8, batch=3)
            assert check(store) == []
            at = 8 if commit == 0 and not committed else 7
            kept = {name: said for name, said in before.items() if name not in ("old", "older", "leaf")}
            after = store.read(
                lambda tx: {record.name: record.pruned_at for record in registry.every(tx) if record.pruned_at}
            )
            assert after == dict.fromkeys(("old", "older", "leaf"), at)
            assert {name: said for name, said in histories(agents).items() if name in kept} == kept
            for table in ("messages", "signals"):
                rows = store.read(lambda tx: sql(tx, f"SELECT DISTINCT agent_uuid FROM {table}"))  # noqa: B023
                assert not {agents[name].uuid for name in ("old", "older", "leaf")} & {uuid for (uuid,) in rows}
            assert len(store.read(lambda tx: tx.run("all_blobs"))) == 1
        commit += step
    assert commit > 5


@pytest.mark.slow("takes a tenth of a second")
def test_a_blob_to_which_somebody_refers_while_it_is_deleted_stays(durable: str) -> None:
    """The prune has found it unreferenced, and waits for the lock of its row; or it comes too late."""
    with ActorSystem.open(durable, provider()) as system:
        agents = team(system)
        store = FaultyStore(system._store)

        def refers() -> None:
            if not store.read(lambda tx: tx.run("half_pruned")) and agents["old"].record.pruned_at:
                store.before = lambda: None  # the last transaction
                agents["kid"].prompt("And this?", attach=[PNG]).get(timeout=DEADLINE)

        store.before = refers
        prune_logs(store, CUT, 7)
        assert check(system._store) == []
        assert len(store.read(lambda tx: tx.run("all_blobs"))) == 2


def test_a_file_shrinks_when_its_histories_are_pruned(new_sqlite: Callable[[], str], tmp_path: Path) -> None:
    with ActorSystem.open(database := new_sqlite(), provider()) as system:
        for _ in range(3):
            kid = system.root.fork("long " * 100_000)
            kid.reply(timeout=DEADLINE)
            dies(system._store, kid)
    file = Path(database.removeprefix("sqlite:///"))
    full = file.stat().st_size
    assert full > 1_500_000
    dry = run("--database", database, "prune", "--dead-before", "30d", "--dry-run")
    assert dry.stdout == "Would delete 9 messages, 0 mails of 3 dead agents: about 1,500,255 bytes.\n"
    done = run("--database", database, "prune", "--dead-before", "30d")
    deleted, shrank = done.stdout.splitlines()
    assert deleted == "Deleted 9 messages, 0 mails of 3 dead agents: about 1,500,255 bytes."
    assert shrank == f"The file shrank from {full:,} to {file.stat().st_size:,} bytes."
    assert file.stat().st_size < full / 3


def test_a_file_of_an_earlier_program_shrinks_by_writing_it_anew_when_nobody_runs_there(
    new_sqlite: Callable[[], str],
) -> None:
    database = new_sqlite()
    with closing(open_store(database)) as store:
        ensure_schema(store)
        store._vacuum("PRAGMA auto_vacuum = NONE; VACUUM")  # type: ignore[attr-defined]  # as files were made before
        plant(store, kid="root")
        store.write(lambda tx: tx.append([("kid", 1, "user", "long" * 200_000, None, 1, b"")]))
        change(store, "kid", "status = 'dead', ended_at = 1, exit_cause = 'killed', exit_reason = ''")
        prune_logs(store, CUT, 7)
        store.write(lambda tx: tx.run("end_hosts"))
        assert not store.shrink()
    file = Path(database.removeprefix("sqlite:///"))
    full = file.stat().st_size
    with ActorSystem.open(database, provider()), closing(open_store(database)) as store, pytest.raises(StoreInUse):
        store.shrink(whole=True)
    with closing(open_store(database)) as store:
        assert store.shrink(whole=True)
    assert file.stat().st_size < full / 2
    with closing(open_store(database)) as store:
        assert store.shrink()


@pytest.mark.parametrize("span", ["", "30", "d", "-1d", "1 month", "１d"])
def test_a_length_of_time_that_is_none_is_refused_before_anything_is_done(span: str) -> None:
    outcome = run("--database", "nowhere.db", "prune", "--dead-before", span)
    assert (outcome.returncode, outcome.stdout) == (1, "")
    assert "Expected a length of time such as 30d, 12h or 90m" in outcome.stderr
