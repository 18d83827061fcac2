"""Plans for summaries: the messages that a summary would replace, and those that stay verbatim. Pure.

The newest whole steps are kept: as many as fit into a part of the conversation. In an open turn, its latest step is
always kept, and its prompt is shown verbatim even if it is before the cut. Prompts with answers may be summarised.

Before a model is asked for a text, `elision_of` looks whether it is enough to show long results by reference.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from ikigai_actors.agent.turn.elision import ELIDED_TOKENS, is_elided
from ikigai_actors.agent.turn.found_tools import Findings, named_in
from ikigai_actors.agent.turn.skills import kept_by_summary
from ikigai_actors.agent.turn.tokens import Replies, tokens_in, tokens_of, tokens_per_byte
from ikigai_actors.records.log.boundaries import is_boundary
from ikigai_actors.records.messages.messages import Kind, Message
from ikigai_actors.records.messages.skills_beside import skills_beside
from ikigai_actors.records.messages.steered import as_word, words_beside

READABLE = 0.6
"""The part of its window that a model is shown when it summarises a longer history."""
KEPT_TOKENS = 20_000
"""The most tokens that stay verbatim, unless the latest step of a turn has more."""
KEPT_PART = 4
"""At most one in this many tokens stays verbatim, so that a summary of a short history replaces most of it."""
LEAST_FREED = 0.2
"""The least part of the conversation that an automatic summary must replace."""
FEWEST_STEPS = 2
"""The least number of replies that a summary must replace."""
ELIDED_TO, LEAST_ELIDED = 0.6, 0.3
"""An elision is enough if it brings the request below the first part of the near limit, and saves at least the second
part.
"""
DIGESTED = 300
"""The most characters of a prompt in a digest."""
_ASKED = {Kind.USER.value: "Prompt", Kind.STEER.value: "Word"}
MOST_WORDS, WORDS_KEPT = 20, 4_000
"""The most steering messages of the open turn that stay beside a summary, and the most characters of them."""
_DIGEST_PART = 5
"""The divisor of the tokens that a digest may take. Otherwise the digests of many failed summaries would fill the
window."""
_DIGEST = "(Nobody could summarise what was said; this is what was asked. recall(POSITION) shows all of a message.)"
"""The beginning of a digest."""


class History(Replies, Findings, Protocol):
    """The part of an agent's log that plans need; see `ikigai_actors.records.log.log.Log`."""

    @property
    def messages(self) -> Sequence[Message]:
        """The agent's own messages, oldest first."""

    def between(self, start: int, end: int) -> Iterator[Message]:
        """The messages with ``start < id <= end``, oldest first."""

    def latest_prompt(self, end: int | None = None) -> Message | None:
        """Return the latest prompt of the visible history up to a position."""


class SummaryPlan(NamedTuple):
    """A plan for a summary: the position at which it cuts the history, and the messages that it replaces."""

    keep_from: int
    """The position from which messages stay. The summary replaces all visible messages before it."""
    prompt: int
    """The position of the open prompt, if it is before `keep_from`; 0 for none."""
    messages: int
    """The number of messages that the summary would replace."""
    replaced: int
    """The approximate number of tokens of the replaced messages."""
    kept: int
    """The approximate number of tokens of the messages that stay."""
    begins: str
    """The beginning of the text that stays; empty when nothing stays."""
    upto: int
    """The position up to which the model is shown the history when it is asked for the summary."""
    digest: str
    """A digest of a past that no model can summarise: its prompts with their positions, shortened."""
    tokens_per_byte: float
    """The estimate of tokens for each byte from which these sizes were computed."""
    is_part: bool = False
    """Whether the plan covers only a part of the past, because the model cannot read all of it at once."""
    words: Sequence[Mapping[str, str]] = ()
    """The steering messages of the open turn that stay beside the prompt."""
    found_tools: Sequence[str] = ()
    """The tools that were found in the replaced messages."""
    skills: Sequence[Mapping[str, Any]] = ()
    """The texts of the skills that were loaded in the replaced messages. They stay beside the summary."""


class Elision(NamedTuple):
    """A plan to shorten a request: references replace long results before a position."""

    elide: int
    """The position before which long results are replaced."""
    before: int
    """The approximate number of tokens of the request before."""
    after: int
    """The approximate number of tokens of the request after."""


