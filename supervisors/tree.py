"""The order in which a tree of supervisors is walked.

A tree is a mapping from each agent to its supervisor, in order of creation. Every walk is linear in the mapping, uses
no recursion, and ends even when damaged rows run in a circle.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

Supervisors = Mapping[str, str | None]
"""Each agent's supervisor; None for agent 0."""


def top_down(supervisors: Supervisors, tops: Iterable[str]) -> Iterator[str]:
    """The agents at and below each top: every agent once, before those below it, siblings in the mapping's order."""
    children = defaultdict[str | None, list[str]](list)
    for agent, supervisor in supervisors.items():
        children[supervisor].append(agent)
    seen: set[str] = set()
    for top in tops:
        ahead = [top]
        while ahead:
            agent = ahead.pop()
            if agent not in seen:
                seen.add(agent)
                yield agent
                if below := children.get(agent):
                    ahead += below[::-1]


def everybody(supervisors: Supervisors) -> Iterator[str]:
    """All agents top down. A circle comes last, entered at the member that was created first."""
    tops = [agent for agent, supervisor in supervisors.items() if supervisor not in supervisors]
    return top_down(supervisors, (*tops, *supervisors))
