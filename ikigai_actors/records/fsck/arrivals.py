"""The checks of fsck for endpoints and their arrivals."""

import json
from collections.abc import Iterator

from ikigai_actors.errors import BadInput
from ikigai_actors.records.arrivals.endpoints import EndpointSpec
from ikigai_actors.records.fsck.invariants import Invariant, Violation
from ikigai_actors.store.base import Transaction


def check_arrivals(tx: Transaction) -> Iterator[Violation]:
    """Return the faults in the rows of endpoints and of the events that arrived at them."""
    for name, agent, spec in tx.run("every_endpoint"):
        try:
            EndpointSpec.decode(spec)
        except (BadInput, ValueError, TypeError, KeyError, RecursionError):
            yield Violation(Invariant.ARRIVAL, agent, f"expected endpoint {name!r} to have terms that can be read")
    for endpoint, name, number, status, gave in tx.run("every_arrival"):
        if number < 1:
            yield Violation(
                Invariant.ARRIVAL, None, f"expected arrival {name!r} of {endpoint!r} to be number 1 or more"
            )
        try:
            facts = json.loads(gave)
        except (ValueError, RecursionError):
            facts = None
        if not isinstance(facts, dict):
            yield Violation(Invariant.ARRIVAL, None, f"expected arrival {name!r} of {endpoint!r} to say what it gave")
        elif (status == "taken") != bool({"mail", "request"} & facts.keys()):
            text = f"expected arrival {name!r} of {endpoint!r} to have done something if it was taken, and only then"
            yield Violation(Invariant.ARRIVAL, facts.get("agent"), text)
