"""What `ikigai stats` says of very many agents."""

from ikigai_actors.reach.statistics import _all_costs, _cost, _dearest_costs
from ikigai_actors.records.agents import registry
from ikigai_actors.records.figures import count
from ikigai_actors.records.spending import Dearest, branch_spendings, dearest_branches
from ikigai_actors.shell.cli.stats import _about
from ikigai_actors.store import Store, Transaction
from tests.kit.databases import sql
from tests.kit.trees import change, plant


def test_the_dearest_of_very_many_agents_are_found_without_a_look_at_each(store: Store) -> None:
    plant(store, a="root", b="root", c="root", a1="a", a2="a1", b1="b")
    spent = {"root": (1, 1), "a": (10, 0), "a2": (30, 7), "b1": (35, 0), "c": (2, 0)}
    for uuid, (tokens, usd) in spent.items():
        change(store, uuid, f"spent_tokens = {tokens}, spent_usd = {usd}")
    change(store, "a2", "supervisor_uuid = 'b'")  # it was adopted, and counts for its branch as before
    in_all, own, branches = store.read(_all_costs)
    listed = store.read(lambda tx: branch_spendings(tx, registry.every(tx)))  # as a screen asks for some
    assert {uuid: _cost(*sums) for uuid, sums in listed.items()} == branches
    dearest = store.read(lambda tx: dearest_branches(tx, 3))
    assert dearest == Dearest(78, 8, {"a": (40, 7), "b": (35, 0), None: (1, 1)})
    assert store.read(_dearest_costs) == (
        in_all,
        {uuid: cost for uuid, cost in own.items() if uuid in ("root", "a", "c")},
        {uuid: cost for uuid, cost in branches.items() if uuid in ("root", "a", "b", "c")},
    )


def test_of_many_messages_and_mails_it_is_said_about_how_many_there_are(store: Store) -> None:
    """The database's own estimate, which PostgreSQL makes when it looks at a table."""
    plant(store, a="root")
    rows = [("root", number, "user", "tea", None, 1, b"") for number in range(1, 1_001)]
    mails = [("root", number, "a", "mail", "tea", 1, None, None, 0) for number in range(1, 1_001)]

    def work(tx: Transaction) -> None:
        tx.append(rows)
        tx.append(mails, "mail")

    store.write(work)
    store.write(lambda tx: (sql(tx, "ANALYZE messages"), sql(tx, "ANALYZE mail")))
    [(counted, about, mailed, about_mailed, *_)] = store.read(lambda tx: tx.run("figures", most=100))
    assert (counted, mailed) == (100, 100)
    assert (about, about_mailed) == (1_000, 1_000)
    assert store.read(count)[:3] == (1_000, 1_000, 1_000)  # few enough to be counted
    assert [_about(number) for number in (100_000, 100_001, 88_234_567)] == [
        "100000",
        "about 100,000",
        "about 88,200,000",
    ]
