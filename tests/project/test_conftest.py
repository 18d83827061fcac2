"""What every test may rely on, however the run was started."""

import logging
import signal
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
IGNORED = "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN); os.execv(sys.argv[1], sys.argv[1:])"


def test_a_test_can_interrupt_itself() -> None:
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_test_may_log_half_a_character() -> None:
    logging.getLogger(__name__).error("half \ud800")


def test_also_in_a_worker_which_sends_the_report() -> None:
    test = f"{Path(__file__).relative_to(ROOT)}::{test_a_test_may_log_half_a_character.__name__}"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n", "1", "-p", "no:cacheprovider", test],
        capture_output=True, text=True, check=False, cwd=ROOT,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, ""), done.stdout


def test_also_in_a_run_that_a_shell_started_in_the_background() -> None:
    test = f"{Path(__file__).relative_to(ROOT)}::{test_a_test_can_interrupt_itself.__name__}"
    done = subprocess.run(
        [sys.executable, "-c", IGNORED, sys.executable, "-m", "pytest", "-n", "0", "-p", "no:cacheprovider", test],
        capture_output=True, text=True, check=False, cwd=ROOT,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
