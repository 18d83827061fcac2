"""The place where a subcommand runs a verb: attached to the agents of a database, for one command.

The place prints on standard output; with ``--json`` only the value of the verb. With ``--wait`` the place also waits
for the answer to a prompt.
"""

import shutil
import sys
from collections.abc import Callable, Sequence
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ikigai_actors.shell.cli.exit_status import TIMED_OUT, ended_early
from ikigai_actors.shell.cli.notices import without_effect
from ikigai_actors.shell.cli.progress import show_notice
from ikigai_actors.verbs import text as words
from ikigai_actors.verbs.arguments import TEXT
from ikigai_actors.verbs.place import Printer
from ikigai_actors.verbs.text.harmless import as_json, harmless
from ikigai_actors.verbs.unattended import Unattended
from ikigai_actors.verbs.verb import ACTS, Verb, VerbGroup

if TYPE_CHECKING:
    from ikigai_actors.actors.futures import Future
    from ikigai_actors.attachments import Attachable
    from ikigai_actors.providers.base import Reply
    from ikigai_actors.reach.following import CommitFeed
    from ikigai_actors.system.handles.commands.forks import ForkOptions
    from ikigai_actors.system.handles.ref import AgentRef, System
    from ikigai_actors.system.remote.turn import RemoteTurn


T = TypeVar("T")


class StandardOutput(Printer):
    """Prints the lines of a verb; prints nothing if only its value is needed."""

    def __init__(self, is_silent: bool) -> None:
        self._is_silent = is_silent

    def line(self, text: str = "", *, bold: bool = False, dim: bool = False) -> None:
        if not self._is_silent:
            click.echo(harmless(text))

    def block(self, text: str) -> None:
        """Print a text of a person or a model: unchanged for a program, harmless for a terminal."""
        if not self._is_silent:
            click.echo(harmless(text) if sys.stdout.isatty() else text)

    def whole(self, text: str) -> None:
        """Print a text byte for byte for a program, harmless for a terminal."""
        if sys.stdout.isatty():
            self.block(text)
        elif not self._is_silent:
            click.echo(text.encode(), nl=False)

    def error(self, text: str) -> None:
        show_notice(text)

    @property
    def columns(self) -> int:
        return shutil.get_terminal_size().columns


