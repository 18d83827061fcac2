"""What may not be after a crash. Pure: from reports, snapshots and what the tools did to the world, every violation."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from ikigai_actors import Message
from ikigai_actors.assembly import assemble
from ikigai_actors.calls import FORK, PERHAPS_RUN
from ikigai_actors.messages import Kind
from tests.calling import faults
from tests.torture.script import IDEMPOTENT, ONCE, did
from tests.torture.snapshot import CallStory, Snapshot, closing, stories
from tests.torture.victim import Complaint, Ended, Forked, Heard, Report, Wrote


def lost(reports: Iterable[Report], now: Snapshot) -> Iterator[str]:
    """What was acknowledged and is not there as it was said to be."""
    for report in reports:
        match report:
            case Heard(message):
                if now.logs.get(message.agent_uuid, {}).get(message.id) != message:
                    yield f"lost: a subscriber was told of {message}"
            case Wrote(agent=agent, position=position, kind=kind, token=token):
                found = now.logs.get(agent, {}).get(position)
                if found is None or found.kind != kind or token not in (found.content, found.data.get("system"), ""):
                    yield f"lost: {report}; there is {found}"
            case Forked(parent=parent, child=child, prompt=prompt):
                told = [one.content for one in now.logs.get(child, {}).values() if one.kind == Kind.USER]
                if child not in now.records or now.records[child].parent_uuid != parent or prompt not in (None, *told):
                    yield f"lost: {report}"
            case Ended() if not _has_ended(report, now.logs.get(report.agent, {})):
                yield f"lost: {report}"
            case Complaint(text):
                yield f"complaint: {text}"


def _has_ended(report: Ended, log: Mapping[int, Message]) -> bool:
    """Whether a log has the end that was reported, of the turn that was asked for."""
    openers = [one.id for one in log.values() if one.kind == Kind.USER and one.content == report.prompt]
    if report.prompt is None:  # resumed: a turn may begin with a result too
        openers = [one.id for one in log.values() if one.kind in (Kind.USER, Kind.TOOL_RESULT)]
    return any(closing(log, opener) == (report.kind, report.text) for opener in openers)


def altered(before: Snapshot, now: Snapshot) -> Iterator[str]:
    """Logs only grow, and nobody disappears."""
    for uuid in before.records.keys() - now.records.keys():
        yield f"altered: agent {uuid} is gone"
    for message in before.messages:
        found = now.logs.get(message.agent_uuid, {}).get(message.id)
        if found != message:
            yield f"altered: {message} is now {found}"


def doubled(now: Snapshot) -> Iterator[str]:
    """Every prompt has a text of its own, and so has every mark: what is there twice was done twice."""
    told = Counter(message.content for message in now.messages if message.kind in (Kind.USER, Kind.MARK))
    for text, times in told.items():
        if times > 1:
            yield f"doubled: {text!r} stands {times} times in the logs"


def untrue(now: Snapshot, ran: Mapping[str, int]) -> Iterator[str]:
    """Each call has at most one result, exactly one once the model was asked again; and it tells what was done."""
    told: set[str] = set()
    forked: Counter[str] = Counter()
    for uuid, log in now.logs.items():
        for story in stories(uuid, log):
            name = f"{story.call.name} {story.call.id}"
            told.add(name)
            for fault in _of_call(story, ran.get(name, 0), forked):
                yield f"untrue: {story.call.name} {story.call.id} of {uuid}: {fault}"
    for name in ran.keys() - told:
        yield f"untrue: {name} ran, and no reply asked for it"
    yield from _of_forks(now, forked)


def _of_call(story: CallStory, ran: int, forked: Counter[str]) -> Iterator[str]:
    call, results = story.call, story.results
    if len(results) > 1 or (story.answered and not results):
        yield f"{len(results)} results"
    if ran > story.started:
        yield f"ran {ran} times, with {story.started} records that it starts"
    if call.name in ONCE and (ran > 1 or story.started > 1):
        yield f"is not idempotent; ran {ran} times, was started {story.started} times"
    if not results:
        return
    result = results[0]
    if result.content == PERHAPS_RUN:
        if call.name not in ONCE or not story.started:
            yield f"{story.started} records that it starts, and its result is that it may have run"
    elif call.name == FORK:
        if not result.data.get("is_error"):
            forked[result.content.split()[-1].rstrip(".")] += 1
    elif call.name in IDEMPOTENT | ONCE and (result.content, bool(ran)) != (did(call.id), True):
        yield f"ran {ran} times, and its result is {result.content!r}"


def _of_forks(now: Snapshot, forked: Counter[str]) -> Iterator[str]:
    """A child whose log begins with a result was made by the one call that names it."""
    for uuid, record in now.records.items():
        head = list(now.logs[uuid].values())[:2]
        by_call = len(head) == 2 and head[1].kind == Kind.TOOL_RESULT
        if forked.pop(uuid, 0) != by_call:
            yield f"untrue: {uuid}, child of {record.parent_uuid}, is not named by exactly the call that made it"
    for uuid in forked:
        yield f"untrue: a call made {uuid}, and there is no such agent"


def unacceptable(agent: str, fork: int, history: Iterable[Message]) -> Iterator[str]:
    """What the API would refuse of a history."""
    for fault in faults(assemble(history, {}, agent=agent, name=None, model="scripted:", fork=fork)):
        yield f"unacceptable: the history of {agent}: {fault}"
