"""Handles of agents, which a program uses in place of actors.

    child = root.fork("analyse the schema", name="dba")     # blocks until the fork is committed
    child.prompt("and the indexes?").get(timeout=60)        # a Future of the Reply
    child = await root.aio.fork("analyse the schema")       # the same in an asyncio program
    child.signal(Signal.STOP)                               # it pauses after its step; CONT lets it go on
    branch.kill(cascade=True)                               # it and all its descendants, at once
    root.supervise(strategy="rest_for_one", intensity=5, period=60)
    root.send(child, "The schema has changed.")             # returns after the commit
    child.remind("look at the build", every="0 9 * * 1-5", zone="Europe/Berlin", prompt=True)
    [mail.body for mail in child.read_mail(sender=root)]
    root.wait([child], timeout=30)                          # {child: "idle"}

A handle consists of a uuid and a system. Threads may share it, and it is valid for dead agents too. There are two
classes with the same methods. Methods that change an agent (see `Commands`) return after the commit in `AgentRef`; in
`AsyncAgentRef` they return a future to be awaited. Methods that read (see `Readings`) work for dead agents too.
``timeout`` is in seconds. A `TimedOut` means that the answer did not come in time; the command may still be carried
out.
"""

import os
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import wraps
from inspect import Signature, formatannotation, signature
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar, cast, overload

from ikigai_actors import types
from ikigai_actors.actors.futures import Future, current_acting_agent
from ikigai_actors.agent.subscriptions import Event, check_events
from ikigai_actors.arguments import check_callable, check_count, check_flag, check_timeout, check_type, shown
from ikigai_actors.attachments import Attachable
from ikigai_actors.errors import BadInput, HostElsewhere, NoHost
from ikigai_actors.programs.acts import ProgramAct
from ikigai_actors.providers.base import Reply
from ikigai_actors.records.agents import registry
from ikigai_actors.records.agents.registry import AgentRecord, Handle, Touch, uuid_of
from ikigai_actors.records.budgets.budget import BudgetStatus
from ikigai_actors.records.lives.membership import every_group
from ikigai_actors.records.transfer.format import RecordFile
from ikigai_actors.system.directory import Directory, E
from ikigai_actors.system.event_feed import EventFeed
from ikigai_actors.system.handles.commands.every import Commands
from ikigai_actors.system.handles.readings import Readings
from ikigai_actors.system.reply_stream import AsyncReplyStream, ReplyStream

if TYPE_CHECKING:
    from ikigai_actors.records.transfer.graft import ImportFile

MOST_FOUND_AT_ONCE = 1_000
"""The most messages that `System.find` returns."""
_P = ParamSpec("_P")
_T = TypeVar("_T")

_MODULE = re.compile(r"[\w.]+\.(?=\w)")
_FUTURE = re.compile(r"Future\[((?:[^\[\]]|\[[^\[\]]*\])*)\]")


class _Asked(Commands["AgentRef"]):
    """The commands from which `AgentRef` is made; each returns a future."""

    __slots__ = ()

    _waits = True

    def _ref(self, uuid: str, output: Any = None) -> "AgentRef":
        return AgentRef(self.system, uuid, output)


class _Read(Readings["AsyncAgentRef"]):
    __slots__ = ()

    def _ref(self, uuid: str, output: Any = None) -> "AsyncAgentRef":
        return AsyncAgentRef(self.system, uuid, output)


def _words(form: Signature, ref: str) -> str:
    """Return the return type of a signature as text, for ``help`` and editors.

    ``ref``: the class of handles to name in it, sync or async.
    """
    return _MODULE.sub("", formatannotation(form.return_annotation)).replace("~H", ref)


def _waits(command: Callable[Concatenate[_Asked, _P], Future[_T]]) -> "Callable[Concatenate[AgentRef, _P], _T]":
    """Return a command as a method of `AgentRef` that waits for the future and returns its value."""

    @wraps(command)
    def wait(self: "AgentRef", /, *args: _P.args, **kwargs: _P.kwargs) -> _T:
        outcome: Any = command(_Asked(self.system, self.uuid, self._output), *args, **kwargs)
        answer: Any = outcome if isinstance(outcome, ProgramAct) and outcome.is_driven else outcome.get()
        return cast("_T", answer)

    form = signature(command)
    result_type = _FUTURE.sub(r"\1", _words(form, "AgentRef"))
    vars(wait)["__signature__"] = form.replace(return_annotation=result_type)
    return wait


