"""Agents of other systems by A2A 1.0, as a tool.

    triage = A2aAgent("https://agents.example.com/a2a/triage", headers={"Authorization": "Bearer env:TOKEN"})
    ActorSystem.open(tools=[triage])

The tool ``NAME__ask`` sends a message and waits for the task. The message's id is the key of the call, which is the
same in every attempt. An agent that accepts each message id only once, as those of this library do, makes one task for
a call, even if the call is repeated. For such an agent set ``idempotent=True``: then the runtime repeats a call that a
crash has cut off.

    not sent    no card could be read, no connection made, or the agent refused the message: no task runs
    sent        the answer broke off, or is an error of the server: whether a task runs is unknown
    taken       the task's id is known, and its state is polled until it rests; a failed poll is repeated
"""

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal
from urllib.parse import urljoin, urlsplit

import httpx2

from ikigai_actors.actors.threads import in_thread
from ikigai_actors.arguments import check_flag, check_optional, check_seconds, check_type, shown
from ikigai_actors.certificates import trusted_authorities
from ikigai_actors.errors import BadInput
from ikigai_actors.tools.base import Tell, Toolset
from ikigai_actors.tools.effect_keys import current_call
from ikigai_actors.tools.function import TIMEOUT, Result, Tool, ToolError, tool
from ikigai_actors.tools.mcp.remote_address import check_remote_headers, check_url, looked_up, name_of_url
from ikigai_actors.tools.policy import Policy

CARD_PATH = "/.well-known/agent-card.json"
A2A_BINDING, A2A_MAJOR = "HTTP+JSON", "1"

LARGEST_A2A_ANSWER = 4 * 1024 * 1024
"""The most bytes of an answer of another agent."""

_CONNECT = 10.0
_FIRST_LOOK, _LAST_LOOK = 0.2, 5.0
"""Seconds between two looks at a task: at first, and at most."""
_MARGIN = 0.9
"""The part of the time of a call after which a task that goes on is left to a later call."""

_NOT_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.UnsupportedProtocol)
_REFUSED = range(400, 500)
_GOES_ON = ("TASK_STATE_SUBMITTED", "TASK_STATE_WORKING", "TASK_STATE_UNSPECIFIED")
_FAILED_STATES = ("TASK_STATE_FAILED", "TASK_STATE_REJECTED", "TASK_STATE_CANCELED")


