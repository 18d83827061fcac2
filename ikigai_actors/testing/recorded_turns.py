"""Recorded turns as tests: the implementation of the marker ``recorded`` of the pytest plugin.

    @pytest.mark.recorded("support.jsonl")               # a file of ikigai export, beside the test
    def test_support(turn):
        assert turn.replay(change={"system": PROMPT}).calls == turn.calls

The fixture ``ikigai_parts`` gives what `ActorSystem.open` gets: the provider, and the tools that the model is shown.
"""

import os
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
from ikigai_actors.providers.offline import OfflineProvider


class ReplayableTurn(Turn):
    """A recorded turn that can replay itself."""

    __slots__ = ()

    def replay(self, **how: Any) -> Turn:
        """Replay the turn; see `ikigai_actors.behaviour.replay`.

        Args:
            how: the arguments of `replay`: ``change``, ``edit``, ``run``, ``missing``.

        Returns:
            The new turn; its ``how`` says whether it was answered, or diverged.

        Raises:
            ProviderError: the model gave no answer.
        """
        again = replay([self], fresh=True, **how).turns[0].again
        if again.how not in (ANSWERED, DIVERGED):
            raise ProviderError(f"The replay {again.how}: {again.error}")
        return again


class TurnFiles:
    """The files that the tests of one run read. The last file stays open."""

    def __init__(self) -> None:
        self._closing = ExitStack()
        self._latest: tuple[Path, Mapping[str, Any]] | None = None
        self._turns: list[Turn] = []

    def turn(self, file: Path, place: int, parts: Mapping[str, Any]) -> ReplayableTurn:
        """Return a turn of a file by its index, in a system that is opened with these arguments."""
        if not isinstance(parts, Mapping):
            pytest.fail(f"The fixture ikigai_parts gives a dict of what ActorSystem.open gets, not {parts!r}.", False)
        if self._latest is None or self._latest[0] != file or self._latest[1] is not parts:
            self.close()
            self._turns = self._closing.enter_context(turns_of_file(file, **parts))
            self._latest = file, parts
        turn = self._turns[place]
        if "provider" not in parts and _is_offline(turn):
            pytest.fail(
                "No model is there to be asked, but the offline provider: define the fixture ikigai_parts, as "
                '{"provider": "anthropic", "tools": [...]}, or set the key of the provider.',
                False,
            )
        return ReplayableTurn(**{field.name: getattr(turn, field.name) for field in fields(turn)})

    def close(self) -> None:
        """Close the open file."""
        self._closing.close()
        self._latest = None


def _is_offline(turn: Turn) -> bool:
    """Return whether only the provider ``offline``, which asks no model, would answer a turn."""
    system = turn.agent.system
    asked = system._asked_models(system._log_cache.settings_at(turn.agent.uuid, turn.opens - 1))
    return all(model.name.startswith(f"{OfflineProvider.name}:") for model in asked)


def file_of(marker: pytest.Mark) -> str | os.PathLike[str]:
    """Return the path that a marker names. Raises ``CollectError`` when the marker has no path, or other arguments."""
    match marker.args, marker.kwargs:
        case ((str() | os.PathLike() as named,), {}) if not marker.kwargs:
            return named
    raise pytest.Collector.CollectError(
        'The marker recorded names one file of ikigai export: @pytest.mark.recorded("support.jsonl").'
    )


def cases_in(file: Path) -> list[str]:
    """Return the names of the cases of a file: the agent and position of each turn.

    Raises:
        CollectError: the file cannot be read, or has no turn.
    """
    try:
        with turns_of_file(file, provider="offline") as turns:
            names = [f"{turn.agent.record.name or turn.agent.record.short}-{turn.opens}" for turn in turns]
    except IkigaiError as error:
        raise pytest.Collector.CollectError(f"The recorded turns of {file} cannot be read: {error}") from error
    if not names:
        raise pytest.Collector.CollectError(f"File {file} has no turn that was answered.")
    return names
