"""Every error that ikigai raises on purpose.

    IkigaiError
    ├── AgentError              about one agent
    │   ├── AgentNotFound       nobody has this uuid, name or prefix
    │   ├── AmbiguousAgent      several agents share this prefix
    │   ├── AgentDead           the agent is dead: its history can be read, but it acts no more
    │   ├── RootProtected       agent 0 cannot be killed
    │   ├── AgentStopped        the agent is paused: CONT lets it go on
    │   ├── NameTaken           a living agent has this name
    │   ├── TooManyAgents       the model may not fork further agents
    │   ├── MarkNotFound        no mark with this name, so no rewind to it
    │   ├── NotABoundary        a position at which a history cannot be cut
    │   ├── HistoryPruned       the messages of this long-dead agent were deleted
    │   ├── NothingToCompact    the history is so short that a summary would save nothing
    │   ├── NothingToUncompact  no summary is in force
    │   ├── NotBelow            the agent to be merged is not below the agent that is to merge it
    │   ├── TurnOpen            a turn of the agent that is to be merged is open
    │   ├── HeadMoved           the agent that is to be merged has gone on meanwhile
    │   ├── AlreadyMerged       the agent has no new message since its last merge
    │   ├── FilesConflict       both agents have changed the same files
    │   ├── NothingToMerge      the agent has no message or file of the requested kind
    │   ├── MailboxFull         the agent has too much unread mail to take more
    │   ├── InboxFull           too many commands wait for the agent
    │   ├── MailNotFound        the agent has no mail with this number
    │   ├── NoTurn              the outcome of a turn was asked for, but the agent had no turn
    │   ├── TurnInterrupted     the turn was ended by INT, by a crash or by close
    │   └── Fenced              this writer may not write: the agent is dead, or another host owns it
    ├── DocumentError           about one document
    │   ├── DocumentNotFound    no document is at this path, or it has no such version
    │   └── DocumentChanged     the document is not at the version that the writer expected
    ├── BadInput                an argument is invalid: text, name, path, setting, URL
    │   └── KeyTaken            the key was used for another call
    ├── Repeated                the call was done before under its key; a caller gets the first answer, and never this
    ├── ProviderError           the model could not answer
    │   ├── ProviderMissing     no API key, or only the offline provider, which nobody has chosen
    │   │   └── ProviderUnknown a setting names an unregistered provider
    │   ├── ReplayDiverged      the record lacks a call, in a replay that runs no tool
    │   └── StepChanged         a program's acts differ from those in its log
    ├── StepFailed              a step of a program has failed
    ├── HistoryError            damaged rows, which give no history
    ├── StoreError              the database failed or refused
    │   ├── StoreUnavailable    the database is down at the moment: try again
    │   │   └── CommitUnknown   COMMIT failed, or gave no answer: the batch number shows what happened
    │   ├── StoreConflict       a constraint refused the rows
    │   ├── StoreUnusable       no ikigai database, or it must not be used: trying again does not help
    │   ├── StoreInUse          another host owns the database
    │   └── ImportRefused       a file of agents is invalid: nothing of it was imported
    ├── ExperimentDiffers       the experiment of this name has other terms
    ├── HostElsewhere           the call works only in the process that runs the agents
    ├── NoHost                  no process runs the agents
    ├── ClusterError            Ray cannot be started or reached, or does not run the hosts as asked
    ├── NoCurrentAgent          `current_agent` outside of a provider or tool
    ├── LooksOnly               the call would change something, but only reading is allowed here
    ├── NotAllowed              the principal has no right to this call
    ├── SystemClosed            the system was closed, or has stopped because of its store
    │   └── OutcomeUnknown      it stopped during the commit, which may or may not have happened (a CommitUnknown too)
    ├── WouldDeadlock           the wait could never end: on a thread that must not block, or in a circle of agents
    └── WouldWaitForItself      the agent would wait for the end of its own turn

A message says what was expected, what came, and what to do. Facts for programs are attributes.
"""

import copyreg
from collections.abc import Sequence
from typing import Any


