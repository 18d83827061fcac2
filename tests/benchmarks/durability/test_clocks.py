"""The wall clock of a process is set at once; its monotonic clock, its sleeps and its timers go on."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.durability.clocks import HOUR, Clock, can_be_set

PROGRAM = """if 1:
    import asyncio, json, sys, threading, time
    from datetime import datetime

    async def timer():
        loop = asyncio.get_running_loop()
        before = loop.time()
        await asyncio.wait([loop.create_task(asyncio.sleep(0.02))], timeout=30)
        return loop.time() - before

    for _ in sys.stdin:
        before = time.monotonic()
        time.sleep(0.02)
        slept = time.monotonic() - before
        assert not threading.Event().wait(0.02)
        shows = {"time": time.time(), "datetime": datetime.now().timestamp(), "timer": asyncio.run(timer())}
        coarse = time.clock_gettime(5)  # CLOCK_REALTIME_COARSE
        print(json.dumps(shows | {"coarse": coarse, "slept": slept, "monotonic": time.monotonic()}), flush=True)
"""


@pytest.mark.skipif(not can_be_set(), reason="needs Linux and a C compiler: apt-get install gcc")
@pytest.mark.slow("compiles a library")
def test_a_process_sees_its_wall_clock_move_at_once_and_sleeps_and_waits_as_before(tmp_path: Path) -> None:
    clock = Clock(tmp_path / "driver.clock")
    command = [sys.executable, "-c", PROGRAM]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=clock.variables) as program:
        assert program.stdin is not None
        assert program.stdout is not None
        shown = []
        for hours in (0, 1, -1):
            clock.set(hours * HOUR)
            print(file=program.stdin, flush=True)
            shown.append(json.loads(program.stdout.readline()))
        program.stdin.close()
    right, ahead, back = shown
    for name in ("time", "datetime", "coarse"):
        assert ahead[name] - right[name] == pytest.approx(HOUR, abs=60)
        assert back[name] - right[name] == pytest.approx(-HOUR, abs=60)
    assert 0 < back["monotonic"] - right["monotonic"] < 60
    assert all(0.02 <= each[name] < 60 for each in shown for name in ("slept", "timer"))
