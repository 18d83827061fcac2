"""The memory of agents: checks that summaries and requests have all facts that they must have, each once.

Facts are unique words in prompts and in the texts of summaries. The model ``facts`` of the kit answers the request for
a summary with the facts that it was sent. Each long result must be there, whole or as a reference, according to the
summaries in force. The checks share no code with the runtime's views.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ikigai_actors.providers.base import Request
from ikigai_actors.records.messages.messages import Kind, Message
from ikigai_actors.records.messages.replies import calls_in
from ikigai_actors.testing.machine.history_oracle import Copy, CopyingOracle
from ikigai_actors.testing.simulation.changes import StoredChange, Written
from ikigai_actors.testing.simulation.process import asks_for_summary
from ikigai_actors.testing.simulation.remote import LATE

LONG_RESULT = 2_000
"""The least characters of a result that may be replaced by a reference."""

_FACT = re.compile(r"FACT-\d+")
_REFERENCE = re.compile(r"\(\d+ KB; message (\d+): recall\(\1\) shows it\)")


def _ends_step(kind: str) -> bool:
    """Return whether a message of this kind ends a step, so that no earlier call gets a result after it."""
    return kind in (Kind.USER, Kind.INTERRUPTED, Kind.ERROR, Kind.REWIND, Kind.CLEAR)


def facts_in(text: str) -> list[str]:
    """Return the facts in a text."""
    return _FACT.findall(text)


class MemoryCheck:
    """Checks that summaries and requests have all facts that they must have, each once."""

    def __init__(
        self, oracle: CopyingOracle, turn_of: Callable[[str], int], broken: Callable[[str], None], facts: str
    ) -> None:
        """Make the check for a world that has no commits yet.

        Args:
            oracle: has every history before the current commit.
            turn_of: returns the position of the message that opened an agent's turn; 0 when none is open.
            broken: is called with each violation.
            facts: the model that replies with the facts that it got, ``provider:model``.
        """
        self._oracle, self._turn_of, self._broken, self._facts = oracle, turn_of, broken, facts

    def committed(self, changes: Sequence[StoredChange]) -> None:
        """Check the messages that a commit writes."""
        for change in changes:
            if isinstance(change, Written) and change.table == "messages":
                agent, position, kind, content, data = change.row[:5]
                facts: Mapping[str, Any] = json.loads(data or "{}")
                copy = self._oracle.histories.get(agent) or Copy()
                if kind == Kind.SUMMARY and content:
                    self._check_summary(agent, copy, position, content, facts)
                elif kind == Kind.FORK and "parent" in facts and "at" in facts and "by" not in facts:
                    self._check_settings(agent, facts, changes)
                elif kind == Kind.TOOL_RESULT and "recalled" in facts and not facts.get("is_error"):
                    self._check_recalled(agent, copy, content, facts["recalled"])

    def asked(self, request: Request) -> None:
        """Check the facts, the long results and the settings of a request before it is sent."""
        copy = self._oracle.histories.get(request.agent)
        if copy is None or asks_for_summary(request):
            return
        blocks = [block for message in request.messages for block in message["content"]]
        counts = Counter(facts_in(" ".join(block["text"] for block in blocks if block["type"] == "text")))
        due = Counter(fact for place in copy.shown for fact in _told_at(copy, place))
        if counts != due:
            self._broken(f"memory: agent {request.agent} is to know {dict(due)}, and its model gets {dict(counts)}")
        self._check_answered(request, copy)
        results = [_text(block) for block in blocks if block["type"] == "tool_result"]
        long = Counter(text for text in results if len(text) >= LONG_RESULT or _REFERENCE.fullmatch(text))
        if long != (expected := Counter(_long_results(copy))):
            short = [text[:60] for text in long - expected], [text[:60] for text in expected - long]
            self._broken(f"memory: agent {request.agent} is shown the long results {short[0]}, and not {short[1]}")
        own = copy.in_force and copy.in_force[-1].position > copy.fork
        if own and request.shared:
            self._broken(
                f"siblings: agent {request.agent} has a summary of its own, and shares {request.shared} blocks"
            )

    def _check_answered(self, request: Request, copy: Copy) -> None:
        """Check that a request does not end with an answered prompt, which the model would answer again.

        The birth of a trial may open one once more.
        """
        texts = [block["text"] for block in request.messages[-1]["content"] if block["type"] == "text"]
        prompts = [copy.written[place - 1] for place in copy.visible if copy.written[place - 1][1] == Kind.USER]
        turn = self._turn_of(request.agent)
        answered = {content for place, _, content, _ in prompts if place < turn}
        opened = {content for place, _, content, _ in prompts if place >= turn}
        if prompts and turn and copy.written[turn - 1][1] == Kind.FORK:
            opened.add(prompts[-1][2])
        if texts and texts[-1] in answered - opened:
            self._broken(f"memory: agent {request.agent} gets last what was answered: {texts[-1]!r}")

    def _check_summary(self, agent: str, copy: Copy, position: int, content: str, facts: Mapping[str, Any]) -> None:
        keep_from, prompt = facts["keep_from"], facts.get("prompt", 0)
        if content == LATE:
            self._broken(f"late: agent {agent} has a summary of a call that was cancelled")
        if _within_step(copy, keep_from - 1):
            self._broken(f"summary: agent {agent} keeps from {keep_from} on, and a step is in progress before it")
        turn = self._turn_of(agent)
        prompts = [place for place in copy.visible if place <= turn and copy.written[place - 1][1] == Kind.USER]
        open_now = prompts[-1] if turn and prompts and prompts[-1] < keep_from else 0
        if prompt != open_now and (turn or not _has_failed(copy)):
            self._broken(f"summary: agent {agent} shows the prompt at {prompt} as open, expected {open_now}")
        if facts.get("model") == self._facts and facts.get("how") == "model":
            text = copy.in_force[-1].text[:1] if copy.in_force else ()
            seen = [place for place in copy.shown if place <= facts["saw"] or place in text]
            due = {fact for place in seen for fact in _told_at(copy, place)}
            if (shown := set(facts_in(content))) != due:
                self._broken(f"summary: agent {agent} at {position} replaces {sorted(due)}, and has {sorted(shown)}")

    def _check_settings(self, agent: str, facts: Mapping[str, Any], changes: Sequence[StoredChange]) -> None:
        """Check that an agent forked at an earlier position has its parent's settings, unless a reply set others."""
        written, begun = self._oracle.histories[facts["parent"]].written, facts["at"]
        own = [tuple(change.row[1:5]) for change in changes if isinstance(change, Written) and change.row[0] == agent]
        has, due = settings_in([*written[:begun], *own]), settings_in(written)
        if has != due and all(has != due | settings for settings in _settings_of_forks(written)):
            self._broken(f"settings: agent {agent} is born with {has}, expected {due}")

    def _check_recalled(self, agent: str, copy: Copy, content: str, place: int) -> None:
        if place not in copy.visible:
            self._broken(f"recall: agent {agent} is shown message {place}, which counts no more")
        elif not content.startswith(copy.written[place - 1][2][:100]):
            self._broken(f"recall: agent {agent} is shown another message than that at {place}")


