"""Keys: what is asked for under one is done once, in whichever process, however often and after whatever crash."""

import asyncio
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path
from subprocess import PIPE
from typing import Any

import pytest
from click.testing import CliRunner

from ikigai_actors import (
    ActorSystem,
    AgentRef,
    AsyncActorSystem,
    BadInput,
    Child,
    NameTaken,
    ScriptedProvider,
    Signal,
    TurnInterrupted,
)
from ikigai_actors.errors import KeyTaken, Withdrawn
from ikigai_actors.records.fsck.check import check
from ikigai_actors.records.mail.prompts import WithdrawPrompt
from ikigai_actors.shell.cli.main import cli
from ikigai_actors.store import Transaction, open_store
from ikigai_actors.system.attached import AttachedSystem
from tests.kit.blocking_provider import DEADLINE, Gate, Hanging
from tests.kit.databases import eventually, sql
from tests.kit.program import COMMAND, environment
from tests.kit.zygote import popen
from tests.system.test_cut_off import prompted, said

Verb = Callable[[AgentRef, str, str], Any]

VERBS: dict[str, Verb] = {
    "prompt": lambda kid, text, key: kid.prompt(text, key=key).get(timeout=DEADLINE).text,
    "steer": lambda kid, text, key: kid.steer(text, key=key).get(timeout=DEADLINE),
    "send": lambda kid, text, key: kid.send(kid.system.root, text, key=key),
    "send later": lambda kid, text, key: kid.send(kid.system.root, text, after=3600, key=key),
    "a person's mail": lambda kid, text, key: kid.system.send(kid, text, key=key),
    "remind": lambda kid, text, key: kid.remind(text, every="0 9 * * *", key=key),
    "fork": lambda kid, text, key: kid.fork(text, key=key).uuid,
    "forks": lambda kid, text, key: [child.uuid for child in kid.fork(prompts=[text, "twin"], key=key)],
    "or the child": lambda kid, text, key: kid.fork(text, name=f"mast-{text}", exist_ok=True, key=key).uuid,
    "fork_many": lambda kid, text, key: [child.uuid for child in kid.fork_many([Child(kid, prompt=text)], key=key)],
    "a document": lambda kid, text, key: kid.system.documents.write("plan.md", text, author=kid, key=key),
    "a person's document": lambda kid, text, key: kid.system.documents.write("plan.md", text, key=key),
}


def traces(kid: AgentRef) -> tuple[Any, ...]:
    """All that verbs leave behind."""
    system = kid.system
    versions = system.documents.log("plan.md") if system.documents.list() else []
    mails = [len(system.handle(record.uuid).mails(latest=50)) for record in system.agents()]
    return said(kid), len(system.agents()), mails, len(kid.timers()), len(system.root.timers()), len(versions)


def sound(database: str) -> None:
    with closing(open_store(database)) as store:
        assert check(store) == []


@pytest.mark.slow("takes a tenth of a second")
@pytest.mark.parametrize("verb", VERBS)
def test_a_second_call_under_a_key_does_nothing_and_gives_the_answer_of_the_first(durable: str, verb: str) -> None:
    call = VERBS[verb]
    with ActorSystem.open(durable, ScriptedProvider(prompted)) as system, AttachedSystem.open(durable) as attached:
        kid = system.root.fork(name="kid")
        first = call(kid, "tea", "k1")
        system.root.wait([kid, *kid.children()], timeout=DEADLINE)
        left = traces(kid)
        assert [call(side.agent("kid"), "tea", "k1") for side in (system, attached)] == [first, first]
        assert traces(kid) == left
        with pytest.raises(KeyTaken, match=r"Key .k1. names another call: .*Use a new key") as refused:
            call(kid, "coffee", "k1")
        assert isinstance(refused.value, BadInput)
        assert traces(kid) == left
        if verb != "a person's document":  # nobody's scope is one for all
            call(system.root.fork(name="another"), "coffee", "k1")
    with ActorSystem.open(durable, ScriptedProvider([])) as system:
        assert call(system.agent("kid"), "tea", "k1") == first
        system.agent("kid").kill()
        assert call(system.handle(kid.uuid), "tea", "k1") == first
    sound(durable)


