"""Traces and observations that Langfuse has exported, as JSON or JSON lines. Pure.

A file is a trace with its ``observations``, a list of observations, or an observation on each line. Field names are
those of Langfuse's API or of its exports to a blob storage. The generations of a session, or else of a trace, are the
requests of a conversation.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ikigai_actors.recordings.chats import RecordedChat, answered, chat_drafts, messages_in, usage_in
from ikigai_actors.recordings.recording import RecordedLine, Recording, objects_in, time_of
from ikigai_actors.verbs.upkeep.draft import Draft


def is_langfuse(line: Mapping[str, Any]) -> bool:
    """Return whether a line is an observation of Langfuse, or a trace with observations."""
    has = line.keys()
    return isinstance(line.get("observations"), list) or ("type" in has and bool(has & {"traceId", "trace_id"}))


def langfuse_drafts(recordings: Sequence[Recording], settings: Mapping[str, Any], models: bool) -> list[Draft]:
    """Return the agents of some files from Langfuse; see `ikigai_actors.recordings.chats.chat_drafts`."""
    groups: dict[str, list[tuple[int, RecordedLine, Mapping[str, Any]]]] = {}
    names: dict[str, str] = {}
    for recording in recordings:
        for line in recording.rows():
            if not is_langfuse(line.value):
                line.refuse("expected an observation, or a trace with observations")
            trace = line.part("trace") or line.value
            for observation in _observations_in(line):
                if observation.get("type") == "GENERATION":
                    at = time_of(_of(observation, "startTime", "start_time"))
                    session = (
                        _of(observation, "sessionId", "session_id")
                        or _of(trace, "sessionId")
                        or _of(observation, "traceId", "trace_id")
                    )
                    groups.setdefault(str(session), []).append((at, line, observation))
                    name = _of(observation, "traceName", "trace_name") or (
                        trace.get("name") if trace is not observation else None
                    )
                    names.setdefault(str(session), str(name or recording.stem))
    chats: list[RecordedChat] = []
    for group, observed in groups.items():
        conversation = RecordedChat(names[group])
        for at, line, observation in sorted(observed, key=lambda three: three[0]):
            asked = [replace(said, at=at) for said in messages_in(line, observation.get("input"))]
            made_by = _of(observation, "model", "providedModelName", "provided_model_name")
            cost = _of(observation, "totalCost", "total_cost", "calculatedTotalCost")
            usd = round(cost * 10**6) if isinstance(cost, int | float) and 0 <= cost < 10**6 else 0
            usage = usage_in(_of(observation, "usageDetails", "usage_details", "usage"))
            ended = time_of(_of(observation, "endTime", "end_time")) or at
            replied = messages_in(line, observation.get("output"), "assistant")
            model = f"{_provider_of(str(made_by))}:{made_by}" if made_by else ""
            if asked or replied:
                conversation.add([*asked, *answered(replied, ended, model, usage, usd)])
        if conversation.paths:
            chats.append(conversation)
    return chat_drafts(chats, "langfuse", settings, models)


def _observations_in(line: RecordedLine) -> Iterator[Mapping[str, Any]]:
    if "observations" in line.value:
        yield from objects_in(line.value["observations"])
    else:
        yield line.value


def _of(value: Mapping[str, Any], *names: str) -> Any:
    """Return the first value under one of these names that is not None; None if all are."""
    return next((value[name] for name in names if value.get(name) is not None), None)


def _provider_of(model: str) -> str:
    return "anthropic" if model.startswith("claude") else "google" if model.startswith("gemini") else "openai"
