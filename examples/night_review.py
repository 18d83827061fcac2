"""A lead in Python that survives kills: it forks reviewers, prompts them, asks a person, and posts their words, once.

    python examples/night_review.py reviews.db monday

Kill it at any moment, as often as you like, and start it again: it goes on where it was. Nobody is forked or prompted
twice, you are asked once, and what a step does is done once, since its key names it for whoever does it.
"""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ikigai_actors import ActorSystem, FunctionProvider, Request, current_agent
from ikigai_actors.programs import gather, program, step
from ikigai_actors.tools import current_call

BOARD = "board.json"
TOPICS = ("security", "speed", "words")


def reviewer(request: Request) -> str:  # stands in for a model
    return f"{request.name}: {request.messages[-1]['content'][-1]['text']} reads well."


def post(reviews: list[str], board: str) -> int:
    """Put the reviews on a board, and return how many; the board takes each key once."""
    file = Path(board)
    posts: dict[str, list[str]] = json.loads(file.read_text()) if file.exists() else {}
    posts.setdefault(current_call().key, reviews)
    written = file.with_suffix(".new")
    written.write_text(json.dumps(posts))
    written.replace(file)  # whole, whenever it is killed
    return len(reviews)


@program
def lead(task: str) -> str:
    day, board = task.split(" ", 1)
    me = current_agent()
    reviewers = [me.fork(name=f"{topic}-{day}", model="reviewer", system=f"Review {topic}.") for topic in TOPICS]
    reviews = gather(*(reviewer.prompt(f"The change of {day}") for reviewer in reviewers))
    if not me.ask("Post these?\n\n" + "\n\n".join(review.text for review in reviews)):
        return "not posted"
    posted = step(post, [review.text for review in reviews], board, idempotent="by_key")
    return f"{posted} reviews posted"


def review(database: str, day: str, ask: Callable[[str], str] = input, **options: Any) -> str:
    """Have the lead review a day, once for each day; ``ask`` asks a person, ``options`` are of `ActorSystem.open`."""
    providers = {"reviewer": FunctionProvider(reviewer, "reviewer")}
    with ActorSystem.open(database, provider="offline", providers=providers, programs=[lead], **options) as system:
        boss = system.root.fork(name="lead", model=lead, key="lead")
        reply = boss.prompt(f"{day} {BOARD}", key=day)
        while not reply.done():
            for question in system.questions.pending():  # `ikigai questions answer` answers it as well
                system.questions.answer(question.id, ask(f"{question.text}\n[y/n] ") == "y")
            time.sleep(0.05)
        return reply.get().text


if __name__ == "__main__":
    print(review(sys.argv[1], sys.argv[2]))
