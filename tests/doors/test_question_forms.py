"""Questions of people at doors whose clients show forms: the form is shown, and what is filled in decides."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest
from mcp.client.session import ClientSession
from mcp.types import ElicitResult

from ikigai_actors import ActorSystem, BadInput, ScriptedProvider
from ikigai_actors.doors.mcp import CAPABILITIES_KEY
from ikigai_actors.reach.access import Access
from ikigai_actors.reach.shown_questions import ShownQuestion, answer_in, client_form
from ikigai_actors.verbs.acts import ACTS
from tests.doors.test_acp import Editor
from tests.doors.test_acp import play as play_editor
from tests.doors.test_agui import Browser
from tests.doors.test_agui import play as play_browser
from tests.kit.databases import eventually
from tests.kit.doors import STATELESS_META, McpClient, mcp_server, official, opened
from tests.kit.tool_scripts import calling, scripted

TRIP = {
    "type": "object",
    "properties": {
        "seats": {"type": "integer", "minimum": 1},
        "price": {"type": "number", "enum": [9.5, 20]},
    },
    "required": ["seats"],
}
ANSWER = {"seats": 2, "price": 9.5}
FILLED_IN = {"seats": 2, "price": "9.5"}
"""The answer as a client gives it: a choice among numbers is one among texts."""


def asks(form: Any = TRIP) -> Any:
    return calling(("ask_person", {"question": "Which seats?", **({} if form is None else {"form": form})}))


def provider() -> ScriptedProvider:
    return scripted([asks(), "booked"])


def answers(host: ActorSystem) -> list[Any]:
    """The answers that the models of a host have got."""
    histories = [host.handle(record.uuid).history() for record in host.agents()]
    return [message.data.get("answer") for log in histories for message in log if message.kind == "tool_result"]


def play(database: str, scene: Callable[[ActorSystem, Access], Coroutine[Any, Any, None]]) -> None:
    with opened(database, provider(), approvals="ask") as (host, access):
        asyncio.run(scene(host, access))


def of_earlier_era(
    content: Any, action: str = "accept"
) -> tuple[list[str], Callable[[Any, Any], Awaitable[ElicitResult]]]:
    """The messages that a user has seen, and the callback of a client whose user first gives what does not fit."""
    seen: list[str] = []

    async def fill_in(context: Any, params: Any) -> ElicitResult:
        seen.append(params.message)
        assert params.requested_schema["properties"]["price"]["enum"] == ["9.5", "20"]
        if action != "accept":
            return ElicitResult(action=action)  # type: ignore[arg-type]
        return ElicitResult(action="accept", content={"seats": 0} if len(seen) == 1 else content)

    return seen, fill_in


async def waited(session: ClientSession, seconds: float = 30) -> Any:
    """The turn that a wait gives of an agent that has asked."""
    begun = await session.call_tool("fork", {"prompt": "Book."})
    assert begun.structured_content is not None
    handles = [begun.structured_content["handle"]]
    over = await session.call_tool("wait", {"handles": handles, "seconds": seconds})
    assert over.structured_content is not None
    return over.structured_content["result"][0]


def test_a_client_shows_the_form_while_its_call_waits_and_again_when_it_does_not_fit(durable: str) -> None:
    async def scene(host: ActorSystem, access: Access) -> None:
        seen, fill_in = of_earlier_era(FILLED_IN)
        async with official(mcp_server(access), elicitation_callback=fill_in) as session:
            await session.initialize()
            assert (await waited(session))["text"] == "booked"
        assert [("Which seats?" in text, "seats" in text.partition("Which")[0]) for text in seen] == [
            (True, False),
            (True, True),
        ]
        assert answers(host) == [ANSWER]

    play(durable, scene)


@pytest.mark.sample(1, "ways to leave it")
@pytest.mark.parametrize(("action", "status"), [("cancel", "asks"), ("decline", "done")])
def test_a_user_may_leave_a_question_to_the_inbox_or_decline_it(
    new_sqlite: Callable[[], str], action: str, status: str
) -> None:
    async def scene(host: ActorSystem, access: Access) -> None:
        _, fill_in = of_earlier_era(None, action)
        async with official(mcp_server(access), elicitation_callback=fill_in) as session:
            await session.initialize()
            turn = await waited(session)
        assert turn["status"] == status
        if status == "asks":
            [question] = host.questions.pending()
            assert f"ikigai questions answer {question.id[:12]}" in turn["asks"][0]["waits"]

    play(new_sqlite(), scene)


def test_a_client_without_forms_hears_where_the_question_waits(new_sqlite: Callable[[], str]) -> None:
    async def scene(host: ActorSystem, access: Access) -> None:
        async with official(mcp_server(access)) as session:
            await session.initialize()
            turn = await waited(session)
        [question] = host.questions.pending()
        [asked] = turn["asks"]
        assert (asked["question"], "/v1/questions/answer" in asked["waits"]) == (question.id, True)
        with pytest.raises(BadInput, match="questions answer"):
            ACTS["decide"].call(access, {"agent": turn["agent"], "call": asked["call"], "allow": True})

    play(new_sqlite(), scene)


def test_a_client_of_the_later_era_calls_again_with_what_was_filled_in(new_sqlite: Callable[[], str]) -> None:
    meta = {**STATELESS_META, CAPABILITIES_KEY: {"elicitation": {}}}

    async def scene(host: ActorSystem, access: Access) -> None:
        client = McpClient(mcp_server(access))

        async def call(tool: str, arguments: Any, **more: Any) -> Any:
            return await client.ask("tools/call", name=tool, arguments=arguments, _meta=meta, **more)

        handle = (await call("fork", {"prompt": "Book."}))["structuredContent"]["handle"]
        waiting = {"handles": [handle], "seconds": 30}
        form = await call("wait", waiting)
        [(name, asked)] = form["inputRequests"].items()
        assert (form["resultType"], asked["method"]) == ("input_required", "elicitation/create")
        wrong = await call("wait", waiting, inputResponses={name: {"action": "accept", "content": {"seats": 0}}})
        assert "seats" in wrong["inputRequests"][name]["params"]["message"].partition("Which")[0]
        left = await call("wait", waiting, inputResponses={name: {"action": "cancel"}})
        assert left["structuredContent"]["result"][0]["status"] == "asks"
        done = await call("wait", waiting, inputResponses={name: {"action": "accept", "content": FILLED_IN}})
        assert done["structuredContent"]["result"][0]["text"] == "booked"
        again = await call("wait", waiting, inputResponses={name: {"action": "accept", "content": {"seats": 9}}})
        assert again["structuredContent"]["result"][0]["text"] == "booked"
        assert answers(host) == [ANSWER]

    play(new_sqlite(), scene)


@pytest.mark.parametrize("forms", [True, False])
def test_an_editor_shows_the_form_or_says_where_the_question_waits(new_sqlite: Callable[[], str], forms: bool) -> None:
    async def scene(host: ActorSystem, editor: Callable[[], Editor]) -> None:
        client = editor()
        capabilities: dict[str, Any] = {"elicitation": {"form": {}}} if forms else {}
        await client.ask("initialize", protocolVersion=1, clientCapabilities=capabilities)
        session = (await client.ask("session/new", cwd="/", mcpServers=[]))["sessionId"]
        turn = asyncio.get_running_loop().create_task(client.prompt(session, "book"))
        if forms:
            for content in ({"seats": 0}, FILLED_IN):
                asked = await client.heard.get()
                assert asked["method"] == "elicitation/create"
                assert "Which seats?" in asked["params"]["message"]
                client.say({"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "accept", "content": content}})
        else:
            while not (said := client.text(session, "agent_thought_chunk")):
                await asyncio.sleep(0.01)
            [question] = host.questions.pending()
            assert f"ikigai questions answer {question.id[:12]}" in said
            host.questions.answer(question.id, ANSWER)
        assert (await turn)["stopReason"] == "end_turn"
        assert answers(host) == [ANSWER]

    play_editor(new_sqlite(), scene, provider(), approvals="ask")


def test_a_run_ends_with_the_form_and_its_answer_goes_on_with_the_turn(new_sqlite: Callable[[], str]) -> None:
    async def scene(host: ActorSystem, browser: Browser) -> None:
        host.root.fork(name="kid")
        heard = await browser.run("kid", "go")
        [asked] = heard[-1][1]["outcome"]["interrupts"]
        assert (asked["reason"], asked["message"]) == ("input", "Which seats?")
        assert asked["responseSchema"]["required"] == ["seats"]
        wrong = [{"interruptId": asked["id"], "status": "resolved", "payload": {"seats": 0}}]
        refused = await browser.another().run("kid", run="r2", resume=wrong)
        assert (refused[0][1]["refused"], len(host.questions.pending())) == (400, 1)
        rest = await browser.decide("kid", "r3", FILLED_IN)
        assert rest[-1][1]["outcome"] == {"type": "success"}
        assert answers(host) == [ANSWER]

    each = ScriptedProvider(lambda request: "booked" if len(request.messages) > 1 else asks())
    play_browser(new_sqlite(), scene, each, approvals="ask")


@pytest.mark.parametrize(
    ("form", "content", "answer"),
    [
        (None, {"answer": "window"}, "window"),
        ({"type": "boolean"}, {"answer": False}, False),
        ({"type": "integer", "enum": [1, 2]}, {"answer": "2"}, 2),
        (TRIP, FILLED_IN, ANSWER),
    ],
)
def test_each_form_is_an_object_whose_content_is_the_answer(form: Any, content: Any, answer: Any) -> None:
    with ActorSystem.open(":memory:", scripted([asks(form), "booked"]), approvals="ask") as system:
        system.root.prompt("go")
        eventually(lambda: len(system.questions.pending()) == 1, "the question")
        question = ShownQuestion(system.questions.pending()[0], "ann")
        shown = client_form(question)
        assert (shown["type"], set(shown["properties"])) == ("object", set(content) | set(shown["properties"]))
        assert answer_in(question, content) == answer
        for wrong in ("window", {}, {"answer": None}, {"seats": "many"}):
            with pytest.raises(BadInput):
                answer_in(question, wrong)
