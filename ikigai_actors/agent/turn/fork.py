"""Fork: the only way to make an agent.

One unit holds the children's rows, a ``fork`` message for each in both logs, and the children's first messages. For a
command, the first messages are the settings and the prompt of the child, or those that its kind prescribes. For calls
of the model, see `ikigai_actors.agent.builtin_calls.fork`. Children of one unit are born one after another: each is
forked after the ``fork`` message of the previous one.

A child of another history may begin with copies of messages, and may continue an unfinished turn of that history. Its
turn is then opened by its ``fork`` message, which says ``go``:

    history  1 prompt, 2 reply with a call | 3 result, 4 reply
    forked at 1 with copies   2 fork go, 3 configure, 4 the reply at 2 with another argument, 5 its result → a request
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ikigai_actors.agent.turn import events as on
from ikigai_actors.agent.turn.kinds import budget_of_kind, messages_of_kind, restart_of_kind
from ikigai_actors.agent.turn.recorded_words import words_in
from ikigai_actors.agent.turn.state import Answer, Spawn, State, Step
from ikigai_actors.agent.turn.steps import PendingMessage, advance, messages_of
from ikigai_actors.attachments import Attachment
from ikigai_actors.errors import BadInput, StoreConflict
from ikigai_actors.frozen import NO_DATA, replace
from ikigai_actors.records.agents.labels import check_number, joined, labels_in
from ikigai_actors.records.budgets.budget import Budget, decode_budget
from ikigai_actors.records.log.log_unit import Birth, LogUnit
from ikigai_actors.records.messages.forms import problem_of
from ikigai_actors.records.messages.kinds import kind_named
from ikigai_actors.records.messages.messages import Kind, Message
from ikigai_actors.records.messages.replies import calls_in
from ikigai_actors.tools.policy import ToolTraits


class Childbed(NamedTuple):
    """A child to be made, its first messages, and the messages that its parent writes about it."""

    child: str
    name: str | None
    restart: str
    own: Sequence[PendingMessage]
    """The child's first messages, after its ``fork`` message."""
    notices: Sequence[PendingMessage] = ()
    """The parent's messages that follow its ``fork`` message."""
    opens: bool = False
    """Whether the child's last message opens a turn."""
    go: bool = False
    """Whether the child's ``fork`` message opens a turn: the child answers the end of its history."""
    output: Mapping[str, Any] | None = None
    """The type of value that the child's first turn must give (`records.outputs`); None for any answer."""
    on_orphan: str | None = None
    limit: int | None = None
    """The value of `Birth.limit`."""
    limit_is_set: bool = False
    """The value of `Birth.limit_is_set`."""
    at: int | None = None
    """The last position that the child inherits; None for the parent's head."""
    budget: Budget | None = None
    """The child's own budget; None for none."""
    labels: str | None = None
    """The labels of the child, encoded as one text; None for the labels in force."""
    of: str | None = None
    """The uuid of the agent whose history the child inherits; None for the parent."""
    facts: Mapping[str, Any] = NO_DATA
    """Data of the ``fork`` message, from the agent that makes the child."""


def fork_by_command(state: State, event: on.Fork, now: int, tools: Mapping[str, ToolTraits]) -> Step:
    """Return the step that makes the children for which a program or a person asked.

    Children at an earlier position get the parent's present settings too, since tools may have been withdrawn after
    that position.
    """
    at, settings = None, event.settings
    if isinstance(event, on.ForkAt):
        at, now_set, then_set = event.at, state.view.settings, event.then or {}
        since = {name: now_set.get(name) for name in {**then_set, **now_set} if now_set.get(name) != then_set.get(name)}
        settings = {**since, **event.settings}
    labels = joined(state.labels, event.labels)
    budget, restart = decode_budget(event.budget), event.restart
    try:
        check_number(labels_in(labels))
        if event.kind:
            kind = kind_named(state.view.settings, event.kind)
            budget, restart = budget_of_kind(kind, budget), restart_of_kind(kind, restart)
            begins = [
                messages_of_kind(kind, state.view.settings, tools, child.prompt, event.data, settings)
                for child in event.children
            ]
        else:
            begins = [_begin(settings, child.prompt, event.data) for child in event.children]
    except BadInput as error:
        return Step(state, effects=(Answer(event.caller, error),))
    beds = [
        Childbed(
            child.uuid,
            child.name,
            restart,
            begin,
            opens=child.prompt is not None,
            on_orphan=event.on_orphan,
            at=at,
            budget=budget,
            labels=labels,
        )
        for child, begin in zip(event.children, begins, strict=True)
    ]
    step = give_birth(state, beds, now, event.blobs)
    return replace(step, effects=(*step.effects, Answer(event.caller, event.child)), caller=event.caller)


def _begin(settings: Mapping[str, Any], prompt: str | None, data: Mapping[str, Any]) -> list[PendingMessage]:
    begin: list[PendingMessage] = [(Kind.CONFIGURE, "", settings)] if settings else []
    return begin if prompt is None else [*begin, (Kind.USER, prompt, data)]


