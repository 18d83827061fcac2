"""Plans that look for the best continuation of a history.

A search grows a tree. Its root is the position where the experiment begins; each trial is a node, which goes on from
the end of its parent with one of the parent's options. Random choices depend on the seed alone, and among equal nodes
the lowest number wins.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ikigai_actors.arguments import check_count
from ikigai_actors.behaviour.plans.plan import Continuation, Trial, TrialPlan, Verdict
from ikigai_actors.errors import BadInput

OptionsOf = Callable[[int], Sequence[Continuation]]
"""Returns the options of a node, by its number; 0 is the root. Called once for each node that is continued."""

Draw = Callable[[int], int]
"""Returns a random whole number from 0 to below its argument."""


@dataclass(frozen=True, slots=True)
class BestOf:
    """A plan that continues one position several times, each time with the next of the options."""

    trials: int

    def __post_init__(self) -> None:
        check_count(self.trials, "trials", least=1)

    def begin(self, options: OptionsOf, chance: Draw) -> TrialPlan:
        """Return a plan for one search that has made no trial yet."""
        return _BestOf(self, options)


@dataclass(frozen=True, slots=True)
class Beam:
    """Beam search: on each level the best ``width`` nodes are extended by all their options, ``depth`` levels deep.

    A node gets at most as many options as the root has.
    """

    width: int
    depth: int

    def __post_init__(self) -> None:
        check_count(self.width, "width", least=1)
        check_count(self.depth, "depth", least=1)

    def begin(self, options: OptionsOf, chance: Draw) -> TrialPlan:
        """Return a plan for one search that has made no trial yet."""
        return _Beam(self, options)


@dataclass(frozen=True, slots=True)
class MCTS:
    """Monte Carlo tree search, by upper confidence bounds (Kocsis and Szepesvári 2006).

    A trial in flight counts as a visit without value. Scores are meant to lie between 0 and 1.
    """

    trials: int
    """The largest number of trials."""
    explore: float = 1.4
    """The weight of rarely visited nodes; higher means more exploration."""
    enough: float = math.inf
    """A score that ends the search."""

    def __post_init__(self) -> None:
        check_count(self.trials, "trials", least=1)
        for what, value in (("explore", self.explore), ("enough", self.enough)):
            if isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value):
                raise BadInput(f"Expected {what} to be a number; got {value!r}.")
        if not 0 <= self.explore < math.inf:
            raise BadInput(f"Expected explore to be 0 or more, and finite; got {self.explore!r}.")

    def begin(self, options: OptionsOf, chance: Draw) -> TrialPlan:
        """Return a plan for one search that has made no trial yet."""
        return _MCTS(self, options, chance)


SearchPlan = BestOf | Beam | MCTS


class _BestOf(TrialPlan):
    def __init__(self, terms: BestOf, options: OptionsOf) -> None:
        self.most, self._made = terms.trials, 0
        self._options = list(options(0))

    @property
    def is_over(self) -> bool:
        return self._made >= self.most or not self._options

    def ask(self) -> Trial | None:
        if self.is_over:
            return None
        self._made += 1
        return Trial(self._made, self._options[(self._made - 1) % len(self._options)])

    def tell(self, number: int, verdict: Verdict) -> None:
        pass  # no trial depends on another


class _Beam(TrialPlan):
    def __init__(self, terms: Beam, options: OptionsOf) -> None:
        self._terms, self._options = terms, options
        self._made, self._level, self._unjudged = 0, 0, 0
        self._judged: list[tuple[float, int]] = []  # of this level, that may be gone on from
        self._next = [(0, prompt) for prompt in options(0)]
        self._widest = len(self._next)
        self.most = self._widest * (1 + terms.width * (terms.depth - 1))

    @property
    def is_over(self) -> bool:
        return not self._next and not self._unjudged

    def ask(self) -> Trial | None:
        if not self._next:
            return None
        (of, prompt), self._next = self._next[0], self._next[1:]
        self._made += 1
        self._unjudged += 1
        return Trial(self._made, prompt, of)

    def tell(self, number: int, verdict: Verdict) -> None:
        self._unjudged -= 1
        if verdict.score is not None and not verdict.over:
            self._judged.append((-verdict.score, number))
        if self._next or self._unjudged:
            return
        self._level += 1
        best = [node for _, node in sorted(self._judged)[: self._terms.width]]
        self._judged = []
        if self._level < self._terms.depth:
            self._next = [(node, prompt) for node in best for prompt in self._options(node)[: self._widest]]


@dataclass(slots=True)
class _Node:
    number: int
    parent: "_Node | None"
    visits: int = 0
    value: float = 0.0
    is_open: bool = False
    """Whether the search can continue from this node or from a node below."""
    untried: list[Continuation] | None = None
    """The options of the node that were not tried; None until the search first continues from the node."""
    children: "list[_Node]" = field(default_factory=list)


class _MCTS(TrialPlan):
    def __init__(self, terms: MCTS, options: OptionsOf, chance: Draw) -> None:
        self._terms, self._options, self._chance = terms, options, chance
        self.most = terms.trials
        self._root = _Node(0, None, is_open=True)
        self._nodes = [self._root]
        self._in_flight: set[int] = set()
        self._found = False

    @property
    def is_over(self) -> bool:
        ended = self._found or len(self._nodes) > self.most
        return ended or (not self._root.is_open and not self._in_flight)

    def ask(self) -> Trial | None:
        if self._found or len(self._nodes) > self.most:
            return None
        node = self._selected()
        if node is None:
            return None
        assert node.untried
        prompt = node.untried.pop(self._chance(len(node.untried)))
        child = _Node(len(self._nodes), node)
        node.children.append(child)
        self._nodes.append(child)
        self._in_flight.add(child.number)
        self._visit(child, 1)
        self._close(node)
        return Trial(child.number, prompt, node.number)

    def tell(self, number: int, verdict: Verdict) -> None:
        node = self._nodes[number]
        self._in_flight.remove(number)
        if verdict.score is None:
            self._visit(node, -1)
        else:
            self._found = self._found or verdict.score >= self._terms.enough
            above: _Node | None = node
            while above is not None:
                above.value += verdict.score
                above = above.parent
        if verdict.score is None or verdict.over:
            return
        above = node
        while above is not None and not above.is_open:
            above.is_open = True
            above = above.parent

    def _selected(self) -> _Node | None:
        """Return the node from which the next trial continues: from the root, the first node with an option left."""
        while self._root.is_open:
            node = self._root
            while not self._untried(node):
                rivals = [child for child in node.children if child.is_open]
                if not rivals:
                    break
                node = max(rivals, key=lambda child: (self._bound(child), -child.number))
            if node.untried:
                return node
            self._close(node)
        return None

    def _untried(self, node: _Node) -> list[Continuation]:
        if node.untried is None:
            node.untried = list(self._options(node.number))
        return node.untried

    def _close(self, node: _Node) -> None:
        """Exclude a node, and its ancestors, from the search if they have no option left."""
        above: _Node | None = node
        while above is not None and not self._untried(above) and not any(child.is_open for child in above.children):
            above.is_open = False
            above = above.parent

    def _bound(self, node: _Node) -> float:
        if not node.visits:
            return math.inf
        assert node.parent is not None
        mean = node.value / node.visits
        return mean + self._terms.explore * math.sqrt(math.log(node.parent.visits) / node.visits)

    def _visit(self, node: _Node, by: int) -> None:
        above: _Node | None = node
        while above is not None:
            above.visits += by
            above = above.parent
