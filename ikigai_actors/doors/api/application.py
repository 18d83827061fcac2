"""The application: routes of the API, for any server of ASGI.

    app.mount("/agents", api(system, principal_of))

``principal_of`` returns the `Principal` of a request, or None if there is none; it may read a database. Work that waits
for a database runs on threads; a wait for an agent is a coroutine, and needs no thread.
"""

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from math import ceil
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import parse_qsl

from ikigai_actors.agent.waits import WaitResult
from ikigai_actors.arguments import check_callable, check_type
from ikigai_actors.doors.api.a2a_problems import A2aRefused, answer_refusal
from ikigai_actors.doors.api.answers import API_RULES, answer_problem
from ikigai_actors.doors.api.feeds import stream_feed
from ikigai_actors.doors.api.files import ApiFiles
from ikigai_actors.doors.api.limits import OpenPlaces, RequestRates
from ikigai_actors.doors.api.operations import Operation, operations
from ikigai_actors.doors.api.problems import ApiProblem, api_problem
from ikigai_actors.doors.api.requests import ApiRequest, check_storable, number_in, seconds
from ikigai_actors.doors.protocols import AguiClient, answer_mcp_client
from ikigai_actors.errors import BadInput, EndpointNotFound, Forged, IkigaiError
from ikigai_actors.http_server.answers import SentEventStream, answer, with_rules
from ikigai_actors.http_server.requests import AsgiScope, Receive, RequestRefused, SendEvent, check_headers
from ikigai_actors.reach.access import QUICK, Access
from ikigai_actors.reach.account_flows import AccountFlows
from ikigai_actors.reach.asked import AskedRequest, command_of, command_row
from ikigai_actors.reach.branch_feed import BranchFeed
from ikigai_actors.reach.keys import Did, RequestRepeated, keep_answer, known_request, release_key, request_under
from ikigai_actors.reach.listing import MOST_IN_PAGE, agents_page, messages_page, row_of_agent
from ikigai_actors.reach.metrics import EXPOSITION, exposition, read_metrics
from ikigai_actors.reach.news import NewsFeed
from ikigai_actors.reach.question_links import LinkOutcome, QuestionLinks, operator_keys
from ikigai_actors.reach.reading import message_as_json
from ikigai_actors.reach.turns import DONE, FAILED, MAIL, REQUEST, WORKING, TurnHandle
from ikigai_actors.reach.views import scrollback_of
from ikigai_actors.system.attached import AttachedSystem
from ikigai_actors.system.endpoints import LARGEST_DELIVERY
from ikigai_actors.verbs.principal import Principal, check_right, words_of_roles
from ikigai_actors.verbs.rights import Right
from ikigai_actors.verbs.text.rows import as_value
from ikigai_actors.verbs.tools import CalledPlace, call

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server

    from ikigai_actors.actors.futures import Future
    from ikigai_actors.doors.api.a2a_operations import A2aDoor

T = TypeVar("T")
PrincipalOf = Callable[[ApiRequest], Principal | Awaitable[Principal | None] | None]

logger = logging.getLogger(__name__)

QUIET_STREAM = 15.0
"""The seconds without events after which a stream sends a keep-alive."""

LOOKS_EVERY = 1.0
"""The seconds after which a waiting request checks again, even without news."""

MOST_WAITED = 60.0
"""The most seconds for which a request waits for agents."""

STREAM_PAGE = 20
"""The number of messages that a stream reads in one query."""

HELD_LOOK = 5.0
"""The seconds after which a server checks again whether endpoints hold deliveries that can be processed."""

API_THREADS = 16
"""The number of threads for requests that wait for the database."""

MOST_QUEUED = 200
"""The most requests that wait for one of these threads."""

MOST_STREAMS = 20
"""The most streams that a principal may have open."""

API_VERSION = "v1"


class _Later(Exception):
    """Raised when an agent has not carried out a command yet."""