class IkigaiError(Exception):
    """Base of all errors that ikigai raises on purpose. The errors can be pickled, with their attributes."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Return how pickle makes a copy: without ``__init__``, whose arguments are not those of `Exception`."""
        return copyreg.__newobj__, (type(self), *self.args), self.__dict__  # type: ignore[attr-defined]


class AgentError(IkigaiError):
    """Base of the errors about one agent."""

    def __init__(self, message: str, agent: str = "") -> None:
        super().__init__(message)
        self.agent = agent
        """The agent as it was named: uuid, name or prefix."""


class AgentNotFound(AgentError):
    """No agent has this uuid, name or prefix."""


class AmbiguousAgent(AgentError):
    """More than one agent's uuid begins with this prefix."""

    def __init__(self, message: str, agent: str = "", candidates: Sequence[str] = ()) -> None:
        super().__init__(message, agent)
        self.candidates = tuple(candidates)
        """The uuids that begin with the prefix (not all of them when there are many)."""


class AgentDead(AgentError):
    """The agent is dead. Its history can still be read, but no prompt, mail or signal reaches it."""


class RootProtected(AgentError):
    """Agent 0 cannot be killed, terminated or buried."""


class AgentStopped(AgentError):
    """The agent is paused, and does not carry out the request until it is continued."""


class NameTaken(AgentError):
    """A living agent already has this name."""

    def __init__(self, message: str, agent: str = "", holder: str = "", above: Sequence[str] = ()) -> None:
        super().__init__(message, agent)
        self.holder = holder
        """The uuid of the agent that has the name; empty where it is not known."""
        self.above = tuple(above)
        """The uuids of the agent's parent and supervisor."""


class TooManyAgents(AgentError):
    """Too many agents live in the branch, so a fork that a model asked for is refused."""


class BudgetExceeded(AgentError):
    """A budget does not allow the request. Nothing was done."""


class MarkNotFound(AgentError):
    """There is no mark with this label, or no mark at all."""


class NotABoundary(AgentError):
    """A history cannot be cut at this position: a step is in progress there, or the history does not reach that far."""

    def __init__(
        self, message: str, agent: str = "", at: int = 0, before: int | None = None, after: int | None = None
    ) -> None:
        super().__init__(message, agent)
        self.at = at
        """The position at which the history cannot be cut."""
        self.before = before
        """The nearest position before ``at`` where the history can be cut; None when there is none."""
        self.after = after
        """The nearest position after ``at`` where the history can be cut; None when there is none."""


class HistoryPruned(AgentError):
    """The agent was dead for long, and its messages and mail were deleted.

    The row of the agent in the registry is left.
    """

    def __init__(self, message: str, agent: str = "", at: int = 0) -> None:
        super().__init__(message, agent)
        self.at = at
        """The time of the deletion, in milliseconds since 1970."""


class NothingToCompact(AgentError):
    """A summary would save nothing: the history before the messages that it keeps is too short. Nothing was changed."""


class NothingToUncompact(AgentError):
    """No summary is in force, so `uncompact` has nothing to undo."""


class NotBelow(AgentError):
    """The agent to be merged is not a descendant of the agent that was to merge it. Nothing was changed."""


class TurnOpen(AgentError):
    """The agent to be merged is in a turn. Nothing was changed."""


class HeadMoved(AgentError):
    """The agent to be merged has written messages since the merge read its log. Nothing was changed: merge it again."""


class AlreadyMerged(AgentError):
    """The agent has said nothing since it was last merged. Nothing was changed."""


class NothingToMerge(AgentError):
    """The agent has said nothing that could be merged in this way. Nothing was changed."""


class FilesConflict(AgentError):
    """Both sides of a merge have changed the same files. Nothing was changed."""

    def __init__(self, message: str, agent: str = "", paths: Sequence[str] = ()) -> None:
        super().__init__(message, agent)
        self.paths = tuple(paths)
        """The files in conflict, beneath the directory."""


class MailboxFull(AgentError):
    """The agent has so much unread mail that it takes no more. Nothing was stored."""


class InboxFull(AgentError):
    """Too many commands wait for the agent, so it takes no more. Wait until it has carried some out, then try again."""


class Withdrawn(AgentError):
    """A person or a program withdrew a prompt, a steering message or a command before the agent took it up."""


