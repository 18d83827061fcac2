"""What may not be. Pure: from ledgers, holdings, figures, and what the tools did to the world, every violation.

A ledger is read twice, before the holdings are taken and after: what was acknowledged *before* must be there; what only
stands in the later one is allowed to be.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from statistics import median

from ikigai_actors import Message
from ikigai_actors.agent.turn.calls import calls_of
from ikigai_actors.records.mail.mail import MAIL as LETTER
from ikigai_actors.records.mail.mail import PROMPT
from ikigai_actors.records.messages.messages import Kind
from tests.soak.hands import HAND
from tests.soak.holdings import Holdings
from tests.soak.ledger import (
    Asked,
    Buried,
    Complaint,
    Ended,
    Entry,
    Figures,
    Forked,
    Refused,
    Sent,
    Took,
    Trying,
    Wrote,
)
from tests.soak.model import MAIL
from tests.soak.tools import ONCE
from tests.torture.snapshot import closing

_BODY = re.compile(rf"(?:{HAND}|{MAIL}|o/)[\w.-]+")
"""A mail's body, in the text that shows it."""


def complaints(entries: Iterable[Entry]) -> Iterator[str]:
    """What a worker found wrong itself."""
    return (f"complaint: {entry.text}" for entry in entries if isinstance(entry, Complaint))


def mail(entries: Sequence[Entry], now: Holdings) -> Iterator[str]:
    """Each acknowledged mail is there exactly once, those of one sender in order; a refused one is not."""
    times = Counter(mail.body for mail in now.mails.values() if mail.kind == LETTER)
    yield from (f"mail: {body!r} is there {count} times" for body, count in times.items() if count > 1)
    last: dict[tuple[int, str | None, str], int] = {}
    for entry in entries:
        match entry:
            case Sent(hand, sender, recipient, number, body):
                mail = now.mails.get((recipient, number))
                if mail is None or (mail.sender, mail.kind, mail.body) != (sender, LETTER, body):
                    yield f"mail: {entry} is lost; there is {mail}"
                if number <= last.get((hand, sender, recipient), 0):
                    yield f"mail: {entry} came before one that the same hand sent earlier"
                last[hand, sender, recipient] = number
            case Refused(command="send", token=token, definite=True) if HAND + token in times:
                yield f"mail: {entry} was refused, and is there"
    yield from _mail_of_models(now, times)


def _mail_of_models(now: Holdings, times: Mapping[str, int]) -> Iterator[str]:
    """A model's mail is there when its call says so, and only then; those of one call after the other in order."""
    at = {mail.body: mail for mail in now.mails.values()}
    calls: set[str] = set()
    last: dict[tuple[str, str], int] = {}
    for call, result in now.results("send"):
        calls.add(MAIL + call)
        body, failed = MAIL + call, bool(result.data.get("is_error"))
        if failed == (body in times):
            yield f"mail: {body!r} is there {times.get(body, 0)} times, and its call was told {result.content!r}"
        elif not failed:
            key = (result.agent_uuid, at[body].recipient)
            if at[body].id <= last.get(key, 0):
                yield f"mail: {body!r} came before one that its sender sent earlier"
            last[key] = at[body].id
    for body in times:
        if body.startswith(MAIL) and body not in calls:
            yield f"mail: {body!r} is there, and no call has sent it"


def readings(entries: Sequence[Entry], later: Sequence[Entry], now: Holdings) -> Iterator[str]:
    """A mail is shown to one reader, once; and one that is marked as read was shown, or its reader was cut off."""
    shown: Counter[str] = Counter()
    for _, result in now.results("read_mail"):
        shown.update(_BODY.findall(result.content))
    for entry in entries:
        if isinstance(entry, Took) and any((entry.agent, number) not in now.mails for number in entry.numbers):
            yield f"mail: {entry} names mail that is not there"
        shown.update(_taken(entry, now))
    yield from (f"mail: {body!r} was shown {times} times" for body, times in shown.items() if times > 1)
    excused, known = _cut_off(later), {body for entry in later for body in _taken(entry, now)} | shown.keys()
    for mail in now.mails.values():
        if mail.body in shown and mail.read_at is None:
            yield f"mail: {mail.body!r} was shown, and is unread"
        if (
            mail.kind == LETTER
            and mail.read_at is not None
            and mail.body not in known
            and mail.recipient not in excused
        ):
            yield f"mail: {mail.body!r} of {mail.recipient} is read, and was shown to nobody"


