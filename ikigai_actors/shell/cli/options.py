"""The global options of the command line."""

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from ikigai_actors.errors import BadInput

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ikigai_actors.providers.base import Provider
    from ikigai_actors.records.budgets.budget import Budget
    from ikigai_actors.store.hosts.rows import HostRecord
    from ikigai_actors.system.handles.ref import System
    from ikigai_actors.tools.base import Toolset


ATTACHED = "Your commands are carried out there."
"""The notice of an attached shell about its commands."""

_MOST_NAMED = 3
"""How many agents a notice names."""

_OF_A_WORKSPACE = ("fence", "network", "read", "write", "on_fork", "keep_turns")
"""The options that say what bash may reach, and what a fork does to files."""


@dataclass(frozen=True, slots=True)
class Options:
    """The options before the name of a command."""

    database: str | None
    provider: str | None
    model: str | None
    workspace: str | None = None
    fence: str | None = None
    network: str | None = None
    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    on_fork: str | None = None
    keep_turns: bool = False
    mcp: tuple[str, ...] = ()
    yes: bool = False
    plain: bool = False
    follow: bool = True
    settings: tuple[str, ...] = ()
    budget: str | None = None
    provider_url: tuple[str, ...] = ()
    config: str | None = None
    app: str | None = None
    log: str | None = None

    def words(self) -> list[str]:
        """The options as words of a command line for a host, without the database: a password in it would be seen."""
        shown: list[str] = []
        for each in fields(self):
            value = getattr(self, each.name)
            option = f"--{'set' if each.name == 'settings' else each.name.replace('_', '-')}"
            if each.name in ("database", "plain", "follow") or not value:
                continue
            given = [value] if isinstance(value, str) else () if value is True else value
            shown += [option] if value is True else [word for one in given for word in (option, one)]
        return shown

    def arguments(self, interactive: bool) -> dict[str, Any]:
        """The arguments of `ActorSystem.open` beside the database: those of the app, if there is one.

        Raises `BadInput`.

        Args:
            interactive: whether a person decides on calls that ask, where the app does not say.
        """
        if self.app is not None:
            return {"approvals": self.approvals(interactive), **self.of_app(self.app)}
        default, providers = self.chosen()
        return {
            "provider": default,
            "providers": providers,
            "config": self.config,
            "tools": self.tools(),
            "approvals": self.approvals(interactive),
            "settings": self.default_settings(),
            "budget": self.limits(),
        }

    def of_app(self, app: str) -> dict[str, Any]:
        """The arguments that an app gives. Raises `BadInput`, also for an option beside it that the app decides."""
        from ikigai_actors.shell.cli.app import app_arguments

        decided = "provider", "provider_url", "config", "model", "settings", "budget", "workspace", "mcp", "yes"
        for name in (*decided, *_OF_A_WORKSPACE):
            if getattr(self, name):
                option = "set" if name == "settings" else name.replace("_", "-")
                raise BadInput(f"Leave out --{option}: with --app the app decides.")
        return app_arguments(app)

    def limits(self) -> "Budget | None":
        """The budget of all agents together. Raises `BadInput`."""
        from ikigai_actors.records.budgets.budget import parse_budget

        return None if self.budget is None else parse_budget(self.budget)

    def tools(self) -> "list[Toolset]":
        """The tools of agents beside those that they always have. Raises `BadInput`."""
        from ikigai_actors.tools.mcp.server import mcp_servers

        given = {name: value for name in _OF_A_WORKSPACE if (value := getattr(self, name))}
        if given and self.workspace is None:
            raise BadInput(f"--{next(iter(given)).replace('_', '-')} is about a workspace. Give --workspace DIR, too.")
        servers: list[Toolset] = [*mcp_servers(self.mcp)]
        if self.workspace is None:
            return servers
        from ikigai_actors.tools.workspace import Workspace

        return [Workspace(self.workspace, **given), *servers]

    def chosen(self) -> "tuple[str | None, dict[str, Provider]]":
        """The default for agents whose settings name no model, as ``provider:model``, and the providers that are named.

        Those are named by their addresses, or one by its class. Raises `BadInput`.
        """
        providers, provider = self._addressed(), self.provider
        if provider is not None and ":" in provider and not self._knows(provider.partition(":")[0], providers):
            made = self._of_class(provider)
            providers[made.name], provider = made, made.name
        if self.model is None or provider is None:
            return self.model or provider, providers
        named, colon, model = self.model.partition(":")
        if colon and named != provider:
            raise BadInput(f"--provider {self.provider} and --model {self.model} disagree; give one of them.")
        return f"{provider}:{model if colon else self.model}", providers

    def _of_class(self, reference: str) -> "Provider":
        """The provider that is named as MODULE:CLASS. Raises `BadInput`."""
        from ikigai_actors.providers.named import named_provider
        from ikigai_actors.providers.selection import known_names
        from ikigai_actors.system.configuration import configuration

        try:
            return named_provider(reference, "--provider")
        except BadInput as error:
            if isinstance(error.__cause__, ModuleNotFoundError):  # perhaps a provider was meant, and its model
                known = ", ".join(sorted(known_names(configuration(self.config))))
                raise BadInput(f"{error} Those that are known by name: {known}.") from error
            raise

    def _knows(self, name: str, addressed: "Mapping[str, Provider]") -> bool:
        """Whether a provider has this name, so that no module is meant."""
        from ikigai_actors.providers.selection import known_names
        from ikigai_actors.system.configuration import configuration

        return name in addressed or name in known_names(configuration(self.config))

    def _addressed(self) -> "dict[str, Provider]":
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
        """How calls that ask are decided: by the person at the terminal; from a pipe nobody can."""
        if self.yes:
            return "allow"
        return "ask" if interactive else "deny"

    def default_settings(self) -> dict[str, Any]:
        """The settings for the models of agents that have not set them. Raises `BadInput`."""
        from ikigai_actors.records.messages.settings import check_defaults, parse_setting

        given = {}
        for each in self.settings:
            name, equals, text = each.partition("=")
            if not equals:
                raise BadInput(f"Expected --set NAME=VALUE, got {each!r}. For one: --set max_tokens=4000")
            given[name] = parse_setting(name, text)
        return check_defaults(given)


