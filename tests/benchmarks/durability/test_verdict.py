"""The judge convicts each damage to kept histories of real plays, and none of the histories themselves."""

from pathlib import Path
from xml.etree.ElementTree import fromstring

import pytest

from benchmarks.durability.history import Event, Play, append, read
from benchmarks.durability.picture import drawing, mark
from benchmarks.durability.verdict import AGAIN, AGAIN_LATE, Verdict, judge
from tests.benchmarks.durability.mutants import CONVICTS, COUNTS, Damage

HISTORIES = tuple(read(Path(__file__).with_name("histories.jsonl.gz")))
"""Plays of every runtime, undisturbed and under each kind of fault."""


def made(*events: Event, fault: str = "kill", hosts: int = 1, **values: object) -> Play:
    """A play with these events, and the one start that every play has."""
    start = Event(0.0, "worker-started", owner="one.1")
    play = Play("none", "run", "a moment", fault, True, ("r",), 1, hosts, 1, {}, (start, *events))
    return play.__class__(**{**play.__dict__, **values})


def verdict(*events: Event, **values: object) -> Verdict:
    return judge(made(*events, **values))  # type: ignore[arg-type]  # fields of a play


def test_no_kept_history_is_convicted() -> None:
    convicted = [play.moment for play in HISTORIES if judge(play).convicted]
    assert convicted == []
    assert len(HISTORIES) >= 20


@pytest.mark.parametrize("damage", CONVICTS)
def test_each_damage_is_convicted(damage: Damage) -> None:
    damaged = [play for each in HISTORIES if (play := damage(each)) is not None]
    assert damaged, "no history has what this damages"
    assert [play.moment for play in damaged if not judge(play).convicted] == []


@pytest.mark.parametrize(("damage", "number"), COUNTS)
def test_each_loss_is_counted(damage: Damage, number: str) -> None:
    pairs = [(play, damaged) for play in HISTORIES if (damaged := damage(play)) is not None]
    assert pairs, "no history has what this damages"
    for play, damaged in pairs:
        assert getattr(judge(damaged), number) == getattr(judge(play), number) + 1


def test_a_fault_whose_moment_never_came_is_no_play() -> None:
    assert verdict().why_not == "the moment never came"


def test_a_kill_without_its_proof_is_no_play() -> None:
    struck = Event(1.0, "struck", owner="one.1", detail={"proved": False, "proof": "exit status 0"})
    assert verdict(struck).why_not == "not proved: exit status 0"


def test_a_kill_after_which_nothing_was_left_to_do_is_no_play() -> None:
    struck = Event(1.0, "struck", owner="one.1", detail={"proved": True, "proof": "exit status -9"})
    end = Event(2.0, "result", "r", detail="All in all: receipt 1")
    assert verdict(struck, end).why_not == "nothing was left to do outside"
    assert verdict(struck, Event(1.5, "asked", "r", "lead", 1, detail=[]), end).landed
    assert verdict(struck).landed, "a run that stands still has lost what was left to do"


@pytest.mark.parametrize(("seconds", "lost"), [(5.0, False), (AGAIN - 0.5, False), (AGAIN + 0.5, True)])
def test_an_approval_is_lost_only_if_it_is_asked_for_long_after_the_restart(seconds: float, lost: bool) -> None:
    restart = 3.0
    result = verdict(
        Event(1.0, "approve-sent", "r"),
        Event(1.1, "approve-acknowledged", "r"),
        Event(1.2, "struck", owner="one.1", detail={"proved": True, "proof": "exit status -9"}),
        Event(restart, "worker-started", owner="one.2"),
        Event(restart + seconds, "approve-sent", "r"),
    )
    assert result.approval_lost == lost
    assert result.asked_again == 1


@pytest.mark.parametrize("fault", ["server", "stop"])
@pytest.mark.parametrize(("seconds", "lost"), [(AGAIN + 0.5, False), (AGAIN_LATE + 0.5, True)])
def test_a_runtime_that_hears_late_of_a_fault_has_longer_to_go_on_after_an_approval(
    fault: str, seconds: float, lost: bool
) -> None:
    struck = 1.2
    result = verdict(
        Event(1.0, "approve-sent", "r"),
        Event(1.1, "approve-acknowledged", "r"),
        Event(struck, "struck", owner="one.1", detail={"proved": True, "proof": "started then, then now"}),
        Event(struck + seconds, "approve-sent", "r"),
        fault=fault,
    )
    assert result.approval_lost == lost


def test_a_stopped_worker_may_act_until_it_is_continued_and_never_afterwards() -> None:
    struck = Event(1.0, "struck", owner="one.1", detail={"proved": True, "proof": "state T"})
    act = Event(9.0, "effect-received", "r", "a", owner="one.1")
    continued = Event(8.0, "continued", owner="one.1", detail={"proved": True, "proof": "state T"})
    assert verdict(struck, act, fault="stop", hosts=2).awake_dead == 0
    assert verdict(struck, continued, act, fault="stop", hosts=2).awake_dead == 1


def test_the_recovery_counts_from_the_second_start_to_the_first_act_of_the_new_life() -> None:
    struck = Event(1.0, "struck", owner="one.1", detail={"proved": True, "proof": "exit status -9"})
    late = Event(1.1, "effect-received", "r", "a", owner="")  # it was on its way when its process died
    start, act = Event(2.0, "worker-started", owner="one.2"), Event(2.5, "asked", "r", "a", 1, detail=[], owner="one.2")
    assert verdict(struck, late, start, act).recovery == 0.5


def test_the_rest_counts_from_the_strike_to_the_end_of_the_run() -> None:
    struck = Event(1.0, "struck", owner="one.1", detail={"proved": True, "proof": "started then, then now"})
    assert verdict(struck, Event(4.0, "result", "r", detail="All in all: receipt 1"), fault="server").rest == 3.0
    assert verdict(struck, fault="server").rest is None


def test_a_request_that_was_on_its_way_when_a_cancel_was_acknowledged_is_none_after_it() -> None:
    cancel = Event(2.02, "cancel-acknowledged", "r", sent=2.0)
    early = Event(2.03, "asked", "r", "a", detail=[], sent=1.999)
    late = Event(2.03, "asked", "r", "b", detail=[], sent=2.001)
    unknown = Event(2.03, "effect", "r", "c")
    assert verdict(cancel, early, late, unknown, task="cancel", fault="").after_cancel == 2


def test_a_history_survives_its_file(tmp_path: Path) -> None:
    for play in HISTORIES[:2]:
        append(tmp_path / "copy.jsonl.gz", play)
    assert tuple(read(tmp_path / "copy.jsonl.gz")) == HISTORIES[:2]


def test_the_picture_has_a_dot_for_each_play_and_half_of_it_where_something_was_paid_again() -> None:
    plays = [(play, judge(play)) for play in HISTORIES]
    drawn = fromstring(drawing(plays))
    circles, halves = (drawn.findall(f"{{*}}{name}") for name in ("circle", "path"))
    legend = 4
    assert len(circles) == len(plays) + legend
    assert len(halves) == sum(mark(verdict) == "half" for _, verdict in plays) + 1