def _taken(entry: Entry, now: Holdings) -> list[str]:
    """The bodies of the mails that a handle has read."""
    taken = [now.mails.get((entry.agent, number)) for number in entry.numbers] if isinstance(entry, Took) else []
    return [mail.body for mail in taken if mail is not None and mail.kind == LETTER]


def _cut_off(later: Sequence[Entry]) -> set[str]:
    """Whose mail was being read by a hand whose command has not returned, or failed without saying what happened.

    A command that has returned since the holdings were taken is excused as well: it may be in `later` alone.
    """
    reading: dict[int, str] = {}
    excused: set[str] = set()
    for entry in later:
        match entry:
            case Trying(hand, command, agent):
                if hand in reading:  # of a life that has ended
                    excused.add(reading.pop(hand))
                if command == "read":
                    reading[hand] = agent
            case Refused(hand, definite=definite) if hand in reading:
                agent = reading.pop(hand)
                excused.update(() if definite else (agent,))
            case Took(hand):
                reading.pop(hand, None)
    return excused.union(reading.values())


def prompts(entries: Sequence[Entry], now: Holdings) -> Iterator[str]:
    """Each turn that ended has the end that was told; each prompt has one, or is in progress; none was taken twice."""
    for entry in entries:
        if isinstance(entry, Ended):
            log = now.logs.get(entry.agent, {})
            openers = [
                message.id for message in log.values() if message.kind == Kind.USER and message.content == entry.prompt
            ]
            if not any(closing(log, opener) == (entry.kind, entry.text) for opener in openers):
                yield f"prompt: {entry} is lost"
    prompts_written: Counter[str] = Counter()
    for uuid, log in now.logs.items():
        record, last_end = now.records[uuid], _last_end(log)
        for message in log.values():
            if message.kind == Kind.USER:
                prompts_written[message.content] += 1
                if message.id > last_end and record.living and not 0 < record.turn <= message.id:
                    yield f"prompt: {message.content!r} of {uuid} has no end, and is not in progress"
    yield from (f"prompt: {text!r} was taken {times} times" for text, times in prompts_written.items() if times > 1)
    yield from _prompts_by_mail(entries, now, prompts_written)


def _prompts_by_mail(entries: Iterable[Entry], now: Holdings, entered: Mapping[str, int]) -> Iterator[str]:
    for entry in entries:
        if isinstance(entry, Asked):
            mail = now.mails.get((entry.agent, entry.number))
            if mail is None or (mail.kind, mail.body) != (PROMPT, entry.body):
                yield f"prompt: {entry} is lost; there is {mail}"
            elif (mail.read_at is None) == (entry.body in entered):
                yield f"prompt: {entry} was taken {entered.get(entry.body, 0)} times, and read at {mail.read_at}"


def _last_end(log: Mapping[int, Message]) -> int:
    """The position of the last message of a log that ends a turn."""
    return max((message.id for message in log.values() if _ends(message)), default=0)


def _ends(message: Message) -> bool:
    if message.kind in (Kind.ERROR, Kind.INTERRUPTED):
        return True
    return message.kind == Kind.ASSISTANT and not calls_of(message)


def tools(ran: Mapping[str, int], now: Holdings) -> Iterator[str]:
    """What is not idempotent ran once at most, and nothing ran of which no record says that it starts."""
    started: Counter[str] = Counter()
    for log in now.logs.values():
        for message in log.values():
            if message.kind == Kind.TOOL_CALL:
                started[f"{message.data['name']} {message.data['tool_use_id']}"] += 1
    for call, times in ran.items():
        if times > started[call]:
            yield f"tool: {call} ran {times} times, with {started[call]} records that it starts"
        if call.split()[0] in ONCE and times > 1:
            yield f"tool: {call} is not idempotent, and ran {times} times"