class A2aAgent(Toolset):
    """An agent of another system, as a toolset with one tool."""

    def __init__(
        self,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        name: str | None = None,
        description: str | None = None,
        policy: str = Policy.ASK,
        timeout: float = TIMEOUT,
        idempotent: bool = False,
    ) -> None:
        """Describe an agent of another system; no request is sent before the first call.

        Args:
            url: the address below which its card is, at ``/.well-known/agent-card.json``.
            headers: sent with each request. ``env:NAME`` and ``file:PATH`` in them name secrets, which each call looks
                up; they go to the host of ``url`` alone.
            name: the text before the name of its tool; derived from the host when None.
            description: the purpose of the agent, for the models that may ask it.
            policy: ``allow``, ``ask`` or ``deny`` for its tool.
            timeout: seconds that a call may take; of a task that goes on longer, the call gives the id.
            idempotent: whether the agent takes a message once by its id, so that a call that was cut off is repeated.

        Raises:
            BadInput: an argument cannot be used.
        """
        try:
            self._url = check_url(check_type(url, str, "url", "the address of an agent")).rstrip("/")
        except BadInput:
            raise BadInput(
                f"Expected the address of an agent, such as https://agents.example.com/a2a/triage; got {shown(url)}. "
                "A password goes into headers."
            ) from None
        self._headers = check_remote_headers(headers)
        self._name = name_of_url(self._url) if name is None else name
        if re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", check_type(self._name, str, "name", "text, or None")) is None:
            raise BadInput(f"An agent's name is 1 to 64 of a-z A-Z 0-9 _ -, got {shown(self._name)}; give another.")
        self._about = check_optional(description, str, "description", "text, or None") or f"An agent at {self._url}."
        self._timeout = check_seconds(timeout, "timeout", zero=False)
        again: bool | Literal["by_key"] = "by_key" if check_flag(idempotent, "idempotent") else False
        self._tool = tool(
            name=f"{self._name}__ask",
            description=f"Ask another agent, and wait for its answer. {self._about}",
            timeout=self._timeout,
            idempotent=again,
            policy=policy,
        )(self._ask)
        self._client: httpx2.AsyncClient | None = None
        self._interface = ""

    @property
    def name(self) -> str:
        """The prefix of the tool's name."""
        return self._name

    async def open(self, tell: Tell) -> Sequence[Tool]:
        """Make the HTTP client, and return the tool."""
        waits = httpx2.Timeout(_CONNECT, read=self._timeout)
        transport = httpx2.AsyncHTTPTransport(verify=trusted_authorities(), trust_env=False)
        self._client = httpx2.AsyncClient(transport=transport, timeout=waits)
        return [self._tool]

    async def leave(self, agent: str) -> None:
        """Do nothing, because all agents share the client."""

    async def close(self) -> None:
        """Close the connections."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def _ask(self, text: str = "", context: str = "", task: str = "") -> Result:
        """Ask another agent.

        Args:
            text: The message. Leave it empty to wait for a task that goes on.
            context: The context of an earlier answer, to go on there. Empty for a new one.
            task: The task of an earlier answer: one that asked for input gets the text, one that goes on is waited for.
        """
        if not text.strip() and not task:
            raise ToolError("Give a text, or the task to wait for. This call did not run.")
        until = asyncio.get_running_loop().time() + _MARGIN * self._timeout
        headers = {"A2A-Version": "1.0", **await self._looked_up()}
        interface = self._interface = self._interface or await self._interface_of(headers)
        if text.strip():
            got = await self._send(interface, headers, text, context, task)
            if "message" in got:
                said = got["message"]
                return Result(_as_json({"text": _text(said.get("parts")), "context": said.get("contextId", "")}))
            seen = got["task"]
        else:
            seen = await self._look(interface, headers, task) or {"id": task}
        pause = _FIRST_LOOK
        while _state(seen) in _GOES_ON and asyncio.get_running_loop().time() + pause < until:
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LAST_LOOK)
            seen = await self._look(interface, headers, seen["id"]) or seen
        return _outcome(seen)

    async def _looked_up(self) -> dict[str, str]:
        """Return the headers with the secrets that they name. Raises `ToolError`."""
        secret = (lambda reference: "") if self.remotes is None else self.remotes.secret
        try:
            headers: dict[str, str] = await in_thread(lambda: looked_up(self._headers, secret), "ikigai-a2a-secrets")
        except BadInput as error:
            raise ToolError(f"{self._name}: {error}. This call did not run.") from error
        return headers

    async def _interface_of(self, headers: Mapping[str, str]) -> str:
        """Return the address of the agent's operations, from its card. Raises `ToolError`."""
        try:
            status, card = await self._request("GET", f"{self._url}{CARD_PATH}", headers)
        except httpx2.TransportError as error:
            raise ToolError(f"{self._name} cannot be reached ({_words(error)}). This call did not run.") from error
        interfaces = card.get("supportedInterfaces")
        if status != 200 or not isinstance(interfaces, list):
            raise ToolError(f"{self._name} gave no card ({status}) at {self._url}{CARD_PATH}. This call did not run.")
        for each in interfaces:
            if not isinstance(each, dict) or each.get("protocolBinding") != A2A_BINDING:
                continue
            if str(each.get("protocolVersion", "")).split(".")[0] == A2A_MAJOR:
                address = urljoin(self._url, str(each.get("url", ""))).rstrip("/")
                if _origin(address) != _origin(self._url):
                    raise ToolError(
                        f"The card of {self._name} names another host, {shown(address)}, and headers go to that of "
                        "the card alone: name the agent by the address of its operations. This call did not run."
                    )
                return address
        raise ToolError(f"{self._name} does not speak A2A 1.0 by {A2A_BINDING}. This call did not run.")

    async def _send(
        self, interface: str, headers: Mapping[str, str], text: str, context: str, task: str
    ) -> dict[str, Any]:
        """Send a message; return the task or the message that answers it. Raises `ToolError`."""
        where = {name: value for name, value in (("contextId", context), ("taskId", task)) if value}
        sent = {"messageId": current_call().key, "role": "ROLE_USER", "parts": [{"text": text}], **where}
        body = {"message": sent, "configuration": {"returnImmediately": True, "acceptedOutputModes": ["text/plain"]}}
        try:
            status, got = await self._request("POST", f"{interface}/message:send", headers, body)
        except _NOT_SENT as error:
            raise ToolError(f"{self._name} cannot be reached ({_words(error)}). This call did not run.") from error
        except httpx2.TransportError as error:
            raise ToolError(f"{self._name} broke off its answer ({_words(error)}). {_UNCLEAR}") from error
        if status in _REFUSED:
            self._interface = ""  # it may have moved
            raise ToolError(f"{self._name} answered {status}: {_why(got)}. This call did not run.")
        outcome = got.get("task", got.get("message"))
        if status != 200 or not isinstance(outcome, dict) or ("task" in got and not isinstance(outcome.get("id"), str)):
            raise ToolError(f"{self._name} answered {status} without a task: {_why(got)}. {_UNCLEAR}")
        return got

    async def _look(self, interface: str, headers: Mapping[str, str], task: str) -> dict[str, Any] | None:
        """Return a task in its present state; None if it cannot be read at the moment. Raises `ToolError`."""
        if re.fullmatch(r"[\w.~-]{1,200}", task, re.ASCII) is None:
            raise ToolError(f"Expected the id of a task; got {shown(task)}.")
        try:
            status, got = await self._request("GET", f"{interface}/tasks/{task}", headers)
        except httpx2.TransportError:
            return None
        if status in _REFUSED and status not in (408, 429):
            raise ToolError(f"{self._name} answered {status} about task {task}: {_why(got)}.")
        return got if status == 200 else None

    async def _request(
        self, method: str, url: str, headers: Mapping[str, str], body: Any = None
    ) -> tuple[int, dict[str, Any]]:
        assert self._client is not None  # the toolset is open
        content = None if body is None else json.dumps(body).encode()
        typed = {**headers, "accept": "application/json", "content-type": "application/json"}
        async with self._client.stream(method, url, headers=typed, content=content) as response:
            raw = bytearray()
            async for piece in response.aiter_bytes():
                raw += piece
                if len(raw) > LARGEST_A2A_ANSWER:
                    raise httpx2.ReadError(f"it has more than {LARGEST_A2A_ANSWER:,} bytes")
        try:
            value = json.loads(raw)
        except (ValueError, RecursionError):
            value = None
        return response.status_code, value if isinstance(value, dict) else {}


