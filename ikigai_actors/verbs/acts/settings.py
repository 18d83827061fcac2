"""Acts on the settings of agents."""

from collections.abc import Mapping
from typing import Any, TypedDict

from ikigai_actors.agent.remote_commands import encode
from ikigai_actors.agent.turn import events as on
from ikigai_actors.errors import IkigaiError
from ikigai_actors.reach.access import Access
from ikigai_actors.reach.views import scrollback_of
from ikigai_actors.records.hosts.remote_commands import AddRemoteCommand
from ikigai_actors.records.messages.settings import check_settings
from ikigai_actors.verbs.act import ONLY_READS, act
from ikigai_actors.verbs.acts.turns import NamedAgent


class AgentSettings(TypedDict):
    """The answer to `settings`: the settings in force for an agent."""

    agent: str
    settings: Mapping[str, Any]


class SettingsChange(TypedDict):
    """The answer to `configure`: the request, and whether the change is done."""

    agent: str
    request: int
    done: bool


@act("settings", "Read settings", verb="settings", gives=AgentSettings, hints=ONLY_READS)
def read_settings(reach: Access, agent: NamedAgent) -> AgentSettings:
    """Read the settings of an agent that are in force: its own, and those that it inherits."""
    uuid = reach.find(agent).uuid
    return {"agent": uuid, "settings": scrollback_of(reach.client, uuid).settings()}


@act("configure", "Change settings", verb="set", gives=SettingsChange, keyed=True)
def configure(reach: Access, agent: NamedAgent, settings: dict[str, Any]) -> SettingsChange:
    """Change settings of an agent.

    A busy agent does it after its turn: call again with the same key until done is true.

    Args:
        settings: The settings by their names; null removes one.
    """

    def unit() -> AddRemoteCommand:
        kind, body = encode(on.Configure(check_settings(settings), None))
        return AddRemoteCommand(reach.find(agent).uuid, kind, body, reach.client.now_ms())

    asked = reach.asked(unit)
    answer = reach.answer(asked, reach.quick)
    if answer is not None and isinstance(answer.value, IkigaiError):
        raise answer.value
    return {"agent": asked.agent, "request": asked.id, "done": answer is not None}
