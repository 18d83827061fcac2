"""A provider without a model, to try ikigai without a key: its answers list the earlier prompts.

    OfflineProvider()            # answers at once
    OfflineProvider(pace=0.1)    # a word each tenth of a second

The answer depends on the prompts in the agent's history and on nothing else: forks with different prompts answer
differently, and the same history always gets the same answer. The model ``offline:slow`` writes a word each 0.4
seconds: time enough to kill its process by hand. ``offline:0.05`` has the pace that it names.

A prompt can make it call tools, several on a line or on lines of their own, with the arguments as JSON; it then tells
what they gave:

    @fork {"prompt": "count the files", "name": "counter"} @fork {"prompt": "read them"}
    @agents

All calls of a prompt are one reply. Calls after ``@then`` are made in a further reply of the same turn, after the
results of the calls before:

    @fork {"name": "kid", "prompt": "look"} @then @wait {"agents": ["kid"]} @then @read_mail

Asked for a summary, it notes the prompts, and recalls them from there later.
"""

import asyncio
import json
import re
from collections.abc import Iterator
from typing import Any

from ikigai_actors.arguments import check_seconds
from ikigai_actors.providers.base import (
    GO_ON,
    OPEN_PROMPT,
    OPENING,
    REPORT,
    SUMMARISE,
    Delta,
    OnDelta,
    Reply,
    Request,
    ToolCall,
    Usage,
)

SLOW_PACE = 0.4
"""Seconds between the words of the model ``slow``."""

MOST_PACE = 60.0
"""The longest pause between two words, in seconds."""

THEN = "then"
"""The word that separates the calls of one reply from those of the next."""

_PACE = re.compile(r"\d+(\.\d+)?")
_WORD = re.compile(r"\S+\s*")
_CALL = re.compile(r"@(?P<name>[A-Za-z0-9_-]+)(?:\s+|(?=[{\[])|$)")
_SHOWN = 40
"""The number of characters of a prompt that an answer repeats."""
_KEPT = re.compile("“(.+)” stays verbatim")
_SINCE = re.compile("since the prompt that begins with “(.+)”")
_DIGESTED = re.compile(r"Prompt at \d+: ")
"""The beginning of a prompt's line in a digest, which replaces a failed summary (`ikigai_actors.agent.turn.plan`)."""
_NOTE, _SUMMARY, _MERGE = "prompt: ", "<summary ", "<merge "
_NOTED = 200
"""The number of characters of a prompt that a summary contains."""
_LAST = 3
"""The number of prompts that an answer recalls besides the first one."""
_HINT = "I am the offline provider; set ANTHROPIC_API_KEY to talk to a model."


class OfflineProvider:
    """A provider without a model: answers with the earlier prompts of the agent, and makes the calls in a prompt.

    Args:
        pace: Seconds between two words.
    """

    name = "offline"
    counts = False

    def __init__(self, pace: float = 0.0) -> None:
        self.pace = check_seconds(pace, "pace")

    async def respond(self, request: Request, on_delta: OnDelta) -> Reply:
        """Make the calls that the latest prompt names; else answer with their results, or the earlier prompts."""
        pace = self.pace_of(request)
        prompt, replies = _latest_prompt(request)
        if prompt.startswith((SUMMARISE, REPORT)):
            notes = _notes(list(_prompts(request)), prompt)
            return Reply(text=notes, usage=_usage(request, notes), model=self.name)
        steps = _steps(prompt, len(request.messages))
        if isinstance(steps, list) and replies < len(steps):
            return Reply(tool_calls=steps[replies], stop_reason="tool_use", usage=_usage(request, ""), model=self.name)
        wrong = steps if isinstance(steps, str) else None
        text = wrong or (_results_of_calls(request) if replies else recall(list(_prompts(request))))
        for word in _WORD.findall(text):
            await asyncio.sleep(pace)  # also at pace 0: here it can be cancelled, and other agents get their turn
            on_delta(Delta(word))
        return Reply(text=text, usage=_usage(request, text), model=self.name)

    def pace_of(self, request: Request) -> float:
        """Return the seconds between the words of the answer to this request."""
        return self.pace or (SLOW_PACE if request.model == "slow" else _seconds_in(request.model))

    async def close(self) -> None:
        """Do nothing: there are no resources."""


def _seconds_in(model: str) -> float:
    """Return the pace that a model's name states, in seconds between words; 0 if the name is no number."""
    return min(float(model), MOST_PACE) if _PACE.fullmatch(model) else 0.0


def recall(prompts: list[str]) -> str:
    """Return the offline provider's answer to the last of these prompts, which names the earlier ones.

    Args:
        prompts: All prompts of the history, oldest first.

    Returns:
        A line or two of text.
    """
    match prompts:
        case []:
            return f"Nothing was said yet. {_HINT}"
        case [only]:
            return f"You said {_quoted(only)}. That is all I remember. {_HINT}"
    earlier = prompts[:-1]
    shown = [_quoted(prompt) for prompt in earlier]
    if len(earlier) > _LAST + 1:
        shown = [shown[0], f"{len(earlier) - _LAST - 1} more", *shown[-_LAST:]]
    return f"You said {_quoted(prompts[-1])}. I remember {len(prompts)} prompts; before it came {', '.join(shown)}."


