"""The calls of one reply: decides which may start, and reads their progress from the log after a crash. Pure.

A call is *waiting* until it is started or refused, *running* from its committed ``tool_call`` on, and *done* when its
``tool_result`` is committed. If the policy says ask, the call is *asking* in between, from a committed ``approval``
until a person or the program decides: a second ``approval`` makes the call *approved*, a result denies it.

Ordinary calls run at the same time, unless their tool must run alone. The agent itself carries out built-in calls, in
order, once no ordinary call runs. One of them, ``wait``, takes time: from its ``tool_call`` on it is running and holds
no thread, and the built-in calls behind it wait for its end. Only the next request to the model waits for a call that
asks.

If hooks must be asked about a call, the call is *checking* until their verdict is committed, in a ``hook`` message
before all other messages. Later steps, on this host or another one, read the verdict and ask no hook again. For calls
of ``fork``, the hooks of ``on_fork`` are asked too.

The state of a call at a crash, the effect that it may have had, and its treatment when the turn is resumed:

    waiting, approved             nothing was done          it is started
    checking                      nothing was done          the hooks are asked, once more perhaps
    asking                        nothing was done          the question stays open
    asking for an account         the tool was called, but  the question stays open; the call starts again when the
                                  did nothing               account is connected
    running, tool idempotent      perhaps done              it starts again, if the tool's definition is the same
    running, tool not idempotent  perhaps done              its result is an error, and the model decides
    running in another database   perhaps done              the same: nobody has allowed the call here
    a built-in call               done with its result,     it is carried out
                                  or not at all
    running, a wait               nothing was done          the wait goes on until the deadline in ``tool_call``
    done                          done                      its result stays
"""

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256
from typing import Any

from ikigai_actors.agent.turn.elision import CHANGED_BY
from ikigai_actors.frozen import replace
from ikigai_actors.records.messages.messages import Kind, Message
from ikigai_actors.records.messages.replies import reply_of
from ikigai_actors.records.questions.waiting import ASK_PERSON
from ikigai_actors.records.transfer.rights import STARTED_ELSEWHERE
from ikigai_actors.tools.hooks.verdict import BEFORE_CALL
from ikigai_actors.tools.policy import SHELL, Asked, Policy, ToolTraits
from ikigai_actors.tools.rules.rule import Rule, Rules, deciding, exact_pattern

FORK, WAIT, GIVE_RESULT = "fork", "wait", "give_result"
"""The built-in calls that the turn treats in a special way: the result of a fork comes last; a wait takes time;
``give_result`` ends a typed turn with its value.
"""

LOOKS = ("check_mail", "read_mail")
"""The built-in calls by which an agent reads its mailbox."""

PERHAPS_RUN = (
    "This call was started, and then the process that ran it ended: it may or may not have run. "
    "Find out before you repeat it."
)
"""The result of a call that was cut off, when its tool is not idempotent."""


CHANGED = "The tool, or the build that has it, has changed since you were asked:"
"""The beginning of `PendingCall.change`, wherever somebody is asked again."""

TOOL, EXACT = "tool", "exact"
"""The later calls that an approval may allow without asking: all calls of the tool, or the same command of bash."""

_NOBODY = (
    "This call of {name} needs somebody's approval, and nobody can be asked here, so it was denied. A person allows it "
    "at a terminal, with --yes, or with a rule; a program with approvals= when it opens the system."
)
"""The result of a call that asks where nobody can be asked."""


NARROWED = "narrowed"
"""The key in the data of a ``hook``, and of the result of a call of ``fork``: by what hooks narrow the child."""


