"""The global options of the command line."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ikigai_actors.errors import BadInput

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ikigai_actors.providers.base import Provider
    from ikigai_actors.records.budgets.budget import Budget
    from ikigai_actors.store.hosts.rows import HostRecord
    from ikigai_actors.tools.base import Toolset


ATTACHED = "All that you ask for is done there."
"""What an attached shell can do."""


@dataclass(frozen=True, slots=True)
class Options:
    """What stands before the name of a command."""

    database: str | None
    provider: str | None
    model: str | None
    workspace: str | None = None
    mcp: tuple[str, ...] = ()
    yes: bool = False
    plain: bool = False
    follow: bool = True
    settings: tuple[str, ...] = ()
    budget: str | None = None
    provider_url: tuple[str, ...] = ()
    config: str | None = None

    def limits(self) -> "Budget | None":
        """What all agents together may spend. Raises `BadInput`."""
        from ikigai_actors.records.budgets.budget import parse_budget

        return None if self.budget is None else parse_budget(self.budget)

    def tools(self) -> "list[Toolset]":
        """What agents get beside what they always have. Raises `BadInput`."""
        from ikigai_actors.tools.mcp.server import mcp_servers
        from ikigai_actors.tools.workspace import Workspace

        workspaces = [Workspace(self.workspace)] if self.workspace is not None else []
        return [*workspaces, *mcp_servers(self.mcp)]

    def providers(self) -> "dict[str, Provider]":
        """The providers that are named with their addresses. Raises `BadInput`."""
        from ikigai_actors.providers.address import is_address
        from ikigai_actors.providers.configuration import endpoint

        made: dict[str, Provider] = {}
        for each in self.provider_url:
            name, _, url = each.partition("=")
            if not name or not is_address(url):
                raise BadInput(
                    f"Expected --provider-url NAME=URL, got {each!r}. For one: "
                    "--provider-url local=http://127.0.0.1:11434/v1 --model local:MODEL"
                )
            made[name] = endpoint(name, url)
        return made

    def approvals(self, interactive: bool) -> str:
        """Who decides on calls that ask: the person at the terminal; from a pipe nobody can."""
        if self.yes:
            return "allow"
        return "ask" if interactive else "deny"

    def default_settings(self) -> dict[str, Any]:
        """What goes to the models of agents that have not set it. Raises `BadInput`."""
        from ikigai_actors.records.settings import check_defaults, parse_setting

        given = {}
        for each in self.settings:
            name, equals, text = each.partition("=")
            if not equals:
                raise BadInput(f"Expected --set NAME=VALUE, got {each!r}. For one: --set max_tokens=4000")
            given[name] = parse_setting(name, text)
        return check_defaults(given)

    def default_provider(self) -> str | None:
        """Who answers for agents whose settings name no model, as ``provider:model``. Raises `BadInput`."""
        if self.model is None or self.provider is None:
            return self.model or self.provider
        named, colon, model = self.model.partition(":")
        if colon and named != self.provider:
            raise BadInput(f"--provider {self.provider} and --model {self.model} disagree; give one of them.")
        return f"{self.provider}:{model if colon else self.model}"


def attached_notices(hosts: "Sequence[HostRecord]", options: Options) -> list[str]:
    """Tell the person at an attached shell which hosts it follows, and which options have no effect there."""
    given = {
        "--model": options.model,
        "--provider": options.provider,
        "--provider-url": options.provider_url,
        "--config": options.config,
        "--workspace": options.workspace,
        "--set": options.settings,
        "--budget": options.budget,
        "--mcp": options.mcp,
        "--yes": options.yes,
    }
    useless = [name for name, value in given.items() if value]
    who = " and ".join(str(host) for host in reversed(hosts)) if hosts else "no process now"
    notices = [f"Attached: these agents are run by {who}. {ATTACHED}"]
    if useless:
        notices.append(f"Without effect here, since that process decides: {', '.join(useless)}.")
    return notices
