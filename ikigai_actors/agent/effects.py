"""What an agent has going on outside: its model request, its tools. What comes of them is posted to its inbox."""

from ikigai_actors.actors.futures import Future
from ikigai_actors.actors.inbox import Inbox
from ikigai_actors.agent.builtin_calls.naming import OUTSIDE
from ikigai_actors.agent.builtin_calls.wait import told_waited
from ikigai_actors.agent.executor import Answer, Call, Crash, ToolRun, provider_failed
from ikigai_actors.agent.messages import Crashed
from ikigai_actors.agent.runtime import Runtime
from ikigai_actors.agent.subscriptions import Streamed
from ikigai_actors.agent.turn import events as on
from ikigai_actors.agent.turn.calls import Call as ModelsCall
from ikigai_actors.agent.turn.calls import pending
from ikigai_actors.agent.turn.request import assemble
from ikigai_actors.agent.turn.state import State
from ikigai_actors.agent.waits import Answers, Found, Ticket, Wait
from ikigai_actors.errors import IkigaiError, ProviderError
from ikigai_actors.providers.base import Delta, Exit, Reply, Spent
from ikigai_actors.records.log import Log
from ikigai_actors.records.messages import Kind
from ikigai_actors.records.settings import complaint
from ikigai_actors.text import storable
from ikigai_actors.tools.function import Result


class Errands:
    """The errands of one agent."""

    __slots__ = ("_call", "_crash", "_inbox", "_name", "_runs", "_runtime", "_spent", "_uuid")

    def __init__(self, runtime: Runtime, inbox: Inbox, uuid: str, name: str | None) -> None:
        self._runtime, self._inbox, self._uuid, self._name = runtime, inbox, uuid, name
        self._call: Call | None = None
        self._crash: Crashed | None = None
        self._spent: Spent | None = None
        self._runs: dict[str, ToolRun | Ticket] | None = None

    @property
    def asking(self) -> bool:
        """Whether a model request is out."""
        return self._call is not None

    def ask_model(self, state: State, log: Log) -> None:
        """Send the history up to the state's head to the model that the settings name."""
        settings, request = {**self._runtime.providers.settings, **state.view.settings}, state.request
        try:
            if (wrong := complaint(settings)) is not None:
                raise ProviderError(wrong)
            provider, model = self._runtime.providers.choose(settings.get("model"))
            tools = self._runtime.toolbox.describe(settings)
            full_model = f"{provider.name}:{model}"
        except ProviderError as error:
            self._inbox.put_urgent(on.ReplyFailed(request, error))
            return
        except BaseException as error:  # other people's code: a provider's name, a tool's description
            self._inbox.put_urgent(on.ReplyFailed(request, provider_failed(error)))
            return
        question = assemble(
            log.conversation(state.head),
            settings,
            agent=self._uuid,
            name=self._name,
            model=full_model,
            tools=tools,
            fork=log.fork,
        )
        inbox, publisher, uuid = self._inbox, self._runtime.publisher, self._uuid

        self._spent = None

        def on_delta(delta: Delta) -> None:
            if delta.spent is not None:
                self._spent = delta.spent
            else:
                publisher.publish(Streamed(uuid, delta.text, delta.kind))

        def on_reply(answer: Answer) -> None:
            match answer:
                case Reply():
                    inbox.put_urgent(on.ReplyReceived(request, answer, full_model))
                case ProviderError():
                    inbox.put_urgent(on.ReplyFailed(request, answer, self._spent))
                case Exit():
                    inbox.put_urgent(on.Exited(request, storable(answer.result)))
                case Crash():
                    self._crash = Crashed(request, answer.error)
                    inbox.put_urgent(self._crash)

        self._call = self._runtime.outside.ask_model(
            provider, question, self._runtime.processes.handle(uuid), on_delta, on_reply
        )

    def crash(self, request: int) -> Exception | None:
        """What the agent's own code failed with as it answered this request, though nobody has looked at it yet."""
        crash = self._crash
        return crash.error if crash is not None and crash.request == request and self.asking else None

    def answered(self) -> None:
        """The model request is over."""
        self._call = None

    def run_tool(self, request: int, call: ModelsCall) -> None:
        """Run the tool of a call whose write-ahead record is committed."""
        inbox = self._inbox

        def on_result(result: Result) -> None:
            inbox.put_urgent(on.ToolFinished(request, call.id, storable(result.content), result.is_error))

        run = self._runtime.outside.run_tool(
            self._runtime.toolbox[call.name], call.input, self._runtime.processes.handle(self._uuid), on_result
        )
        self._keep(call, run)

    def wait(self, request: int, call: ModelsCall, log: Log) -> None:
        """Have it told when a ``wait`` is over whose ``tool_call`` is committed."""
        inbox = self._inbox
        begun = next(
            one for one in reversed(log.messages) if one.kind == Kind.TOOL_CALL and one.data["tool_use_id"] == call.id
        )
        named: list[tuple[str, str | None]] | None = begun.data.get("agents")
        known = None if named is None else tuple(dict.fromkeys(uuid for _, uuid in named if uuid is not None))

        def over(answers: Answers | IkigaiError) -> None:
            if isinstance(answers, IkigaiError):
                inbox.put_urgent(on.ToolFinished(request, call.id, str(answers), True))
                return
            told = (
                {uuid or OUTSIDE: str(found) for uuid, found in answers.items()}
                if named is None
                else {called: str(answers[uuid] if uuid is not None else Found.UNKNOWN) for called, uuid in named}
            )
            inbox.put_urgent(on.ToolFinished(request, call.id, told_waited(told, named is not None), False))

        self._keep(call, self._runtime.waits.begin(Wait(self._uuid, known, begun.data["deadline"]), over))

    def _keep(self, call: ModelsCall, run: ToolRun | Ticket) -> None:
        if self._runs is None:
            self._runs = {}
        self._runs[call.id] = run

    def ask_approval(self, call: ModelsCall) -> None:
        """Have the program decide on a call; a person is asked by nobody but the shell."""
        approver = self._runtime.approver
        if approver is None:
            return
        inbox, asked = self._inbox, pending(self._uuid, call)

        def decided(decision: bool | str) -> None:
            reason = decision if isinstance(decision, str) else ""
            inbox.put_urgent(on.Decide(call.reply, call.id, decision is True, storable(reason), False, Future()))

        self._runtime.outside.consult(lambda: approver(asked), self._runtime.processes.handle(self._uuid), decided)

    def finished(self, call: str) -> None:
        """The tool of a call is done."""
        if self._runs is not None:
            self._runs.pop(call, None)

    def cancel(self) -> tuple[str, Spent | None]:
        """End everything that is outside; return what was received of the model's reply, and what it has cost."""
        call, self._call = self._call, None
        runs, self._runs = self._runs, None
        for run in (runs or {}).values():
            run.cancel()
        if call is None:
            return "", None
        call.cancel()
        return call.text, self._spent
