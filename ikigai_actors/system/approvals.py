"""Approvals: calls of models that wait for somebody to decide.

    with ActorSystem.open(tools=[Workspace(".")], approvals="ask") as system:
        for call in system.approvals.pending():
            system.approvals.approve(call)            # or deny(call, "not today")

Each call has a full name, which all shells, web pages and APIs show and accept. It consists of the position of the
reply, the call's id in the reply, and the call's digest. A decision under a full name holds for exactly the call that
was shown, even if it is sent several times: see `Approvals.find`.

A call whose tool asks is committed as an ``approval`` message of its agent, so it waits on after a crash: `pending`
reads the database. The first decision counts. A decision about a call of a turn that was cut off resumes the turn.

The argument ``approvals`` of `ActorSystem.open` says who decides: nobody (each such call is denied, with an explanation
for the model), a person who uses `Approvals`, or a function:

    ActorSystem.open(tools=[...], approvals=lambda call: call.tool == "edit" or "only edits are allowed here")
"""

import getpass
import os
import socket
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import NamedTuple, Protocol

from ikigai_actors.actors.forked import OfOneProcess
from ikigai_actors.actors.futures import Future
from ikigai_actors.agent.turn import events as on
from ikigai_actors.agent.turn.calls import EXACT, TOOL, PendingCall, asking, pending, recover
from ikigai_actors.agent.turn.state import Phase
from ikigai_actors.arguments import check_choice, check_count, check_timeout, check_type
from ikigai_actors.errors import BadInput
from ikigai_actors.records.agents.registry import turns_that_asked
from ikigai_actors.records.log.log_cache import LogCache
from ikigai_actors.records.messages.definitions import definition_bodies
from ikigai_actors.records.questions.waiting import ASK_PERSON
from ikigai_actors.store.base import Store
from ikigai_actors.text import check_text
from ikigai_actors.tools.definitions import change_of
from ikigai_actors.tools.rules.rule import UNFENCED


class Agent(Protocol):
    """A handle of an agent, as far as approvals need it."""

    @property
    def uuid(self) -> str:
        """The agent's uuid."""


