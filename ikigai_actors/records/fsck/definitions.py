"""The checks of fsck for definitions of tools: each has its digest, and hosts and builds name only stored ones."""

import json
from collections.abc import Collection, Iterator, Mapping

from ikigai_actors.records.fsck.invariants import Invariant, Violation
from ikigai_actors.store.base import Transaction
from ikigai_actors.tools.definitions import digest_of_definition


def check_definitions(tx: Transaction, questions: Mapping[str, tuple[str, int]]) -> Iterator[Violation]:
    """Check all definitions, and the references to them.

    ``questions``: for each definition, a message of an agent born here that asks about it.
    """
    kept = set()
    for digest, body in tx.run("all_definitions"):
        kept.add(digest)
        if digest_of_definition(body) != digest:
            text = f"expected the body of definition {digest} to have this digest; it was changed"
            yield Violation(Invariant.DEFINITION, None, text)
    for digest, (agent, position) in questions.items():
        if digest not in kept:
            text = f"expected definition {digest}, which message {position} asks about, to be there"
            yield Violation(Invariant.DEFINITION, agent, text)
    builds: dict[str, str] = dict(tx.run("all_builds"))
    for host, build, tools in tx.run("builds_of_hosts"):
        if build not in builds:
            yield Violation(Invariant.BUILD, None, f"expected build {build} of host {host}, which lives, to be there")
        yield from _listed(f"host {host}", tools, kept)
    for build, tools in builds.items():
        yield from _listed(f"build {build}", tools, kept)


def _listed(whose: str, tools: str, kept: Collection[str]) -> Iterator[Violation]:
    try:
        digests = {*json.loads(tools).values()}
    except (ValueError, AttributeError, TypeError):
        yield Violation(Invariant.BUILD, None, f"expected the tools of {whose} to be a JSON object of texts")
        return
    if lost := sorted(digests - {*kept}):
        yield Violation(Invariant.BUILD, None, f"expected definition {lost[0]} of a tool of {whose} to be there")
