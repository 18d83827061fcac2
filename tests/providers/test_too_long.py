"""Refusals of requests that are too long, as services word them."""

import pytest

from ikigai_actors.providers.too_long import TooLong, too_long


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The API said: prompt is too long: 205000 tokens > 200000 maximum (400)", TooLong(205_000, 200_000)),
        ("input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000", TooLong(190_000, 200_000)),
        (
            "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
            TooLong(9_000, 8_192),
        ),
        ("The input token count (70) exceeds the maximum number of tokens allowed (60).", TooLong(70, 60)),
        ("code context_length_exceeded", TooLong(0, 0)),
        ("the request exceeds the available context size", TooLong(0, 0)),
        ("Input is too long for requested model.", TooLong(0, 0)),
        ("The request is too large. The API said: Request exceeds the maximum size (413, req_1)", TooLong(0, 0)),
        ("the service said request_too_large", TooLong(0, 0)),
        ("The reply was cut: model_context_window_exceeded.", TooLong(0, 0)),
        ("max_tokens: 100000 > 64000, which is the maximum allowed number of output tokens", None),
        ("This request would exceed your rate limit of 30000 input tokens per minute", None),
    ],
)
def test_a_refusal_because_of_the_length_is_told_from_all_others(text: str, expected: TooLong | None) -> None:
    assert too_long(text) == expected
