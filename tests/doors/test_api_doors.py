"""MCP, AG-UI and metrics at the network API: by the same tokens, each with its rights and its branch."""

import json
from collections.abc import Callable
from typing import Any

import httpx2
from mcp.types import METHOD_NOT_FOUND

from ikigai_actors import FunctionProvider, Reply, ToolCall
from ikigai_actors.api import Principal
from ikigai_actors.doors.mcp import CAPABILITIES_KEY, TASKS
from tests.doors.test_agui import asks_once, launch
from tests.doors.test_api import Stage, staged
from tests.kit.blocking_provider import Gate
from tests.kit.doors import STATELESS_META


def tool_call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}}


async def called(client: httpx2.AsyncClient, who: str, name: str, **arguments: Any) -> Any:
    """What a tool gives to a principal; the text of its refusal."""
    answer = await client.post("/mcp", json=tool_call(name, **arguments), headers={"Authorization": f"Bearer {who}"})
    body = answer.json()
    return body.get("error", {}).get("message") or body["result"].get("structuredContent", body["result"]["content"])


def branch_of(stage: Stage, name: str, *roles: str) -> None:
    """A principal of the same name as the topmost agent that it reaches."""
    stage.principals[name] = Principal(name, name, frozenset(roles), stage.host.agent(name).uuid)


def test_a_client_of_mcp_has_the_tools_of_its_right_and_the_agents_of_its_branch(durable: str) -> None:
    with staged(durable) as stage:
        branch_of(stage, "kid", "prompt")
        branch_of(stage, "other", "prompt")

        async def work(client: httpx2.AsyncClient) -> None:
            listed = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
            offered = {}
            for who in ("eve", "kid", "op"):
                answer = await client.post("/mcp", json=listed, headers={"Authorization": f"Bearer {who}"})
                offered[who] = {tool["name"] for tool in answer.json()["result"]["tools"]}
            assert "history" in offered["eve"]
            assert not {"prompt", "kill"} & offered["eve"]
            assert {"prompt", "fork"} <= offered["kid"] - {"decide", "kill", "grant"}
            assert {"decide", "kill", "grant"} <= offered["op"]
            assert "Unknown tool" in await called(client, "eve", "prompt", agent="kid", text="tea")
            assert "Unknown tool" in await called(client, "kid", "kill", agent="kid")
            for who in ("kid", "other"):
                result = await called(client, who, "prompt", agent=who, text=f"tea for {who}", key="k")
                assert result["handle"].startswith(stage.host.agent(who).uuid)
                again = await called(client, who, "prompt", agent=who, text=f"tea for {who}", key="k")
                assert result["handle"] == again["handle"]
            [refused] = await called(client, "kid", "prompt", agent="other", text="tea")
            [unknown] = await called(client, "kid", "prompt", agent="nobody", text="tea")
            assert refused["text"].replace("other", "nobody") == unknown["text"]
            assert (await client.post("/mcp", json=listed, headers={"Authorization": "Bearer x"})).status_code == 401
            assert (await client.get("/mcp")).status_code == 405

        stage.run(work)
        for who in ("kid", "other"):
            stage.host.agent(who).prompt("and then?").get(timeout=60)
            said = [message for message in stage.host.agent(who).history() if message.kind == "user"]
            assert [message.content for message in said] == [f"tea for {who}", "and then?"]
            assert said[0].data["principal"] == who


def test_a_run_of_agui_needs_the_right_to_prompt_and_a_decision_the_right_to_approve(
    new_sqlite: Callable[[], str],
) -> None:
    provider = FunctionProvider(asks_once)
    with staged(new_sqlite(), provider, tools=[launch], approvals="ask") as stage:
        branch_of(stage, "kid", "prompt")

        async def run(client: httpx2.AsyncClient, who: str, **more: Any) -> tuple[int, list[dict[str, Any]]]:
            asked = {"threadId": "t", "runId": "r1", "messages": [{"id": "1", "role": "user", "content": "go"}], **more}
            answer = await client.post("/agui/kid", json=asked, headers={"Authorization": f"Bearer {who}"})
            lines = [line[6:] for line in answer.text.splitlines() if line.startswith("data: ")]
            return answer.status_code, [json.loads(line) for line in lines]

        async def work(client: httpx2.AsyncClient) -> None:
            assert (await run(client, "eve"))[0] == 403
            status, heard = await run(client, "kid")
            assert status == 200
            [asks] = heard[-1]["outcome"]["interrupts"]
            resume = [{"interruptId": asks["id"], "status": "resolved", "payload": {"approved": True}}]
            assert (await run(client, "kid", runId="r2", resume=resume))[0] == 403
            status, heard = await run(client, "op", runId="r2", resume=resume)
            assert (status, heard[-1]["type"]) == (200, "RUN_FINISHED")
            anna = {"Authorization": "Bearer kid"}
            assert (await client.get("/agui/other", headers=anna)).status_code == 404
            assert (await client.post("/agui/other", json={"runId": "r"}, headers=anna)).status_code == 400

        stage.run(work)
        assert [message.data["by"] for message in stage.host.agent("kid").history() if "by" in message.data] == ["op"]