def lives(entries: Iterable[Entry], before: Holdings, now: Holdings) -> Iterator[str]:
    """Who was forked is there; the dead stay dead, and wrote nothing after their death; logs only grow."""
    for entry in entries:
        match entry:
            case Forked(parent=parent, child=child):
                if child not in now.records or now.records[child].parent_uuid != parent:
                    yield f"life: {entry} is lost"
            case Buried(heads=heads):
                for uuid, head in heads.items():
                    if uuid not in now.records or now.records[uuid].living:
                        yield f"life: {uuid} was killed, and is {now.records.get(uuid)}"
                    elif _head(now, uuid) != head:
                        yield f"life: {uuid} died with its log at {head}, which is at {_head(now, uuid)}"
    for uuid, record in before.records.items():
        if uuid not in now.records:
            yield f"life: agent {uuid} is gone"
            continue
        if not record.living and (now.records[uuid].living or len(now.logs[uuid]) != len(before.logs[uuid])):
            yield f"life: {uuid} was dead, and has come back or written since"
        if any(now.logs[uuid].get(position) != message for position, message in before.logs[uuid].items()):
            yield f"life: the log of {uuid} did not only grow"


def _head(now: Holdings, uuid: str) -> int:
    return max(now.logs[uuid], default=0)


def documents(entries: Iterable[Entry], now: Holdings) -> Iterator[str]:
    """Every version adds a line to the one before, so that no update was lost; what was acknowledged is there."""
    lines: Counter[str] = Counter()
    for path, versions in now.documents.items():
        bodies = [version.body.split("\n") for version in versions]
        if bodies[0][1:]:
            yield f"document: {path} begins with {bodies[0]}"
        for number, (body, following) in enumerate(pairwise(bodies), 2):
            if following[:-1] != body:
                yield f"document: version {number} of {path} has lost an update"
        lines.update(bodies[-1])
    yield from (f"document: {line!r} was written {times} times" for line, times in lines.items() if times > 1)
    for entry in entries:
        match entry:
            case Wrote(path=path, version=version, line=line):
                versions = now.documents.get(path, [])
                if len(versions) < version or not versions[version - 1].body.endswith(line):
                    yield f"document: {entry} is lost"
            case Refused(command="write", token=token, definite=True) if HAND + token in lines:
                yield f"document: {entry} was refused, and is there"
    for call, result in now.results("document_write"):
        if bool(result.data.get("is_error")) == (MAIL + call in lines):
            yield f"document: the call {call} was told {result.content!r}, and that is not so"


def wrote_after(life: int, before: Holdings, now: Holdings) -> Iterator[str]:
    """What the hands of a life wrote since: of a host that another one has taken over, nothing."""
    mark = re.compile(rf"(?:{HAND}|p/|c/){life}\.")
    had = set(_written(before))
    for text in _written(now):
        if mark.match(text) and text not in had:
            yield f"fence: {text!r} was written by a host that had lost the database"


def _written(holdings: Holdings) -> Iterator[str]:
    """Each prompt, mail, and line of a document."""
    for log in holdings.logs.values():
        yield from (message.content for message in log.values() if message.kind == Kind.USER)
    yield from (mail.body for mail in holdings.mails.values())
    for versions in holdings.documents.values():
        yield from versions[-1].body.split("\n")


ROUNDS = 4
"""Rounds of one life, from which on a growth can be told."""


def leaks(figures: Sequence[Figures], memory: int = 16 << 20, handles: int = 4) -> Iterator[str]:
    """What grows from round to round of one life, in which every round leaves the same behind.

    The first round is left out: caches fill. Of the others the later half must not lie above the earlier one, by
    medians: by so many bytes of memory, threads or files. After the end nothing but the process itself is left.

    Args:
        figures: all of one life, in order.
        memory: bytes by which memory may grow.
        handles: threads, or files, likewise.
    """
    rounds = [figure for figure in figures if figure.where == "round"][1:]
    half = len(rounds) // 2
    limits = {"rss": memory, "threads": handles, "files": handles}
    for name, limit in limits.items() if len(rounds) >= ROUNDS else ():
        earlier, later = (median(getattr(figure, name) for figure in part) for part in (rounds[:half], rounds[-half:]))
        if later - earlier > limit:
            yield f"leak: {name} grew from {earlier:,.0f} to {later:,.0f} in {len(rounds)} equal rounds"
    ends = {figure.where: figure for figure in figures}
    if "closed" in ends and "start" in ends:
        for name in ("threads", "files"):
            start, end = getattr(ends["start"], name), getattr(ends["closed"], name)
            if end - start > handles:
                yield f"leak: {name} were {start} at the start, and {end} after the end"
