from ikigai_actors.programs.acts import ProgramAct as ProgramAct
from ikigai_actors.programs.acts import first as first
from ikigai_actors.programs.acts import gather as gather
from ikigai_actors.programs.acts import now as now
from ikigai_actors.programs.acts import random as random
from ikigai_actors.programs.acts import step as step
from ikigai_actors.programs.provider import Program as Program
from ikigai_actors.programs.provider import program as program
