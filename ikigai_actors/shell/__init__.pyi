# The names that this package hands on: read by type checkers, and by `lazy.handed_on` when the program runs.

from ikigai_actors.shell.completion import completions as completions
from ikigai_actors.shell.front_end import run as run
from ikigai_actors.shell.line.input import Pipe as Pipe
from ikigai_actors.shell.line.input import Terminal as Terminal
from ikigai_actors.shell.line.interrupts import Interrupts as Interrupts
from ikigai_actors.shell.line.output import Screen as Screen
from ikigai_actors.shell.line.repl import LineMode as LineMode
from ikigai_actors.shell.line.session import Shell as Shell

__all__: list[str]
