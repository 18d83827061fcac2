"""The tools of an agent: those of the system that its settings do not exclude, and which of them may be used."""

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple, Protocol, TypeVar

from ikigai_actors.agent.builtin_calls.base import BuiltinCall
from ikigai_actors.agent.builtin_calls.fork import FORK_CALL
from ikigai_actors.agent.builtin_calls.programs import PROGRAM_CALLS
from ikigai_actors.agent.builtin_calls.table import BUILTIN_CALLS
from ikigai_actors.agent.turn.ahead import Ahead
from ikigai_actors.agent.turn.builtin import BuiltinTraits
from ikigai_actors.agent.turn.calls import GIVE_RESULT, Call
from ikigai_actors.agent.turn.found_tools import ALWAYS_THERE, FoundTools, words_about
from ikigai_actors.agent.turn.skills import LOAD_SKILL, loadable, unlisted_in
from ikigai_actors.agent.turn.typed import EXIT, begin_result, described_exit, form_of
from ikigai_actors.errors import BadInput, ProviderError
from ikigai_actors.frozen import NO_DATA, replace
from ikigai_actors.providers.base import FIND_TOOLS
from ikigai_actors.records.messages.outputs import Expected
from ikigai_actors.records.messages.settings import complaint, misfits
from ikigai_actors.records.questions.waiting import ASK_PERSON
from ikigai_actors.tools.definitions import Definition, definition_of
from ikigai_actors.tools.fitted import fitted
from ikigai_actors.tools.function import Tool
from ikigai_actors.tools.plain_schema import Unsuitable
from ikigai_actors.tools.policy import Asked, Policy, ToolTraits
from ikigai_actors.tools.rules.rule import UNFENCED, NewRule, allows_whole
from ikigai_actors.tools.trees.tree import Copied

FORBIDDEN = "{name} may not be called here. Do without it, or ask the person to allow it by a rule."
"""The result of a call that the tool's own policy denies."""

T = TypeVar("T", bound=ToolTraits)
_UNREADABLE = "The setting tools of this agent cannot be read, so {name} is denied. Ask the person to set it again."
_GIVE_RESULT = BuiltinTraits(begin=begin_result)


class Offer(NamedTuple):
    """The descriptions of the tools that a request to a model offers."""

    sent: tuple[Mapping[str, Any], ...]
    """The descriptions that are sent, some of them marked with ``defer_loading``."""
    read: tuple[Mapping[str, Any], ...]
    """The descriptions that the model reads, directly or because a result refers to them. They count for the size of
    the request.
    """


class ProgramTools(Protocol):
    """The programs of a system."""

    traits: Mapping[str, ToolTraits]
    """The traits of the tools by which programs act, by name."""

    def __contains__(self, model: object) -> bool: ...

    def tool(self, model: str, name: str) -> Tool:
        """Return the tool with this name for agents whose ``model`` is this program."""

    def went_ahead(self, model: str, agent: str, call: str) -> Ahead | None:
        """Return what the function of an agent did with the result of a call before its commit; None if nothing."""

    def replay(self, model: str, me: Any) -> str:
        """Replay the function of an agent while its calls are in progress.

        Return why it does not fit the log; empty if it fits.
        """

    def drop(self, agent: str) -> None:
        """Unwind the function of an agent. When the agent goes on, the function begins again."""


