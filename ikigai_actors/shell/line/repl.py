"""The shell in line mode: reads lines, and carries them out one after another.

    with ActorSystem.open() as system:
        status = LineMode(Shell(system, Pipe(sys.stdin.buffer), Screen(), Interrupts().install())).run()

A prompt goes to the current agent, and its answer is printed as it arrives. A line that begins with ``/`` is a command
(`ikigai_actors.verbs`). From a pipe the next line is read when the answer is complete, and only answers to lines are
printed, so a transcript is always the same. At the end of a pipe the shell waits for all prompts and commands, except
those of stopped agents; the exit status is 1 if a prompt has ended in an error. A person who leaves waits for nothing;
open turns come back as interrupted.

Ctrl-C interrupts the turn of the current agent; at an empty prompt it asks, and a second one leaves.
"""

import logging
from collections.abc import Callable, Sequence

from ikigai_actors.agent.statistics import SystemStatistics
from ikigai_actors.errors import BadInput, IkigaiError, SystemClosed
from ikigai_actors.reach.conversation import take_in
from ikigai_actors.shell.line.session import Shell
from ikigai_actors.shell.line.turn import shortened
from ikigai_actors.shell.person_command import typed_command
from ikigai_actors.shell.start import ENDED_BY_CTRL_C
from ikigai_actors.system.handles.ref import System
from ikigai_actors.verbs.place import LEAVING_TAKES
from ikigai_actors.verbs.text.mentions import is_command
from ikigai_actors.verbs.text.naming import said_by, shown_name_in

logger = logging.getLogger(__name__)

_SHOWN = 30
"""The most characters of a line that was not carried out, in the warning about it."""

FAILED = 1
"""The exit status of a pipe if a prompt ended in an error."""


class LineMode:
    """The loop that reads lines and carries them out in a session."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell
        self._asked = False

    def run(self) -> int:
        """Carry out lines until the end of input; return the exit status."""
        shell = self._shell
        try:
            shell.note_state(lambda text: shell.screen.notice(f"{shell.label}: {text}"))
            while not shell.leaving:
                self._try(shell.report)
                line = self._read()
                if line is None:
                    break
                self.do(line)
            self._leave()
        except KeyboardInterrupt:
            self._tell_what_is_left()
            return ENDED_BY_CTRL_C
        finally:
            shell.close()
        return FAILED if shell.failed and not shell.keyboard.interactive else 0

    def do(self, line: str) -> None:
        """Carry out one line. Only errors that end the session are raised: `SystemClosed`, output errors, signals."""
        self._asked = False
        if is_command(line):
            self._try(lambda: self._shell.do_command(line))
        elif self._shell.attended and (command := typed_command(line)) is not None:
            self._try(lambda: self._shell.run_command(command))
        elif line.strip():
            self._try(lambda: self._shell.say(line))
        else:
            self._try(self._shell.follow)

    def _try(self, work: Callable[[], object]) -> None:
        try:
            work()
        except SystemClosed:
            raise
        except IkigaiError as error:
            self._shell.screen.error(said_by(error, shown_name_in(self._shell.system)))
        except OSError:  # after `IkigaiError`, since a `TimedOut` is both
            raise
        except Exception as error:  # a defect of the shell: the agents and the session go on
            logger.exception("The shell failed")
            self._shell.screen.error(f"{type(error).__name__}: {error}")

    def _read(self) -> str | None:
        keyboard, screen = self._shell.keyboard, self._shell.screen
        while True:
            try:
                with self._shell.interrupts.heard():
                    return keyboard.read(self._shell.prompt if keyboard.interactive else self._shell.label)
            except BadInput as error:
                screen.error(str(error))
            except KeyboardInterrupt:
                if not keyboard.interactive:
                    raise
                self._interrupted(keyboard.unfinished())
                self._try(self._shell.report)

    def _interrupted(self, unfinished: str) -> None:
        """Handle Ctrl-C at the prompt. Raises `KeyboardInterrupt` if the person leaves."""
        if self._shell.interrupt():
            self._shell.follow()
            self._asked = False
        elif unfinished.strip():
            self._asked = False
        elif self._asked:
            raise KeyboardInterrupt
        else:
            self._asked = True
            self._shell.screen.notice("Ctrl-C again leaves, and so does Ctrl-D.")

    def _leave(self) -> None:
        shell = self._shell
        if not shell.keyboard.interactive and not shell.leaving:
            shell.finish()
        else:
            self._tell_what_is_left()

    def _tell_what_is_left(self) -> None:
        if notice := leaving(self._shell.system, self._shell.undone):
            self._shell.screen.notice(notice)


def leaving(system: System, undone: Sequence[str] = ()) -> str | None:
    """Return the warning for a person who leaves: open turns, waiting commands and lost lines; None if there are none.

    Args:
        system: what is left.
        undone: the lines that the shell has taken and not done.
    """
    notices = []
    if undone:
        lines = "A line was" if len(undone) == 1 else f"{len(undone)} lines were"
        notices.append(f"{lines} not done: {', '.join(f'“{shortened(line, _SHOWN)}”' for line in undone)}.")
    try:
        take_in(system, LEAVING_TAKES)
        statistics = system.statistics()
    except SystemClosed:  # it stopped, and has said what is lost
        return " ".join(notices) or None
    if isinstance(statistics, SystemStatistics):  # else another process runs the agents, and they go on
        notices += _left_behind(statistics)
    return " ".join(notices) or None


def _left_behind(statistics: SystemStatistics) -> list[str]:
    working, pending, kept, lines = statistics.working, statistics.pending, statistics.kept, []
    if working:
        turns, them = ("a turn", "it") if working == 1 else (f"{working} turns", "them")
        lines.append(f"Leaving {turns} in progress: /resume finishes {them}.")
    if kept:
        waits = "A prompt waits" if kept == 1 else f"{kept} prompts wait"
        lines.append(f"{waits} in the database until the agent goes on.")
    if pending:
        lost = "A prompt or command that waits is" if pending == 1 else f"{pending} prompts or commands that wait are"
        lines.append(f"{lost} lost.")
    return lines