def fork_trials(state: State, event: on.ForkTrials, now: int) -> Step:
    """Return the step that makes the trials of an experiment: children that begin with any histories, each as asked.

    With them, the experiment's own log gets a note.
    """
    if event.head not in (0, state.head):
        text = f"The log of agent {state.called} has gone on to {state.head}, and {event.head} was expected."
        return Step(state, effects=(Answer(event.caller, StoreConflict(text)),))
    beds = []
    for trial in event.trials:
        if (wrong := _wrong_with(trial)) is not None:
            return Step(
                state, effects=(Answer(event.caller, BadInput(f"Trial {trial.uuid} cannot be born: {wrong}.")),)
            )
        own: list[PendingMessage] = [(Kind.CONFIGURE, "", dict(trial.settings))] if trial.settings else []
        own += ((Kind[kind.upper()], content, data) for kind, content, data in trial.begin)
        own += [(Kind.USER, trial.prompt, trial.data)] if trial.prompt is not None else []
        own += [word.again() for word in words_in(trial.settings) if word.turn == 1 and not word.after]
        beds.append(
            Childbed(
                trial.uuid,
                None,
                "temporary",
                own,
                opens=trial.prompt is not None,
                go=trial.go,
                output=trial.data.get("output") if trial.go else None,
                at=trial.at,
                of=trial.of,
                facts=trial.facts,
            )
        )
    step = give_birth(state, beds, now, before=((Kind.NOTE, "", dict(event.note)),) if event.note else ())
    return replace(step, effects=(*step.effects, Answer(event.caller, state.head + 1)), caller=event.caller)


def _wrong_with(trial: on.TrialBirth) -> str | None:
    """Return the reason why a trial cannot begin as requested; None if it can."""
    if trial.go and trial.prompt is not None:
        return "it has a prompt, and is to go on without one"
    if not trial.begin:
        return None
    if not trial.go and trial.prompt is None:
        return "it begins with messages, and neither has a prompt nor goes on"
    waiting: list[str] = []
    for kind, content, data in trial.begin:
        if kind not in (Kind.USER, Kind.STEER, Kind.ASSISTANT, Kind.TOOL_RESULT):
            return f"expected user, steer, assistant and tool_result messages to begin with, got {kind!r}"
        if (wrong := problem_of(Kind[kind.upper()].form, data)) is not None:
            return wrong
        if kind == Kind.TOOL_RESULT:
            if data.get("tool_use_id") not in waiting:
                return f"the result {content[:40]!r} answers no call of the reply before it"
            waiting.remove(data["tool_use_id"])
        elif waiting:
            return f"call {waiting[0]} has no result before what follows"
        else:
            copy = Message(trial.uuid, trial.at, kind, content, data, 0)
            waiting = [call.id for call in calls_in(copy)] if kind == Kind.ASSISTANT else []
    if waiting:
        return f"call {waiting[0]} has no result"
    if trial.go and trial.begin[-1][0] == Kind.ASSISTANT:
        return "what it begins with ends with a reply, and nothing is left to be answered"
    return None


def give_birth(
    state: State,
    beds: Sequence[Childbed],
    now: int,
    blobs: tuple[Attachment, ...] = (),
    inherited: int | None = None,
    before: Sequence[PendingMessage] = (),
) -> Step:
    """Return the step whose unit makes the children, in order.

    ``before`` has messages to write first; ``inherited`` is `LogUnit.inherited`.
    """
    mine = [*before]
    births: list[Birth] = []
    for bed in beds:
        head = state.head + len(mine)
        births.append(_birth(state, head, bed, now))
        mine += (_told("child", bed.child, head, bed, {"of": bed.of}), *bed.notices)
    messages = messages_of(state.uuid, state.head, now, tuple(mine))
    unit = LogUnit(state.uuid, messages, births=tuple(births), blobs=blobs, inherited=inherited)
    return Step(advance(state, messages), unit, tuple(map(Spawn, births)))


def as_written(step: Step, unit: LogUnit) -> Step:
    """Replace the births and rules in a step by those of the committed unit.

    The transaction has completed their details.
    """
    written = {birth.uuid: birth for birth in unit.births}
    effects = (Spawn(written[effect.birth.uuid]) if isinstance(effect, Spawn) else effect for effect in step.effects)
    after = step.state if unit.rule is None or unit.rules is None else replace(step.state, rules=unit.rules)
    return replace(step, state=after, unit=unit, effects=tuple(effects))


def _told(name: str, other: str, head: int, bed: Childbed, of_another: Mapping[str, Any]) -> PendingMessage:
    """Return the ``fork`` message for the log of the parent or of the child.

    The message has the uuid of the other agent, the name of a child, and the fork point if that is not the head.
    ``of_another``: further data for a child that inherits another agent's history.
    """
    about = {name: other, **({"name": bed.name} if bed.name and name == "child" else {})}
    if bed.of is not None:
        goes = {"go": True, **({"output": bed.output} if bed.output else {})} if bed.go else {}
        return (Kind.FORK, "", {**about, **of_another, "at": bed.at, **(bed.facts if name == "child" else goes)})
    return (Kind.FORK, "", about if bed.at in (None, head) else {**about, "at": bed.at})


def _birth(maker: State, head: int, bed: Childbed, now: int) -> Birth:
    """Return the birth of a child after the message ``head`` of its maker's log, with the child's first messages."""
    parent = maker.uuid
    fork = head if bed.at is None else bed.at
    note = _told("parent", bed.of or parent, head, bed, {"by": parent})
    messages = messages_of(bed.child, fork, now, (note, *bed.own))
    return Birth(
        uuid=bed.child,
        name=bed.name,
        parent_uuid=bed.of or parent,
        supervisor_uuid=None if bed.of is None else parent,
        fork_message_id=fork,
        turn=_opener(messages).id if bed.opens else messages[0].id if bed.go else 0,
        restart=bed.restart,
        created_at=now,
        messages=messages,
        born=head + 1,
        limit=bed.limit,
        limit_is_set=bed.limit_is_set,
        on_orphan=bed.on_orphan,
        budget=bed.budget,
        labels=maker.labels if bed.labels is None else bed.labels,
    )


def _opener(messages: Sequence[Message]) -> Message:
    """Return the message that opens the turn of a child. Recorded steering messages may follow it."""
    return next(message for message in reversed(messages) if message.kind != Kind.STEER)
