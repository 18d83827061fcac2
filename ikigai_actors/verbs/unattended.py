"""A place without a person: a script or a program gives one command, and waits for its result.

If the process that runs the agents does not carry out a command in time, the command is withdrawn, so it does not
happen later.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

from ikigai_actors.verbs import text as words
from ikigai_actors.verbs.place import Printer, ScriptPlace

if TYPE_CHECKING:
    from ikigai_actors.actors.futures import Future
    from ikigai_actors.attachments import Attachable, Attachment
    from ikigai_actors.records.agents.registry import AgentRecord
    from ikigai_actors.system.handles.commands.forks import ForkOptions
    from ikigai_actors.system.handles.ref import AgentRef, System
    from ikigai_actors.system.remote.client import Client

T = TypeVar("T")

_TAKEN_BACK_WITHIN = 5.0
"""Seconds to wait until it is known whether a withdrawn command was carried out."""


class Unattended(ScriptPlace):
    """The place of one command of a script or program, without a person."""

    def __init__(self, system: "System", screen: Printer, timeout: float | None = None) -> None:
        self.system, self.screen, self._timeout = system, screen, timeout

    def spelled(self, verb: str, agent: "AgentRef", rest: str = "") -> str:
        return verb

    def wait_for(self, work: Callable[[], T]) -> T:
        return work()

    def outcome(self, ask: "Callable[[], Future[T]]") -> T:
        from ikigai_actors.actors.futures import TimedOut
        from ikigai_actors.errors import NoHost

        future = ask()
        try:
            return future.get(timeout=self._timeout)
        except TimedOut:
            future.take_back()
            with suppress(NoHost, TimedOut):  # the answer of what was taken back
                return future.get(timeout=_TAKEN_BACK_WITHIN)
            raise TimedOut(f"Not done within {self._timeout:g} s, and not done later either.") from None

    def change(self, agent: "AgentRef", what: str, ask: "Callable[[], Future[T]]", text: str | Callable[[T], str]) -> T:
        done = self.outcome(ask)
        self.screen.line(text if isinstance(text, str) else text(done))
        return done

    def make_child(
        self, agent: "AgentRef", prompt: str | None, name: str | None, how: "ForkOptions", follow: bool | None = None
    ) -> object:
        child = self.outcome(lambda: agent.aio.fork(prompt, name=name, **how)).sync
        self.screen.line(f"{words.named(child)}: forked from {words.named(agent)}; inherits {words.inherited(child)}")
        return words.agent_row(child) | {"parent_uuid": agent.uuid}

    def uploaded(self, sha256: str) -> "Attachment":
        from ikigai_actors.reach.files import uploaded_file

        return uploaded_file(self._client(), self.principal.id, sha256)

    def leave_prompt(
        self, agent: "AgentRef", text: str, attach: "Sequence[Attachable]", key: str | None = None
    ) -> object:
        client, record = self._client(), agent.record
        mail = self._store_prompt(client, record, text, attach, key)
        self._note_delay(record, is_hosted=client.host() is not None)
        self.screen.line(f"prompt {mail} to {words.named(agent)}")
        return words.agent_row(agent) | {"mail": mail}

    def leave_word(self, agent: "AgentRef", text: str, *, now: bool, key: str | None = None) -> object:
        mail = agent.steer(text, now=now, key=key).kept.get()
        self._note_delay(agent.record, is_hosted=self._client().host() is not None)
        self.screen.line(f"word {mail} to {words.named(agent)}")
        return words.agent_row(agent) | {"mail": mail}

    def resume_turn(self, agent: "AgentRef") -> bool:
        if words.resume_waits(agent):
            self.screen.error(words.waits_for_cont(agent, "the resume"))
        resumed = self.outcome(agent.aio.resume)
        self.screen.line(
            f"{words.named(agent)} goes on with its latest turn" if resumed else words.nothing_to_resume(agent)
        )
        return resumed

    def leave_the_dead(self) -> None:
        """Do nothing, because there is no person."""

    def _client(self) -> "Client":
        from ikigai_actors.system.remote.client import Client

        return Client(self.system._store, self.system._clock)

    def _store_prompt(
        self, client: "Client", to: "AgentRecord", text: str, attach: "Sequence[Attachable]", key: str | None
    ) -> int:
        """Store a prompt, once under its key; return the number of its mail."""
        from ikigai_actors.attachments import attachments
        from ikigai_actors.records.messages.blob_references import stored_in

        files = attachments(attach)
        return client.prompt(to.uuid, text, stored_in(files), files, key)

    def _note_delay(self, to: "AgentRecord", is_hosted: bool) -> None:
        """Print a notice if a prompt may wait for a long time."""
        if not is_hosted:
            self.screen.error("No process runs these agents now: the prompt waits until one does, as ikigai does.")
        elif to.status == "stopped":
            self.screen.error(
                f"{to.short} is stopped: the prompt waits until it goes on (ikigai signal CONT {to.short})."
            )
