"""MCP servers: their tools as a toolset. A server is a program, or is reached by HTTP.

    ActorSystem.open(tools=[McpServer("uvx mcp-server-time"), McpServer(["npx", "@org/files", "/srv"], name="srv")])
    McpServer("https://mcp.example.com/mcp", headers={"Authorization": "Bearer env:TOKEN"})

Needs the extra ``mcp``: ``pip install 'ikigai-actors[mcp]'``. Slow imports happen when the server is opened.

The server is started with the system and ends with it, together with its child processes. Its tools are those that it
lists when it is opened, with names such as ``server__tool``. Tools that the server calls read-only may run; for others
a person is asked, unless ``policy`` says otherwise. The server gets only a few common environment variables of this
process, and so none of its keys; ``env`` adds further ones. Its standard error is logged.

If a server ends by itself, a person gets a notice, and the next call starts the server again: the first time at once,
then after `PAUSES`. If it ends too often within `WINDOW`, it is not started any more. A call in progress gets an error
result which says that the tool may or may not have run; the result of a call that was not sent says that the tool did
not run. After ``kill -9`` of our process a guard in the server's session ends what is left of it (see
`ikigai_actors.tools.process`).

A call connects to a remote server if there is no connection. The database keeps the
tools that it has listed. So a host starts while the server is away, and a changed list replaces the tools: calls that
were approved by the former definition are asked about again.

The output of all servers is read on the event loop that all agents share, where a long line blocks. So a server that
writes a line of more than `LINE_LIMIT` bytes is ended, with a notice.
"""

import asyncio
import os
import re
import shlex
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from ikigai_actors.actors.clock import Clock, SystemClock
from ikigai_actors.actors.threads import in_thread
from ikigai_actors.arguments import (
    check_count,
    check_flag,
    check_optional,
    check_seconds,
    check_type,
    check_variables,
    shown,
)
from ikigai_actors.errors import BadInput
from ikigai_actors.extras import NeedsExtra
from ikigai_actors.text import unused
from ikigai_actors.tools.base import Tell, Toolset
from ikigai_actors.tools.fence.policy import Fence
from ikigai_actors.tools.function import TIMEOUT, Result, Tool, ToolError
from ikigai_actors.tools.mcp.remote_address import (
    check_account,
    check_remote_client,
    check_remote_headers,
    check_url,
    is_url,
    looked_up,
    name_of_url,
)
from ikigai_actors.tools.policy import Policy
from supervisors.intensity import add_restart

if TYPE_CHECKING:
    from mcp.types import Tool as Listed

    from ikigai_actors.tools.fence.enclosure import Enclosure
    from ikigai_actors.tools.mcp.account_connections import AccountConnections
    from ikigai_actors.tools.mcp.connection import Run
    from ikigai_actors.tools.mcp.remote import RemoteConnection, RemoteRun

START_TIMEOUT = 30.0
"""The seconds within which a server must list its tools."""

PAUSES = (0.0, 1.0, 10.0)
"""The seconds between the end of a server and its next start: after the first end, the second, and so on. After one
more end it is not started again.
"""

LINE_LIMIT = 4 * 1024 * 1024
"""The most bytes of a line that a server may write: a message, such as the result of a call. A model reads at most
50,000 characters of a result; a larger picture is left out.
"""

MOST_BEFORE_A_MODEL = 10
"""The most tools of a server that a model is shown without ``find_tools``, unless ``defer`` is set."""

WINDOW = 600.0
"""The seconds for which an end of a server counts. The period includes both ends, as in OTP."""

LONGEST_TOOL = 128
"""The most characters of a tool's name."""

_LAUNCHERS = re.compile(
    r"(python|pypy)[\d.]*|uvx?|pipx|npx|npm|node|bunx?|deno|docker|podman|env|(ba|z)?sh|run|exec|tool"
)


@dataclass(frozen=True, slots=True)
class Restarts:
    """Decides when a server that has ended may be started again, after the pauses `PAUSES`. Pure."""

    ends: tuple[int, ...] = ()
    """The times of the ends that count, in milliseconds of the monotonic clock. A restart followed each."""
    given_up: bool = False

    def after(self, now: float) -> "Restarts":
        """Return the record of restarts with one more end of the server; ``now`` is in seconds."""
        ends = add_restart(self.ends, int(now * 1000), len(PAUSES), int(WINDOW * 1000))
        return Restarts(self.ends, given_up=True) if ends is None else Restarts(ends, self.given_up)

    def pause(self, now: float) -> float:
        """Return the seconds from ``now`` until the server may be started.

        Do not call it for a server that has ended too often.
        """
        return max(0.0, self.ends[-1] / 1000 + PAUSES[len(self.ends) - 1] - now) if self.ends else 0.0


