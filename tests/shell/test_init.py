"""The program as process 1. Here a process that gets the orphans of its branch stands for it."""

import signal
import subprocess
import sys

import pytest

from tests.kit.program import PATIENCE, completed

pytestmark = [
    pytest.mark.slow("starts programs"),
    pytest.mark.skipif(sys.platform != "linux", reason="elsewhere only process 1 gets orphans"),
]

AS_INIT = """
import ctypes, os, signal, subprocess, sys
from ikigai_actors.shell.init import run_in_child

PR_SET_CHILD_SUBREAPER = 36
ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
run_in_child()
"""

REAPED = """
orphan = subprocess.run(["sh", "-c", "true & echo $!"], stdout=subprocess.PIPE, text=True).stdout.strip()
while os.path.exists(f"/proc/{orphan}"):
    pass
child = subprocess.Popen(["sh", "-c", "exit 5"])
sys.exit(child.wait())
"""

DEAF = """
signal.signal(signal.SIGHUP, lambda number, frame: print("heard", flush=True))
print("ready", flush=True)
while True:
    signal.pause()
"""


def test_orphans_are_reaped_and_the_children_of_the_program_are_its_own() -> None:
    assert completed([sys.executable, "-c", AS_INIT + REAPED]).returncode == 5


def test_the_program_gets_the_signals_and_its_end_by_one_is_told_as_a_shell_does() -> None:
    with subprocess.Popen([sys.executable, "-c", AS_INIT + DEAF], stdout=subprocess.PIPE, text=True) as init:
        assert init.stdout is not None
        assert init.stdout.readline() == "ready\n"
        init.send_signal(signal.SIGHUP)
        assert init.stdout.readline() == "heard\n"
        init.send_signal(signal.SIGTERM)
        assert init.wait(PATIENCE) == 128 + signal.SIGTERM
