"""The timers of agents, beside a running shell or without one."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from ikigai_actors.actors.clock import SYSTEM_CLOCK
from ikigai_actors.arguments import parse_span
from ikigai_actors.records.mail.schedules import appointment
from ikigai_actors.records.mail.timers import CancelTimer, Timer
from ikigai_actors.shell.text.harmless import as_json, harmless
from ikigai_actors.shell.text.timers import timer_line
from ikigai_actors.system.remote.client import Client
from ikigai_actors.text import iso_time

_SHOWN = 5
"""How many of the next times are shown."""


def list_timers(database: str | None, agent: str) -> tuple[list[Timer], dict[str, str]]:
    """The timers of an agent, or of all with an empty text; and the names of all who have to do with them."""
    with Client.open(database) as client:
        found = client.timers(client.find(agent).uuid if agent else None)
        uuids = {uuid for timer in found for uuid in (timer.agent_uuid, timer.sender) if uuid is not None}
        return found, {record.uuid: record.short for record in client.get_all(sorted(uuids))}


def set_timer(database: str | None, agent: str, text: str, after: str | None, prompt: bool, **when: str | None) -> str:
    """Remind an agent of something; returns the line about the timer. Raises what `AgentRef.remind` does."""
    with Client.open(database) as client:
        seconds = None if after is None else parse_span(after) / 1000
        timer = client.remind(client.find(agent).uuid, text, prompt=prompt, after=seconds, **when)
        return harmless(timer_line(timer, None))


def next_times(every: str, zone: str | None) -> list[datetime]:
    """When a timer would fire next that is not set. Raises what `AgentRef.next_times` does."""
    return appointment(SYSTEM_CLOCK.now_ms(), every=every, zone=zone).times(_SHOWN)


def times_as_list(times: Sequence[datetime]) -> str:
    """The same as JSON."""
    return as_json([time.isoformat() for time in times], indent=2)


def cancel(database: str | None, agent: str, number: int) -> str:
    """Cancel a timer; returns the line that says so. Raises `TimerNotFound`."""
    with Client.open(database) as client:
        record = client.find(agent)
        client.write(CancelTimer(record.uuid, number))
        return harmless(f"timer {number} of {record.short} is cancelled")


def as_lines(timers: Sequence[Timer], names: Mapping[str, str]) -> list[str]:
    """Timers of several agents as people read them."""
    width = max((len(names[timer.agent_uuid]) for timer in timers), default=0)
    lines = [
        harmless(f"{names[timer.agent_uuid]:<{width}}  {timer_line(timer, names.get(timer.sender or ''))}")
        for timer in timers
    ]
    return lines or ["No timers."]


def as_list(timers: Sequence[Timer], names: Mapping[str, str]) -> str:
    """The same as JSON."""
    objects = [
        {
            "agent_uuid": timer.agent_uuid,
            "label": names[timer.agent_uuid],
            "id": timer.id,
            "due_at": iso_time(timer.due_at),
            "every": timer.schedule,
            "zone": timer.zone,
            "as": timer.fires_as,
            "sender": timer.sender,
            "text": timer.body,
        }
        for timer in timers
    ]
    return as_json(objects, indent=2)
