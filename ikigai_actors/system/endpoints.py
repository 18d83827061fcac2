"""Endpoints: events from outside become prompts, mail and children of agents.

    system.endpoints.add("github", triage, "github", ["env:GITHUB_SECRET"], way="fork",
                         where={"action": ["opened"]}, template="Issue {issue.number}: {issue.title}")
    received = system.endpoints.receive("github", request.headers, request.body)      # in your own web server

``ikigai api`` serves them at ``POST /in/NAME``. `receive` checks the signature over the received bytes, and commits the
arrival together with the prompt, mail or child that it becomes. It does so once: a sender that repeats a delivery gets
the first answer again.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ikigai_actors.actors.forked import OfOneProcess
from ikigai_actors.agent.remote_commands import encode
from ikigai_actors.arguments import check_type
from ikigai_actors.errors import BadInput, Forged
from ikigai_actors.records.agents import registry
from ikigai_actors.records.agents.identity import derived_agent_uuid
from ikigai_actors.records.agents.registry import Handle
from ikigai_actors.records.arrivals.arrivals import (
    DEAD,
    FILTERED,
    HELD,
    ArrivalAct,
    ArrivalRecord,
    Arrive,
    NewArrival,
    Received,
    TakeHeld,
    again_id,
    arrivals_with,
    body_of_arrival,
    counted_arrivals,
    endpoints_that_hold,
    latest_arrivals,
    unrepeated_dead,
)
from ikigai_actors.records.arrivals.endpoints import (
    MOST_LIVING,
    AddEndpoint,
    Endpoint,
    EndpointSpec,
    SetEndpoint,
    all_endpoints,
    check_endpoint_name,
    endpoint_called,
    endpoint_place,
)
from ikigai_actors.records.arrivals.signatures import SECRET_HEADERS, SignedDelivery, parsed_body, verified_delivery
from ikigai_actors.records.arrivals.templates import WHOLE_BODY, filled, matches
from ikigai_actors.records.hosts.remote_commands import AddRemoteCommand
from ikigai_actors.records.mail.mail import MAIL_LIMIT, Send
from ikigai_actors.records.mail.prompts import KeepPrompt
from ikigai_actors.records.messages.principals import PRINCIPAL
from ikigai_actors.store.base import Store
from ikigai_actors.store.unit import Unit
from ikigai_actors.system.kept_secrets import KeptSecrets
from ikigai_actors.system.lifecycle import new_children, new_fork

LARGEST_DELIVERY = 1024 * 1024
"""The most bytes of a delivery's body."""

_EVERY_PROMPT = 2**62
"""A number above that of any mail, for callers who do not want the prompts before it."""

_BATCH = 100
"""The number of arrivals that are read in one query."""


Arrivals = list[ArrivalRecord]
Receipts = list[Received]


