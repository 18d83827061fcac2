"""The processes of a play: one driver each, the lines to it, and what may be done to it."""

import contextlib
import json
import os
import signal
import subprocess
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from queue import Empty, Queue
from typing import Any

from benchmarks.durability.runtimes import Runtime, python_of

DEADLINE = 60.0
"""Seconds until a driver is ready, and until it answers."""
_ROOT = Path(__file__).parents[2]


class WorkerGone(Exception):
    """The driver's process has ended, or did not answer in time."""


class CommandFailed(Exception):
    """The driver has answered with an error."""


class Worker:
    """One life of a worker. `owner` names it: the worker, and which of its lives this is."""

    def __init__(self, runtime: Runtime, host: str, life: int, variables: dict[str, str], log: Path) -> None:
        """Start the driver, and wait until it is ready. Raises `WorkerGone` where it does not get there."""
        self.host, self.owner = host, f"{host}.{life}"
        environment = (
            os.environ | variables | {"DURABILITY_HOST": host, "PYTHONPATH": str(_ROOT), "PYTHONUNBUFFERED": "1"}
        )
        command = [python_of(runtime), "-m", f"benchmarks.durability.drivers.{runtime.driver}"]
        self._log = log.open("ab")
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, env=environment, cwd=log.parent
        )
        self._answers: dict[int, Queue[dict[str, Any]]] = defaultdict(Queue)
        self._last, self._lock = 0, threading.Lock()
        self._ended = False
        self._reader = threading.Thread(target=self._read, name=self.owner, daemon=True)
        self._reader.start()

    def wait_until_ready(self) -> None:
        """Return when the driver takes commands."""
        self._answer(0, DEADLINE)

    def ask(self, do: str, run: str, timeout: float = DEADLINE) -> Any:
        """The value of a command. Raises `CommandFailed` or `WorkerGone`."""
        return self.ask_when(do, run, timeout)[0]

    def ask_when(self, do: str, run: str, timeout: float = DEADLINE) -> tuple[Any, float]:
        """The value of a command, and when the answer left the process, by the monotonic clock. Raises as `ask`."""
        with self._lock:
            self._last += 1
            number = self._last
        line = json.dumps({"id": number, "do": do, "run": run}) + "\n"
        stdin = self.process.stdin
        assert stdin is not None
        try:
            with self._lock:
                stdin.write(line.encode())
                stdin.flush()
        except (OSError, ValueError) as error:
            raise WorkerGone(self.owner) from error
        return self._answer(number, timeout)

    def kill(self) -> tuple[bool, str]:
        """SIGKILL. Returns whether the process died of it, and the proof."""
        self.process.kill()
        status = self.process.wait()
        return status == -signal.SIGKILL, f"exit status {status}"

    def stop(self) -> tuple[bool, str]:
        """SIGSTOP. Returns whether the process stands still, and the proof."""
        self.process.send_signal(signal.SIGSTOP)
        until = time.monotonic() + 1
        while (state := self.state()) != "T" and time.monotonic() < until:
            time.sleep(0.002)
        return state == "T", f"state {state}"

    def continue_(self) -> tuple[bool, str]:
        """SIGCONT. Returns whether the process stood still until now, and the proof."""
        state = self.state()
        self.process.send_signal(signal.SIGCONT)
        return state == "T", f"state {state}"

    def state(self) -> str:
        """The letter of the process's state, as Linux has it; ``-`` where it is gone."""
        try:
            return Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return "-"

    def owns(self, port: int) -> bool:
        """Whether the process has the socket with this port."""
        inodes = _inodes_of(port)
        directory = Path(f"/proc/{self.process.pid}/fd")
        try:
            links = [str(file.readlink()) for file in directory.iterdir()]
        except OSError:
            return False
        return any(f"socket:[{inode}]" in links for inode in inodes)

    def end(self) -> None:
        """End the process, whatever it does."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.kill()
            self.process.wait()
        self._reader.join()
        for file in (self.process.stdin, self.process.stdout, self._log):
            with contextlib.suppress(OSError):  # what was not flushed has no reader any more
                if file:
                    file.close()

    def _answer(self, number: int, timeout: float) -> tuple[Any, float]:
        queue = self._answers[number]
        if self._ended and queue.empty():
            raise WorkerGone(self.owner)
        try:
            answer = queue.get(timeout=timeout)
        except Empty:
            raise WorkerGone(f"{self.owner} did not answer within {timeout:g} s") from None
        if "gone" in answer:
            raise WorkerGone(self.owner)
        if "error" in answer:
            raise CommandFailed(answer["error"])
        return answer["value"], answer["sent"]

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            try:
                answer = json.loads(line)
                self._answers[answer["id"]].put(answer)
            except (ValueError, TypeError, KeyError):
                continue  # what a runtime prints
        self._ended = True
        for queue in tuple(self._answers.values()):
            queue.put({"gone": True})


class Owners:
    """Finds the worker that has the other end of a connection."""

    def __init__(self, workers: Callable[[], list[Worker]]) -> None:
        self._workers = workers

    def __call__(self, port: int) -> str:
        """The owner of the socket with this port; nothing where its process is gone."""
        return next((worker.owner for worker in self._workers() if worker.owns(port)), "")


def _inodes_of(port: int) -> set[str]:
    lines = [line for table in ("tcp", "tcp6") for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]]
    fields = [line.split() for line in lines]
    return {field[9] for field in fields if int(field[1].rpartition(":")[2], 16) == port}
