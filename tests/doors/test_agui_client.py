"""The official client of AG-UI takes what the door sends, and does what `tests/kit/agui.py` says that it does."""

import asyncio
import json
import random
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from ikigai_actors import ActorSystem, Reply, ToolCall
from tests.doors.test_agui import SCENES, TOKEN, Browser, launch, play, play_a_lost_host
from tests.kit.agui import CLOSES, GOES_ON, OPENS, Refused, Shown, Verifier
from tests.kit.blocking_provider import DEADLINE, Speaker
from tests.kit.npm import installed

pytestmark = pytest.mark.slow("installs a package of npm, and starts node")

SCRIPT = Path(__file__).parents[1] / "kit" / "agui_client.mjs"

Run = Mapping[str, Any]
"""Messages that a client has, and the events that come."""


@pytest.fixture(scope="module")
def package(request: pytest.FixtureRequest) -> Path:
    cache = request.config.cache
    assert cache is not None
    return installed("@ag-ui/client@1.0.0", cache)


def judged(package: Path, runs: Sequence[Run]) -> list[dict[str, Any]]:
    """What the official client makes of each run."""
    lines = "".join(json.dumps(run) + "\n" for run in runs)
    command = ["node", str(SCRIPT), str(package), "judge"]
    done = subprocess.run(command, input=lines, capture_output=True, text=True, timeout=DEADLINE, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def judged_here(run: Run) -> tuple[int | None, Shown]:
    """What the port of it makes of a run: the event that it refuses, and what is shown before that."""
    verifier, shown = Verifier(), Shown(json.loads(json.dumps(run["messages"])))
    for place, event in enumerate(run["events"]):
        try:
            verifier.take(event)
        except Refused:
            return place, shown
        shown.take(event)
    return None, shown


@pytest.mark.thorough("runs the official client in Node.js; the port of its rules judges in each run")
def test_the_official_client_takes_what_the_door_sends(package: Path, new_sqlite: Callable[[], str]) -> None:
    runs: list[Run] = []
    for scene in SCENES:
        speaker = Speaker()

        async def played(host: ActorSystem, browser: Browser, scene: Any = scene, speaker: Any = speaker) -> None:
            await scene(host, browser, speaker)
            runs.extend(browser.runs)

        play(new_sqlite(), played, speaker, tools=[launch], approvals="ask")
    play_a_lost_host(new_sqlite(), lambda browser: runs.extend(browser.runs))
    for run, outcome in zip(runs, judged(package, runs), strict=True):
        at, shown = judged_here(run)
        last = len(run["events"]) - 1
        if run["events"][last]["type"] == "RUN_FINISHED":  # else its client went away
            assert (outcome["at"], outcome["warnings"], at) == (None, [], None)
            assert outcome["messages"] == shown.messages


FIELDS: Mapping[str, Mapping[str, Any]] = {
    "RUN_STARTED": {"threadId": "t", "runId": "r"},
    "RUN_FINISHED": {"threadId": "t", "runId": "r"},
    "RUN_ERROR": {"message": "no"},
    "TEXT_MESSAGE_START": {"role": "assistant"},
    "TEXT_MESSAGE_CONTENT": {"delta": "x"},
    "TOOL_CALL_START": {"toolCallName": "launch"},
    "TOOL_CALL_ARGS": {"delta": "{}"},
    "TOOL_CALL_RESULT": {"content": "done", "role": "tool"},
    "REASONING_MESSAGE_START": {"role": "reasoning"},
    "REASONING_MESSAGE_CONTENT": {"delta": "x"},
}


def made_up(chance: random.Random) -> Run:
    """A run that mostly keeps the rules, and often breaks one."""
    events: list[dict[str, Any]] = [{"type": "RUN_STARTED", **FIELDS["RUN_STARTED"]}] if chance.random() < 0.95 else []
    opened: list[tuple[str, str]] = []
    by_what = {what: kind for kind, (what, _) in CLOSES.items()}
    for _ in range(chance.randint(1, 12)):
        if opened and chance.random() < 0.5:
            what, name = opened[-1] if chance.random() < 0.9 else chance.choice(opened)
            kind = by_what[what] if chance.random() < 0.6 else chance.choice([*OPENS, *GOES_ON])
            opened = [part for part in opened if part != (what, name)] if kind in CLOSES else opened
        else:
            kind = chance.choice([*OPENS, "TOOL_CALL_RESULT", "TEXT_MESSAGE_START", "TOOL_CALL_START"])
            name = chance.choice("xyz" if kind.startswith("REASONING") else "abc")
            opened += [(OPENS[kind][0], name)] if kind in OPENS else []
        field = {**OPENS, **GOES_ON, **CLOSES}.get(kind, ("", "toolCallId"))[1]
        more = {"messageId": f"result {name}"} if kind == "TOOL_CALL_RESULT" else {}
        more |= {"parentMessageId": chance.choice("abc")} if kind == "TOOL_CALL_START" else {}
        events.append({"type": kind, field: name, **FIELDS.get(kind, {}), **more})
        if chance.random() < 0.05:
            kind = chance.choice(["RUN_STARTED", "RUN_FINISHED", "RUN_ERROR"])
            events.append({"type": kind, **FIELDS[kind]})
    for what, name in reversed(opened) if chance.random() < 0.7 else ():
        kind = by_what[what]
        events.append({"type": kind, CLOSES[kind][1]: name})
    return {"messages": [], "events": [*events, {"type": "RUN_FINISHED", **FIELDS["RUN_FINISHED"]}]}


@pytest.mark.thorough("the official client")
def test_the_port_refuses_and_shows_what_the_official_client_does(package: Path) -> None:
    runs = [made_up(random.Random(seed)) for seed in range(1500)]
    refused = 0
    for run, outcome in zip(runs, judged(package, runs), strict=True):
        at, shown = judged_here(run)
        assert (outcome["at"], run) == (at, run)
        refused += at is not None
        if at is None:
            assert ([message for message in outcome["messages"] if message["role"] != "reasoning"], run) == (
                shown.messages,
                run,
            )
    assert 300 < refused < 1200


async def talked(package: Path, browser: Browser, steps: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The messages that an agent of the official client shows after some steps."""
    command = ["node", str(SCRIPT), str(package), "talk", f"{browser.url}/agui/kid", json.dumps(steps), TOKEN]
    process = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE)
    output, _ = await asyncio.wait_for(process.communicate(), DEADLINE)
    answer = json.loads(output)
    assert answer["warnings"] == []
    return [dict(message) for message in answer["messages"]]


@pytest.mark.thorough("the official client")
def test_an_agent_of_the_official_client_prompts_and_decides(package: Path, new_sqlite: Callable[[], str]) -> None:
    speaker = Speaker()

    async def scene(host: ActorSystem, browser: Browser) -> None:
        host.root.fork(name="kid")
        steps: list[Mapping[str, Any]] = [{"say": "tea"}, {"say": "launch it"}, {"decide": True}, {"say": "thanks"}]
        talking = asyncio.ensure_future(talked(package, browser, steps))
        call = ToolCall("launch", {"what": "tea"}, "call_0")
        await asyncio.to_thread(speaker.say, "tea ", "is ready", None, "I look. ", Reply(tool_calls=(call,)))
        speaker.say("it flies", None, "welcome", None)
        shown = await talking
        assert [message.get("content", "") for message in shown] == [
            "tea", "tea is ready", "launch it", "I look. ", "launched tea", "it flies", "thanks", "welcome"
        ]  # fmt: skip

    play(new_sqlite(), scene, speaker, tools=[launch], approvals="ask")
