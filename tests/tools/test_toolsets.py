"""Toolsets live as long as the system, know which agents are gone, and fail at open without leaving anything."""

import asyncio
import json
import signal
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from ikigai_actors import ActorSystem, BadInput, Reply, Request, ScriptedProvider
from ikigai_actors.agent.subscriptions import Event, ToolTrouble
from ikigai_actors.records.mail.mail import PROMPT, Send
from ikigai_actors.store.hosts.rows import open_hosts
from ikigai_actors.store.unit import write_alone
from ikigai_actors.system.host.rebalancer import BALANCE
from ikigai_actors.testing import CrashPoint, ProcessCrashed, Simulation, simulated
from ikigai_actors.testing.simulation.store import Undisturbed
from ikigai_actors.tools.base import Tell, Toolset
from ikigai_actors.tools.function import Result, Tool, tool
from ikigai_actors.tools.policy import ToolTraits
from tests.kit.blocking_provider import DEADLINE
from tests.kit.tool_scripts import calling, requests_of, results


class Recorder(Toolset):
    """Writes down what is done with it."""

    name = "recorder"

    def __init__(self, fails: bool = False) -> None:
        self.did: list[str] = []
        self.left = threading.Event()
        self._fails = fails
        self.tell: Tell = print

    async def open(self, tell: Tell) -> Sequence[Tool]:
        if self._fails:
            raise BadInput("This one cannot be opened.")
        self.did.append("open")
        self.tell = tell

        @tool
        def recorded() -> str:
            return "from the set"

        return [recorded]

    async def leave(self, agent: str) -> None:
        self.did.append(f"leave {agent}")
        self.left.set()

    async def close(self) -> None:
        self.did.append("close")


def test_a_toolset_lives_as_long_as_the_system_and_its_tools_are_called() -> None:
    recorder, script = Recorder(), ScriptedProvider([calling("recorded"), "done"])
    with ActorSystem.open(":memory:", provider=script, tools=[recorder]) as system:
        assert system.root.prompt("go").get(timeout=DEADLINE).text == "done"
        [result] = results(requests_of(script, None)[1])
        assert result.content == "from the set"
        assert recorder.did == ["open"]
    assert recorder.did == ["open", "close"]


def test_a_toolset_hears_which_agent_is_gone() -> None:
    recorder = Recorder()
    with ActorSystem.open(":memory:", provider=ScriptedProvider([]), tools=[recorder]) as system:
        child = system.root.fork()
        system._actor(child.uuid).stop()
        assert recorder.left.wait(DEADLINE)
        assert recorder.did == ["open", f"leave {child.uuid}"]


def test_what_a_toolset_tells_reaches_subscribers() -> None:
    recorder, heard = Recorder(), threading.Event()
    events: list[Event] = []

    def hear(event: Event) -> None:
        events.append(event)
        heard.set()

    with ActorSystem.open(":memory:", provider=ScriptedProvider([]), tools=[recorder]) as system:
        system.subscribe(hear)
        recorder.tell("its server is gone")
        assert heard.wait(DEADLINE)
    assert events == [ToolTrouble("recorder", "its server is gone")]


class Foreign(Tool):
    """A tool with any name and schema, which gives back its arguments."""

    name = ""
    timeout = DEADLINE
    traits = ToolTraits()
    is_async = False

    def __init__(self, name: str, schema: object) -> None:
        self.name, self._schema = name, schema

    def describe(self) -> Mapping[str, Any]:
        return {"name": self.name, "description": None, "input_schema": self._schema}

    def call(self, arguments: Mapping[str, Any]) -> Result:
        return Result(json.dumps(arguments))

    async def call_async(self, arguments: Mapping[str, Any]) -> Result:
        return self.call(arguments)


class Abroad(Recorder):
    """Has tools whose schemas services refuse."""

    async def open(self, tell: Tell) -> Sequence[Tool]:
        return [
            Foreign("filter", {"type": "object", "properties": {"$top": {"type": "integer"}}, "anyOf": [{}, {}]}),
            Foreign("number", {"type": "integer"}),
            Foreign("a b", {"type": "object"}),
        ]


