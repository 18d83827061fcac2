"""Typed fan-out and gather: three children look at a text, and each gives a value of the same type.

    python examples/reviews.py "The tea is hot, and so is the coffee."

With ``ANTHROPIC_API_KEY`` a model does it. Without, the offline provider gives what its prompt says: the first child a
value that does not fit, which it is told, and then mends.
"""

import json
import os
import sys
from dataclasses import dataclass
from typing import Any, Literal

from ikigai_actors import ActorSystem

TEXT = "The tea is hot, and so is the coffee."


@dataclass
class Review:
    """What one child thinks of the text."""

    verdict: Literal["keep", "change"]
    reasons: list[str]


@dataclass
class Decision:
    """What is made of all reviews."""

    keep: bool
    votes: int


LOOKS = {"clarity": "whether it is clear", "grammar": "its grammar", "style": "its style"}


def gives(*values: Any) -> str:
    """Lines that the offline provider understands: give this value, and if it does not fit, the next one."""
    return " @then ".join(f"@give_result {json.dumps({'result': value})}" for value in values)


def review(text: str, database: str = ":memory:", provider: str | None = None) -> tuple[dict[str, Review], Decision]:
    """Have three children review a text at once, and the agent decide by what they found.

    Args:
        text: the text.
        database: where the agents live.
        provider: as for `ActorSystem.open`; None is a model when there is a key.
    """
    offline = (provider or "").startswith("offline") or (provider is None and not os.environ.get("ANTHROPIC_API_KEY"))
    with ActorSystem.open(database, provider) as system:
        editor = system.root.fork(name="editor")
        children = {}
        for name, look in LOOKS.items():
            good = {"verdict": "keep" if name != "style" else "change", "reasons": [f"I looked at {look}."]}
            script = gives({"verdict": "perhaps"}, good) if name == "clarity" else gives(good)
            prompt = script if offline else f"Review {look}, and nothing else, of this text:\n\n{text}"
            children[name] = editor.fork(prompt, name=name, output=Review)  # all of them work at once
        reviews: dict[str, Review] = {name: child.reply(timeout=600).output for name, child in children.items()}
        votes = sum(review.verdict == "keep" for review in reviews.values())
        verdicts = "\n".join(
            f"{name}: {review.verdict}, {'; '.join(review.reasons)}" for name, review in reviews.items()
        )
        task = f"Decide whether we keep the text. Votes to keep it: {votes}.\n\n{verdicts}"
        prompt = gives({"keep": votes > 1, "votes": votes}) if offline else task
        return reviews, editor.prompt(prompt, output=Decision).get(timeout=600).output


if __name__ == "__main__":
    reviews, decision = review(" ".join(sys.argv[1:]) or TEXT)
    for name, outcome in reviews.items():
        print(f"{name}: {outcome.verdict} ({'; '.join(outcome.reasons)})")
    print("kept" if decision.keep else "to be changed", f"by {decision.votes} of {len(reviews)}")