class Endpoints(OfOneProcess):
    """The endpoints of a system. See `ActorSystem.endpoints`."""

    def __init__(
        self, store: Store, perform: Callable[[Unit], Any], now_ms: Callable[[], int], secrets: KeptSecrets
    ) -> None:
        """Use a store. ``perform`` commits a unit and returns its answer; ``secrets`` seals and opens secrets."""
        self._store, self._perform, self._now_ms, self._secrets = store, perform, now_ms, secrets

    def add(
        self,
        name: str,
        agent: Handle | str,
        scheme: str,
        secrets: Sequence[str] = (),
        *,
        plain: Sequence[str] = (),
        way: str = "prompt",
        template: str = WHOLE_BODY,
        where: Mapping[str, Sequence[str]] | None = None,
        most: int = MOST_LIVING,
        once_by_body: bool = False,
    ) -> bool:
        """Add an endpoint, or change an existing one. Return True if it is new.

        Args:
            name: the name of the endpoint, a part of its URL.
            agent: the agent that gets the events: a handle, uuid, name or prefix.
            scheme: how the sender signs: ``standard``, ``github``, ``stripe``, ``slack``, ``hmac`` or ``bearer``.
            secrets: references to the secrets, as ``env:NAME``, which the receiving process looks up.
            plain: secrets themselves. The database keeps them sealed by the operator's key.
            way: ``prompt`` wakes the agent, ``mail`` waits in its mailbox, ``fork`` makes a child for each delivery.
            template: the text that the agent gets; ``{issue.title}`` is a field, ``{@}`` the whole body.
            where: the values that fields must have, by the path of the field. Deliveries with other values are filtered
                out.
            most: the most living children that the endpoint may have; further deliveries are held.
            once_by_body: whether deliveries with the same body count as one, even if their ids differ.

        Raises:
            BadInput: the name, or another argument, cannot be used; or there is no operator's key for ``plain``.
            AgentNotFound, AmbiguousAgent, AgentDead: the agent cannot be found, or is dead.
        """
        check_endpoint_name(name)
        if isinstance(secrets, str) or isinstance(plain, str):
            raise BadInput("Expected secrets as a list of references, such as ['env:GITHUB_SECRET'].")
        kept = self._secrets.kept(endpoint_place(name), secrets, plain)
        spec = EndpointSpec(scheme, kept, way, template, where, most, once_by_body)
        uuid = self._store.read(lambda tx: registry.find(tx, agent)).uuid if isinstance(agent, str) else agent.uuid
        return bool(self._perform(AddEndpoint(name, uuid, spec, self._now_ms())))

    def list(self) -> list[Endpoint]:
        """All endpoints, sorted by name."""
        return self._store.read(all_endpoints)

    def get(self, name: str) -> Endpoint:
        """The endpoint with this name. Raises `EndpointNotFound`."""
        return self._store.read(lambda tx: endpoint_called(tx, name))

    def counts(self, name: str) -> dict[str, int]:
        """The number of arrivals at an endpoint, by status: ``taken``, ``filtered``, ``held``, ``dead``."""
        return self._store.read(lambda tx: counted_arrivals(tx, name))

    def arrivals(self, name: str, most: int = 20) -> Arrivals:
        """The latest arrivals at an endpoint, newest first. Raises `EndpointNotFound`."""
        return self._store.read(lambda tx: latest_arrivals(tx, endpoint_called(tx, name).name, most))

    def pause(self, name: str) -> None:
        """Hold deliveries to an endpoint from now on. Raises `EndpointNotFound`."""
        self._perform(SetEndpoint(name, paused_at=self._now_ms()))

    def resume(self, name: str) -> Receipts:
        """Resume a paused endpoint, and process the deliveries that it holds, in order. Return the result of each.

        Raises `EndpointNotFound`.
        """
        self._perform(SetEndpoint(name))
        return self.take_held(name)

    def remove(self, name: str) -> None:
        """Remove an endpoint. It refuses deliveries from now on; its earlier arrivals stay for 30 days.

        Raises `EndpointNotFound`.
        """
        self._perform(SetEndpoint(name, removed_at=self._now_ms()))

    def receive(self, name: str, headers: Mapping[str, str], body: bytes) -> "Received | str":
        """Process a delivery. Return its result, after the commit; or a text to send back, if the sender asks for one.

        Args:
            name: the name of the endpoint.
            headers: the headers of the request; their names may be in upper or lower case.
            body: the bytes of the request as received, at most 1 MiB.

        Raises:
            EndpointNotFound: there is no such endpoint.
            Forged: the signature is wrong, or the secret cannot be found in this process.
            BadInput: the body is too large.
        """
        if len(check_type(body, bytes, "body", "the bytes of the request")) > LARGEST_DELIVERY:
            raise BadInput(f"Expected a delivery of at most {LARGEST_DELIVERY:,} bytes, got {len(body):,}.")
        small = {key.lower(): value for key, value in headers.items()}
        endpoint, now = self.get(name), self._now_ms()
        delivery = verified_delivery(endpoint.spec.scheme, small, body, self._found(endpoint), now / 1000)
        if delivery.challenge is not None:
            return delivery.challenge
        kept = {key: value for key, value in small.items() if key not in SECRET_HEADERS}
        received: Received = self._perform(_arrive(endpoint, NewArrival(name, delivery.id, body, kept, now), delivery))
        if received.repeated:
            return received
        for taken in self.take_held(name):  # itself, too, where others came before it
            if taken.id == received.id:
                received = taken
        return received

    def _found(self, endpoint: Endpoint) -> Sequence[str]:
        try:
            secrets = self._secrets.opened(endpoint_place(endpoint.name), endpoint.spec.secrets)
        except BadInput as error:
            raise Forged(str(error)) from error
        if not secrets:
            raise Forged(f"None of the secrets is there in this process: {', '.join(endpoint.spec.secrets)}. Set one.")
        return secrets

    def take_held(self, name: str) -> Receipts:
        """Process the deliveries that an endpoint holds, oldest first, as far as its limit allows.

        Nothing happens while it is paused.
        """
        taken: Receipts = []
        while (endpoint := self.get(name)).paused_at is None:
            held = self._store.read(lambda tx: arrivals_with(tx, name, HELD, _BATCH))
            for arrival in held:
                received = self._take(endpoint, arrival.id)
                if received.status == HELD:
                    return taken
                taken.append(received)
            if not held:
                break
        return taken

    def take_all_held(self) -> None:
        """Process the deliveries that all endpoints hold, as far as their limits allow."""
        for name in self._store.read(endpoints_that_hold):
            self.take_held(name)

    def _take(self, endpoint: Endpoint, delivery: str) -> Received:
        """Process a held delivery; return the result, which says if the limit still holds it."""
        raw, _ = self._store.read(lambda tx: body_of_arrival(tx, endpoint.name, delivery))
        now = self._now_ms()
        act = _act(endpoint, delivery, raw, parsed_body(raw)[0], now)
        received: Received = self._perform(TakeHeld(endpoint.name, delivery, act, now))
        return received

    def replay(self, name: str, delivery: str) -> "Received":
        """Process an arrival once more, as a new arrival with the id ``ID~2``.

        Raises `EndpointNotFound`, and `BadInput` where there is no such arrival or its body was deleted.
        """
        endpoint, now = self.get(name), self._now_ms()
        raw, headers = self._store.read(lambda tx: body_of_arrival(tx, name, delivery))
        again = self._store.read(lambda tx: again_id(tx, name, delivery))
        arrival = NewArrival(name, again, raw, headers, now, again_of=delivery)
        received: Received = self._perform(_arrive(endpoint, arrival, SignedDelivery(again, *parsed_body(raw))))
        return received

    def replay_dead(self, name: str) -> Receipts:
        """Process each dead arrival once more that was not replayed yet, in order. Safe to repeat."""
        repeated: Receipts = []
        while dead := self._store.read(lambda tx: unrepeated_dead(tx, endpoint_called(tx, name).name, _BATCH)):
            repeated += [self.replay(name, arrival.id) for arrival in dead]
        return repeated

    def preview(self, name: str, body: bytes) -> tuple[bool, str]:
        """Return whether an endpoint would accept a delivery with this body, and the text that its agent would get."""
        spec, (value, is_json) = self.get(name).spec, parsed_body(body)
        wanted = matches(spec.where or {}, value) and (is_json or not spec.needs_json)
        return wanted, filled(spec.template, value, body.decode("utf-8", "replace"))


