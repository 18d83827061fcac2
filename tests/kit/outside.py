"""What another process does to a database, beside the one that runs its agents, or without one."""

from ikigai_actors.system.remote.client import Client
from supervisors.signals import Signal


def signal(
    database: str, agent: str, name: Signal, *, cascade: bool = False, reason: str = "", grace: float = 30.0
) -> None:
    """Send a signal as a person."""
    with Client.open(database) as client:
        client.signal(client.find(agent).uuid, name, cascade=cascade, reason=reason, grace=grace)
