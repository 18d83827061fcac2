"""What may not be after a crash. Pure: from reports, snapshots and what the tools did to the world, every violation."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from ikigai_actors import AgentRecord, Message
from ikigai_actors.agent.turn.calls import FORK, PERHAPS_RUN
from ikigai_actors.records.lives.exit_mails import MOST_SINGLE
from ikigai_actors.records.messages.messages import Kind
from supervisors.orphans import OrphanPolicy
from tests.kit.assembly import assemble
from tests.kit.tool_scripts import faults
from tests.torture.script import IDEMPOTENT, ONCE, did
from tests.torture.snapshot import CallStory, Snapshot, closing, stories
from tests.torture.victim import (
    Bereft,
    Complaint,
    Died,
    Doomed,
    Ended,
    Entered,
    Forked,
    Heard,
    Joined,
    Reminded,
    Report,
    Said,
    TookBack,
    Wrote,
)

NOT_BEGUN = "This call was not begun: read the new words."
CUT_BY_WORDS = (NOT_BEGUN, "This call was cut off: it may or may not have run. Read the new words.")
"""The results of calls that a word has ended."""


def lost(reports: Iterable[Report], now: Snapshot) -> Iterator[str]:
    """What was acknowledged and is not there as it was said to be."""
    for report in reports:
        match report:
            case Heard(message):
                if now.logs.get(message.agent_uuid, {}).get(message.id) != message:
                    yield f"lost: a subscriber was told of {message}"
            case Wrote(agent=agent, position=position, kind=kind, token=token):
                logged = now.logs.get(agent, {}).get(position)
                if (
                    logged is None
                    or logged.kind != kind
                    or token not in (logged.content, logged.data.get("system"), "")
                ):
                    yield f"lost: {report}; there is {logged}"
            case Forked(parent=parent, child=child, prompt=prompt):
                prompts = [entry.content for entry in now.logs.get(child, {}).values() if entry.kind == Kind.USER]
                if (
                    child not in now.records
                    or now.records[child].parent_uuid != parent
                    or prompt not in (None, *prompts)
                ):
                    yield f"lost: {report}"
            case Ended() if not _has_ended(report, now.logs.get(report.agent, {})):
                yield f"lost: {report}"
            case Said(agent=agent, mail=mail, token=token) if now.words.get((agent, mail)) != token:
                yield f"lost: {report}; the mail is {now.words.get((agent, mail))!r}"
            case TookBack(agent=agent, mail=mail) if (agent, mail) in now.words:
                yield f"lost: {report}; the mail is there"
            case Entered(agent=agent, position=position, token=token):
                logged = now.logs.get(agent, {}).get(position)
                if logged is None or logged.content != token or logged.kind not in (Kind.STEER, Kind.USER):
                    yield f"lost: {report}; there is {logged}"
            case Reminded(agent=agent, text=text) if not _is_kept(now, agent, text):
                yield f"lost: {report}; there are {now.reminders.get((agent, text), 0)} of it"
            case Joined(agent=agent, group=group, stays=stays):
                if ((group, agent) in now.members) != (stays and now.records[agent].living):
                    yield f"lost: {report}; it is {'no' if stays else 'a'} member"
            case Complaint(text):
                yield f"complaint: {text}"


def _is_kept(now: Snapshot, agent: str, text: str) -> bool:
    """Whether a timer waits or has fired, once. It ends with its agent."""
    times = now.reminders.get((agent, text), 0)
    return times == 1 or (times == 0 and not now.records[agent].living)


def _has_ended(report: Ended, log: Mapping[int, Message]) -> bool:
    """Whether a log has the end that was reported, of the turn that was asked for."""
    openers = [message.id for message in log.values() if message.kind == Kind.USER and message.content == report.prompt]
    if report.prompt is None:  # resumed: a turn may begin with a result too
        openers = [message.id for message in log.values() if message.kind in (Kind.USER, Kind.TOOL_RESULT)]
    return any(closing(log, opener) == (report.kind, report.text) for opener in openers)


def altered(before: Snapshot, now: Snapshot) -> Iterator[str]:
    """Logs only grow, and nobody disappears."""
    for uuid in before.records.keys() - now.records.keys():
        yield f"altered: agent {uuid} is gone"
    for message in before.messages:
        message_now = now.logs.get(message.agent_uuid, {}).get(message.id)
        if message_now != message:
            yield f"altered: {message} is now {message_now}"


def undead(before: Snapshot, reports: Iterable[Report], now: Snapshot) -> Iterator[str]:
    """Who has died stays dead and writes nothing more; one that is above it hears of it, once; nobody is left alone."""
    stands = {uuid: record.status for uuid, record in now.records.items()}
    dead = {uuid for uuid, status in stands.items() if status == "dead"}
    for report in reports:
        match report:
            case Died(heads=heads, reason=reason):
                for uuid, head in heads:
                    if uuid not in dead or now.records[uuid].exit_reason not in (reason, _taken_along(now, uuid)):
                        yield f"undead: {uuid} was ended with {reason!r}; there is {now.records.get(uuid)}"
                    elif (last := max(now.logs[uuid], default=0)) != head:
                        yield f"undead: {uuid} ended with message {head}, and its log goes to {last}"
            case Doomed(agent=uuid) if stands.get(uuid) not in ("terminating", "dead"):
                yield f"undead: {uuid} was terminated; there is {now.records.get(uuid)}"
            case Bereft(agent=uuid) if uuid not in dead:
                yield f"undead: {uuid} was said to be dead; there is {now.records.get(uuid)}"
    for uuid, record in before.records.items():
        if not record.living and (_lasting(now.records.get(uuid)), now.logs.get(uuid)) != (
            _lasting(record),
            before.logs[uuid],
        ):
            yield f"undead: {record} is now {now.records.get(uuid)}, or has written something"
    yield from _obituaries(now, dead)
    for uuid, record in now.records.items():
        above = now.records.get(record.supervisor_uuid or uuid, record)
        if record.living and not above.living and above.on_orphan != OrphanPolicy.CONTINUE:
            yield f"undead: {uuid} is looked after by {above.uuid}, which is dead"


def _lasting(record: AgentRecord | None) -> AgentRecord | None:
    """What stays of the dead: their shards go from host to host."""
    return None if record is None else replace(record, owner=None)


def _obituaries(now: Snapshot, dead: set[str]) -> Iterator[str]:
    """One for each of the dead, to the first above it that survived it; or one for many that died at once."""
    notices = Counter(sender for _, sender in now.obituaries)
    at_once = Counter(now.records[uuid].ended_at for uuid in dead)
    for uuid in dead | notices.keys():
        summed_up = uuid in dead and at_once[now.records[uuid].ended_at] > MOST_SINGLE
        if notices[uuid] != (uuid in dead) and not (summed_up and notices[uuid] == 0):
            yield f"undead: {notices[uuid]} mails tell that {uuid} is dead; there is {now.records.get(uuid)}"
    for recipient, uuid in now.obituaries:
        chain = [*_above(now, uuid)]
        if recipient not in chain or not dead.issuperset(chain[: chain.index(recipient)]):
            yield f"undead: {recipient} was told of the death of {uuid}, and is not the first survivor of {chain}"


def _taken_along(now: Snapshot, uuid: str) -> str:
    """The reason of an agent that died of its supervisor's orphan policy."""
    supervisor = now.records[str(now.records[uuid].supervisor_uuid)]
    return f"its supervisor {supervisor.short} died, and takes those with it that it looks after"