def elision_of(log: History, head: int, turn: int, tokens: int, near: float, whole: bool = False) -> Elision | None:
    """Return the elision that shortens a request enough without a summary; None if none does.

    Messages that a summary would keep verbatim are not replaced.

    Args:
        head: the position of the request's latest message.
        turn: the position of the message that opened the open turn.
        tokens: how many tokens the request has, about.
        near: the number of tokens at which a request counts as near the limit of the window.
        whole: whether to replace results in the latest step too, and to accept any elision that saves enough. This is
            the last resort for a request of which nothing can be summarised.
    """
    shown, known, per_byte = list(log.spoken(head)), log.elided(head), tokens_per_byte(log, head)
    sizes = {message.id: tokens_of(message, per_byte, known) for message in shown}
    elide = head + 1
    if not whole:
        elide, _ = _kept(log, shown, sizes, min(KEPT_TOKENS, sum(sizes.values()) // KEPT_PART), head, turn)
    long = [
        sizes[message.id] - ELIDED_TOKENS
        for message in shown
        if is_elided(message, elide) and not is_elided(message, known)
    ]
    saved = sum(long)
    if saved < LEAST_ELIDED * tokens or (tokens - saved >= ELIDED_TO * near and not whole):
        return None
    return Elision(elide, tokens, tokens - saved)


def plan_of(log: History, head: int, turn: int, part: float = 1.0) -> SummaryPlan | None:
    """Return the plan for a summary of the history as it is now.

    Args:
        head: the position of the history's latest message.
        turn: the position of the message that opened the turn which is open or can be resumed; 0 for none.
        part: the part of the conversation that the model can read; below 1 if it is too long for the model.

    Returns:
        The plan; None when a summary would save nothing.
    """
    opening = [message for message in log.opening(head) if message is not None]
    shown = list(log.spoken(head))  # newest first
    per_byte, elide = tokens_per_byte(log, head), log.elided(head)
    sizes = {message.id: tokens_of(message, per_byte, elide) for message in (*opening, *shown)}
    total = sum(sizes.values())
    keep_from, kept = _kept(log, shown, sizes, min(KEPT_TOKENS, total // KEPT_PART), head, turn)
    upto = head
    if part < 1:
        if kept > (1 - LEAST_FREED) * total:
            return None  # what was asked last is too long by itself
        keep_from = upto = _readable(log, shown, sizes, part * total, keep_from)
        upto -= 1
        kept = sum(sizes[message.id] for message in shown if message.id >= keep_from)
    fewest = FEWEST_STEPS if part == 1 else 1
    if sum(message.kind == Kind.ASSISTANT and message.id < keep_from for message in shown) < fewest:
        return None
    if keep_from > head and not _may_cut(log, head):
        return None
    prompt = log.latest_prompt(turn) if turn else None
    words = _words(opening, shown, prompt.id, keep_from) if prompt is not None and prompt.id < keep_from else ()
    kept += sum(tokens_in(word["text"], per_byte) for word in words)
    past = [message for message in reversed(shown) if message.id < keep_from]  # oldest first
    skills = kept_by_summary(opening, past)
    kept += sum(tokens_in(skill["text"], per_byte) for skill in skills)
    first = next((message for message in reversed(shown) if message.id >= keep_from), None)
    return SummaryPlan(
        keep_from,
        prompt.id if prompt is not None and prompt.id < keep_from else 0,
        len(past),
        total - kept,
        kept,
        " ".join(first.content.split())[:80] if first is not None else "",
        upto,
        _digest(opening, past, int(total // _DIGEST_PART / per_byte)),
        per_byte,
        part < 1,
        words,
        list(dict.fromkeys(name for message in (*opening, *past) for name in named_in(message.data))),
        skills,
    )


def plan_in_place(log: History, head: int) -> SummaryPlan | None:
    """Return the plan by which a text replaces the summary in force, over the same messages; None without one."""
    summary, prompt = log.opening(head)
    if summary is None:
        return None
    shown, per_byte, elide = list(log.spoken(head)), tokens_per_byte(log, head), log.elided(head)
    before, after = summary.data.get("before", 0), summary.data.get("after", 0)
    return SummaryPlan(
        summary.data["keep_from"],
        0 if prompt is None else prompt.id,
        1,
        int(before - after + tokens_of(summary, per_byte)),
        sum(tokens_of(message, per_byte, elide) for message in shown),
        "",
        head,
        "",
        per_byte,
        words=words_beside(summary),
        found_tools=named_in(summary.data),
        skills=skills_beside(summary),
    )


def less_of(plan: SummaryPlan, log: History, head: int, turn: int, readable: float) -> SummaryPlan | None:
    """Return the plan for a smaller part, after a request that was too long for the model.

    Args:
        plan: the plan that was too long.
        head: the position of the history's latest message.
        turn: as in `plan_of`.
        readable: the part of the shown text that the model can read.

    Returns:
        The plan; None if the first step is too long by itself.
    """
    shown = plan.replaced / (plan.replaced + plan.kept) if plan.is_part else 1.0
    less = plan_of(log, head, turn, readable * shown)
    return less if less is not None and less.upto < plan.upto else None


def _kept(
    log: History, shown: list[Message], sizes: dict[int, int], allowed: int, head: int, turn: int
) -> tuple[int, int]:
    """Return the position from which all messages stay verbatim, and the number of their tokens.

    The newest whole steps stay, in a turn at least its latest step. ``shown`` is newest first.
    """
    keep_from, kept, size = head + 1, 0, 0
    for message in shown:
        size += sizes[message.id]
        if message.kind not in (Kind.USER, Kind.ASSISTANT) or not _may_cut(log, message.id - 1):
            continue
        if size > allowed and not (turn and keep_from > head):
            break
        keep_from, kept = message.id, size
    return keep_from, kept


def _words(
    opening: Sequence[Message], shown: Sequence[Message], prompt: int, keep_from: int
) -> Sequence[Mapping[str, str]]:
    earlier = [word for message in opening if message.data.get("prompt") == prompt for word in words_beside(message)]
    past = [
        as_word(message)
        for message in reversed(shown)
        if message.kind == Kind.STEER and prompt < message.id < keep_from
    ]
    kept: list[Mapping[str, str]] = []
    size = 0
    for word in reversed([*earlier, *past]):
        size += len(word["text"])
        if len(kept) == MOST_WORDS or size > WORDS_KEPT:
            break
        kept.insert(0, word)
    return kept


def _readable(log: History, shown: list[Message], sizes: dict[int, int], most: float, keep_from: int) -> int:
    """Return the position at which a summary must cut so that the model reads at most ``most`` tokens.

    At least one step is read.
    """
    cut, size, replied, is_whole = 0, 0, False, False
    for message in reversed(shown):
        if message.id >= keep_from:
            break
        if message.kind in (Kind.USER, Kind.ASSISTANT) and is_whole and size > most:
            break
        size += sizes[message.id]
        replied = replied or message.kind == Kind.ASSISTANT
        if _may_cut(log, message.id):
            cut, is_whole = message.id + 1, replied
    return cut or keep_from


def _digest(opening: list[Message], past: list[Message], most: int) -> str:
    """Return a text with the first and the last prompts, of about this many characters at most."""
    earlier = "\n".join(message.content for message in opening if message.kind == Kind.SUMMARY).removeprefix(
        f"{_DIGEST}\n"
    )
    latest = next(
        (message for message in reversed(past) if message.kind == Kind.ASSISTANT and message.content.strip()), None
    )
    lines = [f"The latest answer then, at {latest.id}: {latest.content[:DIGESTED]}"] if latest is not None else []
    room = most - min(len(earlier), most // 2)
    for message in reversed(past):
        if message.kind in (Kind.USER, Kind.STEER) and room > 0:
            lines.append(f"{_ASKED[message.kind]} at {message.id}: {message.content[:DIGESTED]}")
            room -= len(lines[-1])
    if len(earlier) > most // 2:
        earlier = f"{earlier[: most // 2]} …"
    return "\n".join([_DIGEST, *([earlier] if earlier else []), *reversed(lines)])


def _may_cut(log: History, position: int) -> bool:
    return is_boundary(lambda start, end: list(log.between(start, end)), position, at_once=1)
