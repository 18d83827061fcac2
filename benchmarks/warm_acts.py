"""The acts of a warm system, for `benchmarks.warm`: of the package that lies in the working directory.

It is given to Python as text, and uses what every version has, so that an earlier version can be beside today's.
A line ``ACT N``: the act is done N times, and a line with the processor time of one comes back, in microseconds.
"""

import gc
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from ikigai_actors import ActorSystem, Budget, FunctionProvider, Request

HISTORY = 100
"""Messages, at least, before what is measured."""
BULK = 100
"""Children of one fork in bulk."""
AT_ONCE = 64
BODY = "The index on this column is used by two reports; both could use the primary key. Shall I drop it?"


@contextmanager
def warm_acts(asked: Callable[[], object] = lambda: None) -> Iterator[dict[str, Callable[[], int]]]:
    """The acts, each with how often one call of it does the act, of a system that has done some of each.

    Args:
        asked: called by the model whenever it is asked.
    """

    def answer(request: Request) -> str:
        asked()
        return f"Heard: {request.messages[-1]['content'][-1]['text']}"

    with (
        TemporaryDirectory() as folder,
        ActorSystem.open(str(Path(folder, "warm.db")), provider=FunctionProvider(answer)) as system,
    ):
        root = system.root
        payer = root.fork(budget=Budget(tokens=1_000_000_000, usd=1_000_000))
        mate, mother = root.fork(), root.fork()
        crowd = [root.fork() for _ in range(AT_ONCE)]

        def turn() -> int:
            root.prompt("And now?").get(timeout=60)
            return 1

        def turn_with_a_budget() -> int:
            payer.prompt("And now?").get(timeout=60)
            return 1

        def fork() -> int:
            mother.fork()
            return 1

        def bulk_fork() -> int:
            return len(mother.fork(count=BULK))

        def mail() -> int:
            root.send(mate, BODY)
            return 1

        def at_once() -> int:
            for future in [each.prompt("And now?") for each in crowd]:
                future.get(timeout=60)
            return AT_ONCE

        for _ in range(HISTORY // 2):
            turn()
            turn_with_a_budget()
        acts = {"turn": turn, "turn-with-a-budget": turn_with_a_budget, "at-once": at_once}
        acts |= {"mail": mail, "fork": fork, "bulk-fork": bulk_fork}
        for act in (*acts.values(), fork, mail, turn):
            act()
        yield acts


def main() -> None:
    """Do what the lines say until there are no more."""
    with warm_acts() as acts:
        gc.collect()
        gc.disable()  # a collection would be in one block of many
        print("ready", flush=True)
        for line in sys.stdin:
            name, times = line.split()
            began, done = time.process_time(), 0
            while done < int(times):
                done += acts[name]()
            print((time.process_time() - began) / done * 1_000_000, flush=True)


if __name__ == "__main__":
    main()
