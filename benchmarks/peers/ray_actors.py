"""Ray: actors, each a process, that write what they do to PostgreSQL themselves. Ray starts an actor again that has
died, and repeats the calls that had not ended.
"""

import contextlib
import os
import signal
import time
from collections.abc import Iterator, Sequence
from threading import Event
from typing import Any

import psycopg
import ray

_TABLES = """
CREATE TABLE ray_agents (name TEXT PRIMARY KEY, parent TEXT);
CREATE TABLE ray_messages (agent TEXT, id BIGSERIAL, text TEXT, PRIMARY KEY (agent, id));
"""


class Agent:
    """An agent: its log is in the database."""

    def __init__(self, url: str, name: str) -> None:
        self._connection, self._name, self._url = psycopg.connect(url, autocommit=True), name, url
        self._children: list[Any] = []

    def pid(self) -> int:
        """Its process."""
        return os.getpid()

    def prompt(self, text: str) -> str:
        """Write a prompt, and a reply; the very first time there is none."""
        self._connection.execute("INSERT INTO ray_messages (agent, text) VALUES (%s, %s)", (self._name, text))
        if text == "silent" and not self._repeated():
            Event().wait()
        self._connection.execute("INSERT INTO ray_messages (agent, text) VALUES (%s, 'yes')", (self._name,))
        return "yes"

    def fork(self, count: int) -> None:
        """Make children, one after the other: three rows, and a process."""
        for number in range(count):
            name = f"{self._name}.{number}"
            with self._connection.transaction():
                self._connection.execute("INSERT INTO ray_agents VALUES (%s, %s)", (name, self._name))
                for agent in (self._name, name):
                    self._connection.execute("INSERT INTO ray_messages (agent, text) VALUES (%s, 'fork')", (agent,))
            child = _made(self._url, name)
            ray.get(child.pid.remote())
            self._children.append(child)

    def _repeated(self) -> bool:
        [(count,)] = self._connection.execute(
            "SELECT COUNT(*) FROM ray_messages WHERE agent = %s AND text = 'silent'", (self._name,)
        ).fetchall()
        return bool(count > 1)


def failover(url: str, times: int) -> dict[str, list[float]]:
    """Kill a process this many times; the seconds until the answer, by when it was asked."""
    with _ray(url):
        return {
            part: [_killed(url, f"{part} {number}", part == "before") for number in range(times)]
            for part in ("before", "after")
        }


def forks(url: str, processes: Sequence[int], each: int) -> list[float]:
    """Children made a second by each number of processes. Fewer are made, since each is a process."""
    count, rates = max(1, each // 20), []
    with _ray(url):
        for number in processes:
            leads = [_made(url, f"lead {number}.{child}") for child in range(number)]
            ray.get([lead.pid.remote() for lead in leads])
            began = time.perf_counter()
            ray.get([lead.fork.remote(count) for lead in leads])
            rates.append(number * count / (time.perf_counter() - began))
            for lead in leads:
                ray.kill(lead)  # and its children with it
    return rates


def _killed(url: str, name: str, before: bool) -> float:
    """Seconds from the kill of an actor's process to its answer."""
    agent = _made(url, name)
    pid = ray.get(agent.pid.remote())
    with psycopg.connect(url, autocommit=True) as connection:
        if before:
            answer = agent.prompt.remote("silent")
            asked = "SELECT 1 FROM ray_messages WHERE agent = %s"
            while not connection.execute(asked, (name,)).fetchall():
                time.sleep(0.01)  # what another process did shows only when one looks
        began = time.perf_counter()
        os.kill(pid, signal.SIGKILL)
        if not before:
            answer = agent.prompt.remote("go")
        ray.get(answer)
        taken = time.perf_counter() - began
    ray.kill(agent)
    return taken


def _made(url: str, name: str) -> Any:
    options = {"num_cpus": 0, "max_restarts": -1, "max_task_retries": -1}
    return ray.remote(Agent).options(**options).remote(url, name)


@contextlib.contextmanager
def _ray(url: str) -> Iterator[None]:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(_TABLES)
    os.environ["RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO"] = "0"
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    try:
        yield
    finally:
        ray.shutdown()
