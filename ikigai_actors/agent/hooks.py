"""The hooks of a running system: finds those that apply, and asks them one after another."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from ikigai_actors.agent.executor import Executor
from ikigai_actors.agent.jobs import Permit, ToolRun
from ikigai_actors.agent.turn.calls import FORK, GIVE_RESULT, Call, Calls, Progress
from ikigai_actors.attachments import Attachment
from ikigai_actors.errors import BadInput
from ikigai_actors.frozen import replace
from ikigai_actors.records.messages.hook_commands import PinnedCommand, commands_in
from ikigai_actors.records.messages.settings import is_trial, misfits
from ikigai_actors.text import storable
from ikigai_actors.tools.effect_keys import CurrentCall
from ikigai_actors.tools.function import Result
from ikigai_actors.tools.hooks.command_hooks import HookEntry, RunCommand, hook_of
from ikigai_actors.tools.hooks.function import Hook, HookRun, failure_of, verdict_from
from ikigai_actors.tools.hooks.verdict import (
    AFTER_CALL,
    AFTER_REPLY,
    BEFORE_CALL,
    BEFORE_REQUEST,
    FILTER_RESULT,
    NO_HOOKS,
    ON_EXIT,
    ON_FORK,
    DueHooks,
    Hooked,
    HookedCall,
    HookOutcome,
    HookVerdict,
    lacking_hooks,
)


class HookFailure(NamedTuple):
    """A failure of a hook: the hook, and the reason in words."""

    hook: Hook
    reason: str


class HookBook:
    """The hooks of a process, in the order in which they are asked.

    The setting ``hooks`` names hooks that must be asked: ``NAME`` for a hook before calls, else ``EVENT:NAME``. If this
    process lacks one of them, the calls, requests or replies on which the hook decides are denied.
    """

    def __init__(self, hooks: Iterable[Hook] = ()) -> None:
        self._hooks = {hook.name: hook for hook in hooks}
        self.events: Mapping[str, str] = {hook.name: hook.event for hook in self._hooks.values()}
        """The event of each hook of this process, by its name."""
        self._pinned: dict[str, Hook] = {}
        self._run: RunCommand = _nowhere

    def runs_by(self, run: RunCommand) -> None:
        """Set the function that runs hook commands of workspaces."""
        self._run = run

    @property
    def known(self) -> tuple[Hook, ...]:
        """All hooks of this process."""
        return tuple(self._hooks.values())

    def of(self, settings: Mapping[str, Any]) -> Mapping[str, Hook]:
        """Return the hooks of an agent with these settings, by name: first those of the process, then hook commands."""
        if not settings.get("hook_commands"):
            return self._hooks
        return self._hooks | {entry["name"]: self._pinned_hook(entry) for entry in commands_in(settings)}

    def _pinned_hook(self, entry: PinnedCommand) -> Hook:
        name = entry["name"]
        if name not in self._pinned:
            directory = Path(entry["from"]).parent.parent
            command = HookEntry(
                entry["event"], entry["matcher"], entry["command"], entry["timeout"], "onFailure" in entry
            )
            self._pinned[name] = hook_of(command, name, directory, lambda text, asked: self._run(text, asked))
        return self._pinned[name]

    def due(self, settings: Mapping[str, Any], calls: Calls) -> DueHooks:
        """Return the hooks that must be asked about an agent's calls, or about the reply that ends its turn."""
        wanted = settings.get("hooks") or ()
        hooks = self.of(settings)
        if not hooks and not wanted:
            return NO_HOOKS
        covered = [call for call in calls if call.name != GIVE_RESULT]
        of_calls = (*self.missing(settings, BEFORE_CALL), *self.missing(settings, FILTER_RESULT))
        missing = {call.id: of_calls for call in covered if of_calls}
        for call in covered if (of_forks := self.missing(settings, ON_FORK)) else ():
            if call.name == FORK:
                missing[call.id] = (*of_calls, *of_forks)
        return DueHooks(
            {call.id: _before(hooks, call) for call in covered},
            {call.id: _for(hooks, AFTER_CALL, call.name) for call in covered if call.progress is Progress.DONE},
            missing,
            self.about_replies(settings),
        )

    def missing(self, settings: Mapping[str, Any], event: str) -> tuple[str, ...]:
        """Return the hooks of an event that the setting ``hooks`` requires, and that this process does not have."""
        return tuple(name for of, name in lacking_hooks(settings.get("hooks") or (), self.events) if of == event)

    def before_requests(self, settings: Mapping[str, Any]) -> tuple[str, ...]:
        """The hooks that are to be asked before a request of an agent with these settings. A trial asks none."""
        return () if is_trial(settings) else _for(self.of(settings), BEFORE_REQUEST)

    def about_replies(self, settings: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the names of the hooks that must be asked about replies of an agent with these settings.

        A trial asks none.
        """
        return () if is_trial(settings) else _for(self.of(settings), AFTER_REPLY)

    def filters(self, settings: Mapping[str, Any], tool: str) -> tuple[Hook, ...]:
        """Return the hooks that filter the results of a tool."""
        return tuple(self.named(settings, _for(self.of(settings), FILTER_RESULT, tool)))

    def of_exits(self, settings: Mapping[str, Any]) -> tuple[Hook, ...]:
        """Return the hooks to call when an agent with these settings has exited."""
        return tuple(self.named(settings, _for(self.of(settings), ON_EXIT)))

    def named(self, settings: Mapping[str, Any], names: Iterable[str]) -> list[Hook]:
        """The hooks of an agent with these names."""
        hooks = self.of(settings)
        return [hooks[name] for name in names if name in hooks]


async def _nowhere(command: str, text: str) -> tuple[int, str, str]:
    raise BadInput("No commands run here.")


def _before(hooks: Mapping[str, Hook], call: Call) -> tuple[str, ...]:
    before = _for(hooks, BEFORE_CALL, call.name)
    return (*before, *_for(hooks, ON_FORK)) if call.name == FORK else before


def _for(hooks: Mapping[str, Hook], event: str, tool: str = "") -> tuple[str, ...]:
    return tuple(hook.name for hook in hooks.values() if hook.hears_of(event, tool))


class HookQuestion:
    """A question to several hooks about one call, request, reply or exit."""

    def __init__(
        self,
        executor: Executor,
        hooks: list[Hook],
        asked: Hooked,
        agent: object,
        current: CurrentCall,
        done: Callable[[HookOutcome], object],
        failed: Callable[[HookFailure], object],
        permit: Permit | None = None,
    ) -> None:
        """Ask the first hook.

        ``done`` gets the outcome after the last hook has answered, unless `cancel` was called. No hook is asked after
        ``permit`` has ended.
        """
        self._executor, self._left, self._asked, self._permit = executor, hooks, asked, permit
        self._agent, self._current, self._done, self._failed = agent, current, done, failed
        self._outcome = HookOutcome(input=asked.input) if isinstance(asked, HookedCall) else HookOutcome()
        self._run: ToolRun | None = None
        self.over = False
        """Whether all have answered, or nobody waits for them."""
        self._next()

    def cancel(self) -> None:
        """Ask no further hooks. A hook that is running may run on until its time limit."""
        self.over = True
        if self._run is not None:
            self._run.cancel()

    def _next(self) -> None:
        if self.over:
            return
        if not self._left or self._outcome.ends:
            self.over = True
            self._done(self._outcome)
            return
        hook, asked = self._left.pop(0), self._asked
        if isinstance(asked, HookedCall):
            asked = replace(asked, input=self._outcome.input)

        def answered(result: Result) -> None:
            said, failure = judged(hook, result)
            if failure is not None:
                self._failed(failure)
            self._outcome = self._outcome.after(hook.name, said)
            self._next()

        run = HookRun(hook, asked)
        self._run = self._executor.run_tool(run, {}, self._agent, answered, self._current, permit=self._permit)


def judged(hook: Hook, result: Result) -> tuple[HookVerdict, HookFailure | None]:
    """Return the verdict of a hook, and its failure; None if the hook has not failed.

    ``result``: the outcome of running the hook.
    """
    reason, said = failure_of(hook, result), verdict_from(hook, result)
    if reason is None and said.settings is not None and (wrong := misfits(said.settings)):
        reason = next(iter(wrong.values()))
        said = HookVerdict.deny(f"the hook failed: {reason}") if hook.denies_at_failure else HookVerdict()
    return said, None if reason is None else HookFailure(hook, reason)


class FilteredResult(NamedTuple):
    """The result of a tool after its filters, with the names of the filters that have changed it."""

    content: str
    is_error: bool
    attached: tuple[Attachment, ...]
    filtered: tuple[tuple[str, str], ...]
    """The filters that have replaced its text, each with the SHA-256 of the text that it was before."""
    connect: Mapping[str, Any] | None = None
    """The account without which the call did not run; then there was nothing to filter."""


class FilteredRun:
    """A run of a tool whose result passes filters, in the order of the hooks, before anything else sees it.

    To the agent it is one run. The text of a filter that fails is withheld: the model learns that the call ran, and
    nothing else. The attachments of the result are withheld as well.
    """

    def __init__(
        self,
        executor: Executor,
        filters: Sequence[Hook],
        asked: HookedCall,
        agent: object,
        current: CurrentCall,
        done: Callable[[FilteredResult], object],
        failed: Callable[[HookFailure], object],
        permit: Permit | None = None,
    ) -> None:
        """Prepare the run; `begins` then passes the run of the tool itself.

        No filter begins after ``permit`` has ended.
        """
        self._executor, self._left, self._asked, self._agent = executor, list(filters), asked, agent
        self._permit = permit
        self._current, self._done, self._failed = current, done, failed
        self._attached: tuple[Attachment, ...] = ()
        self._filtered: tuple[tuple[str, str], ...] = ()
        self._over = False
        self._run: ToolRun | None = None
        self.tool = asked.tool
        """The name of the tool."""

    def begins(self, run: ToolRun) -> None:
        """Set the run of the tool whose result is to be filtered."""
        if self._run is None:
            self._run = run

    def cancel(self) -> None:
        """Cancel the run. No result is passed on after this."""
        self._over = True
        if self._run is not None:
            self._run.cancel()

    def filter(self, result: Result) -> None:
        """Pass the tool's result through the filters. Called on the executor's thread."""
        self._asked = replace(self._asked, result=storable(result.content), is_error=result.is_error)
        self._attached = result.attached
        if result.connect is not None and not self._over:
            self._done(FilteredResult(storable(result.content), result.is_error, (), (), result.connect))
            return
        self._next()

    def _next(self) -> None:
        if self._over:
            return
        asked = self._asked
        text = asked.result or ""
        if not self._left:
            self._done(FilteredResult(text, asked.is_error, self._attached, self._filtered))
            return
        hook = self._left.pop(0)

        def answered(result: Result) -> None:
            said, failure = judged(hook, result)
            new = said.text
            if failure is not None:
                self._failed(failure)
            if said.decision == "deny":
                new = f"[The call ran, and its result is withheld: hook {hook.name} failed.]"
                self._left, self._attached = [], ()
            if new is not None and (new := storable(new)) != text:
                former = sha256(text.encode(errors="surrogatepass")).hexdigest()
                self._filtered = (*self._filtered, (hook.name, former))
                self._asked = replace(asked, result=new)
            self._next()

        run = HookRun(hook, asked)
        self._run = self._executor.run_tool(run, {}, self._agent, answered, self._current, permit=self._permit)
