"""The machine of hooks, kinds and batches: what guards the calls and requests of a tree, under kills and signals."""

from dataclasses import replace
from typing import Any

from ikigai_actors.testing import AgentTreeMachine
from tests.machines.batch_rules import BatchRules
from tests.machines.hook_rules import HookRules
from tests.machines.kind_rules import KindRules

OF_OTHERS = frozenset(
    {
        "fork",
        "fork_at",
        "fork_many",
        "fork_another",
        "sleep",
        "prompt",
        "compact",
        "uncompact",
        "clear",
        "undo",
        "merge",
    }
    | {"mark_and_rewind", "steer", "signal", "kill", "adopt", "export_import", "set_rule", "call_under_rules", "crash"}
    | {"crash_soon", "crash_agent", "take_over", "restart", "goes_on", "comes_to_rest"}
)
"""The rules of `AgentTreeMachine` that its programs have besides: what agents, their histories and hosts go through."""


class GuardedMachine(HookRules, KindRules, BatchRules, AgentTreeMachine):
    """Drives a tree of agents with hooks, kinds and batches. Its laws are those of `AgentTreeMachine`, and theirs."""

    @classmethod
    def setup_state(cls) -> Any:
        """Return what Hypothesis has collected of this class, with the rules that belong here."""
        state = super().setup_state()
        own = {name for part in (HookRules, KindRules, BatchRules) for name in vars(part)}
        return replace(state, rules=[each for each in state.rules if each.function.__name__ in own | OF_OTHERS])
