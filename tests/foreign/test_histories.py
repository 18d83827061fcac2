"""Planted histories are blamed by their names, and sound ones are not."""

import random
from typing import Any

import pytest

from tests.foreign.histories import Operation, anomalies


def did(process: int, begin: float, end: float | None, *ops: tuple[str, str, Any], how: str = "ok") -> Operation:
    """An operation."""
    return {"process": process, "begin": begin, "end": end, "how": how, "ops": list(ops)}


def put(value: int, key: str = "x") -> tuple[str, str, Any]:
    return ("append", key, value)


def got(*values: int, key: str = "x") -> tuple[str, str, Any]:
    return ("read", key, list(values))


PLANTED: dict[str, tuple[str, list[Operation]]] = {
    "a read of what failed": ("G1a", [did(1, 0, 1, put(1), how="fail"), did(2, 2, 3, got(1))]),
    "a read of half": ("G1b", [did(1, 0, 1, put(1), put(2)), did(2, 0, 1, got(1)), did(3, 4, 5, got(1, 2))]),
    "a value twice": ("duplicate", [did(1, 0, 1, put(1)), did(2, 2, 3, got(1, 1))]),
    "a value appended twice": ("duplicate", [did(1, 0, 1, put(1)), did(2, 2, 3, put(1))]),
    "a value of nobody": ("garbage", [did(1, 0, 1, put(1)), did(2, 2, 3, got(1, 7))]),
    "reads that disagree": (
        "order",
        [did(1, 0, 9, put(1)), did(2, 0, 9, put(2)), did(3, 0, 9, got(1, 2)), did(4, 0, 9, got(2, 1))],
    ),
    "an operation that does not see itself": ("internal", [did(1, 0, 1, put(1), got())]),
    "writes in two orders": (
        "G0",
        [
            did(1, 0, 9, put(1), put(1, "y")),
            did(2, 0, 9, put(2), put(2, "y")),
            did(3, 0, 9, got(1, 2)),
            did(4, 0, 9, got(2, 1, key="y")),
        ],
    ),
    "each reads the other": (
        "G1c",
        [did(1, 0, 9, put(1), got(1, key="y")), did(2, 0, 9, put(1, "y"), got(1))],
    ),
    "one read missed a write": (
        "G-single",
        [did(1, 0, 9, put(1), put(1, "y")), did(2, 0, 9, got(1), got(key="y")), did(3, 0, 9, got(1, key="y"))],
    ),
    "two reads missed each other's write": (
        "G2",
        [
            did(1, 0, 9, got(), put(1, "y")),
            did(2, 0, 9, got(key="y"), put(1)),
            did(3, 0, 9, got(1)),
            did(4, 0, 9, got(1, key="y")),
        ],
    ),
    "a stale read": ("G-single-realtime", [did(1, 0, 1, put(1)), did(2, 2, 3, got()), did(3, 4, 5, got(1))]),
    "writes late by the clock": (
        "G0-realtime",
        [did(1, 0, 1, put(1)), did(2, 2, 3, put(2)), did(3, 4, 5, got(2, 1))],
    ),
    "a client that does not see its own write": (
        "G-single-process",
        [did(1, 0, 1, put(1)), did(1, 2, 3, got()), did(2, 4, 5, got(1))],
    ),
    "an acknowledged write that no later read has": (
        "G-single-realtime",
        [did(1, 0, 1, put(1)), did(2, 2, 3, got()), did(3, 4, 5, got())],
    ),
}


@pytest.mark.parametrize("case", PLANTED)
def test_each_planted_anomaly_is_named(case: str) -> None:
    name, history = PLANTED[case]
    assert name in [anomaly.name for anomaly in anomalies(history)]


def sound(seed: int) -> list[Operation]:
    """Operations that overlap, and happen one after another between question and answer; some outcomes are unknown."""
    chance, lists, history, now = random.Random(seed), dict[str, list[int]](), list[Operation](), 0.0
    free = dict.fromkeys(range(5), 0.0)
    for number in range(80):
        process = chance.choice([*free])
        now += 1
        ops: list[tuple[str, str, Any]] = []
        kept = chance.random() > 0.05
        copy = {key: list(values) for key, values in lists.items()}
        for _ in range(chance.randint(1, 3)):
            key = chance.choice("xyz")
            if chance.random() < 0.5:
                value = number * 10 + len(ops)
                copy.setdefault(key, []).append(value)
                ops.append(put(value, key))
            else:
                ops.append(got(*copy.get(key, []), key=key))
        how = chance.choice(("ok",) * 8 + ("info",)) if kept else "fail"
        lists = copy if kept else lists
        begin = max(free[process] + 0.01, now - chance.random() * 3)
        end = max(now, begin) + chance.random() * 3
        if begin > now:  # it is asked too late to happen now
            begin = now
        free[process] = end
        history.append(did(process if begin > 0 else number, begin, None if how == "info" else end, *ops, how=how))
    return history


@pytest.mark.parametrize("seed", range(20))
def test_a_sound_history_is_not_blamed_and_one_with_a_changed_read_mostly_is(seed: int) -> None:
    history = sound(seed)
    assert anomalies(history) == []
    reads = [
        (step, place)
        for step in history
        if step["how"] == "ok"
        for place, (kind, _, values) in enumerate(step["ops"])
        if kind == "read" and len(values) > 1
    ]
    step, place = random.Random(seed).choice(reads)
    kind, key, values = step["ops"][place]
    step["ops"][place] = (kind, key, values[::-1])
    assert anomalies(history) != []
