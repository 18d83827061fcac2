"""The members of groups, and the monitors, checked by the commits: the invariants ``group`` and ``monitor``.

A mail to a group reaches all members at the commit of the mail, except the sender. Each monitor of an agent gets a mail
about the agent's death.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ikigai_actors.records.mail.mail import EXIT
from ikigai_actors.testing.simulation.changes import RanStatement, StoredChange, Written

if TYPE_CHECKING:
    from ikigai_actors.testing.simulation.world import Simulation

TO_GROUP = "to group "
"""The beginning of a mail's text to a group in a run; the name of the group follows."""


class GroupOracle:
    """Checks the groups and monitors of a run."""

    def __init__(self, world: "Simulation") -> None:
        self._world = world
        self.members: dict[str, set[str]] = {}
        self.watchers: dict[str, set[str]] = {}

    def committed(self, changes: Sequence[StoredChange]) -> None:
        """Follow the members and monitors that a commit changes, and check its mail to groups and monitors."""
        dead: set[str] = set()
        for change in changes:
            if isinstance(change, RanStatement):
                parameters = change.parameters
                match change.query:
                    case "join_group":
                        self.members.setdefault(parameters["name"], set()).add(parameters["agent"])
                    case "leave_group":
                        self.members.setdefault(parameters["name"], set()).discard(parameters["agent"])
                    case "add_monitor":
                        self.watchers.setdefault(parameters["agent"], set()).add(parameters["watcher"])
                    case "end_monitor":
                        self.watchers.setdefault(parameters["agent"], set()).discard(parameters["watcher"])
                    case "bury":
                        dead.update(parameters["uuids"])
        mails = [each.row for each in changes if isinstance(each, Written) and each.table == "mail"]
        heard = {(row[2], row[0]) for row in mails if row[3] == EXIT}
        for uuid in dead:
            if left := [
                watcher
                for watcher in self.watchers.pop(uuid, ())
                if watcher not in dead and (uuid, watcher) not in heard
            ]:
                self._world.process.broken(f"monitor: {left} are not told of the death of {uuid}")
        for watchers in self.watchers.values():
            watchers -= dead
        for members in self.members.values():
            members -= dead
        sent: dict[tuple[str, str | None], set[str]] = {}
        for recipient, _, sender, _, body, *_ in mails:
            if body.startswith(TO_GROUP):
                sent.setdefault((body, sender), set()).add(recipient)
        for (body, sender), recipients in sent.items():
            expected = self.members.get(body.split()[2], set()) - {sender}
            if recipients != expected:
                self._world.process.broken(f"group: {body!r} reaches {sorted(recipients)}, and not {sorted(expected)}")
