"""Calls that are answered from a record instead of being carried out.

With the setting ``effects``, calls of tools are not carried out, except of the named tools that only read. The setting
is committed with the birth of the agent, its children inherit it, and it cannot be removed. So the agent has no effects
outside, on whatever host it runs.

    {"record": [["price", {"tea": "Assam"}, "12", False]], "run": ["search"], "missing": "stop"}

With ``"files": "overlay"``, a named tool may change files, if it can only change the files that fork with the agent.

The k-th call of a tool with equal arguments since the birth gets the k-th such result of the record: the order between
different calls does not matter, and what was called twice has two results. A call that the record does not have ends
the turn (``stop``), or gets an error as its result (``tell``). The attachments of a result may follow it in the list.

With ``"imported": True`` another program has recorded the agent: it is no trial, and the setting can be removed.

With ``"once": True`` the first reply ends the turn, even if it lacks the value of a typed turn.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ikigai_actors.agent.turn.calls import GIVE_RESULT, Call, Calls, Progress
from ikigai_actors.agent.turn.skills import LOAD_SKILL
from ikigai_actors.providers.base import FIND_TOOLS
from ikigai_actors.records.messages.messages import Kind, Message
from ikigai_actors.records.messages.replies import calls_in
from ikigai_actors.tools.policy import ToolTraits

NOT_RECORDED = "This call is not in the record, and nothing runs here. Go on without it."
"""The result of a call that the record does not have."""


class RecordedResult(NamedTuple):
    """The result that a record has for a call of a tool."""

    content: str
    is_error: bool
    attached: Sequence[Mapping[str, Any]] = ()
    """The attachments, as in the data of the message."""


def from_record(effects: Mapping[str, Any], own: Iterable[Message], calls: Calls) -> Mapping[str, RecordedResult]:
    """Return the recorded results of the calls of an agent's latest reply, by id.

    Calls that the record lacks are left out.

    Args:
        own: the agent's own messages, including that reply.
        calls: the calls of that reply.
    """
    results: dict[tuple[str, str], list[RecordedResult]] = {}
    for name, arguments, *result in effects.get("record") or ():
        results.setdefault(_key(name, arguments), []).append(RecordedResult(*result))
    place = calls[0].reply if calls else 0
    made = Counter(
        _key(call.name, call.input)
        for message in own
        if message.kind == Kind.ASSISTANT and message.id < place
        for call in calls_in(message)
    )
    by_call: dict[str, RecordedResult] = {}
    for call in calls:
        key = _key(call.name, call.input)
        if made[key] < len(recorded := results.get(key, [])):
            by_call[call.id] = recorded[made[key]]
        made[key] += 1
    return by_call


def kept_in(effects: Mapping[str, Any], calls: Calls, tools: Mapping[str, ToolTraits]) -> Calls:
    """Return the calls that must get recorded results: those not begun, except calls of tools that may really run."""
    run, own_files = effects.get("run") or (), has_own_files(effects)
    return tuple(call for call in calls if call.progress in _BEFORE and not _may_run(call, run, own_files, tools))


def has_own_files(effects: Mapping[str, Any]) -> bool:
    """Return whether the agent's tools may change files that fork with the agent."""
    return effects.get("files") == "overlay"


_BEFORE = (Progress.WAITING, Progress.ASKING, Progress.APPROVED)


def _may_run(call: Call, run: Iterable[str], own_files: bool, tools: Mapping[str, ToolTraits]) -> bool:
    if call.name in (GIVE_RESULT, FIND_TOOLS, LOAD_SKILL):
        return call.name in tools  # one ends a typed turn, the others add to the next request: no more is done
    if call.name not in run or call.name not in tools:
        return False
    return tools[call.name].read_only or (own_files and tools[call.name].confined)


def _key(name: str, arguments: Any) -> tuple[str, str]:
    return name, json.dumps(arguments, sort_keys=True, ensure_ascii=False)
