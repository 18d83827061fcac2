# The names that this package hands on: read by type checkers, and by `lazy.handed_on` when the program runs.

from ikigai_actors.behaviour.bisections import Bisected as Bisected
from ikigai_actors.behaviour.bisections import bisect as bisect
from ikigai_actors.behaviour.checks import calls as calls
from ikigai_actors.behaviour.checks import same_calls as same_calls
from ikigai_actors.behaviour.checks import same_text as same_text
from ikigai_actors.behaviour.checks import schema as schema
from ikigai_actors.behaviour.differences import Difference as Difference
from ikigai_actors.behaviour.experiment import Experiment as Experiment
from ikigai_actors.behaviour.forecasts import Forecast as Forecast
from ikigai_actors.behaviour.judges import ask as ask
from ikigai_actors.behaviour.judges import blocks as blocks
from ikigai_actors.behaviour.judges import evaluator as evaluator
from ikigai_actors.behaviour.judges import program as program
from ikigai_actors.behaviour.plans.bisect import Posterior as Posterior
from ikigai_actors.behaviour.plans.plan import GO as GO
from ikigai_actors.behaviour.plans.plan import Verdict as Verdict
from ikigai_actors.behaviour.plans.search import MCTS as MCTS
from ikigai_actors.behaviour.plans.search import Beam as Beam
from ikigai_actors.behaviour.plans.search import BestOf as BestOf
from ikigai_actors.behaviour.regressions import Failure as Failure
from ikigai_actors.behaviour.regressions import RegressionReport as RegressionReport
from ikigai_actors.behaviour.regressions import evaluate as evaluate
from ikigai_actors.behaviour.regressions import regress as regress
from ikigai_actors.behaviour.replays import Replay as Replay
from ikigai_actors.behaviour.replays import ReplayedTurn as ReplayedTurn
from ikigai_actors.behaviour.replays import replay as replay
from ikigai_actors.behaviour.runs import RunOptions as RunOptions
from ikigai_actors.behaviour.searches import Found as Found
from ikigai_actors.behaviour.searches import FoundTrial as FoundTrial
from ikigai_actors.behaviour.searches import SearchNode as SearchNode
from ikigai_actors.behaviour.searches import search as search
from ikigai_actors.behaviour.trials import TrialRun as TrialRun
from ikigai_actors.behaviour.turns import RecordedTurns as RecordedTurns
from ikigai_actors.behaviour.turns import Turn as Turn
from ikigai_actors.behaviour.turns import TurnCall as TurnCall
from ikigai_actors.behaviour.turns import TurnRequest as TurnRequest
from ikigai_actors.behaviour.turns import recorded as recorded
from ikigai_actors.errors import ExperimentDiffers as ExperimentDiffers

__all__: list[str]
