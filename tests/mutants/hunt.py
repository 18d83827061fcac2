"""Runs the machine of the kit until it finds something; prints what, as one line of JSON for each stage.

python -m tests.mutants.hunt EXAMPLES [shrink]
"""

import json
import logging
import re
import sys

from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from ikigai_actors.testing import AgentTreeMachine

_RULE = re.compile(r"^\s*(?:\w+ = )?state\.(\w+)\(", re.MULTILINE)
_NO_STEPS = {"begin", "teardown", "history_is_what_copying_gives", "what_was_acknowledged_is_there"}


class Hunt:
    """How far it is."""

    def __init__(self) -> None:
        self.examples = 0
        self.found = 0
        """The example that failed first; 0 while none has."""


def machine_for(hunt: Hunt) -> type[AgentTreeMachine]:
    """The machine, which tells when it has found something."""

    class Hunting(AgentTreeMachine):
        def __init__(self) -> None:
            super().__init__()
            hunt.examples += 1

        def teardown(self) -> None:
            tell(sys.exc_info()[1])
            try:
                super().teardown()
            except Exception as error:
                tell(error)
                raise

    def tell(error: BaseException | None) -> None:
        if not hunt.found and isinstance(error, Exception):
            hunt.found = hunt.examples
            print(json.dumps({"found": hunt.found, "by": invariant_of(error)}), flush=True)

    return Hunting


def invariant_of(error: BaseException) -> str:
    """The name with which a failure begins."""
    name = str(error).partition(":")[0]
    return name if name.replace("-", "").isalpha() else type(error).__name__


def main(examples: int, shrink: bool) -> None:
    """Hunt."""
    logging.disable(logging.CRITICAL)
    phases = [Phase.generate, Phase.shrink] if shrink else [Phase.generate]
    hunt = Hunt()
    try:
        run_state_machine_as_test(
            machine_for(hunt),
            settings=settings(
                max_examples=examples,
                stateful_step_count=20,
                deadline=None,
                database=None,
                phases=phases,
                report_multiple_bugs=False,
                suppress_health_check=list(HealthCheck),
            ),
        )
    except Exception as error:
        rules = _RULE.findall("\n".join(getattr(error, "__notes__", ())))
        steps = [rule for rule in rules if rule not in _NO_STEPS]
        print(json.dumps({"steps": len(steps)}), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), "shrink" in sys.argv[2:])