class MailNotFound(AgentError):
    """The agent has no mail with this number."""


class GroupEmpty(AgentError):
    """Nobody else is a member of the group, so a mail to it would reach nobody."""


class GroupFull(AgentError):
    """The group has as many members as a group may have."""


class TimerNotFound(AgentError):
    """The agent has no such timer: it has fired for the last time, or was cancelled."""


class RuleNotFound(AgentError):
    """The agent has no such rule in force."""


class TooManyTimers(AgentError):
    """The agent has as many timers as an agent may have."""


class NoTurn(AgentError):
    """The agent has not had a turn yet."""


class TurnInterrupted(AgentError):
    """The turn ended without a finished reply, because of a signal INT, a crash, or the end of the process."""


class Fenced(AgentError):
    """The write was refused: the agent died or now belongs to another host. Nothing was written."""

    def __init__(self, message: str, agent: str = "", dead: bool = False) -> None:
        super().__init__(message, agent)
        self.dead = dead
        """Whether the agent is dead; False if it belongs to another host."""


class HostReplaced(Fenced):
    """Another host of the same name was started, and has replaced this host.

    Starting this one again would replace the other.
    """


class DocumentError(IkigaiError):
    """Base of the errors about one document."""

    def __init__(self, message: str, path: str, version: int = 0) -> None:
        super().__init__(message)
        self.path = path
        """The path of the document."""
        self.version = version
        """The latest stored version of the document, even if it is a deletion; 0 if nothing was ever written."""


class DocumentNotFound(DocumentError):
    """There is no document at this path, it was deleted, or it has no such version."""


class DocumentChanged(DocumentError):
    """The document is not at the version that the writer expected. Nothing was written."""


class EndpointNotFound(IkigaiError):
    """There is no endpoint of this name, or it was removed."""

    def __init__(self, message: str, endpoint: str = "") -> None:
        super().__init__(message)
        self.endpoint = endpoint
        """The name of the endpoint."""


class SubscriptionNotFound(IkigaiError):
    """There is no subscription with this id, or it has ended."""

    def __init__(self, message: str, subscription: str = "") -> None:
        super().__init__(message)
        self.subscription = subscription
        """The id of the subscription."""


class Forged(IkigaiError):
    """A delivery has no valid signature of its sender, or a signature for another time. Nothing was written."""


class BadInput(IkigaiError, ValueError):
    """An argument cannot be used. The message says which values are allowed."""


class KeyTaken(BadInput):
    """The key was used already, for another call."""

    def __init__(self, message: str, key: str = "") -> None:
        super().__init__(message)
        self.key = key
        """The key that was used already."""


