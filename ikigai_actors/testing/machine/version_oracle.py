"""Programs of several versions and builds on one database, checked by the commits.

The invariants:

    program     every registered or living host knows the schema that the tables require; a host is refused only if it
                does not, or if a living host does not know the schema that the new host would require
    build       a call that somebody has approved begins at the build that asked
"""

from collections.abc import Sequence

from ikigai_actors.errors import ProgramOutdated, SchemaInUse
from ikigai_actors.records.messages.messages import Kind, Message
from ikigai_actors.store.hosts.rows import older_hosts
from ikigai_actors.store.migrations import Migration, least_for, least_program, newest, schema_version
from ikigai_actors.testing.simulation.changes import RanStatement, StoredChange, Written
from ikigai_actors.testing.simulation.hosts import SimulatedHost
from ikigai_actors.testing.simulation.process import Broken
from ikigai_actors.testing.simulation.world import Simulation

STEPS = (
    Migration(newest() + 1, "CREATE TABLE teas (name TEXT PRIMARY KEY)", newest()),
    Migration(newest() + 2, "DROP TABLE teas", newest() + 1),
)
"""The schema changes of later programs: one that adds a table, and one after which programs must know the first."""


class VersionOracle:
    """Checks the hosts of a run by version and build, and the builds that begin approved calls."""

    def __init__(self, world: Simulation) -> None:
        self._world = world
        self._approved: dict[tuple[str, str], str] = {}
        """The build that asked about each approved call of a latest reply, by agent and call."""

    def committed(self, changes: Sequence[StoredChange]) -> None:
        """Check the hosts that a commit registers, and the approved calls that it begins."""
        if any(isinstance(each, RanStatement) and each.query in _OF_HOSTS for each in changes):
            older = self._world.process.looked_at.read(lambda tx: older_hosts(tx, least_program(tx)))
            if older:
                self._world.process.broken(f"program: {older[0]} lives, and does not know the tables")
        for change in changes:
            if isinstance(change, Written) and change.table == "messages":
                self._wrote(Message.from_row(change.row))

    def _wrote(self, message: Message) -> None:
        call = message.agent_uuid, str(message.data.get("tool_use_id"))
        match message.kind:
            case Kind.ASSISTANT:
                for each in [approved for approved in self._approved if approved[0] == message.agent_uuid]:
                    del self._approved[each]
            case Kind.APPROVAL if message.data.get("approved"):
                self._approved[call] = str(message.data.get("build"))
            case Kind.APPROVAL:
                self._approved.pop(call, None)
            case Kind.TOOL_CALL if self._approved.get(call, message.data.get("build")) != message.data.get("build"):
                self._world.process.broken(
                    f"build: {message.data} begins, and build {self._approved[call]} has asked about it"
                )

    def check_refusal(self, host: SimulatedHost, error: ProgramOutdated | SchemaInUse) -> None:
        """Check that a refused host knows too little of the schema, or requires a schema that others do not know."""
        store = self._world.process.looked_at
        version, least = schema_version(store), store.read(least_program)
        if isinstance(error, ProgramOutdated):
            if least <= newest(host.migrations):
                raise Broken(f"program: host {host.name} knows {least}, and is refused: {error}")
            return
        older = store.read(lambda tx: older_hosts(tx, least_for(version, host.migrations)))
        if all(other.name == host.name for other in older):  # it takes the place of its namesake
            raise Broken(f"program: every host knows what host {host.name} needs, and it is refused: {error}")


_OF_HOSTS = frozenset({"set_schema_version", "describe_host"})
"""SQL statements that change the known hosts or the version of the schema."""
