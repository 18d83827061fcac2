"""Agents that plain Python drives, in the shell, and how one that crashes is looked after.

    python examples/supervised.py DATABASE

Each agent counts the prompts that it remembers. One that hears "stumble" crashes, once for each such prompt: its
supervisor restarts it, its turn is resumed with its history intact, and the second attempt answers.
"""

import logging
import sys

from ikigai_actors import ActorSystem, FunctionProvider, Request
from ikigai_actors.shell import run


class Counter:
    """Counts prompts; stumbles once over each that says so."""

    def __init__(self) -> None:
        self._stumbled: set[tuple[str, int]] = set()

    def __call__(self, request: Request) -> str:
        """Answer for one agent."""
        texts = [
            block["text"]
            for message in request.messages
            if message["role"] == "user"
            for block in message["content"]
            if block["type"] == "text"
        ]
        attempt = (request.agent, len(texts))
        if "stumble" in texts[-1] and attempt not in self._stumbled:
            self._stumbled.add(attempt)
            print(f"  ({request.name} crashes)")
            raise LookupError(f"stumbled over prompt {len(texts)}")
        return f"Prompt {len(texts)}; the first was “{texts[0]}”."


def main(database: str) -> int:
    """Run the shell on a database; returns its exit status."""
    logging.getLogger("ikigai_actors").addHandler(logging.NullHandler())  # the tracebacks of those that crash
    with ActorSystem.open(database, provider=FunctionProvider(Counter(), "counter")) as system:
        return run(system, plain=True)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("Usage: python examples/supervised.py DATABASE")
    sys.exit(main(sys.argv[1]))