def _gives(command: Callable[Concatenate[_Asked, _P], _T]) -> "Callable[Concatenate[AgentRef, _P], _T]":
    """Return a command as a method of `AgentRef` that returns the future, without waiting."""

    @wraps(command)
    def give(self: "AgentRef", /, *args: _P.args, **kwargs: _P.kwargs) -> _T:
        return command(_Asked(self.system, self.uuid, self._output), *args, **kwargs)

    return give


def _reads(reading: Callable[Concatenate[_Read, _P], _T]) -> "Callable[Concatenate[AsyncAgentRef, _P], Future[_T]]":
    """Return a reading as a method of `AsyncAgentRef`, which reads on another thread and returns a future."""

    @wraps(reading)
    def read(self: "AsyncAgentRef", /, *args: _P.args, **kwargs: _P.kwargs) -> Future[_T]:
        return self._read(lambda it: reading(it, *args, **kwargs))

    form = signature(reading)
    vars(read)["__signature__"] = form.replace(return_annotation=f"Future[{_words(form, 'AsyncAgentRef')}]")
    return read


class AgentRef(Readings["AgentRef"]):
    """The handle of one agent. Its methods wait for their results, such as a commit or a reply."""

    __slots__ = ()

    system: "System"

    def _ref(self, uuid: str, output: Any = None) -> "AgentRef":
        return AgentRef(self.system, uuid, output)

    @property
    def aio(self) -> "AsyncAgentRef":
        """The same agent for an asyncio program."""
        return AsyncAgentRef(self.system, self.uuid, self._output)

    def stream(
        self,
        text: str | None = None,
        *,
        output: Any = None,
        attach: Sequence[Attachable] = (),
        labels: Mapping[str, str] | None = None,
    ) -> ReplyStream:
        """Stream the pieces of a turn: of the turn that a prompt opens, or of the turn in progress.

            with agent.stream("Plan the mast.") as stream:
                for piece in stream:
                    print(piece.text, end="")
            print(stream.reply.text)

        The agent may run on any host. When you leave the stream, the turn goes on.

        Args:
            text: the prompt; None follows the turn in progress. Without such a turn the stream is empty.
            output: as for `prompt`.
            attach: as for `prompt`.
            labels: as for `prompt`.

        Returns:
            An iterator of `StreamPiece`: ``kind`` is ``text``, ``thinking``, ``call``, ``result`` or ``retry``, after
            which the text of the reply begins again. Its ``reply`` is the reply that ends the turn.

        Raises:
            BadInput, AgentDead, InboxFull: as for `prompt`.
        """
        return ReplyStream(self.system, self.uuid, text, self._opening(text, output, attach, labels))

    def _opening(
        self, text: str | None, output: Any, attach: Sequence[Attachable], labels: Mapping[str, str] | None
    ) -> Callable[[], Future[Reply]]:
        """Return the function that opens the turn of a stream, or waits for the turn in progress."""
        self.system._check_open()
        asked = _Asked(self.system, self.uuid, self._output)
        if text is not None:
            return asked._prompting(text, output, attach, labels)
        options = [option for option in (output, attach, labels) if option not in (None, ())]
        if attach is None or options:
            raise BadInput(f"Expected output, attach and labels together with a text; got {shown([*options])} without.")
        return asked.reply

    prompt = _gives(_Asked.prompt)
    steer = _gives(_Asked.steer)
    reply = _waits(_Asked.reply)
    resume = _waits(_Asked.resume)
    ask = _waits(_Asked.ask)
    sleep = _waits(_Asked.sleep)
    fork = _waits(_Asked.fork)
    fork_many = _waits(_Asked.fork_many)
    note = _waits(_Asked.note)
    clear = _waits(_Asked.clear)
    mark = _waits(_Asked.mark)
    rewind = _waits(_Asked.rewind)
    undo = _waits(_Asked.undo)
    compact = _waits(_Asked.compact)
    uncompact = _waits(_Asked.uncompact)
    merge = _waits(_Asked.merge)
    merge_files = _waits(_Asked.merge_files)
    use_instructions = _waits(_Asked.use_instructions)
    use_hooks = _waits(_Asked.use_hooks)
    use_kinds = _waits(_Asked.use_kinds)
    use_skills = _waits(_Asked.use_skills)
    configure = _waits(_Asked.configure)
    rename = _waits(_Asked.rename)
    signal = _waits(_Asked.signal)
    kill = _waits(_Asked.kill)
    exit = _waits(_Asked.exit)
    supervise = _waits(_Asked.supervise)
    adopt = _waits(_Asked.adopt)
    move = _waits(_Asked.move)
    grant = _waits(_Asked.grant)
    set_budget = _waits(_Asked.set_budget)
    charge = _waits(_Asked.charge)
    send = _waits(_Asked.send)
    open_mail = _waits(_Asked.open_mail)
    read_mail = _waits(_Asked.read_mail)
    delete_mail = _waits(_Asked.delete_mail)
    join = _waits(_Asked.join)
    leave = _waits(_Asked.leave)
    monitor = _waits(_Asked.monitor)
    demonitor = _waits(_Asked.demonitor)
    set_rule = _waits(_Asked.set_rule)
    remove_rule = _waits(_Asked.remove_rule)
    remind = _waits(_Asked.remind)
    cancel_timer = _waits(_Asked.cancel_timer)
    wait = _waits(_Asked.wait)


