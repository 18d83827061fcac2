"""Strategies: which children are stopped and started when one of them is restarted.

For children a, b, c, d in order, of which b has failed:

                   stop       start
    one_for_one               b
    rest_for_one   d c        b c d
    one_for_all    d c a      a b c d

Stops come in reverse order, starts in order. A temporary sibling that is taken along is not started again.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

from supervisors.children import RestartType, SupervisedChild


class Strategy(StrEnum):
    """Which siblings a restart takes along."""

    ONE_FOR_ONE = "one_for_one"
    """No sibling."""
    ONE_FOR_ALL = "one_for_all"
    """All siblings."""
    REST_FOR_ONE = "rest_for_one"
    """The siblings after it."""


class Plan(NamedTuple):
    """A restart: first the stops, then the starts, each in this order."""

    stop: tuple[SupervisedChild, ...]
    """Siblings, the last one first; the failed child itself has ended already."""
    start: tuple[SupervisedChild, ...]
    """The failed child, and the siblings that are not temporary."""


def plan(strategy: Strategy, children: Sequence[SupervisedChild], failed: SupervisedChild) -> Plan:
    """Return the children to stop and to start for the restart of one child.

    Args:
        strategy: which siblings it takes along.
        children: all children in order, the failed one too.
        failed: the child to restart; a temporary one never is.
    """
    match strategy:
        case Strategy.ONE_FOR_ONE:
            taken: Sequence[SupervisedChild] = (failed,)
        case Strategy.REST_FOR_ONE:
            taken = children[children.index(failed) :]
        case Strategy.ONE_FOR_ALL:
            taken = children
    return Plan(
        stop=tuple(child for child in reversed(taken) if child != failed),
        start=tuple(child for child in taken if child.restart is not RestartType.TEMPORARY),
    )