def test_a_merge_under_a_key_is_done_once_and_its_outcome_stays(durable: str) -> None:
    with ActorSystem.open(durable, ScriptedProvider(prompted)) as system:
        kid = system.root.fork("plan", name="kid")
        kid.reply(timeout=DEADLINE)
        first = system.root.merge(kid, key="m1")
        kid.prompt("more").get(timeout=DEADLINE)
        assert system.root.merge(kid, key="m1") == first
        with pytest.raises(KeyTaken):
            system.root.merge(kid, "pick", [3], key="m1")
        assert [message.kind for message in system.root.history()].count("merge") == 1
    with ActorSystem.open(durable, ScriptedProvider(prompted)) as system:
        assert system.root.merge(kid.uuid, key="m1") == first
    sound(durable)


def requests(tx: Transaction) -> list[Any]:
    return sql(tx, "SELECT id FROM requests")


@pytest.mark.slow("takes a tenth of a second")
def test_of_merges_at_once_under_a_key_one_is_done_and_all_have_its_outcome(durable: str) -> None:
    gate = Gate()
    with (
        ActorSystem.open(durable, ScriptedProvider(prompted), providers={"gate": gate.provider}) as system,
        AttachedSystem.open(durable) as attached,
        ThreadPoolExecutor(4) as pool,
    ):
        boss = system.root.fork(name="boss", model="gate")
        kid = boss.fork("plan", name="kid", model="scripted")
        kid.reply(timeout=DEADLINE)
        boss.prompt("go")
        gate.wait_until_asked()  # so that all look their key up before one is done
        merges = [pool.submit(side.agent("boss").merge, kid.uuid, key="m1") for side in (system, attached) * 2]
        eventually(lambda: len(system._store.read(requests)) == 2, "those from elsewhere")
        gate.open()
        assert len({merge.result(DEADLINE) for merge in merges}) == 1
        assert [message.kind for message in boss.history()].count("merge") == 1
    sound(durable)


def test_of_many_that_prompt_at_once_one_does_and_all_have_its_answer(durable: str) -> None:
    with ActorSystem.open(durable, ScriptedProvider(prompted)) as system, AttachedSystem.open(durable) as attached:
        kid = system.root.fork(name="kid")

        def ask(number: int) -> str:
            return (system, attached)[number % 2].agent("kid").prompt("tea", key="k1").get(timeout=DEADLINE).text

        def fork(number: int) -> str:
            return (system, attached)[number % 2].agent("kid").fork("sail", key="k2").uuid

        with ThreadPoolExecutor(10) as pool:
            assert set(pool.map(ask, range(10))) == {"heard tea"}
            assert len(set(pool.map(fork, range(10)))) == 1
        assert (said(kid), len(kid.children())) == (["tea"], 1)


@pytest.mark.thorough("ten processes")
@pytest.mark.slow("starts ten programs")
def test_of_ten_processes_that_prompt_at_once_one_does_and_all_have_its_answer(durable: str) -> None:
    gate = Gate("heard tea")
    place = durable.removeprefix("sqlite:///")
    command = [*COMMAND, "--database", place, "prompt", "kid", "tea", "--key", "k1", "--wait", "--json"]
    with ActorSystem.open(durable, gate.provider) as system, ExitStack() as started:
        kid = system.root.fork(name="kid")
        programs = [popen(command, stdout=PIPE, stderr=PIPE, env=environment()) for _ in range(10)]
        for process in programs:
            started.enter_context(process)
        gate.wait_until_asked()
        gate.open()
        answers = [(*process.communicate(timeout=DEADLINE), process.returncode) for process in programs]
        assert [(status, complained) for _, complained, status in answers] == [(0, b"")] * 10
        assert {json.loads(output)["text"] for output, *_ in answers} == {"heard tea"}
        assert (said(kid), kid.statistics().turns) == (["tea"], 1)


