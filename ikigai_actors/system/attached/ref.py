"""Handles of agents that another process runs, and what they work with. See `AttachedSystem`."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NoReturn

from ikigai_actors.actors.futures import Future
from ikigai_actors.errors import BadInput, HostElsewhere
from ikigai_actors.providers.base import Reply
from ikigai_actors.system.approvals import Approvals
from ikigai_actors.system.lifecycle import Lifecycle, had_effect
from ikigai_actors.system.ref import AgentCommands, AgentRef
from ikigai_actors.text import check_text
from supervisors.signals import Signal

if TYPE_CHECKING:
    from ikigai_actors.system.attached.system import AttachedSystem


class AttachedCommands(AgentCommands):
    """The commands as futures. What is not here is refused by `AttachedSystem.actor`, or goes by rows as it is."""

    __slots__ = ()

    _ref: "AttachedRef"

    def prompt(self, text: str) -> Future[Reply]:
        """See `AgentRef.prompt`: a mail of kind ``prompt``, committed when this returns."""
        check_text(text, "prompt")
        if not text.strip():
            raise BadInput("Expected a prompt, got blank text. Say something.")
        return self._ref.system.prompt(self._ref.uuid, text)

    def reply(self) -> Future[Reply]:
        """See `AgentRef.reply`."""
        return self._ref.system.reply(self._ref.uuid)


class AttachedRef(AgentRef):
    """The handle of one agent."""

    __slots__ = ()

    system: "AttachedSystem"

    @property
    def ask(self) -> AttachedCommands:
        """See `AgentRef.ask`."""
        return AttachedCommands(self)

    @property
    def _now(self) -> AttachedCommands:
        return AttachedCommands(self, waits=True)

    def settings_at_hand(self) -> Mapping[str, Any] | None:
        """See `AgentRef.settings_at_hand`: its log is in another process."""
        return None


class AttachedApprovals(Approvals):
    """Lists the calls that wait; decides on none."""

    here = False

    def _decide(self, *_: Any) -> NoReturn:
        raise HostElsewhere("Calls are approved and denied in the shell that runs the agents; here they can be listed.")


class AttachedLifecycle(Lifecycle):
    """Signals and supervision as rows, which the host carries out."""

    here = False

    def interrupt(self, uuid: str, *, cascade: bool = False) -> Future[bool]:
        """INT: the host ends the turn that is in progress now."""
        return self.signal(uuid, Signal.INT, had_effect, cascade=cascade)

    def adopt(self, child: str, by: str, timeout: float | None = None) -> NoReturn:
        raise HostElsewhere("Adopt it in the shell that runs the agents: it must let the adopted one go on.")