class Approvals(OfOneProcess):
    """The calls of a system that wait for somebody to decide. See `ActorSystem.approvals`."""

    def __init__(self, store: Store, log_cache: LogCache, tell: Callable[[str, object], object]) -> None:
        """Use a store and its logs.

        ``tell`` sends a command to an agent, and returns the actor that got the command.
        """
        self._store, self._log_cache, self._tell = store, log_cache, tell

    def pending(self) -> list[PendingCall]:
        """The calls that wait for approval. The calls of one agent are in the order in which its model made them."""
        return [call for call in self._waiting() if call.tool != ASK_PERSON]

    def _waiting(self, agents: Collection[str] | None = None) -> list[PendingCall]:
        open_turns = self._store.read(lambda tx: turns_that_asked(tx, agents))
        return [call for uuid, turn in open_turns.items() for call in self._of(uuid, turn)]

    def find(self, agent: str | Agent, full_name: str) -> PendingCall | None:
        """Find the call of an agent (a handle or a uuid) that waits under a full name; None if it no longer waits."""
        uuid = agent if isinstance(agent, str) else getattr(agent, "uuid", agent)
        check_type(uuid, str, "agent", "a handle or the uuid of an agent")
        check_type(full_name, str, "full_name", "the full name of a call")
        waiting = (call for call in self._waiting({str(uuid)}) if call.tool != ASK_PERSON)
        return next((call for call in waiting if call.full_name == full_name), None)

    def approve(
        self, call: PendingCall, *, always: bool | str = False, by: str = "", timeout: float | None = None
    ) -> bool:
        """Allow a call to run. Return, after the commit, whether the call was still undecided.

        The log records the SHA-256 of the call, which is its tool and exact arguments, and who has decided.

        Args:
            call: a call that waits for approval.
            always: ``"tool"``, or True, also gives the agent a rule that allows the tool; ``"exact"`` one that allows
                the same command of bash. A rule applies to all below the agent, too, and can be taken back
                (`AgentRef.remove_rule`). A rule that asks or denies has precedence. `PendingCall.always` has the words
                that a call takes: a compound command of bash takes none.
            by: the person who decides, for the log, such as ``anna@host``.
            timeout: seconds to wait.

        Raises:
            BadInput: the call does not take this value of ``always``; or the call that waits has other arguments now.
        """
        check_type(call, PendingCall, "call", "one of those that `pending` gives")
        rule = _rule_of(call, always)
        return self._decide(call, _Decision(True, "", rule), by, timeout)

    def deny(self, call: PendingCall, reason: str = "", *, by: str = "", timeout: float | None = None) -> bool:
        """Refuse a call; the model reads the reason. Arguments, result and errors are those of `approve`."""
        check_text(reason, "reason")
        return self._decide(call, _Decision(False, reason, ""), by, timeout)

    def _answer(
        self,
        call: PendingCall,
        approved: bool,
        reason: str,
        always: bool | str,
        by: str,
        question: str,
        answer: str,
        timeout: float | None,
    ) -> bool:
        rule = _rule_of(call, always) if approved and not answer else ""
        return self._decide(call, _Decision(approved, reason, rule, question, answer), by, timeout)

    def _of(self, uuid: str, turn: int) -> list[PendingCall]:
        calls = self._log_cache.find_in(uuid, lambda log: recover(log.since(turn)))
        return [self._with_change(pending(uuid, call)) for call in asking(calls)]

    def _with_change(self, call: PendingCall) -> PendingCall:
        if not call.former:
            return call
        bodies = self._store.read(lambda tx: definition_bodies(tx, (call.former, call.definition)))
        builds = (call.former_build, call.build)
        return replace(call, change=change_of((call.former, call.definition), bodies, builds))

    def _decide(self, call: PendingCall, how: "_Decision", by: str, timeout: float | None) -> bool:
        from ikigai_actors.agent.actor import AgentActor  # where agents run it is loaded; elsewhere it takes long

        check_timeout(timeout)
        check_type(call, PendingCall, "call", "one of those that `pending` gives")
        check_type(call.agent, str, "call.agent", "text")
        check_count(call.reply, "call.reply")
        check_type(call.id, str, "call.id", "text")
        check_text(by, "by")
        decided = Future[bool](call.agent)
        decided.check_wait()
        shown = (call.sha256, by, call.definition, call.build, how.question, how.answer)
        what = on.Decide(call.reply, call.id, how.approved, how.reason, how.always, decided, *shown)
        actor = self._tell(call.agent, what)
        if not decided.get(timeout=timeout):
            return False
        if isinstance(actor, AgentActor) and actor.state.phase is Phase.INTERRUPTED:  # another process does it itself
            actor.deliver(on.Resume(Future()))
        return True


class _Decision(NamedTuple):
    approved: bool
    reason: str
    always: str
    """The rule for later ones; empty for none."""
    question: str = ""
    answer: str = ""


def _rule_of(call: PendingCall, always: bool | str) -> str:
    """Return the calls that a new rule allows: ``tool``, ``exact``, or empty for no rule.

    Raises `BadInput` if the call cannot be approved in this way.
    """
    rule = (TOOL if always else "") if isinstance(always, bool) else check_choice(always, "always", (TOOL, EXACT))
    if rule and rule not in call.always:
        raise BadInput(_why_not(call, rule))
    return rule


def _why_not(call: PendingCall, always: str) -> str:
    if call.compound:
        return (
            "This command of bash is compound: it expands, redirects or chains something, or changes the shell that "
            "later commands run in. So it is approved once only. A rule can allow all of bash, where a fence holds: "
            "set_rule('allow', 'bash')."
        )
    if always == EXACT:
        return f"always='exact' is for commands of bash. Approve this call alone, or all of {call.tool}: always='tool'."
    return UNFENCED + " Approve this command: always='exact'."


def person() -> str:
    """The user at this machine, for the log: ``anna@host``."""
    try:
        name = getpass.getuser()
    except (KeyError, OSError):  # a user without a name
        name = str(os.getuid())
    return f"{name}@{socket.gethostname()}"