def test_a_tool_that_services_refuse_is_made_plain_or_left_out_and_told_and_harms_no_agent(
    caplog: pytest.LogCaptureFixture,
) -> None:
    script = ScriptedProvider([calling(("filter", {"_top": 3})), "done"])
    first, second = list[Event](), list[Event]()
    with ActorSystem.open(":memory:", provider=script, tools=[Abroad()]) as system:
        system.subscribe(first.append).close()
        system.subscribe(second.append).close()
        system.root.configure(tools=["filter", "number"])
        assert system.root.prompt("go").get(timeout=DEADLINE).text == "done"
    asked = requests_of(script, None)
    assert [result.content for result in results(asked[1])] == ['{"$top": 3}']
    assert [tool["name"] for tool in asked[0].tools] == ["filter"]
    why = (
        "number, because its schema is of type 'integer', and arguments are an object; "
        "a b, because its name is not 1 to 128 of a-z A-Z 0-9 _ -, but 'a b'"
    )
    text = f"Some tools are left out, since no model can be asked with them: {why}."
    assert (first, second) == ([ToolTrouble("recorder", text)], [])
    assert f"recorder: {text}" in caplog.text


def test_a_tool_of_the_program_that_services_refuse_is_refused_at_once() -> None:
    with pytest.raises(BadInput, match="'number' cannot be a tool: its schema is of type 'integer'"):
        ActorSystem.open(":memory:", provider=ScriptedProvider([]), tools=[Foreign("number", {"type": "integer"})])


def test_a_toolset_that_cannot_be_opened_leaves_the_database_free_and_the_others_closed(durable: str) -> None:
    recorder = Recorder()
    with pytest.raises(BadInput, match="cannot be opened"):
        ActorSystem.open(durable, provider=ScriptedProvider([]), tools=[recorder, Recorder(fails=True)])
    assert recorder.did == ["open", "close"]
    with ActorSystem.open(durable, provider=ScriptedProvider([])) as system:
        assert system.root.state == "idle"


class Holder(Recorder):
    """Has a task of its own, and tools whose last deed needs it."""

    async def open(self, tell: Tell) -> Sequence[Tool]:
        self._task = asyncio.create_task(self._keep())
        self.called = threading.Event()

        @tool
        async def held() -> str:
            self.called.set()
            try:
                await asyncio.Event().wait()
            finally:
                await asyncio.sleep(0)
                self.did.append("tool over, the holder " + ("gone" if self._task.done() else "there"))
            return "never"

        return [held]

    async def _keep(self) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            self.did.append("holder over")

    async def close(self) -> None:
        self.did.append("close, the holder " + ("gone" if self._task.done() else "there"))
        self._task.cancel()
        await asyncio.wait({self._task})


def test_at_the_end_calls_are_over_before_their_toolset_is_closed_and_it_ends_its_own_tasks() -> None:
    holder = Holder()
    with ActorSystem.open(":memory:", provider=ScriptedProvider([calling("held"), "done"]), tools=[holder]) as system:
        system.root.prompt("go")
        assert holder.called.wait(DEADLINE)
    assert holder.did == ["tool over, the holder there", "close, the holder there", "holder over"]


class Clumsy(Recorder):
    """Fails whenever it is told that something ends."""

    name = "clumsy"

    async def leave(self, agent: str) -> None:
        await super().leave(agent)
        raise LookupError("planted in leave")

    async def close(self) -> None:
        await super().close()
        if self.did.count("close") == 1:
            raise LookupError("planted in close")


class Toolless(Recorder):
    """Has no tools."""

    name = "toolless"

    async def open(self, tell: Tell) -> Sequence[Tool]:
        return []


def test_a_toolset_that_fails_at_an_end_keeps_no_other_from_it(caplog: pytest.LogCaptureFixture) -> None:
    clumsy, other = Clumsy(), Toolless()
    system = ActorSystem.open(":memory:", provider=ScriptedProvider([]), tools=[clumsy, other])
    child = system.root.fork()
    child.kill()
    for each in (clumsy, other):
        assert each.left.wait(DEADLINE)
    with pytest.raises(LookupError, match="planted in close"):
        system.close()
    assert clumsy.did == ["open", f"leave {child.uuid}", "close"]
    assert other.did == [f"leave {child.uuid}", "close"]
    system.close()  # this time it can be closed
    assert [each.did.count("close") for each in (clumsy, other)] == [2, 1]
    planted = [str(record.exc_info[1]) for record in caplog.records if record.exc_info]
    assert planted == ["planted in leave", "planted in close"]