class AsyncAgentRef(Commands["AsyncAgentRef"]):
    """The handle of one agent for an asyncio program. Each method returns a future to be awaited.

    Cancelling an ``await`` does not cancel the command itself, except for `wait`, whose wait ends.
    """

    __slots__ = ()

    def _ref(self, uuid: str, output: Any = None) -> "AsyncAgentRef":
        return AsyncAgentRef(self.system, uuid, output)

    @property
    def sync(self) -> AgentRef:
        """The same agent for code that may block."""
        return AgentRef(self.system, self.uuid, self._output)

    def stream(
        self,
        text: str | None = None,
        *,
        output: Any = None,
        attach: Sequence[Attachable] = (),
        labels: Mapping[str, str] | None = None,
    ) -> AsyncReplyStream:
        """Stream the pieces of a turn, for ``async for``; see `AgentRef.stream`."""
        it = self.sync
        opens = it._opening(text, output, attach, labels)
        return AsyncReplyStream(self.system._beside, lambda: ReplyStream(it.system, it.uuid, text, opens))

    def _read(self, reading: Callable[[_Read], _T]) -> Future[_T]:
        """Run a reading of the agent on another thread; return a future of the result."""
        it = _Read(self.system, self.uuid, self._output)
        return self.system._beside.read(lambda: reading(it))

    @property
    def record(self) -> Future[AgentRecord]:
        """The row of the agent in the registry, as it is now."""
        return self._read(lambda it: it.record)

    @property
    def name(self) -> Future[str | None]:
        """The agent's name; None if it has none."""
        return self._read(lambda it: it.name)

    @property
    def state(self) -> Future[str]:
        """The state of the agent in words; see `Readings.state`."""
        return self._read(lambda it: it.state)

    @property
    def budget(self) -> Future[BudgetStatus | None]:
        """The nearest budget that limits the agent, its own or an ancestor's; None if there is none."""
        return self._read(lambda it: it.budget)

    @property
    def parent(self) -> "Future[AsyncAgentRef | None]":
        """The agent from which this one was forked; None for agent 0."""
        return self._read(lambda it: it.parent)

    @property
    def supervisor(self) -> "Future[AsyncAgentRef | None]":
        """The agent that supervises this one; None for agent 0."""
        return self._read(lambda it: it.supervisor)

    children = _reads(_Read.children)
    statistics = _reads(_Read.statistics)
    history = _reads(_Read.history)
    diff = _reads(_Read.diff)
    tools = _reads(_Read.tools)
    ranges = _reads(_Read.ranges)
    context = _reads(_Read.context)
    check_mail = _reads(_Read.check_mail)
    mails = _reads(_Read.mails)
    rules = _reads(_Read.rules)
    timers = _reads(_Read.timers)
    next_times = _reads(_Read.next_times)


AsyncAgentRef.stream.__doc__ = AgentRef.stream.__doc__  # one text for sync and async


def current_agent() -> AgentRef:
    """The agent for which the calling code runs, in a provider or a tool. Raises `NoCurrentAgent` elsewhere."""
    agent: AgentRef = current_acting_agent()
    return agent


