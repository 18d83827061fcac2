"""Assembly in tests: of messages without a log, and in its simplest form, to compare with.

`assemble` plants messages as logs of a child and of its parent, and has the product make the request. `replayed` is the
oracle: it makes the messages of a request from the folded history, anew each time.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ikigai_actors.agent.assembly import conversation_of, shared_blocks
from ikigai_actors.agent.turn import request as product
from ikigai_actors.agent.turn.request import NO_BLOBS, NO_OUTPUT, NOT_RUN
from ikigai_actors.providers.base import GO_ON, OPENING, Request
from ikigai_actors.providers.blocks import THINKING
from ikigai_actors.records.log.log import Log
from ikigai_actors.records.messages.messages import CONVERSATION, Kind, Message
from ikigai_actors.records.messages.replies import calls_in
from ikigai_actors.records.messages.reply_data import INTERRUPTED, new_call_id


def request_of(log: Log, head: int, settings: Mapping[str, Any], *, model: str, **options: Any) -> Request:
    """The request that an agent with this log sends."""
    conversation = conversation_of(log, head, model)
    return product.assemble(conversation, settings, model=model, shared=shared_blocks(log, head, model), **options)


def assemble(
    conversation: Iterable[Message],
    settings: Mapping[str, Any],
    *,
    agent: str,
    name: str | None,
    model: str,
    tools: Sequence[Mapping[str, Any]] = (),
    fork: int = 0,
    blobs: Mapping[str, bytes] = NO_BLOBS,
) -> Request:
    """The request for a folded history, whose positions may have gaps."""
    known = {message.id: message for message in conversation if message.kind in CONVERSATION}
    head = max([fork, *known])
    full = [known.get(place, Message(agent, place, "gap", "", {}, 0)) for place in range(1, head + 1)]
    log = Log(agent, fork, Log("parent", 0, None, full[:fork]) if fork else None, full[fork:])
    return request_of(log, head, settings, agent=agent, name=name, model=model, tools=tools, blobs=blobs)


def replayed(
    conversation: Sequence[Message], model: str, fork: int, compacted: int = 0
) -> tuple[list[dict[str, Any]], int]:
    """The messages of the request for a folded history, and how many blocks are shared.

    ``compacted``: where the summary in force stands, 0 for none; its text is the first of the conversation.
    """
    summary = next((message for message in conversation if message.kind == Kind.SUMMARY), None)
    made: list[tuple[str, Mapping[str, Any]]] = []
    sent: set[str] = set()
    shared = 0
    turns: list[tuple[Message | None, list[Message]]] = [(None, [])]
    for message in conversation:
        if message.kind == Kind.ASSISTANT and _sendable(message, model):
            turns.append((message, []))
        elif message.kind in CONVERSATION or message is summary:
            turns[-1][1].append(message)
    for reply, followed in turns:
        answers: list[tuple[str, str, str]] = []
        if reply is not None:
            made += [] if made else [("user", {"type": "text", "text": OPENING})]
            for position, call in enumerate(calls_in(reply)):
                wanted = call.id
                if not (wanted.isascii() and wanted.replace("_", "a").replace("-", "a").isalnum()) or wanted in sent:
                    wanted = new_call_id(reply.id, position, sent.__contains__)
                sent.add(wanted)
                answers.append((call.id, wanted, call.name))
            uses = iter(zip(calls_in(reply), answers, strict=True))
            for block in _sendable(reply, model):
                if block["type"] == "tool_use":
                    call, (_, sent_id, called) = next(uses)
                    inputs = call.input if isinstance(call.input, Mapping) else {}
                    named = "".join(
                        char if char.isascii() and (char.isalnum() or char in "_-") else "_" for char in called
                    )
                    block = {**block, "id": sent_id, "name": named[:128] or "_", "input": inputs}
                made.append(("assistant", block))
            shared = len(made) if reply.id <= fork else shared
        results = {
            str(result.data.get("tool_use_id")): result
            for result in reversed(followed)
            if result.kind == Kind.TOOL_RESULT
        }
        for own, sent_id, _ in sorted(answers, key=lambda answer: answer[2] == "fork"):
            made.append(("user", _result(sent_id, results.get(own))))
        for entry in followed:
            if entry is summary:
                about = (
                    f"messages up to {entry.data['keep_from'] - 1} of agent {entry.data.get('name', entry.agent_uuid)}"
                )
                written = entry.content.replace("</summary", "&lt;/summary")
                made.append(("user", {"type": "text", "text": f'<summary of="{about}">\n{written}\n</summary>'}))
            elif summary is not None and entry.id == summary.data["prompt"]:
                text = f"The prompt that was being worked on at this point, verbatim:\n\n{entry.content}"
                made += [("user", {"type": "text", "text": text})] if entry.content.strip() else []
            elif entry.kind == Kind.MERGE:
                data, text = entry.data, entry.content.replace("</merge", "&lt;/merge")
                which = f"{data.get('since', 0) + 1}–{data.get('head', 0)}"
                about = f'from="{data.get("name", data.get("from"))}" messages="{which}"'
                made.append(("user", {"type": "text", "text": f"<merge {about}>\n{text}\n</merge>"}))
            elif entry.kind == Kind.CONTEXT:
                text = entry.content.replace("</context", "&lt;/context")
                hook = entry.data.get("hook", "hook")
                made.append(("user", {"type": "text", "text": f'<context from="{hook}">\n{text}\n</context>'}))
            elif entry.kind in (Kind.USER, Kind.MAIL, Kind.REPAIR) and entry.content.strip():
                made.append(("user", {"type": "text", "text": entry.content}))
    if not made or made[-1][0] == "assistant":
        made.append(("user", {"type": "text", "text": GO_ON}))
    joined: list[dict[str, Any]] = []
    for role, block in made:
        if not joined or joined[-1]["role"] != role:
            joined.append({"role": role, "content": []})
        joined[-1]["content"].append(block)
    return joined, 0 if compacted > fork else shared


def _sendable(reply: Message, model: str) -> list[Mapping[str, Any]]:
    data = reply.data
    blocks: list[Mapping[str, Any]] = [{"type": "text", "text": reply.content}]
    if data.get("stop_reason") != INTERRUPTED:
        blocks = data.get("blocks") or blocks + [{"type": "tool_use"} for _ in data.get("tool_calls") or ()]
    kept = [block for block in blocks if block["type"] != "text" or block["text"].strip()]
    kept = [block for block in kept if block["type"] not in THINKING or data.get("model") == model]
    if str(data.get("model")).partition(":")[0] != model.partition(":")[0]:
        kept = [block for block in kept if block["type"] in ("text", "tool_use")]
    while kept and kept[-1]["type"] in THINKING:
        kept.pop()
    return kept


def _result(call_id: str, message: Message | None) -> dict[str, Any]:
    if message is None:
        return {"type": "tool_result", "tool_use_id": call_id, "content": NOT_RUN, "is_error": True}
    block = {"type": "tool_result", "tool_use_id": call_id, "content": message.content.strip() and message.content}
    block["content"] = block["content"] or NO_OUTPUT
    return {**block, "is_error": True} if message.data.get("is_error") else block