class Toolbox:
    """The tools of a system, with the descriptions, names and traits of those that an agent may use."""

    def __init__(self, tools: Iterable[Tool], ask: Policy = Policy.DENY, build: str = "") -> None:
        """Make a toolbox with these tools.

        Args:
            tools: the tools in it.
            ask: what happens to calls whose policy is to ask: somebody is asked if a person or a function can decide;
                otherwise all are allowed, or all denied.
            build: the name of the build of this process; empty if it has none.

        Raises:
            BadInput: `add` raises it, or no service takes one of the tools.
        """
        self._tools: dict[str, Tool] = {}
        self._left_out: set[str] = set()
        self._ask, self._build = ask, build
        self._sized: tuple[tuple[Mapping[str, Any], ...], int] = ((), 2)
        self._deferred: dict[str, Mapping[str, Any]] = {}
        self._programs: ProgramTools | None = None
        self._of_programs: Mapping[str, ToolTraits] = {}
        self.copied: tuple[Copied, ...] = ()
        """The directories of which children get trees of their own."""
        self._traits: dict[str, ToolTraits] = {**_builtin_calls(ask)}
        for name, why in self.add(tools).items():
            raise BadInput(f"{name!r} cannot be a tool: {why}.")

    def add(self, tools: Iterable[Tool]) -> Mapping[str, str]:
        """Add tools, except those that no service takes.

        Returns:
            The reasons why tools were left out, by name. A setting ``tools`` may name these tools all the same.

        Raises:
            BadInput: two tools have the same name, or one has that of a built-in call.
        """
        unsuitable: dict[str, str] = {}
        for tool in tools:
            if tool.name in BUILTIN_CALLS:
                raise BadInput(f"{tool.name!r} is a call of the runtime itself; give the tool another name.")
            if tool.name in self._tools:
                raise BadInput(f"Two tools are named {tool.name!r}; give one of them another name.")
            try:
                self._tools[tool.name] = fitted(tool)
            except Unsuitable as error:
                unsuitable[tool.name] = str(error)
                continue
            described = self._tools[tool.name].describe()
            digest, _, body = definition_of(tool.describe(), tool.traits)
            here = self._here(tool.name, tool.traits)
            self._traits[tool.name] = _found_by(replace(here, definition=digest, definition_body=body), described)
        self._left_out |= unsuitable.keys()
        return unsuitable

    def redefine(self, tools: Iterable[Tool]) -> Mapping[str, str]:
        """Replace tools by tools with the same names. Returns what `add` does."""
        fresh = Toolbox(())
        unsuitable = fresh.add(tools)
        for name, tool in fresh._tools.items():
            self._tools[name] = tool
            self._traits[name] = replace(fresh._traits[name], asks=self._ask, build=self._build)
        self._deferred.clear()
        self._left_out |= unsuitable.keys()
        return unsuitable

    @property
    def asks(self) -> bool:
        """Whether a person or a function can decide here on calls whose policy is to ask."""
        return self._ask is Policy.ASK

    @property
    def definitions(self) -> tuple[Definition, ...]:
        """The definitions of the tools, by name. Built-in calls have none."""
        known = sorted((name, trait) for name, trait in self._traits.items() if trait.definition)
        return tuple(Definition(trait.definition, name, trait.definition_body) for name, trait in known)

    def add_programs(self, programs: "ProgramTools") -> None:
        """Set the programs of the system. Agents whose model is a program get only the calls of programs."""
        builtin = {name: BuiltinTraits(begin=call.begin, asks=self._ask) for name, call in PROGRAM_CALLS.items()}
        tools = {name: self._here(name, traits) for name, traits in programs.traits.items()}
        asks = _builtin(PROGRAM_CALLS[ASK_PERSON], Policy.ASK)  # whatever becomes of tools that ask
        self._of_programs = {**builtin, **tools, ASK_PERSON: replace(asks, deferred=False)}
        self._programs = programs

    def is_program(self, settings: Mapping[str, Any]) -> bool:
        """Return whether the model of an agent is a program."""
        return self._programs is not None and settings.get("model") in self._programs

    def replay(self, settings: Mapping[str, Any], me: object) -> str:
        """Replay the function of a program's agent; return why the function does not fit the log, empty if it fits."""
        assert self._programs is not None
        return self._programs.replay(settings["model"], me)

    def drop_frame(self, agent: str) -> None:
        """Unwind the function of an agent. When the agent goes on, the function begins again."""
        if self._programs is not None:
            self._programs.drop(agent)

    def went_ahead(self, settings: Mapping[str, Any], agent: str, call: str) -> Ahead | None:
        """Return what a program's function did with the result of a call before its commit.

        None if it did nothing, or if the agent's model is no program.
        """
        if self._programs is None or not self.is_program(settings):
            return None
        return self._programs.went_ahead(settings["model"], agent, call)

    def tool_of(self, settings: Mapping[str, Any], name: str) -> Tool:
        """Return the tool with this name as an agent with these settings has it."""
        if self._programs is not None and self.is_program(settings):
            return self._programs.tool(settings["model"], name)
        return self._tools[name]

    def names(self, settings: Mapping[str, Any]) -> list[str]:
        """Return the names of an agent's tools, sorted: all tools, or those that its setting ``tools`` names.

        ``load_skill`` is among them if the agent has skills, and ``find_tools`` if some of these are unlisted. Without
        them it is offered only if there are tools to be found.

        Raises `ProviderError` when the setting names a tool that is not registered.
        """
        has_skills = bool(settings.get("skills") and loadable(settings))
        without = set() if has_skills else {LOAD_SKILL}
        without |= set() if has_skills and unlisted_in(settings) else {FIND_TOOLS}
        without |= set() if self._ask is Policy.ASK else {ASK_PERSON}
        known = sorted({*self._tools, *BUILTIN_CALLS} - without)
        allowed = settings.get("tools")
        if allowed is None:
            return known
        if (wrong := complaint({"tools": allowed})) is not None:
            raise ProviderError(wrong)
        if missing := sorted(set(allowed) - {FIND_TOOLS, LOAD_SKILL, ASK_PERSON} - set(known) - self._left_out):
            raise ProviderError(
                f"The setting tools names {', '.join(missing)}, not registered now. Registered: {', '.join(known)}. "
                "Change the setting, or open the system with these tools."
            )
        return sorted(set(allowed) & set(known))

    def traits(self, settings: Mapping[str, Any], typed: bool = False) -> Mapping[str, ToolTraits]:
        """Return the traits of an agent's tools, by name. Tools that are not registered are left out.

        In a typed turn, the tool by which the model gives the value is always included. If the setting that chooses the
        tools cannot be read, all others are denied, built-in calls too, and no rule can allow them.
        """
        if self.is_program(settings):
            return self._of_programs
        allowed = settings.get("tools")
        if allowed is None:
            tools = self._traits
        elif misfits({"tools": allowed}):
            tools = {
                name: replace(traits, policy=Policy.DENY, denial=_UNREADABLE.format(name=name))
                for name, traits in self._traits.items()
            }
        else:
            tools = {name: self._traits[name] for name in allowed if name in self._traits}
        return {**tools, GIVE_RESULT: _GIVE_RESULT} if typed else tools

    def check_rules(self, rules: Iterable[NewRule]) -> None:
        """Raise `BadInput` if a rule allows all of bash without a sandbox, unless the operator has asked for that."""
        if self._ask is Policy.ALLOW or not any(traits.unfenced for traits in self._traits.values()):
            return
        if any(allows_whole(rule.decision, rule.tool, rule.pattern) for rule in rules):
            raise BadInput(
                f'{UNFENCED} Have a fence (`ikigai doctor` says how), or allow single commands: "git log *". '
                "If you want it without a fence, say so: Workspace(fence='none'), or approvals='allow' (--yes)."
            )

    def asked(self, agent: str, calls: Iterable[Call]) -> dict[str, Asked]:
        """Return the parts of an agent's calls to which the patterns of rules apply, by the id of the call."""
        asked_by_call: dict[str, Asked] = {}
        for call in calls:
            subject = traits.subject if (traits := self._traits.get(call.name)) is not None else None
            if subject is not None:
                asked_by_call[call.id] = Asked(subject.compared, subject.of(agent, call.input))
        return asked_by_call

    def offer(
        self,
        settings: Mapping[str, Any],
        found_tools: FoundTools | None = None,
        by_reference: bool = False,
        wanted: Expected | None = None,
    ) -> Offer:
        """Return the descriptions of an agent's tools for its model.

        When more tools are found, the descriptions that were sent before do not change.

        Args:
            settings: the settings of the agent.
            found_tools: the tools that the model has found; None where all tools are shown to it (see `finds`).
            by_reference: whether the model's service loads a tool's description when a result refers to the tool.
            wanted: the value that the turn must give; None for an untyped turn. The tool that takes the value is then
                the last, and ``exit`` takes it too.

        Raises:
            ProviderError: as for `names`.
        """
        names = self.names(settings)
        if found_tools is None:
            every = self._typed(self._described(names, settings), wanted)
            return Offer(every, every)
        there = [name for name in names if not self._traits[name].deferred]
        here = [
            *sorted({*there, FIND_TOOLS}),
            *(name for name in found_tools.kept if name in names and name not in there),
        ]
        shown = [name for name in found_tools.shown if name in names and name not in here]
        read = self._typed(self._described((*here, *shown), settings), wanted)
        if not by_reference:
            return Offer(read, read)
        later = [self._later(name) for name in names if name not in here]
        return Offer(self._typed([*self._described(here, settings), *later], wanted), read)

    def size(
        self, settings: Mapping[str, Any], wanted: Expected | None = None, found_tools: FoundTools | None = None
    ) -> int:
        """Return the bytes of the tools that an agent's model reads, as JSON. Raises the errors of `offer`."""
        described = self.offer(settings, found_tools, wanted=wanted).read
        latest, size = self._sized
        if described != latest:  # agents that ask one after the other mostly have the same tools
            size = size_as_json(described)
            self._sized = described, size
        return size

    def _described(self, names: Sequence[str], settings: Mapping[str, Any] = NO_DATA) -> list[Mapping[str, Any]]:
        known, own = BUILTIN_CALLS, self._tools
        describeds = [known[name].described if name in known else own[name].describe() for name in names]
        return [
            FORK_CALL.described_for(settings) if described is FORK_CALL.described else described
            for described in describeds
        ]

    def _later(self, name: str) -> Mapping[str, Any]:
        """Return the description of a tool that the model has yet to find. For each tool it is always the same."""
        if name not in self._deferred:
            self._deferred[name] = {**self._described([name])[0], "defer_loading": True}
        return self._deferred[name]

    def _typed(self, tools: Sequence[Mapping[str, Any]], wanted: Expected | None) -> tuple[Mapping[str, Any], ...]:
        if wanted is None:
            return tuple(tools)
        return (*(described_exit(tool, wanted) if tool["name"] == EXIT else tool for tool in tools), form_of(wanted))

    def _here(self, name: str, traits: ToolTraits) -> ToolTraits:
        """Return the traits with the definition and the build that the tool has in this process."""
        denial = FORBIDDEN.format(name=name) if traits.policy is Policy.DENY else ""
        return replace(traits, asks=self._ask, denial=denial, build=self._build)


