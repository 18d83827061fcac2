"""A provider of one's own, whole: Ollama's protocol, with streaming, tools, usage and errors."""

import json
from typing import Any

import httpx2

import ikigai_actors as ikigai
from ikigai_actors.providers import CallBlock, OnDelta, ResultBlock, TextBlock


class Ollama:
    name = "ollama"  # agents with the setting model="ollama:…" ask it

    def __init__(self, model: str, url: str = "http://127.0.0.1:11434") -> None:
        self.model, self._url, self._client = model, url, httpx2.AsyncClient(timeout=600)

    async def respond(self, request: ikigai.Request, on_delta: OnDelta) -> ikigai.Reply:
        tools = [{**tool, "parameters": tool["input_schema"]} for tool in request.tools]
        body = {"model": request.model or self.model, "messages": messages(request), "stream": True}
        body["tools"] = [{"type": "function", "function": tool} for tool in tools]
        text, calls, last = "", list[ikigai.ToolCall](), dict[str, Any]()
        try:
            async with self._client.stream("POST", f"{self._url}/api/chat", json=body) as response:
                async for line in response.aiter_lines():
                    last = json.loads(line)
                    if "error" in last:
                        busy = response.status_code in (429, 503)  # the next model may be asked, if there is one
                        raise ikigai.ProviderError(f"Ollama refuses: {last['error']}", text, unavailable=busy)
                    if piece := last["message"].get("content"):
                        text += piece
                        on_delta(ikigai.Delta(piece))  # shown while the reply is on its way
                    for call in last["message"].get("tool_calls", ()):
                        calls.append(ikigai.ToolCall(call["function"]["name"], call["function"]["arguments"]))
        except (httpx2.HTTPError, ValueError, LookupError) as error:
            raise ikigai.ProviderError(
                f"Ollama failed: {error!r}", text, broke_off=bool(text), unavailable=True
            ) from error
        if not last.get("done"):
            raise ikigai.ProviderError("The reply broke off.", text, broke_off=True)  # it is asked for again
        usage = ikigai.Usage(last.get("prompt_eval_count", 0), last.get("eval_count", 0))
        reason = "max_tokens" if last.get("done_reason") == "length" else "tool_use" if calls else "end_turn"
        return ikigai.Reply(text, tuple(calls), reason, usage, model=last["model"])

    async def close(self) -> None:
        await self._client.aclose()


def messages(request: ikigai.Request) -> list[dict[str, Any]]:
    sent: list[dict[str, Any]] = [{"role": "system", "content": request.system}] if request.system else []
    for message in request.conversation:
        results = [block for block in message.blocks if isinstance(block, ResultBlock)]
        texts = [block.text for block in message.blocks if isinstance(block, TextBlock)]
        uses = [block for block in message.blocks if isinstance(block, CallBlock)]
        sent += [{"role": "tool", "tool_name": result.name, "content": result.text} for result in results]
        if texts or uses:
            calls = [{"function": {"name": use.name, "arguments": dict(use.input)}} for use in uses]
            sent.append({"role": message.role, "content": "\n".join(texts), **({"tool_calls": calls} if calls else {})})
    return sent
