"""The options of a system: what `ActorSystem.open` was given, checked before anything is opened."""

import inspect
import logging
import os
import socket
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ikigai_actors.agent.hooks import HookBook
from ikigai_actors.agent.instruments import Instrument, check_instruments
from ikigai_actors.agent.toolbox import Toolbox
from ikigai_actors.agent.turn.calls import Approver
from ikigai_actors.arguments import (
    check_callable,
    check_count,
    check_flag,
    check_optional,
    check_seconds,
    check_type,
    shown,
)
from ikigai_actors.errors import BadInput
from ikigai_actors.programs.provider import Program
from ikigai_actors.programs.tools import Programs
from ikigai_actors.providers.base import Provider
from ikigai_actors.providers.limits import Limits
from ikigai_actors.providers.prices import Prices, known_prices, read_prices, updated_prices
from ikigai_actors.providers.selection import Providers, choose_providers
from ikigai_actors.records.agents.identity import check_name
from ikigai_actors.records.agents.labels import check_labels
from ikigai_actors.records.budgets.budget import Budget, as_budget
from ikigai_actors.records.hosts.offers import HostOffer
from ikigai_actors.records.messages.settings import check_defaults
from ikigai_actors.records.outbox.addresses import AllowedAddresses
from ikigai_actors.store.hosts.host import unshareable
from ikigai_actors.store.location import home, locate
from ikigai_actors.system.agents_tool import ListAgents
from ikigai_actors.system.configuration import configuration
from ikigai_actors.system.guarded_http import allowed_addresses
from ikigai_actors.system.lifecycle import check_policy
from ikigai_actors.system.platform import SYSTEM_PLATFORM, Platform
from ikigai_actors.system.secrets import key_references
from ikigai_actors.tools.base import Toolset
from ikigai_actors.tools.builds import Build, build_of
from ikigai_actors.tools.function import Tool
from ikigai_actors.tools.hooks.function import Hook, check_hooks
from ikigai_actors.tools.policy import Policy
from ikigai_actors.tools.rules.rule import NewRule, as_rules

logger = logging.getLogger(__name__)

MOST_WORKERS = 1_000
"""The most threads that run agents: they never block, so more than a machine's cores are of no use."""

_OF_A_TOOL = ("name", "timeout", "traits", "is_async", "describe", "call", "call_async")


def choose_approver(approvals: Approver | str) -> tuple[Policy, Approver | None]:
    """Return the policy for calls that need approval, and the function that decides, if any. Raises `BadInput`."""
    if callable(approvals):
        return Policy.ASK, approvals
    try:
        return Policy(approvals), None
    except ValueError as error:
        raise BadInput(
            f"Expected approvals to be a function, 'ask', 'deny' or 'allow'; got {shown(approvals)}."
        ) from error


def check_tools(tools: object) -> list[Tool | Toolset]:
    """Check that values are tools or toolsets, and return them as a list. Raises `BadInput`."""
    if isinstance(tools, str) or not isinstance(tools, Iterable):
        raise BadInput(f"Expected tools to be a list of tools; got {shown(tools)}.")
    listed = [*tools]
    for tool in listed:
        if inspect.isclass(tool) or not (isinstance(tool, Toolset) or all(hasattr(tool, part) for part in _OF_A_TOOL)):
            remedy = " Put @tool on the function, or write tool(function)." if inspect.isroutine(tool) else ""
            raise BadInput(f"Expected each of tools to be a tool or a toolset; got {shown(tool)}.{remedy}")
    return listed


def check_programs(programs: object) -> dict[str, Program]:
    """Return the programs by name. Raises `BadInput` for a value that is no program, and for two of one name."""
    if isinstance(programs, str) or not isinstance(programs, Iterable):
        raise BadInput(f"Expected programs to be a list of programs; got {shown(programs)}.")
    by_name: dict[str, Program] = {}
    for program in programs:
        name = check_type(program, Program, "each of programs", "a function with @program").name
        if name in by_name:
            raise BadInput(f"Expected programs with different names; two are called {name!r}.")
        by_name[name] = program
    return by_name


def check_host_name(name: str | None, join: bool) -> str | None:
    """Check the name of a host, and return it; a default name if the host joins without one, None if it does not join.

    Raises `BadInput`.
    """
    check_optional(name, str, "name", "the name of a host")
    if name is not None and not join:
        raise BadInput(f"Expected join=True with name={shown(name)}: only hosts that share agents have names.")
    if not join:
        return None
    return f"{socket.gethostname()}-{os.getpid()}" if name is None else check_name(name)


def usual_prices() -> Prices:
    """Return the prices in the file beside the default database. If it cannot be read, log a warning; none then."""
    prices, trouble = known_prices(home())
    for complaint in trouble:
        logger.warning("%s", complaint)
    return prices


def prices_in(file: str | os.PathLike[str], others: Prices) -> Prices:
    """Return the prices in a file, which precede ``others`` and the updated prices. Raises `BadInput`."""
    if not isinstance(file, str | os.PathLike) or not str(file).strip():
        raise BadInput(f"Expected prices to be the path of a file; got {shown(file)}.")
    return read_prices(Path(file)).over(others).over(updated_prices(home()))


