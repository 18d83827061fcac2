"""Sending a mail: to an agent or a group, now or later."""

from datetime import datetime

from ikigai_actors.arguments import shown
from ikigai_actors.errors import BadInput
from ikigai_actors.records.agents.called import about
from ikigai_actors.records.agents.registry import Handle
from ikigai_actors.records.lives.membership import SendToGroup, group_in
from ikigai_actors.records.mail.mail import MAIL, Send, check_letter
from ikigai_actors.records.mail.schedules import appointment
from ikigai_actors.records.mail.timers import SetTimer
from ikigai_actors.store.unit import Unit


def delivery(
    sender: str | None,
    recipient: Handle | str,
    body: str,
    now: int,
    *,
    at: datetime | str | None = None,
    after: float | None = None,
    zone: str | None = None,
) -> Unit:
    """Return the unit that sends a mail.

    The answer of the unit has an ``id``: that of the mail or timer, or the number of members of the group that got the
    mail.

    Args:
        sender: the uuid of the agent that sends it; None for a person.
        recipient: an agent, by its handle or by a text as in `about`; or a group, as ``group:NAME``.
        now: milliseconds since 1970.
        at: when it is sent, as in `appointment`, like the next two arguments; without any it is sent now.
        after: seconds from now on.
        zone: the time zone.

    Raises:
        BadInput: the body cannot be sent, the time is wrong, or the recipient is none.
    """
    check_letter(body)
    later = at is not None or after is not None
    if (group := group_in(recipient)) is not None:
        if later:
            raise BadInput("Expected an agent for a mail that is sent later: the members of a group may change.")
        return SendToGroup(group, sender, body, now)
    if not later:
        if zone is not None:
            raise BadInput(
                f"Expected at or after with a zone; got zone alone, {shown(zone)}: a mail is sent now without."
            )
        return about(recipient, Send, lambda uuid: Send(uuid, sender, body, now))
    when = appointment(now, at=at, after=after, zone=zone)
    return about(recipient, SetTimer, lambda uuid: SetTimer(uuid, sender, body, when, now, MAIL))
