"""The slash commands about mail. A person sends, reads and deletes as the current agent."""

from collections.abc import Iterable, Mapping

import click

from ikigai_actors.arguments import parse_span
from ikigai_actors.errors import AgentNotFound
from ikigai_actors.records.lives.membership import group_in
from ikigai_actors.records.mail.mail import A_PERSON, PERSON, Mail, kind_mark, preview
from ikigai_actors.shell.text.naming import named
from ikigai_actors.shell.text.timers import timer_line
from ikigai_actors.shell.verbs.arguments import AGENT, SENDER, TEXT
from ikigai_actors.shell.verbs.place import ShellPlace

_FROM_PERSON = ("person", "nobody")
"""What ``--from`` takes for mail of a person; the latter is what it was called before."""

_LISTED = 20
"""How many mails a list shows by default."""

_Number = click.IntRange(min=1)


@click.command("/send")
@click.option("--after", metavar="TIME", type=TEXT, help="When, as 90s, 10m, 2h or 3d; else now.")
@click.option("--at", metavar="TIME", type=TEXT, help="When, as 09:00 or 2026-11-26T09:00.")
@click.option("--zone", metavar="ZONE", type=TEXT, help="Whose clocks --at means, as Europe/Berlin.")
@click.argument("agent", metavar="ID", type=AGENT)
@click.argument("text", type=TEXT, nargs=-1, required=True)
@click.pass_obj
def send(
    shell: ShellPlace, /, agent: str, text: tuple[str, ...], after: str | None, at: str | None, zone: str | None
) -> None:
    """Send a mail as the current agent, now or later.

    ID is a name, two words, or 4 or more characters of a uuid; or group:NAME, which is all members of that group. The
    mail waits until its recipient reads it. Later: /send --after 10m buyer The fair begins.
    """
    sender, body = shell.current, " ".join(text)
    if zone is not None and at is None:
        raise click.UsageError("--zone is for --at.")
    if after is not None or at is not None:
        seconds = None if after is None else parse_span(after) / 1000
        number = shell.wait_for(lambda: sender.send(agent, body, at=at, after=seconds, zone=zone))
        for one in shell.system.agent(agent).timers():
            if one.id == number:  # else it has fired
                shell.screen.line(timer_line(one, sender.record.short))
        return
    if (group := group_in(agent)) is not None:
        count = shell.wait_for(lambda: sender.send(agent, body))
        shell.screen.line(f"mail to {count} members of {group}")
        return
    recipient = shell.system.agent(agent)
    number = shell.wait_for(lambda: sender.send(recipient, body))
    shell.screen.line(f"mail {number} to {named(recipient)}")


@click.command("/check-mail")
@click.pass_obj
def check_mail(shell: ShellPlace) -> None:
    """Show how much mail the agent has not read.

    And of whom, and how the oldest begin. Nothing is marked as read.
    """
    box = shell.current.check_mail()
    names = _names(shell, box.senders)
    shell.screen.line(box.summary(names))
    for each in box.previews:
        shell.screen.line(f"{each.id:>5}  {names[each.sender]:<10}  {kind_mark(each.kind)}{each.text}")
    if box.more:
        shell.screen.line(box.more, dim=True)


@click.command("/read-mail")
@click.argument("number", metavar="[MAIL-ID]", type=_Number, required=False)
@click.option("--all", "everything", is_flag=True, help="Read all that is unread.")
@click.pass_obj
def read_mail(shell: ShellPlace, number: int | None, everything: bool) -> None:
    """Read the oldest unread mail, all of it, or one.

    With a MAIL-ID that mail, read before or not. What is shown counts as read.
    """
    if everything and number is not None:
        raise click.UsageError("Give a MAIL-ID or --all, not both.")
    agent = shell.current
    if everything:
        mails = shell.wait_for(agent.read_mail)
    else:
        if number is None and (waiting := agent.check_mail().previews):
            number = waiting[0].id
        mails = [] if number is None else [shell.wait_for(lambda: agent.open_mail(number))]
    names = _names(shell, {mail.sender for mail in mails})
    for mail in mails:
        shell.screen.line(f"{kind_mark(mail.kind)}mail {mail.id} from {names[mail.sender]}", bold=True)
        for line in mail.body.splitlines():
            shell.screen.line(f"  {line}".rstrip())  # indented, so that a body cannot look like the next mail
    if not mails:
        shell.screen.line("No unread mail.")
    elif remaining := agent.record.unread:
        shell.screen.line(f"({remaining} more unread)", dim=True)


