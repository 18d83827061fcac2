"""What hands were told that is done, beside what `tests.torture.victim` reports: a judge looks whether it is there."""

from typing import NamedTuple

from tests.torture.victim import Bereft, Died, Entered, Forked, Said


class Asked(NamedTuple):
    """A prompt was taken."""

    agent: str
    text: str


class Sent(NamedTuple):
    """A mail has this number in the mailbox of its recipient."""

    sender: str
    recipient: str
    number: int
    body: str


class Published(NamedTuple):
    """A document has this version."""

    path: str
    version: int
    body: str


Fact = Asked | Sent | Published | Forked | Said | Entered | Died | Bereft
