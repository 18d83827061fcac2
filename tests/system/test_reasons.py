"""Why an agent is stopped is told, whoever stopped it, and by whoever lists agents."""

from ikigai_actors import ActorSystem, AgentRef, ScriptedProvider, Signal
from ikigai_actors.providers.base import Request
from ikigai_actors.shell.cli import registry
from ikigai_actors.store import open_store
from ikigai_actors.system.remote.client import Client
from tests.kit import outside
from tests.kit.blocking_provider import DEADLINE
from tests.kit.databases import eventually
from tests.kit.echo import echo
from tests.kit.open_on import open_on
from tests.kit.tool_scripts import calling


def why(agent: AgentRef) -> str:
    return agent.record.why_stopped


def test_who_stopped_an_agent_stands_in_the_registry_until_it_goes_on(durable: str) -> None:
    with ActorSystem.open(durable, ScriptedProvider(echo)) as system:
        kid = system.root.fork(name="kid")
        kid.signal(Signal.STOP)
        assert why(kid) == "STOP by a person"
        kid.signal(Signal.CONT)
        assert (why(kid), kid.record.exit_reason) == ("", None)
        outside.signal(durable, "kid", Signal.STOP, cascade=False, reason="gave up", grace=1)
        assert why(kid) == "STOP by a person: gave up"
        with Client.open(durable) as client:
            lines = [line.text for line in registry.lines(client)]
        assert lines[1].endswith("own, stopped: STOP by a person: gave up")
        assert "stopped: " not in lines[0]
    with ActorSystem.open(durable, ScriptedProvider(echo)) as system:
        assert system.agent("kid").state == "stopped"


def test_the_children_of_a_supervisor_that_gave_up_and_was_buried_say_why_they_stand_still(database: str) -> None:
    def code(request: Request) -> str:
        raise LookupError("as planned")

    with open_on(open_store(database), code) as system:
        system.root.supervise(intensity=0)
        boss = system.root.fork(name="boss")
        boss.supervise(intensity=0)
        calm, wild = boss.fork(name="calm"), boss.fork(name="wild")
        wild.prompt("go")
        eventually(lambda: boss.record.status == "dead", "the end of the supervisor")
        reason = "its supervisor boss gave up, and died"
        assert (calm.state, why(calm), calm.supervisor) == ("stopped", reason, system.root)
        [mail] = system.root.mails(sender=boss)
        assert mail.body == "gave up: wild failed too often: LookupError: as planned"
        system.root.adopt(calm)
        assert (calm.state, why(calm)) == ("idle", "")


def test_who_is_killed_by_an_agent_says_by_its_name_whose_model_did_it(database: str) -> None:
    script = {"boss": [calling(("kill", {"agent": "kid"})), "done"]}
    with ActorSystem.open(database, ScriptedProvider(script)) as system:
        boss = system.root.fork(name="boss")
        kid = boss.fork(name="kid")
        boss.prompt("go").get(timeout=DEADLINE)
        assert kid.record.exit_reason == "KILL by boss"


def test_an_orphan_that_a_policy_pauses_says_whose(database: str) -> None:
    with ActorSystem.open(database, ScriptedProvider(echo)) as system:
        boss = system.root.fork(name="boss", on_orphan="stop")
        kid = boss.fork(name="kid")
        boss.kill()
        assert (kid.state, why(kid)) == ("stopped", "its supervisor boss died, whose policy is stop")