def _latest_prompt(request: Request) -> tuple[str, int]:
    """Return the prompt to answer, and the number of replies to it so far. Texts that come with results are joined."""
    for back, message in enumerate(reversed(request.messages)):
        texts = [block["text"] for block in message["content"] if block["type"] == "text"]
        texts = [text for text in texts if not text.startswith(_MERGE)]
        if texts and message["role"] == "user":
            shown, _, prompt = texts[-1].partition(f"{OPEN_PROMPT}\n\n")
            if prompt and not shown:  # no request says how many replies it has had
                return prompt, len(_steps(prompt, 0)) if len(request.messages) > 1 else 0
            are_words = any(block["type"] == "tool_result" for block in message["content"])
            said = texts if are_words and not texts[-1].startswith((SUMMARISE, REPORT)) else texts[-1:]
            return "\n".join(said), back // 2
    return "", 0


def _steps(prompt: str, position: int) -> list[tuple[ToolCall, ...]] | str:
    """Return the calls that a prompt's lines request, by reply; or a text that says which call is wrong, and why."""
    steps: list[list[ToolCall]] = [[]]
    try:
        for line in prompt.splitlines():
            for name, arguments in _calls(line.strip()):
                if name == THEN:
                    steps.append([])
                else:
                    steps[-1].append(ToolCall(name, arguments, f"offline_{position}_{len(steps[-1])}"))
    except ValueError as error:
        return str(error)
    return [tuple(calls) for calls in steps if calls]


def _calls(line: str) -> list[tuple[str, dict[str, Any]]]:
    """Return the calls in a line; empty if the line has other text. Raises `ValueError` for wrong arguments."""
    calls: list[tuple[str, dict[str, Any]]] = []
    place, has_brackets = 0, False
    while (match := _CALL.match(line, place)) is not None:
        name, place = match["name"], match.end()
        arguments: Any = {}
        if line[place : place + 1] in ("{", "["):
            has_brackets = True
            try:
                arguments, place = json.JSONDecoder().raw_decode(line, place)
            except ValueError as error:
                raise ValueError(f"I cannot read the arguments of @{name} as JSON: {error}.") from error
        if not isinstance(arguments, dict):
            raise ValueError(f"The arguments of @{name} must be a JSON object, such as {{}}.")
        calls.append((name, arguments))
        place += len(line[place:]) - len(line[place:].lstrip())
    if place < len(line) and has_brackets:
        raise ValueError(f"I cannot read what follows the arguments of @{calls[-1][0]}: {_quoted(line[place:])}.")
    return calls if place == len(line) else []


def _results_of_calls(request: Request) -> str:
    uses = {block["id"]: block["name"] for block in request.messages[-2]["content"] if block["type"] == "tool_use"}
    results = [block for block in request.messages[-1]["content"] if block["type"] == "tool_result"]
    return "\n".join(
        f"{uses[block['tool_use_id']]} {'failed' if block.get('is_error') else 'gave'}: {block['content']}"
        for block in results
    )


def _quoted(prompt: str) -> str:
    line = _one_line(prompt)
    return f"“{line if len(line) <= _SHOWN else line[: _SHOWN - 1].rstrip() + '…'}”"


def _prompts(request: Request) -> Iterator[str]:
    for message in request.messages:
        for block in message["content"] if message["role"] == "user" else ():
            text = block["text"] if block["type"] == "text" else ""
            if text.startswith(_SUMMARY):
                yield from filter(None, map(_noted, text.splitlines()))
            elif text.startswith(_MERGE):
                yield f"of another agent: {_inside(text)}"
            elif text and text not in {OPENING, GO_ON} and not text.startswith((SUMMARISE, REPORT, OPEN_PROMPT)):
                yield text


def _noted(line: str) -> str | None:
    """Return the prompt in a line of a summary or a digest, where it may be cut; None if the line has none."""
    if line.startswith(_NOTE):
        try:
            return str(json.loads(line.removeprefix(_NOTE)))
        except ValueError:
            return line.removeprefix(f'{_NOTE}"')
    asked = _DIGESTED.match(line)
    return line[asked.end() :] if asked is not None else None


def _inside(tagged: str) -> str:
    return tagged.partition("\n")[2].rpartition("\n")[0]


def _notes(prompts: list[str], asked: str) -> str:
    """Return a summary: a line for each prompt before those that stay verbatim; long prompts are cut."""
    kept = _KEPT.search(asked)
    places = [
        place for place, prompt in enumerate(prompts) if kept is not None and _one_line(prompt).startswith(kept[1])
    ]
    noted = prompts[: places[-1]] if places else prompts
    if (since := _SINCE.search(asked)) is not None:
        first = [place for place, prompt in enumerate(prompts) if _one_line(prompt).startswith(since[1])]
        noted = prompts[first[-1] :] if first else prompts
    lines = (f"{_NOTE}{json.dumps(prompt[:_NOTED], ensure_ascii=False)}" for prompt in noted)
    return "\n".join(lines) or "Nothing yet."


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _usage(request: Request, answer: str) -> Usage:
    texts = [request.system]
    for message in request.messages:
        texts += [str(block.get("text") or block.get("content") or "") for block in message["content"]]
    return Usage(input_tokens=sum(len(text.split()) for text in texts), output_tokens=len(answer.split()))
