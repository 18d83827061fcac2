"""Verbs about branches of a history: prompts, forks, diffs and merges."""

from typing import TYPE_CHECKING

import click

from ikigai_actors.errors import BadInput
from ikigai_actors.verbs import text as words
from ikigai_actors.verbs.arguments import AGENT, POSITION, TEXT, keyed
from ikigai_actors.verbs.rights import Callers, Right
from ikigai_actors.verbs.verb import LocalOption, ShellOption, verb

if TYPE_CHECKING:
    from ikigai_actors.attachments import Attachable
    from ikigai_actors.system.handles.commands.forks import ForkOptions
    from ikigai_actors.system.handles.outcomes import Merged
    from ikigai_actors.system.handles.ref import AgentRef
    from ikigai_actors.verbs.place import Place, ScriptPlace

_WAYS = ("result", "summary", "pick")
"""The ways of a merge, as `ikigai_actors.agent.turn.merging` has it (held by a test)."""


@verb("fork", waits=True, opens_turn=True, needs=Right.PROMPT)
@click.argument("prompt", type=TEXT, nargs=-1)
@click.option("--name", type=TEXT, help="A name for the child, unique among the living.")
@click.option("--model", metavar="PROVIDER:MODEL", type=TEXT, help="Its model; else the one of the agent.")
@click.option("--system", metavar="TEXT", type=TEXT, help="Its system prompt; else the one of the agent.")
@click.option("--kind", metavar="NAME", type=TEXT, help="One of the agent's kinds; /kinds lists them.")
@click.option(
    "--restart",
    type=TEXT,
    default="transient",
    show_default=True,
    help="When it is restarted: permanent, transient or temporary.",
)
@click.option(
    "--on-orphan",
    metavar="POLICY",
    type=TEXT,
    help="Its children when it dies: reparent, cascade, stop or continue; else as here.",
)
@click.option("--at", metavar="N", type=POSITION, help="The last message that it inherits; history shows them.")
@click.option("--budget", metavar="usd=1,…", type=TEXT, help="What it and all below it may spend.")
@click.option(
    "--count",
    metavar="N",
    type=click.IntRange(min=1),
    help="This many children, all or none, each with the same PROMPT.",
)
@keyed
@click.option(
    "--follow/--no-follow", cls=ShellOption, default=None, help="Go to the child, or stay.  [as ikigai was started]"
)
def fork(
    place: "Place",
    agent: "AgentRef",
    prompt: tuple[str, ...],
    name: str | None,
    model: str | None,
    system: str | None,
    kind: str | None,
    restart: str,
    on_orphan: str | None,
    at: int | None,
    budget: str | None,
    count: int | None,
    key: str | None = None,
    follow: bool | None = None,
) -> object:
    """Fork an agent: make a child that remembers all that was said before.

    With a PROMPT the child answers at once. With --at it remembers the history up to that message; it has the present
    settings of the agent all the same. A shell goes to the child.

    The process that runs the agent makes the child. A busy agent forks at its next step boundary: when its model has
    replied, and the tools of that reply are done. Without such a process nothing happens, now or later.
    """
    from ikigai_actors.records.budgets.budget import parse_budget

    said = " ".join(prompt) if prompt else None
    how: ForkOptions = {"model": model, "system": system, "restart": restart, "on_orphan": on_orphan, "at": at}
    how["key"], how["kind"] = key, kind
    how["budget"] = None if budget is None else parse_budget(budget)
    if count is None:
        return place.make_child(agent, said, name, how, follow)
    if name is not None:
        raise click.UsageError("--name is for one child, not for --count.")
    made = place.change(
        agent,
        "the forks",
        lambda: agent.aio.fork(said, count=count, **how),
        lambda children: "\n".join(child.uuid for child in children),
    )
    return [{"agent_uuid": child.uuid, "parent_uuid": agent.uuid} for child in made or ()]


