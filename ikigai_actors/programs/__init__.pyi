from ikigai_actors.programs.frames import ProgramAct as ProgramAct
from ikigai_actors.programs.frames import gather as gather
from ikigai_actors.programs.frames import step as step
from ikigai_actors.programs.provider import Program as Program
from ikigai_actors.programs.provider import program as program