class Late(Recorder):
    """Takes longer to open than hosts wait before they give agents away; looks at what happens meanwhile."""

    def __init__(self, world: Simulation) -> None:
        super().__init__()
        self._world = world
        self.asked = -1
        """How many requests models got while it opened."""
        self.hosts: list[str | None] = []
        """The hosts that share the agents when it has opened."""

    async def open(self, tell: Tell) -> Sequence[Tool]:
        before = len(self._world.requests)
        await asyncio.sleep(4 * BALANCE)
        self.asked = len(self._world.requests) - before
        self.hosts = [host.name for host in self._world.process.looked_at.read(open_hosts)]
        return await super().open(tell)


def uses_the_set(request: Request) -> Reply | str:
    """Calls the tool of the set, and says what it gave."""
    contents = [block["content"] for block in request.messages[-1]["content"] if block["type"] == "tool_result"]
    return contents[0] if contents else calling("recorded")


@pytest.mark.slow("takes a tenth of a second")
def test_nothing_that_waits_for_a_host_is_taken_up_before_the_tools_are_there() -> None:
    with simulated() as world:
        root = world.open(ScriptedProvider(uses_the_set)).root
        mailed, asked, cut_off = (root.fork(name=name) for name in ("mailed", "asked", "cut"))
        world.crash_at(CrashPoint(1, committed=True))
        with pytest.raises(ProcessCrashed):
            cut_off.prompt("go").get()
        world.reopen()
        forked = {"child": "A" * 22, "name": "forked", "prompt": "go", "settings": {}, "restart": "transient"}
        write_alone(Undisturbed(world.process.store), Send(mailed.uuid, None, "go", world.clock.now_ms(), PROMPT))
        world.ask_from_elsewhere(asked.uuid, "fork", {**forked, "on_orphan": None})
        world.crash()
        late = Late(world)
        system = world.open(ScriptedProvider(uses_the_set), tools=[late], resume=True)
        world.settle()
        assert late.asked == 0
        for name in ("mailed", "forked", "cut"):
            assert system.agent(name).history()[-1].content == "from the set"


@pytest.mark.slow("takes a tenth of a second")
def test_a_host_that_joins_gets_and_takes_no_agents_before_its_tools_are_there() -> None:
    with simulated(hosts=2) as world:
        late = Late(world)
        world.open(ScriptedProvider(uses_the_set), tools=[late])
        assert late.hosts == ["a"]
        a, b = world.hosts
        world.sleep(BALANCE)
        kid = a.system.root.fork(name="kid")
        a.move(kid, b)
        write_alone(Undisturbed(b.process.store), Send(kid.uuid, None, "go", world.clock.now_ms(), PROMPT))
        b.kill()
        a.kill()
        b.start()
        assert late.asked == 0
        world.sleep(BALANCE)
        assert b.system.agent("kid").history()[-1].content == "from the set"


class Interrupted(Recorder):
    """Ctrl-C is pressed while it opens, and it needs a moment to end what it has begun; or when it has just opened."""

    name = "interrupted"

    def __init__(self, *, opens: bool) -> None:
        super().__init__()
        self._opens = opens

    async def open(self, tell: Tell) -> Sequence[Tool]:
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        if self._opens:
            return await super().open(tell)
        try:
            await asyncio.Event().wait()
        finally:
            for _ in range(1000):
                await asyncio.sleep(0)
            self.did.append("nothing left")
        return []


@pytest.mark.usefixtures("uncollected")
@pytest.mark.slow("takes a second")
@pytest.mark.parametrize(("opens", "did"), [(False, ["nothing left"]), (True, ["open", "close"])])
def test_ctrl_c_while_a_toolset_opens_leaves_nothing(opens: bool, did: list[str]) -> None:
    interrupted = Interrupted(opens=opens)
    with pytest.raises(KeyboardInterrupt):
        ActorSystem.open(":memory:", provider=ScriptedProvider([]), tools=[interrupted])
    assert interrupted.did == did
