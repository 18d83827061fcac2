"""The hunt for mutants works, shown by a quick one; ``python -m tests.mutants`` hunts them all and takes its time."""

import re

import pytest

from tests.mutants import MUTANTS, Mutant
from tests.mutants.__main__ import ROOT, changed, finding_in, hunt
from tests.mutants.accounts import ACCOUNT_MUTANTS
from tests.mutants.batches import BATCH_MUTANTS
from tests.mutants.behaviour import BEHAVIOUR_MUTANTS
from tests.mutants.budgets import BUDGET_MUTANTS
from tests.mutants.builds import BUILD_MUTANTS
from tests.mutants.decisions import DECISION_MUTANTS
from tests.mutants.durable import DURABLE_MUTANTS
from tests.mutants.hashes import HASH_MUTANTS
from tests.mutants.hosts import HOST_MUTANTS
from tests.mutants.interleavings import INTERLEAVING_MUTANTS
from tests.mutants.killing import KILLING_MUTANTS
from tests.mutants.later import LATER_MUTANTS
from tests.mutants.memory import MEMORY_MUTANTS
from tests.mutants.questions import QUESTION_MUTANTS
from tests.mutants.rules import RULE_MUTANTS
from tests.mutants.sleep import SLEEP_MUTANTS
from tests.mutants.spending import SPENDING_MUTANTS
from tests.mutants.steering import STEERING_MUTANTS, STEERING_MUTANTS_OF_HOSTS
from tests.mutants.street import STREET_MUTANTS

PAGE = (ROOT / "docs/engineering/mutants.md").read_text(encoding="utf-8")


def test_every_mutant_has_its_place_and_a_name_of_its_own() -> None:
    others = (*HOST_MUTANTS, *MEMORY_MUTANTS, *BUDGET_MUTANTS, *LATER_MUTANTS, *BEHAVIOUR_MUTANTS, *SPENDING_MUTANTS)
    decisions = (*INTERLEAVING_MUTANTS, *KILLING_MUTANTS, *DECISION_MUTANTS)
    steering = (*STEERING_MUTANTS, *STEERING_MUTANTS_OF_HOSTS, *decisions)
    subjects = (
        *HASH_MUTANTS,
        *RULE_MUTANTS,
        *SLEEP_MUTANTS,
        *DURABLE_MUTANTS,
        *STREET_MUTANTS,
        *QUESTION_MUTANTS,
        *BUILD_MUTANTS,
        *BATCH_MUTANTS,
        *ACCOUNT_MUTANTS,
    )
    assert all(changed(mutant) for mutant in (*MUTANTS, *others, *steering, *subjects))
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS) >= 20
    assert len({mutant.name for mutant in HOST_MUTANTS}) == len(HOST_MUTANTS)


@pytest.mark.parametrize(
    ("output", "finding"),
    [
        ("FAILED tests/a.py::test_one[sqlite]\n1 failed, 2 passed in 3.0s", {"by": "test_one"}),
        ("ERROR tests/a.py::test_one\n1 error in 3.0s", {"by": "test_one"}),
        ("....\n4 passed, 2 deselected in 3.0s", {}),
        ("1 skipped, 12 passed in 3.0s", {}),
    ],
)
def test_a_hunt_finds_the_first_test_that_fails(output: str, finding: dict[str, str]) -> None:
    assert finding_in(output) == finding


