"""Keys for effects: a call has the same key in every attempt, and no other call has that key.

    @tool(idempotent="by_key")
    def pay(amount: int) -> str:
        '''Pay somebody.'''
        return bank.pay(amount, idempotency_key=current_call().key)

A crash can cut off a call after its effect and before its result. The runtime then starts the call again. A service
that recognises the key answers with the first payment instead of paying twice.
"""

from contextvars import ContextVar
from dataclasses import dataclass
from hashlib import sha256

acting_call: ContextVar["CurrentCall"] = ContextVar("acting_call")
"""The call of a tool that runs in this context."""


@dataclass(frozen=True, slots=True)
class CurrentCall:
    """The tool call that the running code carries out. Returned by `current_call`."""

    key: str
    """A text that is the same in every attempt of this call, on every host and after every crash. No other call has
    it.
    """
    attempt: int
    """The number of times this call was started, from 1. Starts by a process that ended before the tool ran are
    counted.
    """
    agent: str
    """The uuid of the agent whose model made the call."""
    id: str
    """The id of the call, as the model has set it. It is unique only within its reply: use `key` to distinguish
    calls.
    """
    reply: int = 0
    """The position of the reply that makes the call."""
    own_files: bool = False
    """Whether the call may change only files that fork with its agent, because the agent is a trial."""
    by_pattern: bool = False
    """Whether only the pattern of a rule allows the call, and nobody was asked. A pattern checks only the arguments, so
    the effects of earlier calls, such as definitions in a shell, must not change what this call does.
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
    """Return the key of a call, made from its agent, the position of its reply, and its id within the reply."""
    return "ik-" + sha256(f"{agent}\n{reply}\n{call}".encode(errors="surrogatepass")).hexdigest()[:40]