def digest_of(tool: str, arguments: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a call: of the tool's name, a line feed, and the arguments as JSON.

    The JSON has sorted keys and no spaces.
    """
    text = json.dumps(arguments, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=str)
    return sha256(f"{tool}\n{text}".encode(errors="surrogatepass")).hexdigest()


class Progress(StrEnum):
    """The progress of a call."""

    WAITING = "waiting"
    ASKING = "asking"
    APPROVED = "approved"
    CHECKING = "checking"
    """Hooks are asked about the call. This is in no log, so after a crash the call has its earlier progress."""
    RUNNING = "running"
    DONE = "done"


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a reply, with its progress."""

    id: str
    """The id, which is unique within the reply."""
    name: str
    """The name of the tool."""
    input: Mapping[str, Any]
    progress: Progress = Progress.WAITING
    reply: int = 0
    """The position of the reply that makes the call."""
    attempt: int = 0
    """The number of times the call was started, counted by its committed ``tool_call`` messages."""
    elsewhere: bool = False
    """Whether the call was started in another database, from which the agent was imported."""
    unfenced: bool = False
    """Whether the call uses a tool without its sandbox, as `ToolTraits.unfenced` says."""
    rule: Rule | None = None
    """The rule that decides on the call (see `ruled`); None if the tool's policy decides."""
    approved: str = ""
    """The `digest_of` the call that somebody has approved; empty while nobody has."""
    definition: str = ""
    """The digest of the tool's definition when the call began or a person was asked about it; else empty."""
    build: str = ""
    """The build of the process that began the call or asked about it; empty where that is not known."""
    former: str = ""
    """The digest of the definition at an earlier question, if it or the build has changed since."""
    former_build: str = ""
    """The build at an earlier question; empty where it is not known."""
    by_pattern: bool = False
    """Whether the call was started because the pattern of a rule allows it; see `CurrentCall.by_pattern`."""
    hooked: bool = False
    """Whether the verdict of the hooks that run before the call is committed, so they are not asked again."""
    changed_by: tuple[str, ...] = ()
    """The names of the hooks that have changed the call's arguments."""
    narrowed: tuple[Mapping[str, Any], ...] = ()
    """The settings, each with its ``hook``, by which hooks narrow the child that it forks."""
    hook_asks: bool = False
    """Whether a hook wants somebody to decide on the call."""
    after: Progress = Progress.WAITING
    """The progress of the hooks that get the call's result: waiting, checking, or done."""
    asked_at: int = 0
    """The position of the message that asks about the call; 0 if no question is open."""
    connect: Mapping[str, Any] | None = None
    """The account that it waits for, as `Result.connect` names it: nothing but that lets it run. None for none."""

    @property
    def question(self) -> dict[str, Any]:
        """The data of a message that asks about the call, or that records a decision on it."""
        changed = {"former_definition": self.former, "former_build": self.former_build} if self.former else {}
        known: dict[str, Any] = {name: value for name, value in changed.items() if value}
        if self.connect is not None:
            known["connect"] = dict(self.connect)
        return {**self.data, "call_sha256": digest_of(self.name, self.input), **self.defined_by, **known}

    @property
    def defined_by(self) -> dict[str, Any]:
        """The digests of the tool's definition and the build, for the data of a message about the call."""
        about = {"definition": self.definition, "build": self.build} if self.definition else {}
        return {name: value for name, value in about.items() if value}

    @property
    def data(self) -> dict[str, Any]:
        """The data of a message about the call."""
        changed: dict[str, Any] = {CHANGED_BY: list(self.changed_by)} if self.changed_by else {}
        narrowed = {NARROWED: list(self.narrowed)} if self.narrowed else {}
        return {"tool_use_id": self.id, "name": self.name, **changed, **narrowed}


@dataclass(frozen=True, slots=True)
class PendingCall:
    """A call that waits for the decision of a person, as people and programs get it."""

    agent: str
    """The uuid of the agent whose model makes the call."""
    reply: int
    """The position of the reply that makes the call."""
    id: str
    """The id, which is unique within the reply."""
    tool: str
    """The name of the tool."""
    input: Mapping[str, Any]
    """The arguments of the call."""
    unfenced: bool = False
    """Whether the call is a command of bash that would run without its intended sandbox."""
    definition: str = ""
    """The digest of the tool's definition that the question is about."""
    former: str = ""
    """The digest of the definition at the earlier question, if it or the build has changed since; else empty."""
    change: str = ""
    """The differences between the two definitions and builds, line by line; empty for a first question."""
    build: str = ""
    """The build of the host that asks; empty where it is not known."""
    former_build: str = ""
    """The build of the host that asked before; empty for a first question."""
    asked_at: int = 0
    """The position of the message that asks about the call."""
    connect: Mapping[str, Any] | None = None
    """The account that it waits for: server, label and subject. None for a call that waits for a decision."""

    @property
    def sha256(self) -> str:
        """The SHA-256 of the call's tool and arguments, with which the log records a decision: see `digest_of`."""
        return digest_of(self.tool, self.input)

    @property
    def full_name(self) -> str:
        """The name of the call that every shell, page and API accepts: ``REPLY/ID/DIGEST``.

        DIGEST is the first eight digits of `sha256`. The id alone is not enough, because many services number their
        calls from 0 in each reply. When a question is asked again because the tool or the build has changed, eight
        digits of the SHA-256 of the new definition and build are added.
        """
        again = f"/{sha256(f'{self.definition}{self.build}'.encode()).hexdigest()[:8]}" if self.former else ""
        return f"{self.reply}/{self.id}/{self.sha256[:8]}{again}"

    @property
    def compound(self) -> bool:
        """Whether the call is a command of bash that no pattern can allow.

        Such a command has expansions, redirections or several commands, or it changes the shell in which later commands
        run.
        """
        return self.tool == SHELL and exact_pattern(self.tool, self.input) is None

    @property
    def always(self) -> tuple[str, ...]:
        """The values of ``always`` that `Approvals.approve` accepts for the call, the narrowest first.

        ``exact`` allows this command of bash, ``tool`` all calls of the tool. A compound command, and a question to a
        person, have neither.
        """
        if self.tool == ASK_PERSON or self.connect is not None:
            return ()
        if self.tool != SHELL:
            return (TOOL,)
        return () if self.compound else (EXACT,) if self.unfenced else (EXACT, TOOL)


Approver = Callable[[PendingCall], bool | str]
"""Decides on a call: True approves, False denies, and a text denies with that reason. It may block, since it runs on a
separate thread for each call.
"""

Calls = tuple[Call, ...]


def calls_of(reply: Message) -> Calls:
    """Return the calls that a reply makes."""
    return tuple(Call(call.id, call.name, call.input, reply=reply.id) for call in reply_of(reply).tool_calls)


def recover(messages: Iterable[Message]) -> Calls:
    """Return the calls of the latest reply among an agent's messages of a turn, each with its progress."""
    calls: Calls = ()
    for message in messages:
        match message.kind:
            case Kind.ASSISTANT:
                calls = calls_of(message)
            case Kind.ERROR:  # it was opened again, with a new request
                calls = ()
            case Kind.APPROVAL:
                now = Progress.APPROVED if message.data.get("approved") else Progress.ASKING
                calls = progress(calls, (message.data.get("tool_use_id"),), now)
                if now is Progress.APPROVED:
                    approved = str(message.data.get("call_sha256") or "")
                    calls = marked_approved(calls, message.data.get("tool_use_id"), approved)
                calls = defined(calls, message.data)
                calls = marked_connecting(calls, message.data)
                calls = marked_asked(
                    calls, message.data.get("tool_use_id"), message.id if now is Progress.ASKING else 0
                )
                if message.data.get("unfenced"):
                    calls = marked_unfenced(calls, {message.data.get("tool_use_id")})
            case Kind.HOOK:
                calls = with_verdict(calls, message.data)
            case Kind.TOOL_CALL:
                calls = begun_with(calls, message.data)
                calls = progress(calls, (message.data.get("tool_use_id"),), Progress.RUNNING)
                if message.data.get("by_pattern"):
                    calls = marked_by_pattern(calls, {message.data.get("tool_use_id")})
                if message.data.get(STARTED_ELSEWHERE):
                    calls = tuple(replace(call, elsewhere=call.progress is Progress.RUNNING) for call in calls)
            case Kind.TOOL_RESULT:
                calls = progress(calls, (message.data.get("tool_use_id"),), Progress.DONE)
    return calls


def with_verdict(calls: Calls, said: Mapping[str, Any]) -> Calls:
    """Apply the verdict in the data of a ``hook`` message to the call that it is about.

    Verdicts of another database are ignored.
    """
    if said.get(STARTED_ELSEWHERE):
        return calls

    def after(call: Call) -> Call:
        if call.id != said.get("tool_use_id"):
            return call
        if said.get("event") != BEFORE_CALL:
            return replace(call, after=Progress.DONE)
        return replace(
            call,
            hooked=True,
            input=said.get("input", call.input),
            changed_by=tuple(said.get(CHANGED_BY, ())),
            hook_asks=said.get("decision") == "ask",
            narrowed=tuple(said.get(NARROWED, ())),
        )

    return tuple(map(after, calls))


def narrowed_by(settings: Iterable[tuple[str, Mapping[str, Any]]]) -> list[dict[str, Any]]:
    """Return the data of a message that records the settings by which hooks narrow the rights of a child."""
    return [{"hook": hook, "settings": dict(by)} for hook, by in settings]


def focus_in(messages: Iterable[Message]) -> str | None:
    """Return the focus of the summary for which a call of the latest reply asks; None if no call does.

    ``messages``: the agent's own messages of the turn.
    """
    focus: str | None = None
    for message in messages:
        match message.kind:
            case Kind.ASSISTANT | Kind.SUMMARY:
                focus = None
            case Kind.TOOL_RESULT if isinstance(asked := message.data.get("compact"), str):
                focus = asked
    return focus


def progress(calls: Calls, ids: Iterable[Any], now: Progress) -> Calls:
    """Set the progress of the calls with these ids to ``now``. A call that runs now counts a further attempt."""
    changed, begins = set(ids), now is Progress.RUNNING
    return tuple(
        replace(
            call,
            progress=now,
            attempt=call.attempt + begins,
            asked_at=call.asked_at if now is Progress.ASKING else 0,
        )
        if call.id in changed
        else call
        for call in calls
    )


def marked_unfenced(calls: Calls, ids: Collection[Any]) -> Calls:
    """Mark the calls with these ids as unfenced."""
    return tuple(replace(call, unfenced=True) if call.id in ids else call for call in calls)


def defined(calls: Calls, question: Mapping[str, Any]) -> Calls:
    """Set the definition and the build of one call to the values in the data of a question about it."""
    named = ("definition", "build", "former_definition", "former_build")
    definition, build, former, former_build = (str(question.get(name) or "") for name in named)
    return tuple(
        replace(call, definition=definition, build=build, former=former, former_build=former_build)
        if call.id == question.get("tool_use_id")
        else call
        for call in calls
    )


def begun_with(calls: Calls, begun: Mapping[str, Any]) -> Calls:
    """Set the definition and the build of one call to the values in the data of its ``tool_call`` message."""
    definition, build = str(begun.get("definition") or ""), str(begun.get("build") or "")
    return tuple(
        replace(call, definition=definition, build=build) if call.id == begun.get("tool_use_id") else call
        for call in calls
    )


def here(calls: Calls, tools: Mapping[str, ToolTraits]) -> Calls:
    """Set the definition and the build of each call to the values of its tool in this process."""
    return tuple(replace(call, definition=(own := tools[call.name]).definition, build=own.build) for call in calls)


def redefined(calls: Calls, tools: Mapping[str, ToolTraits]) -> Calls:
    """Return the calls whose tool has another definition or build than when a person was asked about them.

    None of these calls runs. Calls for which an earlier version has recorded no definition are left out.
    """
    asked = (Progress.ASKING, Progress.APPROVED)
    return tuple(
        call
        for call in calls
        if call.progress in asked and call.definition and call.name in tools
        and (tools[call.name].definition not in ("", call.definition) or _is_of_another_build(call, tools))
    )  # fmt: skip


def _is_of_another_build(call: Call, tools: Mapping[str, ToolTraits]) -> bool:
    return bool(call.build) and tools[call.name].build not in ("", call.build)


def asked_again(calls: Calls, again: Calls) -> Calls:
    """Return all calls; the calls that are also in ``again`` wait as if nobody had been asked about them.

    Their definition and build move to ``former`` and ``former_build``, so that the next question can show the change.
    """
    ids = {call.id for call in again}
    return tuple(_unasked(call) if call.id in ids else call for call in calls)


def _unasked(call: Call) -> Call:
    former, build = call.definition, call.build
    call = replace(call, progress=Progress.WAITING, approved="", definition="", build="", connect=None)
    return replace(call, former=former, former_build=build)


def marked_approved(calls: Calls, id_: Any, approved: str) -> Calls:
    """Mark the call with this id as approved, with the digest of the call that somebody approved."""
    return tuple(replace(call, approved=approved) if call.id == id_ else call for call in calls)


def marked_asked(calls: Calls, id_: Any, position: int) -> Calls:
    """Note that the message at a position asks about the call with this id; 0 if no message does."""
    return tuple(replace(call, asked_at=position) if call.id == id_ else call for call in calls)


def marked_connecting(calls: Calls, question: Mapping[str, Any]) -> Calls:
    """Set the account for which one call waits to that in the data of a question; None if the question was answered."""
    connect = None if question.get("approved") else question.get("connect")
    return tuple(replace(call, connect=connect) if call.id == question.get("tool_use_id") else call for call in calls)


def marked_by_pattern(calls: Calls, ids: Collection[Any]) -> Calls:
    """Mark the calls with these ids as started because the pattern of a rule allows them."""
    return tuple(replace(call, by_pattern=True) if call.id in ids else call for call in calls)


def allowed_by_pattern(calls: Calls, tools: Mapping[str, ToolTraits]) -> Calls:
    """Return those calls that may run only because the pattern of a rule allows them."""
    return tuple(
        call
        for call in calls
        if call.rule is not None and call.rule.pattern and not call.approved
        and _policy(replace(call, rule=None), tools) is not Policy.ALLOW
    )  # fmt: skip


def changed_since(calls: Calls) -> Calls:
    """Return the calls that could start, but whose tool or arguments differ from what a person approved."""
    approved = (call for call in calls if call.progress is Progress.APPROVED and call.approved)
    return tuple(call for call in approved if call.approved != digest_of(call.name, call.input))


def running(calls: Calls) -> bool:
    """Return whether an ordinary call runs, or hooks are asked about a call."""
    return any(
        (call.progress is Progress.RUNNING and call.name != WAIT) or Progress.CHECKING in (call.progress, call.after)
        for call in calls
    )


def to_be_hooked(calls: Calls, before: Mapping[str, Sequence[str]]) -> Calls:
    """Return the calls about which hooks must be asked now; ``before`` has the names of the hooks, by call."""
    may = (Progress.WAITING, Progress.APPROVED)
    return tuple(call for call in calls if call.progress in may and not call.hooked and before.get(call.id))


def to_be_heard_of(calls: Calls, after: Mapping[str, Sequence[str]], tools: Mapping[str, ToolTraits]) -> Calls:
    """Return the calls that have run, and about whose results hooks must be asked now.

    ``after`` has the names of the hooks, by call.
    """
    done = (call for call in calls if call.progress is Progress.DONE and call.after is Progress.WAITING)
    return tuple(call for call in done if after.get(call.id) and (call.attempt or _builtin(call, tools)))


def waits(calls: Calls) -> Calls:
    """Return the ``wait`` calls that are in progress: at most one."""
    return tuple(call for call in calls if call.progress is Progress.RUNNING and call.name == WAIT)


def ended_by_words(calls: Calls, at_once: bool) -> Calls:
    """Return the calls that steering messages end: a ``wait``, or with ``at_once`` all calls without a result.

    A program's wait for turns is not ended, because no function reads steering messages.
    """
    ended = tuple(call for call in calls if call.progress is not Progress.DONE) if at_once else waits(calls)
    return tuple(call for call in ended if call.name != WAIT or "turns" not in call.input)


def at_rest(calls: Calls) -> bool:
    """Return whether no call of the reply is being carried out.

    Each call is done, waits for a decision, is a ``wait``, or comes after a ``wait``.
    """
    done = all(call.progress in (Progress.DONE, Progress.ASKING) for call in calls)
    return not running(calls) and (done or bool(waits(calls)))


def pending(agent: str, call: Call) -> PendingCall:
    """Return an agent's call in the form that people get who decide on it."""
    shown = PendingCall(agent, call.reply, call.id, call.name, call.input, call.unfenced, call.definition, call.former)
    shown = replace(shown, connect=call.connect)
    return replace(shown, build=call.build, former_build=call.former_build, asked_at=call.asked_at)


def asking(calls: Calls) -> Calls:
    """Return the calls that wait for a decision of a person."""
    return tuple(call for call in calls if call.progress is Progress.ASKING)


def unknown(calls: Calls, tools: Mapping[str, ToolTraits]) -> Calls:
    """Return the calls that have not started and whose tools the agent does not have."""
    return tuple(call for call in calls if call.progress in _BEFORE and call.name not in tools)


def ruled(calls: Calls, tools: Mapping[str, ToolTraits], rules: Rules, asked: Mapping[str, Asked]) -> Calls:
    """Give each call the rule that decides on it. No rule applies to the call that gives a typed turn's value.

    Args:
        calls: all calls of a reply.
        tools: the traits of the agent's tools.
        rules: the rules in force for the agent.
        asked: the parts of the calls to which the patterns of rules apply, by id.
    """
    if not rules:
        return calls
    return tuple(
        call
        if call.name == GIVE_RESULT or call.progress not in _BEFORE
        else replace(call, rule=deciding(rules, call.name, asked.get(call.id), _unfenced(call, tools)))
        for call in calls
    )


def denied(calls: Calls, tools: Mapping[str, ToolTraits]) -> Calls:
    """Return the calls that a rule or the policy denies, unless a person has approved them."""
    undecided = (Progress.WAITING, Progress.ASKING)
    return tuple(
        call
        for call in calls
        if (call.progress in undecided and _policy(call, tools) is Policy.DENY)
        or (call.progress is Progress.APPROVED and call.rule is not None and call.rule.decision is Policy.DENY)
    )


def denial(call: Call, tools: Mapping[str, ToolTraits]) -> str:
    """Return the result of a call that is denied."""
    if call.rule is not None and call.rule.decision is Policy.DENY:
        return (
            f"Rule {call.rule.id} of agent {call.rule.agent} denies this call: {call.rule}. Do without it, or ask the "
            "person to take the rule back."
        )
    asks = call.rule is not None or call.hook_asks or tools[call.name].policy is Policy.ASK
    return _NOBODY.format(name=call.name) if asks else tools[call.name].denial


def _policy(call: Call, tools: Mapping[str, ToolTraits]) -> Policy:
    traits = tools[call.name]
    decided = traits.policy if call.rule is None else call.rule.decision
    if call.hook_asks and decided is Policy.ALLOW:
        decided = Policy.ASK
    if call.name == ASK_PERSON and decided is not Policy.DENY:
        decided = Policy.ASK  # no rule answers for a person
    return traits.asks if decided is Policy.ASK else decided


def to_be_asked(calls: Calls, tools: Mapping[str, ToolTraits]) -> Calls:
    """Return the calls about which a person must be asked now."""
    return tuple(call for call in calls if call.progress is Progress.WAITING and _policy(call, tools) is Policy.ASK)


def startable(calls: Calls, tools: Mapping[str, ToolTraits]) -> Calls:
    """Return the ordinary calls that may start now, in order.

    A call whose tool must run alone waits for the calls before it.
    """
    chosen: list[Call] = []
    busy = running(calls)
    if any(call.progress is Progress.RUNNING and _alone(call, tools) for call in calls):
        return ()
    for call in calls:
        if _builtin(call, tools) or not _may_start(call, tools):
            continue
        if _alone(call, tools):
            return tuple(chosen) if busy or chosen else (call,)
        chosen.append(call)
    return tuple(chosen)


def builtin_calls(calls: Calls, tools: Mapping[str, ToolTraits]) -> Calls:
    """Return the built-in calls that may be carried out now or later, in order."""
    may = (Progress.WAITING, Progress.APPROVED)
    return tuple(call for call in calls if _builtin(call, tools) and call.progress in may)


def next_builtin_call(calls: Calls, tools: Mapping[str, ToolTraits]) -> Call | None:
    """Return the first built-in call that may be carried out. A call that ends the turn with a value comes last."""
    ready = builtin_calls(calls, tools)
    return next((call for call in ready if call.name != GIVE_RESULT), ready[0] if ready else None)


def settle_cut_off(calls: Calls, tools: Mapping[str, ToolTraits]) -> tuple[Calls, Calls]:
    """Decide about calls that a crash cut off: which run again, and which get an error as their result.

    Returns all calls with their new progress, and the calls that get the text `PERHAPS_RUN` as their result.
    """
    cut = [call for call in calls if call.progress is Progress.RUNNING and call.name != WAIT]
    again = [call.id for call in cut if _may_repeat(call, tools)]
    lost = tuple(call for call in cut if call.id not in again)
    going_on = progress(progress(calls, again, Progress.APPROVED), (call.id for call in lost), Progress.DONE)
    return going_on, lost


def _may_repeat(call: Call, tools: Mapping[str, ToolTraits]) -> bool:
    """Return whether a call that was cut off may start again, as the same tool with the same definition."""
    own = tools.get(call.name)
    return own is not None and own.idempotent and not call.elsewhere and call.definition in ("", own.definition)


_BEFORE = (Progress.WAITING, Progress.ASKING, Progress.APPROVED)


def _may_start(call: Call, tools: Mapping[str, ToolTraits]) -> bool:
    """Return whether the policy allows the call, or a person has approved it.

    A call that asks may start if the policy has changed.
    """
    if call.progress is Progress.APPROVED:
        return True
    if call.connect is not None:  # it may run, and cannot
        return False
    return call.progress in (Progress.WAITING, Progress.ASKING) and _policy(call, tools) is Policy.ALLOW


def _unfenced(call: Call, tools: Mapping[str, ToolTraits]) -> bool:
    return call.name in tools and tools[call.name].unfenced


def _builtin(call: Call, tools: Mapping[str, ToolTraits]) -> bool:
    return call.name in tools and tools[call.name].builtin


def _alone(call: Call, tools: Mapping[str, ToolTraits]) -> bool:
    return call.name in tools and tools[call.name].alone
