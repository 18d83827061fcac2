# The names that this package hands on: read by type checkers, and by `lazy.handed_on` when the program runs.

from ikigai_actors.testing.machine.fleet import FleetMachine as FleetMachine
from ikigai_actors.testing.machine.machine import AgentTreeMachine as AgentTreeMachine
from ikigai_actors.testing.profiles import register_profiles as register_profiles
from ikigai_actors.testing.runner import simulate as simulate
from ikigai_actors.testing.simulation.clock import ManualClock as ManualClock
from ikigai_actors.testing.simulation.faults import CrashPoint as CrashPoint
from ikigai_actors.testing.simulation.faults import Faults as Faults
from ikigai_actors.testing.simulation.process import Broken as Broken
from ikigai_actors.testing.simulation.process import ProcessCrashed as ProcessCrashed
from ikigai_actors.testing.simulation.process import TakenOver as TakenOver
from ikigai_actors.testing.simulation.schedule import Schedule as Schedule
from ikigai_actors.testing.simulation.scheduler import Endless as Endless
from ikigai_actors.testing.simulation.scheduler import Stuck as Stuck
from ikigai_actors.testing.simulation.world import Simulation as Simulation
from ikigai_actors.testing.simulation.world import simulated as simulated
from ikigai_actors.testing.strategies import agent_trees as agent_trees
from ikigai_actors.testing.strategies import faults as faults
from ikigai_actors.testing.strategies import prompts as prompts
from ikigai_actors.testing.strategies import replies as replies
from ikigai_actors.testing.strategies import schedules as schedules
from ikigai_actors.testing.strategies import signals as signals

__all__: list[str]
