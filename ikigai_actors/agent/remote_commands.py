"""Remote commands: requests of another process to an agent, from their row in the database to the agent's actor.

    kind, body = encode(on.SetMark("here", future))         # where it is asked: a row of ``requests``
    command = decode(kind, body, RemoteCaller(...))         # in the host that runs the agent

The caller object of such a command represents the row. It gets the end of the command once:

    committed   the agent's unit is committed: the same transaction has written the answer into the row
    answered    there was nothing to write, or the agent refused: the caller object has the answer written
    left        the agent decided nothing (`NOT_ANSWERS`): the host closes, its store does not answer, the agent is of
                another host or is dead. The row stays without an answer, for the next attempt or the next host

Invariant: a row is answered by the agent's own decision, or by an error for which no further attempt would help, such
as a log that cannot be read. Whatever else ends an attempt leaves the row as it was.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Protocol, get_args, get_origin

from ikigai_actors.actors.futures import Future
from ikigai_actors.agent.turn import events as on
from ikigai_actors.agent.turn.calls import EXACT, TOOL
from ikigai_actors.agent.turn.state import Answer, Spawn, Step
from ikigai_actors.agent.turn.ways import WAYS
from ikigai_actors.arguments import check_choice, check_count, check_type, shown
from ikigai_actors.errors import (
    AgentDead,
    BadInput,
    Fenced,
    StoreInUse,
    StoreUnavailable,
    StoreUnusable,
    SystemClosed,
)
from ikigai_actors.frozen import replace
from ikigai_actors.records.agents.identity import check_name, is_agent_uuid
from ikigai_actors.records.agents.labels import check_labels
from ikigai_actors.records.budgets.budget import decode_budget, encode_budget
from ikigai_actors.records.hosts.remote_commands import RemoteCommandAnswered, RemoteCommandKey
from ikigai_actors.records.log.log_unit import LogUnit
from ikigai_actors.records.messages.forms import problem_of, prompt_form
from ikigai_actors.records.messages.principals import PRINCIPAL, naming
from ikigai_actors.records.messages.settings import check_settings
from ikigai_actors.records.once import KeyedCall, call_in
from ikigai_actors.store.asker import current_principal

NOT_ANSWERS = (SystemClosed, StoreUnavailable, StoreUnusable, StoreInUse, Fenced, RemoteCommandAnswered)
"""The errors that end an attempt without being an answer. The death of the agent is no answer either: the registry has
it.
"""


@dataclass(frozen=True, slots=True)
class Fail:
    """Makes a supervisor give up, because children on another host failed too often. The host carries it out."""

    travels_as = "fail"
    reason: str
    caller: on.Caller


@dataclass(frozen=True, slots=True)
class Move:
    """Moves an agent to another host. The agent's host carries it out, which ends the actor."""

    travels_as = "move"
    host: str
    """The name or id of the other host."""
    caller: on.Caller


@dataclass(frozen=True, slots=True)
class ListTools:
    """Asks for the tools that the agent's model is offered. The agent's host answers it."""

    travels_as = "tools"
    caller: on.Caller


RemoteCommand = on.Command | Fail | Move | ListTools
"""The commands that another process may send to an agent: those with a ``travels_as``."""

_KINDS: Mapping[str, type[RemoteCommand]] = {
    command.travels_as: command for command in get_args(RemoteCommand) if command.travels_as
}

ONCE = "once"
"""The key in the body of a command that has the caller's key, under which the command is carried out once."""

_KEPT_BY_CALLER = (ONCE, PRINCIPAL)
"""The parts of a command's body that are not its arguments. The caller itself knows them."""

_LATER = {
    "budget",
    "data",
    "kind",
    "labels",
    "more",
    "head",
    "summary",
    "call_sha256",
    "by",
    "way",
    "definition",
    "build",
    "question",
    "answer",
}
"""Arguments that an older version does not know: they are left out where they are empty."""

