"""The OpenAPI 3.1 document: every operation of the verbs, and further routes of the application."""

from collections.abc import Mapping
from typing import Any

from ikigai_actors.doors.api.operations import Operation, operations
from ikigai_actors.reach.turns import STATUSES

_Schema = Mapping[str, Any]

_TEXT: _Schema = {"type": "string"}
_NUMBER: _Schema = {"type": "integer"}
_PROBLEM: _Schema = {"$ref": "#/components/responses/Problem"}
_WAIT: _Schema = {
    "name": "wait",
    "in": "query",
    "description": "Answer when it is over, or after this many seconds.",
    "schema": {"type": "number", "minimum": 0, "maximum": 60},
}
_AFTER: _Schema = {
    "name": "after",
    "in": "query",
    "description": "Only messages after this position.",
    "schema": {"type": "integer", "minimum": 0, "default": 0},
}
_UNDER: _Schema = {
    "name": "under",
    "in": "query",
    "description": "Of this agent and those below it.",
    "schema": _TEXT,
}
_PLACE: _Schema = {
    "name": "after",
    "in": "query",
    "description": "Only events after this id of an earlier stream.",
    "schema": _TEXT,
}
_LIMIT: _Schema = {
    "name": "limit",
    "in": "query",
    "schema": {"type": "integer", "minimum": 1, "maximum": 200, "default": 50},
}
_LAST: _Schema = {
    "name": "Last-Event-ID",
    "in": "header",
    "description": "The id of the latest event that came, to go on after it.",
    "schema": _TEXT,
}


def openapi_page(server: str) -> dict[str, Any]:
    """Return the OpenAPI document of the API; ``server`` is the address of the API for its clients."""
    paths: dict[str, dict[str, Any]] = dict(_lists())
    for operation in operations().values():
        paths[operation.path] = _verb(operation)
    paths |= _files()
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "ikigai",
            "version": "1",
            "description": "Agents that fork and remember.",
        },
        "servers": [{"url": server}],
        "security": [{"token": []}],
        "paths": paths,
        "components": _components(),
    }


def _verb(operation: Operation) -> dict[str, Any]:
    summary, _, rest = operation.verb.help.partition("\n")
    schema = operation.schema
    content = {"application/json": {"schema": dict(schema)}}
    post = {
        "operationId": operation.id,
        "summary": summary,
        "description": rest.strip(),
        "parameters": [{"$ref": "#/components/parameters/Key"}],
        "requestBody": {"required": bool(schema["required"]), "content": content},
        "responses": {"200": _gives("Answer"), "default": _PROBLEM},
    }
    if operation.verb.opens_turn or operation.verb.waits:
        post["responses"] = {"200": _gives("Answer"), "202": _gives("Answer"), "default": _PROBLEM}
    if operation.verb.opens_turn:
        post["parameters"] = [{"$ref": "#/components/parameters/Key"}, {"$ref": "#/components/parameters/Prefer"}]
    get = {
        "operationId": f"look_{operation.id}",
        "summary": f"{summary} Refused where it would change something.",
        "parameters": [
            {"name": name, "in": "query", "required": name in schema["required"], "schema": dict(parameter)}
            for name, parameter in schema["properties"].items()
        ],
        "responses": {"200": _gives("Answer"), "default": _PROBLEM},
    }
    return {"parameters": [_path("agent", _AGENT)] if operation.of_agent else [], "get": get, "post": post}


_AGENT = "A name, a uuid, or the beginning of one; ~ is the topmost agent in reach."


def _lists() -> Mapping[str, dict[str, Any]]:
    agent = [_path("agent", _AGENT)]
    turn = [
        _path("agent", "The uuid of the agent."),
        _path("turn", "The end of its handle: m7, t17, r3.0."),
    ]
    request = [_path("agent", "The uuid of the agent."), _path("request", "The number of the request.")]
    cursor = {"name": "cursor", "in": "query", "description": "The next of an earlier page.", "schema": _TEXT}
    return {
        "/v1/agents": {"get": _get("agents", "List the living agents in reach.", "Agents", [cursor, _LIMIT])},
        "/v1/agents/{agent}": {"parameters": agent, "get": _get("agent", "Show an agent.", "Agent", [])},
        "/v1/agents/{agent}/messages": {
            "parameters": agent,
            "get": _get("messages", "List the messages of an agent's history.", "Messages", [_AFTER, _LIMIT]),
        },
        "/v1/agents/{agent}/events": {
            "parameters": agent,
            "get": _stream("events", "Stream the messages of an agent, and those to come.", [_AFTER, _LAST]),
        },
        "/v1/events": {"get": _stream("branch_events", "Stream what all agents in reach do.", [_UNDER, _PLACE, _LAST])},
        "/v1/turns/{agent}/{turn}": {"parameters": turn, "get": _get("turn", "Show a turn.", "Turn", [_WAIT])},
        "/v1/turns/{agent}/{turn}/events": {
            "parameters": turn,
            "get": _stream("turn_events", "Stream the messages of a turn until it is over.", [_AFTER, _LAST]),
        },
        "/v1/requests/{agent}/{request}": {
            "parameters": request,
            "get": _get("request", "Show what a busy agent was asked to do after its turn.", "Request", [_WAIT]),
        },
        "/healthz": {"get": {**_get("health", "Whether the server answers.", "Status", []), "security": []}},
        "/readyz": {"get": {**_get("ready", "Whether a host runs the agents.", "Status", []), "security": []}},
    }


