"""Fan-out and fan-in: an agent forks three children with prompts, waits for all, reads their mail, and answers.

    python examples/fan_out.py "Shall our shop sell tea?"

With ``ANTHROPIC_API_KEY`` a model does it with its tools alone. Without, the offline provider does as the prompt says,
line by line: the children too, whose prompts have lines of their own.
"""

import json
import os
import sys

from ikigai_actors import ActorSystem

QUESTION = "Shall our small bookshop sell tea as well?"

VIEWS = {"owner": "the owner, who counts the money", "guest": "a guest", "baker": "the baker next door, who sells tea"}

TASK = """{question}

Fork three children, named {names}, each with a prompt that tells it to look at this as that person would, and to send
its view by mail to {me}. Then wait for all your children, read your mail, and answer the question in a few sentences,
weighing what they wrote.
"""


def offline_script(question: str, me: str) -> str:
    """The same as lines that the offline provider understands: each is a call, and all are one reply."""
    lines = [question]
    for name, who in VIEWS.items():
        mail = json.dumps({"to": me, "body": f"The view of {who}."}, ensure_ascii=False)
        fork = {"name": name, "prompt": f"You are {who}.\n@send {mail}"}
        lines.append(f"@fork {json.dumps(fork, ensure_ascii=False)}")
    return "\n".join([*lines, '@wait {"children": true, "timeout": 300}', "@read_mail"])


def ask(question: str, database: str = ":memory:", provider: str | None = None) -> str:
    """Have an agent answer a question after it has heard three others.

    Args:
        question: what is asked.
        database: where the agents live.
        provider: as for `ActorSystem.open`; None is a model when there is a key.
    """
    offline = (provider or "").startswith("offline") or (provider is None and not os.environ.get("ANTHROPIC_API_KEY"))
    with ActorSystem.open(database, provider) as system:
        me = system.root.fork(name="chair")
        names = ", ".join(f"{name} ({who})" for name, who in VIEWS.items())
        prompt = (
            offline_script(question, "chair") if offline else TASK.format(question=question, names=names, me="chair")
        )
        return me.prompt(prompt).get(timeout=600).text


if __name__ == "__main__":
    print(ask(" ".join(sys.argv[1:]) or QUESTION))