_CHECKS: Mapping[str, Callable[[Any], Any]] = {
    "settings": check_settings,
    "name": lambda name: None if name is None else check_name(name),
    "more": lambda more: tuple(_new_child(*child) for child in more),
    "data": lambda data: _check_data(data),
    "always": lambda always: check_choice(always, "always", ("", TOOL, EXACT)),
    "trials": lambda trials: tuple(_trial(*trial) for trial in trials),
    "how": lambda how: check_choice(how, "how", WAYS),
    "way": lambda way: check_choice(way, "way", ("", "apply", "branch")),
    "positions": lambda positions: tuple(check_count(position, "each of positions") for position in positions),
    "budget": lambda budget: encode_budget(decode_budget(budget)),
    "labels": lambda labels: check_labels(labels),
}


def _check_data(data: Any) -> Any:
    wrong = problem_of(prompt_form, data) if isinstance(data, dict) else f"got {shown(data)}"
    if wrong is not None:
        raise BadInput(f"Expected the data of a prompt: {wrong}.")
    return data


def encode(command: RemoteCommand, principal: str | None = None) -> tuple[str, str]:
    """Return the kind of a remote command and its body: the arguments of the command as a JSON object.

    ``principal`` is the id of the principal who asks; None takes that of the current thread.
    """
    if not command.travels_as:
        raise TypeError(f"{type(command).__name__} cannot be asked of an agent of another process.")
    arguments = {name: getattr(command, name) for name in on.arguments_of(type(command))}
    if isinstance(command, on.ForkTrials):
        arguments["trials"] = [
            trial if trial.go or trial.begin else trial[: on.TrialBirth._fields.index("go")] for trial in command.trials
        ]
    sent = {name: value for name, value in arguments.items() if value or name not in _LATER}
    if (keyed := getattr(command.caller, "keyed", None)) is not None:
        sent[ONCE] = keyed[0].as_data()
    if (asks := principal or current_principal()) is not None:
        sent[PRINCIPAL] = asks
    return command.travels_as, json.dumps(sent)


def decode(kind: str, body: str, caller: "RemoteCaller") -> RemoteCommand:
    """Decode the command of a row. Raises `BadInput` if another version of the program, or a person, wrote the row."""
    if (made := _KINDS.get(kind)) is None:
        raise BadInput(f"This ikigai knows no remote command {kind!r}: upgrade the process that runs the agents.")
    names = on.arguments_of(made)
    try:
        payload = json.loads(body)
        known = {name: payload.pop(name) for name in _KEPT_BY_CALLER if isinstance(payload, dict) and name in payload}
        if ONCE in known:
            caller.keyed = call_in(known[ONCE], caller.key.agent), dict
        if PRINCIPAL in known:
            caller.principal = check_type(known[PRINCIPAL], str, PRINCIPAL, "text")
    except (ValueError, RecursionError) as error:
        raise BadInput(f"The arguments of this remote {kind} cannot be read: {error}.") from error
    if not isinstance(payload, dict) or not set(names) - _LATER <= payload.keys() <= set(names):
        raise BadInput(f"Expected {', '.join(names) or 'no arguments'} of a remote {kind}; got {shown(payload)}.")
    types = {field.name: field.type for field in fields(made)}
    for name, value in payload.items():
        wanted: Any = types[name]
        if get_origin(wanted) is tuple:
            wanted = list  # as JSON has it
        if get_origin(wanted) is not Mapping and not isinstance(value, wanted):
            raise BadInput(f"Expected another value for {name} of a remote {kind}; got {shown(value)}.")
        if name in _CHECKS:
            payload[name] = _CHECKS[name](value)
    if "child" in payload and not is_agent_uuid(payload["child"]):
        raise BadInput(f"Expected a uuid as the child of a remote {kind}; got {shown(payload['child'])}.")
    return made(**payload, caller=caller)


def _new_child(uuid: Any = None, name: Any = None, prompt: Any = None, *_: Any) -> on.NewChild:
    if not is_agent_uuid(uuid) or not isinstance(prompt, str | None):
        raise BadInput(f"Expected a uuid, a name and a prompt of each child of a remote fork; got {shown(uuid)}.")
    return on.NewChild(uuid, None if name is None else check_name(name), prompt)


