"""A puzzle by Monte Carlo tree search: make 24 of 4, 7 and 8. Each step of each try is a durable fork.

    python examples/twenty_four.py

A function stands in for the model, so that it runs without a key. Leave provider= out for a real one. With a database
in a file, killed in the middle and run again, it goes on where it was.
"""

import re
from fractions import Fraction
from itertools import permutations

from ikigai_actors import ActorSystem, Request, ScriptedProvider
from ikigai_actors.behaviour import MCTS, TrialRun, Verdict, search

NUMBERS = [Fraction(number) for number in (4, 7, 8)]
OPTIONS = [f"Step {number}" for number in range(24)]
GAME = "Make 24. One step a turn: say 'a op b = c', and in the last line 'Left:' and what is left."


def left(text: str) -> list[Fraction]:
    """The numbers that are left."""
    return [Fraction(number) for number in re.findall(r"-?\d+(?:/\d+)?", text.rpartition("Left:")[2])]


def model(request: Request) -> str:
    """Stands in for a model: it takes the step that the prompt counts up to, whatever that is good for."""
    replies = [message for message in request.messages if message["role"] == "assistant"]
    said = [part["text"] for reply in replies for part in reply["content"]]
    numbers = left(said[-1]) if said else NUMBERS
    steps = [
        (f"{x} {sign} {y} = {value}", [value, *(numbers[c] for c in range(len(numbers)) if c not in (a, b))])
        for a, b in permutations(range(len(numbers)), 2)
        for x, y in [(numbers[a], numbers[b])]
        for sign, value in (("+", x + y), ("-", x - y), ("*", x * y), ("/", x / (y or 1)))
    ]
    step, rest = steps[int(request.messages[-1]["content"][-1]["text"].split()[-1]) % len(steps)]
    return f"{step}\nLeft: {' '.join(map(str, rest))}"


def judge(run: TrialRun) -> Verdict | float | None:
    """Called for each fork, when it has answered."""
    numbers = left(run.text)
    if len(numbers) == 1:
        return Verdict(float(numbers == [24]), run.text, over=True)
    return 0.5 / len(numbers) if numbers else None


def main(database: str = ":memory:", trials: int = 300) -> None:
    """Search, and tell the steps."""
    with ActorSystem.open(database, ScriptedProvider(model)) as system:
        player = system.root.fork(name="player", system=GAME)
        result = search(player, judge, plan=MCTS(trials, enough=1.0), options=OPTIONS, seed=1)
        print(f"score {result.score} after {len(result.trials)} trials")
        for number in result.path:
            print(result.experiment.agent_of(number).history()[-1].content.splitlines()[0])


if __name__ == "__main__":
    main()
