"""The task: a lead asks three workers at once. ``a`` charges; ``b`` charges a lot, after a person's approval; ``c``
sleeps, then charges. The lead names the receipts. The model follows the marker ``[run R agent A]`` and the number of
answers after it. The number of an answer stands in the ids of its calls, so later requests show which answer a history
holds. Where the model may fork by itself (a tool ``fork``), it uses ``fork``, ``wait``, ``read_mail`` and ``exit`` in
place of ``delegate`` and ``pause``.
"""

import re
from typing import Any

WORKERS = ("a", "b", "c")
PAUSE = 1.0
"""Seconds for which worker ``c`` sleeps."""
_RECEIPT = re.compile(r"receipt \d+")
_SUMMARY = re.compile(r"(?:receipt|unclear) [a-z0-9]+")

Call = tuple[str, dict[str, Any]]
"""The name of a tool, and its arguments."""


def script(run: str, agent: str, conversation: list[Any], forks: bool, pause: float) -> tuple[str, list[Call]]:
    """What the model answers: words, or calls. The conversation is what came after the prompt that names the agent."""
    step = sum(message["role"] == "assistant" for message in conversation)
    results = " ".join(text_of(message) for message in conversation if message["role"] == "tool")
    if agent == "lead":
        return _lead(run, step, results, forks)
    if agent == "c" and step == 0:
        return "", [("wait", {"timeout": pause}) if forks else ("pause", {"seconds": pause})]
    if step == (agent == "c"):
        return "", [("charge_big" if agent == "b" else "charge", {"run": run, "worker": agent})]
    receipts = _RECEIPT.findall(results)
    words = f"{agent}: {receipts[-1] if receipts else f'unclear {agent}'}"
    if forks and step == 1 + (agent == "c"):
        return "", [("exit", {"result": words})]
    return words, []


def _lead(run: str, step: int, results: str, forks: bool) -> tuple[str, list[Call]]:
    if step == 0:
        prompts = [(worker, f"[run {run} agent {worker}] Do your part.") for worker in WORKERS]
        if forks:
            return "", [("fork", {"name": f"{worker}-{run}", "prompt": prompt}) for worker, prompt in prompts]
        return "", [("delegate", {"worker": worker, "prompt": prompt}) for worker, prompt in prompts]
    if forks and step == 1:
        return "", [("wait", {"children": True, "timeout": 120})]
    if forks and step == 2:
        return "", [("read_mail", {})]
    return f"All in all: {' '.join(sorted(set(_SUMMARY.findall(results))))}", []


def text_of(message: dict[str, Any]) -> str:
    """The text of a message of chat completions."""
    content = message.get("content") or ""
    return content if isinstance(content, str) else " ".join(part.get("text", "") for part in content)
