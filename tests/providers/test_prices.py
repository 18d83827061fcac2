"""What tokens cost."""

from pathlib import Path

import pytest

from ikigai_actors import ActorSystem, Reply, ScriptedProvider, Usage
from ikigai_actors.errors import BadInput
from ikigai_actors.providers.prices import PRICES_FILE, Prices, known_prices, read_prices

GOOD = """[tea]
input = 2
output = 10.0

["tea-strong-2.5"]
input = 20.0
output = 100.0
cache_write = 25.0
cache_read = 2.0
"""


def priced(directory: Path, text: str = GOOD) -> Prices:
    (directory / PRICES_FILE).write_text(text, encoding="utf-8")
    return read_prices(directory / PRICES_FILE)


def test_the_longest_name_that_fits_sets_the_price(tmp_path: Path) -> None:
    prices, tokens = priced(tmp_path), Usage(1_000_000, 100_000, 1_000_000, 1_000_000)
    assert prices.cost({"tea-1": tokens}) == 2 + 1 + 2 + 2  # what a cache takes costs like input, unless it is said
    assert prices.cost({"tea-strong-2.5-2026": tokens}) == 20 + 10 + 25 + 2
    assert prices.cost({"tea-1": tokens, "tea-strong-2.5": tokens}) == 7 + 57


def test_a_price_is_a_whole_number_of_micro_dollars_rounded_up_once(tmp_path: Path) -> None:
    prices = priced(tmp_path, "[tea]\ninput = 0.1\noutput = 0.0000001\ncache_read = 0.3")
    assert prices.of("tea-1") == (100_000, 1, 100_000, 300_000)
    price = prices.of("tea-1")
    assert price is not None
    assert price.of(Usage(1, 1, 1, 1)) == 1  # 0.500001 of a micro-dollar
    assert price.of(Usage(10, 0)) == 1
    assert price.of(Usage(11, 0)) == 2
    assert prices.of("coffee") is None


def test_an_endless_price_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="to be dollars"):
        priced(tmp_path, "[tea]\ninput = inf\noutput = 1")


def test_of_what_has_no_price_nothing_is_told(tmp_path: Path) -> None:
    prices = priced(tmp_path)
    assert prices.cost({"tea": Usage(1), "coffee": Usage(1)}) is None
    assert prices.cost({}) is None
    assert read_prices(tmp_path / "none.toml").cost({"tea": Usage(1)}) is None


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[tea]\ninput = 1", r"\[tea\].*input and output"),
        ("[tea]\ninput = 1\noutput = -2", r"got \{'input': 1, 'output': -2\}"),
        ("[tea]\ninput = 1\noutput = 2\nsugar = 3", "at most cache_write and cache_read"),
        ("tea = 3", r"\[tea\].*got 3"),
        ("[tea", "to be TOML"),
    ],
)
def test_a_file_that_is_none_is_refused_with_what_was_expected(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(BadInput, match=told):
        priced(tmp_path, text)
    prices, [trouble] = known_prices(tmp_path / "history")
    assert not prices
    assert str(tmp_path / PRICES_FILE) in trouble


def test_a_file_that_cannot_be_read_is_refused_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / PRICES_FILE).write_bytes(b"[t\xffa]")
    with pytest.raises(BadInput, match=r"cannot be read from .*prices\.toml: .*0xff"):
        read_prices(tmp_path / PRICES_FILE)
    with pytest.raises(BadInput, match=r"cannot be read from .*directory"):
        read_prices(tmp_path)


def test_tokens_are_counted_by_model(database: str) -> None:
    def reply(model: str, sent: int) -> Reply:
        return Reply("ok", usage=Usage(sent, 1), model=model)

    script = ScriptedProvider([reply("one", 5), reply("two", 7), reply("one", 11), Reply("no usage", model="three")])
    with ActorSystem.open(database, script) as system:
        child = system.root.fork()
        for agent in (system.root, system.root, child, child):
            agent.prompt("go").get(timeout=20)
        assert system.root.statistics().models == {"one": Usage(5, 1), "two": Usage(7, 1)}
        assert child.statistics().models == {"one": Usage(11, 1)}
        assert system.statistics().models == {"one": Usage(16, 2), "two": Usage(7, 1)}
