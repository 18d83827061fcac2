"""Others that fork a conversation: what a fork costs them, through their public interfaces, without a network.

A peer is imported when it is asked for, so that one that is not installed is merely named in the table.
"""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import NamedTuple, Protocol


class Session(Protocol):
    """A conversation of some length, ready to be forked."""

    def fork(self) -> None:
        """Fork it once: this is measured."""

    def rest(self) -> None:
        """Return to where the next fork begins: this is not."""

    def close(self) -> None:
        """Give back what it holds."""


class Peer(NamedTuple):
    """One way to fork."""

    name: str
    package: str
    module: str
    make: str
    most: int
    """The longest history that is tried, so that the whole takes minutes."""

    def open(self) -> Callable[[Path, int], Session]:
        """What makes a session in a directory, with so many messages. Raises `ImportError`."""
        make: Callable[[Path, int], Session] = getattr(import_module(self.module), self.make)
        return make


PEERS = (
    Peer("OpenAI Agents, AdvancedSQLiteSession branch", "openai-agents",
         "benchmarks.peers.openai_session", "OpenAISession", 100_000),
    Peer("Claude Agent SDK, fork_session", "claude-agent-sdk",
         "benchmarks.peers.claude_session", "ClaudeSession", 100_000),
    Peer("LangGraph, SqliteSaver, MessagesState", "langgraph-checkpoint-sqlite",
         "benchmarks.peers.langgraph_thread", "LangGraphThread", 100_000),
    Peer("LangGraph, SqliteSaver, DeltaChannel (beta)", "langgraph-checkpoint-sqlite",
         "benchmarks.peers.langgraph_thread", "DeltaThread", 100_000),
)  # fmt: skip
