"""The turns of an agent: prompts, replies, and what ends or resumes a turn."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar, cast, overload

from ikigai_actors.actors.futures import Future
from ikigai_actors.agent.turn import events as on
from ikigai_actors.agent.turn.questions import check_question
from ikigai_actors.arguments import check_flag, check_seconds
from ikigai_actors.attachments import Attachable
from ikigai_actors.errors import BadInput, KeyTaken, NoCurrentAgent
from ikigai_actors.programs.acts import AskAct, PromptAct, VerbAct, program_frame, sleep_act
from ikigai_actors.programs.changes import ON_CHANGE_NOTE, check_on_change
from ikigai_actors.programs.frames import ProgramFrame, acting_frame, current_frame
from ikigai_actors.providers.base import Reply
from ikigai_actors.records.agents import registry
from ikigai_actors.records.messages.replies import OUTPUT
from ikigai_actors.records.once import KeyedCall
from ikigai_actors.system.births import note_of
from ikigai_actors.system.handles.base import H
from ikigai_actors.system.handles.commands.base import CommandBase
from ikigai_actors.system.lifecycle import data_of, labels_over, prompt_text
from ikigai_actors.system.receipts import Receipt
from ikigai_actors.system.skills import check_names

T = TypeVar("T")


class TurnCommands(CommandBase[H]):
    """The commands for turns: prompts, steering messages, replies, and the resumption of turns."""

    __slots__ = ()

    @overload
    def prompt(
        self,
        text: str,
        *,
        output: type[T],
        attach: Sequence[Attachable] = (),
        labels: Mapping[str, str] | None = None,
        skills: Sequence[str] = (),
        key: str | None = None,
        detached: bool = False,
    ) -> Future[Reply[T]]: ...

    @overload
    def prompt(
        self,
        text: str,
        *,
        output: Any = None,
        attach: Sequence[Attachable] = (),
        labels: Mapping[str, str] | None = None,
        skills: Sequence[str] = (),
        key: str | None = None,
        detached: bool = False,
    ) -> Future[Reply]: ...

    def prompt(
        self,
        text: str,
        *,
        output: Any = None,
        attach: Sequence[Attachable] = (),
        labels: Mapping[str, str] | None = None,
        skills: Sequence[str] = (),
        key: str | None = None,
        detached: bool = False,
    ) -> Future[Reply[Any]]:
        """Prompt the agent, which opens a turn in which it answers the text.

        A prompt to a busy agent waits for the end of its turn. A prompt to a stopped agent waits in the database for
        the signal CONT. It outlives this process, and the agent answers it once.

        Args:
            text: the text of the prompt; not blank.
            output: the type of the value that the turn must give, as ``Reply.output``: a pydantic model, a dataclass,
                any type that pydantic knows, or a JSON schema as a dict. If a value does not fit, the model is shown
                what is wrong and asked again, twice at most. None for an answer in words.
            attach: pictures, PDFs and sounds for the model: paths of files, bytes, or results of `attachment`; 20 MB
                together at most. They are read now, and stored once for all agents.
            labels: the account for which this turn, and the agents that it forks, work, such as ``{"user": "ann"}``.
                They override the agent's own labels, 16 together at most; see `ActorSystem.spending`.
            skills: the names of skills that are pinned for the agent (`use_skills`). Their texts are added to the
                prompt, except those that the model sees already.
            key: 1 to 200 printable characters that name this prompt for the agent. The prompt is in the database when
                this call returns. A second call with the key, in any process and after any crash, sends no prompt, and
                returns the outcome of the first one.
            detached: only in a program: whether the opened turn goes on when the program's own turn ends by INT, an
                error or an undo.

        Returns:
            A future of the `Reply`. It raises `ProviderError` when the model could not answer, `OutputError` when it
            gave no value that fits, and `TurnInterrupted` when the turn was ended. With a key it raises `KeyTaken`
            where that names another call, and `Withdrawn` where the prompt was taken back.

        Raises:
            BadInput: the text is blank, or cannot be stored; the output type has no schema; an attachment cannot be
                read, is too large, or is of a type that no model takes; the agent has no such skill.
            AgentDead: the agent is dead.
            InboxFull: 10,000 commands wait for the agent. Either this call or the future raises it.
        """
        frame = acting_frame.get()
        if detached is not False and check_flag(detached, "detached") and frame is None:
            raise BadInput("Expected detached=True in a program alone: elsewhere no prompt ends with another turn.")
        if frame is not None:
            if (tuple(attach), labels, tuple(skills), key) != ((), None, (), None):
                raise BadInput(
                    "Expected text, output and detached for a program's prompt. It is sent once without a key."
                )
            arguments = {"agent": self.uuid, "text": prompt_text(text), **data_of(output, ())[0]}
            arguments |= {"detached": True} if detached else {}
            return PromptAct(frame, arguments, lambda reply: self._typed(reply, output))
        return self._prompting(text, output, attach, labels, key, skills)()

    def _prompting(
        self,
        text: str,
        output: Any,
        attach: Sequence[Attachable],
        labels: Mapping[str, str] | None,
        key: str | None = None,
        skills: Sequence[str] = (),
    ) -> Callable[[], Future[Reply]]:
        """Check the arguments of a prompt, and read its attachments; return the function that sends the prompt.

        Raises the errors of `prompt`.
        """
        prompt_text(text)
        data, blobs = data_of(output, attach)
        if labels is not None and (over := labels_over(self.system._labels_of(self.uuid), labels)):
            data = {**data, "labels": over}
        future, asked = self._reply_of(output), {"text": text, **data}
        if skills != () and (named := check_names(skills)):
            asked["skills"] = named  # whatever their texts are then
            data = {**data, **self._skill_texts(named)}
        command = on.Prompt(text, future, data=data, blobs=blobs)
        if key is not None and (call := self._call(key, "prompt", asked, text)) is not None:
            return lambda: self._look_up(partial(self._prompt_once, call, command), future)
        return lambda: self._go(partial(self.system._tell, self.uuid, command), future, checks=False)

    def _prompt_once(self, call: KeyedCall, command: on.Prompt) -> None:
        try:
            self.system._prompt_once(call, command)
        except KeyTaken as error:
            command.caller.settle(error)

    def steer(self, text: str, now: bool = False, key: str | None = None) -> Receipt:
        """Send the agent a steering message: its model reads it before its next request, within the turn in progress.

        The message is committed when this returns; if called on an event loop, soon after. It survives every crash and
        enters the history once, as a message of kind ``steer``. Its place is after the results of the calls in
        progress, or after a reply that would have ended the turn, which then goes on. It ends a ``wait`` of the agent.
        In an idle agent it opens a turn. An interrupted agent reads it when it resumes, and a stopped one after the
        signal CONT. Steering messages keep their order.

        Args:
            text: the text: not blank, and at most 64 KiB in UTF-8.
            now: whether to cut off the current request to the model, or the running calls, instead of waiting for their
                end. The part of the reply that was received is kept.
            key: 1 to 200 printable characters that name this message for the agent. A second call with the key, in any
                process and after any crash, sends nothing, and returns the receipt of the first message.

        Returns:
            A future of `Steered`: the position of the message, the turn that it is part of, and whether it ``opened``
                that turn. It raises `AgentDead` when the agent dies before it has read the message, and `InboxFull`
                when 1,000 steering messages wait for the agent. ``withdraw()`` withdraws an unread message and returns
                whether it did; the future then raises `Withdrawn`.

            In a program (`ikigai_actors.programs`) it is the number of the steering message in the mailbox.

        Raises:
            BadInput: the text is blank, too long, or cannot be stored; the key cannot be used. `KeyTaken`, of the call
                or of the future: the key names another call.
            AgentDead: the agent is dead.
        """
        if (frame := program_frame("steer", key=key)) is not None:
            asked = {"agent": self.uuid, "text": prompt_text(text), "now": check_flag(now, "now") or None}
            act = VerbAct(frame, "steer", asked)
            if not frame.is_driven:
                act.get()
            return cast("Receipt", act)  # in its place: the program goes on before the word is read
        return self.system._steer(self.uuid, text, now, key)

    @overload
    def reply(self, timeout: float | None = None, *, output: type[T]) -> Future[Reply[T]]: ...

    @overload
    def reply(self, timeout: float | None = None, *, output: Any = None) -> Future[Reply]: ...

    def reply(self, timeout: float | None = None, *, output: Any = None) -> Future[Reply[Any]]:
        """Return the outcome of the turn in progress, or else of the agent's latest turn.

        The agent may be dead, or die meanwhile: the outcome of a turn that has ended is not lost.

        Args:
            timeout: seconds to wait; None waits forever.
            output: the type of ``Reply.output``, for which the turn was asked. None takes the type of the fork that
                gave this handle, or else leaves the JSON value as it is.

        Raises:
            OutputError: the turn gave no value of this type.
            ProviderError, TurnInterrupted: the turn ended so. A turn that a crash cut off counts as interrupted.
            NoTurn: the agent has had no turn yet.
            AgentDead: the agent died before its latest turn had an outcome, or without a turn.
        """
        if output is not None:
            from ikigai_actors.records.messages.outputs import expected

            expected(output)
        future = self._reply_of(output, timeout)
        return self._go(partial(self.system._ask_outcome, self.uuid, future), future)

    def ask(
        self,
        question: str,
        *,
        form: Mapping[str, Any] | None = None,
        to: Sequence[str] | None = None,
        within: str | None = None,
        default: Any = None,
    ) -> Future[Any]:
        """Ask a person a question, in a program (`ikigai_actors.programs`), as the program's agent.

        The question is the call ``ask_person``, as a model makes it, and waits in the inbox (`ActorSystem.questions`).
        It is asked once, and stays open over a crash. It waits for a person even if the system's ``approvals`` is
        ``"allow"`` or ``"deny"``.

        Args:
            question: the question; not blank.
            form: the form of the answer, as a flat JSON Schema. Without it the answer is yes or no.
            to: the addresses of those who are asked, such as ``role:lead``. Without it the addresses of the setting
                ``questions``.
            within: how long to wait for an answer, such as ``4h``. Then ``default`` is the answer.
            default: the answer if nobody has answered in time. Without it the question is declined.

        Returns:
            A future of the answer. A question that is declined has the answer False for yes or no, and None otherwise.
            It raises `StepFailed` where a rule denies it.

        Raises:
            NoCurrentAgent: the caller is no program, or the handle is that of another agent.
            BadInput: the question is blank or too long, or no person could answer it.
        """
        arguments: dict[str, Any] = {"question": prompt_text(question), "form": {"type": "boolean"}}
        further = {"form": form, "to": to, "within": within, "default": default}
        arguments |= {name: value for name, value in further.items() if value is not None}
        check_question(arguments)
        return AskAct(self._own_frame("ask"), arguments)

    def sleep(self, seconds: float) -> Future[None]:
        """Wait for some seconds, in a program (`ikigai_actors.programs`).

        After a crash the wait goes on to the same end.

        Raises `NoCurrentAgent` and `BadInput`.
        """
        check_seconds(seconds, "seconds")
        return sleep_act(self._own_frame("sleep"), seconds)

    def _own_frame(self, verb: str) -> ProgramFrame:
        if acting_frame.get() is None:
            self.system._store.read(lambda tx: registry.get(tx, self.uuid))  # raises where the system is closed
        frame = current_frame(f"{verb}()")
        if frame.me.uuid != self.uuid:
            raise NoCurrentAgent(f"{verb}() works for the agent of the program that calls it alone.")
        return frame

    def resume(self, timeout: float | None = None, *, on_change: str | None = None) -> Future[bool]:
        """Go on with the latest turn, when a crash cut it off or an error of the provider ended it.

        The history is sent to the model again, including all of that turn; `reply` then waits for the outcome.

        Args:
            timeout: seconds to wait; None waits forever.
            on_change: what happens in this turn if a program asks for other acts than its log has: ``fail``, ``go_on``
                or ``restart``, as for `ikigai_actors.programs.program`. A note in the log records the choice. None
                keeps the choice of the program.

        Returns:
            Whether there was such a turn. After a later message, a clear or a rewind there is none.
        """
        future = Future[bool](timeout=timeout)
        if on_change is None:
            return self._tell(on.Resume, future)
        note = note_of({ON_CHANGE_NOTE: check_on_change(on_change)})
        noted = Future[int]()

        def resumed(done: Future[int]) -> None:
            if (error := done.exception()) is not None:
                future.settle(error)
            else:
                self.system._beside.post(lambda: self.system._tell(self.uuid, on.Resume(future)), future)

        noted.add_done_callback(resumed)
        self._tell(lambda caller: on.ForkTrials(note, (), caller), noted)
        return future

    def _reply_of(self, output: Any, timeout: float | None = None) -> Future[Reply]:
        """Return a future of a reply whose output has this type.

        If ``output`` is None, the type is that of the fork that gave this handle; if that does not fit, the JSON value.
        """
        is_typed = output is not None or self._output is not None
        return self._future(timeout, partial(self._typed, output=output) if is_typed else None)

    def _typed(self, reply: Reply, output: Any) -> Reply:
        """Return the reply with its output converted to a type.

        If ``output`` is None, the type is that of the fork that gave this handle, if the value fits.
        """
        wanted = self._output if output is None else output
        if wanted is None:
            return reply
        from ikigai_actors.records.messages.outputs import as_output, expected, problems

        is_of_another_turn = output is None and (
            reply.stop_reason != OUTPUT or problems(expected(wanted), reply.output) != []
        )
        return reply if is_of_another_turn else replace(reply, output=as_output(wanted, reply.output))
