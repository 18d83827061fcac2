"""What the last line says was spent: summed up over restarts, and kept up to date."""

from pathlib import Path

import pytest

from ikigai_actors import ActorSystem, Delta, ProviderError, Reply, ScriptedProvider, Stream, Usage
from ikigai_actors.providers.base import Spent
from ikigai_actors.records.messages.messages import Kind
from ikigai_actors.records.spending import Expenses, in_all
from ikigai_actors.system.attached import AttachedSystem
from tests.conftest import NewDatabase
from tests.kit.app_pilot import Stage, on_stage, open_memory
from tests.kit.blocking_provider import DEADLINE, Hanging


def provider(*tokens: int) -> ScriptedProvider:
    return ScriptedProvider([Reply("seen", usage=Usage(each, 1), model="tea-1") for each in tokens])


@pytest.mark.thorough("a program; every run has the other screens")
@pytest.mark.slow("takes a second")
def test_the_last_line_tells_what_was_spent_before_this_start_too(new_sqlite: NewDatabase, tmp_path: Path) -> None:
    database = new_sqlite()
    (tmp_path / "prices.toml").write_text("[tea]\ninput = 1000.0\noutput = 0.0\n")
    prices = tmp_path / "prices.toml"
    with ActorSystem.open(database, provider(400, 50), prices=prices) as system:
        root = system.root
        root.prompt("one").get(timeout=DEADLINE)
        root.fork("two", name="buyer").reply(timeout=DEADLINE)
        system._touch(root)

    async def play(stage: Stage) -> None:
        await stage.expect(r"400 in · 1 out · \$0\.40")
        await stage.say("three")
        await stage.expect(r"407 in · 2 out · \$0\.41")

    with ActorSystem.open(database, provider(7), prices=prices) as system:
        on_stage(system, play, size=(120, 24))


@pytest.mark.thorough("each screen; what they tell is one function, which the other tests show")
def test_of_a_turn_that_was_cut_all_screens_tell_the_same_and_that_it_is_the_most(tmp_path: Path) -> None:
    (tmp_path / "prices.toml").write_text("[tea]\ninput = 1000.0\noutput = 1000.0\n")

    async def play(stage: Stage) -> None:
        await stage.say("go")
        await stage.expect("So it begins")
        await stage.press("escape")
        await stage.expect(r"20 in · 1 out · up to \$0\.53 ─")
        await stage.press("f4")
        await stage.expect(r"up to \$0\.53 spent[\s\S]*idle .* \$0\.53")

    model = Hanging("So it begins", Spent(Usage(20, 1), "tea-1"))
    with open_memory(model, prices=tmp_path / "prices.toml") as system:
        on_stage(system, play, size=(120, 24))
        assert system.root.record.spent_usd == 532_000


@pytest.mark.slow("takes a tenth of a second")
def test_an_attached_shell_tells_the_same_as_the_host(new_sqlite: NewDatabase) -> None:
    database = new_sqlite()
    with ActorSystem.open(database, provider(400, 50)) as host, AttachedSystem.open(database) as attached:
        host.root.prompt("one").get(timeout=DEADLINE)

        async def play(stage: Stage) -> None:
            await stage.expect("400 in · 1 out")
            host.root.fork("two", name="buyer").reply(timeout=DEADLINE)
            await stage.expect("400 in · 1 out")

        on_stage(attached, play)


@pytest.mark.parametrize("heard", ["before", "between", "after"])
def test_a_message_counts_once_however_it_is_learnt(database: str, heard: str) -> None:
    with ActorSystem.open(database, provider(400, 50, 7)) as system:
        system.root.prompt("one").get(timeout=DEADLINE)
        child = system.root.fork("two")
        child.reply(timeout=DEADLINE)
        spent, messages = Expenses(), [*system.root.history(), *child.history()]
        assert spent.sums(child.uuid) is None
        for time in ("before", "between", "after"):
            for message in messages if time == heard else ():
                spent.hear(message)
            if time != "after":
                spent.read(system._store)
        sums = spent.sums(child.uuid)
        assert sums is not None
        assert (in_all(sums.own), in_all(sums.everybody)) == (Usage(50, 1), Usage(450, 2))
        child.prompt("three").get(timeout=DEADLINE)
        for message in child.history():
            spent.hear(message)
        sums = spent.sums(child.uuid)
        assert sums is not None
        assert (in_all(sums.own), in_all(sums.everybody)) == (Usage(57, 2), Usage(457, 3))
        assert {message.kind for message in messages} >= {Kind.USER, Kind.ASSISTANT}


def test_what_a_reply_that_broke_off_has_cost_is_counted_with_the_one_that_followed(database: str) -> None:
    broken = ProviderError("The connection broke.", broke_off=True)
    cut = Stream((Delta(spent=Spent(Usage(300, 1), "tea-1")), "Hel"), then=broken)
    whole = Reply("Hello", usage=Usage(300, 4))
    with ActorSystem.open(database, ScriptedProvider([cut, whole])) as system:
        system.root.prompt("one").get(timeout=DEADLINE)
        spent = Expenses()
        spent.read(system._store)
        sums = spent.sums(system.root.uuid)
        assert sums is not None
        assert in_all(sums.own) == Usage(600, 5)
        assert sums.own["tea-1"] == Usage(300, 1)
