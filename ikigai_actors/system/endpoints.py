"""Endpoints: events from outside become prompts, mail and children of agents.

    system.endpoints.add("github", triage, "github", ["env:GITHUB_SECRET"], way="fork",
                         where={"action": ["opened"]}, template="Issue {issue.number}: {issue.title}")
    received = system.endpoints.receive("github", request.headers, request.body)      # in your own web server

``ikigai api`` has ``POST /in/NAME`` for them. `receive` checks the signature over the bytes that came, and commits the
arrival with what it becomes, once: a sender that tries again gets the answer of before.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ikigai_actors.actors.forked import OfOneProcess
from ikigai_actors.agent.remote_commands import encode
from ikigai_actors.arguments import check_type
from ikigai_actors.errors import BadInput, Forged
from ikigai_actors.records.agents import registry
from ikigai_actors.records.agents.identity import new_agent_uuid
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
)
from ikigai_actors.records.arrivals.signatures import SECRET_HEADERS, SignedDelivery, parsed_body, verified_delivery
from ikigai_actors.records.arrivals.templates import WHOLE_BODY, filled, matches
from ikigai_actors.records.hosts.remote_commands import AddRemoteCommand
from ikigai_actors.records.mail.mail import MAIL_LIMIT, Send
from ikigai_actors.records.mail.prompts import KeepPrompt
from ikigai_actors.records.messages.principals import PRINCIPAL
from ikigai_actors.store.base import Store
from ikigai_actors.store.unit import Unit
from ikigai_actors.system.lifecycle import new_children, new_fork
from ikigai_actors.system.secrets import referred_secret

LARGEST_DELIVERY = 1024 * 1024
"""The most bytes of a delivery's body."""

_EVERY_PROMPT = 2**62
"""A number that no mail has: nobody here wants to hear of the prompts before it."""

_BATCH = 100
"""Arrivals that are read at once."""


Arrivals = list[ArrivalRecord]
Receipts = list[Received]


