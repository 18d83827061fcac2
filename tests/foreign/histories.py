"""What is wrong with a history of appends and reads of lists: anomalies of isolation, by the standard library alone.

A history is a list of operations, each a dict:

    process     who asked; one at a time
    begin, end  when it was asked and answered, by one clock; ``end`` is None where no answer came
    how         "ok", "fail" (it did not happen), or "info" (it may have happened)
    ops         ("append", key, value) and ("read", key, [values]), in order; the values of a key are all different

The names are Adya's: G0 a circle of writes, G1a a read of what failed, G1b of what was half done, G1c a circle of
writes and reads of them, G-single one with one read that missed a write, G2 with several. ``-process`` and
``-realtime`` say that the circle needs the order of one process, or of answers and later questions. And:
``duplicate``, a value is there twice; ``garbage``, nobody has written it; ``order``, two reads disagree; ``internal``,
an operation does not see itself.
"""

import itertools
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

Operation = Mapping[str, Any]
Edges = dict[int, dict[int, str]]
"""From operation to operation, and why."""

WRITES, READS, MISSES = "ww", "wr", "rw"


class Anomaly(NamedTuple):
    """One thing that is wrong."""

    name: str
    explanation: str


def anomalies(history: Sequence[Operation]) -> list[Anomaly]:
    """Everything that is wrong with a history; of circles, one of each kind for each set of operations in one."""
    anomalies = [*_internal(history)]
    writers, last_of, written_twice = _writers(history)
    anomalies += written_twice
    anomalies += _reads(history, writers, last_of)
    orders, disagree = _orders(history)
    anomalies += disagree
    if any(anomaly.name in ("garbage", "duplicate", "order") for anomaly in anomalies):
        return anomalies  # what depends on what is not known then
    return anomalies + _circles(history, _dependencies(history, writers, orders))


def _internal(history: Sequence[Operation]) -> Iterator[Anomaly]:
    for number, operation in enumerate(history):
        if operation["how"] != "ok":
            continue
        whole: dict[Any, list[Any]] = {}
        own: dict[Any, list[Any]] = defaultdict(list)
        for kind, key, value in operation["ops"]:
            if kind == "append":
                own[key].append(value)
                if key in whole:
                    whole[key] = [*whole[key], value]
                continue
            read = list(value)
            if (key in whole and read != whole[key]) or (own[key] and read[-len(own[key]) :] != own[key]):
                yield Anomaly("internal", f"operation {number} reads {read} of {key} after {own[key]} of its own")
            whole[key] = read


def _writers(history: Sequence[Operation]) -> tuple[dict[Any, int], dict[tuple[int, Any], Any], list[Anomaly]]:
    """Who has appended each value of a key, the last value of each operation, and values that were appended twice."""
    writers: dict[Any, int] = {}
    last: dict[tuple[int, Any], Any] = {}
    twice: list[Anomaly] = []
    for number, operation in enumerate(history):
        for kind, key, value in operation["ops"]:
            if kind == "append":
                if (key, value) in writers:
                    twice.append(
                        Anomaly("duplicate", f"{value} of {key} was appended by {writers[key, value]}, {number}")
                    )
                writers[key, value] = number
                last[number, key] = value
    return writers, last, twice


def _reads(
    history: Sequence[Operation], writers: Mapping[Any, int], last: Mapping[tuple[int, Any], Any]
) -> Iterator[Anomaly]:
    for number, key, values in _all_reads(history):
        if len(set(values)) < len(values):
            yield Anomaly("duplicate", f"operation {number} reads {values} of {key}")
        for value in values:
            writer = writers.get((key, value))
            if writer is None:
                yield Anomaly("garbage", f"operation {number} reads {value} of {key}, which nobody appended")
            elif history[writer]["how"] == "fail":
                yield Anomaly("G1a", f"operation {number} reads {value} of {key}, which {writer} has failed to append")
        end = values[-1] if values else None
        if (key, end) in writers and last[writers[key, end], key] != end:
            text = f"operation {number} reads {key} up to {end}, and {writers[key, end]} appended more"
            yield Anomaly("G1b", text)


def _orders(history: Sequence[Operation]) -> tuple[dict[Any, list[Any]], list[Anomaly]]:
    """The longest read of each key, of which every other one must be the beginning."""
    longest: dict[Any, list[Any]] = defaultdict(list)
    for _, key, values in _all_reads(history):
        if len(values) > len(longest[key]):
            longest[key] = values
    disagree = [
        Anomaly("order", f"operation {number} reads {values} of {key}, and another one {longest[key]}")
        for number, key, values in _all_reads(history)
        if longest[key][: len(values)] != values
    ]
    return longest, disagree


def _dependencies(
    history: Sequence[Operation], writers: Mapping[Any, int], orders: Mapping[Any, list[Any]]
) -> list[tuple[int, int, str]]:
    edges: list[tuple[int, int, str]] = []
    follows = {(key, value): place for key, values in orders.items() for place, value in enumerate(values)}
    unseen: dict[Any, list[int]] = defaultdict(list)
    for (key, value), writer in writers.items():
        if (key, value) not in follows and history[writer]["how"] == "ok":
            unseen[key].append(writer)
    for key, values in orders.items():
        edges += [(writers[key, earlier], writers[key, other], WRITES) for earlier, other in itertools.pairwise(values)]
        edges += [(writers[key, values[-1]], writer, WRITES) for writer in unseen[key] if values]
    for number, key, values in _all_reads(history):
        if values:
            edges.append((writers[key, values[-1]], number, READS))
        if len(values) < len(orders[key]):
            edges.append((number, writers[key, orders[key][len(values)]], MISSES))
        edges += [(number, writer, MISSES) for writer in unseen[key]]  # each is behind all that anybody has read
    return [(start, other, why) for start, other, why in edges if start != other]


