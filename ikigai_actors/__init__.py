"""ikigai: Erlang's process model for LLM agents.

    from ikigai_actors import ActorSystem

    with ActorSystem.open() as system:
        child = system.root.fork("analyse the schema", name="dba")
        print(child.reply(timeout=60).text)

Layers, top first; each imports itself and those below (a test holds it):

    shell                                                    the terminal
    system; attached                                         the composition root; beside another process
    workspace, mcp_server                                    tools that work in a directory; of MCP servers
    ref, agent, process_tools, approvals > agentmail         handles, and the actor of an agent
        > errands > runtime, post
    awaited > follower; writer                               what a host commits, as others see it
    host, journal, boot, outside, publisher, reader,         one each: what performs effects, and counts
        statistics, toolbox
    dispatch, seeded > pooled > inbox                        which actor runs when
    machine > toolsteps > forks > drafts > state             pure: what an agent does next
    mcp_server > mcp_run                                     tools of other programs
    tools, toolsets > events > descriptions > calls          what can be asked of it, and called by it
    futures, assembly, providers > threads                   what goes in and out
    acts > documents, waits                                  what is written and read, and waited for
        > units, registry, log, mailbox > locks
    store                                                    the database
    history, clock, settings, messages, identity, errors     the words
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ikigai_actors.actors.futures import Future, TimedOut
    from ikigai_actors.agent.statistics import AgentStatistics
    from ikigai_actors.agent.subscriptions import Died, Mailed, PromptKept, StoreTrouble, Streamed
    from ikigai_actors.agent.turn.calls import PendingCall
    from ikigai_actors.errors import (
        AgentDead,
        AgentNotFound,
        AgentStopped,
        AmbiguousAgent,
        BadInput,
        DocumentChanged,
        DocumentNotFound,
        Fenced,
        HistoryError,
        IkigaiError,
        InboxFull,
        MailboxFull,
        MailNotFound,
        MarkNotFound,
        NameTaken,
        NoCurrentAgent,
        NoTurn,
        OutcomeUnknown,
        ProviderError,
        RootProtected,
        StoreError,
        StoreInUse,
        SystemClosed,
        TooManyAgents,
        TurnInterrupted,
        WouldDeadlock,
        WouldWaitForItself,
    )
    from ikigai_actors.providers.anthropic import AnthropicProvider
    from ikigai_actors.providers.base import Delta, Exit, OnDelta, Provider, Reply, Request, ToolCall, Usage
    from ikigai_actors.providers.function import FunctionProvider
    from ikigai_actors.providers.offline import OfflineProvider
    from ikigai_actors.providers.scripted import ScriptedProvider, Stream
    from ikigai_actors.records.documents import Document, DocumentVersion
    from ikigai_actors.records.mail import Mail, Mailbox
    from ikigai_actors.records.messages import Kind, Message
    from ikigai_actors.records.registry import AgentRecord
    from ikigai_actors.system.ref import AgentRef, Context, current_agent
    from ikigai_actors.system.system import ActorSystem
    from ikigai_actors.tools.function import tool
    from ikigai_actors.tools.mcp.server import McpServer
    from ikigai_actors.tools.workspace import Workspace
    from supervisors.orphans import OrphanPolicy
    from supervisors.signals import Signal

_HOMES = {
    "ActorSystem": "ikigai_actors.system.system",
    "AgentDead": "ikigai_actors.errors",
    "AgentNotFound": "ikigai_actors.errors",
    "AgentRecord": "ikigai_actors.records.registry",
    "AgentRef": "ikigai_actors.system.ref",
    "AgentStatistics": "ikigai_actors.agent.statistics",
    "AgentStopped": "ikigai_actors.errors",
    "AmbiguousAgent": "ikigai_actors.errors",
    "AnthropicProvider": "ikigai_actors.providers.anthropic",
    "BadInput": "ikigai_actors.errors",
    "Context": "ikigai_actors.system.ref",
    "current_agent": "ikigai_actors.system.ref",
    "Delta": "ikigai_actors.providers.base",
    "Died": "ikigai_actors.agent.subscriptions",
    "Document": "ikigai_actors.records.documents",
    "DocumentChanged": "ikigai_actors.errors",
    "DocumentNotFound": "ikigai_actors.errors",
    "DocumentVersion": "ikigai_actors.records.documents",
    "Exit": "ikigai_actors.providers.base",
    "Fenced": "ikigai_actors.errors",
    "FunctionProvider": "ikigai_actors.providers.function",
    "Future": "ikigai_actors.actors.futures",
    "HistoryError": "ikigai_actors.errors",
    "IkigaiError": "ikigai_actors.errors",
    "InboxFull": "ikigai_actors.errors",
    "Kind": "ikigai_actors.records.messages",
    "Mail": "ikigai_actors.records.mail",
    "Mailbox": "ikigai_actors.records.mail",
    "MailboxFull": "ikigai_actors.errors",
    "Mailed": "ikigai_actors.agent.subscriptions",
    "MailNotFound": "ikigai_actors.errors",
    "MarkNotFound": "ikigai_actors.errors",
    "McpServer": "ikigai_actors.tools.mcp.server",
    "Message": "ikigai_actors.records.messages",
    "NameTaken": "ikigai_actors.errors",
    "NoCurrentAgent": "ikigai_actors.errors",
    "NoTurn": "ikigai_actors.errors",
    "OutcomeUnknown": "ikigai_actors.errors",
    "OfflineProvider": "ikigai_actors.providers.offline",
    "OnDelta": "ikigai_actors.providers.base",
    "OrphanPolicy": "supervisors.orphans",
    "PendingCall": "ikigai_actors.agent.turn.calls",
    "PromptKept": "ikigai_actors.agent.subscriptions",
    "Provider": "ikigai_actors.providers.base",
    "ProviderError": "ikigai_actors.errors",
    "Reply": "ikigai_actors.providers.base",
    "Request": "ikigai_actors.providers.base",
    "RootProtected": "ikigai_actors.errors",
    "ScriptedProvider": "ikigai_actors.providers.scripted",
    "Signal": "supervisors.signals",
    "StoreError": "ikigai_actors.errors",
    "StoreInUse": "ikigai_actors.errors",
    "StoreTrouble": "ikigai_actors.agent.subscriptions",
    "Stream": "ikigai_actors.providers.scripted",
    "Streamed": "ikigai_actors.agent.subscriptions",
    "SystemClosed": "ikigai_actors.errors",
    "TimedOut": "ikigai_actors.actors.futures",
    "tool": "ikigai_actors.tools.function",
    "ToolCall": "ikigai_actors.providers.base",
    "TooManyAgents": "ikigai_actors.errors",
    "TurnInterrupted": "ikigai_actors.errors",
    "Usage": "ikigai_actors.providers.base",
    "Workspace": "ikigai_actors.tools.workspace",
    "WouldDeadlock": "ikigai_actors.errors",
    "WouldWaitForItself": "ikigai_actors.errors",
}
"""Where each public name lives. Looked up when first used, so that a command that only reads the registry imports no
runtime.
"""

__all__ = [
    "ActorSystem",
    "AgentDead",
    "AgentNotFound",
    "AgentRecord",
    "AgentRef",
    "AgentStatistics",
    "AgentStopped",
    "AmbiguousAgent",
    "AnthropicProvider",
    "BadInput",
    "Context",
    "Delta",
    "Died",
    "Document",
    "DocumentChanged",
    "DocumentNotFound",
    "DocumentVersion",
    "Exit",
    "Fenced",
    "FunctionProvider",
    "Future",
    "HistoryError",
    "IkigaiError",
    "InboxFull",
    "Kind",
    "Mail",
    "MailNotFound",
    "Mailbox",
    "MailboxFull",
    "Mailed",
    "MarkNotFound",
    "McpServer",
    "Message",
    "NameTaken",
    "NoCurrentAgent",
    "NoTurn",
    "OfflineProvider",
    "OnDelta",
    "OrphanPolicy",
    "OutcomeUnknown",
    "PendingCall",
    "PromptKept",
    "Provider",
    "ProviderError",
    "Reply",
    "Request",
    "RootProtected",
    "ScriptedProvider",
    "Signal",
    "StoreError",
    "StoreInUse",
    "StoreTrouble",
    "Stream",
    "Streamed",
    "SystemClosed",
    "TimedOut",
    "TooManyAgents",
    "ToolCall",
    "TurnInterrupted",
    "Usage",
    "Workspace",
    "WouldDeadlock",
    "WouldWaitForItself",
    "current_agent",
    "tool",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return value
