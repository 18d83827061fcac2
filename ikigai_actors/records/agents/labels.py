"""Labels: the account for which an agent works, such as ``{"user": "ann", "team": "sales"}``. Pure.

A set of labels is stored as canonical JSON, so that equal sets are equal texts; no labels are ``""``. An agent gets its
set at birth, and keeps it: the labels in force at its parent, and those of the fork. A prompt may add labels for its
turn alone. Table ``label_values`` has each set by its id, for sums of the spending by label.
"""

import json
from collections.abc import Mapping
from functools import lru_cache
from hashlib import sha256

from ikigai_actors.arguments import check_mapping, check_type, shown
from ikigai_actors.errors import BadInput
from ikigai_actors.text import check_text

MOST_LABELS = 16
"""The most labels of an agent or a turn."""
KEY_LENGTH = 64
"""The most characters of a label's key."""
VALUE_LENGTH = 256
"""The most characters of a label's value."""


def check_labels(value: object) -> dict[str, str]:
    """Check labels, and return them as a dict; None counts as no labels. Raises `BadInput`."""
    texts = {} if value is None else check_mapping(value, "labels", "a dict from keys to texts, as {'team': 'sales'}")
    labels = {check_label_key(key): _check_value(key, text) for key, text in texts.items()}
    check_number(labels)
    return labels


def check_label_key(key: object) -> str:
    """Check the key of a label, and return it. Raises `BadInput`."""
    return _check_short(key, "the key of a label", KEY_LENGTH)


def check_number(labels: Mapping[str, str]) -> None:
    """Raise `BadInput` for more labels than an agent, or a turn, may have."""
    if len(labels) > MOST_LABELS:
        raise BadInput(f"Expected at most {MOST_LABELS} labels, with those that the agent has; got {len(labels)}.")


def set_of(labels: Mapping[str, str]) -> str:
    """Return labels encoded as canonical JSON: equal labels give equal texts. No labels give an empty text."""
    return json.dumps(labels, sort_keys=True, separators=(",", ":")) if labels else ""


def labels_in(text: str) -> dict[str, str]:
    """Return the labels that a text of `set_of` encodes. Raises `ValueError` for other text."""
    if not text:
        return {}
    labels = json.loads(text)
    if not are_labels(labels) or set_of(labels) != text:
        raise ValueError(f"expected labels as canonical JSON, got {text!r:.80}")
    return dict(labels)


NO_LABELS: Mapping[str, str] = {}
"""An empty set of labels. It is shared, so it must not be changed."""


def labels_of_row(text: object) -> Mapping[str, str]:
    """Return the labels in a column of a row. Invalid text gives no labels; only fsck reports it."""
    try:
        return labels_in(text) if isinstance(text, str) and text else NO_LABELS
    except ValueError:
        return NO_LABELS


def are_labels(value: object) -> bool:
    """Return whether a value from a message or a file has the form of labels."""
    if not isinstance(value, dict):
        return False
    return all(isinstance(key, str) and key and isinstance(text, str) for key, text in value.items())


def joined(text: str, labels: Mapping[str, str]) -> str:
    """Return the encoded labels combined with further labels, which replace labels with equal keys."""
    return set_of({**labels_in(text), **labels}) if labels else text


@lru_cache(maxsize=1024)
def set_id(text: str) -> str:
    """Return the id by which tables refer to a set of labels: 16 hexadecimal digits; empty for no labels."""
    return sha256(text.encode(errors="surrogatepass")).hexdigest()[:16] if text else ""


def _check_value(key: object, text: object) -> str:
    return _check_short(text, f"the label {key!r}", VALUE_LENGTH)


def _check_short(text: object, what: str, most: int) -> str:
    checked = check_text(check_type(text, str, what, "text"), what)
    if not checked.strip() or len(checked) > most:
        raise BadInput(f"Expected {what} to have 1 to {most} characters, and not to be blank; got {shown(text)}.")
    return checked
