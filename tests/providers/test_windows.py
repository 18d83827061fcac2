"""What is known of the windows of models."""

import pytest

from ikigai_actors.providers.too_long import TooLong
from ikigai_actors.providers.windows import anthropic_window, known_window, learned_window


@pytest.mark.parametrize(
    ("model", "window"),
    [
        ("claude-3-5-haiku-20241022", 200_000),
        ("claude-opus-4-20250514", 200_000),
        ("claude-opus-4-5-20251101", 200_000),
        ("claude-sonnet-4-6", 1_000_000),
        ("claude-sonnet-5-5", 1_000_000),
        ("some-model", 0),
    ],
)
def test_the_longest_beginning_of_a_models_name_tells_its_window(model: str, window: int) -> None:
    assert anthropic_window(model) == window


def test_a_refusal_counts_before_the_table_and_a_file_that_allows_less_before_both() -> None:
    assert known_window(0, 0, 200_000) == 200_000
    assert known_window(0, 900_000, 200_000) == 900_000
    assert known_window(100_000, 900_000, 200_000) == 100_000
    assert known_window(1_000_000, 900_000, 200_000) == 900_000
    assert known_window(300_000, 0, 200_000) == 300_000


def test_where_a_refusal_tells_no_window_it_is_somewhat_less_than_what_was_refused() -> None:
    assert learned_window(TooLong(205_000, 200_000), 190_000) == 200_000
    assert learned_window(TooLong(1_000, 0), 800) == 900
    assert learned_window(TooLong(0, 0), 800) == 720
