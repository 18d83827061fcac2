"""Recorded turns as tests: what the marker ``recorded`` of the pytest plugin needs.

    @pytest.mark.recorded("support.jsonl")               # a file of ikigai export, beside the test
    def test_support(turn):
        assert turn.replay(change={"system": PROMPT}).calls == turn.calls

The fixture ``ikigai_parts`` gives what `ActorSystem.open` gets: the provider, and the tools that the model is shown.
"""

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from ikigai_actors.behaviour.files import turns_of_file
from ikigai_actors.behaviour.replays import replay
from ikigai_actors.behaviour.turns import ANSWERED, DIVERGED, Turn
from ikigai_actors.errors import IkigaiError, ProviderError


class ReplayableTurn(Turn):
    """A turn that replays itself."""

    __slots__ = ()

    def replay(self, **how: Any) -> Turn:
        """Replay the turn; see `ikigai_actors.behaviour.replay`.

        Args:
            how: ``change``, ``edit``, ``run``, ``missing``.

        Returns:
            The turn as it was taken now; ``how`` says whether it was answered, or diverged.

        Raises:
            ProviderError: the model gave no answer.
        """
        again = replay([self], fresh=True, **how).turns[0].again
        if again.how not in (ANSWERED, DIVERGED):
            raise ProviderError(f"The replay {again.how}: {again.error}")
        return again


class TurnFiles:
    """The files that the tests of one run read; the one that was read last stays open."""

    def __init__(self) -> None:
        self._closing = ExitStack()
        self._latest: tuple[Path, Mapping[str, Any]] | None = None
        self._turns: list[Turn] = []

    def turn(self, file: Path, place: int, parts: Mapping[str, Any]) -> ReplayableTurn:
        """A turn of a file, by its place, in a system that is opened with these parts."""
        if self._latest is None or self._latest[0] != file or self._latest[1] is not parts:
            self.close()
            self._turns = self._closing.enter_context(turns_of_file(file, **parts))
            self._latest = file, parts
        turn = self._turns[place]
        return ReplayableTurn(**{field.name: getattr(turn, field.name) for field in fields(turn)})

    def close(self) -> None:
        """Close what is open."""
        self._closing.close()
        self._latest = None


def cases_in(file: Path) -> list[str]:
    """The names of the cases of a file: agent and position of each turn.

    Raises:
        UsageError: the file cannot be read, or has no turn.
    """
    try:
        with turns_of_file(file, provider="offline") as turns:
            names = [f"{turn.agent.record.name or turn.agent.record.short}-{turn.opens}" for turn in turns]
    except IkigaiError as error:
        raise pytest.UsageError(f"The recorded turns of {file} cannot be read: {error}") from error
    if not names:
        raise pytest.UsageError(f"File {file} has no turn that was answered.")
    return names