class Repeated(IkigaiError):
    """A call with this key was carried out before.

    Used inside: the caller gets the first call's result, never this error.
    """

    def __init__(self, message: str, gave: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.gave: dict[str, Any] = gave or {}
        """The result of the first call, as JSON has it."""


class ProviderError(IkigaiError):
    """The model could not answer; the message says why and what to do."""

    def __init__(
        self,
        message: str,
        partial: str = "",
        *,
        broke_off: bool = False,
        unavailable: bool = False,
        free: bool = False,
        retry_after: float | None = None,
        is_kept: bool = False,
    ) -> None:
        super().__init__(message)
        self.partial = partial
        """The text received before the failure."""
        self.broke_off = broke_off
        """Whether a reply had begun and broke off, for no fault of the request: it is sent again as the setting
        ``stream_retries`` allows.
        """
        self.unavailable = unavailable
        """Whether the service is overloaded, cannot be reached or refuses to serve: the next one of the agent's models,
        if it has several, is asked.
        """
        self.free = free
        """Whether the request costs nothing: it was refused before a reply began."""
        self.retry_after = retry_after
        """Seconds after which the same request may be sent again, as the service has said; 0 where that is for its
        client to choose, and None where it does not help. The turn waits, or asks the next one of the agent's models.
        """
        self.is_kept = is_kept
        """Whether the service has the reply, or makes it still (`Delta.kept`): the same one is read when the request is
        sent again.
        """


class StepChanged(ProviderError):
    """A program asks for an act that the log of its turn does not have.

    The log has an act that the program has not asked for.
    """


class StepFailed(IkigaiError):
    """An act of a program has failed, or was cut off, so that its effect is unknown."""

    def __init__(self, message: str, call: str = "") -> None:
        super().__init__(message)
        self.call = call
        """The id of the call in the agent's log."""


class OutputError(ProviderError):
    """The model gave no value of the requested type. The message lists the faults of each attempt."""

    def __init__(self, message: str, partial: str = "", *, reason: str = "misfit") -> None:
        super().__init__(message, partial)
        self.reason = reason
        """The kind of the fault. ``misfit``: the values did not fit. ``refusal``: the model does not want to answer."""


class ProviderMissing(ProviderError):
    """No model can be asked: there is no key for its provider, or only the offline provider is available."""


class ProviderUnknown(ProviderMissing):
    """The agent's ``model`` setting names a provider that is not registered."""


class ReplayDiverged(ProviderError):
    """In a replay that runs no tools, the model has made a call that the record does not have."""


class ExperimentDiffers(IkigaiError):
    """An experiment of this name exists with other terms; or its plan asks for other trials than its book records."""


class HistoryError(IkigaiError):
    """The rows of an agent contradict each other: a position or an ancestor is missing, or a body cannot be parsed."""

    def __init__(self, message: str, agent: str = "") -> None:
        super().__init__(message)
        self.agent = agent
        """The uuid of the agent whose rows are wrong; empty when there is no such agent.

        Its heirs have no history either.
        """


class StoreError(IkigaiError):
    """The database refused or failed. The driver's error is the cause."""


class StoreUnavailable(StoreError):
    """The database does not answer at the moment: connection lost, locked, disk full. Nothing was written."""


class CommitUnknown(StoreUnavailable):
    """COMMIT failed, or its answer was lost, so the transaction may or may not have happened."""


class StoreConflict(StoreError):
    """A constraint of the database (primary key, unique name, reference, check) refused the rows.

    Nothing was written.
    """


class StoreUnusable(StoreError):
    """The database cannot be used as it is: wrong path, no permission, no database, corrupt, wrong version."""


class StoreInUse(StoreError):
    """Another host owns the database."""


class SchemaInUse(StoreInUse):
    """Hosts of an older program use the database, and this program needs a schema that they do not know."""

    def __init__(self, message: str, hosts: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.hosts = hosts
        """The older hosts, as text for people."""


class ProgramOutdated(StoreUnusable):
    """The database has a schema that this program does not know any more: a newer ikigai has changed it."""


class ImportRefused(StoreError):
    """A file of agents cannot be imported, and nothing of it was. The message names the line, or the conflict."""


class HostElsewhere(IkigaiError):
    """Another process runs the agents, and this can be done only in that process."""


class NoHost(IkigaiError):
    """No process runs the agents. Prompts and mail for them wait in the database."""


class ClusterError(IkigaiError):
    """Ray cannot be started or reached, or does not run the hosts as it was asked to; the message says why."""


class NoCurrentAgent(IkigaiError, LookupError):
    """`current_agent` was called outside of the code of an agent."""


class LooksOnly(IkigaiError):
    """A read-only request would have changed something. Nothing was written."""


class NotAllowed(IkigaiError):
    """A principal lacks the role that a verb needs, or may not reach the agent. Nothing was written."""


class SystemClosed(IkigaiError):
    """The actor system was closed, or stopped because its store failed for too long."""


class OutcomeUnknown(SystemClosed, CommitUnknown):
    """The system stopped during a commit and could not find out whether it happened.

    The change may or may not be written. Open the system again and look, before you repeat it.
    """


class WouldDeadlock(IkigaiError, RuntimeError):
    """A wait could never end: the thread is one of the runtime, or agents wait for one another in a circle."""

    def __init__(self, message: str, circle: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.circle = tuple(circle)
        """The agents of the circle, by uuid, each of which waits for the next one; empty when it is about a thread."""


class WouldWaitForItself(IkigaiError, RuntimeError):
    """An agent's own provider or tool waits for something that happens only after its turn."""
