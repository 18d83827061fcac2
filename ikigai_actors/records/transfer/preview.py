"""A preview of a file of agents, for the person who decides about its import. Pure."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from ikigai_actors.records.agents.words import called

_MOST = 20
"""The most names that a line lists."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """An agent of a file, as the preview of an import shows it."""

    uuid: str
    """The uuid in the file."""
    name: str | None
    status: str
    """The status after the import, if no work waits in it."""
    open_turn: bool
    """Whether a turn of it was cut off, and could be resumed."""
    prompts: int
    """The number of unanswered prompts."""

    @property
    def waits(self) -> str:
        """Return the work that the agent would resume, in words; empty if there is none, or the agent is dead."""
        if self.status == "dead":
            return ""
        prompts = _counted(self.prompts, "prompt") if self.prompts else ""
        return " and ".join(filter(None, ("an open turn" if self.open_turn else "", prompts)))


@dataclass(frozen=True, slots=True)
class ImportPreview:
    """The contents of a file that may start work or cost something after an import."""

    agents: tuple[Arrival, ...]
    models: tuple[str, ...]
    """The models that settings in the file name."""
    tools: tuple[str, ...]
    """The tools that settings in the file name, and the calls of open turns."""
    allowing: int
    """The number of rules in the file that allow calls, which are dropped."""
    lifting: tuple[str, ...] = ()
    """The settings in the file that would lift a limit or give access to a model's service, which are dropped."""

    def lines(self, stopped: bool = False, go: bool = False) -> Iterator[str]:
        """Describe the preview for a person who imports the file with these arguments of `System.import_`."""
        living = sum(agent.status != "dead" for agent in self.agents)
        yield (
            f"The file has {_counted(len(self.agents), 'agent')}, {living:,} of them alive. "
            f"Models that its settings name: {_listed(self.models)}. Tools that it names: {_listed(self.tools)}."
        )
        if self.allowing:
            yield f"It has {_counted(self.allowing, 'rule')} that would allow calls. That does not count here."
        if self.lifting:
            yield (
                f"Its {_listed(self.lifting)} would lift limits or reach a model's service unseen. That does not count "
                "here: configure the agents yourself."
            )
        waiting = [f"{called(agent.uuid, agent.name)} ({agent.waits})" for agent in self.agents if agent.waits]
        if not waiting:
            return
        if stopped:
            how = "All of its agents come stopped"
        elif go:
            how = "They begin with their prompts as soon as a host runs them; an open turn waits for /resume"
        else:
            how = "They come stopped: the signal CONT lets them begin, --go or go=True at once"
        yield f"Work waits in {_listed(waiting)}. {how}."


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}" + ("" if number == 1 else "s")


def _listed(names: Collection[str]) -> str:
    shown = ", ".join(name if len(name) <= 80 else f"{name[:80]}…" for name in list(names)[:_MOST])
    more = len(names) - _MOST
    return (f"{shown} and {more:,} more" if more > 0 else shown) or "none"
