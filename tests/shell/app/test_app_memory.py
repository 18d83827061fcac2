"""A talk that is longer than its model's window, on the screen: what comes of it, and what is still known."""

import re
from pathlib import Path

import pytest

from ikigai_actors import OfflineProvider, tool
from ikigai_actors.records.fsck.check import check
from tests.kit.app_pilot import Stage, on_stage, open_memory
from tests.kit.scenes import same

KEPT = Path(__file__).parent / "screens" / "four_windows.txt"


@tool(idempotent=True, policy="allow")
def look() -> str:
    """Look around the tea house."""
    return "leaves and stones; " * 100


@pytest.mark.thorough("a window is filled four times")
def test_who_talks_past_its_window_four_times_still_knows_the_fact_of_the_first_prompt(
    request: pytest.FixtureRequest,
) -> None:
    transcript = ""

    async def play(stage: Stage) -> None:
        nonlocal transcript
        root = stage.system.root

        async def asks(prompt: str) -> None:
            before = len(root.history(all=True))
            await stage.say(prompt)
            await stage.until(lambda: len(root.history(all=True)) > before and root.history()[-1].kind == "assistant")

        for line, shown in (("/set context_window 2500", "window = 2500"), ('/set tools ["look"]', r"tools = \['look")):
            await stage.say(line)
            await stage.expect(shown)
        await stage.say("The key lies under the third stone.")
        await stage.expect("You said “The key lies under the third stone.”")
        while [message.kind for message in root.history(all=True)].count("summary") < 4:
            await asks("@look")
        await stage.say("Where is the key?")
        await stage.expect(r"I remember \d+ prompts; before it came “The key lies")
        transcript = re.sub(r"look gave: (?:.+\n)+", "look gave: …\n", same(stage.system, stage.transcript)) + "\n"

    with open_memory(OfflineProvider(), tools=[look]) as system:
        on_stage(system, play, (100, 40))
        summaries = [message for message in system.root.history(all=True) if message.kind == "summary"]
        assert [(summary.data["how"], summary.data["by"]) for summary in summaries] == [("model", "auto")] * 4
        assert all("The key lies under the third stone." in summary.content for summary in summaries)
        assert max(summary.data["before"] for summary in summaries) > 0.7 * 2500
        assert check(system._store) == []
    if request.config.getoption("--new-screens"):
        KEPT.write_text(transcript, encoding="utf-8")
    assert transcript == KEPT.read_text(encoding="utf-8")