def test_a_prompt_that_was_cut_off_is_waited_for_under_its_key_and_asked_once(durable: str) -> None:
    hanging = Hanging("")
    with ActorSystem.open(durable, hanging) as system:
        kid = system.root.fork(name="kid")
        kid.prompt("review", key="monday")
        hanging.wait_until_asked()
    with (
        ActorSystem.open(durable, ScriptedProvider(prompted), resume=False) as system,
        pytest.raises(TurnInterrupted, match="kid's turn was cut off"),
    ):
        system.agent("kid").prompt("review", key="monday").get(timeout=DEADLINE)
    with ActorSystem.open(durable, ScriptedProvider(prompted)) as system:
        kid = system.agent("kid")
        assert kid.prompt("review", key="monday").get(timeout=DEADLINE).text == "heard review"
        assert said(kid) == ["review"]
        kid.undo()
        with pytest.raises(TurnInterrupted, match="undone"):
            kid.prompt("review", key="monday").get(timeout=DEADLINE)
        assert said(kid) == []


def test_a_prompt_that_is_withdrawn_leaves_its_key_free_and_one_that_is_refused_too(durable: str) -> None:
    with ActorSystem.open(durable, ScriptedProvider(prompted)) as system:
        kid = system.root.fork(name="kid")
        kid.signal(Signal.STOP)
        waiting = kid.prompt("tea", key="k1")
        again = kid.prompt("tea", key="k1")
        assert system._writer.perform(WithdrawPrompt(kid.uuid, 1))
        system._waits.look_again()
        for prompt in (waiting, again):
            with pytest.raises(Withdrawn):
                prompt.get(timeout=DEADLINE)
        kid.signal(Signal.CONT)
        with pytest.raises(NameTaken):
            kid.fork(name="kid", key="k2")
        assert kid.prompt("coffee", key="k1").get(timeout=DEADLINE).text == "heard coffee"
        assert kid.fork(name="mast", key="k2").name == "mast"


def test_an_int_right_behind_a_prompt_under_a_key_ends_its_turn(durable: str) -> None:
    gate = Gate()
    with ActorSystem.open(durable, gate.provider) as system:
        kid = system.root.fork(name="kid")
        future = kid.prompt("tea", key="k1")
        kid.signal(Signal.INT)
        with pytest.raises(TurnInterrupted):
            future.get(timeout=DEADLINE)
        gate.open()
        eventually(lambda: kid.record.turn == 0, "the end of the turn")


def test_an_asyncio_program_has_the_same_keys(durable: str) -> None:
    async def main() -> None:
        async with AsyncActorSystem.open(durable, ScriptedProvider(prompted)) as system:
            kid = await system.root.fork(name="kid", key="kid")
            assert (await system.root.fork(name="kid", key="kid")).uuid == kid.uuid
            replies = await asyncio.gather(*(kid.prompt("tea", key="k1") for _ in range(3)))
            assert [reply.text for reply in replies] == ["heard tea"] * 3
            assert [await kid.send(system.root, "done", key="k2") for _ in range(2)] == [1, 1]
            with pytest.raises(KeyTaken):
                await kid.prompt("coffee", key="k1")

    asyncio.run(main())


@pytest.mark.slow("takes a tenth of a second")
def test_the_commands_of_a_script_have_the_same_keys(tmp_path: Path) -> None:
    database = str(tmp_path / "team.db")

    def ikigai(*words: str) -> tuple[int, Any]:
        done = CliRunner().invoke(cli, ["--database", database, *words, "--key", words[0], "--json"])
        return done.exit_code, json.loads(done.stdout) if done.exit_code == 0 else (
            done.output,
            done.stderr,
            repr(done.exception),
        )

    with ActorSystem.open(database, ScriptedProvider(prompted)) as system:
        kid = system.root.fork(name="kid")
        assert kid.prompt("tea", key="prompt").get(timeout=DEADLINE).text == "heard tea"
        prompts = [ikigai("prompt", "kid", "tea", *more) for more in ((), ("--wait",))]
        assert [(status, answer["mail"], answer.get("text")) for status, answer in prompts] == [
            (0, 1, None),
            (0, 1, "heard tea"),
        ]
        for words in (
            ("send", "kid", "tea"),
            ("timers", "kid", "tea", "--after", "1h"),
            ("doc", "write", "a.md", "tea"),
            ("fork", system.root.uuid, "--name", "mast"),
        ):
            first = ikigai(*words)
            assert (first[0], ikigai(*words)) == (0, first), first
            assert ikigai(*(word.replace("tea", "rum").replace("mast", "keel") for word in words))[0] == 1
        assert (said(kid), len(kid.mails(latest=9)), len(kid.timers()), len(system.agents())) == (["tea"], 1, 1, 3)
