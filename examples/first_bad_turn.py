"""A log of 1,000 messages, in which something went wrong: which turn was it? The judge errs one time in ten.

    python examples/first_bad_turn.py

A function stands in for the model, so that it runs without a key. Leave provider= out for a real one, and judge with
`ask("Does it quote in euros? Answer yes or no.")`.
"""

import random

from ikigai_actors import ActorSystem, Request, ScriptedProvider
from ikigai_actors.behaviour import TrialRun, bisect

TURNS, SPOILT = 500, 313
PROBE = "In which currency do we quote?"


def model(request: Request) -> str:
    """Stands in for a model: once it has heard of Texas, it quotes dollars."""
    if request.messages[-1]["content"][-1]["text"] != PROBE:
        return "Noted."
    heard = any("Texas" in part["text"] for message in request.messages for part in message["content"])
    return "We quote in dollars." if heard else "We quote in euros."


def main(database: str = ":memory:") -> None:
    """Fill a log, and find the turn that spoilt it."""
    chance = random.Random(7)

    def judge(run: TrialRun) -> bool:
        """True: good. It errs as a model would."""
        return ("euro" in run.text) ^ (chance.random() < 0.1)

    with ActorSystem.open(database, ScriptedProvider(model)) as system:
        clerk = system.root.fork(name="clerk")
        for turn in range(1, TURNS + 1):
            clerk.prompt("A customer from Texas asks for tea." if turn == SPOILT else f"Order {turn}.").get()
        result = bisect(clerk, judge, probe=PROBE, sure=0.99, most=60)
        print(
            f"{result.answer}: turn that ends at {result.position}, {result.sure:.3f} sure after {result.probes} probes"
        )
        if result.position is not None:
            print(
                [message.content for message in clerk.history() if result.position - 1 <= message.id <= result.position]
            )
        result.end()


if __name__ == "__main__":
    main()
