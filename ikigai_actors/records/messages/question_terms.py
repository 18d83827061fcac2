"""The terms of a question: the people that it asks, and what happens while nobody answers. Pure.

    terms = terms_in({"within": "4h", "default": "deny", "remind": "30m", "escalate": ["role:lead", "above"]})
    terms.steps()       # remind after 30 m, ask role:lead after 60 m, and the one above after 90 m; deny after 4 h

An address is ``role:WORD``, ``principal:ID`` or ``label:NAME``: the principal that the agent's label names. The address
``above`` asks everybody who may approve, and the agent's supervisor gets a notice. The *level* of a question is the
number of steps taken, so that no step is taken twice.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ikigai_actors.arguments import parse_span, shown
from ikigai_actors.errors import BadInput

APPROVERS = "role:approve"
"""The address of all who may approve calls in the branch. Questions without other addresses ask them."""

ABOVE = "above"

REMIND, ESCALATE, DEFAULT = "remind", "escalate", "default"
"""The steps of an unanswered question."""

DENY, ALLOW = "deny", "allow"

_KINDS = ("role", "principal", "label")
MOST_ADDRESSES = 20
LONGEST_ADDRESS = 200
_NAMES = frozenset({"within", "default", "remind", "escalate", "to"})


class QuestionStep(NamedTuple):
    """A step that is taken while nobody answers a question: a reminder, an escalation or the default."""

    after: int
    """The milliseconds after the question was asked."""
    what: str
    """The kind of step: ``remind``, ``escalate`` or ``default``."""
    address: str = ""
    """For ``escalate``: the address that is asked from then on."""


@dataclass(frozen=True, slots=True)
class QuestionTerms:
    """The terms of a question: the people that it asks, and the steps while nobody answers."""

    to: tuple[str, ...] = (APPROVERS,)
    within: int | None = None
    """The milliseconds after which the default is taken; None waits forever."""
    default: Any = DENY
    """For a call, ``deny`` or ``allow``; for any other question its default answer, or ``deny`` for none."""
    remind: int | None = None
    """The milliseconds after which a reminder is sent; None for no reminder."""
    escalate: tuple[str, ...] = ()
    """The addresses that are asked later, one after another."""

    def steps(self) -> tuple[QuestionStep, ...]:
        """Return all steps in order. Each interval is that of the reminder, or an equal part of the time limit."""
        last = [] if self.within is None else [QuestionStep(self.within, DEFAULT)]
        apart = self.remind or (0 if self.within is None else self.within // (len(self.escalate) + 1))
        before = [(REMIND, "")] if self.remind else []
        before += [(ESCALATE, address) for address in self.escalate] if apart else []
        steps = [QuestionStep(apart * place, what, address) for place, (what, address) in enumerate(before, start=1)]
        return (*(step for step in steps if self.within is None or step.after < self.within), *last)

    def encoded(self) -> str:
        """Return the terms as text for a row; empty for the default terms."""
        usual = QuestionTerms()
        said = {name: getattr(self, name) for name in _NAMES if getattr(self, name) != getattr(usual, name)}
        return json.dumps(said, sort_keys=True) if said else ""

    @staticmethod
    def decoded(text: str) -> "QuestionTerms":
        """Return the terms from the text of a row. Raises `BadInput`."""
        try:
            said = json.loads(text) if text else {}
            lists = {name: tuple(said[name]) for name in ("to", "escalate") if name in said}
            return QuestionTerms(**{**said, **lists})
        except (ValueError, TypeError, RecursionError) as error:
            raise BadInput(f"Expected the terms of a question; got {shown(text)}.") from error


def terms_in(setting: Mapping[str, Any] | None) -> QuestionTerms:
    """Return the terms that an agent's setting ``questions`` gives; None gives the default terms. Raises `BadInput`."""
    said = dict(setting or {})
    if unknown := sorted(said.keys() - _NAMES):
        raise BadInput(f"Expected {', '.join(sorted(_NAMES))} in questions; got {', '.join(unknown)}.")
    default = said.get("default", DENY)
    if default not in (DENY, ALLOW):
        raise BadInput(f"Expected default to be 'deny' or 'allow'; got {shown(default)}.")
    return QuestionTerms(
        check_addresses(said.get("to", [APPROVERS]), "to", above=False),
        span_in(said.get("within"), "within"),
        default,
        span_in(said.get("remind"), "remind"),
        check_addresses(said.get("escalate", []), "escalate", above=True),
    )


def are_terms(value: object) -> bool:
    """Return whether a value is valid for the setting ``questions``."""
    try:
        return isinstance(value, dict) and terms_in(value) is not None
    except BadInput:
        return False


def span_in(value: object, name: str) -> int | None:
    """Return a length of time, such as ``30m`` or seconds, in milliseconds; None for None. Raises `BadInput`."""
    if value is None:
        return None
    time = parse_span(value) / 1000 if isinstance(value, str) else value
    if isinstance(time, bool) or not isinstance(time, int | float) or not 1 <= time <= 366 * 86_400:
        raise BadInput(f"Expected {name} to be a length of time from 1s to 366d, such as '30m'; got {shown(value)}.")
    return int(time * 1000)


def check_addresses(value: object, name: str, *, above: bool) -> tuple[str, ...]:
    """Check addresses, and return them. Raises `BadInput`. ``above``: whether the address ``above`` is allowed."""
    if isinstance(value, str) or not isinstance(value, Sequence) or len(value) > MOST_ADDRESSES:
        raise BadInput(f"Expected {name} to be a list of at most {MOST_ADDRESSES} addresses; got {shown(value)}.")
    for address in value:
        kind, _, rest = str(address).partition(":") if isinstance(address, str) else ("", "", "")
        fits = kind in _KINDS and rest.strip() == rest != "" and rest.isprintable() and len(address) <= LONGEST_ADDRESS
        if not (fits or (above and address == ABOVE)):
            raise BadInput(
                f"Expected addresses such as role:approve or principal:anna in {name}; got {shown(address)}."
            )
    return tuple(value)


def resolved(addresses: Collection[str], labels: Mapping[str, str]) -> tuple[str, ...]:
    """Return the addresses with each label of an agent replaced by its principal; by `APPROVERS` if it has none."""
    addressees: list[str] = []
    for address in addresses:
        kind, _, name = address.partition(":")
        if kind == "label":
            addressees.append(f"principal:{labels[name]}" if name in labels else APPROVERS)
        else:
            addressees.append(APPROVERS if address == ABOVE else address)
    return tuple(dict.fromkeys(addressees))


def is_asked(addresses: Collection[str], principal: str, roles: Collection[str]) -> bool:
    """Return whether a question with these addresses asks a principal, given by its id and its roles.

    ``roles`` must include the weaker roles of each role. Operators may answer all questions.
    """
    words = {"operate"} & set(roles)
    return bool(words) or any(
        address == f"principal:{principal}" or (address.startswith("role:") and address[5:] in roles)
        for address in addresses
    )