def _circles(history: Sequence[Operation], edges: list[tuple[int, int, str]]) -> list[Anomaly]:
    anomalies: list[Anomaly] = []
    more = edges
    for suffix, extra in (("", []), ("-process", _by_process(history)), ("-realtime", _by_time(history))):
        more = [*more, *extra]
        for name, kinds in (("G0", {WRITES}), ("G1c", {WRITES, READS})):
            graph = _graph(edge for edge in more if edge[2] in kinds or edge[2] not in (WRITES, READS, MISSES))
            anomalies += [Anomaly(name + suffix, _words(_circle(graph, some), graph)) for some in _entangled(graph)]
        if not anomalies:
            anomalies += _missing(more, suffix)
        if anomalies:
            return anomalies
    return anomalies


def _missing(edges: list[tuple[int, int, str]], suffix: str) -> Iterator[Anomaly]:
    """The circles in which some read missed a write."""
    whole, without = _graph(edges), _graph(edge for edge in edges if edge[2] != MISSES)
    for some in _entangled(whole):
        for reader, other in [
            (start, writer) for start in some for writer, why in whole[start].items() if why == MISSES
        ]:
            if other in some and (way := _way(without, other, reader, some)):
                yield Anomaly(f"G-single{suffix}", _words([reader, *way], whole))
                break
        else:
            yield Anomaly(f"G2{suffix}", _words(_circle(whole, some), whole))


def _by_process(history: Sequence[Operation]) -> list[tuple[int, int, str]]:
    latest: dict[Any, int] = {}
    edges: list[tuple[int, int, str]] = []
    for number in sorted(_happened(history), key=lambda number: history[number]["begin"]):
        process = history[number]["process"]
        if process in latest:
            edges.append((latest[process], number, "process"))
        latest[process] = number
    return edges


def _by_time(history: Sequence[Operation]) -> list[tuple[int, int, str]]:
    """From each operation to those that began after its answer, but for what follows from others."""
    events = sorted(
        [(history[number]["begin"], 1, number) for number in _happened(history)]
        + [(history[number]["end"], 0, number) for number in _happened(history) if history[number]["end"] is not None]
    )
    frontier: set[int] = set()
    before: dict[int, set[int]] = {}
    edges: list[tuple[int, int, str]] = []
    for _, begins, number in events:
        if begins:
            before[number] = set(frontier)
            edges += [(earlier, number, "realtime") for earlier in frontier]
        elif number in before:
            frontier = (frontier - before[number]) | {number}
    return edges


def _happened(history: Sequence[Operation]) -> list[int]:
    return [number for number, operation in enumerate(history) if operation["how"] == "ok"]


def _all_reads(history: Sequence[Operation]) -> Iterator[tuple[int, Any, list[Any]]]:
    """The reads of what others have written: without what the operation itself has appended before."""
    for number, operation in enumerate(history):
        own: dict[Any, int] = defaultdict(int)
        for kind, key, value in operation["ops"] if operation["how"] == "ok" else ():
            if kind == "append":
                own[key] += 1
            else:
                yield number, key, list(value)[: len(value) - own[key]]


def _graph(edges: Iterable[tuple[int, int, str]]) -> Edges:
    graph: Edges = defaultdict(dict)
    for start, other, why in edges:
        graph[start].setdefault(other, why)
        graph[other]
    return graph


def _entangled(graph: Edges) -> list[set[int]]:
    """The sets of operations of which each depends on each other one (Tarjan)."""
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[int] = []
    open_: set[int] = set()
    groups: list[set[int]] = []
    for start in graph:
        if start in index:
            continue
        path = [(start, iter(graph[start]))]
        index[start] = low[start] = len(index)
        stack.append(start)
        open_.add(start)
        while path:
            node, others = path[-1]
            for other in others:
                if other not in index:
                    index[other] = low[other] = len(index)
                    stack.append(other)
                    open_.add(other)
                    path.append((other, iter(graph[other])))
                    break
                if other in open_:
                    low[node] = min(low[node], index[other])
            else:
                path.pop()
                if path:
                    low[path[-1][0]] = min(low[path[-1][0]], low[node])
                if low[node] == index[node]:
                    some = set[int]()
                    while node not in some:
                        some.add(stack.pop())
                    open_ -= some
                    if len(some) > 1:
                        groups.append(some)
    return groups


def _circle(graph: Edges, some: set[int]) -> list[int]:
    node = min(some)
    for other in graph[node]:
        if other in some and (way := _way(graph, other, node, some)):
            return [node, *way]
    return []


def _way(graph: Edges, start: int, end: int, among: set[int]) -> list[int]:
    """The shortest way from one operation to another."""
    came = {start: start}
    waiting = deque([start])
    while waiting:
        node = waiting.popleft()
        if node == end:
            way = [node]
            while way[-1] != start:
                way.append(came[way[-1]])
            return way[::-1]
        for other in graph[node]:
            if other in among and other not in came:
                came[other] = node
                waiting.append(other)
    return []


def _words(circle: Sequence[int], graph: Edges) -> str:
    steps = (f"{node} -{graph[node].get(other, '?')}-> " for node, other in itertools.pairwise(circle))
    return f"{''.join(steps)}{circle[-1] if circle else ''}"
