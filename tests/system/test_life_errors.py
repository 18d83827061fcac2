"""Signals to those who cannot be hit: who is unknown, ambiguous, dead, or agent 0 is told apart on every level."""

from collections.abc import Callable

import pytest

from ikigai_actors import ActorSystem, AgentDead, AgentNotFound, AgentRef, AmbiguousAgent, BadInput, IkigaiError, Signal
from ikigai_actors.agent.builtin_calls.mail import append_notice
from ikigai_actors.agent.turn.state import MailNotice
from ikigai_actors.errors import RootProtected
from ikigai_actors.providers.base import Request
from ikigai_actors.providers.scripted import ScriptedProvider, ScriptedReply
from ikigai_actors.records.lives.signals import SendSignal
from ikigai_actors.records.lives.supervision import AdoptChild
from ikigai_actors.records.log.append import FIRST_EPOCH, FencingToken
from ikigai_actors.shell.cli.main import run as command
from ikigai_actors.store import Store
from ikigai_actors.store.unit import Unit, write_alone
from ikigai_actors.system.handles.ref import System
from tests.conftest import NewDatabase
from tests.fuzz.shells import printed
from tests.kit import trees
from tests.kit.blocking_provider import DEADLINE
from tests.kit.sessions import OpenSession
from tests.kit.tool_scripts import calling
from tests.kit.trees import HOST, add

TWIN = "twin" + 17 * "x"
TARGETS = {
    "unknown": ("nobody", AgentNotFound, "nobody"),
    "ambiguous": ("twin", AmbiguousAgent, "several agents"),
    "dead": ("GONE", AgentDead, "dead already"),
    "agent 0": ("ROOT", RootProtected, "agent 0"),
}
"""How each is called, the error in a program, and what a person or a model reads of it."""


def kill(request: Request) -> ScriptedReply:
    """An agent calls ``kill`` with the text of its prompt, then is done."""
    [*_, last] = request.messages[-1]["content"]
    return calling(("kill", {"agent": last["text"]})) if last["type"] == "text" else "done"


def plant(system: System) -> dict[str, str]:
    """Two agents whose uuids begin alike, and a dead one; returns the uuids that stand for names."""
    root, gone = system.root, system.root.fork()
    for uuid in (f"{TWIN}1", f"{TWIN}2"):
        system._store.write(lambda tx, uuid=uuid: add(tx, uuid, root.uuid))  # type: ignore[misc]
    gone.kill()
    return {"GONE": gone.uuid, "ROOT": root.uuid}


def test_a_program_gets_an_error_of_its_own_for_each(database: str) -> None:
    ways: list[Callable[[AgentRef], object]] = [
        lambda agent: agent.kill(),
        lambda agent: agent.kill(cascade=True),
        lambda agent: agent.signal(Signal.TERM),
    ]
    with ActorSystem.open(database, provider=ScriptedProvider([])) as system:
        named = plant(system)
        before = system.agents()
        for text, error, _ in TARGETS.values():
            for way in ways:
                with pytest.raises(IkigaiError) as raised:
                    way(system.agent(named.get(text, text)))
                assert isinstance(raised.value, error), text
        assert system.agents() == before


@pytest.mark.sample(1, "errors")
@pytest.mark.parametrize("target", TARGETS)
def test_a_model_reads_of_each_what_is_wrong(target: str) -> None:
    text, _, reason = TARGETS[target]
    with ActorSystem.open(":memory:", provider=ScriptedProvider(kill)) as system:
        called = plant(system).get(text, text)
        agent = system.root.fork()
        assert agent.prompt(called).get(timeout=DEADLINE).text == "done"
        assert ("above you" if target == "agent 0" else reason) in agent.history()[-2].content


@pytest.mark.sample(1, "errors")
@pytest.mark.parametrize("target", TARGETS)
def test_a_person_reads_of_each_what_is_wrong_in_the_shell(open_session: OpenSession, target: str) -> None:
    text, _, reason = TARGETS[target]
    session = open_session(ScriptedProvider([]))
    called = plant(session.system).get(text, text)
    printed = session(f"/kill {called}", f"/kill {called} --cascade", f"/signal term {called}")
    assert len(printed) == 3
    assert all(reason in line for line in printed)


def test_what_makes_no_sense_is_refused_before_anything_is_sent() -> None:
    with ActorSystem.open(":memory:", provider=ScriptedProvider([])) as system:
        agent = system.root.fork()
        with pytest.raises(BadInput, match=r"Expected signal to be one of INT, .*; got 'HUP'"):
            agent.signal("HUP")  # type: ignore[arg-type]
        for grace in (-1, 1e15, float("inf"), float("nan")):
            with pytest.raises(BadInput, match="Expected grace in seconds, 0 or more, at most 1,000,000,000; got "):
                agent.signal(Signal.TERM, grace=grace)
        with pytest.raises(BadInput, match=r"Expected prompt to be text; got 5 \(int\)"):
            agent.prompt(5)  # type: ignore[call-overload]
        with pytest.raises(BadInput, match="Expected setting thinking to be a dict as in the Messages API"):
            agent.configure(thinking={"type": object()})
        with pytest.raises(BadInput, match="thinking to be what JSON can hold"):
            agent.configure(thinking={"type": "adaptive", "more": object()})
        assert agent.record.status == "running"
        assert agent.signal("STOP")  # type: ignore[arg-type]  # a signal may be given by its name
        assert agent.record.status == "stopped"


def test_a_unit_for_somebody_who_is_not_there_is_refused_by_itself(store: Store) -> None:
    trees.plant(store, a="root")
    units: list[Unit] = [
        SendSignal("nobody", Signal.KILL, 9, spread=True),
        AdoptChild("nobody", "a", 9),
        AdoptChild("a", "nobody", 9),
        append_notice(MailNotice("nobody", 1, 9, None), FencingToken(HOST, FIRST_EPOCH)),
    ]
    for unit in units:
        with pytest.raises(AgentNotFound, match="There is no agent nobody"):
            write_alone(store, unit)


def test_a_grace_that_no_database_can_hold_is_refused_at_the_command_line(new_sqlite: NewDatabase) -> None:
    url = new_sqlite()
    with ActorSystem.open(url, provider=ScriptedProvider([])) as system:
        system.root.fork(name="kid")
        for grace in ("inf", "nan", "1e15"):
            with printed() as paper:
                assert command(["--database", url, "signal", "TERM", "kid", "--grace", grace]) == 1
            assert "Expected grace in seconds, 0 or more, at most 1,000,000,000" in paper.text