@click.command("/filter-mail")
@click.option("--from", "sender", metavar="ID", type=SENDER, help="Only mail of this agent; 'person' is a person.")
@click.option("--last", metavar="N", type=_Number, default=_LISTED, show_default=True, help="How many are listed.")
@click.pass_obj
def filter_mail(shell: ShellPlace, sender: str | None, last: int) -> None:
    """List the agent's latest mail, read or not.

    A * stands at what is unread. /read-mail MAIL-ID shows a whole one.
    """
    mails = shell.current.mails(_sender(shell, sender), last)
    names = _names(shell, {mail.sender for mail in mails})
    for mail in mails:
        shell.screen.line(_listed(mail, names))
    if not mails:
        shell.screen.line("No mail.")


@click.command("/delete-mail")
@click.argument("number", metavar="MAIL-ID", type=_Number)
@click.pass_obj
def delete_mail(shell: ShellPlace, number: int) -> None:
    """Delete a mail for good.

    Its number is not given again.
    """
    agent = shell.current
    shell.wait_for(lambda: agent.delete_mail(number))
    shell.screen.line(f"mail {number} deleted")


@click.command("/wait")
@click.argument("seconds", type=click.FloatRange(min=0))
@click.argument("agents", metavar="[ID…]", type=AGENT, nargs=-1)
@click.pass_obj
def wait(shell: ShellPlace, seconds: float, agents: tuple[str, ...]) -> None:
    """Wait until each of these agents has sent mail, has nothing to do, or has ended.

    Without ID: until the current agent has unread mail. SECONDS is how long at most; 0 looks once. Ctrl-C ends it.
    """
    agent = shell.current
    answers = shell.wait_for(lambda: agent.wait(agents or None, seconds))
    for one, found in answers.items():
        shell.screen.line(f"{(one if isinstance(one, str) else one.record.short) or A_PERSON}: {found}")
    if not answers:
        shell.screen.line("No mail came in that time.")


@click.command("/notify")
@click.argument("what", type=click.Choice(["on", "off"]))
@click.pass_obj
def notify(shell: ShellPlace, what: str) -> None:
    """Have the agent told, in a line, when it is idle and has unread mail; or not any more.

    The children that it forks from now on inherit it.
    """
    ask = shell.current.aio
    shell.change(shell.current, "the setting", lambda: ask.configure(notify=what == "on"), f"notify is {what}")


COMMANDS = (check_mail, delete_mail, filter_mail, notify, read_mail, send, wait)


def _sender(shell: ShellPlace, text: str | None) -> str | None:
    """The uuid of a sender. An agent with one of the names for a person comes first."""
    if text is None:
        return None
    try:
        return shell.system.agent(text).uuid
    except AgentNotFound:
        if text in _FROM_PERSON:
            return PERSON
        raise


def _names(shell: ShellPlace, senders: Iterable[str | None]) -> Mapping[str | None, str]:
    return {one: A_PERSON if one is None else shell.system.handle(one).record.short for one in senders}


def _listed(mail: Mail, names: Mapping[str | None, str]) -> str:
    star = "*" if mail.read_at is None else " "
    return f"{star}{mail.id:>4}  {names[mail.sender]:<10}  {kind_mark(mail.kind)}{preview(mail.body)}"
