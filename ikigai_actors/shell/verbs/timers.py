"""Verbs about timers: of one agent in a shell, of one or all for scripts."""

from typing import TYPE_CHECKING

import click

from ikigai_actors.shell import text as words
from ikigai_actors.shell.verbs.arguments import TEXT
from ikigai_actors.shell.verbs.verb import verb

if TYPE_CHECKING:
    from ikigai_actors.records.mail.timers import Timer
    from ikigai_actors.shell.verbs.place import Place
    from ikigai_actors.system.handles.ref import AgentRef


@verb("timer")
@click.argument("text", metavar="[TEXT]", type=TEXT, nargs=-1)
@click.option("--after", metavar="TIME", type=TEXT, help="When, as 90s, 10m, 2h or 3d.")
@click.option("--at", metavar="TIME", type=TEXT, help="When, as 09:00 or 2026-11-26T09:00.")
@click.option("--every", metavar="CRON|TIME", type=TEXT, help="Again and again, as '0 9 * * 1-5' or 36h.")
@click.option("--zone", metavar="ZONE", type=TEXT, help="The clocks, as Europe/Berlin; else this machine's.")
@click.option("--prompt", is_flag=True, help="As a prompt, which begins a turn; else as mail.")
@click.option("--cancel", metavar="N", type=click.IntRange(min=1), help="Cancel timer N.")
def timer(
    place: "Place",
    agent: "AgentRef",
    text: tuple[str, ...],
    after: str | None,
    at: str | None,
    every: str | None,
    zone: str | None,
    prompt: bool,
    cancel: int | None,
) -> object:
    """Remind an agent of something later; without TEXT its timers are listed.

    Options come before TEXT: --every "0 9 * * 1-5" --prompt look at the build. With --every and no TEXT it shows the
    times, and sets nothing.
    """
    from ikigai_actors.arguments import parse_span

    if cancel is not None:
        place.wait_for(lambda: agent.cancel_timer(cancel))
        place.screen.line(f"timer {cancel} is cancelled")
        return words.agent_row(agent) | {"timer": cancel}
    if text:
        seconds = None if after is None else parse_span(after) / 1000
        number = place.wait_for(
            lambda: agent.remind(" ".join(text), at=at, after=seconds, every=every, zone=zone, prompt=prompt)
        )
        for one in agent.timers():
            if one.id == number:  # else it has fired
                place.screen.line(_line(place, one))
        return words.agent_row(agent) | {"timer": number}
    if every and not (after or at):
        times = agent.next_times(every=every, zone=zone)
        for line in words.next_lines(times):
            place.screen.line(line)
        return times
    if after or at or every:
        raise click.UsageError("Say of what, after the options.")
    timers = agent.timers()
    for one in timers:
        place.screen.line(_line(place, one))
    if not timers:
        place.screen.line("No timers.")
    return [words.timer_row(one, words.named(agent)) for one in timers]


def _line(place: "Place", one: "Timer") -> str:
    return words.timer_line(one, None if one.sender is None else place.system.handle(one.sender).record.short)