class McpServer(Toolset):
    """The tools of an MCP server, as a toolset."""

    def __init__(
        self,
        command: str | Sequence[str],
        *,
        name: str | None = None,
        policy: str | None = None,
        timeout: float = TIMEOUT,
        env: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        account: str | None = None,
        client_id: str | None = None,
        client_secret: str | None = None,
        fence: Fence | None = None,
        start_timeout: float = START_TIMEOUT,
        line_limit: int = LINE_LIMIT,
        defer: bool | None = None,
        clock: Clock | None = None,
    ) -> None:
        """Describe a server; it is started by `ActorSystem.open`.

        Args:
            command: what starts it, as a line that a shell would split into words (nothing else of a shell is heeded),
                or as the words; or the URL of a remote server.
            name: the text before the names of its tools; derived from the command when None.
            policy: ``allow``, ``ask`` or ``deny`` for all of its tools; None means allow for those that it calls
                read-only, else ask.
            timeout: seconds that a call may take.
            env: environment variables that it gets beside a few common ones, such as ``PATH`` and ``HOME``.
            headers: sent with each request to a remote server. ``env:NAME`` and ``file:PATH`` in them name secrets,
                which each connection looks up.
            account: a label of agents: each value of it, such as each user, has an account of its own at a remote
                server, which a person connects when a call needs it. The host has the operator's key then.
            client_id: the client that was registered at the authorization server by hand; None for one that registers
                itself.
            client_secret: the reference to the client's secret, as ``env:NAME``; None for a public client.
            fence: what it may reach, in a fence of its own; it then begins in a private home. None for no fence.
            start_timeout: seconds until it must have listed its tools.
            line_limit: bytes of a line that it may write; one that writes a longer one is ended. For a remote server,
                bytes of an answer.
            defer: whether models have to find its tools before their requests have the descriptions; None where it
                has more than `MOST_BEFORE_A_MODEL`.
            clock: decides when it may be started again; the machine's own when None.

        Raises:
            BadInput: the command, the name, the policy or a time cannot be used.
        """
        self._url = check_url(str(command)) if is_url(command) else ""
        self._command = [self._url] if self._url else _words(command)
        self._name = name_of(self._command) if name is None else name
        if self._url and (env or fence is not None):
            raise BadInput("A remote MCP server takes no env and no fence: it runs elsewhere. Give it headers.")
        self._headers = check_remote_headers(headers)
        if headers is not None and not self._url:
            raise BadInput("An MCP server that is a program takes no headers: give it env.")
        if re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", check_type(self._name, str, "name", "text, or None")) is None:
            raise BadInput(f"A server's name is 1 to 64 of a-z A-Z 0-9 _ -, got {self._name!r}; give another.")
        if policy is not None and policy not in list(Policy):
            raise BadInput(f"Expected policy to be one of {', '.join(Policy)}, or None; got {policy!r}.")
        self._account = check_account(account)
        self._client = check_remote_client(client_id, client_secret)
        if (account is not None or self._client) and not self._url:
            raise BadInput("An MCP server that is a program has no accounts: give it env.")
        if self._client and account is None:
            raise BadInput("client_id and client_secret are for accounts: name the label, account='user'.")
        if account is not None and any(name.lower() == "authorization" for name in self._headers):
            raise BadInput("An account is the authorization: leave that header out.")
        self._policy = None if policy is None else Policy(policy)
        self._timeout = check_seconds(timeout, "timeout", zero=False)
        self._start_timeout = check_seconds(start_timeout, "start_timeout", zero=False)
        self._line_limit = check_count(line_limit, "line_limit", least=1)
        self._defer = None if defer is None else check_flag(defer, "defer")
        self._env = check_variables(env, "env")
        self._fence = check_optional(fence, Fence, "fence", "a Fence")
        self._enclosure: Enclosure | None = None
        if clock is not None and not hasattr(clock, "monotonic"):
            raise BadInput(f"Expected clock to be a Clock; got {shown(clock)}.")
        self._clock = clock or SystemClock()
        self._restarts = Restarts()
        self._run: Run | None = None
        self._remote: RemoteConnection | None = None
        self._accounts: AccountConnections | None = None
        self._listing = ""  # the digest of the tools of a remote server

    @property
    def name(self) -> str:
        """The prefix of the names of the server's tools."""
        return self._name

    async def open(self, tell: Tell) -> Sequence[Tool]:
        """Start the server, and return its tools. Raises `BadInput` when it does not start; then it has ended."""
        if self._run is not None or self._remote is not None:
            raise BadInput(f"The MCP server {self.name} is open already; make another McpServer for another system.")
        if self._url:
            return await self._open_remote(tell)
        if shutil.which(self._command[0], path=self._env.get("PATH")) is None:
            raise BadInput(f"{self._shown}: there is no command {self._command[0]!r}. Install it, or give its path.")
        with NeedsExtra("mcp", "An MCP server"):
            parts = await in_thread(lambda: import_module("ikigai_actors.tools.mcp.connection"), "ikigai-mcp-import")
        self._tell = tell
        if (fence := self._fence) is not None:
            self._enclosure = await in_thread(
                lambda: parts.enclose(fence, self.host_paths, self._env, tell), "ikigai-fence"
            )
        run = self._start()
        try:
            listed = {tool.name: tool for tool in await run.tools()}
        except parts.NotServing as error:
            self._run = None
            await self._unfence()
            raise BadInput(
                f"{self._shown} does not serve MCP: {error} Run it in a terminal to see what is wrong."
            ) from error
        except BaseException:  # Ctrl-C, while it takes its time
            self._run = None
            run.kill()
            await asyncio.wait({run.task})
            await self._unfence()
            raise
        return self._tools(listed.values(), run.misfits)

    def _tools(self, tools: "Iterable[Listed]", misfits: Mapping[str, str]) -> list[Tool]:
        """Return the listed tools, and a `Misfit` for each listed tool that violates the protocol.

        ``misfits`` has the violations, by tool.
        """
        from ikigai_actors.tools.mcp import connection as parts  # already imported

        listed = {tool.name: tool for tool in tools}
        misfits = {name: why for name, why in misfits.items() if name not in listed}
        names = tool_names(self.name, [*listed, *misfits])
        deferred = len(listed) > MOST_BEFORE_A_MODEL if self._defer is None else self._defer
        return [
            *(
                parts.McpTool(
                    tool, names[remote], self._call, self._timeout, parts.traits_of(tool, self._policy, deferred)
                )
                for remote, tool in listed.items()
            ),
            *(parts.Misfit(names[remote], why) for remote, why in misfits.items()),
        ]

    async def _open_remote(self, tell: Tell) -> Sequence[Tool]:
        """Return the tools of a remote server: as it lists them now, or the stored list if it cannot be reached."""
        with NeedsExtra("mcp", "An MCP server"):
            parts = await in_thread(lambda: import_module("ikigai_actors.tools.mcp.remote"), "ikigai-mcp-import")
        self._tell, remotes = tell, self.remotes
        if self._account is not None:
            return await self._open_accounts(tell)
        kept = None if remotes is None else await in_thread(lambda: remotes.listing(self._url), "ikigai-mcp-list")
        connection = self._remote = parts.RemoteConnection(self._connect, self._listed)
        if kept is not None:
            self._listing, _ = kept
        try:
            run = await connection.connected()
            return self._tools(await run.tools(), run.misfits)
        except parts.NotRun as error:
            if kept is not None:
                tell(f"{error} Its tools are those that it listed before.".replace(" This call did not run.", ""))
                return self._tools(parts.tools_in(kept[1]), {})
            self._remote = None
            await connection.close()
            why = str(error).removesuffix(" This call did not run.")
            raise BadInput(
                f"{self._shown} does not serve MCP: {why} Check its URL, its headers and the network."
            ) from error
        except BaseException:  # Ctrl-C, while it takes its time
            self._remote = None
            await connection.close()
            raise

    async def _open_accounts(self, tell: Tell) -> Sequence[Tool]:
        """Return the tools of a server with accounts: the stored list, or the list of the first account that works.

        The tool ``connect``, which asks for an account, is added. Without a list it is the only tool. With a list it is
        added too, because calls of it may still wait.
        """
        from ikigai_actors.tools.mcp import remote as parts  # already imported
        from ikigai_actors.tools.mcp.account_connections import AccountConnections, AccountNeeded

        remotes, label = self.remotes, self._account
        if remotes is None or label is None:
            raise BadInput(f"{self._shown} has accounts, so an ActorSystem has to open it.")
        await in_thread(remotes.check_accounts, "ikigai-accounts")
        connections = self._accounts = AccountConnections(
            self._url,
            label,
            self._client,
            remotes,
            lambda: parts.RemoteConnection(self._connect, self._listed),
            self._clock.monotonic,
        )
        kept = await in_thread(lambda: remotes.listing(self._url), "ikigai-mcp-list")
        if kept is not None:
            self._listing, listing = kept
            return self._with_connect(self._tools(parts.tools_in(listing), {}))
        for subject in await in_thread(lambda: remotes.subjects(self._url), "ikigai-mcp-list"):
            try:
                run = await connections.call_as(subject, lambda connection: connection.connected())
                return self._with_connect(self._tools(await run.tools(), run.misfits))
            except (AccountNeeded, ToolError) as error:
                tell(f"The tools could not be listed with the account of {subject}: {error}")
        return self._with_connect([])

    def _with_connect(self, tools: Sequence[Tool]) -> list[Tool]:
        """Return the tools with the tool ``connect``, unless the server has a tool of that name."""
        from mcp.types import Tool as Listed

        from ikigai_actors.tools.mcp.connection import McpTool, traits_of

        says = f"Connects an account at {self._url}. Call it where its tools are not there: they are known afterwards."
        listed = Listed(name="connect", description=says, input_schema={"type": "object", "properties": {}})
        name = tool_names(self.name, ["connect"])["connect"]
        if any(tool.name == name for tool in tools):
            return list(tools)
        connect = McpTool(listed, name, self._list_by_account, self._timeout, traits_of(listed, Policy.ALLOW))
        return [connect, *tools]

    async def _list_by_account(self, tool: str, arguments: dict[str, Any]) -> Result:
        """List the tools with the acting agent's account, and offer them. Return their names as a result."""
        assert self._accounts is not None

        async def listed(connection: "RemoteConnection") -> Result:
            run = await connection.connected()
            tools = self._tools(await run.tools(), run.misfits)
            if self.remotes is not None:
                self.remotes.redefine(tools)
            return Result(f"Connected. Its tools: {', '.join(tool.name for tool in tools) or 'none'}.")

        return await self._accounts.call_here(listed)

    def _connect(self, on_end: "Callable[[Run], None]", bearer: str = "") -> "RemoteRun":
        from ikigai_actors.tools.mcp.remote import RemoteRun  # already imported

        secret = (lambda reference: "") if self.remotes is None else self.remotes.secret
        headers = looked_up(self._headers, secret)
        return RemoteRun(self.name, self._url, headers, self._start_timeout, self._line_limit, on_end, bearer)

    def _listed(self, run: "RemoteRun", tools: "Sequence[Listed]") -> None:
        """Store the tools that a new connection lists, and offer them if the list has changed."""
        from ikigai_actors.tools.mcp.remote import listing_of  # already imported

        digest, body = listing_of(tools)
        if digest == self._listing:
            return
        former, self._listing = self._listing, digest
        if self.remotes is not None:
            self.remotes.keep_listing(self._url, digest, body)
        if former:
            self._tell("Its tools have changed since they were listed: calls that wait for approval are asked again.")
            if self.remotes is not None:
                self.remotes.redefine(self._tools(tools, run.misfits))

    async def leave(self, agent: str) -> None:
        """Do nothing, because all agents share the server."""

    async def close(self) -> None:
        """End the server and all processes that it started; or the connection to a remote server."""
        accounts, self._accounts = self._accounts, None
        if accounts is not None:
            await accounts.close()
        connection, self._remote = self._remote, None
        if connection is not None:
            await connection.close()
        run, self._run = self._run, None
        if run is not None:
            await run.stop()
        await self._unfence()

    async def _unfence(self) -> None:
        enclosure, self._enclosure = self._enclosure, None
        if enclosure is not None:
            await in_thread(enclosure.close, "ikigai-fence")

    @property
    def _shown(self) -> str:
        return f"The MCP server {self.name} ({shlex.join(self._command)})"

    def _start(self) -> "Run":
        from ikigai_actors.tools.mcp.connection import Run  # already imported

        self._run = Run(
            self.name, self._command, self._env, self._start_timeout, self._line_limit, self._ended, self._enclosure
        )
        return self._run

    def _ended(self, run: "Run") -> None:
        """Count the end of a run, and report it to a person, unless this program has ended the server."""
        if run.stopped or not (run.served or self._restarts.ends):  # `open` reports that it never served
            return
        self._restarts = self._restarts.after(self._clock.monotonic())
        does = "it is given up" if self._restarts.given_up else "a call to its tools starts it again"
        ended = f"was ended, since {run.fault}" if run.fault else "ended"
        self._tell(f"The MCP server {ended}; {does}.{run.last_words}")

    async def _call(self, tool: str, arguments: dict[str, Any]) -> Result:
        """Call a tool; start the server first if it has ended. Raises ``ToolError``."""
        from ikigai_actors.tools.mcp.connection import NotServing

        if self._accounts is not None:
            return await self._accounts.call_here(lambda connection: connection.call(tool, arguments))
        if self._url:
            if self._remote is None:
                raise ToolError(f"{self._shown} is closed. This call did not run.")
            return await self._remote.call(tool, arguments)
        try:
            return await (await self._serving()).call(tool, arguments)
        except NotServing as error:
            raise ToolError(f"{self._shown} {error} This call did not run.") from error

    async def _serving(self) -> "Run":
        """Return the run of the server, started if needed. Raises ``NotServing``."""
        from ikigai_actors.tools.mcp.connection import NotServing

        while (run := self._run) is not None and run.over and not run.task.done():
            await asyncio.wait({run.task})  # what is left of it would be in the way of the next one
        if run is None:
            raise NotServing("is closed.")
        if run.task.done():
            if self._restarts.given_up:
                raise NotServing(f"ended {len(PAUSES) + 1} times, and is given up. Do without it.")
            if (pause := self._restarts.pause(self._clock.monotonic())) > 0:
                raise NotServing(f"ended. Call again in {pause:.0f} s or later: then it is started again.")
            run = self._start()
        try:
            await run.tools()
        except NotServing as error:
            raise NotServing(f"ended, and could not be started again: {error}") from error
        return run


