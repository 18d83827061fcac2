"""What the official client of AG-UI does with a stream of events: refuse it, or show messages.

Rules of `verifyEvents` and `defaultApplyEvents` of `@ag-ui/client` 1.0.0, in the words of this project, for the events
that come without subagents and activities. `tests/doors/test_agui_client.py` compares both with the package.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Event = Mapping[str, Any]

OPENS = {
    "TEXT_MESSAGE_START": ("text", "messageId"),
    "TOOL_CALL_START": ("call", "toolCallId"),
    "REASONING_START": ("span", "messageId"),
    "REASONING_MESSAGE_START": ("thought", "messageId"),
    "STEP_STARTED": ("step", "stepName"),
}
"""The events that open something: what, and the field with its id."""

GOES_ON = {
    "TEXT_MESSAGE_CONTENT": ("text", "messageId"),
    "TOOL_CALL_ARGS": ("call", "toolCallId"),
    "REASONING_MESSAGE_CONTENT": ("thought", "messageId"),
}

CLOSES = {
    "TEXT_MESSAGE_END": ("text", "messageId"),
    "TOOL_CALL_END": ("call", "toolCallId"),
    "REASONING_MESSAGE_END": ("thought", "messageId"),
    "REASONING_END": ("span", "messageId"),
    "STEP_FINISHED": ("step", "stepName"),
}


class Refused(Exception):
    """The client throws."""


class Verifier:
    """Follows a stream, and raises `Refused` at the event that the client refuses."""

    def __init__(self) -> None:
        self._run = "none"
        self._open: set[tuple[str, str]] = set()

    def take(self, event: Event) -> None:
        kind = event["type"]
        self._check_run(kind)
        for table, is_there in ((OPENS, False), (GOES_ON, True), (CLOSES, True)):
            if kind in table:
                what, field = table[kind]
                if ((what, event[field]) in self._open) is not is_there:
                    raise Refused(f"{kind} of {event[field]!r}, which is {'not ' if is_there else ''}open")
        if kind in OPENS:
            self._open.add((OPENS[kind][0], event[OPENS[kind][1]]))
        if kind in CLOSES:
            self._open.discard((CLOSES[kind][0], event[CLOSES[kind][1]]))

    def _check_run(self, kind: str) -> None:
        if self._run == "failed" and kind != "RUN_STARTED":
            raise Refused(f"{kind} after RUN_ERROR")
        if self._run == "finished" and kind not in ("RUN_STARTED", "RUN_ERROR"):
            raise Refused(f"{kind} after RUN_FINISHED")
        if self._run == "none" and kind not in ("RUN_STARTED", "RUN_ERROR"):
            raise Refused(f"{kind} comes first")
        if kind == "RUN_STARTED":
            if self._run == "going":
                raise Refused("RUN_STARTED in a run")
            self._run, self._open = "going", set()
        if kind == "RUN_FINISHED":
            if self._open:
                raise Refused(f"RUN_FINISHED while {sorted(self._open)} are open")
            self._run = "finished"
        if kind == "RUN_ERROR":
            self._run = "failed"


class Shown:
    """The messages that a client shows, as its program reads them."""

    def __init__(self, messages: Iterable[Mapping[str, Any]] = ()) -> None:
        self.messages: list[dict[str, Any]] = [dict(message) for message in messages]
        self.interrupts: Sequence[Mapping[str, Any]] = ()
        """The questions that the latest run has left open."""

    def take(self, event: Event) -> None:
        match event["type"]:
            case "TEXT_MESSAGE_START":
                if self._message(event["messageId"]) is None:
                    self.messages.append({"id": event["messageId"], "role": event["role"], "content": ""})
            case "TEXT_MESSAGE_CONTENT":
                if (message := self._message(event["messageId"])) is not None:
                    message["content"] = message.get("content", "") + event["delta"]
            case "TOOL_CALL_START":
                self._start_call(event)
            case "TOOL_CALL_ARGS":
                if (call := self._call(event["toolCallId"])) is not None:
                    call["function"]["arguments"] += event["delta"]
            case "TOOL_CALL_RESULT":
                self._add_result(event)
            case "RUN_FINISHED":
                self.interrupts = event.get("outcome", {}).get("interrupts", ())

    def _message(self, name: str) -> dict[str, Any] | None:
        return next((message for message in self.messages if message["id"] == name), None)

    def _call(self, name: str) -> Any:
        return next((c for message in self.messages for c in message.get("toolCalls", ()) if c["id"] == name), None)

    def _start_call(self, event: Event) -> None:
        if (known := self._call(event["toolCallId"])) is not None:
            known["function"]["name"] = event["toolCallName"]
            return
        parent = self._message(event["parentMessageId"])
        if parent is None or parent["role"] != "assistant":
            name = event["parentMessageId"] if parent is None else event["toolCallId"]
            parent = {"id": name, "role": "assistant"}
            self.messages.append(parent)
        function = {"name": event["toolCallName"], "arguments": ""}
        parent.setdefault("toolCalls", []).append({"id": event["toolCallId"], "type": "function", "function": function})

    def _add_result(self, event: Event) -> None:
        result = {name: event[name] for name in ("toolCallId", "role", "content")} | {"id": event["messageId"]}
        place = len(self.messages)
        for number, message in enumerate(self.messages):
            if message["role"] == "assistant" and any(
                c["id"] == event["toolCallId"] for c in message.get("toolCalls", ())
            ):
                place = number + 1
                while place < len(self.messages) and self.messages[place]["role"] == "tool":
                    place += 1
                break
        self.messages.insert(place, result)
