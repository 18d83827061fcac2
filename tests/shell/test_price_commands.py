"""Prices at a terminal: ikigai prices."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from ikigai_actors.providers.prices import KNOWN_FILE, OURS, PRICES_FILE, KnownPrices
from ikigai_actors.shell.cli.main import cli


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("IKIGAI_HOME", str(tmp_path))
    KnownPrices.newest.cache_clear()
    return tmp_path


def ikigai(*arguments: str) -> str:
    """What the command says, or the error that it ends with."""
    result = CliRunner().invoke(cli, ["prices", *arguments])
    return str(result.exception) if isinstance(result.exception, Exception) else result.output


def test_a_person_is_told_what_a_model_costs_and_where_that_is_written(home: Path) -> None:
    ours = KnownPrices.read(OURS)
    assert f"{len(ours.prices)} names of models, of {ours.as_of}, from genai-prices" in ikigai()
    (home / PRICES_FILE).write_text(
        "[tea]\ninput = 0.5\noutput = 2\ntiers = [{above = 9, input = 1, output = 2}]", "utf-8"
    )
    assert ikigai("tea-2").splitlines() == [
        "tea-2: input $0.5, output $2, cache write $0.5, cache read $0.5 for a million tokens",
        "tea-2, above 9 tokens of input: input $1, output $2, cache write $1, cache read $1 for a million tokens",
    ]
    assert "service:tea: input $0.5" in ikigai("service:tea")
    assert "adapter:tea: input $0.5" in ikigai("adapter:tea")  # and not that of a known model, whose name is ada
    assert f"No price is known for coffee: its tokens count as tokens, and no dollars. Write it into {home}" in ikigai(
        "coffee"
    )


@pytest.mark.thorough("the whole list of prices")
def test_an_update_is_written_where_prices_are_read_or_to_a_file_of_ones_own(home: Path, tmp_path: Path) -> None:
    pytest.importorskip("genai_prices")
    output = ikigai("--update", "--to", str(tmp_path / "of-ours.toml"))
    assert f"names of models are in {tmp_path / 'of-ours.toml'}; without deepseek:" in output
    assert not (home / KNOWN_FILE).exists()
    ikigai("--update")
    assert (home / KNOWN_FILE).read_bytes() == (tmp_path / "of-ours.toml").read_bytes()
    assert "claude-sonnet-4-5: input $" in ikigai("claude-sonnet-4-5")
    assert "--to is for --update." in ikigai("--to", "x")
    assert "cannot be written to" in ikigai("--update", "--to", str(tmp_path))