_UNCLEAR = "The agent may or may not work on it: find out before you repeat it."


def _outcome(task: Mapping[str, Any]) -> Result:
    state = _state(task)
    texts = [_text(each.get("parts")) for each in _dicts(task.get("artifacts"))]
    status = task.get("status")
    said = status.get("message") if isinstance(status, dict) else None
    texts += [_text(said.get("parts"))] if isinstance(said, dict) else []
    said_by = {"state": state.removeprefix("TASK_STATE_").lower(), "text": "\n\n".join(filter(None, texts))}
    names = {"context": task.get("contextId", ""), "task": task.get("id", "")}
    return Result(_as_json({**said_by, **names}), is_error=state in _FAILED_STATES)


def _state(task: Mapping[str, Any]) -> str:
    status = task.get("status")
    state = status.get("state") if isinstance(status, dict) else None
    return state if isinstance(state, str) else "TASK_STATE_UNSPECIFIED"


def _text(parts: Any) -> str:
    texts = list[str]()
    for part in _dicts(parts):
        match part:
            case {"text": str(text)}:
                texts.append(text)
            case {"data": value}:
                texts.append(_as_json(value))
            case {"url": str(url)}:
                texts.append(f"[file {url}]")
            case _:
                texts.append(f"[file {part.get('filename') or ''}]")
    return "\n\n".join(texts)


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _as_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _why(got: Mapping[str, Any]) -> str:
    error = got.get("error")
    said = error.get("message") if isinstance(error, dict) else None
    return said[:500] if isinstance(said, str) and said else "it does not say why"


def _origin(url: str) -> tuple[str, str | None, int | None]:
    try:
        parts = urlsplit(url)
        return parts.scheme, parts.hostname, parts.port
    except ValueError:
        return "", None, None


def _words(error: Exception) -> str:
    return str(error) or type(error).__name__