@pytest.mark.parametrize(
    "output", ["37 deselected in 3.0s", "4 skipped in 1.0s", "no tests ran in 0.01s", "ERROR: file or directory", ""]
)
def test_a_hunt_in_which_no_test_ran_is_an_error_and_finds_not_nothing(output: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 (it has no words)
        finding_in(output)


ROWS = {
    "docs/engineering/mutants.md": r"\| ([^|]+?) \| \d+ \| [\w-]+ \| (\d+) (?=\|)",
}
"""How the pages show a mutant and the steps of its shortest program, behind the number of the one that found it."""


@pytest.mark.parametrize("page", ROWS)
def test_the_tables_say_of_every_mutant_when_it_was_found_and_how_short(page: str) -> None:
    """At most ten steps, that is."""
    rows = dict(re.findall(ROWS[page], (ROOT / page).read_text(encoding="utf-8")))
    assert {mutant.name for mutant in MUTANTS} <= rows.keys()
    assert max(int(rows[mutant.name]) for mutant in MUTANTS) <= 10


def test_the_page_says_of_every_mutant_of_hosts_when_it_was_found() -> None:
    page = PAGE.partition("## Several hosts")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| ([^|]+?) \| \d+ \| [\w-]+ \|$", page, re.MULTILINE)
    assert {mutant.name for mutant in HOST_MUTANTS} == {*rows}


@pytest.mark.parametrize(
    ("title", "mutants"),
    [
        ("Memory", MEMORY_MUTANTS),
        ("Budgets", BUDGET_MUTANTS),
        ("Keys and spending", SPENDING_MUTANTS),
        ("Hashes", HASH_MUTANTS),
    ],
)
def test_the_page_says_of_every_mutant_of_a_subject_what_finds_it_and_how_short(
    title: str, mutants: tuple[Mutant, ...]
) -> None:
    page = PAGE.partition(f"## {title}\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| ([^|]+?) \| (\d*) \| ([\w-]+) \| (\d*) \|$", page, re.MULTILINE)
    assert [name for name, *_ in rows] == [mutant.name for mutant in mutants]
    for mutant, (_, finder, by, steps) in zip(mutants, rows, strict=True):
        if mutant.test:
            assert f"def {by}(" in (ROOT / mutant.test).read_text(encoding="utf-8")
        else:
            assert finder
            assert 1 <= int(steps) <= 10


@pytest.mark.parametrize(
    ("title", "mutants"), [("Rules", RULE_MUTANTS), ("Kill", KILLING_MUTANTS), ("Interleavings", INTERLEAVING_MUTANTS)]
)
def test_the_page_says_of_every_mutant_of_a_decision_what_finds_it_and_that_programs_do_so_soon(
    title: str, mutants: tuple[Mutant, ...]
) -> None:
    page = PAGE.partition(f"## {title}\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| ([^|]+?) \| (\d*) \| ([\w-]+) \|$", page, re.MULTILINE)
    assert [name for name, *_ in rows] == [mutant.name for mutant in mutants]
    for mutant, (_, cases, by) in zip(mutants, rows, strict=True):
        if mutant.test:
            assert f"def {by}(" in (ROOT / mutant.test).read_text(encoding="utf-8")
        else:
            assert 1 <= int(cases) <= 200


def test_the_page_says_of_every_mutant_of_what_comes_later_which_test_finds_it() -> None:
    page = PAGE.partition("## Later")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| ([^|]+?) \| (test_\w+) \|$", page, re.MULTILINE)
    assert [name for name, _ in rows] == [mutant.name for mutant in LATER_MUTANTS]
    for mutant, (_, by) in zip(LATER_MUTANTS, rows, strict=True):
        assert f"def {by}(" in (ROOT / mutant.test).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("title", "mutants"),
    [
        ("Decisions", DECISION_MUTANTS),
        ("Durable programs", DURABLE_MUTANTS),
        ("The network API", STREET_MUTANTS),
        ("Questions", QUESTION_MUTANTS),
        ("Builds and versions", BUILD_MUTANTS),
        ("Batches", BATCH_MUTANTS),
        ("Accounts", ACCOUNT_MUTANTS),
    ],
)
def test_the_page_says_of_every_mutant_of_decisions_which_test_finds_it(
    title: str, mutants: tuple[Mutant, ...]
) -> None:
    page = PAGE.partition(f"## {title}\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| ([^|]+?) \| (test_\w+) \|$", page, re.MULTILINE)
    assert [name for name, _ in rows] == [mutant.name for mutant in mutants]
    for mutant, (_, by) in zip(mutants, rows, strict=True):
        assert f"def {by}(" in (ROOT / mutant.test).read_text(encoding="utf-8")


def test_the_page_says_of_every_mutant_of_experiments_which_test_or_law_finds_it() -> None:
    page = PAGE.partition("## Experiments")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| ([^|]+?) \| ([\w-]+) \| (\d*) \|$", page, re.MULTILINE)
    assert [name for name, *_ in rows] == [mutant.name for mutant in BEHAVIOUR_MUTANTS]
    judges = ("tests/machines/experiment_oracle.py", "ikigai_actors/testing/machine/machine.py")
    laws = "".join((ROOT / judge).read_text(encoding="utf-8") for judge in judges)
    for mutant, (_, by, example) in zip(BEHAVIOUR_MUTANTS, rows, strict=True):
        assert bool(example) == (not mutant.test)
        if mutant.test:
            assert f"def {by}(" in (ROOT / mutant.test).read_text(encoding="utf-8")
        else:
            assert re.search(rf"^ *{by} ", laws, re.MULTILINE)


def test_the_page_says_of_every_mutant_of_sleep_which_test_or_law_finds_it() -> None:
    page = PAGE.partition("## Sleep\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| ([^|]+?) \| ([\w-]+)(, at program \d+)? \|$", page, re.MULTILINE)[1:]
    assert [name for name, *_ in rows] == [mutant.name for mutant in SLEEP_MUTANTS]
    for mutant, (_, by, program) in zip(SLEEP_MUTANTS, rows, strict=True):
        assert bool(program) == (not mutant.test)
        if mutant.test:
            assert f"def {by}(" in (ROOT / mutant.test).read_text(encoding="utf-8")


def test_a_mutant_without_a_place_is_an_error() -> None:
    with pytest.raises(ValueError, match="0 times, expected once"):
        changed(Mutant("gone", "agent/turn/fork.py", "no such text", ""))


@pytest.mark.thorough("hunts one in another process; each tier checks that all have their places")
def test_a_quick_mutant_is_found() -> None:
    [mutant] = [quick for quick in MUTANTS if quick.name == "tree row not taken"]
    assert hunt(mutant, examples=30, seconds=60, shrink=False)["by"] == "tree"
