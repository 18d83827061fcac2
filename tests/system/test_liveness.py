"""Heartbeats: who shows them, and who is told of an agent that gives none."""

import json
import re
import threading

import pytest

from ikigai_actors import (
    ActorSystem,
    AgentRef,
    FunctionProvider,
    Reply,
    Request,
    ScriptedProvider,
    Signal,
    Stream,
    ToolCall,
)
from ikigai_actors.agent.statistics import Tally
from ikigai_actors.records.hosts.liveness import Sign
from ikigai_actors.shell.agent_lists import read_list
from ikigai_actors.shell.cli import registry as reader
from ikigai_actors.system.attached import AttachedSystem
from ikigai_actors.system.remote.client import Client
from ikigai_actors.testing import CrashPoint, ManualClock, ProcessCrashed, Simulation, simulated
from ikigai_actors.verbs.text.tree import sign_text
from tests.kit.databases import eventually

SLOW = Stream(("a word " * 10, "and more"), delay=100)
"""A reply with a minute and more between its pieces."""


def notices(agent: AgentRef) -> list[str]:
    return [mail.body for mail in agent.mails() if mail.kind == "notice"]


def open_with(world: Simulation, *replies: object) -> AgentRef:
    """A child of agent 0 that gives these answers, and whose silence is told after 30 s."""
    script = list(replies)
    root = world.open(ScriptedProvider(lambda request: script.pop(0))).root  # type: ignore[arg-type]
    kid = root.fork(name="kid")
    kid.configure(stuck_after=30)
    return kid


def test_a_sign_tells_how_long_ago_it_was_and_what_came_in_the_last_seconds() -> None:
    clock = ManualClock()
    tally = Tally("a", clock)
    clock.advance(5)
    assert tally.sign() == Sign(5, 0)
    for _ in range(10):
        tally.streamed(40)
        clock.advance(0.5)
    assert tally.sign() == Sign(0.5, 60)
    clock.advance(10)
    assert tally.sign() == Sign(10.5, 0)
    tally.lives()
    assert tally.sign() == Sign(0, 0)
    assert sign_text(Sign(12.3, 40)) == "heartbeat 12 s ago, 40 tokens in 3 s"
    assert sign_text(Sign(0.2)) == "heartbeat 0 s ago"


def test_a_supervisor_is_told_once_of_a_turn_in_which_nothing_comes() -> None:
    with simulated() as world:
        kid = open_with(world, SLOW, SLOW)
        kid.prompt("go")
        world.sleep(29)
        assert notices(world.system.root) == []
        world.sleep(150)
        [notice] = notices(world.system.root)
        assert notice.startswith("Agent kid sends no heartbeat: waiting for the model, and nothing has come for 30 s.")
        assert world.system.root.mails()[0].sender == kid.uuid
        world.sleep(130)
        kid.prompt("again")
        world.sleep(40)
        assert len(notices(world.system.root)) == 2


@pytest.mark.slow("takes a tenth of a second")
def test_who_streams_or_waits_or_has_no_such_setting_is_not_stuck() -> None:
    wait = Reply("", (ToolCall("wait", {"timeout": 200}),))
    with simulated() as world:
        kid = open_with(world, Stream(("word ",) * 10, delay=20), wait, "done", SLOW)
        kid.prompt("go")
        world.sleep(210)
        kid.prompt("wait")
        world.sleep(210)
        kid.configure(stuck_after=0)
        kid.prompt("slow")
        world.sleep(210)
        assert notices(world.system.root) == []


@pytest.mark.parametrize("committed", [False, True])
def test_a_crash_as_it_is_told_neither_loses_nor_repeats_it(committed: bool) -> None:
    with simulated() as world:
        kid = open_with(world, SLOW, SLOW, SLOW)
        kid.prompt("go")
        world.sleep(10)  # by then the host has written of the turn
        world.crash_at(CrashPoint(1, committed=committed))
        with pytest.raises(ProcessCrashed):
            world.sleep(60)
        world.recover()
        world.system.resume()
        world.sleep(99)
        assert len(notices(world.system.root)) == 1


