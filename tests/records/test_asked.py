"""What programs have asked: a row with each prompt, and its end, numbered under the row of who asked."""

from collections.abc import Iterator

import pytest

from ikigai_actors.errors import BadInput
from ikigai_actors.records.fsck.check import check
from ikigai_actors.records.lives.deaths import WriteDeath
from ikigai_actors.records.lives.signals import SendSignal
from ikigai_actors.records.log.append import FIRST_EPOCH, Append, FencingToken
from ikigai_actors.records.log.log_unit import LogUnit
from ikigai_actors.records.log.parking import Park, Parked, Unpark
from ikigai_actors.records.mail.asked import Ask, AskedTurn, EndAsked, Woken, turn_name, turn_named, turns_over
from ikigai_actors.store.base import Transaction
from ikigai_actors.store.journal import Committed
from ikigai_actors.store.unit import write_alone
from supervisors.signals import Signal
from tests.kit.databases import sql
from tests.kit.races import meet
from tests.kit.trees import HOST
from tests.records.test_races import OTHER, Arena


@pytest.fixture
def arena(durable: str, request: pytest.FixtureRequest) -> Iterator[Arena]:
    admin = request.getfixturevalue("postgres_admin") if durable.startswith("postgres") else None
    arena = Arena(durable, admin)
    arena.add(("boss", "root"), ("mast", "boss"))
    arena.add(("sail", "boss"), host=OTHER)
    for uuid in ("mast", "sail", "sail"):
        write_alone(arena.store, Ask("boss", uuid, "go", 5, {}))
    yield arena
    arena.close()


def last(agent: str, prompt: int, host: str = HOST) -> EndAsked:
    """The last unit of the turn of a prompt."""
    return EndAsked(Append(LogUnit(agent, (), turn=0), FencingToken(host, FIRST_EPOCH)), agent, (prompt,))


def ended(arena: Arena, asker: str = "boss") -> list[tuple[str, int]]:
    every = {AskedTurn("mast", 1), AskedTurn("sail", 1), AskedTurn("sail", 2)}
    return [(turn.agent, turn.prompt) for turn in arena.store.read(lambda tx: turns_over(tx, asker, every))]


def test_two_turns_that_end_at_one_moment_on_two_hosts_are_numbered_one_after_the_other(arena: Arena) -> None:
    arena.start()
    verdicts = meet(arena.one, last("mast", 1), arena.other, last("sail", 2, OTHER), arena.waits)
    assert all(isinstance(verdict, Committed) for verdict in verdicts)
    assert ended(arena) == [("mast", 1), ("sail", 2)]
    assert arena.other.store.runs == arena.other.journal.statistics().batches  # it has waited, and nothing ran again
    write_alone(arena.store, last("sail", 2, OTHER))  # it was resumed, and has ended again
    assert ended(arena) == [("mast", 1), ("sail", 2)]


def test_a_death_ends_what_was_asked_of_the_dead_and_forgets_what_they_ask(arena: Arena) -> None:
    arena.start()
    verdicts = meet(arena.one, last("mast", 1), arena.other, WriteDeath("sail", OTHER, "a storm", 9), arena.waits)
    assert all(isinstance(verdict, Committed) for verdict in verdicts)
    assert ended(arena) == [("mast", 1), ("sail", 1), ("sail", 2)]
    write_alone(arena.store, Ask("boss", "mast", "again", 9, {}))
    write_alone(arena.store, WriteDeath("boss", HOST, "a wave", 9))
    assert ended(arena) == []
    assert [violation for violation in check(arena.store) if violation.invariant == "asked"] == []


class _Late(EndAsked):
    """Somebody begins to wait right behind the look-up."""

    def look_up(self, tx: Transaction) -> None:
        super().look_up(tx)
        sql(tx, "INSERT INTO asked (agent, prompt, asker) VALUES ('mast', 1, 'fork') ON CONFLICT DO NOTHING")


def test_who_begins_to_wait_after_the_look_up_is_found_and_gets_the_end(arena: Arena) -> None:
    arena.add(("fork", "root"))
    arena.start()
    act = Append(LogUnit("mast", (), turn=0), FencingToken(HOST, FIRST_EPOCH))
    assert isinstance(arena.one.submit(_Late(act, "mast", (1,)))(), Committed)
    assert ended(arena) == ended(arena, "fork") == [("mast", 1)]


def test_the_name_of_a_turn_says_which_one_it_is() -> None:
    turn = AskedTurn("A" * 22, 7)
    assert turn_named(turn_name(turn)) == turn
    for text in ("", "x/m1", f"{'A' * 22}/m", f"{'A' * 22}/m-1", f"{'A' * 22}/t7"):
        with pytest.raises(BadInput, match="Expected a turn as a prompt gives it"):
            turn_named(text)


BOSS = FencingToken(HOST, FIRST_EPOCH)
TURNS = (AskedTurn("mast", 1), AskedTurn("sail", 1), AskedTurn("sail", 2))


def parked(arena: Arena) -> tuple[int, int]:
    """How many ends the boss lacks, and whether a boot looks at it."""
    [(lack, awake)] = arena.store.read(lambda tx: sql(tx, "SELECT parked, awake FROM agents WHERE uuid = 'boss'"))
    return int(lack), int(awake)


def begin_turn(arena: Arena) -> None:
    write_alone(arena.store, Append(LogUnit("boss", (), turn=1), BOSS))


@pytest.mark.parametrize("need", [1, 2, 3])
def test_an_end_at_the_moment_in_which_a_program_is_parked_counts_once(arena: Arena, need: int) -> None:
    begin_turn(arena)
    arena.start()
    park = Park("boss", BOSS, TURNS, need, None)
    verdicts = meet(arena.one, park, arena.other, last("sail", 2, OTHER), arena.waits)
    assert all(isinstance(verdict, Committed) for verdict in verdicts)
    assert parked(arena) in {1: [(-1, 1), (0, 1)], 2: [(1, 0)], 3: [(2, 0)]}[need]
    if need > 1:
        woken = [write_alone(arena.store, end) for end in (last("mast", 1), last("sail", 1, OTHER))]
        assert [isinstance(unit, Woken) for unit in woken] == [need == 2, need == 3]
        assert parked(arena) == (-1, 1)
    write_alone(arena.store, Unpark("boss", BOSS))
    assert parked(arena) == (0, 1)
    assert write_alone(arena.store, Park("boss", BOSS, TURNS[:1], 1, None)) is None or need == 1


def test_an_end_in_the_transaction_that_parks_and_a_death_at_that_moment_wake(arena: Arena) -> None:
    begin_turn(arena)
    arena.start()
    park = Park("boss", BOSS, TURNS[1:], 2, None)
    meet(arena.one, park, arena.other, WriteDeath("sail", OTHER, "a storm", 9), arena.waits)
    assert parked(arena) in [(-1, 1), (0, 1)]


def test_an_int_at_the_moment_in_which_a_program_is_parked_wakes_it_or_keeps_it(arena: Arena) -> None:
    begin_turn(arena)
    arena.start()
    meet(arena.one, Park("boss", BOSS, (), 1, 99), arena.other, SendSignal("boss", Signal.INT, 9), arena.waits)
    assert parked(arena) in [(-1, 1), (0, 1)]
    assert isinstance(write_alone(arena.store, Park("boss", BOSS, (), 1, None)), Parked | None)
