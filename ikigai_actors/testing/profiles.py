"""Profiles of Hypothesis, which say how long a test run searches for failures.

    fast        the same fifty short examples in each run, for every commit
    thorough    ten thousand long examples, different in each run, for nightly tests

The variable ``IKIGAI_PROFILE``, or the option ``--hypothesis-profile`` of pytest, chooses one for all tests of a run;
elsewhere call `register_profiles`, and then ``settings.load_profile("thorough")``. A profile of the same name that is
there already is left as it is.
"""

VARIABLE = "IKIGAI_PROFILE"
"""The name of the environment variable that chooses a profile."""

PROFILES = ("fast", "thorough")


def register_profiles() -> None:
    """Register the profiles ``fast`` and ``thorough`` with Hypothesis."""
    from hypothesis import HealthCheck, settings
    from hypothesis.errors import InvalidArgument

    common = settings(deadline=None, suppress_health_check=list(HealthCheck), print_blob=True)
    made = {
        "fast": settings(common, max_examples=50, stateful_step_count=20, derandomize=True, database=None),
        "thorough": settings(common, max_examples=10_000, stateful_step_count=50, derandomize=False),
    }
    for name, profile in made.items():
        try:
            settings.get_profile(name)
        except InvalidArgument:
            settings.register_profile(name, profile)


def load_chosen(chosen: str) -> None:
    """Use a profile from now on. Raises `BadInput` for a name that Hypothesis does not know."""
    from hypothesis import settings
    from hypothesis.errors import InvalidArgument

    from ikigai_actors.errors import BadInput

    register_profiles()
    try:
        settings.load_profile(chosen)
    except InvalidArgument:
        raise BadInput(
            f"Expected {VARIABLE} to name a profile of Hypothesis, as in {' or '.join(PROFILES)}; got {chosen!r}."
        ) from None