class System(Directory):
    """The methods that `ActorSystem` and `AttachedSystem` share, for programs, handles and shells."""

    @property
    def root(self) -> AgentRef:
        """Agent 0, from which all others descend."""
        record = self._store.read(registry.root)
        if record is None:
            raise NoHost("There are no agents yet: the process that makes the first one was not done. Start again.")
        return self.handle(record.uuid)

    def agent(self, text: str) -> AgentRef:
        """The agent with this uuid, name, or unique prefix of a uuid (4 characters or more).

        Raises:
            AgentNotFound, AmbiguousAgent: no agent, or several agents, have this uuid, name or prefix.
        """
        check_type(text, str, "agent", "a uuid, the beginning of one, or a name")
        return self.handle(self._store.read(lambda tx: registry.find(tx, text)).uuid)

    @overload
    def events(
        self,
        agents: Collection[AgentRef | str] | None = None,
        *,
        only: tuple[type[E], ...],
        since: str | None = None,
    ) -> EventFeed[E]: ...

    @overload
    def events(
        self,
        agents: Collection[AgentRef | str] | None = None,
        only: tuple[type, ...] = (),
        since: str | None = None,
    ) -> EventFeed[Event]: ...

    def events(
        self,
        agents: Collection[AgentRef | str] | None = None,
        only: tuple[type, ...] = (),
        since: str | None = None,
    ) -> EventFeed[Any]:
        """The events of agents, one after the other: an iterator and a context manager.

        The feed has the events of all agents of the database, in whatever process they run. It ends when it is closed,
        or when the system is closed.

        Args:
            agents: the agents whose events come: handles, uuids or names. None for all agents, including those that are
                born later.
            only: the types of events that come; empty for all, as for `subscribe`.
            since: the ``position`` of an earlier feed. Messages and deaths that were committed after it come first,
                each once. None begins now.

        Raises:
            BadInput: ``since`` is no position, or ``only`` has no types of events.
            AgentNotFound, AmbiguousAgent: there is no such agent, or there are several.
        """
        self._check_open()
        kinds = check_events(only)
        if agents is not None and (isinstance(agents, str) or not isinstance(agents, Collection)):
            raise BadInput(f"Expected agents to be several agents, as a list; got {shown(agents)}.")
        among = None if agents is None else [uuid_of(self._store, agent) for agent in agents]
        return EventFeed(self, among, kinds, since)

    def groups(self) -> dict[str, list[AgentRef]]:
        """The groups that have members, with their members in the order in which they joined."""
        groups = self._store.read(every_group)
        return {name: [self.handle(uuid) for uuid in uuids] for name, uuids in groups.items()}

    def _tools_of(self, uuid: str) -> Future[list[Mapping[str, Any]]]:
        """Return a future of the tools that an agent's model is offered, from the process that runs the agent."""
        offered = Future[list[Mapping[str, Any]]]()
        offered.settle(self.handle(uuid).tools())
        return offered

    def handle(self, uuid: str) -> AgentRef:
        """The handle of an agent whose uuid is known; nothing is looked up."""
        self._check_open()
        return self._handle(check_type(uuid, str, "uuid", "text"))

    def _handle(self, uuid: str) -> AgentRef:
        return AgentRef(self, uuid)

    def find(self, query: str, under: Handle | str | None = None, most: int = 20) -> "list[types.FoundMessage]":
        """Search the messages of an agent and all its descendants for words. The best matches come first.

        Messages that were cleared or undone are not searched. A word of the query matches all words that begin with it,
        in upper or lower case. Messages that contain a rare word come before those with a common word. Pass several
        words for one subject.

        Args:
            query: the words; at most 12 of them are used.
            under: the agent whose tree is searched; None for agent 0.
            most: the most messages to return.

        Raises:
            BadInput: the query has no words.
            AgentNotFound, AmbiguousAgent: there is no such agent, or there are several.
        """
        from ikigai_actors.records.log.words import find_words, index_words

        self._check_open()
        check_type(query, str, "query", "text")
        count = check_count(most, "most", most=MOST_FOUND_AT_ONCE)
        top = self.root.uuid if under is None else uuid_of(self._store, under)
        agents = [top, *self._store.read(lambda tx: registry.uuids_below(tx, top))]
        index_words(self._store, agents)
        return self._store.read(lambda tx: find_words(tx, agents, query, count))

    def up(self, file: str | os.PathLike[str], *, plan: bool = False) -> "list[types.TeamLine]":
        """Make the agents of a team file that were never made, and report how the others differ from the file.

        Existing agents are neither changed nor ended. Agent 0 gets the kinds that the file's agents need and that it
        does not have yet. By naming their directory in the file, you approve of their texts.

        Args:
            file: a TOML file; `ikigai_actors.system.teams` shows one.
            plan: whether to change nothing and to report what a call would do.

        Returns:
            A line for each agent of the file, parents first.

        Raises:
            BadInput: the file cannot be read, or has faults.
            NameTaken: another agent has a name that the file uses.
        """
        from ikigai_actors.system.teams import raise_team

        self._check_open()
        check_flag(plan, "plan")
        if not isinstance(file, str | os.PathLike):
            raise BadInput(f"Expected the path of a team file; got {shown(file)}.")
        return raise_team(self._store, self._log_cache, self.handle, self.root.uuid, file, plan)

    def import_(
        self,
        file: str | os.PathLike[str] | RecordFile,
        under: Handle | str | None = None,
        *,
        documents: str = "refuse",
        stopped: bool = False,
        go: bool = False,
        notice: Callable[[str], object] = lambda text: None,
        timeout: float | None = None,
    ) -> AgentRef:
        """Import the agents of a file that `export` has made, as descendants of an agent; all of them, or none.

        Histories, settings, marks, mail and documents are kept; open turns are cut off. An agent with a cut-off turn or
        an unread prompt is stopped after the import. An agent whose uuid exists already gets a new one, so importing
        twice makes a copy. A name that exists already gets ``-2`` appended. Budgets are not imported: the budgets of
        ``under`` and above count the agents from now on. Rights are not imported either: a policy ``allow`` of the file
        does not hold, nor does an approval in an open turn, and the agents may use no tool that ``under`` may not use.

        Args:
            file: the file; or the result of `ikigai_actors.recordings.read_sessions` for a file of another program.
            under: a handle, or a uuid, name, or unique prefix of a uuid; None is agent 0.
            documents: what happens when a document exists already with other texts: ``refuse`` refuses the file,
                ``keep`` keeps the existing document, ``append`` adds the versions of the file.
            stopped: whether all imported agents are stopped, and wait for the signal CONT.
            go: whether agents with unread prompts are not stopped: they answer the prompts at once.
            notice: a function that is called before the import with lines of text: the work that the import would
                start, and the models and tools that the file names.
            timeout: seconds to wait for the commit; None waits forever.

        Returns:
            The handle of the topmost imported agent.

        Raises:
            ImportRefused: the file is damaged, is newer than this program, or conflicts with the database.
            AgentNotFound, AmbiguousAgent, AgentDead: ``under`` is no living agent.
            BudgetExceeded: a budget above it does not allow this many agents.
            HostElsewhere: another process runs the agent ``under``; import in that process.
            BadInput: an argument cannot be used, or the file cannot be read.
        """
        from ikigai_actors.arguments import as_path
        from ikigai_actors.records.transfer.graft import ImportFile

        self._check_open()
        check_timeout(timeout)
        uuid = None if under is None else uuid_of(self._store, under)
        check_callable(notice, "notice", "a function of a text")
        looked = ImportFile.of(file if isinstance(file, RecordFile) else as_path(file), documents, stopped, go)
        for line in looked.lines():
            notice(line)
        return self.handle(self._import(looked, uuid, timeout))

    def _import(self, file: "ImportFile", under: str | None, timeout: float | None) -> str:
        """Import a file under an agent; return the uuid of the topmost imported agent."""
        raise HostElsewhere("Another process runs the agents, and only that one imports: type /import FILE there.")

    def move(self, agent: AgentRef | str, host: str, timeout: float | None = None) -> None:
        """Move an agent to another host; see `AgentRef.move`.

        Args:
            agent: a handle, or a uuid, name, or unique prefix of a uuid.
            host: the name of the other host.
            timeout: seconds to wait; None waits forever.

        Raises:
            AgentNotFound, AmbiguousAgent: there is no such agent, or there are several.
            IkigaiError: an error of `AgentRef.move`.
        """
        self.handle(uuid_of(self._store, agent)).move(host, timeout)

    def _touch(self, agent: AgentRef) -> None:
        """Remember that a person looked at an agent: a shell begins there next time."""
        check_type(agent, AgentRef, "agent", "a handle")
        self._writer.perform(Touch(agent.uuid, self._clock.now_ms()))
