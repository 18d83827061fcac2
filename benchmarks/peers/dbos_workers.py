"""DBOS: workers of one queue, each a process. `python -m benchmarks.peers.dbos_workers SCHEMA NAME` is one of them.

A worker is told what to do by lines: ``answer`` or ``silent``, whether its workflows come to an end; ``fork N``, five
workflows start N others each, and the line ``done`` tells that they have.
"""

import os
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from threading import Event
from typing import Any
from uuid import uuid4

from dbos import DBOS, DBOSClient, DBOSConfig

from benchmarks.host_processes import process, tell, until
from benchmarks.hosts import EACH

QUEUE = "prompts"
VERSION = "1"
URL = "IKIGAI_BENCHMARK_URL"
"""The variable in which a worker finds its database."""

_silent = Event()


@DBOS.step()
def say(text: str) -> str:
    """The reply of a model."""
    if _silent.is_set():
        Event().wait()
    return text


@DBOS.workflow()
def answer(text: str) -> str:
    """One prompt and its reply."""
    return say(text)


@DBOS.workflow()
def child() -> None:
    """What a fork makes: it has nothing to do."""


@DBOS.workflow()
def parent(count: int) -> None:
    """Start this many children, one after the other."""
    for _ in range(count):
        DBOS.start_workflow(child)


def failover(url: str, times: int) -> dict[str, list[float]]:
    """Kill a process this many times; the seconds until the answer, by when it was asked."""
    schema = f"dbos_{uuid4().hex}"
    with _worker(url, schema, "second") as worker:
        tell(worker, "answer")  # it has made its tables
    client = DBOSClient(system_database_url=_place(url), dbos_system_schema=schema)
    try:
        return {
            "before": [_before(url, schema, client) for _ in range(times)],
            "after": [_after(url, schema, client) for _ in range(times)],
        }
    finally:
        client.destroy()


def _before(url: str, schema: str, client: DBOSClient) -> float:
    """Seconds until what the dead worker had begun is answered, when somebody starts it again at once."""
    with _worker(url, schema, "first") as first:
        tell(first, "silent")
        handle: Any = client.enqueue(_options(), "go")
        until(lambda: handle.get_status().status == "PENDING", "the workflow")
        with _worker(url, schema, "second") as second:
            tell(second, "answer")
            first.kill()
            first.wait()
            began = time.perf_counter()
            with _worker(url, schema, "first") as again:
                tell(again, "answer")
                handle.get_result()
                return time.perf_counter() - began


def _after(url: str, schema: str, client: DBOSClient) -> float:
    """Seconds until the other worker has answered."""
    with _worker(url, schema, "first") as first, _worker(url, schema, "second") as second:
        tell(first, "silent")
        tell(second, "answer")
        first.kill()
        began = time.perf_counter()
        handle: Any = client.enqueue(_options(), "go")
        handle.get_result()
        return time.perf_counter() - began


def forks(url: str, processes: Sequence[int], each: int) -> list[float]:
    """Children made a second by each number of processes, so many by each."""
    schema = f"dbos_{uuid4().hex}"
    with ExitStack() as stack, ThreadPoolExecutor(max(processes)) as threads:
        workers = []
        for number in range(max(processes)):
            workers.append(stack.enter_context(_worker(url, schema, f"w{number}")))
            tell(workers[-1], "answer")  # it has made its tables
        rates = []
        for count in processes:
            began = time.perf_counter()
            list(threads.map(lambda worker: tell(worker, f"fork {each}"), workers[:count]))
            rates.append(count * EACH * each / (time.perf_counter() - began))
        return rates


def _place(url: str) -> str:
    return url.replace("postgresql://", "postgresql+psycopg://")


def _options() -> Any:
    return {"workflow_name": answer.__qualname__, "queue_name": QUEUE, "app_version": VERSION}


def _worker(url: str, schema: str, name: str) -> Any:
    return process(["-m", "benchmarks.peers.dbos_workers", schema, name], **{URL: url})


def _work(schema: str, name: str) -> None:
    config = DBOSConfig(
        name="benchmark", system_database_url=_place(os.environ[URL]), dbos_system_schema=schema, log_level="ERROR",
        run_admin_server=False, executor_id=name, application_version=VERSION,
    )  # fmt: skip
    if sys.stdin.readline() == "silent\n":
        _silent.set()
    DBOS(config=config)
    DBOS.launch()
    DBOS.register_queue(QUEUE)
    print("done", flush=True)
    for line in sys.stdin:
        count = int(line.split()[1])
        handles = [DBOS.start_workflow(parent, count) for _ in range(EACH)]
        for handle in handles:
            handle.get_result()
        print("done", flush=True)


if __name__ == "__main__":
    _work(*sys.argv[1:])
