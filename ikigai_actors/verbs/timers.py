"""Verbs about timers: of one agent in a shell, of one or all agents for scripts."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NotRequired, TypedDict, Unpack

import click

from ikigai_actors.verbs import text as words
from ikigai_actors.verbs.arguments import TEXT, keyed
from ikigai_actors.verbs.place import ShellPlace
from ikigai_actors.verbs.rights import Callers, Right
from ikigai_actors.verbs.verb import verb

if TYPE_CHECKING:
    from ikigai_actors.records.mail.timers import Timer
    from ikigai_actors.system.handles.ref import AgentRef
    from ikigai_actors.verbs.place import Place


_WHEN = (
    click.option("--after", metavar="TIME", type=TEXT, help="When, as 90s, 10m, 2h or 3d."),
    click.option("--at", metavar="TIME", type=TEXT, help="When, as 09:00 or 2026-11-26T09:00."),
    click.option("--every", metavar="CRON|TIME", type=TEXT, help="Again and again, as '0 9 * * 1-5' or 36h."),
    click.option("--zone", metavar="ZONE", type=TEXT, help="The clocks, as Europe/Berlin; else this machine's."),
    click.option("--prompt", is_flag=True, help="As a prompt, which begins a turn; else as mail."),
    keyed,
    click.option("--cancel", metavar="N", type=click.IntRange(min=1), help="Cancel timer N."),
)


def _timed(work: Callable[..., object]) -> Callable[..., object]:
    """Add the options of a timer to a verb."""
    for option in reversed(_WHEN):
        work = option(work)
    return work


class When(TypedDict):
    """The values of the options of the commands about timers."""

    after: str | None
    at: str | None
    every: str | None
    zone: str | None
    prompt: bool
    cancel: int | None
    key: NotRequired[str | None]


@verb("timer", script="AGENT", needs=Right.PROMPT, callers=Callers.PEOPLE)
@click.argument("text", metavar="[TEXT]", type=TEXT, nargs=-1)
@_timed
def timer(place: "Place", agent: "AgentRef", text: tuple[str, ...], **when: Unpack[When]) -> object:
    """Remind an agent of something later; without TEXT its timers are listed.

    Options come before TEXT: --every "0 9 * * 1-5" --prompt look at the build. With --every and no TEXT it shows the
    times, and sets nothing.
    """
    if text or when["cancel"] is not None or any(when[name] for name in ("after", "at", "every")):
        return _set_timer(place, agent, text, when)
    return _list_timers(place, agent.timers(), one_agent=True)


@verb("timers", script="[AGENT]", needs=Right.PROMPT, callers=Callers.SCRIPTS | Callers.PROTOCOLS)
@click.argument("text", metavar="[TEXT]...", type=TEXT, nargs=-1)
@_timed
def timers(place: "Place", agent: "AgentRef | None", text: tuple[str, ...], **when: Unpack[When]) -> object:
    """Show the timers of all agents, or of an AGENT; with a TEXT remind the AGENT of it later.

    With --every and no TEXT it shows the times, and sets nothing. The process that runs the agent reminds it. Times
    that pass while no process runs it come once.
    """
    from ikigai_actors.records.mail.timers import every_timer

    if agent is None and (text or when["cancel"] is not None):
        raise click.UsageError("Say whose timer.")
    if text or when["cancel"] is not None or any(when[name] for name in ("after", "at", "every")):
        return _set_timer(place, place.system.root if agent is None else agent, text, when)
    if agent is None:
        listed = [timer for timer in place.system._store.read(every_timer) if place.reaches(timer.agent_uuid)]
    else:
        listed = [*agent.timers()]
    return _list_timers(place, listed, one_agent=False)


def _set_timer(place: "Place", agent: "AgentRef", text: tuple[str, ...], when: When) -> object:
    """Set a timer, cancel a timer, or show when a timer would fire."""
    from ikigai_actors.arguments import parse_span

    after, at, every, zone, cancel = when["after"], when["at"], when["every"], when["zone"], when["cancel"]
    if cancel is not None:
        place.wait_for(lambda: agent.cancel_timer(cancel))
        whose = "" if isinstance(place, ShellPlace) else f" of {words.named(agent)}"
        place.screen.line(f"timer {cancel}{whose} is cancelled")
        return words.agent_row(agent) | {"timer": cancel}
    if text:
        seconds = None if after is None else parse_span(after) / 1000
        said, prompts, key = " ".join(text), when["prompt"], when.get("key")
        number = place.wait_for(
            lambda: agent.remind(said, at=at, after=seconds, every=every, zone=zone, prompt=prompts, key=key)
        )
        for timer in agent.timers():
            if timer.id == number:  # else it has fired
                place.screen.line(_line(place, timer))
        return words.agent_row(agent) | {"timer": number}
    if every and not (after or at):
        times = agent.next_times(every=every, zone=zone)
        for line in words.next_lines(times):
            place.screen.line(line)
        return times
    raise click.UsageError("Say of what, after the options.")


def _list_timers(place: "Place", timers: "Sequence[Timer]", one_agent: bool) -> object:
    """Print timers; if they belong to several agents, each with the name of its agent."""
    label = words.shown_name_in(place.system)
    names = {timer.agent_uuid: label(timer.agent_uuid) for timer in timers}
    width = 0 if one_agent else max(map(len, names.values()), default=0)
    for timer in timers:
        place.screen.line(
            _line(place, timer) if one_agent else f"{names[timer.agent_uuid]:<{width}}  {_line(place, timer)}"
        )
    if not timers:
        place.screen.line("No timers.")
    return [words.timer_row(timer, names[timer.agent_uuid]) for timer in timers]


def _line(place: "Place", timer: "Timer") -> str:
    return words.timer_line(timer, None if timer.sender is None else place.system.handle(timer.sender).record.short)
