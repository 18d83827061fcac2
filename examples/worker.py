"""A long-running worker that plain Python drives, and that its supervisor restarts when it crashes.

    python examples/worker.py DATABASE TEXT...

The worker counts words. A text that says "crash" crashes it once: its supervisor restarts it, the open turn goes on,
and whoever waits for the answer gets it. Run it again on the same database: the worker is there, and remembers how many
texts it has seen. A third crash within a minute is one too many: then the supervisor gives up.
"""

import logging
import sys

from ikigai_actors import ActorSystem, AgentDead, AgentNotFound, AgentRef, FunctionProvider, Request


class WordCounter:
    """Answers for the worker. What must outlive a crash is in the agent's history, not here."""

    def __init__(self) -> None:
        self._crashed: set[int] = set()

    def __call__(self, request: Request) -> str:
        """Count the words of the latest prompt."""
        texts = [message["content"][-1]["text"] for message in request.messages if message["role"] == "user"]
        number, text = len(texts), texts[-1]
        if "crash" in text and number not in self._crashed:
            self._crashed.add(number)
            raise ConnectionError(f"text {number} broke the counter")
        return f"text {number}: {len(text.split())} word(s)"


def worker_of(system: ActorSystem) -> AgentRef:
    """The worker: the one of an earlier run, or a new one."""
    try:
        return system.agent("counter")
    except AgentNotFound:
        system.root.supervise(intensity=2, period=60)
        return system.root.fork(name="counter", restart="permanent")


def main(database: str, *texts: str) -> None:
    """Count the words of each text."""
    logging.getLogger("ikigai_actors").addHandler(logging.NullHandler())  # the tracebacks of the crashes
    with ActorSystem.open(database, provider=FunctionProvider(WordCounter())) as system:
        worker = worker_of(system)
        try:
            for text in texts:
                print(worker.prompt(text).get(timeout=60).text)
        except AgentDead as gone:
            sys.exit(str(gone))


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("Usage: python examples/worker.py DATABASE TEXT...")
    main(*sys.argv[1:])
