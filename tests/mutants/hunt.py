"""Runs the machine of the kit until it finds something; prints what, as one line of JSON for each stage.

python -m tests.mutants.hunt EXAMPLES SECONDS [shrink] [hosts | budgets | behaviour]

The same runtime gives the same programs. SECONDS are of the processor's time: when they are over the process is ended,
with what it has told until then. So it is when shrinking has long brought nothing.
"""

import json
import logging
import os
import resource
import sys
from contextlib import suppress
from typing import Any

from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import invariant, run_state_machine_as_test

from ikigai_actors.testing import AgentTreeMachine, FleetMachine
from tests.machines.behaviour_rules import BehaviourMachine
from tests.machines.budget_rules import BudgetMachine

FRUITLESS = 300
"""So many programs without a shorter one end the shrinking."""


class Hunt:
    """How far it is."""

    def __init__(self) -> None:
        self.examples = 0
        self.found = 0
        """The example that failed first; 0 while none has."""
        self.steps = 1_000
        """Of the shortest program that has failed."""
        self.shortest = 0
        """The example that it was."""


Machine = type[AgentTreeMachine] | type[FleetMachine]
"""What hunts."""


def machine_for(kind: Machine, hunt: Hunt, patience: int) -> Machine:
    """A machine that tells when it has found something, and ends after so many programs without a shorter one."""
    base: Any = kind

    class Hunting(base):  # type: ignore[misc]  # whichever it is
        def __init__(self) -> None:
            super().__init__()
            hunt.examples += 1
            if hunt.found and hunt.examples - hunt.shortest > patience:
                os._exit(0)  # whatever is raised here Hypothesis takes for one more failure
            self.steps = 0

        @invariant()
        def z_step_is_taken(self) -> None:
            """The last invariant by name: it counts the beginning, and every step that has broken nothing."""
            self.steps += 1

        def teardown(self) -> None:
            tell(sys.exc_info()[1], self.steps)
            try:
                super().teardown()
            except Exception as error:
                tell(error, self.steps - 1)
                raise

    def tell(error: BaseException | None, steps: int) -> None:
        if not isinstance(error, Exception):
            return
        if not hunt.found:
            hunt.found = hunt.examples
            print(json.dumps({"found": hunt.found, "by": invariant_of(error)}), flush=True)
        if steps < hunt.steps:
            hunt.steps, hunt.shortest = steps, hunt.examples
            print(json.dumps({"steps": steps}), flush=True)

    return Hunting


def invariant_of(error: BaseException) -> str:
    """The name with which a failure begins."""
    name = str(error).partition(":")[0]
    return name if name.replace("-", "").isalpha() else type(error).__name__


def main(kind: Machine, examples: int, shrink: bool) -> None:
    """Hunt."""
    logging.disable(logging.CRITICAL)
    phases = [Phase.generate, Phase.shrink] if shrink else [Phase.generate]
    hunt = Hunt()
    with suppress(Exception):  # it was told
        run_state_machine_as_test(
            machine_for(kind, hunt, FRUITLESS if shrink else 0),
            settings=settings(
                max_examples=examples,
                stateful_step_count=20,
                deadline=None,
                database=None,
                derandomize=True,
                phases=phases,
                report_multiple_bugs=False,
                suppress_health_check=list(HealthCheck),
            ),
        )


if __name__ == "__main__":
    most = int(float(sys.argv[2]))
    resource.setrlimit(resource.RLIMIT_CPU, (most, most))
    machines: dict[str, Machine] = {"hosts": FleetMachine, "budgets": BudgetMachine, "behaviour": BehaviourMachine}
    named = [machine for name, machine in machines.items() if name in sys.argv[3:]]
    main((named or [AgentTreeMachine])[0], int(sys.argv[1]), "shrink" in sys.argv[3:])
