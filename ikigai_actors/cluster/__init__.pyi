# The names that this package hands on: read by type checkers, and by `lazy.handed_on` when the program runs.

from ikigai_actors.cluster.fleet import Fleet as Fleet
from ikigai_actors.cluster.fleet import FleetHost as FleetHost
from ikigai_actors.cluster.fleet import find_fleet as find_fleet
from ikigai_actors.cluster.fleet import start as start
from ikigai_actors.errors import ClusterError as ClusterError

__all__: list[str]
