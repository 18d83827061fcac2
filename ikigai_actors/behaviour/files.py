"""The turns of a file that `System.export` has made, without a database: it is read into one in memory."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ikigai_actors.behaviour.turns import RecordedTurns, recorded
from ikigai_actors.system.system import ActorSystem


@contextmanager
def turns_of_file(file: str | os.PathLike[str], **parts: Any) -> Iterator[RecordedTurns]:
    """The answered turns of all agents in a file, for as long as they are needed.

    Args:
        file: the file.
        parts: what `ActorSystem.open` gets, as providers and tools. Approvals are denied unless they say otherwise.

    Raises:
        ImportRefused, BadInput: the file cannot be read, or a part cannot be used.
    """
    with ActorSystem.open(":memory:", **{"approvals": "deny", **parts}) as copy:
        copy.import_(file)
        root = copy.root.uuid
        yield recorded(*(copy.handle(record.uuid) for record in copy.agents() if record.uuid != root))