def _told_at(copy: Copy, place: int) -> list[str]:
    """Return the facts in a message that the agent's model gets as text."""
    _, kind, content, data = copy.written[place - 1]
    words = json.loads(data or "{}").get("words", ()) if kind == Kind.SUMMARY else ()
    text = " ".join((content, *(word["text"] for word in words)))
    return facts_in(text) if kind in (Kind.USER, Kind.STEER, Kind.ASSISTANT, Kind.SUMMARY, Kind.MERGE) else []


def settings_in(written: Sequence[tuple[Any, ...]]) -> dict[str, Any]:
    """Return the settings in force after messages (position, kind, content, data)."""
    settings: dict[str, Any] = {}
    for _, kind, _, data in written:
        if kind == Kind.CLEAR:
            settings = {}
        elif kind == Kind.CONFIGURE:
            settings |= json.loads(data or "{}")
    return {name: value for name, value in settings.items() if value is not None}


def _settings_of_forks(written: Sequence[tuple[Any, ...]]) -> list[dict[str, Any]]:
    """Return the settings that the latest reply, if it is a program's, gives to each child that it forks."""
    replies = (json.loads(data or "{}") for _, kind, _, data in reversed(written) if kind == Kind.ASSISTANT)
    reply: Mapping[str, Any] = next(replies, {})
    forks = (call["input"] for call in reply.get("tool_calls", ()) if call["name"] == "fork")
    return [{name: fork[name] for name in ("model", "system") if name in fork} for fork in forks]


def _text(block: Mapping[str, Any]) -> str:
    content = block["content"]
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def _long_results(copy: Copy) -> list[str]:
    """Return, for each long result, the text that the agent's model must get: the whole result, or a reference."""
    elide = copy.in_force[-1].elide if copy.in_force else 0
    results: list[str] = []
    for place in copy.shown:
        _, kind, content, data = copy.written[place - 1]
        if kind == Kind.TOOL_RESULT and len(content) >= LONG_RESULT:
            named = json.loads(data or "{}").get("recalled", place)
            reference = f"({len(content.encode()) / 1_000:.0f} KB; message {named}: recall({named}) shows it)"
            results.append(reference if place < elide else content)
    return results


def _within_step(copy: Copy, position: int) -> bool:
    """Return whether a position is within a step: a reply before it has calls without results so far."""
    results: set[str] = set()
    for place, kind, content, data in reversed(copy.written[:position]):
        facts: Mapping[str, Any] = json.loads(data or "{}")
        if _ends_step(kind) or (kind == Kind.FORK and "parent" in facts):
            return False
        if kind == Kind.TOOL_RESULT:
            results.add(facts["tool_use_id"])
        if kind == Kind.ASSISTANT:
            calls = calls_in(Message("", place, kind, content, facts, 0))
            return any(call.id not in results for call in calls)
    return False


def _has_failed(copy: Copy) -> bool:
    """Return whether the latest turn ended with an error, so that it can be resumed."""
    ends = [kind for _, kind, _, _ in copy.written if _ends_step(kind) or kind in (Kind.ASSISTANT, Kind.OUTPUT)]
    return bool(ends) and ends[-1] == Kind.ERROR
