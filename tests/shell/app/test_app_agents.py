"""The agents on the screen: the tree beside the talk, and the screen of agents; what their keys do."""

from pathlib import Path

import pytest
from textual.widgets import TextArea

from ikigai_actors import ActorSystem, FunctionProvider, OfflineProvider, Reply, Request, Signal, Usage
from tests.kit.app_pilot import Stage, on_stage, open_memory
from tests.kit.blocking_provider import DEADLINE, Gate

pytestmark = pytest.mark.slow("screens of the application")


def crew(provider: object = None, prices: Path | None = None) -> ActorSystem:
    system = ActorSystem.open("sqlite:///:memory:", provider or OfflineProvider(), prices=prices)  # type: ignore[arg-type]
    for name in ("buyer", "seller"):
        system.root.fork(name=name)
    system.agent("seller").fork(name="clerk")
    system._touch(system.root)
    return system


def row(stage: Stage, number: int) -> str:
    """A row of the screen of agents."""
    return stage.text.split("\n")[3 + number].strip()


def test_the_tree_shows_everybody_live_and_choosing_one_goes_there() -> None:
    gate = Gate()

    async def play(stage: Stage) -> None:
        await stage.press("f3")
        await stage.expect(r"├─ ○ buyer")
        await stage.expect(r"   └─ ○ clerk")
        stage.system.agent("buyer").prompt("work")
        await stage.expect(r"├─ ◐ buyer")
        stage.system.send("buyer", "hello")
        await stage.expect(r"buyer  1 mail")
        gate.open()
        await stage.expect(r"├─ ○ buyer")
        stage.system.agent("buyer").fork(name="new-one")
        await stage.expect("new-one")
        await stage.press("down", "enter")
        await stage.until(lambda: stage.current == stage.system.agent("buyer").uuid)
        await stage.expect(r"○ buyer ‹")
        assert isinstance(stage.application.focused, TextArea)
        await stage.press("f3")
        await stage.expect_gone(r"├─")

    with crew(gate.provider) as system:
        on_stage(system, play)


@pytest.mark.thorough("a second play of the tree")
def test_the_tree_beside_the_talk_takes_orders_by_alt_and_leaves_letters_to_the_prompt() -> None:
    async def play(stage: Stage) -> None:
        await stage.press("f3")
        await stage.expect("clerk")
        await stage.press("end", "left", "left")  # to the agent above, and fold that
        await stage.expect(r"○ seller ▸ 1\b")
        await stage.expect_gone("○ clerk")
        await stage.press("right")
        await stage.expect("clerk")
        await stage.press("ctrl+f")
        await stage.type("lerk")
        await stage.expect_gone("○ buyer")
        await stage.expect("clerk")
        await stage.press("enter", "alt+s")  # the filter stays, with the cursor at the first agent that it has found
        await stage.expect(r"‖ clerk")
        await stage.press("escape")
        await stage.expect("○ buyer")
        await stage.type("kill sellers")  # beside the talk, letters are text, however fast
        assert stage.application.main.page.prompt.text == "kill sellers"

    with crew() as system:
        on_stage(system, play)
        assert system.agent("clerk").record.status == "stopped"
        assert all(system.agent(name).record.living for name in ("buyer", "seller"))


@pytest.mark.thorough("a second play of the tree")
def test_the_tree_that_covers_the_talk_takes_letters() -> None:
    async def play(stage: Stage) -> None:
        await stage.press("f3")
        await stage.expect("clerk")
        await stage.press("end", "s")
        await stage.expect(r"‖ clerk")
        await stage.press("slash")
        await stage.type("key")  # however fast: no letter of a filter is an order to kill
        await stage.until(lambda: "/key" in stage.text.replace(" ", ""), "the filter")
        await stage.press("escape", "escape")
        await stage.type("to the prompt")
        assert stage.application.main.page.prompt.text == "to the prompt"

    with crew() as system:
        on_stage(system, play, size=(50, 20))
        assert system.agent("clerk").record.status == "stopped"


@pytest.mark.thorough("the tree by mouse; by keys it is in every run")
def test_the_tree_shows_who_is_stopped_or_dead_and_a_click_goes_there() -> None:
    async def play(stage: Stage) -> None:
        await stage.press("f3")
        await stage.expect("├─ ‖ paused")
        await stage.expect("└─ × late")
        await stage.expect("   └─ ○ orphan")
        place = next(number for number, line in enumerate(stage.text.split("\n")) if "‖ paused" in line)
        await stage.pilot.click("#tree", offset=(8, place))
        await stage.until(lambda: stage.current == stage.system.agent("paused").uuid)
        assert isinstance(stage.application.focused, TextArea)

    with open_memory() as system:
        system.root.fork(name="paused").signal(Signal.STOP)
        late = system.root.fork(name="late", on_orphan="continue")
        late.fork(name="orphan")
        late.kill()
        system._touch(system.root)
        on_stage(system, play)


