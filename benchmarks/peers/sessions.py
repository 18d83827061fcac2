"""Others that store a conversation: what it costs them to fork it, to add a message, to read it, by their public
interfaces and without a network.

A peer is imported when it is asked for, so that one that is not installed is merely named in the table.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple, Protocol

from benchmarks.machine import installed
from benchmarks.places import Place


class Session(Protocol):
    """A conversation of some length, ready to be forked. What it does not offer raises `NotImplementedError`."""

    def fork(self) -> None:
        """Fork it once: this is measured."""

    def rest(self) -> None:
        """Return to where the next fork begins: this is not."""

    def append(self, count: int) -> None:
        """Add so many messages, each durable before the next."""

    def read(self) -> int:
        """Read the whole conversation from where it is stored; return how many messages it has."""

    def turn(self) -> None:
        """Prompt it, and have a plain function answer from the last message, all durable. This is measured."""

    def close(self) -> None:
        """Give back what it holds."""


class Unavailable(Exception):
    """There is no session; the message says why in a word or two."""


class Peer(NamedTuple):
    """One way to store conversations."""

    name: str
    package: str
    module: str
    make: str
    """What makes a `Session`: a directory for its files, a URL if its backend is a server, a number of messages."""
    backend: str
    """``SQLite`` and ``PostgreSQL`` as in the name of a place, or ``file``."""
    most: int
    """The longest history that is tried, so that the whole takes minutes."""

    @property
    def who(self) -> str:
        """Its name with its version, if there is one."""
        return f"{self.name} {installed(self.package) or ''}".strip()

    @contextmanager
    def session(self, places: list[Place], count: int) -> Iterator[Session]:
        """A session of so many messages. Raises `Unavailable`."""
        if count > self.most:
            raise Unavailable("not tried")
        with ExitStack() as stack:
            directory = Path(stack.enter_context(TemporaryDirectory(prefix="ikigai-benchmarks-")))
            session = self._made(directory, self._url(places, stack), count)
            stack.callback(session.close)
            yield session

    def _made(self, directory: Path, url: str, count: int) -> Session:
        try:
            make: Callable[[Path, str, int], Session] = getattr(import_module(self.module), self.make)
            return make(directory, url, count)
        except ImportError as error:
            raise Unavailable("not installed") from error

    def _url(self, places: list[Place], stack: ExitStack) -> str:
        if self.backend != "PostgreSQL":
            return ""
        for place in places:
            if place.name == self.backend:
                database = place.fresh()
                stack.callback(database.drop)
                return database.url
        raise Unavailable("no server")


PEERS = (
    Peer("OpenAI Agents AdvancedSQLiteSession", "openai-agents",
         "benchmarks.peers.openai_session", "OpenAISession", "SQLite", 100_000),
    Peer("Claude Agent SDK", "claude-agent-sdk",
         "benchmarks.peers.claude_session", "ClaudeSession", "file", 100_000),
    Peer("LangGraph SqliteSaver", "langgraph-checkpoint-sqlite",
         "benchmarks.peers.langgraph_thread", "SqliteThread", "SQLite", 100_000),
    Peer("LangGraph SqliteSaver with DeltaChannel", "langgraph-checkpoint-sqlite",
         "benchmarks.peers.langgraph_thread", "DeltaThread", "SQLite", 100_000),
    Peer("LangGraph PostgresSaver", "langgraph-checkpoint-postgres",
         "benchmarks.peers.langgraph_thread", "PostgresThread", "PostgreSQL", 100_000),
    Peer("pi-durable-python", "pi-durable-python",
         "benchmarks.peers.pi_conversation", "PiConversation", "SQLite", 10_000),
    Peer("DBOS", "dbos", "benchmarks.peers.dbos_workflow", "Workflow", "SQLite", 100_000),
    Peer("DBOS", "dbos", "benchmarks.peers.dbos_workflow", "Workflow", "PostgreSQL", 100_000),
)  # fmt: skip

ONE_CHECKPOINT = Peer(
    'LangGraph SqliteSaver with durability="exit"', "langgraph-checkpoint-sqlite", "benchmarks.peers.langgraph_thread",
    "ExitThread", "SQLite", 100_000,
)  # fmt: skip
"""Differs from the other threads of LangGraph in a turn alone."""
