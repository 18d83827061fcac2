"""The commands that fork an agent."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from operator import itemgetter
from typing import Any, TypedDict, Unpack, overload

from ikigai_actors.actors.futures import Future
from ikigai_actors.actors.wait_graph import Until
from ikigai_actors.agent.turn import events as on
from ikigai_actors.arguments import check_flag, check_timeout
from ikigai_actors.attachments import Attachable
from ikigai_actors.errors import BadInput, NameTaken
from ikigai_actors.programs.acts import ForkAct
from ikigai_actors.programs.frames import acting_frame
from ikigai_actors.programs.provider import Program
from ikigai_actors.records.agents import registry
from ikigai_actors.records.agents.identity import new_agent_uuid
from ikigai_actors.records.budgets.budget import Budget
from ikigai_actors.records.messages.skills_beside import SKILLS
from ikigai_actors.records.once import KeyedCall, answer_under
from ikigai_actors.system.births import Child, births_of, note_of
from ikigai_actors.system.handles.base import H
from ikigai_actors.system.handles.commands.base import CommandBase
from ikigai_actors.system.lifecycle import data_of, new_children, new_fork
from ikigai_actors.system.skills import check_names

_children = itemgetter("children")


class ForkOptions(TypedDict, total=False):
    """The arguments of a fork that all its children share, and the time-out; see `ForkCommands.fork`."""

    model: "str | Program | None"
    system: str | None
    restart: str
    on_orphan: str | None
    output: Any
    attach: Sequence[Attachable]
    at: int | None
    budget: Budget | Mapping[str, Any] | None
    labels: Mapping[str, str] | None
    skills: Sequence[str]
    kind: str | None
    key: str | None
    timeout: float | None


class ForkCommands(CommandBase[H]):
    """The commands that fork an agent."""

    __slots__ = ()

    @overload
    def fork(
        self,
        prompt: str | None = None,
        *,
        name: str | None = None,
        exist_ok: bool = False,
        **how: Unpack[ForkOptions],
    ) -> Future[H]: ...

    @overload
    def fork(
        self,
        *,
        prompts: Sequence[str | None],
        names: Sequence[str | None] | None = None,
        **how: Unpack[ForkOptions],
    ) -> Future[list[H]]: ...

    @overload
    def fork(
        self,
        prompt: str | None = None,
        *,
        count: int,
        names: Sequence[str | None] | None = None,
        **how: Unpack[ForkOptions],
    ) -> Future[list[H]]: ...

    def fork(
        self,
        prompt: str | None = None,
        *,
        name: str | None = None,
        count: int | None = None,
        prompts: Sequence[str | None] | None = None,
        names: Sequence[str | None] | None = None,
        model: "str | Program | None" = None,
        system: str | None = None,
        restart: str = "transient",
        on_orphan: str | None = None,
        output: Any = None,
        attach: Sequence[Attachable] = (),
        at: int | None = None,
        budget: Budget | Mapping[str, Any] | None = None,
        labels: Mapping[str, str] | None = None,
        skills: Sequence[str] = (),
        kind: str | None = None,
        exist_ok: bool = False,
        key: str | None = None,
        timeout: float | None = None,
    ) -> Future[H] | Future[list[H]]:
        """Make a child that inherits this agent's history and settings; return its handle after the commit.

        A busy agent forks at its next step boundary. The cost is the same whatever the history. With ``count`` or
        ``prompts`` it makes several children in one unit, all or none, and returns their handles in order.

        Args:
            prompt: the child's first prompt, which it answers at once; None lets the child wait for a prompt. With
                ``count`` all children get this prompt.
            name: a name for the child, unique among the living.
            count: how many children, 1 to 10,000.
            prompts: in place of ``count``, a list of the first prompts, one for each child.
            names: their names, one for each child; None is no name.
            model: the child's ``model`` setting, ``provider:model``, or a program; None inherits.
            system: the child's system prompt; None inherits.
            restart: when the supervisor restarts the child: after a crash or an exit (``permanent``), after a crash
                (``transient``), or never (``temporary``).
            on_orphan: what happens to the child's own children when it dies: ``reparent``, ``cascade``, ``stop`` or
                ``continue``; None inherits.
            output: the type of the value that the child's first turn must give, as in `prompt`. ``reply()`` of the
                handle returns the value. If the child's model calls ``exit`` in that turn, the result must be such a
                value, and comes as JSON by mail, for `read_output`.
            attach: attachments of the prompt, as in `prompt`.
            at: the last position of the history that the child inherits; None for the end. The child does not see later
                messages, but it gets the present settings. A prompt without an answer at this position is inherited as
                well, so usually the position before the prompt is wanted. With ``at`` a busy agent forks at once.
            budget: the most that the child and all its descendants may spend: a `Budget`, or a dict of its arguments.
                With ``count`` each child gets its own. None sets no further limits; the limits of this agent hold for
                the child in any case.
            labels: the account for which the child and all its descendants work, such as ``{"team": "sales"}``. They
                override the labels of this agent and of the turn in progress, 16 together at most; see
                `ActorSystem.spending`.
            skills: the names of this agent's skills whose texts are added to the prompt, as in `prompt`.
            kind: the name of one of this agent's kinds (`use_kinds`). The child gets its system prompt, model, tools
                and budget. It begins with this prompt and remembers no earlier messages, unless its kind says so. It
                may do no more than this agent.
            exist_ok: whether to return the living child with this name unchanged, if there is one, and to ignore the
                other arguments. If several programs ask at once, one makes the child, and all get it.
            key: 1 to 200 printable characters that name this fork for this agent. A second call with the key, in any
                process and after any crash, makes nothing, and gives the child of the first one, even if it has another
                name now, or is dead.
            timeout: seconds to wait. After a `TimedOut`, which has the uuid of the child, the fork may still happen.

        Raises:
            NameTaken, BadInput: the child cannot have this name, or there is no such kind.
            KeyTaken: the key names another call.
            NotABoundary: this position lies within a step. The error has the nearest allowed positions.
            AgentDead, AgentStopped: this agent is dead or stopped, and does not fork.
            BudgetExceeded: a budget allows no further agents.
            InboxFull: 10,000 commands wait for the agent.
            WouldWaitForItself: called by the agent's own code during its turn. Let the code return ``[ToolCall("fork",
                {...})]`` instead.
            WouldDeadlock: called by the code of an agent for which this agent waits.
        """
        model = model.name if isinstance(model, Program) else model
        if (frame := acting_frame.get()) is not None and frame.me.uuid == self.uuid:
            others = (count, prompts, names, tuple(attach), at, budget, labels, tuple(skills), key, on_orphan)
            if exist_ok or restart != "transient" or any(option not in (None, ()) for option in others):
                raise BadInput(
                    "Expected prompt, name, kind, model, system and output for the fork of a program, and nothing else."
                )
            if model is None and kind is None:
                raise BadInput(
                    "Expected a model for the fork of a program: without one the child would run this program again."
                )
            asked = {"prompt": prompt, "name": name, "model": model, "system": system, "kind": kind}
            asked |= data_of(output, ())[0]
            arguments = {key: value for key, value in asked.items() if value is not None}
            return ForkAct(frame, arguments, lambda uuid: self._ref(uuid, output))
        random_bytes = self.system._random_bytes
        children = new_children(
            lambda: new_agent_uuid(random_bytes), prompt, name, count=count, prompts=prompts, names=names
        )
        named = check_names(skills)
        fork = new_fork(
            children,
            model=model,
            system=system,
            restart=restart,
            on_orphan=on_orphan,
            output=output,
            attach=attach,
            at=at,
            budget=budget,
            labels=labels,
            skills=self._skill_texts(named),
            kind=kind,
        )
        options: dict[str, Any] = {
            "model": model,
            "system": system,
            "restart": restart,
            "on_orphan": on_orphan,
            "at": at,
        }
        options |= {"skills": named} if named else {}
        options |= {"kind": kind} if kind else {}
        call = self._fork_call(key, fork, options)
        if check_flag(exist_ok, "exist_ok"):
            if (called := children[0].name) is None or count is not None or prompts is not None:
                raise BadInput("Expected the name of one child together with exist_ok; got none, or several children.")
            check_timeout(timeout)
            return self._beside(lambda: self._found_or_born(called, fork, children, output, timeout, call), timeout)
        if count is None and prompts is None:
            return self._tell(fork, self._births(timeout, children, lambda uuid: self._ref(uuid, output)), call)
        uuids = [child.uuid for child in children]
        return self._tell(
            fork, self._births(timeout, children, lambda answer: self._refs(answer, uuids, output)), call, _children
        )

    def _refs(self, answer: object, uuids: Sequence[str], output: Any = None) -> list[H]:
        """Return the handles of children: those in the answer of an earlier call under the key, or else ``uuids``."""
        return [self._ref(uuid, output) for uuid in (answer if isinstance(answer, list) else uuids)]

    def _fork_call(
        self, key: str | None, fork: Callable[[on.Caller], on.Fork], options: Mapping[str, Any]
    ) -> KeyedCall | None:
        """Return the keyed call of a fork; None without a key. It has all arguments except the random uuids."""
        if key is None:
            return None
        asked = fork(None)
        siblings = [[child.name, child.prompt] for child in asked.children]
        data = {name: value for name, value in asked.data.items() if name != SKILLS}  # the options name them
        further = {"data": data, "budget": asked.budget, "labels": dict(asked.labels)}
        about = asked.name or asked.prompt or ""
        call = KeyedCall(key, "fork", {**options, **further, "children": siblings}, self.uuid, self.uuid, about)
        return replace(call, names={"children": [child.uuid for child in asked.children]})

    def fork_many(
        self,
        children: Sequence[Child],
        *,
        note: Mapping[str, Any] | None = None,
        key: str | None = None,
        timeout: float | None = None,
    ) -> Future[list[H]]:
        """Make children that continue any histories, in one unit, all or none. This agent supervises them.

        The agents whose histories are inherited are not changed, and may be dead. A child gets the present settings of
        that agent, as with `fork`. A child whose calls have no effects outside (setting ``effects``) gets the settings
        at the inherited position instead. The children are under the budgets of this agent, and are never restarted.

        Args:
            children: 1 to 1,000 of them.
            note: data of a note, as in `note`, that is written in this agent's log before the births; None for no note.
            key: as in `fork`.
            timeout: seconds to wait. After a `TimedOut`, which has the uuid of the first child, the forks may still
                happen.

        Raises:
            BadInput: an argument cannot be used; or a child with ``go`` has a history that ends with nothing to answer.
            NotABoundary: a step is in progress at a position. The error has the nearest allowed positions.
            HistoryPruned: a history was deleted.
            AgentNotFound, AmbiguousAgent: there is no such agent, or several.
            AgentDead, AgentStopped: this agent is dead or stopped, and does not fork.
            BudgetExceeded: a budget allows no further agents.
        """
        terms = note_of({} if note is None else note)
        check_timeout(timeout)

        def bear() -> Future[list[H]]:
            births = births_of(self.system, children)
            uuids = [birth.uuid for birth in births]
            born = self._births(timeout, births, lambda answer: self._refs(answer, uuids))
            arguments = {"note": terms, "children": [_asked(child) for child in children]}
            if (call := self._call(key, "fork_many", arguments, "")) is not None:
                call = replace(call, names={"children": uuids})
            return self._tell(lambda caller: on.ForkTrials(terms, births, caller), born, call, _children)

        return self._beside(bear, timeout)

    def _found_or_born(
        self,
        name: str,
        fork: Callable[[on.Caller], on.Fork],
        children: Sequence[on.NewChild],
        output: Any,
        timeout: float | None,
        call: KeyedCall | None,
    ) -> Future[H]:
        """Return the living child of this name, or fork a new one. If several calls fork at once, all get one child."""

        def taken(error: BaseException) -> object:
            return error.holder if isinstance(error, NameTaken) and self.uuid in error.above else error

        born = self._births(timeout, children, lambda uuid: self._ref(uuid, output), taken)
        if call is not None and (known := self.system._store.read(lambda tx: answer_under(tx, call))) is not None:
            born.settle(known["value"])
        elif (there := self.system._store.read(lambda tx: registry.child_named(tx, self.uuid, name))) is None:
            return self._tell(fork, born, call)
        else:
            born.settle(there.uuid)
        return born

    def _births(
        self,
        timeout: float | None,
        born: Sequence[on.NewChild | on.TrialBirth],
        make: Callable[[Any], Any],
        rescue: Callable[[BaseException], object] | None = None,
    ) -> Future[Any]:
        what, who = ("the fork", "the child") if len(born) == 1 else ("the forks", "the first child")
        late = f"{what} may still happen: {who} is agent {born[0].uuid} then (system.agent finds it)."
        return self._future(timeout, make, late=late, until=Until.STEP, rescue=rescue)


def _asked(child: Child) -> dict[str, Any]:
    fields = {"at": child.at, "prompt": child.prompt, "go": child.go, "settings": dict(child.settings)}
    return {"of": getattr(child.of, "uuid", child.of), **fields}
