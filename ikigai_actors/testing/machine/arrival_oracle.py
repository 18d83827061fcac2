"""Deliveries from outside, by the commits: the law ``arrival``.

The commit that takes a delivery also writes what it becomes, a mail, a prompt or a request for a child, and no other
commit does; a delivery that comes again does nothing. What a sender was answered is there.
"""

from collections.abc import Sequence

from ikigai_actors.testing.simulation.changes import RanStatement, StoredChange, Written
from ikigai_actors.testing.simulation.process import Broken

_MARK = "delivery: "


def arriving_text(number: int) -> str:
    """The text that a delivery brings."""
    return f"{_MARK}{number}"


class ArrivalOracle:
    """Follows the deliveries of a run from outside. Each has a text of its own, and the number of that as its id."""

    def __init__(self) -> None:
        self._status: dict[str, str] = {}

    def committed(self, changes: Sequence[StoredChange]) -> None:
        """Check one commit."""
        taken: set[str] = set()
        for change in changes:
            if not isinstance(change, RanStatement) or change.query not in ("add_arrival", "settle_arrival"):
                continue
            name, status = change.parameters["id"], change.parameters["status"]
            if change.query == "add_arrival" and name in self._status:
                raise Broken(f"arrival: delivery {name} has arrived before, and is taken again")
            self._status[name] = status
            if status == "taken":
                taken.add(name)
        if (acts := _acts_of(changes)) != sorted(taken):
            raise Broken(f"arrival: a commit takes the deliveries {sorted(taken)}, and does what {acts} want")

    def answered(self, number: int, status: str) -> None:
        """Check what a sender was answered: it is committed."""
        known = self._status.get(str(number))
        if known is None or (known != status and known != "taken"):
            raise Broken(f"arrival: the sender of {number} was answered {status!r}; committed is {known}")


def _acts_of(changes: Sequence[StoredChange]) -> list[str]:
    """The deliveries whose acts a commit brings, by the numbers in their texts."""
    texts: list[str] = []
    for change in changes:
        if isinstance(change, Written) and change.table == "mail":
            texts.append(change.row[4])
        elif isinstance(change, RanStatement) and change.query == "add_remote_command":
            texts += [text.partition('"')[0] for text in change.parameters["body"].split('"') if _MARK in text]
    return sorted(text.removeprefix(_MARK) for text in texts if text.startswith(_MARK))
