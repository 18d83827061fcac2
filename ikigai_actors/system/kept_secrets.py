"""Secrets in rows: references, which this process looks up, and sealed secrets, which the operator's key opens.

    kept = secrets.sealed(endpoint_place("shop"), "the secret")     # for the row
    secrets.opened(endpoint_place("shop"), [kept, "env:SHOP"])       # the secrets, in clear

The secret itself is in no row, and no error has it.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from ikigai_actors.records.arrivals.endpoints import SealEndpointAgain, all_endpoints, endpoint_place
from ikigai_actors.records.outbox.subscriptions import SealSubscriptionAgain, all_subscriptions, subscription_place
from ikigai_actors.records.sealed import SealedBox
from ikigai_actors.records.secret_references import check_reference, check_secret, sealed_bytes, sealed_text
from ikigai_actors.store.base import Transaction
from ikigai_actors.store.unit import Unit
from ikigai_actors.system.secrets import referred_key, referred_secret


class KeptSecrets:
    """Opens and seals the secrets of rows. The operator's key is looked up when a sealed secret needs it."""

    def __init__(self, keys: Callable[[], Sequence[str]]) -> None:
        """Use the operator's keys; ``keys`` returns references to them. The first key seals."""
        self._keys = keys
        self._box: SealedBox | None = None

    def kept(self, place: str, references: Sequence[str], plain: Sequence[str]) -> tuple[str, ...]:
        """Return secrets as a row stores them: references as they are, and plain secrets sealed.

        Args:
            place: the row for which they are sealed.
            references: references to secrets, which stay as they are.
            plain: secrets themselves, which are sealed.

        Raises:
            BadInput: something is no reference, or no secret; or there is no operator's key.
        """
        for reference in references:
            check_reference(reference, "the secret")
        return (*references, *(self.sealed(place, check_secret(secret)) for secret in plain))

    def sealed(self, place: str, secret: str) -> str:
        """Return a secret sealed for a place. Raises `BadInput` without a key."""
        return sealed_text(self._opened_box().seal(place, secret.encode()))

    def opened(self, place: str, kept: Sequence[str]) -> list[str]:
        """Return the secrets of a row in clear, without references that this process cannot resolve.

        Raises `BadInput` if a seal is wrong.
        """
        return [secret for text in kept if (secret := self._secret(place, text))]

    def again(self, place: str, kept: Sequence[str]) -> tuple[str, ...]:
        """Return the secrets of a row, with all sealed secrets sealed again, by the first key."""
        return tuple(self._again(place, text) for text in kept)

    def _again(self, place: str, text: str) -> str:
        sealed = sealed_bytes(text)
        if sealed is None or self._opened_box().is_current(sealed):
            return text
        return sealed_text(self._opened_box().seal(place, self._opened_box().opened(place, sealed)))

    def _secret(self, place: str, text: str) -> str:
        if (sealed := sealed_bytes(text)) is None:
            return referred_secret(text)
        return self._opened_box().opened(place, sealed).decode()

    def _opened_box(self) -> SealedBox:
        if self._box is None:
            self._box = SealedBox([referred_key(reference) for reference in self._keys()])
        return self._box


def seal_secrets_again(
    secrets: KeptSecrets, read: Callable[[Callable[[Transaction], Any]], Any], write: Callable[[Unit], Any]
) -> int:
    """Seal the secrets of all endpoints and subscriptions by the first key; return how many rows changed. Blocks.

    A row that somebody else changes meanwhile is read and sealed again.
    """
    done: list[bool] = [
        write(unit) for unit in [*_endpoints_again(secrets, read), *_subscriptions_again(secrets, read)]
    ]
    return sum(done) + (0 if all(done) else seal_secrets_again(secrets, read, write))


def _endpoints_again(secrets: KeptSecrets, read: Callable[[Callable[[Transaction], Any]], Any]) -> Iterator[Unit]:
    for endpoint in read(all_endpoints):
        kept = secrets.again(endpoint_place(endpoint.name), endpoint.spec.secrets)
        if kept != endpoint.spec.secrets:
            yield SealEndpointAgain(endpoint.name, endpoint.spec, replace(endpoint.spec, secrets=kept))


def _subscriptions_again(secrets: KeptSecrets, read: Callable[[Callable[[Transaction], Any]], Any]) -> Iterator[Unit]:
    for each in read(all_subscriptions):
        kept = secrets.again(subscription_place(each.id), each.spec.secrets)
        if kept != each.spec.secrets:
            yield SealSubscriptionAgain(each.id, each.spec, replace(each.spec, secrets=kept))
