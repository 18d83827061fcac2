"""The slash command about timers."""

import click

from ikigai_actors.arguments import parse_span
from ikigai_actors.records.mail.timers import Timer
from ikigai_actors.shell.text.timers import next_lines, timer_line
from ikigai_actors.shell.verbs.arguments import TEXT
from ikigai_actors.shell.verbs.place import ShellPlace


@click.command("/timer")
@click.argument("text", metavar="[TEXT]", type=TEXT, nargs=-1)
@click.option("--after", metavar="TIME", type=TEXT, help="When, as 90s, 10m, 2h or 3d.")
@click.option("--at", metavar="TIME", type=TEXT, help="When, as 09:00 or 2026-11-26T09:00.")
@click.option("--every", metavar="CRON|TIME", type=TEXT, help="Again and again, as '0 9 * * 1-5' or 36h.")
@click.option("--zone", metavar="ZONE", type=TEXT, help="Whose clocks are meant, as Europe/Berlin.")
@click.option("--prompt", is_flag=True, help="As a prompt, which begins a turn; else as mail.")
@click.option("--cancel", metavar="N", type=click.IntRange(min=1), help="Cancel timer N.")
@click.pass_obj
def timer(
    shell: ShellPlace,
    /,
    text: tuple[str, ...],
    after: str | None,
    at: str | None,
    every: str | None,
    zone: str | None,
    prompt: bool,
    cancel: int | None,
) -> None:
    """Remind the current agent of something later; without TEXT its timers are listed.

    Options come before TEXT: /timer --every "0 9 * * 1-5" --prompt look at the build. With --every and no TEXT it is
    shown when that would be, and nothing is set.
    """
    agent = shell.current
    if cancel is not None:
        shell.wait_for(lambda: agent.cancel_timer(cancel))
        shell.screen.line(f"timer {cancel} is cancelled")
    elif text:
        seconds = None if after is None else parse_span(after) / 1000
        number = shell.wait_for(
            lambda: agent.remind(" ".join(text), at=at, after=seconds, every=every, zone=zone, prompt=prompt)
        )
        for one in agent.timers():
            if one.id == number:  # else it has fired
                shell.screen.line(_line(shell, one))
    elif every and not (after or at):
        for line in next_lines(agent.next_times(every=every, zone=zone)):
            shell.screen.line(line)
    elif after or at or every:
        raise click.UsageError("Say of what, behind the options.")
    else:
        timers = agent.timers()
        for one in timers:
            shell.screen.line(_line(shell, one))
        if not timers:
            shell.screen.line("No timers.")


COMMANDS = (timer,)


def _line(shell: ShellPlace, one: Timer) -> str:
    return timer_line(one, None if one.sender is None else shell.system.handle(one.sender).record.short)