class ApiPlace(CalledPlace):
    """The place of a verb that a request calls: it does not wait for a busy agent, and does not withdraw commands."""

    def outcome(self, ask: "Callable[[], Future[T]]") -> T:
        from ikigai_actors.actors.futures import TimedOut

        try:
            return ask().get(timeout=QUICK)
        except TimedOut:
            raise _Later from None


class Api:
    """The network API of a system, as an ASGI application. Public as `ikigai_actors.api.api`."""

    def __init__(
        self,
        system: AttachedSystem,
        principal_of: PrincipalOf,
        url: str = "",
        keys: Sequence[str] = (),
        allow_private: Iterable[str] | None = None,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        """Make the application.

        Args:
            system: an attached system; the caller closes it, after the application.
            principal_of: returns the principal of a request; None if there is none.
            url: the address of the application for its clients; empty for the path where it is mounted.
            keys: references to operator's keys: links to questions that one of them has signed are taken, and the
                first one seals accounts.
            allow_private: networks that a server's accounts may name beside public addresses.
            clock: the seconds by which requests are counted.
        """
        self._clock = clock
        self._system, self._principal_of, self._url = system, principal_of, url.rstrip("/")
        self._everything = Access.of(system)
        self._turns = self._everything.turns
        opened = operator_keys(keys, system)
        self._links = QuestionLinks(system, self._everything, opened)
        self._flows = AccountFlows(self._everything, opened, self._url, allow_private)
        self._threads = ThreadPoolExecutor(API_THREADS, "ikigai-api")
        self._queued = 0
        self.news = NewsFeed(lambda: system)
        """Receives the events of agents."""
        self._rates, self._refusals = RequestRates(20, 100), RequestRates(10, 10)
        self._streams = OpenPlaces(MOST_STREAMS)

    async def __call__(self, scope: AsgiScope, receive: Receive, out: SendEvent) -> None:
        """Answer a request of a client, or the start or shutdown of a server."""
        if scope["type"] == "lifespan":
            await self._live(receive, out)
        elif scope["type"] == "http":
            await self._answer(scope, receive, out)
        elif scope["type"] == "websocket":
            await out({"type": "websocket.close", "code": 1008})

    def drain(self) -> None:
        """Begin to shut down: streams end, and waiting requests answer with their present results."""
        self.news.release_all()

    def close(self) -> None:
        """Release all resources. Blocks, so do not call it on an event loop."""
        self.news.close()
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _live(self, receive: Receive, out: SendEvent) -> None:
        taking: asyncio.Task[None] | None = None
        while (message := await receive())["type"] != "lifespan.shutdown":
            taking = asyncio.ensure_future(self._take_held())
            await out({"type": f"{message['type']}.complete"})
        self.drain()
        if taking is not None:
            taking.cancel()
        await asyncio.get_running_loop().run_in_executor(None, self.close)
        await out({"type": "lifespan.shutdown.complete"})

    async def _answer(self, scope: AsgiScope, receive: Receive, out: SendEvent) -> None:
        begun, ruled = False, with_rules(out, API_RULES)

        async def sending(message: Any) -> None:
            nonlocal begun
            begun = True
            await ruled(message)

        try:
            check_headers(scope)
            await self._route(ApiRequest(scope, receive), sending)
        except (ApiProblem, IkigaiError, RequestRefused) as error:
            if not begun:
                await answer_problem(ruled, _problem_of(error))
        except Exception:
            logger.exception("A request to the API failed")
            if not begun:
                await answer_problem(
                    ruled, ApiProblem("internal", "This is a defect; the log of the server says more.")
                )

    async def _route(self, request: ApiRequest, out: SendEvent) -> None:
        try:
            parts = request.parts
        except UnicodeDecodeError:
            raise ApiProblem("bad-input", "Expected a path in UTF-8.") from None
        for part in parts:
            check_storable(part)
        match request.method, parts:
            case "GET", ["healthz"]:
                await answer(out, 200, {"status": "ok"})
            case "GET", ["readyz"]:
                await self._ready(out)
            case "GET", ["openapi.json"]:
                await answer(out, 200, await self._on_thread(partial(_description, self._url or request.root or "/")))
            case "POST", ["in", name]:
                await self._arrival(request, name, out)
            case "GET", ["oauth", "callback"]:
                await self._connected(request, out)
            case "GET", ["oauth", "client.json"]:
                await answer(out, 200, self._flows.document())
            case "GET" | "POST", ["q", link]:
                await self._question(request, link, out)
            case "POST", ["mcp"]:
                await answer_mcp_client(partial(self._mcp, await self._admitted(request)), request, out)
            case _, ["mcp"]:
                raise ApiProblem("no-method", "Expected POST.", {"Allow": "POST"})
            case "GET" | "POST", ["agui", agent]:
                principal = await self._admitted(request)
                client = AguiClient(self._access_of(principal), self.news, principal)
                await self._in_stream(principal, partial(client.answer, agent, request, out))
            case "GET" | "POST" | "DELETE", ["a2a", agent, *rest] if rest:
                await self._a2a(request, agent, rest, out)
            case "GET", ["metrics"]:
                await self._metrics(await self._admitted(request), out)
            case "GET" | "POST", [version, *rest] if version == API_VERSION and rest:
                await self._of_principal(request, await self._admitted(request), rest, out)
            case "GET" | "POST", _:
                raise ApiProblem("not-found", "There is no such path: /openapi.json lists them.")
            case _:
                raise ApiProblem("no-method", "Expected GET or POST.", {"Allow": "GET, POST"})

    def _mcp(self, principal: Principal) -> "Server[Any]":
        from ikigai_actors.doors.mcp import McpDoor

        access = self._access_of(principal)
        return McpDoor(lambda: access, principal=principal, news=self.news, pool=self._threads).server

    async def _a2a(self, request: ApiRequest, agent: str, rest: list[str], out: SendEvent) -> None:
        """Answer a client of A2A; everybody may read the card of an agent that has one."""
        url = self._url or request.root
        try:
            if (request.method, rest) == ("GET", [".well-known", "agent-card.json"]):
                await self._a2a_card(request, agent, url, out)
                return
            principal = await self._admitted(request)
            roles = words_of_roles(principal)
            access = Access.of(self._system, by=principal.id, top=principal.under, roles=roles)
            stream = partial(self._in_stream, principal)
            a2a_door = await self._on_thread(_a2a_door)
            await a2a_door(access, self.news, principal, self._on_thread, stream, url).answer(request, agent, rest, out)
        except (A2aRefused, ApiProblem) as refused:
            await answer_refusal(out, refused)
        except (IkigaiError, RequestRefused) as error:
            await answer_refusal(out, _problem_of(error))

    async def _a2a_card(self, request: ApiRequest, agent: str, url: str, out: SendEvent) -> None:
        self._slow_down(request, "Too many requests of this address had no token.")
        try:
            card = await self._on_thread(partial(_agent_card, self._everything, agent, url))
        except IkigaiError:
            self._refusals.count(request.address, self._clock())
            raise
        await answer(out, 200, card)

    def _access_of(self, principal: Principal) -> Access:
        """Return a principal's access for acts. Rows that it writes name the principal, and its keys are its own."""
        roles = words_of_roles(principal)
        return Access.of(self._system, by=principal.id, top=principal.under, scope=principal.id, roles=roles)

    async def _metrics(self, principal: Principal, out: SendEvent) -> None:
        """Answer with the metrics of the whole database, to a principal that reaches all agents."""
        if principal.under is not None:
            raise ApiProblem("not-allowed", f"/metrics is about all agents, and {principal.id} reaches a branch.")
        text = exposition(await self._on_thread(partial(read_metrics, self._system)))
        await answer(out, 200, text.encode(), media=EXPOSITION)

    async def _ready(self, out: SendEvent) -> None:
        if self.news.ending.is_set():
            raise ApiProblem("ending", "This server is ending.")
        if await self._on_thread(self._everything.client.host) is None:
            raise ApiProblem("no-host", "No process runs the agents.")
        await answer(out, 200, {"status": "ready"})

    async def _arrival(self, request: ApiRequest, name: str, out: SendEvent) -> None:
        """Take a delivery to an endpoint. A refused sender is slowed down, and nothing is written."""
        self._slow_down(request, "Too many deliveries of this address were refused.")
        try:
            raw = await request.body(LARGEST_DELIVERY)
            received = await self._on_thread(partial(self._system.endpoints.receive, name, request.headers, raw))
        except (EndpointNotFound, Forged, RequestRefused):
            self._refusals.count(request.address, self._clock())
            raise
        if isinstance(received, str):
            await answer(out, 200, {"challenge": received})
            return
        outcome = {"id": received.id, "status": received.status, **received.gave, "repeated": received.repeated}
        await answer(out, 200 if received.repeated else 202, outcome)

    async def _question(self, request: ApiRequest, link: str, out: SendEvent) -> None:
        """Answer a request to a signed link. Addresses that guess links are slowed down."""
        from ikigai_actors.doors.api import question_pages as pages

        self._slow_down(request, "Too many links of this address were refused.")
        if request.method == "GET":
            work = partial(self._links.shown, link)
        else:
            sent = (await request.body(pages.LARGEST_FORM)).decode("utf-8", "replace")
            work = partial(self._links.answered, link, dict(parse_qsl(sent, keep_blank_values=True)))
        outcome = await self._on_thread(work)
        if outcome.status == 404:
            self._refusals.count(request.address, self._clock())
        connect = outcome.connects
        if connect is not None and outcome.question is not None:
            try:
                flow = await self._flows.begin(outcome.question.shown.id, connect)
            except BadInput as error:
                outcome = LinkOutcome(400, str(error), outcome.question)
            else:
                page = pages.leave_page(flow.url, str(connect["server"]))
                await answer(out, 200, page, {**pages.PAGE_HEADERS, "set-cookie": flow.cookie}, pages.MEDIA_HTML)
                return
        shown = None if outcome.question is None else pages.question_page(outcome.question, outcome.notice)
        page = shown or pages.notice_page(outcome.notice)
        await answer(out, outcome.status, page, pages.PAGE_HEADERS, pages.MEDIA_HTML)

    async def _connected(self, request: ApiRequest, out: SendEvent) -> None:
        """Finish the flow of a person who comes back from an authorization server.

        Addresses that guess are slowed down.
        """
        from ikigai_actors.doors.api import question_pages as pages

        self._slow_down(request, "Too many answers of this address were refused.")
        try:
            status, text = 200, await self._flows.finish(request.query, request.headers.get("cookie", ""))
        except BadInput as error:
            self._refusals.count(request.address, self._clock())
            status, text = 400, str(error)
        await answer(out, status, pages.notice_page(text), pages.PAGE_HEADERS, pages.MEDIA_HTML)

    async def _take_held(self) -> None:
        """Process held deliveries of endpoints, again and again, because an ended child makes room."""
        while not self.news.ending.is_set():
            try:
                await self._on_thread(self._system.endpoints.take_all_held)
            except (ApiProblem, IkigaiError):
                logger.warning("What endpoints hold could not be taken; it is tried again", exc_info=True)
            await asyncio.sleep(HELD_LOOK)

    def _slow_down(self, request: ApiRequest, detail: str) -> None:
        """Refuse a request whose address was refused too often. Raises `ApiProblem`."""
        if not self._refusals.has_room(request.address, self._clock()):
            raise ApiProblem("too-many", detail)

    async def _admitted(self, request: ApiRequest) -> Principal:
        """Return the principal of a request.

        Raises `ApiProblem` if the request has no principal, or the principal has made too many requests.
        """
        self._slow_down(request, "Too many requests of this address had no token.")
        outcome = await self._on_thread(partial(self._principal_of, request))
        principal = await outcome if inspect.isawaitable(outcome) else outcome
        if principal is None:
            self._refusals.count(request.address, self._clock())
            what = "Expected the header Authorization: Bearer, with a token that is in force."
            raise ApiProblem("no-token", what, {"WWW-Authenticate": "Bearer"})
        if not self._rates.count(principal.id, self._clock()):
            raise ApiProblem("too-many", f"{principal.id} asks too often: 20 requests a second, 100 at once.")
        check_right(principal, Right.LOOK, "The API")
        return principal

    async def _of_principal(self, request: ApiRequest, principal: Principal, rest: list[str], out: SendEvent) -> None:
        access = Access.of(self._system, top=principal.under)
        match request.method, rest:
            case "GET", ["agents"]:
                limit = min(number_in(request.query.get("limit", "50"), "limit"), MOST_IN_PAGE) or 1
                cursor = request.query.get("cursor", "")
                await answer(out, 200, await self._on_thread(partial(agents_page, access, cursor, limit)))
            case "GET", ["agents", agent]:
                await answer(out, 200, await self._on_thread(lambda: row_of_agent(access, self._find(access, agent))))
            case "GET", ["agents", agent, "messages"]:
                after = number_in(request.query.get("after", "0"), "after")
                limit = min(number_in(request.query.get("limit", "50"), "limit"), MOST_IN_PAGE) or 1
                uuid = await self._on_thread(lambda: self._find(access, agent).uuid)
                await answer(out, 200, await self._on_thread(partial(messages_page, access, uuid, after, limit)))
            case "GET", ["agents", agent, "events"]:
                uuid = await self._on_thread(lambda: self._find(access, agent).uuid)
                await self._in_stream(principal, partial(self._agent_events, request, access, uuid, out))
            case "GET", ["events"]:
                await self._in_stream(principal, partial(self._branch_events, request, principal, out))
            case "GET", ["turns", agent, turn]:
                handle = await self._handle(access, agent, turn)
                wait = seconds(request.query.get("wait", "0"), "wait")
                await answer(out, 200, await self._turn(handle, wait))
            case "GET", ["turns", agent, turn, "events"]:
                handle = await self._handle(access, agent, turn)
                await self._in_stream(principal, partial(self._turn_events, request, access, handle, out))
            case "GET", ["requests", agent, number]:
                uuid = await self._on_thread(partial(access.check, agent))
                did = {"agent": uuid, "request": number_in(number, "the number of the request")}
                await self._request(did, seconds(request.query.get("wait", "0"), "wait"), out)
            case "POST", ["files"]:
                await ApiFiles(access, principal, self._on_thread).upload(request, out)
            case "GET", ["files", sha256]:
                await ApiFiles(access, principal, self._on_thread).download(sha256, request, out)
            case _, ["agents", agent, *words] if (
                operation := operations().get("/".join(words))
            ) and operation.of_agent:
                await self._verb(request, principal, access, operation, agent, out)
            case _, words if (operation := operations().get("/".join(words))) and not operation.of_agent:
                await self._verb(request, principal, access, operation, None, out)
            case _:
                raise ApiProblem("not-found", "There is no such path: /openapi.json lists them.")

    def _find(self, access: Access, agent: str) -> Any:
        return access.find(None if agent == "~" else agent)

    async def _handle(self, access: Access, agent: str, turn: str) -> TurnHandle:
        handle = TurnHandle.parse(f"{agent}/{turn}")
        await self._on_thread(partial(access.check, handle.agent))
        return handle

    # Verbs

    async def _verb(
        self,
        request: ApiRequest,
        principal: Principal,
        access: Access,
        operation: Operation,
        agent: str | None,
        out: SendEvent,
    ) -> None:
        looks = request.method == "GET"
        arguments = operation.parsed(request.query) if looks else await request.json()
        if agent is not None:
            if "agent" in arguments:
                raise ApiProblem("bad-input", "The path names the agent; expected no agent among the arguments.")
            arguments["agent"] = access.top if agent == "~" else agent
        wait, key = request.prefers_wait, request.key if not looks else None
        keyed = None if key is None else request_under(principal.id, key, operation.words, arguments)
        place = ApiPlace(access, principal, looks=looks)
        asked = AskedRequest(keyed, access.client.now_ms, principal.id)
        headers: dict[str, str] = {}
        try:
            known = await self._on_thread(partial(known_request, access.client, keyed))
            if known is None:
                if operation.words == "wait":
                    value = await self._waited(place, operation, arguments, asked)
                else:
                    value = await self._on_thread(partial(self._call, place, operation, arguments, asked))
                did = asked.did
        except _Later:
            await self._later(asked.did, request.root, out)
            return
        except RequestRepeated as repeated:  # of two at once the other one was faster
            known = repeated.known
        except IkigaiError as error:
            if keyed is not None and asked.did is not None:
                await self._on_thread(partial(release_key, access.client, keyed, asked.did))
            raise _for_get(error) if looks else error from None
        if known is not None:
            headers["Idempotency-Replayed"] = "true"
            did = known.did
            made = known.answer or await self._made_of_rows(did)
            if made is None:
                await self._later(did, request.root, out)
                return
            value = made
        if keyed is not None and "Idempotency-Replayed" not in headers and did is not None:
            await self._on_thread(partial(keep_answer, access.client, keyed, did, value))
        handle = _turn_of(operation, arguments, did)
        if handle is None:
            await answer(out, 200, value, headers)
            return
        value = {**value, "turn": str(handle)}
        headers["Location"] = f"{request.root}/{API_VERSION}/turns/{handle}"
        if not wait:
            await answer(out, 202, value, headers)
            return
        outcome = await self._turn(handle, wait)
        over = outcome["status"] in (DONE, FAILED)
        headers["Preference-Applied"] = f"wait={ceil(wait)}"
        await answer(out, 200 if over else 202, {**value, "outcome": outcome}, headers)

    async def _waited(
        self, place: ApiPlace, operation: Operation, arguments: Mapping[str, Any], asked: AskedRequest
    ) -> Any:
        """Return the answer of a verb that waits for agents; checks repeatedly, without blocking a thread."""
        most = arguments.get("seconds")
        most = min(float(most), MOST_WAITED) if isinstance(most, int | float) and most >= 0 else 0.0
        until, pause = monotonic() + most, 0.05
        while True:
            once = {**arguments, "seconds": 0} if most else arguments
            value = await self._on_thread(partial(self._call, place, operation, once, asked))
            left = until - monotonic()
            results = value["value"]
            if left <= 0 or self.news.ending.is_set() or (results and WaitResult.TIMEOUT not in results.values()):
                return value
            await asyncio.sleep(min(pause, left))
            pause = min(2 * pause, LOOKS_EVERY)

    def _call(
        self, place: ApiPlace, operation: Operation, arguments: Mapping[str, Any], asked: AskedRequest
    ) -> dict[str, Any]:
        done = call(place, operation.verb, arguments, operation.needs, asked)
        return {"value": done.value, "text": done.text}

    async def _made_of_rows(self, did: Did) -> dict[str, Any] | None:
        """Make the answer of an earlier request from rows; None while the agent has not carried it out."""
        if (key := command_of(did)) is None:
            return {"value": dict(did), "text": ""}
        answered = await self._on_thread(partial(self._everything.answer, key, QUICK))
        if answered is None:
            return None
        if isinstance(answered.value, IkigaiError):
            raise answered.value
        return {"value": {**did, "answer": as_value(answered.value)}, "text": ""}

    async def _later(self, did: Did | None, root: str, out: SendEvent) -> None:
        if did is None or "request" not in did:
            raise ApiProblem("not-yet", "This was asked for, and is not known to be done yet.")
        path = f"requests/{did['agent']}/{did['request']}"
        value = {"value": {"request": path, **did}, "text": "The agent does this after its turn."}
        await answer(out, 202, value, {"Location": f"{root}/{API_VERSION}/{path}"})

    async def _request(self, did: Did, wait: float, out: SendEvent) -> None:
        """Answer with the state of a remote command, once it has an answer or the time is over."""
        key, until, pause = command_of(did), monotonic() + wait, 0.02
        assert key is not None  # the path has its number
        while True:
            answered = await self._on_thread(partial(self._everything.answer, key, 0))
            left = until - monotonic()
            if answered is not None or left <= 0 or self.news.ending.is_set():
                await answer(out, 200, as_value(command_row(key, answered)))
                return
            await asyncio.sleep(min(pause, left))
            pause = min(2 * pause, LOOKS_EVERY)

    # Turns and events

    async def _turn(self, handle: TurnHandle, wait: float) -> dict[str, Any]:
        """Return a turn as JSON data, once it is over, asks a question, or the time is over."""
        until = monotonic() + wait
        async with self.news.watch(handle.agent) as watch:
            while True:
                turn: dict[str, Any] = await self._on_thread(partial(self._turns.look_at, handle))
                left = until - monotonic()
                if turn["status"] != WORKING or left <= 0 or self.news.ending.is_set():
                    return turn
                await watch.news(min(left, LOOKS_EVERY))

    async def _in_stream(self, principal: Principal, stream: Callable[[], Awaitable[None]]) -> None:
        if self.news.ending.is_set():
            raise ApiProblem("ending", "This server is ending.")
        if not self._streams.enter(principal.id):
            raise ApiProblem("too-many", f"{principal.id} has {MOST_STREAMS} streams open.")
        try:
            await stream()
        finally:
            self._streams.leave(principal.id)

    async def _agent_events(self, request: ApiRequest, access: Access, uuid: str, out: SendEvent) -> None:
        place = _place_in(request)
        await self._events(request, access, uuid, place, out, None)

    async def _branch_events(self, request: ApiRequest, principal: Principal, out: SendEvent) -> None:
        """Stream the events of all agents in reach, or of an agent and the agents below it."""
        access = Access.of(self._system, top=principal.under)
        if under := request.query.get("under", ""):
            top = await self._on_thread(lambda: self._find(access, under).uuid)
            access = Access.of(self._system, top=top)
        since = request.headers.get("last-event-id") or request.query.get("after") or None
        feed: BranchFeed = await self._on_thread(partial(BranchFeed, access, since))
        await stream_feed(feed, SentEventStream(request, out), self.news.ending, self._on_thread, QUIET_STREAM)

    async def _turn_events(self, request: ApiRequest, access: Access, handle: TurnHandle, out: SendEvent) -> None:
        handle = await self._on_thread(partial(self._turns.settled, handle))
        while not (opening := await self._opening(handle)):
            turn = await self._turn(handle, 0)
            if turn["status"] in (DONE, FAILED) or self.news.ending.is_set():
                handle = await self._on_thread(partial(self._turns.settled, handle))
                opening = await self._opening(handle)  # it may have begun and ended between both looks
                break
            async with self.news.watch(handle.agent) as watch:
                await watch.news(LOOKS_EVERY)
            handle = await self._on_thread(partial(self._turns.settled, handle))
        place = max(_place_in(request), opening - 1)
        await self._events(request, access, handle.agent, place, out, handle)

    async def _opening(self, handle: TurnHandle) -> int:
        if handle.kind == REQUEST:
            return 0
        opening: int = await self._on_thread(partial(self._turns.opening, handle))
        return opening

    async def _events(
        self, request: ApiRequest, access: Access, uuid: str, place: int, out: SendEvent, turn: TurnHandle | None
    ) -> None:
        """Stream an agent's present and future messages after a place; with ``turn``, only messages of the turn."""
        scrollback = await self._on_thread(partial(scrollback_of, access.client, uuid))
        async with SentEventStream(request, out) as stream, self.news.watch(uuid, pieces=True) as watch:
            while not stream.is_left:
                if self.news.ending.is_set():
                    await stream.event({}, "bye")
                    break
                watch.is_behind = False
                outcome = None if turn is None else await self._on_thread(partial(self._turns.look_at, turn))
                record, messages = await self._on_thread(
                    partial(lambda at: (access.client.get(uuid), scrollback.between(at, at + STREAM_PAGE)), place)
                )
                for message in messages:
                    place = message.id
                    await stream.event(message_as_json(message), "message", place)
                if messages:
                    continue
                if outcome is not None and outcome["status"] in (DONE, FAILED):
                    await stream.event(outcome, "turn")
                    break
                if not record.living:
                    await stream.event({"agent": uuid, "reason": record.exit_reason}, "died")
                    break
                if not watch.is_behind:
                    for kind, value in watch.pieces():
                        await stream.event(value, kind)
                    if not await watch.news(QUIET_STREAM):
                        await stream.comment()

    async def _on_thread(self, work: Callable[[], T]) -> T:
        """Run work that waits for the database on a thread. Raises `ApiProblem` if too many requests wait already."""
        if self._queued >= API_THREADS + MOST_QUEUED:
            raise ApiProblem("busy", "Too many requests wait already.")
        self._queued += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, work)
        finally:
            self._queued -= 1