def test_agent_0_has_nobody_to_be_told_and_an_adopted_agent_tells_its_new_supervisor() -> None:
    with simulated() as world:
        kid = open_with(world, SLOW, SLOW)
        root = world.system.root
        aunt = root.fork(name="aunt")
        aunt.adopt(kid)
        root.configure(stuck_after=5)
        kid.prompt("go")
        root.prompt("go")
        world.sleep(60)
        assert (len(notices(aunt)), notices(root)) == (1, [])


@pytest.mark.thorough("a second look from elsewhere")
def test_others_see_how_fast_a_reply_comes_and_for_how_long_nothing_has() -> None:
    """On other hosts, and in processes that only read; also when the host is stopped in the midst of a reply."""
    quick, slow = Stream(("seven words of one piece of text" * 4,) * 15, delay=1), Stream(("a word",), delay=30)
    with simulated(hosts=2) as world:
        world.open(ScriptedProvider([quick, slow, quick]))
        world.sleep(5)
        kid = world.system.root.fork(name="kid")
        if kid.record.owner != world.hosts[1].system._runtime.host.id:
            world.system.move(kid, "b")
        client = Client(world.hosts[0].process.looked_at)

        def seen() -> Sign:
            elsewhere, sign = world.hosts[0].system._signs()[kid.uuid], read_list(client).facts.signs[kid.uuid]
            assert elsewhere == sign
            return sign

        kid.prompt("go")
        world.sleep(10)
        assert (seen().seconds <= 3, seen().tokens) == (True, 96)
        [line] = [line.text for line in reader.lines(client) if "kid" in line.text]
        assert line.endswith(" s ago, 96 tokens in 3 s")
        assert {row["name"]: row["lately"] for row in json.loads("".join(reader.json_pieces(client)))}["kid"] == 96
        world.sleep(20)
        assert (world.hosts[0].system._signs(), read_list(client).facts.signs) == ({}, {})
        kid.prompt("go")
        world.sleep(50)
        assert (18 <= seen().seconds <= 21, seen().tokens) == (True, None)
        world.sleep(30)
        kid.prompt("go")
        world.sleep(8)
        assert seen().tokens == 96
        world.hosts[1].freeze()
        world.sleep(6)
        assert (seen().seconds > 5, seen().tokens) == (True, None)


@pytest.mark.parametrize(
    ("reply", "most"),
    [(Stream(("short",), delay=1), 0), (Stream(("silent",), delay=1_000), 4), (Stream(("a ",) * 100, delay=1), 101)],
    ids=["short", "silent", "streaming"],
)
def test_a_host_writes_signs_only_of_turns_that_last_and_only_what_changes(reply: Stream, most: int) -> None:
    with simulated() as world:
        world.open(ScriptedProvider([reply])).root.prompt("go").get()
        world.sleep(300)
        written = str(world.trace).count("publish_signs")
        assert (written <= most, written > 0) == (True, most > 0)
        assert world.process.looked_at.read(lambda tx: tx.run("published_signs")) == []


def test_programs_and_other_processes_see_signs_of_those_that_work(durable: str) -> None:
    gate = threading.Event()

    def slow(request: Request) -> str:
        gate.wait(30)
        return "ok"

    with ActorSystem.open(durable, FunctionProvider(slow)) as system:
        kid = system.root.fork("go", name="kid")
        eventually(lambda: (signs := system._signs().get(kid.uuid)) and signs.tokens == 0, "the turn")
        assert system._signs().keys() == {kid.uuid}
        with Client.open(durable) as client:
            [line] = [line.text for line in reader.lines(client) if "kid" in line.text]
            silences = {row["name"]: row["silent"] for row in json.loads("".join(reader.json_pieces(client)))}
        assert re.search(r", heartbeat \d+ s ago$", line)
        assert silences[None] is None
        assert 0 <= silences["kid"] < 30
        with AttachedSystem.open(durable) as attached:
            assert attached._signs().keys() == {kid.uuid}
        gate.set()
        kid.reply(timeout=30)
        eventually(lambda: system._signs() == {}, "the end of the turn")
        kid.signal(Signal.STOP)
