"""`KeyOracle`: the invariant ``key``. A call with a key is carried out once, and its answer stays.

The text of each prompt with a key contains the key. The commit of the prompt or child also stores the answer for the
key, and no earlier commit has stored one. All callers with the same key get the same answer.
"""

from collections.abc import Sequence

from ikigai_actors.records.messages.messages import Kind
from ikigai_actors.testing.simulation.changes import RanStatement, StoredChange, Written
from ikigai_actors.testing.simulation.process import Broken

_MARK = "once: "


def keyed_text(verb: str, scope: str, key: str) -> str:
    """Return the text of a prompt that has a key."""
    return f"{_MARK}{verb} {scope} {key}"


class KeyOracle:
    """Checks that each idempotency key of a run gives one answer, however often the key is used."""

    def __init__(self) -> None:
        self._done: dict[tuple[str, str], str] = {}
        self._heard: dict[str, str] = {}

    def heard(self, text: str, answer: str) -> None:
        """Record the answer that a caller with this key got, and check that it is the same as before."""
        if self._heard.setdefault(text, answer) != answer:
            raise Broken(f"key: {text!r} has given {self._heard[text]}, and then {answer}")

    def of(self, agent: str) -> dict[str, str]:
        """Return the stored answers of the calls of an agent with keys, by key."""
        return {key: gave for (scope, key), gave in self._done.items() if scope == agent}

    def committed(self, changes: Sequence[StoredChange]) -> None:
        """Check that a commit that carries out a call with a key also stores its answer, once."""
        answered = set[tuple[str, str]]()
        for change in changes:
            if not isinstance(change, RanStatement):
                continue
            place = str(change.parameters.get("scope")), str(change.parameters.get("key"))
            if change.query == "answer_call":
                if place in self._done:
                    raise Broken(f"key: {place} was done before, and has another answer now")
                self._done[place] = change.parameters["gave"]
                answered.add(place)
            elif change.query == "release_call":
                self._done.pop(place, None)
            elif change.query == "release_answered":
                gave = change.parameters["gave"]
                freed = [other for other, answer in self._done.items() if other[0] == place[0] and answer == gave]
                self._done = {other: answer for other, answer in self._done.items() if other not in freed}
        for text in _acts(changes):
            _, verb, scope, key = text.split(" ")
            if (scope, key) not in answered:
                raise Broken(
                    f"key: a {verb} under key {key} of agent {scope} came by a commit that answers no such key"
                )


def _acts(changes: Sequence[StoredChange]) -> list[str]:
    """Return the texts with keys in the prompts, and in the first messages of children, that a commit writes."""
    births = {
        each.parameters["uuid"] for each in changes if isinstance(each, RanStatement) and each.query == "register"
    }
    keys: list[str] = []
    for change in changes:
        if isinstance(change, Written) and change.table == "mail":
            keys.append(change.row[4])
        elif isinstance(change, Written) and change.table == "messages":
            uuid, _, kind, content, *_ = change.row
            keys += [content] if kind == Kind.USER and uuid in births else []
    return [text for text in keys if text.startswith(_MARK)]
