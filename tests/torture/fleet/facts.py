"""What hands were told that is done, beside what `tests.torture.victim` reports: a judge looks whether it is there."""

from typing import NamedTuple

from tests.torture.victim import Bereft, Died, Entered, Forked, Said, Wrote


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


class Reminded(NamedTuple):
    """An agent has a timer, which fires once, as mail."""

    agent: str
    body: str
    cancelled: bool | None
    """Whether it was taken back before it fired; None where the answer to that was lost."""


class Addressed(NamedTuple):
    """A mail to a group has reached those who were members."""

    body: str
    members: frozenset[str]


class Grouped(NamedTuple):
    """Agents are members of a group, and nobody else is."""

    group: str
    members: frozenset[str]


class TookIn(NamedTuple):
    """An agent has merged a child."""

    agent: str
    child: str
    position: int


class Granted(NamedTuple):
    """A strict budget grants so many tokens: at least what was acknowledged, at most what was asked for."""

    owner: str
    least: int
    most: int


Told = Forked | Said | Entered | Died | Bereft | Wrote
"""What the judge of one host knows, too."""

Fact = Asked | Sent | Published | Reminded | Addressed | Grouped | TookIn | Granted | Told
