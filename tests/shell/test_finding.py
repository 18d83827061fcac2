"""What a few letters find: pure."""

from ikigai_actors.shell.app.finding import A_FEW, Group, Thing, by_kind, found_by

THINGS = by_kind(
    [
        Thing(Group.PROMPT, "seller, sell!"), Thing(Group.COMMAND, "/settings", "what is in force"),
        Thing(Group.COMMAND, "/sell", "no command"), Thing(Group.DOCUMENT, "plan/sell.md"),
        Thing(Group.AGENT, "bookseller"), Thing(Group.AGENT, "best-seller"), Thing(Group.AGENT, "Sell"),
        Thing(Group.AGENT, "seller"), Thing(Group.AGENT, "clerk", "asks: sell"), Thing(Group.SCREEN, "Keys"),
    ]
)  # fmt: skip


def names(text: str) -> list[str]:
    return [thing.name for thing in found_by(THINGS, text)]


def test_what_is_called_so_comes_first_then_what_begins_so_then_a_word_then_any_part_then_descriptions() -> None:
    assert names("SELL") == [
        "Sell", "/sell", "seller", "best-seller", "plan/sell.md", "bookseller", "clerk", "seller, sell!",
    ]  # fmt: skip
    assert names("se")[:3] == ["Sell", "seller", "/settings"]
    assert names("nobody") == []


def test_a_sign_restricts_the_search_to_one_kind() -> None:
    assert names("@sell") == ["Sell", "seller", "best-seller", "bookseller", "clerk"]
    assert names("> SE") == ["/settings", "/sell"]
    assert names("#") == ["plan/sell.md"]
    assert names("^sell") == ["seller, sell!"]
    assert names("/set") == ["/settings"]


def test_before_a_letter_is_typed_there_are_some_of_each_kind() -> None:
    crowd = [Thing(Group.AGENT, f"agent-{number}") for number in range(3 * A_FEW)]
    assert found_by([*crowd, Thing(Group.DOCUMENT, "plan")], "") == [*crowd[:A_FEW], Thing(Group.DOCUMENT, "plan")]
    assert found_by(crowd, "@") == crowd
