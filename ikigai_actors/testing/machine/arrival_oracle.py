"""Deliveries from outside, checked by the commits: the invariant ``arrival``.

The commit that takes a delivery also writes the mail, the prompt or the request for a child that it becomes, and no
other commit does. A repeated delivery changes nothing. If a sender got an answer, its delivery is committed.
"""

from collections.abc import Sequence

from ikigai_actors.testing.simulation.changes import RanStatement, StoredChange, Written
from ikigai_actors.testing.simulation.process import Broken

_MARK = "delivery: "


def arriving_text(number: int) -> str:
    """Return the text of a delivery in a run, which contains its number."""
    return f"{_MARK}{number}"


class ArrivalOracle:
    """Checks the deliveries of a run.

    The text of each is unique and has a number, which is also the id of the delivery.
    """

    def __init__(self) -> None:
        self._status: dict[str, str] = {}

    def committed(self, changes: Sequence[StoredChange]) -> None:
        """Check the deliveries that a commit takes or settles, and that the same commit writes their effects."""
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
        """Check that the answer to the sender of a delivery agrees with the committed status of the delivery."""
        known = self._status.get(str(number))
        if known is None or (known != status and known != "taken"):
            raise Broken(f"arrival: the sender of {number} was answered {status!r}; committed is {known}")


def _acts_of(changes: Sequence[StoredChange]) -> list[str]:
    """Return the numbers, as text and sorted, of the deliveries whose mail, prompt or fork a commit writes."""
    texts: list[str] = []
    for change in changes:
        if isinstance(change, Written) and change.table == "mail":
            texts.append(change.row[4])
        elif isinstance(change, RanStatement) and change.query == "add_remote_command":
            texts += [text.partition('"')[0] for text in change.parameters["body"].split('"') if _MARK in text]
    return sorted(text.removeprefix(_MARK) for text in texts if text.startswith(_MARK))
