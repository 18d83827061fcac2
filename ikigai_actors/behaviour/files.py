"""Turns read from a file of `System.export`, without a database: the file is imported into one in memory."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ikigai_actors.behaviour.turns import RecordedTurns, recorded
from ikigai_actors.reach.histories import settings_at_heads
from ikigai_actors.records.messages.settings import is_trial
from ikigai_actors.system.system import ActorSystem


@contextmanager
def turns_of_file(file: str | os.PathLike[str], **parts: Any) -> Iterator[RecordedTurns]:
    """Yield the answered turns of all agents in an export file, except trials, for the length of a block.

    An export file of an agent also has the agent's forks, and so the trials of its replays. The turns of trials are no
    record, and are left out.

    Args:
        parts: arguments of `ActorSystem.open`, as providers and tools. Approvals are denied unless these say otherwise.

    Raises:
        ImportRefused, BadInput: the file cannot be read, or a part cannot be used.
    """
    with ActorSystem.open(":memory:", **{"approvals": "deny", **parts}) as copy:
        copy.import_(file)  # who has a prompt there comes stopped, and answers it nowhere
        root = copy.root.uuid
        agents = [record.uuid for record in copy.agents() if record.uuid != root]
        taken = [uuid for uuid, settings in settings_at_heads(copy, agents).items() if not is_trial(settings)]
        yield recorded(*map(copy.handle, taken)) if taken else RecordedTurns([], {})
