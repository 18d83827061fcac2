"""Pages of agents: what comes while nobody looks, what the store does not give, more pages than are kept."""

import re

import pytest

from ikigai_actors import AgentRef, Message, Signal
from ikigai_actors.errors import StoreUnavailable
from ikigai_actors.shell.app.screens.main import PAGES
from ikigai_actors.store import open_store
from tests.kit.app_pilot import Stage, on_stage, open_memory
from tests.kit.blocking_provider import Gate
from tests.kit.databases import eventually
from tests.kit.faults import FaultyStore
from tests.kit.open_on import open_on

pytestmark = pytest.mark.slow("every page of the application")


async def go(stage: Stage, agent: AgentRef) -> None:
    """Go to an agent, by a way that reads nothing."""
    stage.application.visit(agent.uuid)
    await stage.until(lambda: stage.current == agent.uuid)


def mark(agent: AgentRef, *numbers: int) -> None:
    for future in [agent.aio.mark(f"m{number}") for number in numbers]:
        future.get(timeout=60)


def heard(stage: Stage, agent: AgentRef) -> int:
    """The position of the latest message that waits for the page of an agent out of sight."""
    events = stage.application.events._events.get(agent.uuid, ())
    return max((event.id for event in events if isinstance(event, Message)), default=0)


def marks(stage: Stage) -> list[int]:
    """The marks that are shown."""
    return [int(number) for number in re.findall(r"mark 'm(\d+)'", stage.transcript)]


@pytest.mark.thorough("a second play of the pages")
@pytest.mark.sample(1, "hundreds of lines on a screen")
@pytest.mark.parametrize("scrolled_up", [False, True])
@pytest.mark.parametrize("many", [560, 800])
def test_what_comes_while_nobody_looks_is_read_however_much_it_is(many: int, scrolled_up: bool) -> None:
    async def play(stage: Stage) -> None:
        await go(stage, kid)
        await stage.expect("m39")
        transcript = stage.application.main.page.transcript
        if scrolled_up:
            transcript.scroll_to(y=5, animate=False, immediate=True)
            await stage.until(lambda: marks(stage)[0] == 0)
        place = transcript.scroll_y
        await go(stage, stage.system.root)
        mark(kid, *range(40, many))
        await go(stage, kid)
        await stage.until(lambda: transcript.head == kid.history()[-1].id and marks(stage)[-1:] == [many - 1])
        assert marks(stage) == list(range(marks(stage)[0], many))
        assert transcript.following is not scrolled_up
        if scrolled_up:
            assert (marks(stage)[0], transcript.scroll_y) == (0, place)

    with open_memory() as system:
        kid = system.root.fork(name="kid")
        mark(kid, *range(40))
        system._touch(system.root)
        on_stage(system, play)


@pytest.mark.thorough("a second play of the pages")
@pytest.mark.sample(1, "the same hole, met in two ways")
@pytest.mark.parametrize("by", ["coming back", "what it says"])
def test_a_hole_that_the_store_does_not_fill_is_filled_when_it_is_back(by: str) -> None:
    async def play(stage: Stage) -> None:
        await go(stage, kid)
        await stage.expect("m0")
        await go(stage, stage.system.root)
        mark(kid, *range(1, 520))
        eventually(lambda: heard(stage, kid) == kid.history()[-1].id, "all")  # or none is dropped
        store.unreadable = StoreUnavailable("down, as planned")
        await go(stage, kid)
        await stage.expect("error: down, as planned")
        store.unreadable = None
        if by == "coming back":
            await go(stage, stage.system.root)
            await go(stage, kid)
        else:
            mark(kid, 520)
        await stage.until(lambda: marks(stage)[-1:] == [519 + (by != "coming back")])
        assert marks(stage) == list(range(marks(stage)[0], marks(stage)[-1] + 1))

    store = FaultyStore(open_store("sqlite:///:memory:"))
    with open_on(store, lambda _: "done") as system:
        kid = system.root.fork(name="kid")
        mark(kid, 0)
        system._touch(system.root)
        on_stage(system, play)


@pytest.mark.thorough("dozens of pages; a page that comes back is shown by the others")
def test_pages_beyond_those_that_are_kept_are_made_anew() -> None:
    gate = Gate()

    async def play(stage: Stage) -> None:
        root, main = stage.system.root, stage.application.main
        await stage.say("one")
        await stage.expect("› one")
        await stage.say("/wait 60")
        await stage.until(lambda: stage.application._serial.doing)
        for kid in kids:
            main.visit(kid.uuid)
        await stage.expect(rf"[─▸] kid-{PAGES} ─")
        assert root.uuid not in main._pages
        root.signal(Signal.INT)
        stage.system.send(root, "enough")
        await stage.until(lambda: not root.record.turn and stage.application._serial.doing is None)
        stage.application.give_up(root.uuid, "one", refused=False)  # of an agent without a page nothing is told
        await stage.pilot.pause(0)
        for agent in (kids[0], root, kids[1], kids[0]):  # each is made anew while it is still taken away
            main.visit(agent.uuid)
        await stage.expect(r"[─▸] kid-0 ─")
        await go(stage, root)
        await stage.expect(r"› one[\s\S]*\[interrupted\]")
        await stage.say("two")
        await stage.expect("› two")
        gate.open()
        await stage.expect("done")

    with open_memory(gate.provider) as system:
        kids = [system.root.fork(name=f"kid-{number}") for number in range(PAGES + 1)]
        system._touch(system.root)
        on_stage(system, play)


@pytest.mark.thorough("a rare order of events")
def test_a_fork_that_had_to_wait_moves_nobody_who_has_gone_elsewhere() -> None:
    gate = Gate()

    async def play(stage: Stage) -> None:
        await stage.say("go")
        await stage.expect("› go")
        await stage.say("/fork --name late")
        await stage.expect("the fork waits for the next step boundary")
        await stage.press("ctrl+down")
        await stage.expect(r"[─▸] kid ─")
        gate.open()
        await stage.until(lambda: len(stage.system.agents()) == 3)
        await stage.press("f3")
        await stage.expect("─ ○ late")
        assert stage.current == stage.system.agent("kid").uuid

    with open_memory(gate.provider) as system:
        system.root.fork(name="kid")
        system._touch(system.root)
        on_stage(system, play)


@pytest.mark.thorough("a second page")
def test_what_the_person_should_know_stands_below_a_history_that_is_read_first() -> None:
    async def play(stage: Stage) -> None:
        await stage.expect(r"mark 'm99'[\s\S]*Mind the gap\.")
        kid.kill(reason="of old age")
        await stage.expect(r"mark 'm49'[\s\S]*kid is dead \(of old age\)")

    with open_memory() as system:
        heir = system.root.fork(name="heir")
        kid = heir.fork(name="kid")
        mark(heir, *range(50))
        mark(kid, *range(50, 100))
        system._touch(kid)
        on_stage(system, play, notices=["Mind the gap."])