def _turn_of(operation: Operation, arguments: Mapping[str, Any], did: Did | None) -> TurnHandle | None:
    """Return the handle of the turn that a verb has opened; None if the verb opens none."""
    if did is None or not operation.verb.opens_turn or arguments.get("steer") or arguments.get("count"):
        return None
    if "mail" in did:
        return TurnHandle(did["agent"], MAIL, did["mail"])
    return TurnHandle(did["agent"], REQUEST, did["request"]) if "request" in did and arguments.get("prompt") else None


def _problem_of(error: ApiProblem | IkigaiError | RequestRefused) -> ApiProblem:
    match error:
        case ApiProblem():
            return error
        case RequestRefused():
            return ApiProblem(error.code, error.text)
    return api_problem(error)


def _place_in(request: ApiRequest) -> int:
    """Return the position after which a client wants messages. Raises `ApiProblem`."""
    text = request.headers.get("last-event-id") or request.query.get("after", "0")
    return number_in(text, "after")


def _for_get(error: IkigaiError) -> IkigaiError | ApiProblem:
    """Return the error for a GET; if the request would change something, a refusal that says to use POST."""
    problem = api_problem(error)
    return ApiProblem("no-get", str(error), {"Allow": "POST"}) if problem.code == "looks-only" else error


def api(
    system: AttachedSystem,
    principal_of: PrincipalOf,
    url: str = "",
    keys: Sequence[str] = (),
    allow_private: Iterable[str] | None = None,
) -> Api:
    """Make the network API of a system, an application of ASGI: mount it, or give it to a server.

    Args:
        system: an attached system; close it after the application has ended.
        principal_of: returns the principal of a request, or None if there is none; a function or a coroutine. It may
            read a database: a function runs on a thread.
        url: the address of the application for its clients; empty for the path where it is mounted.
        keys: references to operator's keys, as ``env:NAME``: links to questions that one of them has signed are
            taken, and the first one seals accounts at remote MCP servers.
        allow_private: networks that a server's accounts may name beside public addresses, each as ``10.0.0.0/8``. None
            takes those in ``$IKIGAI_ALLOW_PRIVATE``.
    """
    check_type(system, AttachedSystem, "system", "an attached system: AttachedSystem.open")
    check_callable(principal_of, "principal_of", "a function that gives the Principal of a request, or None")
    check_type(url, str, "url", "the address of the application")
    return Api(system, principal_of, url, keys, allow_private)


# What few requests need is imported by the first of them, on a thread.


def _description(url: str) -> Any:
    from ikigai_actors.doors.api.openapi import openapi_page

    return openapi_page(url)


def _a2a_door() -> "type[A2aDoor]":
    from ikigai_actors.doors.api.a2a_operations import A2aDoor

    return A2aDoor


def _agent_card(everything: Access, agent: str, url: str) -> Any:
    from ikigai_actors.doors.api.a2a_operations import card_url
    from ikigai_actors.doors.api.a2a_tasks import agent_card
    from ikigai_actors.reach.contexts import ContextReader

    carded = ContextReader(everything).carded(agent)
    return agent_card(carded, card_url(url, carded))
