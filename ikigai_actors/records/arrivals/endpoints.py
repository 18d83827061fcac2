"""Table ``endpoints``: doors by which senders outside reach agents, each with its agent, its signature and its text.

An endpoint that is removed keeps its row, since its arrivals name it; its name can be given again. Secrets are never in
the row: it has references to them, which the process that receives looks up.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from ikigai_actors.arguments import check_choice, check_count, shown
from ikigai_actors.errors import BadInput, EndpointNotFound
from ikigai_actors.records.arrivals.signatures import check_scheme
from ikigai_actors.records.arrivals.templates import WHOLE_BODY, check_template, needs_json
from ikigai_actors.records.secret_references import WAYS_OF_REFERENCE, check_reference
from ikigai_actors.store.base import Row, Transaction
from ikigai_actors.store.unit import LockedRows, Unit

WAYS_IN = ("prompt", "mail", "fork")
"""The acts that a delivery becomes: it wakes the agent, waits in its mailbox, or has a child of it begin."""

MOST_LIVING = 50
"""The most children of an endpoint that live at once, unless it says otherwise; further deliveries are held."""

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")


@dataclass(frozen=True, slots=True)
class EndpointSpec:
    """The terms of an endpoint. Raises `BadInput` for terms that cannot be."""

    scheme: str
    """A word of `SCHEMES`."""
    secrets: tuple[str, ...]
    """References to the secrets: each may have signed."""
    way: str = "prompt"
    """A word of `WAYS_IN`."""
    template: str = WHOLE_BODY
    where: Mapping[str, Sequence[str]] | None = None
    """The values that fields must have, by path; None lets everything pass."""
    most: int = MOST_LIVING
    """The most children of it that live at once."""
    once_by_body: bool = False
    """Whether a delivery with the body of an earlier one is the same, whatever its id: some senders do not sign ids."""

    def __post_init__(self) -> None:
        check_scheme(self.scheme)
        check_choice(self.way, "way", WAYS_IN)
        check_template(self.template)
        check_count(self.most, "most", least=1)
        if not self.secrets:
            raise BadInput(f"Expected a secret, as {WAYS_OF_REFERENCE}.")
        for reference in self.secrets:
            check_reference(reference, "the secret")

    @property
    def needs_json(self) -> bool:
        """Whether a body that is no JSON is of no use."""
        return bool(self.where) or needs_json(self.template)

    def encode(self) -> str:
        """The text under which it is stored."""
        return json.dumps(asdict(self), sort_keys=True, ensure_ascii=False)

    @classmethod
    def decode(cls, text: str) -> "EndpointSpec":
        """The terms that were stored."""
        stored = json.loads(text)
        return cls(**{**stored, "secrets": tuple(stored["secrets"])})


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An endpoint, as it is."""

    name: str
    agent: str
    """The uuid of its agent."""
    spec: EndpointSpec
    created_at: int
    """When, in milliseconds since 1970 (UTC)."""
    paused_at: int | None
    """Since when it holds what comes; None while it does not."""


def check_endpoint_name(name: str) -> str:
    """Return the name of an endpoint, or raise `BadInput`: it is a part of its URL."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise BadInput(f"Expected a name of small letters, digits, - and _, 64 at most; got {shown(name)}.")
    return name


def endpoint_called(tx: Transaction, name: str) -> Endpoint:
    """The endpoint with a name. Raises `EndpointNotFound`."""
    for row in tx.run("endpoint", name=name):
        return _endpoint(row)
    raise EndpointNotFound(f"There is no endpoint {name!r}. See ikigai endpoint list.", name)


def all_endpoints(tx: Transaction) -> list[Endpoint]:
    """The endpoints that are not removed, by name."""
    return [_endpoint(row) for row in tx.run("endpoints")]


def _endpoint(row: Row) -> Endpoint:
    name, agent, spec, created_at, paused_at = row
    return Endpoint(name, agent, EndpointSpec.decode(spec), created_at, paused_at)


@dataclass(frozen=True, slots=True)
class AddEndpoint(Unit):
    """Make an endpoint, or change the terms of one.

    Answered with whether there was none. Raises `AgentNotFound`, `AgentDead`.
    """

    name: str
    agent: str
    spec: EndpointSpec
    now: int

    locks = ("agent",)

    def write(self, tx: Transaction, locked: LockedRows) -> bool:
        locked.living(self.agent, " and takes up nothing. Name one that lives")
        there = bool(tx.run("endpoint", name=self.name))
        tx.run("set_endpoint", name=self.name, agent=self.agent, spec=self.spec.encode(), now=self.now)
        return not there


@dataclass(frozen=True, slots=True)
class SetEndpoint(Unit):
    """Pause an endpoint, let it go on, or remove it. Raises `EndpointNotFound`."""

    name: str
    paused_at: int | None = None
    removed_at: int | None = None

    def write(self, tx: Transaction, locked: LockedRows) -> None:
        endpoint_called(tx, self.name)
        tx.run("change_endpoint", name=self.name, paused_at=self.paused_at, removed_at=self.removed_at)
