"""Makes an agent's conversation as a model sees it, and keeps it beside the log, so each message is converted once.

A conversation is a chain of passages (`providers.conversation`). A visible message has the same messages before it in
every history that shows it, since a rewind or a clear only moves the end or the beginning of a conversation. With a
summary in force the chain is another one, which begins with the summary. So each chain is cached under the place of its
message in the log, the model, the attachments that the model's service accepts, and the summary in force. Parent,
children and siblings share the cached chains. They are dropped together with the log.

Two agents may make the same passages at the same time, without a lock: the results are equal.
"""

import threading
from collections.abc import Hashable, Sequence

from ikigai_actors.actors.garbage import everything_stays
from ikigai_actors.agent.turn.request import Turns
from ikigai_actors.providers.attachment_limits import NOTHING_ATTACHED, AttachmentLimits
from ikigai_actors.providers.conversation import Passage
from ikigai_actors.records.log.log import Log, Passages, Spoken
from ikigai_actors.records.messages.blob_references import blobs_of
from ikigai_actors.records.messages.messages import Kind, Message

_noting = threading.Lock()
"""The lock that is held for a moment while a passage is added to a log's passages."""


def conversation_of(
    log: Log,
    head: int,
    model: str,
    limits: AttachmentLimits | None = None,
    further: Sequence[Message] = (),
    end: int | None = None,
    gone: frozenset[str] | None = None,
) -> Passage:
    """Return the conversation up to a position, as a model sees it.

    Args:
        model: the model, ``provider:model``.
        limits: the limits of the model's service for attachments; None if they are not known.
        further: messages that follow, and that are in no log.
        end: the position at which the shown conversation ends; None for ``head``.
        gone: the tools that no longer exist, to which results must not refer; None if results never refer to tools.

    Returns:
        The conversation, which ends with a message of the user.
    """
    if log.passages is not None:  # most of it is made
        return _conversation(log, head, model, limits, further, end, gone)
    with everything_stays():
        return _conversation(log, head, model, limits, further, end, gone)


def _conversation(
    log: Log,
    head: int,
    model: str,
    limits: AttachmentLimits | None,
    further: Sequence[Message],
    end: int | None,
    gone: frozenset[str] | None,
) -> Passage:
    key = _key(log, head, model, limits, gone)
    new, last = log.unkept(head, end, key)
    sent = _Sent(log, head, key)
    turns = Turns(last, model, sent, log.elided(head), limits, gone=gone)
    if last is None:
        turns.open_with(*log.opening(head))
    made = _made(turns, sent, key, new, further)
    if turns.attached.is_made:
        return made
    sent = _Sent(log, head, key)
    turns = Turns(None, model, sent, log.elided(head), limits, turns.attached.due, gone)
    turns.open_with(*log.opening(head))
    return _made(turns, sent, key, list(log.conversation(head, end)), further)


def conversation_in_words(
    log: Log,
    head: int,
    model: str,
    limits: AttachmentLimits | None,
    further: Sequence[Message],
    end: int,
    gone: frozenset[str] | None = None,
) -> Passage:
    """Return the conversation as `conversation_of` does, but with a text in place of each attachment."""
    whole = conversation_of(log, head, model, limits, further, end, gone)
    attaches = whole.blobs or whole.hidden
    return conversation_of(log, head, model, NOTHING_ATTACHED, further, end, gone) if attaches else whole


def passage_of(messages: Sequence[Message], model: str) -> Passage:
    """Convert messages of a history to a passage for a model, with a text in place of each attachment.

    The result is not cached.
    """
    sent: set[str] = set()
    turns = Turns(None, model, sent, limits=NOTHING_ATTACHED, hidden=sum(len(blobs_of(entry)) for entry in messages))
    for message in messages:
        turns.add(message)
        if turns.last is not None:
            sent.update(call_id for _, call_id, _ in turns.last.calls)
    return turns.finish()


def _made(turns: Turns, sent: "_Sent", key: Hashable, new: Sequence[Spoken], further: Sequence[Message]) -> Passage:
    """Convert new messages (newest first) to passages and cache them; return the conversation, then ``further``."""
    for spoken in reversed(new):
        before, sent.position = turns.last, spoken.message.id
        turns.add(spoken.message)
        if turns.settled and turns.last is not None:
            replied = spoken.message.kind == Kind.ASSISTANT and turns.last is not before
            _keep(spoken, key, turns.last, replied, turns.attached.is_made)
    for message in further:
        sent.position = message.id
        turns.add(message)
        if turns.last is not None:
            sent.beside.update(call_id for _, call_id, _ in turns.last.calls)
    return turns.finish()


def shared_blocks(
    log: Log,
    head: int,
    model: str,
    limits: AttachmentLimits | None = None,
    hidden: int = 0,
    gone: frozenset[str] | None = None,
) -> int:
    """Return the number of blocks at the beginning of a conversation that all siblings of the agent have in common.

    These are the blocks up to the end of the last reply before the fork. Later blocks, such as the result of the fork's
    call, differ. An agent with its own summary shares no blocks, nor does an agent that has replaced more attachments
    by a text (``hidden``) since the fork. Call `conversation_of` first.
    """
    if not log.fork or ((lens := log.view(head).lens) is not None and lens.id > log.fork):
        return 0
    key = _key(log, head, model, limits, gone)
    for spoken in log.conversation(head, log.fork):
        if (chain := spoken.kept(key)) is not None:
            return chain.replied if chain.hidden == hidden else 0
    return 0


def _key(log: Log, head: int, model: str, limits: AttachmentLimits | None, gone: frozenset[str] | None) -> Hashable:
    lens = log.view(head).lens
    return (model, limits, gone, lens.agent, lens.id) if lens is not None else (model, limits, gone)


def _keep(spoken: Spoken, key: Hashable, chain: Passage, replied: bool, is_made: bool) -> None:
    """Cache the chain that ends with a message, unless it must be made again; and the ids of a reply's calls."""
    with _noting:
        if spoken.log.passages is None:
            spoken.log.passages = {}
        if (passages := spoken.log.passages.get(key)) is None:
            passages = spoken.log.passages[key] = Passages()
        for _, sent, _ in chain.calls if replied else ():
            known = passages.sent.get(sent, ())
            if spoken.message.id not in known:
                passages.sent[sent] = (*known, spoken.message.id)
        if not is_made:
            return
        missing = spoken.place + 1 - len(passages.chains)
        passages.chains += [None] * missing
        passages.chains[spoken.place] = chain


class _Sent:
    """Whether a call was made before the current position of a conversation: ``call_id in sent``."""

    def __init__(self, log: Log, head: int, key: Hashable) -> None:
        self.position = 0
        self.beside: set[str] = set()
        """The ids of calls that are in no log."""
        self._log, self._head, self._key = log, head, key

    def __contains__(self, call_id: object) -> bool:
        if call_id in self.beside:
            return True
        log: Log | None = self._log
        end = self.position - 1
        while log is not None:
            passages = (log.passages or {}).get(self._key)
            for position in passages.sent.get(call_id, ()) if passages is not None and isinstance(call_id, str) else ():
                if position <= end and self._log.view(self._head).shows(position, self._head):
                    return True
            end, log = min(end, log.base), log.parent
        return False
