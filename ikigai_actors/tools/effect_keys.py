"""Keys for effects: a key is the same in every attempt of a call, and no other call has it.

    @tool(idempotent="by_key")
    def pay(amount: int) -> str:
        '''Pay somebody.'''
        return bank.pay(amount, idempotency_key=current_call().key)

A crash can cut off a call after its effect and before its result. The runtime then starts it again, and a service that
keeps the key answers with the payment that it has already made.
"""

from contextvars import ContextVar
from dataclasses import dataclass
from hashlib import sha256

acting_call: ContextVar["CurrentCall"] = ContextVar("acting_call")
"""The call whose tool runs in this context."""


@dataclass(frozen=True, slots=True)
class CurrentCall:
    """The call of a tool that runs now. Returned by `current_call`."""

    key: str
    """The same text in every attempt of this call, on every host and after every crash; no other call has it."""
    attempt: int
    """How often this call has been started, from 1: also by a process that ended before the tool began."""
    agent: str
    """The agent whose model called, by uuid."""
    id: str
    """The id of the call, as the model gave it. It is unique within its reply only: use `key` to distinguish calls."""
    reply: int = 0
    """The position of the reply that asks for it."""
    own_files: bool = False
    """Whether it may change no files but those that fork with its agent, since that is a trial."""
    by_pattern: bool = False
    """Whether nobody was asked, and nothing but the pattern of a rule allows it. A pattern sees the arguments alone: so
    what earlier calls have defined must not change what this one does.
    """


def current_call() -> CurrentCall:
    """Return the call that the running code of a tool carries out.

    Raises:
        LookupError: no tool runs here.
    """
    try:
        return acting_call.get()
    except LookupError:
        raise LookupError("current_call() works inside a tool, while a model's call runs it.") from None


def effect_key(agent: str, reply: int, call: str) -> str:
    """The key of a call: of its agent, the position of the reply that asks for it, and its id within that reply."""
    return "ik-" + sha256(f"{agent}\n{reply}\n{call}".encode(errors="surrogatepass")).hexdigest()[:40]