@dataclass(frozen=True, slots=True)
class HostOptions:
    """The checked options of a host; see `ActorSystem.open`."""

    providers: Providers
    prices: Prices
    budget: Budget | None
    """The budget of agent 0, if it has none yet."""
    labels: Mapping[str, str] | None
    """The labels of agent 0; None leaves them."""
    rules: Sequence[NewRule]
    """The rules of agent 0, beside those that it has."""
    toolbox: Toolbox
    """The tools at hand; the toolsets are not started yet."""
    toolsets: Sequence[Toolset]
    approver: Approver | None
    hooks: HookBook
    on_orphan: str | None
    resume: bool
    name: str | None
    """The name of a host that joins others; None for one that does not."""
    on_wait: Callable[[str], object]
    on_renewal: Callable[[], object]
    balance: float | None
    workers: int
    patience: float
    lease: float
    in_memory: int
    sleep_after: float | None
    park_after: float | None
    allow_private: AllowedAddresses
    keys: tuple[str, ...]
    build: Build
    offer: HostOffer
    parts: Platform


def check_options(
    database: str | os.PathLike[str] | None,
    provider: Provider | str | None,
    providers: Mapping[str, Provider] | None,
    tools: Iterable[Tool | Toolset],
    approvals: Approver | str,
    on_orphan: str | None,
    resume: bool | None,
    settings: Mapping[str, Any] | None,
    config: str | os.PathLike[str] | None,
    limits: Mapping[str, Limits] | None,
    join: bool,
    name: str | None,
    on_wait: Callable[[str], object] | None,
    on_renewal: Callable[[], object] | None,
    balance: float | None,
    workers: int,
    patience: float,
    lease: float,
    in_memory: int,
    sleep_after: float | None,
    park_after: float | None,
    parts: Platform,
    instruments: Iterable[Instrument],
    budget: Budget | Mapping[str, Any] | None,
    prices: str | os.PathLike[str] | None,
    labels: Mapping[str, str] | None,
    rules: Iterable[tuple[str, ...]],
    programs: Iterable[Program],
    hooks: Iterable[Hook],
    allow_private: Iterable[str] | None,
    build: str | None,
    keys: Sequence[str] | None,
) -> HostOptions:
    """Check the arguments of `ActorSystem.open`, and return them as options. Raises `BadInput` and `StoreError`."""
    defaults = check_defaults({} if settings is None else settings)
    configured = configuration(config)
    known = check_programs(programs)
    named = {} if providers is None else providers
    if known and isinstance(named, Mapping):
        if taken := known.keys() & named.keys():
            raise BadInput(f"Expected programs with other names than providers; {min(taken)!r} is both.")
        named = {**named, **known}
    chosen = choose_providers(provider, named, defaults, configured, limits)
    priced = Prices(configured.prices)
    of_app = check_tools(tools)
    tools_of_app, built = (
        [*of_app, ListAgents()],
        build_of(of_app, [program.function for program in known.values()], build),
    )
    asked, approver = choose_approver(approvals)
    check_count(workers, "workers", least=1, most=MOST_WORKERS)
    check_seconds(patience, "patience")
    check_seconds(lease, "lease", zero=False)
    check_count(in_memory, "in_memory", least=1, most=2**62)
    if sleep_after is not None:
        check_seconds(sleep_after, "sleep_after", zero=False)
    if park_after is not None:
        check_seconds(park_after, "park_after", zero=False)
    check_flag(join, "join")
    if resume is not None:
        check_flag(resume, "resume")
    if balance is not None:
        check_seconds(balance, "balance", zero=False)
    check_type(parts, Platform, "parts", "a Platform")
    called = check_host_name(name, join)
    if called is not None and parts is SYSTEM_PLATFORM and (place := locate(database)).url is None:
        raise unshareable(place.shown)  # before there is an empty file
    if on_wait is not None:
        check_callable(on_wait, "on_wait", "a function of a text")
    if on_renewal is not None:
        check_callable(on_renewal, "on_renewal", "a function without arguments")
    toolbox = Toolbox((tool for tool in tools_of_app if not isinstance(tool, Toolset)), asked, built.id)
    acting = (Programs(known),) if known else ()  # their tools take a fifth of the time of a start
    for programs_of in acting:
        toolbox.add_programs(programs_of)
    asks = HookBook(check_hooks(hooks))
    heard = (*check_instruments(instruments), *acting)
    return HostOptions(
        providers=chosen,
        prices=priced.over(usual_prices()) if prices is None else prices_in(prices, priced),
        budget=as_budget(budget),
        labels=None if labels is None else check_labels(labels),
        rules=as_rules(rules),
        toolbox=toolbox,
        toolsets=[tool for tool in tools_of_app if isinstance(tool, Toolset)],
        approver=approver,
        hooks=asks,
        on_orphan=check_policy(on_orphan),
        resume=resume is not False,
        name=called,
        on_wait=on_wait or (lambda host: None),
        on_renewal=on_renewal or (lambda: None),
        balance=balance,
        workers=workers,
        patience=patience,
        lease=lease,
        in_memory=in_memory,
        sleep_after=sleep_after,
        park_after=park_after,
        allow_private=allowed_addresses(allow_private),
        keys=key_references(keys),
        build=built,
        offer=HostOffer(asks.events, [*known]),
        parts=replace(parts, instruments=(*parts.instruments, *heard)),
    )
