"""The verbs ``skills`` and ``skill``, about skills and the instructions of projects."""

from typing import TYPE_CHECKING

import click

from ikigai_actors.text import binary_size
from ikigai_actors.verbs import text as words
from ikigai_actors.verbs.arguments import TEXT
from ikigai_actors.verbs.rights import Callers
from ikigai_actors.verbs.text.harmless import one_line
from ikigai_actors.verbs.verb import verb

if TYPE_CHECKING:
    from pathlib import Path

    from ikigai_actors.system.handles.ref import AgentRef
    from ikigai_actors.verbs.place import Place, ShellPlace


@verb(
    "skills",
    slash="--of",
    waits=True,
    callers=Callers.PEOPLE | Callers.SCRIPTS,  # it reads the disk of this machine
)
@click.argument("what", metavar="[use|off|look]", type=click.Choice(["use", "off", "look"]), required=False)
@click.argument("names", metavar="[NAME]...", type=TEXT, nargs=-1)
@click.option("--unlisted", is_flag=True, help="With use: the model has to find it, or to know its name.")
@click.option("--tools", "seen", type=TEXT, metavar="DIGEST", help="With use: allow the tools of the skill so listed.")
def skills(
    place: "Place",
    agent: "AgentRef",
    what: str | None,
    names: tuple[str, ...],
    unlisted: bool = False,
    seen: str | None = None,
) -> object:
    """List the skills of an agent, those on this disk and in documents, or decide which its model may load.

    use NAME pins the present files of a skill, also of a skill that has changed. off NAME refuses a skill; the question
    about it comes again only after its files change. look NAME shows the text of a skill. The NAME instructions means
    the AGENTS.md or CLAUDE.md of the directory and of the user, which the model reads after its system prompt. Children
    that are forked later inherit the decisions. use --tools DIGEST NAME also allows the calls that the list shows for
    the skill. These rules hold only where exactly this skill is in use.
    """
    if seen is not None and what != "use":
        raise click.UsageError("Say which: use --tools DIGEST NAME.")
    if what is None:
        return _list_skills(place, agent)
    if not names:
        raise click.UsageError(f"Say which: {what} NAME.")
    if what == "look":
        return _look(place, names)
    from ikigai_actors.system.skills import INSTRUCTIONS_NAME

    off = what == "off"
    if chosen := [name for name in names if name != INSTRUCTIONS_NAME]:
        tools = [] if seen is None else _seen_skill(place, chosen, seen)
        news = f"{', '.join(chosen)}: {'refused' if off else 'in use'}{', with its tools' if tools else ''}"
        place.change(
            agent,
            "the skills",
            lambda: agent.aio.use_skills(only=chosen, off=off, unlisted=unlisted, tools_of=tools),
            news,
        )
    if INSTRUCTIONS_NAME in names:
        there, user = _instructions(place)
        news = f"instructions: {'refused' if off else 'in use'}"
        place.change(agent, "the instructions", lambda: agent.aio.use_instructions(there, user=user, off=off), news)
    return words.agent_row(agent) | {"skills": list(names), "off": off}


@verb("skill", slash="--of", is_free=True, callers=Callers.PEOPLE)
@click.argument("name", metavar="NAME", type=TEXT)
@click.argument("text", metavar="[TEXT]...", type=TEXT, nargs=-1)
def skill(shell: "ShellPlace", agent: "AgentRef", name: str, text: tuple[str, ...]) -> None:
    """Prompt an agent with the text of one of its skills, even if its model may not load the skill by itself.

    Without a TEXT the agent does what the skill says. /skills lists the skills, and /skills use NAME gives the agent a
    skill.
    """
    said = " ".join(text) or f"Do what the skill {name} says."
    shell.wait_for(lambda: agent.prompt(said, skills=[name]))
    shell.screen.line(f"{words.named(agent)} has the text of {one_line(name)} with: {one_line(said)}", dim=True)


def _list_skills(place: "Place", agent: "AgentRef") -> object:
    from ikigai_actors.system.skills import INSTRUCTIONS_NAME, skills_listed
    from ikigai_actors.tools.skills.allowed_tools import allowed_tools
    from ikigai_actors.tools.skills.digests import first_digits

    settings = agent.context().settings
    skills = place.system.skills.find()
    rows = skills_listed(settings, skills)
    there, user = _instructions(place)
    taken = settings.get("instructions") or ()
    for instruction in taken:
        use = "refused" if instruction.get("off") else "in use"
        place.screen.line(f"{INSTRUCTIONS_NAME}   {use}   {one_line(instruction['path'])}")
    if not taken and (there is not None or user):
        place.screen.line(f"{INSTRUCTIONS_NAME}   new   of {'the directory' if there is not None else 'the user'}")
    for row in rows:
        asks = f"   asks to use {one_line(', '.join(row.tools))}" if row.tools else ""
        size = f"{row.files} files, {binary_size(row.size)}"
        place.screen.line(f"{one_line(row.name)}   {row.state}   {size}{asks}", bold=row.state in ("new", "changed"))
        place.screen.line(f"    {one_line(row.description)}", dim=True)
        if row.tools:
            use = f"use --tools {first_digits(row.sha256)} {row.name}"
            place.screen.line(f"    {one_line(f'{use} {allowed_tools(row.tools)}')}", dim=True)
    for trouble in skills.troubles:
        place.screen.line(one_line(trouble), dim=True)
    if not rows and not taken and there is None and not user:
        place.screen.line(
            "No skills. ikigai looks in .claude/skills and .agents/skills, here and at home, and in documents."
        )
    return [words.as_row(row) for row in rows]


def _look(place: "Place", names: tuple[str, ...]) -> object:
    from ikigai_actors.errors import BadInput
    from ikigai_actors.tools.skills.front_matter import SKILL_FILE

    by_name = {skill.name: skill for skill in place.system.skills.find().skills}
    if missing := [name for name in names if name not in by_name]:
        raise BadInput(f"There is no skill {', '.join(missing)} here. Skills: {', '.join(by_name) or 'none'}.")
    texts = {}
    for name in names:
        [text] = [file.data.decode(errors="replace") for file in by_name[name].files if file.name == SKILL_FILE]
        place.screen.line(by_name[name].source, bold=True)
        place.screen.block(text)
        texts[name] = text
    return texts


def _seen_skill(place: "Place", names: list[str], digest: str) -> list[str]:
    """Return the whole digest of a skill with one of these names and with the digest that a person has seen."""
    from ikigai_actors.errors import BadInput
    from ikigai_actors.tools.skills.digests import first_digits

    digests = [skill.sha256 for skill in place.system.skills.find().skills if skill.name in names]
    whole = [known for known in digests if known.startswith(digest) and digest.startswith(first_digits(known))]
    if not whole:
        now = ", ".join(map(first_digits, digests)) or "nowhere"
        raise BadInput(f"{', '.join(names)} does not have the digest {digest}, but is {now}. Look at it in /skills.")
    return whole


def _directory(place: "Place") -> "Path":
    from pathlib import Path

    return place.system._workspace or Path.cwd()


def _instructions(place: "Place") -> "tuple[Path | None, bool]":
    """Return the directory if it has instructions, else None; and whether the user has instructions."""
    from pathlib import Path

    from ikigai_actors.tools.skills.instructions import USER_PLACES, has_instructions

    there = _directory(place)
    user = any(has_instructions(Path.home() / name) for name in USER_PLACES)
    return (there if has_instructions(there) else None), user