class OneCommand(Unattended):
    """The place in which one subcommand runs a verb."""

    has_input = True

    def __init__(self, system: "System", screen: Printer, timeout: float | None, awaits_answer: bool) -> None:
        """Make the place; ``awaits_answer`` is true if the command waits for the answer to a prompt."""
        super().__init__(system, screen, timeout)
        self._until = None if timeout is None else monotonic() + timeout
        self._awaits_answer = awaits_answer
        self.status = 0
        """The exit status."""

    def spelled(self, verb: str, agent: "AgentRef", rest: str = "") -> str:
        return f"ikigai {verb} {agent.record.short} {rest}".rstrip()

    def make_child(
        self, agent: "AgentRef", prompt: str | None, name: str | None, how: "ForkOptions", follow: bool | None = None
    ) -> object:
        from ikigai_actors.reach.following import commits_of

        if not self._awaits_answer:
            return super().make_child(agent, prompt, name, how)
        if prompt is None:
            raise click.UsageError("--wait is for a PROMPT.")
        child = self.outcome(lambda: agent.aio.fork(prompt, name=name, **how)).sync
        row, client = words.agent_row(child) | {"parent_uuid": agent.uuid}, self._client()
        with commits_of(client, [child.uuid]) as feed:
            answer = self._answer(
                child, feed, client.first_turn(child.uuid), f"{child.record.short} is there, and goes on."
            )
        return row | answer

    def change(self, agent: "AgentRef", what: str, ask: "Callable[[], Future[T]]", text: str | Callable[[T], str]) -> T:
        if self._awaits_answer:
            raise click.UsageError("--wait is for one child, not for --count.")
        return super().change(agent, what, ask, text)

    def leave_prompt(
        self, agent: "AgentRef", text: str, attach: "Sequence[Attachable]", key: str | None = None
    ) -> object:
        from ikigai_actors.reach.following import commits_of, prompted_turn

        if not self._awaits_answer:
            return super().leave_prompt(agent, text, attach, key)
        client, record = self._client(), agent.record
        with commits_of(client, [agent.uuid]) as feed:
            mail = self._store_prompt(client, record, text, attach, key)
            self._note_delay(record, is_hosted=feed.host is not None)
            if_late = f"Prompt {mail} of {record.short} stays."
            if key is not None:
                answer = self._shown(agent, self._awaited(agent.aio.prompt(text, attach=attach, key=key)), if_late)
            else:
                answer = self._answer(agent, feed, prompted_turn(agent.uuid, mail), if_late)
        return words.agent_row(agent) | {"mail": mail} | answer

    def leave_word(self, agent: "AgentRef", text: str, *, now: bool, key: str | None = None) -> object:
        if self._awaits_answer:
            raise click.UsageError("--wait is for a prompt; --steer goes into a turn that somebody else has begun.")
        return super().leave_word(agent, text, now=now, key=key)

    def _answer(self, agent: "AgentRef", feed: "CommitFeed", turn: "RemoteTurn", if_late: str) -> dict[str, Any]:
        """Wait for the end of a turn, print the answer, and return it as JSON data; empty after a timeout."""
        record = agent.record
        end = feed.await_turn(turn, self._left, lambda: self._note_delay(record, is_hosted=False))
        if isinstance(end, Exception):
            raise end
        return self._shown(agent, end, if_late)

    @property
    def _left(self) -> float | None:
        """Return the seconds until the timeout; None without a timeout."""
        return None if self._until is None else max(0.0, self._until - monotonic())

    def _awaited(self, future: "Future[Reply]") -> "Reply | None":
        """Wait for a reply, and return it; None after a timeout."""
        from ikigai_actors.actors.futures import TimedOut

        try:
            return future.get(timeout=self._left)
        except TimedOut:
            return None

    def _shown(self, agent: "AgentRef", end: "Reply | None", if_late: str) -> dict[str, Any]:
        """Print an answer, and return it as JSON data; empty if it did not come in time."""
        if end is None:
            why = self._client().why_late(agent.uuid)
            self.screen.error(f"No answer within {self._timeout:g} s. {if_late} {why}".rstrip())
            self.status = TIMED_OUT
            return {}
        self.screen.block(end.text)
        if note := words.stop_note(end.stop_reason, not end.text.strip()):
            self.screen.error(note)
        return {"text": end.text, "stop_reason": end.stop_reason}


def subcommand(verb: Verb | VerbGroup) -> click.Command:
    """Return the command by which a script calls a verb."""
    if isinstance(verb, VerbGroup):
        return click.Group(verb.name, {each.name: subcommand(each) for each in verb.verbs}, help=verb.help)

    @click.pass_context
    def run_verb(
        context: click.Context,
        /,
        as_value: bool,
        acted_on: str | None = None,
        wait: bool = False,
        timeout: float | None = None,
        **arguments: object,
    ) -> None:
        from ikigai_actors.system.attached import AttachedSystem

        if verb.opens_turn and not verb.waits and timeout is not None and not wait:
            raise click.UsageError("--timeout is for --wait.")
        with ended_early(context), AttachedSystem.open(context.obj.database) as system:
            place = OneCommand(system, StandardOutput(is_silent=as_value), timeout, awaits_answer=wait)
            if verb.opens_turn:
                for line in without_effect(context.obj):
                    click.echo(line, err=True)
            agent = None if acted_on is None else system.agent(acted_on)
            value = verb.work(place, *([agent] if verb.needs_agent else []), **arguments)
        if as_value:
            click.echo(as_json(words.as_value(value)))
        context.exit(place.status)

    params = verb.script.among(verb.params_of_script(), TEXT, ACTS)
    if verb.opens_turn:
        params.append(
            click.Option(["--wait"], is_flag=True, help="Wait for the end of its turn, and print the answer.")
        )
    if verb.waits or verb.opens_turn:
        params.append(_timeout(verb.timeout))
    params.append(click.Option(["--json", "as_value"], is_flag=True, help="The result as JSON."))
    settings = {"ignore_unknown_options": True} if verb.is_free else {}
    return click.Command(verb.name, settings, run_verb, params, help=verb.help)


def _timeout(default: float | None) -> click.Option:
    description, seconds = "Wait no longer; then exit status 3.", click.FloatRange(min=0)
    return click.Option(
        ["--timeout"], metavar="SECONDS", type=seconds, default=default, show_default=True, help=description
    )