@pytest.mark.thorough("another play of the list; its keys are in every run")
def test_the_agents_are_sorted_filtered_and_opened() -> None:
    async def play(stage: Stage) -> None:
        await stage.press("f4")
        await stage.expect(r"4 agents[\s\S]*state ▾[\s\S]*seller +idle")
        await stage.press("greater_than_sign", "greater_than_sign", "greater_than_sign")
        await stage.until(lambda: "mail ▾" in stage.text and row(stage, 0).startswith("○ clerk"))
        await stage.press("r")
        await stage.until(lambda: "mail ▴" in stage.text and row(stage, 3).startswith("○ clerk"))
        await stage.press("slash")
        await stage.type("seller")
        await stage.until(lambda: row(stage, 0).startswith("○ seller") and not row(stage, 1))
        await stage.press("enter", "enter")
        await stage.until(lambda: stage.current == stage.system.agent("seller").uuid)
        assert stage.application.screen is stage.application.main

    with crew() as system:
        system.send("clerk", "hello")
        on_stage(system, play)


@pytest.mark.thorough("a second play of the tree")
def test_keys_act_on_the_row_and_on_those_that_are_marked_and_killing_asks_first() -> None:
    async def play(stage: Stage) -> None:
        system = stage.system
        system.root.rename("zoe")  # the last by name: its two words are chance
        await stage.press("f4", "less_than_sign")
        await stage.until(lambda: "agent ▾" in stage.text and row(stage, 0).startswith("○ buyer"))
        await stage.press("home", "s")  # the cursor has followed its row
        await stage.until(lambda: row(stage, 0).startswith("‖ buyer"))
        await stage.press("c")
        await stage.until(lambda: row(stage, 0).startswith("○ buyer"))
        await stage.press("p")
        await stage.expect("buyer ›")
        await stage.type("hello")
        await stage.press("enter")
        await stage.until(lambda: system.agent("buyer").record.spent_tokens)
        await stage.press("k")
        await stage.expect(r"Kill buyer\?  y kill  n keep")
        await stage.press("x", "n")
        await stage.expect_gone("Kill buyer")
        place = next(number for number in range(4) if "seller" in row(stage, number))
        await stage.press("home", *["down"] * place, "k")
        await stage.expect(r"Kill seller and 1 below\?  y all  o only it  n keep")
        await stage.press("escape")
        await stage.expect_gone("Kill seller")
        await stage.press("space", "home", "space", "k")
        await stage.expect(r"Kill 2 agents and 1 below\?")
        await stage.press("o")
        await stage.until(lambda: "buyer" not in stage.text and "seller" not in stage.text)
        assert system.agent("clerk").record.living
        await stage.press("k", "y")  # the one at the cursor now
        await stage.until(lambda: len([record for record in system.agents() if record.living]) == 1)

    with crew() as system:
        on_stage(system, play)


@pytest.mark.thorough("two more columns of the table")
def test_agents_show_what_was_restarted_and_what_whole_branches_have_spent(tmp_path: Path) -> None:
    def reply(request: Request) -> Reply:
        if request.name == "leaf" and failures:
            raise LookupError(failures.pop())
        return Reply("ok", usage=Usage(0, 30), model="tea-1")

    async def play(stage: Stage) -> None:
        await stage.press("f4")
        await stage.expect(r"\$0\.090? of \$5\.00 [━─]")
        await stage.expect(r"boss +idle .* 30 +\$0\.030\b")
        await stage.expect(r"leaf +idle .*\$0\.030 +1\b")
        await stage.press("b")
        await stage.expect(r"Σ tokens +Σ cost[\s\S]*boss .* \$0\.090\b")

    failures = ["stumbles"]
    location, provider = f"sqlite:///{tmp_path / 'team.db'}", FunctionProvider(reply, "code")
    (tmp_path / "prices.toml").write_text("[tea]\ninput = 0\noutput = 1000\n")
    with ActorSystem.open(location, provider, prices=tmp_path / "prices.toml", budget={"usd": 5}) as system:
        boss = system.root.fork("go", name="boss")
        gone = boss.fork("go")
        leaf = gone.fork("go", name="leaf")
        for agent in (boss, gone, leaf):
            agent.reply(timeout=DEADLINE)
        gone.kill()
    with ActorSystem.open(location, provider) as system:  # the figures go on over a restart
        on_stage(system, play, size=(100, 20))
