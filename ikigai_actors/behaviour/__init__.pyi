# The names that this package hands on: read by type checkers, and by `lazy.handed_on` when the program runs.

from ikigai_actors.behaviour.differences import Difference as Difference
from ikigai_actors.behaviour.experiment import Experiment as Experiment
from ikigai_actors.behaviour.experiment import TrialRun as TrialRun
from ikigai_actors.behaviour.plans.bisect import Posterior as Posterior
from ikigai_actors.behaviour.plans.plan import GO as GO
from ikigai_actors.behaviour.plans.plan import Verdict as Verdict
from ikigai_actors.behaviour.plans.search import MCTS as MCTS
from ikigai_actors.behaviour.plans.search import Beam as Beam
from ikigai_actors.behaviour.plans.search import BestOf as BestOf
from ikigai_actors.behaviour.replays import Replay as Replay
from ikigai_actors.behaviour.replays import ReplayedTurn as ReplayedTurn
from ikigai_actors.behaviour.replays import replay as replay
from ikigai_actors.behaviour.searches import Found as Found
from ikigai_actors.behaviour.searches import FoundTrial as FoundTrial
from ikigai_actors.behaviour.searches import SearchNode as SearchNode
from ikigai_actors.behaviour.searches import search as search
from ikigai_actors.behaviour.turns import RecordedTurns as RecordedTurns
from ikigai_actors.behaviour.turns import Turn as Turn
from ikigai_actors.behaviour.turns import TurnCall as TurnCall
from ikigai_actors.behaviour.turns import recorded as recorded
from ikigai_actors.errors import ExperimentDiffers as ExperimentDiffers

__all__: list[str]
