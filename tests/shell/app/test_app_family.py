"""Going from agent to agent: forks, keys, deaths, and what is kept meanwhile."""

import asyncio

import pytest

from ikigai_actors import ActorSystem, ScriptedProvider
from ikigai_actors.records.lives.deaths import WriteDeath
from tests.kit.app_pilot import Stage, on_stage, open_memory, short
from tests.kit.blocking_provider import DEADLINE, Hanging

pytestmark = pytest.mark.slow("the application, key by key")


@pytest.mark.thorough("a second way to a fork")
def test_a_fork_goes_to_the_child_which_shows_what_it_inherited() -> None:
    async def play(stage: Stage) -> None:
        await stage.say("first")
        await stage.expect("You said “first”")
        await stage.say("/fork --name buyer")
        await stage.expect(r"[─▸] buyer ─")
        await stage.expect(rf"inherited: 2 messages from {short(stage.system.root)}")
        assert "› first" in stage.text
        assert f"^↑ {short(stage.system.root)}" in stage.text
        await stage.press("ctrl+up")
        await stage.expect(rf"─ {short(stage.system.root)} ─[\s\S]*\^↓ 1 below")
        await stage.expect("forked buyer")

    with open_memory() as system:
        on_stage(system, play)


@pytest.mark.thorough("the other choice after a fork")
def test_without_following_a_fork_stays_with_the_parent() -> None:
    async def play(stage: Stage) -> None:
        await stage.say("/fork --name buyer")
        await stage.expect("1 below")
        assert stage.current == stage.system.root.uuid

    with open_memory() as system:
        on_stage(system, play, follow=False)


@pytest.mark.thorough("another play of the family; a fork and a switch in mid-answer are in every run")
def test_the_arrows_with_ctrl_or_alt_go_around_the_family() -> None:
    async def play(stage: Stage) -> None:
        for key, name in [
            ("ctrl+down", "third"), ("ctrl+right", "first"), ("alt+right", "second"), ("ctrl+left", "first"),
            ("alt+left", "third"), ("ctrl+up", short(root)), ("alt+down", "third"), ("alt+up", short(root)),
        ]:  # fmt: skip
            await stage.press(key)
            await stage.expect(rf"[─▸] {name} ─")
        await stage.press("ctrl+up")
        await stage.expect("This is agent 0")
        await stage.press("ctrl+left")
        await stage.expect("no living sibling")

    with open_memory() as system:
        root = system.root
        for name in ("first", "second", "third"):
            root.fork(name=name)
        on_stage(system, play)


@pytest.mark.thorough("another play of the family; a fork and a switch in mid-answer are in every run")
def test_text_cursor_and_scroll_position_are_kept_for_each_agent() -> None:
    async def play(stage: Stage) -> None:
        await stage.expect("line 59")
        await stage.type("half a thou")
        await stage.press("left", "pageup", "pageup")
        transcript = stage.application.main.page.transcript
        await stage.until(lambda: not transcript.following)
        place = transcript.scroll_offset
        await stage.press("ctrl+down")
        await stage.expect(r"[─▸] kid ─")
        await stage.type("another")
        await stage.press("ctrl+up")
        await stage.expect(rf"[─▸] {short(stage.system.root)} ─")
        prompt = stage.application.main.page.prompt
        assert prompt.text == "half a thou"
        assert prompt.cursor_location == (0, len("half a tho"))
        assert stage.application.main.page.transcript.scroll_offset == place
        await stage.press("ctrl+down")
        await stage.expect("another")

    script = ScriptedProvider(["\n".join(f"- line {number}" for number in range(60))])
    with open_memory(script) as system:
        system.root.prompt("many lines").get(timeout=60)
        system.root.fork(name="kid")
        system._touch(system.root)
        on_stage(system, play)


@pytest.mark.thorough("a second play of the family")
def test_a_switch_in_the_middle_of_an_answer_loses_no_piece() -> None:
    text = "So it began, and it went on"

    async def play(stage: Stage) -> None:
        await stage.press("ctrl+down")
        await stage.expect(r"[─▸] kid ─")
        await stage.expect(text)
        await stage.press("ctrl+up")
        await stage.expect(rf"[─▸] {short(stage.system.root)} ─")
        await stage.press("ctrl+down")
        await stage.expect(text)
        assert stage.text.count(text) == 1

    hanging = Hanging(text)
    with open_memory(hanging) as system:
        kid = system.root.fork(name="kid")
        system._touch(system.root)

        async def begin(stage: Stage) -> None:
            kid.prompt("go")
            hanging.wait_until_asked()
            await play(stage)

        on_stage(system, begin)


@pytest.mark.thorough("another play of the family; a fork and a switch in mid-answer are in every run")
def test_a_page_that_is_painted_before_it_has_a_place_shows_its_text_and_all_that_is_typed() -> None:
    async def play(stage: Stage) -> None:
        main = stage.application.main
        with stage.application._context():
            main.visit(kid.uuid)
        while not main.page.transcript.region:
            await asyncio.sleep(0)
            # as a repaint does that comes before the layout
            main._compositor.update_widgets({main.page.transcript, main.page.prompt})
        await stage.expect("You said “go”")
        await stage.type("word " * 20 + "lastword")
        await stage.expect("lastword")

    with open_memory() as system:
        kid = system.root.fork(name="kid")
        kid.prompt("go").get(timeout=DEADLINE)
        system._touch(system.root)
        on_stage(system, play)


@pytest.mark.thorough("a second play of the family")
def test_the_death_of_the_current_agent_goes_to_the_nearest_living_ancestor() -> None:
    async def play(stage: Stage) -> None:
        await stage.expect(r"[─▸] kid ─")
        bury(system, "parent")
        bury(system, "kid")
        await stage.expect(rf"[─▸] {short(stage.system.root)} ─")
        await stage.expect(r"kid is dead \(of old age\)")
        await stage.say(f"/switch {kid.uuid}")
        await stage.expect(r"× dead[\s\S]*[─▸] kid ─")  # by intent: there one stays

    with open_memory() as system:
        kid = system.root.fork(name="parent").fork(name="kid")
        system._touch(kid)
        on_stage(system, play)


def bury(system: ActorSystem, name: str) -> None:
    """End an agent as the registry sees it, whatever the cause."""
    agent = system.agent(name)
    unit = WriteDeath(agent.uuid, system._runtime.host.id, "of old age", 1)
    system._runtime.journal.perform(unit)