class Endpoints(OfOneProcess):
    """The endpoints of a system. See `ActorSystem.endpoints`."""

    def __init__(self, store: Store, perform: Callable[[Unit], Any], now_ms: Callable[[], int]) -> None:
        """Put the parts together; ``perform`` commits a unit, and returns its answer."""
        self._store, self._perform, self._now_ms = store, perform, now_ms

    def add(
        self,
        name: str,
        agent: Handle | str,
        scheme: str,
        secrets: Sequence[str],
        *,
        way: str = "prompt",
        template: str = WHOLE_BODY,
        where: Mapping[str, Sequence[str]] | None = None,
        most: int = MOST_LIVING,
        once_by_body: bool = False,
    ) -> bool:
        """Make an endpoint, or change the terms of one; return whether there was none of this name.

        Args:
            name: a part of its URL.
            agent: the agent that it leads to, by its handle, uuid, name or prefix.
            scheme: how the sender signs: ``standard``, ``github``, ``stripe``, ``slack``, ``hmac`` or ``bearer``.
            secrets: references to the secrets, as ``env:NAME``, which the receiving process looks up.
            way: ``prompt`` wakes the agent, ``mail`` waits in its mailbox, ``fork`` makes a child for each delivery.
            template: the text that the agent gets; ``{issue.title}`` is a field, ``{@}`` the whole body.
            where: the values that fields must have, by path; other deliveries are filtered.
            most: the most children of it that live at once; further deliveries are held.
            once_by_body: whether a delivery with the body of an earlier one is the same, whatever its id.

        Raises:
            BadInput: the name, or a term, cannot be used.
            AgentNotFound, AmbiguousAgent, AgentDead: the agent cannot be found, or is dead.
        """
        check_endpoint_name(name)
        if isinstance(secrets, str):
            raise BadInput("Expected secrets as a list of references, such as ['env:GITHUB_SECRET'].")
        spec = EndpointSpec(scheme, tuple(secrets), way, template, where, most, once_by_body)
        uuid = self._store.read(lambda tx: registry.find(tx, agent)).uuid if isinstance(agent, str) else agent.uuid
        return bool(self._perform(AddEndpoint(name, uuid, spec, self._now_ms())))

    def list(self) -> list[Endpoint]:
        """The endpoints, by name."""
        return self._store.read(all_endpoints)

    def get(self, name: str) -> Endpoint:
        """An endpoint. Raises `EndpointNotFound`."""
        return self._store.read(lambda tx: endpoint_called(tx, name))

    def counts(self, name: str) -> dict[str, int]:
        """The numbers of its arrivals by status: ``taken``, ``filtered``, ``held``, ``dead``."""
        return self._store.read(lambda tx: counted_arrivals(tx, name))

    def arrivals(self, name: str, most: int = 20) -> Arrivals:
        """The latest arrivals, the latest first. Raises `EndpointNotFound`."""
        return self._store.read(lambda tx: latest_arrivals(tx, endpoint_called(tx, name).name, most))

    def pause(self, name: str) -> None:
        """Hold what comes from now on. Raises `EndpointNotFound`."""
        self._perform(SetEndpoint(name, paused_at=self._now_ms()))

    def resume(self, name: str) -> Receipts:
        """Let a paused endpoint go on, and take what it holds, in order; return what came of each.

        Raises `EndpointNotFound`.
        """
        self._perform(SetEndpoint(name))
        return self.take_held(name)

    def remove(self, name: str) -> None:
        """Refuse what comes from now on; its arrivals stay for 30 days. Raises `EndpointNotFound`."""
        self._perform(SetEndpoint(name, removed_at=self._now_ms()))

    def receive(self, name: str, headers: Mapping[str, str], body: bytes) -> "Received | str":
        """Take a delivery; return what came of it after the commit, or a text to answer with, where one is asked for.

        Args:
            name: the endpoint.
            headers: of the request; names in any letters.
            body: the bytes of the request, at most 1 MiB, as they came.

        Raises:
            EndpointNotFound: there is no such endpoint.
            Forged: the signature is not the sender's, or the secret cannot be looked up here.
            BadInput: the body is larger.
        """
        if len(check_type(body, bytes, "body", "the bytes of the request")) > LARGEST_DELIVERY:
            raise BadInput(f"Expected a delivery of at most {LARGEST_DELIVERY:,} bytes, got {len(body):,}.")
        small = {key.lower(): value for key, value in headers.items()}
        endpoint, now = self.get(name), self._now_ms()
        delivery = verified_delivery(endpoint.spec.scheme, small, body, _secrets(endpoint.spec), now / 1000)
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

    def take_held(self, name: str) -> Receipts:
        """Take what an endpoint holds, oldest first, as far as it can be taken; nothing while it is paused."""
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
        """Take what any endpoint holds, as far as it can be taken."""
        for name in self._store.read(endpoints_that_hold):
            self.take_held(name)

    def _take(self, endpoint: Endpoint, delivery: str) -> Received:
        """Take one that is held, unless it cannot be taken yet."""
        raw, _ = self._store.read(lambda tx: body_of_arrival(tx, endpoint.name, delivery))
        now = self._now_ms()
        act = _act(endpoint, delivery, raw, parsed_body(raw)[0], now)
        received: Received = self._perform(TakeHeld(endpoint.name, delivery, act, now))
        return received

    def replay(self, name: str, delivery: str) -> "Received":
        """Take an arrival once more, as an arrival of its own, ``ID~2``.

        Raises `EndpointNotFound`, and `BadInput` where there is no such arrival or its body was deleted.
        """
        endpoint, now = self.get(name), self._now_ms()
        raw, headers = self._store.read(lambda tx: body_of_arrival(tx, name, delivery))
        again = self._store.read(lambda tx: again_id(tx, name, delivery))
        arrival = NewArrival(name, again, raw, headers, now, again_of=delivery)
        received: Received = self._perform(_arrive(endpoint, arrival, SignedDelivery(again, *parsed_body(raw))))
        return received

    def replay_dead(self, name: str) -> Receipts:
        """Take each arrival once more that is dead and was not repeated, in order. Safe to repeat."""
        repeated: Receipts = []
        while dead := self._store.read(lambda tx: unrepeated_dead(tx, endpoint_called(tx, name).name, _BATCH)):
            repeated += [self.replay(name, one.id) for one in dead]
        return repeated

    def preview(self, name: str, body: bytes) -> tuple[bool, str]:
        """Whether an endpoint would take a delivery with this body, and the text that its agent would get."""
        spec, (value, is_json) = self.get(name).spec, parsed_body(body)
        wanted = matches(spec.where or {}, value) and (is_json or not spec.needs_json)
        return wanted, filled(spec.template, value, body.decode("utf-8", "replace"))


def _secrets(spec: EndpointSpec) -> list[str]:
    """The secrets that this process finds. Raises `Forged` where it finds none of them."""
    try:
        secrets = [secret for reference in spec.secrets if (secret := referred_secret(reference))]
    except BadInput as error:
        raise Forged(str(error)) from error
    if not secrets:
        raise Forged(f"None of the secrets is there in this process: {', '.join(spec.secrets)}. Set one.")
    return secrets


def _arrive(endpoint: Endpoint, arrival: NewArrival, delivery: SignedDelivery) -> Arrive:
    """The unit of a delivery whose signature is good."""
    spec, by_body = endpoint.spec, endpoint.spec.once_by_body
    if spec.needs_json and not delivery.is_json:
        return Arrive(
            arrival, None, status=DEAD, why="The body is no JSON, and fields of it are wanted.", by_body=by_body
        )
    if not matches(spec.where or {}, delivery.value):
        return Arrive(arrival, None, status=FILTERED, by_body=by_body)
    return Arrive(arrival, _act(endpoint, arrival.id, arrival.body, delivery.value, arrival.now), by_body=by_body)


def _act(endpoint: Endpoint, delivery: str, raw: bytes, value: Any, now: int) -> ArrivalAct:
    """The act of a delivery."""
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
    """The uuid of the child that a delivery makes, always the same: a second net below the row of its arrival."""
    drawn = iter(hashlib.sha256(f"{turn} {agent} {endpoint} {delivery}".encode()).digest() for turn in range(1_000_000))
    return new_agent_uuid(lambda size: next(drawn)[:size])
