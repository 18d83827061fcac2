"""The rules of a machine for hooks of calls, and what must hold for them.

The laws, by the names with which their failures begin:

    verdict     the verdict of a hook on a call is committed once, and no hook is asked about the call after that
    gate        a call that a hook denies, or that fails in a hook, never runs; one that a hook changes runs as changed
    kept-hooks  a child must ask the hooks that it was forked with, whatever it is configured to
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule

from ikigai_actors import Reply, ToolCall
from ikigai_actors.agent.turn.calls import calls_of
from ikigai_actors.hooks import HookedCall, HookVerdict, hook
from ikigai_actors.records.messages.messages import Kind, Message
from ikigai_actors.testing import Broken, CrashPoint
from ikigai_actors.testing.machine.base import AGENTS, PATIENCE, Stage
from ikigai_actors.testing.machine.fixtures import TOKEN, WORK
from ikigai_actors.testing.simulation.changes import RanStatement, StoredChange
from ikigai_actors.tools.hooks.function import Hook

GUARD, CHANGED = "guard", "~"
"""The argument of a call that says what the hook of that name does about it, and the end of a token that it changes."""

WAYS = ("allow", "deny", "fail", "change", "add", "ask")
"""What the hook may do about a call."""


def verdict_on(call: HookedCall) -> HookVerdict | None:
    """The verdict that a call asks for."""
    match call.input.get(GUARD):
        case "deny":
            return HookVerdict.deny("as it was drawn")
        case "fail":
            raise RuntimeError("as it was drawn")
        case "change":
            return HookVerdict.change({**call.input, TOKEN: f"{call.input[TOKEN]}{CHANGED}"})
        case "add":
            return HookVerdict.add("a word of the hook")
        case "ask":
            return HookVerdict.ask("as it was drawn")
    return None


class HookOracle:
    """Knows the verdicts that were committed, and what each call must come to."""

    def __init__(self, asks_now: Callable[[], bool]) -> None:
        """Begin; ``asks_now`` says whether the process that asks is the one that runs the agents."""
        self._asks_now = asks_now
        self._calls: dict[tuple[str, str], str] = {}
        """The tokens of the calls of latest replies, by agent and id."""
        self.ways: dict[str, str] = {}
        """What the hook does about each call, by token."""
        self.verdicts: Counter[str] = Counter()
        """How many verdicts on each call were committed."""
        self.asked_again: list[str] = []
        """The calls about which the hook was asked after its verdict."""

    def asked(self, call: HookedCall) -> None:
        """Note that the hook is asked about a call. A host that has lost its agents may not know of a verdict."""
        if self.verdicts[str(call.input.get(TOKEN))] and self._asks_now():
            self.asked_again.append(str(call.input[TOKEN]))

    def committed(self, changes: Sequence[StoredChange]) -> None:
        """Follow one commit."""
        for change in changes:
            if not isinstance(change, RanStatement) and change.table == "messages":
                self._wrote(Message.from_row(change.row))

    def _wrote(self, message: Message) -> None:
        if message.kind == Kind.ASSISTANT:
            for call in calls_of(message):
                token = str(call.input.get(TOKEN))
                self._calls[message.agent_uuid, call.id] = token
                if GUARD in call.input:
                    self.ways[token] = call.input[GUARD]
        elif message.kind == Kind.HOOK and message.data.get("event") == "before_call":
            self.verdicts[self._calls[message.agent_uuid, message.data["tool_use_id"]]] += 1


class HookRules(Stage):
    """The part of a machine that has these rules."""

    def __init__(self) -> None:
        super().__init__()
        self.hooked = HookOracle(lambda: self.world.process.threads.current() is not None)
        self.bound: set[str] = set()
        """The agents that were forked from one that must ask the hook."""

    def options(self) -> dict[str, Any]:
        return {**super().options(), "hooks": [self._guard()]}

    def watchers(self) -> tuple[Callable[[Sequence[StoredChange]], None], ...]:
        return (*super().watchers(), self.hooked.committed)

    def _guard(self) -> Hook:
        @hook("before_call", tools=WORK, name=GUARD)
        def guard(call: HookedCall) -> HookVerdict | None:
            self.hooked.asked(call)
            return verdict_on(call)

        return guard

    # Rules

    @rule(
        who=AGENTS,
        ways=st.lists(st.sampled_from(WAYS), min_size=1, max_size=3),
        crash=st.none() | st.builds(CrashPoint, st.integers(1, 8), st.booleans()),
    )
    def call_with_hooks(self, who: int, ways: list[str], crash: CrashPoint | None) -> None:
        """Let an agent make calls about which the hook is asked; perhaps the host ends meanwhile."""
        agent = self.agent(who)
        self.script(agent, Reply("", tuple(ToolCall(WORK, {GUARD: way}) for way in ways)))
        if crash is not None:
            self.world.crash_at(crash)
        self.prompted(agent)
        self.attempt(self.world.settle)

    @rule(who=AGENTS)
    def fork_with_hooks(self, who: int) -> None:
        """Make an agent ask the hook from now on, and fork a child, which cannot drop it."""
        if len(self.living()) >= self.LIMIT:
            return
        agent = self.agent(who)
        said: list[bool] = []
        self.attempt(lambda: agent.configure(hooks=[GUARD], timeout=PATIENCE), lambda _: said.append(True))

        def born(child: Any) -> None:
            self.ledger.known.setdefault(child.uuid)
            self.bound.update([child.uuid] if said else [])

        self.attempt(lambda: self.system.handle(agent.uuid).fork(timeout=PATIENCE), born)

    @rule(who=AGENTS)
    def drop_hooks(self, who: int) -> None:
        """Try to take its hooks from an agent."""
        self.attempt(lambda: self.agent(who).configure(hooks=None, timeout=PATIENCE))

    # Laws

    @invariant()
    def a_verdict_is_given_once(self) -> None:
        """Check the laws ``verdict`` and ``gate``."""
        if twice := [token for token, count in self.hooked.verdicts.items() if count > 1]:
            raise Broken(f"verdict: hooks have decided twice on the calls {', '.join(twice)}")
        if self.hooked.asked_again:
            raise Broken(f"verdict: hooks were asked after their verdict on {', '.join(self.hooked.asked_again)}")
        for token, way in self.hooked.ways.items():
            ran = [run for run in (token, token + CHANGED) if self.work.runs[run]]
            if ran and ran != {"deny": [], "fail": [], "change": [token + CHANGED]}.get(way, [token]):
                raise Broken(f"gate: a call whose hook would {way} ran as {', '.join(ran)}")

    @invariant()
    def a_child_drops_no_hook(self) -> None:
        """Check the law ``kept-hooks``, for agents whose logs are in memory."""
        for uuid in self.bound if self.world.hosts[0].answers else ():
            actor = self.system._processes.get(uuid)
            if actor is not None and actor.state.view.settings and not actor.state.view.settings.get("hooks"):
                raise Broken(f"kept-hooks: agent {uuid} asks no hook any more")
