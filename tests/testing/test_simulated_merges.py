"""Merges in a simulation: once or not at all, at whichever commit the process ends."""

import pytest

from ikigai_actors import Reply, Request, ScriptedProvider, ToolCall
from ikigai_actors.providers.base import REPORT
from ikigai_actors.records.fsck.check import check
from ikigai_actors.testing import CrashPoint, ProcessCrashed, simulated

pytestmark = pytest.mark.slow("dozens of simulated hosts")


def answer(request: Request) -> Reply:
    """A call of ``merge`` for the prompt that asks for it, then words; notes for who asks for them."""
    texts = [block["text"] for block in request.messages[-1]["content"] if block["type"] == "text"]
    if texts and texts[-1].startswith(REPORT):
        return Reply("it dug")
    if texts and texts[-1].startswith("merge "):
        how = texts[-1].removeprefix("merge ")
        return Reply("", (ToolCall("merge", {"agent": "kid", "how": how}, "1"),), "tool_use")
    return Reply("done")


@pytest.mark.parametrize("how", ["result", "summary"])
@pytest.mark.parametrize("committed", [False, True])
def test_a_merge_of_a_model_happens_once_at_whichever_commit_the_process_ends(how: str, committed: bool) -> None:
    for commit in range(1, 20):
        with simulated() as world:
            root = world.open(ScriptedProvider(answer)).root
            root.fork("dig", name="kid").reply()
            world.settle()
            world.crash_at(CrashPoint(commit, committed))
            crashed = False
            try:
                root.prompt(f"merge {how}")
                world.settle()
            except ProcessCrashed:
                crashed = True
                world.recover()
                world.system.root.resume()
                world.settle()
            root = world.system.root
            merges = [one.content for one in root.history() if one.kind == "merge"]
            if crashed and not any(one.kind == "user" for one in root.history()):
                assert merges == []  # it ended before the prompt was there
            else:
                assert merges == ["it dug" if how == "summary" else "done"]
                assert root.reply().text == "done"
            assert check(world.process.looked_at) == []
            if not crashed:
                return
    raise AssertionError("It never came to rest.")
