"""Verbs about mail. A person at a shell sends, reads and deletes as the current agent."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import click

from ikigai_actors.verbs import text as words
from ikigai_actors.verbs.arguments import AGENT, SENDER, TEXT, keyed
from ikigai_actors.verbs.place import ShellPlace
from ikigai_actors.verbs.rights import Right
from ikigai_actors.verbs.verb import verb

if TYPE_CHECKING:
    from ikigai_actors.records.mail.mail import Mail
    from ikigai_actors.system.handles.ref import AgentRef
    from ikigai_actors.verbs.place import Place

_FROM_PERSON = ("person", "nobody")
"""The values of ``--from`` for mail of a person; the second is an earlier name."""

_LISTED = 20
"""How many mails a list shows by default."""

_Number = click.IntRange(min=1)


@verb("send", script="--as", needs=Right.PROMPT)
@click.option("--after", metavar="TIME", type=TEXT, help="When, as 90s, 10m, 2h or 3d; else now.")
@click.option("--at", metavar="TIME", type=TEXT, help="When, as 09:00 or 2026-11-26T09:00.")
@click.option("--zone", metavar="ZONE", type=TEXT, help="The clocks of --at, as Europe/Berlin; else this machine's.")
@click.argument("recipient", metavar="ID", type=AGENT)
@keyed
@click.argument("text", type=TEXT, nargs=-1, required=True)
def send(
    place: "Place",
    agent: "AgentRef | None",
    recipient: str,
    text: tuple[str, ...],
    after: str | None,
    at: str | None,
    zone: str | None,
    key: str | None = None,
) -> object:
    """Send a mail, now or later.

    ID is a name, two words, or 4 or more characters of a uuid; or group:NAME, which is all members of that group. The
    mail waits until its recipient reads it. Later: --after 10m buyer The fair begins.
    """
    from ikigai_actors.arguments import parse_span
    from ikigai_actors.records.lives.membership import group_in

    sender, body = place.system if agent is None else agent, " ".join(text)
    if zone is not None and at is None:
        raise click.UsageError("--zone is for --at.")
    if after is not None or at is not None:
        seconds = None if after is None else parse_span(after) / 1000
        number = place.wait_for(lambda: sender.send(recipient, body, at=at, after=seconds, zone=zone, key=key))
        to = place.system.agent(recipient)
        for timer in to.timers():
            if timer.id == number:  # else it has fired
                line = words.timer_line(timer, None if agent is None else agent.record.short)
                place.screen.line(line if isinstance(place, ShellPlace) else f"{to.record.short}: {line}")
        return words.agent_row(to) | {"timer": number}
    if (group := group_in(recipient)) is not None:
        count = place.wait_for(lambda: sender.send(recipient, body, key=key))
        place.screen.line(f"mail to {count} members of {group}")
        return {"group": group, "mails": count}
    to = place.system.agent(recipient)
    number = place.wait_for(lambda: sender.send(to, body, key=key))
    place.screen.line(f"mail {number} to {words.named(to)}")
    return words.agent_row(to) | {"mail": number}


@verb("check-mail", needs=Right.LOOK)
def check_mail(place: "Place", agent: "AgentRef") -> object:
    """Show how much mail the agent has not read.

    The list also shows which agents have sent the mail, and how the oldest mails begin. Nothing is marked as read.
    """
    box = agent.check_mail()
    names = _names(place, box.senders)
    place.screen.line(box.summary(names))
    for each in box.previews:
        place.screen.line(f"{each.id:>5}  {names[each.sender]:<10}  {words.kind_mark(each.kind)}{each.text}")
    if box.more:
        place.screen.line(box.more, dim=True)
    return words.agent_row(agent) | {"unread": box.unread, "oldest": [words.as_row(each) for each in box.previews]}


@verb("read-mail", needs=Right.PROMPT)
@click.argument("number", metavar="[MAIL-ID]", type=_Number, required=False)
@click.option("--all", "everything", is_flag=True, help="Read all that is unread.")
def read_mail(place: "Place", agent: "AgentRef", number: int | None, everything: bool) -> object:
    """Read the oldest unread mail, all unread mail, or one mail.

    With a MAIL-ID, read the mail with this number, whether it was read before or not. Shown mail counts as read.
    """
    if everything and number is not None:
        raise click.UsageError("Give a MAIL-ID or --all, not both.")
    if everything:
        mails = place.wait_for(agent.read_mail)
    else:
        if number is None and (waiting := agent.check_mail().previews):
            number = waiting[0].id
        mails = [] if number is None else [place.wait_for(lambda: agent.open_mail(number))]
    names = _names(place, {mail.sender for mail in mails})
    for mail in mails:
        place.screen.line(f"{words.kind_mark(mail.kind)}mail {mail.id} from {names[mail.sender]}", bold=True)
        for line in mail.body.splitlines():
            place.screen.line(f"  {line}".rstrip())  # indented, so that a body cannot look like the next mail
    if not mails:
        place.screen.line("No unread mail.")
    elif remaining := agent.record.unread:
        place.screen.line(f"({remaining} more unread)", dim=True)
    return [words.as_row(mail) for mail in mails]


@verb("filter-mail", needs=Right.LOOK)
@click.option("--from", "sender", metavar="ID", type=SENDER, help="Only mail of this agent; 'person' is a person.")
@click.option("--last", metavar="N", type=_Number, default=_LISTED, show_default=True, help="How many are listed.")
def filter_mail(place: "Place", agent: "AgentRef", sender: str | None, last: int) -> object:
    """List the agent's latest mail, read or not.

    A * marks unread mail. read-mail with a MAIL-ID shows a whole mail.
    """
    mails = agent.mails(_sender(place, sender), last)
    names = _names(place, {mail.sender for mail in mails})
    for mail in mails:
        place.screen.line(_listed(mail, names))
    if not mails:
        place.screen.line("No mail.")
    return [words.as_row(mail) for mail in mails]


@verb("delete-mail")
@click.argument("number", metavar="MAIL-ID", type=_Number)
def delete_mail(place: "Place", agent: "AgentRef", number: int) -> object:
    """Delete a mail for good.

    The number of the mail is not used again.
    """
    place.wait_for(lambda: agent.delete_mail(number))
    place.screen.line(f"mail {number} deleted")
    return words.agent_row(agent) | {"mail": number}


@verb("wait", needs=Right.LOOK)
@click.argument("seconds", type=click.FloatRange(min=0))
@click.argument("agents", metavar="[ID…]", type=AGENT, nargs=-1)
def wait(place: "Place", agent: "AgentRef", seconds: float, agents: tuple[str, ...]) -> object:
    """Wait until each of these agents has sent mail, has nothing to do, or has ended.

    Without ID: until the agent itself has unread mail. SECONDS is the longest time; 0 checks once. Ctrl-C ends the
    wait.
    """
    answers = place.wait_for(lambda: agent.wait(agents or None, seconds))
    results = {
        (asked if isinstance(asked, str) else asked.record.short): str(result) for asked, result in answers.items()
    }
    for name, result in results.items():
        place.screen.line(f"{name or words.A_PERSON}: {result}")
    if not results:
        place.screen.line("No mail came in that time.")
    return results


@verb("notify", waits=True)
@click.argument("what", type=click.Choice(["on", "off"]))
def notify(place: "Place", agent: "AgentRef", what: str) -> object:
    """Give the agent a line when it is idle and has unread mail; or stop that.

    Children that are forked later inherit the setting.
    """
    change = place.change(agent, "the setting", lambda: agent.aio.configure(notify=what == "on"), f"notify is {what}")
    return words.agent_row(agent) | {"position": change}


def _sender(place: "Place", text: str | None) -> str | None:
    """Return the uuid of a sender, or `PERSON` for a person; None for no text. Names of agents take precedence."""
    from ikigai_actors.errors import AgentNotFound
    from ikigai_actors.records.mail.mail import PERSON

    if text is None:
        return None
    try:
        return place.system.agent(text).uuid
    except AgentNotFound:
        if text in _FROM_PERSON:
            return PERSON
        raise


def _names(place: "Place", senders: Iterable[str | None]) -> Mapping[str | None, str]:
    return {
        sender: words.A_PERSON if sender is None else place.system.handle(sender).record.short for sender in senders
    }


def _listed(mail: "Mail", names: Mapping[str | None, str]) -> str:
    star = "*" if mail.read_at is None else " "
    return f"{star}{mail.id:>4}  {names[mail.sender]:<10}  {words.kind_mark(mail.kind)}{words.preview(mail.body)}"
