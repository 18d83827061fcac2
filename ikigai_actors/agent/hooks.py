"""The hooks of a running system: finds those that apply to a call, and asks them one after another."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ikigai_actors.agent.executor import Executor
from ikigai_actors.agent.jobs import ToolRun
from ikigai_actors.agent.turn.calls import GIVE_RESULT, Call, Calls, Progress
from ikigai_actors.tools.effect_keys import CurrentCall
from ikigai_actors.tools.function import Result
from ikigai_actors.tools.hooks.function import Hook, HookRun, verdict_from
from ikigai_actors.tools.hooks.verdict import AFTER_CALL, BEFORE_CALL, NO_HOOKS, DueHooks, HookedCall, HookOutcome


class HookBook:
    """The hooks of a process, in their order."""

    def __init__(self, hooks: Iterable[Hook] = ()) -> None:
        """Keep the hooks, in this order."""
        self._hooks = {one.name: one for one in hooks}

    @property
    def known(self) -> tuple[Hook, ...]:
        """All hooks of the process."""
        return tuple(self._hooks.values())

    def due(self, settings: Mapping[str, Any], calls: Calls) -> DueHooks:
        """Return the hooks that must be asked about the calls of an agent with these settings."""
        wanted = settings.get("hooks") or ()
        if not self._hooks and not wanted:
            return NO_HOOKS
        covered = [call for call in calls if call.name != GIVE_RESULT]
        missing = tuple(name for name in wanted if name not in self._hooks)
        return DueHooks(
            {call.id: self._for(BEFORE_CALL, call) for call in covered},
            {call.id: self._for(AFTER_CALL, call) for call in covered if call.progress is Progress.DONE},
            {call.id: missing for call in covered} if missing else {},
        )

    def _for(self, event: str, call: Call) -> tuple[str, ...]:
        return tuple(one.name for one in self._hooks.values() if one.hears_of(event, call.name))

    def named(self, names: Iterable[str]) -> list[Hook]:
        """The hooks with these names."""
        return [self._hooks[name] for name in names if name in self._hooks]


class HookQuestion:
    """A question to several hooks about one call."""

    def __init__(
        self,
        executor: Executor,
        hooks: list[Hook],
        asked: HookedCall,
        agent: object,
        current: CurrentCall,
        done: Callable[[HookOutcome], object],
    ) -> None:
        """Ask the first hook. ``done`` gets the outcome after the last one has answered; not after `cancel`."""
        self._executor, self._left, self._asked = executor, hooks, asked
        self._agent, self._current, self._done = agent, current, done
        self._outcome = HookOutcome(input=asked.input)
        self._run: ToolRun | None = None
        self.over = False
        """Whether all have answered, or nobody waits for them."""
        self._next()

    def cancel(self) -> None:
        """Ask no further hooks. A hook that runs is left to its time limit."""
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
        one = self._left.pop(0)
        before = self._asked
        asked = HookedCall(before.agent, before.tool, self._outcome.input, before.id, before.result, before.is_error)

        def answered(result: Result) -> None:
            self._outcome = self._outcome.after(one.name, verdict_from(one, result))
            self._next()

        self._run = self._executor.run_tool(HookRun(one, asked), {}, self._agent, answered, self._current)