@verb("prompt", opens_turn=True, needs=Right.PROMPT, callers=Callers.SCRIPTS | Callers.PROTOCOLS)
@click.argument("text", type=TEXT, nargs=-1, required=True)
@click.option(
    "--attach",
    cls=LocalOption,
    multiple=True,
    metavar="FILE",
    type=TEXT,
    help="A picture, PDF or sound for the model; may be repeated.",
)
@click.option(
    "--files",
    multiple=True,
    metavar="SHA256",
    type=TEXT,
    help="A file that was uploaded to the network API, by its hash; may be repeated.",
)
@click.option("--steer", is_flag=True, help="Say it into the turn in progress, which reads it before its next step.")
@click.option("--now", is_flag=True, help="With --steer: cut the step in progress off.")
@keyed
def prompt(
    place: "ScriptPlace",
    agent: "AgentRef",
    text: tuple[str, ...],
    steer: bool,
    now: bool,
    files: tuple[str, ...] = (),
    attach: tuple[str, ...] = (),
    key: str | None = None,
) -> object:
    """Prompt an agent.

    The prompt is in the database when this returns. The process that runs the agents takes it up when the agent is
    idle: now, or when it is started. With --wait the exit status is 1 when the turn ended without an answer.
    """
    if not steer and not now:
        attachables: list[Attachable] = [*attach, *map(place.uploaded, files)]
        return place.leave_prompt(agent, " ".join(text), attachables, key)
    if attach or files or not steer:
        raise click.UsageError("--now is for --steer." if now and not steer else "Nothing is attached with --steer.")
    return place.leave_word(agent, " ".join(text), now=now, key=key)


@verb("resume", waits=True, needs=Right.PROMPT)
def resume(place: "Place", agent: "AgentRef") -> object:
    """Go on with the latest turn: one that a crash cut off, or that ended with an error.

    The history is sent to the model again, with all that the turn had done.
    """
    return words.agent_row(agent) | {"resumed": place.resume_turn(agent)}


@verb("diff", needs=Right.LOOK)
@click.argument("other", metavar="ID", type=AGENT)
def diff(place: "Place", agent: "AgentRef", other: str) -> object:
    """Show where the histories of two agents part, and the later messages of each.

    ID is a name, two words, or 4 or more characters of a uuid; of the dead, too. The histories are side by side, step
    by step, this agent on the left; in a narrow terminal, and in line mode at a terminal, one below the other.
    """
    diff = agent.diff(other)
    screen, called = place.screen, words.shown_name_in(place.system)
    for line in words.diff_page(diff, screen.columns, called, beside=not screen.in_words):
        place.screen.line(line)
    tails = {
        name: words.as_row(tail) | {"messages": [*map(words.as_row, tail.messages)]}
        for name, tail in (("a", diff.a), ("b", diff.b))
    }
    return words.as_row(diff) | tails


@verb("merge", waits=True, needs=Right.PROMPT)
@click.argument("child", metavar="ID", type=AGENT)
@click.option("--how", type=click.Choice(_WAYS), help="What to take in: its result, a summary, or a selection.")
@click.option(
    "--pick", "positions", metavar="N", multiple=True, type=POSITION, help="A message of it; may be repeated."
)
@click.option("--files", is_flag=True, help="Take over what it has changed in its files, and nothing that it said.")
@keyed
def merge_branch(
    place: "Place",
    agent: "AgentRef",
    child: str,
    how: str | None,
    positions: tuple[int, ...],
    files: bool,
    key: str | None = None,
) -> object:
    """Take in what an agent below this one has said, as a quotation that the model sees from then on.

    ID is a name, two words, or 4 or more characters of a uuid; of the dead, too. By default it takes in the result with
    which that agent has exited, or else its latest answer; with --how summary, what its model writes about its work;
    with --pick, its messages at these positions, which diff shows. Each of its states is merged once. Documents are
    shared, so those that it or others have written meanwhile are only named.

    With --files, of a workspace whose files fork: its changes go into the files of the agent, or those of the agent
    itself into the directory, when ID is the agent. Files that both have changed are named, and nothing is merged.
    """
    branch, chosen = place.system.agent(child), how or ("pick" if positions else "result")
    if files:
        if how or positions or key:
            raise BadInput("Leave out --files, or --how, --pick and --key: it is files or words that are merged.")
        changed = place.change(agent, "the merge", lambda: agent.aio.merge_files(branch), _merged_files)
        return words.agent_row(agent) | {"files": changed}

    def what_came(done: "Merged") -> str:
        documents = [words.merged_document(document.as_data()) for document in done.documents]
        shows = place.spelled("history", agent, "1")
        return "\n".join([f"merged {words.named(branch)}: {shows} shows it", *documents])

    done = place.change(agent, "the merge", lambda: agent.aio.merge(branch, chosen, positions, key=key), what_came)
    if done is None:
        return words.agent_row(agent)
    return (
        words.agent_row(agent) | words.as_row(done) | {"documents": [document.as_data() for document in done.documents]}
    )


def _merged_files(paths: list[str]) -> str:
    return f"merged {', '.join(paths)}" if paths else "nothing has changed since then"
