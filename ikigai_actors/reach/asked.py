"""A request of a client: the first unit that the request commits claims the key of the request, and stores the result.

    asked = AskedRequest(call, now)
    call(place, verb, given, needs, asked)      # the unit of the verb claims the key in its own transaction
    asked.did                                   # {"agent": uuid, "mail": 7}

The module `keys` describes the row of a key.
"""

from collections.abc import Callable
from typing import Any

from ikigai_actors.errors import IkigaiError
from ikigai_actors.reach.keys import ClaimingUnit, Did
from ikigai_actors.reach.turns import DONE, FAILED, WORKING
from ikigai_actors.records.hosts.remote_commands import AddRemoteCommand, Answered, RemoteCommandKey
from ikigai_actors.records.mail.mail import Mail
from ikigai_actors.records.mail.words import KeptWord
from ikigai_actors.records.once import KeyedCall
from ikigai_actors.store.asker import Asker
from ikigai_actors.store.unit import Unit


class AskedRequest(Asker):
    """A request of a client that may change the database, and the value under its key."""

    def __init__(self, call: KeyedCall | None, now: Callable[[], int], principal: str | None = None) -> None:
        self.call, self._now, self.principal = call, now, principal
        self.did: Did | None = None
        """The keys of the rows that the first unit wrote; None before the unit is committed."""

    def check_write(self) -> None:
        """Allow writes, because this request may change the database."""

    def around(self, unit: Unit) -> Unit:
        if self.call is None or self.did is not None:
            return unit
        return ClaimingUnit(unit, self.call, self._now(), lambda answer: {"did": _did(unit, answer)})

    def committed(self, unit: Unit, answer: Any) -> None:
        if self.did is None:
            self.did = _did(unit, answer)


def _did(unit: Unit, answer: Any) -> Did:
    if isinstance(unit, AddRemoteCommand):
        return {"agent": unit.agent, "request": answer}
    mail = answer.mail if isinstance(answer, KeptWord) else answer
    if isinstance(mail, Mail):
        return {"agent": mail.recipient, "mail": mail.id}
    return {"done": True}


def command_of(did: Did) -> RemoteCommandKey | None:
    """Return the remote command that a request has sent; None if the request has sent none."""
    return RemoteCommandKey(did["agent"], did["request"]) if "request" in did else None


def command_row(key: RemoteCommandKey, answered: Answered | None) -> dict[str, Any]:
    """Return a remote command with its answer, in the form for a client."""
    row = {"agent": key.agent, "request": key.id}
    if answered is None:
        return {**row, "status": WORKING}
    if isinstance(answered.value, IkigaiError):
        return {**row, "status": FAILED, "error": str(answered.value)}
    return {**row, "status": DONE, "answer": answered.value}