def _above(now: Snapshot, uuid: str) -> Iterator[str]:
    """Its supervisor, that one's supervisor, and so on to agent 0."""
    seen = {uuid}
    while (above := now.records[uuid].supervisor_uuid) is not None and above not in seen:
        yield above
        seen.add(above)
        uuid = above


def doubled(now: Snapshot) -> Iterator[str]:
    """Every prompt has a text of its own, and so have words and marks: what is there twice was done twice."""
    counts = Counter(message.content for message in now.messages if message.kind in (Kind.USER, Kind.STEER, Kind.MARK))
    for text, times in counts.items():
        if times > 1:
            yield f"doubled: {text!r} stands {times} times in the logs"


def untrue(now: Snapshot, ran: Mapping[str, int]) -> Iterator[str]:
    """Each call has at most one result, exactly one once the model was asked again; and it tells what was done."""
    names: set[str] = set()
    forked: Counter[str] = Counter()
    for uuid, log in now.logs.items():
        for story in stories(uuid, log):
            name = f"{story.call.name} {story.call.id}"
            names.add(name)
            for fault in _of_call(story, ran.get(name, 0), forked):
                yield f"untrue: {story.call.name} {story.call.id} of {uuid}: {fault}"
    for name in ran.keys() - names:
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
    elif result.content in CUT_BY_WORDS:
        if (result.content == NOT_BEGUN) == bool(story.started):
            yield f"{story.started} records that it starts, and its result is {result.content!r}"
    elif call.name == FORK:
        if not result.data.get("is_error"):
            forked[result.content.partition(" Left of the budget: ")[0].split()[-1].rstrip(".")] += 1
    elif call.name in IDEMPOTENT | ONCE and (result.content, bool(ran)) != (did(call.id), True):
        yield f"ran {ran} times, and its result is {result.content!r}"


def _of_forks(now: Snapshot, forked: Counter[str]) -> Iterator[str]:
    """A child whose log begins with a result was made by the one call that names it."""
    for uuid, record in now.records.items():
        head = list(now.logs[uuid].values())[:2]
        by_call = len(head) == 2 and head[1].kind == Kind.TOOL_RESULT
        named = forked[record.short] > 0
        if by_call:
            forked[record.short] -= 1
            if not named:
                yield f"untrue: {uuid}, child of {record.parent_uuid}, is not named by the call that made it"
    for name in +forked:
        yield f"untrue: a call made {name}, and there is no such agent"


def unacceptable(agent: str, fork: int, history: Iterable[Message]) -> Iterator[str]:
    """What the API would refuse of a history."""
    for fault in faults(assemble(history, {}, agent=agent, name=None, model="scripted:", fork=fork)):
        yield f"unacceptable: the history of {agent}: {fault}"