def test_a_call_is_decided_by_those_alone_whom_its_question_asks(durable: str) -> None:
    with staged(durable, FunctionProvider(asks_once), tools=[launch], approvals="ask") as stage:
        stage.host.agent("kid").configure(questions={"to": ["role:lead"]})
        stage.principals["anna"] = Principal("anna", "Anna", frozenset({"approve"}))
        stage.principals["bob"] = Principal("bob", "Bob", frozenset({"approve", "lead"}))

        async def work(client: httpx2.AsyncClient) -> None:
            anna, bob = ({"Authorization": f"Bearer {who}"} for who in ("anna", "bob"))
            run = {"threadId": "t", "runId": "r1", "messages": [{"id": "1", "role": "user", "content": "go"}]}
            heard = (await client.post("/agui/kid", json=run, headers=anna)).text.splitlines()
            [asks] = json.loads([line[6:] for line in heard if line.startswith("data: ")][-1])["outcome"]["interrupts"]
            call = {"call": asks["id"]}
            resume = [{"interruptId": asks["id"], "status": "resolved", "payload": {"approved": True}}]
            again = {**run, "runId": "r2", "resume": resume}
            question = (await client.get("/v1/questions/list", headers=anna)).json()["value"][0]["question"]
            for path, body in (
                ("/v1/agents/kid/approve", call),
                ("/v1/agents/kid/deny", call),
                ("/v1/questions/answer", {"question": question, "answer": "allow"}),
                ("/agui/kid", again),
            ):
                refused = await client.post(path, json=body, headers=anna)
                assert (refused.status_code, "role:lead" in refused.text) == (403, True), path
            [refused] = await called(client, "anna", "decide", agent="kid", allow=True, **call)
            assert "role:lead" in refused["text"]
            assert len(stage.host.questions.pending()) == 1
            assert (await client.post("/v1/agents/kid/approve", json=call, headers=bob)).json()["value"]["decided"]

        stage.run(work)
        assert [message.data["by"] for message in stage.host.agent("kid").history() if "by" in message.data] == ["bob"]


def test_a_run_takes_an_answer_of_a_principal_that_is_asked_and_may_only_prompt(new_sqlite: Callable[[], str]) -> None:
    def answer(request: Any) -> Reply | str:
        asks = ToolCall("ask_person", {"question": "Tea?", "to": ["principal:kid"]}, "1")
        return "done" if "tool_result" in str(request.messages[-1]) else Reply("", (asks,), "tool_use")

    with staged(new_sqlite(), FunctionProvider(answer), approvals="ask") as stage:
        branch_of(stage, "kid", "prompt")
        stage.principals["anna"] = Principal("anna", "Anna", frozenset({"approve"}))

        async def work(client: httpx2.AsyncClient) -> None:
            async def run(who: str, **more: Any) -> tuple[int, Any]:
                asked = {"threadId": "t", "runId": "1", "messages": [{"id": "1", "role": "user", "content": "go"}]}
                headers = {"Authorization": f"Bearer {who}"}
                response = await client.post("/agui/kid", json={**asked, **more}, headers=headers)
                heard = [line[6:] for line in response.text.splitlines() if line.startswith("data: ")]
                return response.status_code, json.loads(heard[-1]) if heard else response.text

            [asks] = (await run("kid"))[1]["outcome"]["interrupts"]
            resume = [{"interruptId": asks["id"], "status": "resolved", "payload": {"answer": "green"}}]
            assert (await run("anna", runId="2", resume=resume))[0] == 403
            assert (await run("eve", runId="2", resume=resume))[0] == 403
            status, end = await run("kid", runId="2", resume=resume)
            assert (status, end["outcome"]) == (200, {"type": "success"})

        stage.run(work)


def test_a_client_of_mcp_reads_and_ends_no_turn_of_another_branch_by_its_handle(durable: str) -> None:
    gate = Gate("done")
    meta = {**STATELESS_META, CAPABILITIES_KEY: {"extensions": {TASKS: {}}}}
    with staged(durable, gate.provider) as stage:
        branch_of(stage, "kid", "prompt")
        branch_of(stage, "other", "operate")

        async def work(client: httpx2.AsyncClient) -> None:
            begun = await called(client, "kid", "prompt", agent="kid", text="tea", key="k")
            [unknown] = await called(client, "other", "wait", handles=["A" * 22 + "/m1"])
            [refused] = await called(client, "other", "wait", handles=[begun["handle"]])
            assert refused["text"].replace(begun["handle"].partition("/")[0], "A" * 22) == unknown["text"]
            for method in ("tasks/get", "tasks/update", "tasks/cancel"):
                params = {"taskId": begun["handle"], "inputResponses": {}, "_meta": meta}
                message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
                for who in ("other", "kid", "op"):
                    answer = await client.post("/mcp", json=message, headers={"Authorization": f"Bearer {who}"})
                    assert answer.json()["error"]["code"] == METHOD_NOT_FOUND
            assert (await client.get(f"/v1/turns/{begun['handle']}")).json()["status"] == "working"
            gate.open()

        stage.run(work)


def test_metrics_are_for_who_reaches_all_agents(new_sqlite: Callable[[], str]) -> None:
    with staged(new_sqlite()) as stage:
        branch_of(stage, "kid", "operate")

        async def work(client: httpx2.AsyncClient) -> None:
            for who, status in (("eve", 200), ("kid", 403), ("x", 401)):
                answer = await client.get("/metrics", headers={"Authorization": f"Bearer {who}"})
                assert answer.status_code == status
                assert ("ikigai_hosts{" in answer.text) is (status == 200)

        stage.run(work)
