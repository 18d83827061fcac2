"""JSON-RPC 2.0: parses lines, and answers and sends requests on a connection.

    connection = RpcConnection(server, send=lines.write)
    connection.receive_line(b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}')
    await connection.ask("session/request_permission", {...})

Every line gets an answer, and the connection goes on: a line that is no message gets an error without an id.
"""

import asyncio
import json
import logging
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, NamedTuple, Protocol

from ikigai_actors.errors import IkigaiError, NoHost, StoreError

logger = logging.getLogger(__name__)

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS, INTERNAL_ERROR = -32700, -32600, -32601, -32602, -32603
CANCELLED = -32800

INTERNAL = "Internal error, see doors.log."
"""The error text that a client gets for a bug in this program."""

CANCEL = "$/cancel_request"
"""The notification by which a request is given up."""

Params = Mapping[str, Any]
SendMessage = Callable[[Mapping[str, Any]], object]
RequestId = str | int


class RpcError(Exception):
    """An error of JSON-RPC, with the code and text that a client gets."""

    def __init__(self, code: int, message: str, data: object = None) -> None:
        super().__init__(message)
        self.code, self.data = code, data

    def as_json(self) -> dict[str, Any]:
        """Return the error as part of a message."""
        return {"code": self.code, "message": str(self), **({} if self.data is None else {"data": self.data})}


class RpcRequest(NamedTuple):
    """A request or notification of a client; a notification has no id, and gets no answer."""

    method: str
    params: Params
    id: RequestId | None = None


class GivenUp(Enum):
    """The way in which a cancelled request is answered."""

    REFUSED = "an error says that it was cancelled"
    ANSWERED = "the server ends its work, and answers"


class RpcResponse(NamedTuple):
    """The client's response to a request that the server has sent."""

    id: RequestId
    result: Any = None
    error: Mapping[str, Any] | None = None


class Server(Protocol):
    """Answers the requests and notifications of one client."""

    async def request(self, request: RpcRequest, notify: Callable[[str, Params], object]) -> Any:
        """Return the result of a request; ``notify`` sends a notification before it. Raises `RpcError`."""

    def notified(self, request: RpcRequest) -> None:
        """Handle a notification of the client, which gets no answer."""

    def give_up(self, request: RpcRequest) -> GivenUp:
        """Stop the work on a request that the client has cancelled; return how the request is answered."""


def parsed(line: bytes) -> RpcRequest | RpcResponse:
    """Parse a line, and return the request or response in it. Raises `RpcError`."""
    try:
        return message_of(json.loads(line))
    except (ValueError, RecursionError) as error:
        raise RpcError(PARSE_ERROR, "Parse error: expected one JSON object on each line.") from error


def message_of(value: object) -> RpcRequest | RpcResponse:
    """Return the request or response in a JSON value. Raises `RpcError`."""
    if not isinstance(value, dict):
        raise RpcError(INVALID_REQUEST, "Invalid request: expected a JSON object.")
    number, method, params = value.get("id"), value.get("method"), value.get("params")
    if "id" in value and (not isinstance(number, str | int) or isinstance(number, bool)):
        raise RpcError(INVALID_REQUEST, "Invalid request: expected a text or a whole number as its id.")
    if isinstance(method, str) and (params is None or isinstance(params, dict)):
        return RpcRequest(method, params or {}, number)
    error = value.get("error")
    if method is None and number is not None and ("result" in value or isinstance(error, dict)):
        return RpcResponse(number, value.get("result"), error if isinstance(error, dict) else None)
    raise RpcError(INVALID_REQUEST, "Invalid request: expected a method with an object of params, or a response.")


class RpcConnection:
    """The connection to one client. Use a connection on one event loop."""

    def __init__(self, server: Server, send: SendMessage) -> None:
        """Begin to serve a client; ``send`` sends a message to the client."""
        self._server, self._send = server, send
        self._tasks: dict[RequestId, asyncio.Task[None]] = {}
        self._requests: dict[RequestId, RpcRequest] = {}
        self._asked: dict[RequestId, asyncio.Future[Any]] = {}
        self._numbers = 0

    def receive_line(self, line: bytes) -> None:
        """Handle a line from the client: a request, a notification, or a response."""
        try:
            message = parsed(line)
        except RpcError as error:
            self._answer(None, error=error.as_json())
            return
        if isinstance(message, RpcResponse):
            self._settle(message)
        elif message.id is None and message.method == CANCEL:
            self.cancel(message.params.get("requestId"))
        elif message.id is None:
            self._server.notified(message)
        elif message.id in self._tasks:
            text = f"Invalid request: request {message.id!r} is not answered yet. Use another id."
            self._answer(message.id, error=RpcError(INVALID_REQUEST, text).as_json())
        else:
            task = asyncio.get_running_loop().create_task(self._carry_out(message))
            self._tasks[message.id], self._requests[message.id] = task, message

    def refuse(self, code: int, text: str) -> None:
        """Send the client an error for a line that is no message."""
        self._answer(None, error=RpcError(code, text).as_json())

    def notify(self, method: str, params: Params) -> None:
        """Send the client a notification."""
        self._send({"jsonrpc": "2.0", "method": method, "params": params})

    async def ask(self, method: str, params: Params) -> Any:
        """Send a request to the client, and return the result. Raises `RpcError` when it refuses."""
        self._numbers += 1
        number = f"ikigai-{self._numbers}"
        future = self._asked[number] = asyncio.get_running_loop().create_future()
        self._send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        try:
            return await future
        except asyncio.CancelledError:
            self.notify(CANCEL, {"requestId": number})
            raise
        finally:
            self._asked.pop(number, None)

    def cancel(self, number: object) -> None:
        """Handle the cancellation of a request by the client."""
        if not isinstance(number, str | int) or number not in self._tasks:
            return
        how = self._server.give_up(self._requests[number])
        if how is GivenUp.REFUSED:
            self._tasks.pop(number).cancel()
            del self._requests[number]
            self._answer(number, error=RpcError(CANCELLED, "Request cancelled").as_json())

    def close(self) -> None:
        """Cancel all requests of the client, and all requests to the client."""
        for task in self._tasks.values():
            task.cancel()
        for future in self._asked.values():
            future.cancel()

    def _settle(self, response: RpcResponse) -> None:
        future = self._asked.get(response.id)
        if future is None or future.done():
            return
        if response.error is None:
            future.set_result(response.result)
        else:
            future.set_exception(RpcError(INTERNAL_ERROR, str(response.error.get("message", "refused"))))

    async def _carry_out(self, request: RpcRequest) -> None:
        """Carry out a request, and send its answer."""
        number = request.id
        try:
            result = await self._server.request(request, self.notify)
        except RpcError as error:
            self._answer(number, error=error.as_json())
        except IkigaiError as error:
            code = INTERNAL_ERROR if isinstance(error, NoHost | StoreError) else INVALID_PARAMS
            self._answer(number, error=RpcError(code, str(error)).as_json())
        except Exception:
            logger.exception("RpcRequest %s failed", request.method)
            self._answer(number, error=RpcError(INTERNAL_ERROR, INTERNAL).as_json())
        else:
            self._answer(number, result=result)
        finally:
            if number is not None and self._tasks.get(number) is asyncio.current_task():
                del self._tasks[number], self._requests[number]

    def _answer(self, number: RequestId | None, **rest: Any) -> None:
        self._send({"jsonrpc": "2.0", "id": number, **rest})
