"""A host that nobody needs: nobody is attached, nothing goes on by itself, and no timer is due."""

from threading import Event

from ikigai_actors import ActorSystem, Message, Reply, ScriptedProvider, Signal, ToolCall, tool
from ikigai_actors.system.attached import AttachedSystem
from tests.kit.blocking_provider import DEADLINE
from tests.kit.databases import eventually


def test_a_host_is_needed_while_another_process_listens(durable: str) -> None:
    with ActorSystem.open(durable, ScriptedProvider(["tea"])) as host:
        assert host._is_idle(60)
        with AttachedSystem.open(durable) as system:
            assert host._is_idle(60)  # it has only looked
            system.subscribe(lambda event: None, only=(Message,))
            assert not host._is_idle(60)
        assert host._is_idle(60)


def test_a_host_is_needed_until_a_step_is_over_but_not_for_a_turn_that_is_stopped(durable: str) -> None:
    @tool
    def look() -> str:
        """Look."""
        entered.set()
        assert opened.wait(DEADLINE)
        return "tea"

    entered, opened = Event(), Event()
    with ActorSystem.open(
        durable, ScriptedProvider([Reply(tool_calls=(ToolCall("look", {}),)), "done"]), tools=[look]
    ) as host:
        asked = host.root.prompt("tea?")
        assert entered.wait(DEADLINE)
        assert not host._is_idle(60)
        host.root.signal(Signal.STOP)
        assert not host._is_idle(60)  # the call runs
        opened.set()
        eventually(lambda: host._is_idle(60), "the end of the call")
        host.root.signal(Signal.CONT)
        assert asked.get(timeout=DEADLINE).text == "done"
        eventually(lambda: host._is_idle(60), "the end of the turn")


def test_a_call_that_waits_for_a_decision_needs_no_host(durable: str) -> None:
    @tool(policy="ask")
    def launch() -> str:
        """Launch."""
        return "launched"

    provider = ScriptedProvider([Reply(tool_calls=(ToolCall("launch", {}),))])
    with ActorSystem.open(durable, provider, tools=[launch], approvals="ask") as host:
        host.root.prompt("go")
        eventually(lambda: bool(host.approvals.pending()), "the question")
        eventually(lambda: host._is_idle(60), "idleness")


def test_a_host_is_needed_for_a_timer_that_is_due_within_the_time(durable: str) -> None:
    with ActorSystem.open(durable, ScriptedProvider(["tea"])) as host:
        host.root.remind("tea", after=300)
        assert host._is_idle(60)
        assert not host._is_idle(600)