def notices_of(system: "System", options: Options) -> list[str]:
    """The notices for a person at the start of a shell."""
    from ikigai_actors.reach.views import owners_of, stand_in_notice
    from ikigai_actors.system.attached import AttachedSystem

    if isinstance(system, AttachedSystem):
        return _attached_notices(owners_of(system), options)
    return [*filter(None, [stand_in_notice(system)]), *_cut_off_notices(system), *skill_notices(system)]


def skill_notices(system: "System") -> list[str]:
    """The notices about skills, instructions and kinds on this disk about which nobody has decided yet."""
    from ikigai_actors.reach.views import undecided_kinds_of, undecided_skills_of
    from ikigai_actors.verbs.place import last_active

    agent = last_active(system).uuid
    skills, kinds = undecided_skills_of(system, agent), undecided_kinds_of(system, agent)
    return [*_undecided("skills", "Not in use here", skills), *_undecided("kinds", "Kinds not in use here", kinds)]


def _undecided(verb: str, what: str, found: list[str]) -> list[str]:
    from ikigai_actors.verbs.text.harmless import one_line

    if not found:
        return []
    names = ", ".join(map(one_line, found[:_MOST_NAMED]))
    more = f" and {len(found) - _MOST_NAMED} more" if found[_MOST_NAMED:] else ""
    return [f"{what}: {names}{more}. /{verb} shows them, /{verb} use NAME or off NAME decides."]


def _cut_off_notices(system: "System") -> list[str]:
    """The notice about turns that were cut off, if there are any: a person looks first, so nobody goes on with them."""
    from ikigai_actors.reach.views import left_turns_of

    found = left_turns_of(system, _MOST_NAMED + 1)
    names = [one.short for one in found[:_MOST_NAMED]] + ["more"] * (len(found) > _MOST_NAMED)
    if not names:
        return []
    told = " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
    how = "/switch NAME and /resume go on with one, `ikigai host` with all."
    return [f"Cut off with the process before: the turn of {told}. {how}"]


def _attached_notices(hosts: "Sequence[HostRecord]", options: Options) -> list[str]:
    """The notices for a person at an attached shell: which hosts it follows, and which options have no effect there."""
    who = " and ".join(str(host) for host in reversed(hosts)) if hosts else "no process now"
    notices = [f"Attached: these agents are run by {who}. {ATTACHED}"]
    return [*notices, *without_effect(options)]


def without_effect(options: Options) -> list[str]:
    """The notice about options that were given and that only the process which runs the agents could follow."""
    given = {
        "--model": options.model,
        "--provider": options.provider,
        "--provider-url": options.provider_url,
        "--config": options.config,
        "--app": options.app,
        "--workspace": options.workspace,
        **{f"--{name}": getattr(options, name) for name in _OF_A_WORKSPACE},
        "--set": options.settings,
        "--budget": options.budget,
        "--mcp": options.mcp,
        "--yes": options.yes,
    }
    useless = [name.replace("_", "-") for name, value in given.items() if value]
    told = f"Without effect here, since the process that runs the agents decides: {', '.join(useless)}."
    return [told] if useless else []
