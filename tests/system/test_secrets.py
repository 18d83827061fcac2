"""Secrets by reference: a process finds them in its variables, in files, and in the keyring of its machine."""

from collections.abc import Iterator
from pathlib import Path

import keyring
import pytest
from keyring.backend import KeyringBackend
from keyring.backends.fail import Keyring as NoKeyring

from ikigai_actors import ActorSystem, BadInput
from ikigai_actors.errors import Forged
from ikigai_actors.system.secrets import KEYRING_SERVICE, referred_key, referred_secret


class KeptKeyring(KeyringBackend):
    """A keyring in memory."""

    priority = 1

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.kept: dict[tuple[str, str], str] = {}

    def get_password(self, service: str, username: str) -> str | None:
        return self.kept.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self.kept[service, username] = password


@pytest.fixture
def machine() -> Iterator[KeptKeyring]:
    before, kept = keyring.get_keyring(), KeptKeyring()
    keyring.set_keyring(kept)
    yield kept
    keyring.set_keyring(before)


def test_a_secret_is_found_in_the_keyring_of_the_machine_by_its_name(machine: KeptKeyring, tmp_path: Path) -> None:
    keyring.set_password(KEYRING_SERVICE, "shop", "tea")
    keyring.set_password("another program", "post", "coffee")
    keyring.set_password(KEYRING_SERVICE, "key", "a1" * 32)
    assert [referred_secret(f"keyring:{name}") for name in ("shop", "post", "")] == ["tea", "", ""]
    assert referred_key("keyring:key") == b"\xa1" * 32
    with pytest.raises(BadInput, match=r"not there: keyring:post"):
        referred_key("keyring:post")
    (tmp_path / "secret").write_text("water\n")
    assert referred_secret(f"file:{tmp_path / 'secret'}") == "water"


def test_a_machine_without_a_keyring_says_so_and_an_endpoint_refuses(machine: KeptKeyring) -> None:
    keyring.set_keyring(NoKeyring())  # type: ignore[no-untyped-call]
    with pytest.raises(BadInput, match=r"cannot be asked for keyring:shop"):
        referred_secret("keyring:shop")
    with ActorSystem.open(":memory:", approvals="ask") as system:
        system.endpoints.add("shop", system.root, "github", ["keyring:shop"])
        with pytest.raises(Forged, match=r"cannot be asked for keyring:shop"):
            system.endpoints.receive("shop", {}, b"{}")
        assert system.endpoints.counts("shop") == {}


@pytest.mark.parametrize("reference", ["shop", "keyring:", "vault:shop", 3])
def test_what_is_no_reference_is_refused_with_the_forms_there_are(reference: object) -> None:
    with pytest.raises(BadInput, match=r"env:NAME, file:PATH or keyring:NAME"):
        referred_key(reference)  # type: ignore[arg-type]
