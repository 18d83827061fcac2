"""OpenAI Agents SDK: an agent and a session for each worker; a run that was cut off is begun again on its session."""

import asyncio
import json
import sqlite3
import threading
from typing import Any

from agents import Agent, FunctionTool, Model, ModelResponse, RunConfig, Runner, SQLiteSession, Usage, function_tool
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

from benchmarks.durability import kit

PATH = f"{kit.STORE}/sessions.db"
CONFIG = RunConfig(tracing_disabled=True)
loop = asyncio.new_event_loop()
approved: dict[str, asyncio.Event] = {}
asking: set[str] = set()


class Scripted(Model):
    async def get_response(self, *rest: Any, **options: Any) -> ModelResponse:
        asked = options["input"]
        items = [{"role": "user", "content": asked}] if isinstance(asked, str) else asked
        reply = await asyncio.to_thread(kit.ask, chat(items))
        output: list[Any] = [
            ResponseFunctionToolCall(
                type="function_call", call_id=call_id, name=name, arguments=json.dumps(arguments), status="completed"
            )
            for call_id, name, arguments in kit.calls(reply)
        ]
        if not output:
            text = ResponseOutputText(type="output_text", text=reply["content"], annotations=[])
            message = {"id": "m", "type": "message", "role": "assistant", "status": "completed"}
            output = [ResponseOutputMessage.model_validate(message | {"content": [text.model_dump()]})]
        return ModelResponse(output=output, usage=Usage(), response_id=None)

    def stream_response(self, *rest: Any, **options: Any) -> Any:
        raise NotImplementedError


def chat(items: list[Any]) -> list[kit.Message]:
    """Items of the Responses API as chat completions have them; calls that come together are one reply."""
    sent: list[kit.Message] = []
    for item in items:
        if item.get("type") == "function_call":
            call = {
                "id": item["call_id"],
                "type": "function",
                "function": {"name": item["name"], "arguments": item["arguments"]},
            }
            if not (sent and "tool_calls" in sent[-1]):
                sent.append({"role": "assistant", "content": "", "tool_calls": []})
            sent[-1]["tool_calls"].append(call)
        elif item.get("type") == "function_call_output":
            sent.append(kit.result(item["call_id"], str(item["output"])))
        else:
            content = item["content"]
            text = content if isinstance(content, str) else "".join(part["text"] for part in content)
            sent.append({"role": item["role"], "content": text})
    return sent


def tools(run: str) -> list[FunctionTool]:
    @function_tool
    async def charge(run: str, worker: str) -> str:
        return await asyncio.to_thread(kit.charge, run, worker, f"{run}-{worker}")

    @function_tool(needs_approval=True)
    async def charge_big(run: str, worker: str) -> str:
        return await asyncio.to_thread(kit.charge, run, worker, f"{run}-{worker}")

    @function_tool
    async def pause(seconds: float) -> str:
        await asyncio.sleep(seconds)
        return "over"

    return [charge, charge_big, pause]


async def converse(agent: Agent[None], run: str, name: str, prompt: str) -> str:
    session = SQLiteSession(f"{run}-{name}", PATH)
    begun = await session.get_items()
    result = await Runner.run(agent, [] if begun else prompt, session=session, run_config=CONFIG)
    while result.interruptions:
        state = result.to_state()
        event = approved.setdefault(run, asyncio.Event())
        if not query("SELECT 1 FROM runs WHERE run = ? AND approved", run):  # resume:
            asking.add(run)
            await event.wait()
            asking.discard(run)
        for interruption in result.interruptions:
            state.approve(interruption)
        result = await Runner.run(agent, state, session=session, run_config=CONFIG)
    return str(result.final_output)


async def lead(run: str) -> None:
    @function_tool
    async def delegate(worker: str, prompt: str) -> str:
        return await converse(Agent(name=worker, model=Scripted(), tools=list(tools(run))), run, worker, prompt)

    boss = Agent(name="lead", model=Scripted(), tools=[delegate])
    words = await converse(boss, run, "lead", kit.prompt(run, "lead")["content"])
    query("UPDATE runs SET result = ? WHERE run = ?", words, run)  # resume:


def query(sql: str, *values: str) -> list[Any]:
    with sqlite3.connect(PATH) as connection:
        return connection.execute(sql, values).fetchall()


query("CREATE TABLE IF NOT EXISTS runs (run TEXT PRIMARY KEY, result TEXT, approved INT)")  # resume:


def start(run: str) -> None:
    query("INSERT INTO runs (run) VALUES (?)", run)  # resume:
    asyncio.run_coroutine_threadsafe(lead(run), loop)


def result(run: str) -> str | None:
    return next((words for (words,) in query("SELECT result FROM runs WHERE run = ?", run)), None)


def approve(run: str) -> bool:
    query("UPDATE runs SET approved = 1 WHERE run = ?", run)  # resume:
    loop.call_soon_threadsafe(approved.setdefault(run, asyncio.Event()).set)
    return True


threading.Thread(target=loop.run_forever, daemon=True).start()
for (each,) in query("SELECT run FROM runs WHERE result IS NULL"):  # resume:
    asyncio.run_coroutine_threadsafe(lead(each), loop)  # resume:
kit.serve(start=start, result=result, waiting=lambda run: run in asking, approve=approve)
