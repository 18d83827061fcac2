"""Table ``endpoints``: where outside senders reach agents. Each has an agent, a signature scheme and a template.

A removed endpoint keeps its row, because its arrivals refer to it; the name can be used again. A row never has a secret
in clear text. It has a reference to the secret, which the receiving process resolves, or the secret sealed for this
endpoint.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from ikigai_actors.arguments import check_choice, check_count, shown
from ikigai_actors.errors import BadInput, EndpointNotFound
from ikigai_actors.records.arrivals.signatures import check_scheme
from ikigai_actors.records.arrivals.templates import WHOLE_BODY, check_template, needs_json
from ikigai_actors.records.secret_references import WAYS_OF_REFERENCE, check_kept_secret
from ikigai_actors.store.base import Row, Transaction
from ikigai_actors.store.unit import LockedRows, Unit

WAYS_IN = ("prompt", "mail", "fork")
"""The ways of a delivery: it prompts the agent, becomes mail, or makes a child."""

MOST_LIVING = 50
"""The default limit of living children of an endpoint. Further deliveries are held."""

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")


@dataclass(frozen=True, slots=True)
class EndpointSpec:
    """The settings of an endpoint. Raises `BadInput` for invalid ones."""

    scheme: str
    """The signature scheme, a key of `SCHEMES`."""
    secrets: tuple[str, ...]
    """References to the secrets, or the secrets sealed. A signature with any of them is valid."""
    way: str = "prompt"
    """The way of its deliveries, one of `WAYS_IN`."""
    template: str = WHOLE_BODY
    where: Mapping[str, Sequence[str]] | None = None
    """The values that fields must have, by path; None accepts all deliveries."""
    most: int = MOST_LIVING
    """The most living children of the endpoint."""
    once_by_body: bool = False
    """Whether deliveries with equal bodies count as one, whatever their ids. Some senders do not sign ids."""

    def __post_init__(self) -> None:
        check_scheme(self.scheme)
        check_choice(self.way, "way", WAYS_IN)
        check_template(self.template)
        check_count(self.most, "most", least=1)
        if not self.secrets:
            raise BadInput(f"Expected a secret: {WAYS_OF_REFERENCE}; or one to keep sealed (--plain, --make).")
        for kept in self.secrets:
            check_kept_secret(kept)

    @property
    def needs_json(self) -> bool:
        """Return whether the body must be JSON."""
        return bool(self.where) or needs_json(self.template)

    def encode(self) -> str:
        """Return the settings as text for the database."""
        return json.dumps(asdict(self), sort_keys=True, ensure_ascii=False)

    @classmethod
    def decode(cls, text: str) -> "EndpointSpec":
        """Return the settings from the text in the database."""
        stored = json.loads(text)
        return cls(**{**stored, "secrets": tuple(stored["secrets"])})


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A row of table ``endpoints``: the address at which outside senders reach one agent."""

    name: str
    agent: str
    """The uuid of its agent."""
    spec: EndpointSpec
    created_at: int
    """The time when it was made, in milliseconds since 1970 (UTC)."""
    paused_at: int | None
    """The time since when it is paused, in milliseconds since 1970; None if it is not."""


def endpoint_place(name: str) -> str:
    """Return the place for which `SealedBox` seals the secrets of an endpoint."""
    return f"endpoint\n{name}"


def check_endpoint_name(name: str) -> str:
    """Return the name of an endpoint, or raise `BadInput`. The name is part of its URL."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise BadInput(f"Expected a name of small letters, digits, - and _, 64 at most; got {shown(name)}.")
    return name


def endpoint_called(tx: Transaction, name: str) -> Endpoint:
    """Return the endpoint with a name. Raises `EndpointNotFound`."""
    for row in tx.run("endpoint", name=name):
        return _endpoint(row)
    raise EndpointNotFound(f"There is no endpoint {name!r}. See ikigai endpoint list.", name)


def all_endpoints(tx: Transaction) -> list[Endpoint]:
    """Return the endpoints that are not removed, by name."""
    return [_endpoint(row) for row in tx.run("endpoints")]


def _endpoint(row: Row) -> Endpoint:
    name, agent, spec, created_at, paused_at = row
    return Endpoint(name, agent, EndpointSpec.decode(spec), created_at, paused_at)


@dataclass(frozen=True, slots=True)
class AddEndpoint(Unit):
    """Add an endpoint, or change the settings of one.

    Answered with True if it is new. Raises `AgentNotFound`, `AgentDead`.
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
    """Pause an endpoint, resume it, or remove it. Raises `EndpointNotFound`."""

    name: str
    paused_at: int | None = None
    removed_at: int | None = None

    def write(self, tx: Transaction, locked: LockedRows) -> None:
        endpoint_called(tx, self.name)
        tx.run("change_endpoint", name=self.name, paused_at=self.paused_at, removed_at=self.removed_at)


@dataclass(frozen=True, slots=True)
class SealEndpointAgain(Unit):
    """Replace the secrets of an endpoint by the same ones sealed with another key.

    Answered with whether the endpoint was unchanged until then.
    """

    name: str
    former: EndpointSpec
    spec: EndpointSpec

    def write(self, tx: Transaction, locked: LockedRows) -> bool:
        return bool(
            tx.run("change_endpoint_spec", name=self.name, former=self.former.encode(), spec=self.spec.encode())
        )