def _trial(uuid: Any = None, of: Any = None, at: Any = None, prompt: Any = None, *more: Any) -> on.TrialBirth:
    sound = is_agent_uuid(uuid) and is_agent_uuid(of) and type(at) is int and isinstance(prompt, str | None)
    more = (*more, False, []) if len(more) == 3 else more  # an older version sends no more
    if not sound or [type(field) for field in more] != [dict, dict, dict, bool, list]:
        raise BadInput(f"Expected a uuid, a position and facts of each trial of a remote command; got {shown(uuid)}.")
    data, settings, facts, go, begin = more
    copies = tuple(_copy(*entry) if isinstance(entry, list) else _copy() for entry in begin)
    return on.TrialBirth(uuid, of, at, prompt, _check_data(data), check_settings(settings), facts, go, copies)


def _copy(kind: Any = None, content: Any = None, data: Any = None, *_: Any) -> tuple[str, str, dict[str, Any]]:
    if not (isinstance(kind, str) and isinstance(content, str) and isinstance(data, dict)):
        raise BadInput(f"Expected kind, content and data of each message that a trial begins with; got {shown(kind)}.")
    return kind, content, data


class OutcomeHandler(Protocol):
    """Takes the outcomes of remote commands. No method waits; any thread may call them."""

    def committed(self, key: RemoteCommandKey, kind: str, value: Any) -> None:
        """Take the answer of a command that was committed in the same transaction as the command's unit."""

    def answer(self, key: RemoteCommandKey, kind: str, value: Any) -> None:
        """Write the answer of a command for which the agent has written no unit."""

    def leave(self, key: RemoteCommandKey) -> None:
        """Take back a command that the agent has not decided, so that it is tried again later."""


class RemoteCaller(Future[Any]):
    """The caller of a remote command: a future whose result is written to the command's row."""

    def __init__(self, handler: OutcomeHandler, key: RemoteCommandKey, kind: str, mailed: int) -> None:
        """Make the caller of the command in a row.

        ``mailed``: the number of the agent's latest mail before the command.
        """
        super().__init__()
        self._handler, self.key, self._kind, self.mailed = handler, key, kind, mailed
        self.principal: str | None = None

    def settle(self, value: Any) -> None:
        if self.done():
            return
        super().settle(None)
        is_dead = isinstance(value, AgentDead) and value.agent == self.key.agent
        if is_dead or isinstance(value, NOT_ANSWERS):
            self._handler.leave(self.key)
        else:
            self._handler.answer(self.key, self._kind, value)

    def committed(self, value: Any) -> None:
        """Take the answer of the command, which was committed with the command's unit."""
        super().settle(None)
        self._handler.committed(self.key, self._kind, value)


def keyed_of(step: Step) -> tuple[KeyedCall, Any] | None:
    """Return the keyed call that a step's unit carries out, and the answer for its key; None for any other step."""
    caller = step.caller
    if not isinstance(caller, Future) or caller.keyed is None:
        return None
    answers = (effect.value for effect in step.effects if isinstance(effect, Answer) and effect.caller is caller)
    call: KeyedCall = caller.keyed[0]
    return next(((call, value) for value in answers), None)


def step_by_principal(step: Step) -> Step:
    """Return the step, with the principal who asked for it noted in its messages, if known."""
    caller, unit = step.caller, step.unit
    if not isinstance(caller, RemoteCaller) or caller.principal is None or not isinstance(unit, LogUnit):
        return step
    who = caller.principal
    births = tuple(replace(birth, messages=naming(birth.messages, who)) for birth in unit.births)
    born = {birth.uuid: birth for birth in births}
    effects = tuple(Spawn(born[effect.birth.uuid]) if isinstance(effect, Spawn) else effect for effect in step.effects)
    return replace(step, unit=replace(unit, messages=naming(unit.messages, who), births=births), effects=effects)


def remote_command_of(step: Step) -> tuple[RemoteCaller, Any] | None:
    """Return the remote command that a step's unit carries out, and its answer.

    None for any other step, and if the answer comes later.
    """
    caller = step.caller
    if not isinstance(caller, RemoteCaller):
        return None
    answers = (effect.value for effect in step.effects if isinstance(effect, Answer) and effect.caller is caller)
    return next(((caller, value) for value in answers), None)


def mails_before(command: Any) -> int | None:
    """Return the number of the agent's latest mail at the time when this command was sent.

    None for a command of this process, for which the number is not known.
    """
    caller = getattr(command, "caller", None)
    return caller.mailed if isinstance(caller, RemoteCaller) else None