def mcp_servers(commands: Iterable[str]) -> list[McpServer]:
    """Make a server for each command. Servers with equal names get numbers."""
    made: list[McpServer] = []
    for command in commands:
        words = [command.strip()] if is_url(command) else _words(command)
        name = unused(name_of(words), {server.name for server in made}, 64)
        made.append(McpServer(command, name=name))
    return made


def name_of(words: Sequence[str]) -> str:
    """Return a name for a server, from its URL or from its command: the program that is run, without its runner."""
    if is_url(words[0]):
        return legal(name_of_url(words[0]))[:64] or "mcp"
    said = [word for word in words if re.fullmatch(r"[^-\s=][^\s=]*", word)]
    chosen = next((word for word in said if not _LAUNCHERS.fullmatch(PurePath(word).name)), words[0])
    last = PurePath(chosen).name.split("@")[0]  # without a version
    return legal(last.removesuffix(".py").removesuffix(".js"))[:64] or "mcp"


def tool_names(server: str, remote: Iterable[str]) -> dict[str, str]:
    """Return names that models accept for the tools of a server, by the server's names; no two are equal."""
    names: dict[str, str] = {}
    for tool in sorted(remote):
        names[tool] = unused(f"{server}__{legal(tool)}", set(names.values()), LONGEST_TOOL)
    return names


def legal(text: str) -> str:
    """Replace the characters of a text that the name of a tool must not have."""
    return re.sub(r"[^a-zA-Z0-9_-]+", "_", text)


def _words(command: str | Sequence[str]) -> list[str]:
    if not isinstance(command, Iterable) or not all(isinstance(word, str | os.PathLike) for word in command):
        raise BadInput(f"Expected command to be a line or a list of words; got {shown(command)}.")
    try:
        words = shlex.split(command) if isinstance(command, str) else [os.fspath(word) for word in command]
    except ValueError as error:
        raise BadInput(f"The command {command!r} cannot be split into words: {error}. Check its quotes.") from error
    if not words or not words[0] or any("\0" in word for word in words):
        raise BadInput(f"Expected a command that starts an MCP server, got {command!r}.")
    return words
