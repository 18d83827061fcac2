"""What every test may rely on, however the run was started."""

import logging
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_a_test_can_interrupt_itself() -> None:
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_test_may_log_half_a_character() -> None:
    logging.getLogger(__name__).error("half \ud800")


@pytest.mark.slow("a run of pytest")
def test_also_in_a_worker_which_sends_the_report() -> None:
    test = f"{Path(__file__).relative_to(ROOT)}::{test_a_test_may_log_half_a_character.__name__}"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n", "1", "-p", "no:cacheprovider", test],
        capture_output=True, text=True, check=False, cwd=ROOT,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
