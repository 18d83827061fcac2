"""What tokens cost."""

from datetime import UTC, datetime
from math import ceil
from pathlib import Path

import pytest

from ikigai_actors import ActorSystem, Reply, ScriptedProvider, Usage
from ikigai_actors.errors import BadInput
from ikigai_actors.providers.price_list import price_list
from ikigai_actors.providers.prices import (
    KNOWN_FILE,
    MICRO,
    PRICES_FILE,
    KnownPrices,
    Price,
    Prices,
    known_prices,
    read_prices,
    updated_prices,
)

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
    assert prices.of("tea-1") == Price(100_000, 1, 100_000, 300_000)
    price = prices.of("tea-1")
    assert price is not None
    assert price.of(Usage(1, 1, 1, 1)) == 1  # 0.500001 of a micro-dollar
    assert price.of(Usage(10, 0)) == 1
    assert price.of(Usage(11, 0)) == 2
    assert prices.of("coffee") is None


def test_what_is_written_of_a_provider_counts_before_the_name_of_the_model_alone(tmp_path: Path) -> None:
    known = priced(tmp_path, "[tea]\ninput = 2\noutput = 2\n[ada]\ninput = 3\noutput = 3")
    prices = priced(tmp_path, '["local:tea"]\ninput = 1\noutput = 1\n[home]\ninput = 0\noutput = 0').over(known)
    asked = ["local:tea", "home:tea", "service:tea", "adapter:tea", "adapter:coffee", "tea", "home:"]
    prices_of = [prices.of_model(model) for model in asked]
    assert [None if price is None else price.input / MICRO for price in prices_of] == [1, 0, 2, 2, None, 2, 0]
    assert prices.of_model("service:alias", made_by="tea-2026") == known.of("tea")


def test_an_endless_price_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="to be dollars"):
        priced(tmp_path, "[tea]\ninput = inf\noutput = 1")


def test_of_what_has_no_price_nothing_is_told(tmp_path: Path) -> None:
    prices = priced(tmp_path)
    assert prices.cost({"tea": Usage(1), "coffee": Usage(1)}) is None
    assert prices.cost({}) is None
    assert read_prices(tmp_path / "none.toml").cost({"tea": Usage(1)}) is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[tea]\ninput = 1", r"\[tea\].*input and output"),
        ("[tea]\ninput = 1\noutput = -2", r"got \{'input': 1, 'output': -2\}"),
        ("[tea]\ninput = 1\noutput = 2\nsugar = 3", "at most cache_write and cache_read"),
        ("tea = 3", r"\[tea\].*got 3"),
        ("[tea", "to be TOML"),
    ],
)
def test_a_file_that_is_none_is_refused_with_what_was_expected(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        priced(tmp_path, text)
    prices, [trouble] = known_prices(tmp_path, tmp_path / "history")
    assert prices.of("tea") is None
    assert str(tmp_path / PRICES_FILE) in trouble


def test_a_file_that_cannot_be_read_is_refused_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / PRICES_FILE).write_bytes(b"[t\xffa]")
    with pytest.raises(BadInput, match=r"cannot be read from .*prices\.toml: .*0xff"):
        read_prices(tmp_path / PRICES_FILE)
    with pytest.raises(BadInput, match=r"cannot be read from .*directory"):
        read_prices(tmp_path)


TIERED = """[tea]
input = 1.0
output = 2.0
tiers = [{above = 10, input = 3.0, output = 4.0, cache_read = 0.5}]

[cup]
input = 1
output = 1
exact = true
"""


def test_a_request_with_more_input_costs_what_its_tier_says(tmp_path: Path) -> None:
    price = priced(tmp_path, TIERED).of("tea")
    assert price is not None
    assert price.of(Usage(4, 1, 3, 3)) == 4 + 2 + 3 + 3
    assert price.of(Usage(4, 1, 3, 4)) == 3 * 4 + 4 + 3 * 3 + 2
    assert price.dearest(10) == Price(1 * MICRO, 2 * MICRO, 1 * MICRO, 1 * MICRO)
    assert price.dearest(11) == Price(3 * MICRO, 4 * MICRO, 3 * MICRO, 1 * MICRO)


def test_an_exact_name_is_that_of_no_other_model(tmp_path: Path) -> None:
    prices = priced(tmp_path, TIERED)
    assert prices.of("cup") == Price(MICRO, MICRO, MICRO, MICRO)
    assert prices.of("cup-2") is None


def test_what_a_person_has_written_counts_before_what_is_built_in(tmp_path: Path) -> None:
    (tmp_path / PRICES_FILE).write_text("[claude]\ninput = 1\noutput = 1", encoding="utf-8")
    prices, trouble = known_prices(tmp_path, None, {"gpt-5": Price(7, 7, 7, 7)})
    assert prices.of("claude-sonnet-4-5") == Price(MICRO, MICRO, MICRO, MICRO)
    assert prices.of("gpt-5") == Price(7, 7, 7, 7)
    assert prices.of("gemini-2.5-pro") is not None
    assert prices.of("a model of nobody's") is None
    assert trouble == []


@pytest.mark.parametrize(
    ("as_of", "counts"), [("2999-01-01", True), ("2020-01-01", False), ('"soon"', False), ("[", False)]
)
def test_the_newer_list_counts_and_one_that_cannot_be_read_does_not(tmp_path: Path, as_of: str, counts: bool) -> None:
    text = f'as_of = {as_of}\nsource = "a test"\n[models]\n"tea" = {{input = 1, output = 1}}\n'
    (tmp_path / KNOWN_FILE).write_text(text, encoding="utf-8")
    assert (KnownPrices.newest(tmp_path).source == "a test") is counts
    assert (updated_prices(tmp_path).of("tea") is not None) is counts


@pytest.mark.slow("takes a tenth of a second")
def test_the_list_that_is_made_costs_what_the_package_says(tmp_path: Path) -> None:
    package = pytest.importorskip("genai_prices")
    now = datetime.now(UTC)
    made = price_list(now)
    (tmp_path / KNOWN_FILE).write_text(made.text, encoding="utf-8")
    prices = KnownPrices.read(tmp_path / KNOWN_FILE).prices
    assert made.names == len(prices) > 500
    for maker, model in [
        ("anthropic", "claude-sonnet-4-5-20250929"),
        ("anthropic", "claude-opus-5-20260203"),
        ("openai", "gpt-5"),
        ("google", "gemini-2.5-pro"),
    ]:
        for read in (1_000, 150_000, 400_000):
            usage = Usage(7_000, 3_000, 0, read)
            spent = package.Usage(input_tokens=7_000 + read, cache_read_tokens=read, output_tokens=3_000)
            dollars = package.calc_price(spent, model, provider_id=maker, genai_request_timestamp=now).total_price
            price = prices.of(model)
            assert price is not None
            assert price.of(usage) == ceil(dollars * MICRO)


def test_tokens_are_counted_by_model(database: str) -> None:
    def reply(model: str, sent: int) -> Reply:
        return Reply("ok", usage=Usage(sent, 1), model=model)

    script = ScriptedProvider([reply("one", 5), reply("two", 7), reply("one", 11), Reply("no usage", model="three")])
    with ActorSystem.open(database, script) as system:
        child = system.root.fork()
        for agent in (system.root, system.root, child, child):
            agent.prompt("go").get(timeout=60)
        assert system.root.statistics().models == {"one": Usage(5, 1), "two": Usage(7, 1)}
        assert child.statistics().models == {"one": Usage(11, 1)}
        assert system.statistics().models == {"one": Usage(16, 2), "two": Usage(7, 1)}