def _files() -> Mapping[str, dict[str, Any]]:
    raw = {"*/*": {"schema": {"type": "string", "format": "binary"}}}
    named = {"name": "name", "in": "query", "description": "The name for models.", "schema": _TEXT}
    of_agent = {"name": "agent", "in": "query", "description": "An agent that has it in a message.", "schema": _TEXT}
    of_message = {"name": "message", "in": "query", "description": "The id of that message.", "schema": _NUMBER}
    return {
        "/v1/files": {
            "post": {
                "operationId": "upload",
                "summary": "Upload a picture, PDF or sound, as its bytes are.",
                "parameters": [{"$ref": "#/components/parameters/Key"}, named],
                "requestBody": {"required": True, "content": raw},
                "responses": {"200": _gives("File"), "201": _gives("File"), "default": _PROBLEM},
            }
        },
        "/v1/files/{sha256}": {
            "parameters": [_path("sha256", "The hash of the bytes.")],
            "get": {
                "operationId": "download",
                "summary": "Give the bytes of an upload, or of a file of a message.",
                "parameters": [of_agent, of_message],
                "responses": {"200": {"description": "The bytes.", "content": raw}, "default": _PROBLEM},
            },
        },
    }


def _get(name: str, summary: str, schema: str, parameters: list[_Schema]) -> dict[str, Any]:
    return {
        "operationId": name,
        "summary": summary,
        "parameters": parameters,
        "responses": {"200": _gives(schema), "default": _PROBLEM},
    }


def _stream(name: str, summary: str, parameters: list[_Schema]) -> dict[str, Any]:
    content = {"text/event-stream": {"schema": _TEXT}}
    events = "Events: message, piece, cut, turn, died, bye. Those with an id can be gone on from."
    return {
        "operationId": name,
        "summary": summary,
        "parameters": parameters,
        "responses": {"200": {"description": events, "content": content}, "default": _PROBLEM},
    }


def _path(name: str, description: str) -> _Schema:
    return {"name": name, "in": "path", "required": True, "description": description, "schema": _TEXT}


def _gives(schema: str) -> _Schema:
    content = {"application/json": {"schema": {"$ref": f"#/components/schemas/{schema}"}}}
    return {"description": schema, "content": content}


def _object(required: str, **properties: _Schema) -> _Schema:
    return {"type": "object", "required": required.split(), "properties": properties}


def _list_of(schema: str) -> _Schema:
    items = {"type": "array", "items": {"$ref": f"#/components/schemas/{schema}"}}
    return _object("items next", items=items, next={"type": ["string", "null"]})


def _components() -> dict[str, Any]:
    perhaps = {"type": ["string", "null"]}
    spent = _object("tokens usd", tokens=_NUMBER, usd={"type": "number"})
    turn = {"$ref": "#/components/schemas/Turn"}
    handle = {**_TEXT, "description": "The handle of the turn that follows: agent and turn of /v1/turns."}
    problem = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return {
        "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        "parameters": {
            "Key": {
                "name": "Idempotency-Key",
                "in": "header",
                "description": "New for each new request. The same request again under it does nothing, and has the "
                "same answer.",
                "schema": {"type": "string", "minLength": 1, "maxLength": 200},
            },
            "Prefer": {
                "name": "Prefer",
                "in": "header",
                "description": "wait=20: answer when the turn is over, or after this many seconds.",
                "schema": _TEXT,
            },
        },
        "responses": {"Problem": {"description": "The reason of a refusal.", "content": problem}},
        "schemas": {
            "Answer": _object("value text", value={}, text=_TEXT, turn=handle, outcome=turn),
            "Agent": _object(
                "agent name state", agent=_TEXT, name=perhaps, state=_TEXT, supervisor=perhaps, created_at=_NUMBER,
                ended_at={"type": ["integer", "null"]}, unread=_NUMBER, spent=spent,
            ),
            "Agents": _list_of("Agent"),
            "Message": _object(
                "agent id kind content data at", agent=_TEXT, id=_NUMBER, kind=_TEXT, content=_TEXT,
                data={"type": "object"}, at=_NUMBER,
            ),
            "Messages": _list_of("Message"),
            "Turn": _object(
                "handle agent status", handle=_TEXT, agent=_TEXT, name=perhaps, status={"enum": [*STATUSES]},
                text=_TEXT, error=_TEXT, asks={"type": "array", "items": {"type": "object"}}, spent=spent,
            ),
            "Request": _object(
                "agent request status", agent=_TEXT, request=_NUMBER, status={"enum": ["working", "done", "failed"]},
                error=_TEXT, answer={},
            ),
            "File": _object(
                "sha256 media size name", sha256=_TEXT, media=_TEXT, size=_NUMBER, name=_TEXT, pixels=_NUMBER
            ),
            "Status": _object("status", status=_TEXT),
            "Problem": _object(
                "type title status detail", type=_TEXT, title=_TEXT, status=_NUMBER, detail=_TEXT, agent=_TEXT
            ),
        },
    }  # fmt: skip
