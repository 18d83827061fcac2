"""The options with which people open agents on the command line, as arguments of `ActorSystem.open`."""

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from ikigai_actors.arguments import a_value, shown
from ikigai_actors.errors import BadInput
from ikigai_actors.verbs.text.harmless import harmless, one_line

if TYPE_CHECKING:
    from ikigai_actors.providers.base import Provider
    from ikigai_actors.records.budgets.budget import Budget
    from ikigai_actors.tools.base import Toolset
    from ikigai_actors.tools.hooks.function import Hook

_OURS = {"database", "join", "name", "on_renewal", "on_wait", "parts"}
"""The arguments of `ActorSystem.open` that an app may not return."""

OF_A_WORKSPACE = ("fence", "network", "read", "write", "on_fork", "keep_turns")
"""The options about the access of bash, and about the files of forks; they need a workspace."""


USER_HOOKS = "hooks.json"
"""The file with the user's own hooks, beside the default database."""


@dataclass(frozen=True, slots=True)
class Options:
    """The global options of the command line, which come before the name of a command."""

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
        """Return the options as arguments of a host's command line, without the database.

        The password of the database would be visible in the list of processes.
        """
        shown: list[str] = []
        for each in fields(self):
            value = getattr(self, each.name)
            option = f"--{'set' if each.name == 'settings' else each.name.replace('_', '-')}"
            if each.name in ("database", "plain", "follow") or not value:
                continue
            values = [value] if isinstance(value, str) else () if value is True else value
            shown += [option] if value is True else [word for choice in values for word in (option, choice)]
        return shown

    def arguments(self, interactive: bool) -> dict[str, Any]:
        """Return the arguments of `ActorSystem.open` without the database, including those of the app.

        Raises `BadInput`.

        Args:
            interactive: whether a person decides on calls that need approval, if the app does not say.
        """
        if self.app is not None:
            made = {"approvals": self.approvals(interactive), **self.of_app(self.app)}
            return {**made, **self.hooks_of_user(made.get("hooks", ()))}
        default, providers = self.chosen()
        return {
            **self.hooks_of_user(),
            "provider": default,
            "providers": providers,
            "config": self.config,
            "tools": self.tools(),
            "approvals": self.approvals(interactive),
            "settings": self.default_settings(),
            "budget": self.limits(),
        }

    def of_app(self, app: str) -> dict[str, Any]:
        """Return the arguments of `ActorSystem.open` that an app returns.

        Raises `BadInput`, also for a conflicting option.
        """
        decided = "provider", "provider_url", "config", "model", "settings", "budget", "workspace", "mcp", "yes"
        for name in (*decided, *OF_A_WORKSPACE):
            if getattr(self, name):
                option = "set" if name == "settings" else name.replace("_", "-")
                raise BadInput(f"Leave out --{option}: with --app the app decides.")
        return app_arguments(app)

    def hooks_of_user(self, others: "Iterable[Hook]" = ()) -> dict[str, Any]:
        """Return the argument ``hooks`` of `ActorSystem.open`: other hooks, then those of the user's own file.

        Raises `BadInput`.
        """
        from ikigai_actors.store.location import home

        if not (file := home() / USER_HOOKS).is_file():
            return {}
        from ikigai_actors.tools.hooks.command_hooks import command_hooks

        return {"hooks": [*others, *command_hooks(file, directory=self.workspace, prefix="user-")]}

    def limits(self) -> "Budget | None":
        """Return the budget of all agents together; None without one. Raises `BadInput`."""
        from ikigai_actors.records.budgets.budget import parse_budget

        return None if self.budget is None else parse_budget(self.budget)

    def tools(self) -> "list[Toolset]":
        """Return the tools of agents in addition to the built-in ones. Raises `BadInput`."""
        from ikigai_actors.tools.mcp.server import mcp_servers

        options = {name: value for name in OF_A_WORKSPACE if (value := getattr(self, name))}
        if options and self.workspace is None:
            raise BadInput(
                f"--{next(iter(options)).replace('_', '-')} is about a workspace. Give --workspace DIR, too."
            )
        servers: list[Toolset] = [*mcp_servers(self.mcp)]
        if self.workspace is None:
            return servers
        from ikigai_actors.tools.workspace import Workspace

        return [Workspace(self.workspace, **options), *servers]

    def chosen(self) -> "tuple[str | None, dict[str, Provider]]":
        """Return the default model, ``provider:model``, and the named providers.

        Providers are named by their addresses, or one by its class. Raises `BadInput`.
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
        """Return the provider at MODULE:CLASS. Raises `BadInput`."""
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
        """Return whether a name is the name of a provider, and not of a module."""
        from ikigai_actors.providers.selection import known_names
        from ikigai_actors.system.configuration import configuration

        return name in addressed or name in known_names(configuration(self.config))

    def _addressed(self) -> "dict[str, Provider]":
        """Return the providers that were given with their addresses, by name. Raises `BadInput`."""
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
        """Return the approvals mode: ``allow``, ``ask`` if a person is at the terminal, ``deny`` if input is a pipe."""
        if self.yes:
            return "allow"
        return "ask" if interactive else "deny"

    def default_settings(self) -> dict[str, Any]:
        """Return the default settings for agents that have not set them. Raises `BadInput`."""
        from ikigai_actors.records.messages.settings import check_defaults

        return check_defaults(written_settings(self.settings, "--set NAME=VALUE", "--set max_tokens=4000"))


def written_settings(texts: Iterable[str], form: str, example: str, read: Callable[[str], str] = str) -> dict[str, Any]:
    """Parse settings that a person has written as NAME=VALUE.

    Args:
        texts: the texts, one for each setting.
        form: the expected form, for the error.
        example: an example, for the error.
        read: converts the written value.

    Raises:
        BadInput: a text has no value, or an invalid one.
    """
    from ikigai_actors.records.messages.settings import parse_setting

    made = {}
    for each in texts:
        name, equals, text = each.partition("=")
        if not equals:
            raise BadInput(f"Expected {form}, got {each!r}. For one: {example}")
        made[name] = parse_setting(name, read(text))
    return made


def named_object(reference: str, option: str, kind: str, example: str = "app") -> Any:
    """Return the object at MODULE:NAME. Raises `BadInput` with the option, the expected kind, and an example."""
    from ikigai_actors.providers.named import imported

    return imported(reference, option, kind, example)


def app_arguments(app: str) -> dict[str, Any]:
    """Call the user's app function. Raises `BadInput` with the cause if it cannot be used."""
    from ikigai_actors.reach.apps import with_build
    from ikigai_actors.system.system import ActorSystem

    named = named_object(app, "--app", "FUNCTION")
    if not callable(named) or inspect.iscoroutinefunction(named):
        what = "an async function" if callable(named) else f"{a_value(named)} and no function"
        raise BadInput(f"--app {harmless(app)} is {what}. It names a function that returns a dict of arguments.")
    try:
        made = named()
    except (Exception, SystemExit) as error:  # whatever the user's function does
        raise BadInput(
            f"--app {harmless(app)} could not be called: {type(error).__name__}: {one_line(str(error))}. It names a "
            "function without arguments."
        ) from error
    if not isinstance(made, Mapping):
        raise BadInput(f"Expected --app {harmless(app)} to return a dict of arguments; got {shown(made)}.")
    known = inspect.signature(ActorSystem.open).parameters.keys() - _OURS
    if wrong := [key for key in made if key not in known]:
        raise BadInput(
            f"--app {harmless(app)} returns an argument {harmless(str(wrong[0]))!r} that it cannot set. Those of "
            f"ActorSystem.open: {', '.join(sorted(known))}."
        )
    return with_build(made, named)
