"""The limits of requests to a service, as configured for a provider."""

from dataclasses import dataclass

from ikigai_actors.arguments import check_count

_MOST = 100_000
"""The highest value that a limit can have."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one provider, for all agents of a database together. Wrong numbers are a `BadInput`.

    Args:
        in_flight: requests that are under way at once, 1 or more; None for no limit.
        requests_per_minute: requests that are begun within any 60 seconds, 1 or more; None for no limit.
    """

    in_flight: int | None = None
    requests_per_minute: int | None = None

    def __post_init__(self) -> None:
        for name in ("in_flight", "requests_per_minute"):
            if (value := getattr(self, name)) is not None:
                check_count(value, name, least=1, most=_MOST)

    def __bool__(self) -> bool:
        return self.in_flight is not None or self.requests_per_minute is not None