def finds(settings: Mapping[str, Any], by_reference: bool) -> bool:
    """Return whether a model must find tools by ``find_tools``, rather than being shown all of them.

    Args:
        settings: the settings of the agent.
        by_reference: whether the model's service loads a tool's description when a result refers to the tool.
    """
    defer = settings.get("defer") or "auto"
    return settings.get("tools") is None and (defer == "on" or (defer == "auto" and by_reference))


def gone_from(offer: Offer, found_tools: FoundTools) -> frozenset[str]:
    """Return the tools that were found before and do not exist any more.

    A service refuses results that refer to them.
    """
    return frozenset(found_tools.all) - {tool["name"] for tool in offer.sent if tool.get("defer_loading")}


@cache  # each start asks
def _builtin_calls(ask: Policy) -> Mapping[str, ToolTraits]:
    return {name: _builtin(call, ask) for name, call in BUILTIN_CALLS.items()}


def _builtin(call: BuiltinCall, ask: Policy) -> BuiltinTraits:
    policy = Policy.ASK if call.name == ASK_PERSON else Policy.ALLOW
    traits = BuiltinTraits(
        begin=call.begin, policy=policy, asks=ask, deferred=call.name not in (*ALWAYS_THERE, LOAD_SKILL)
    )
    return _found_by(traits, call.described)


def _found_by(traits: T, described: Mapping[str, Any]) -> T:
    """Return the traits of a tool, with the words by which the model can find it, if it must be found."""
    return replace(traits, about=words_about(described)) if traits.deferred else traits


def size_as_json(value: Any) -> int:
    """Return the number of bytes of a value as JSON."""
    return len(json.dumps(value, default=str, ensure_ascii=False).encode(errors="replace"))