def _arrive(endpoint: Endpoint, arrival: NewArrival, delivery: SignedDelivery) -> Arrive:
    spec, by_body = endpoint.spec, endpoint.spec.once_by_body
    if spec.needs_json and not delivery.is_json:
        return Arrive(
            arrival, None, status=DEAD, why="The body is no JSON, and fields of it are wanted.", by_body=by_body
        )
    if not matches(spec.where or {}, delivery.value):
        return Arrive(arrival, None, status=FILTERED, by_body=by_body)
    return Arrive(arrival, _act(endpoint, arrival.id, arrival.body, delivery.value, arrival.now), by_body=by_body)


def _act(endpoint: Endpoint, delivery: str, raw: bytes, value: Any, now: int) -> ArrivalAct:
    """Return the act of a delivery: the prompt, the mail or the child that the delivery becomes."""
    spec, agent = endpoint.spec, endpoint.agent
    text = filled(spec.template, value, raw.decode("utf-8", "replace"))
    if not text.strip():
        text = f"A delivery of {endpoint.name} without text."
    principal = f"endpoint:{endpoint.name}"
    data = {"origin": {"endpoint": endpoint.name, "delivery": delivery}, PRINCIPAL: principal}
    match spec.way:
        case "fork":
            child = child_of(agent, endpoint.name, delivery)
            fork = replace(new_fork(new_children(lambda: child, text))(None), data=data)
            asked = AddRemoteCommand(agent, *encode(fork, principal), now)
            return ArrivalAct(asked, {"agent": agent, "child": child}, "request", most=spec.most)
        case "mail":
            letter = text.encode()[:MAIL_LIMIT].decode("utf-8", "ignore")
            return ArrivalAct(Send(agent, None, letter, now, data=data), {"agent": agent}, "mail")
        case _:
            return ArrivalAct(KeepPrompt(agent, text, now, _EVERY_PROMPT, data), {"agent": agent}, "mail")


def child_of(agent: str, endpoint: str, delivery: str) -> str:
    """Return the uuid of the child that a delivery makes.

    The uuid is always the same, so a repeated delivery cannot make a second child.
    """
    return derived_agent_uuid(f"{agent} {endpoint} {delivery}")
