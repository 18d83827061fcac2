"""Process 1 of a container: it runs the program in a child, and reaps the children that other processes leave.

The kernel hands process 1 every process whose parent has ended, such as the background jobs of tools. Until process 1
waits for these children, they stay as zombies, and in the end no process can be started. The program itself could not
wait for them, because it cannot distinguish them from the children that its own threads have started and wait for. So
process 1 does nothing else.
"""

import os
import signal
from contextlib import suppress


def run_in_child() -> None:
    """Fork, and return in the child. The parent stays until the child ends, and then exits with the child's status.

    Call the function before any thread is started, because the child has only the calling thread. The parent passes on
    the signals that other processes send; the terminal sends its signals to the child directly.
    """
    signals = signal.valid_signals()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    program = os.fork()
    if program == 0:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return
    while (status := _reaped(program)) is None:
        heard = signal.sigwaitinfo(signals)
        if heard.si_signo != signal.SIGCHLD and heard.si_code <= 0:  # above 0 the kernel has sent it
            os.kill(program, heard.si_signo)
    os._exit(status)


def _reaped(program: int) -> int | None:
    """Reap all children that have ended; return the exit status of the program, or None while it runs."""
    status = None
    with suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            if ended[0] == program:
                code = os.waitstatus_to_exitcode(ended[1])
                status = code if code >= 0 else 128 - code
    return status
