"""Files of kinds of agents, in the form of Claude Code's agents: Markdown with a front matter. It runs nothing.

    ---
    name: reviewer
    description: Reviews a change. Use it before a merge.
    tools: Read, Grep
    ---
    You review code. Name the worst fault first.

Further keys are ``disallowedTools``, ``model`` as ``provider:model``, ``skills``, ``maxTurns``, and ours: ``budget``,
``output`` (a JSON schema), ``history: inherit``, ``restart``. Other keys are left out, with a notice.
"""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ikigai_actors.errors import BadInput
from ikigai_actors.records.budgets.budget import parse_budget
from ikigai_actors.text import storable
from ikigai_actors.tools.hooks.command_hooks import own_name
from ikigai_actors.tools.skills.digests import digest_of_skill
from ikigai_actors.tools.skills.folders import LONGEST_DESCRIPTION
from ikigai_actors.tools.skills.front_matter import FrontMatter, read_front_matter
from supervisors.children import RestartType

KIND_PLACES = (".claude/agents", ".agents/agents")
"""Directories with kinds, below a home directory or a workspace. Later ones take precedence over earlier ones."""
KIND_GROUP = "ikigai_actors.kinds"
"""The group of entry points by which a package offers a directory of kinds."""
LONGEST_SYSTEM = 65_536
LONGEST_SCHEMA = 8_192
"""The most characters of a kind's system prompt, the first, and of its output schema, the second."""
_MOST_FILES = 500
_KNOWN = {
    "name",
    "description",
    "tools",
    "disallowedTools",
    "model",
    "skills",
    "maxTurns",
    "budget",
    "output",
    "history",
    "restart",
}


@dataclass(frozen=True, slots=True)
class FoundKind:
    """A kind of agent, read from a file."""

    name: str
    description: str
    source: str
    """The file."""
    says: Mapping[str, Any]
    """The further parts of its entry in the setting ``kinds``, without the texts of skills."""
    skills: tuple[str, ...] = ()
    """The names of the skills with which its children begin."""
    ignored: tuple[str, ...] = ()
    """The keys that mean nothing here."""

    @property
    def manifest(self) -> dict[str, Any]:
        """The data of the kind as they are pinned in a setting."""
        return {"name": self.name, "description": self.description, **self.says}

    @property
    def sha256(self) -> str:
        """Return the SHA-256 of the file's content."""
        return digest_of_skill({**self.manifest, "skills": list(self.skills)})


@dataclass(frozen=True, slots=True)
class FoundKinds:
    """The kinds that a search has found, and the errors in files."""

    kinds: tuple[FoundKind, ...]
    """One for each name, sorted."""
    troubles: tuple[str, ...] = ()
    """The files that were left out, kinds that are shadowed, and keys that mean nothing, in sentences for a person."""


def find_kinds(places: Sequence[str | os.PathLike[str]]) -> FoundKinds:
    """Return the kinds in files and below directories. If two have the same name, the later one counts.

    Raises `BadInput` where a file or directory does not exist.
    """
    by_name: dict[str, FoundKind] = {}
    troubles: list[str] = []
    for place in places:
        if not os.path.exists(place):  # noqa: PTH110 - of a path that cannot be, Path.exists raises
            raise BadInput(f"Expected a directory with kinds of agents, or a file, but there is no {place!s:.200}.")
        for file in _files(Path(place).absolute(), troubles):
            try:
                kind = read_kind(file)
            except (BadInput, OSError, UnicodeDecodeError) as error:
                troubles.append(f"The kind in {file} is left out: {error}")
                continue
            if (other := by_name.get(kind.name)) is not None:
                troubles.append(f"Kind {kind.name} of {other.source} is shadowed by that of {kind.source}.")
            if kind.ignored:
                troubles.append(f"Kind {kind.name}: {', '.join(kind.ignored)} means nothing here.")
            by_name[kind.name] = kind
    return FoundKinds(tuple(by_name[name] for name in sorted(by_name)), tuple(troubles))


def read_kind(file: Path) -> FoundKind:
    """Read the kind in a file. If the front matter has no name, the file's name is used.

    Raises:
        BadInput: the file has no description, or a wrong value.
        OSError, UnicodeDecodeError: the file cannot be read.
    """
    document = read_front_matter(file.read_text(encoding="utf-8"))
    name = " ".join(storable(document.text("name")).split()) or file.stem
    description = " ".join(storable(document.text("description")).split())[:LONGEST_DESCRIPTION]
    if not description:
        raise BadInput("it has no description.")
    system = storable(document.body)
    if len(system) > LONGEST_SYSTEM:
        raise BadInput(f"its text has more than {LONGEST_SYSTEM:,} characters.")
    ignored = sorted(key for key in document.keys if key not in _KNOWN)
    says: dict[str, Any] = {"system": system} if system else {}
    tools = document.texts("tools")
    if patterns := [word for word in tools if "(" in word]:  # a pattern that is not kept would give more than it says
        ignored += patterns
    if tools and "*" not in tools:
        says["tools"] = sorted({own_name(word) for word in tools if "(" not in word})
    if without := document.texts("disallowedTools"):
        says["without"] = sorted({own_name(word.partition("(")[0]) for word in without})
    if (model := document.text("model")) and model != "inherit":
        if ":" in model:
            says["model"] = model
        else:
            ignored.append(f"model {model}")
    says |= _numbers(document) | _choices(document)
    return FoundKind(name, description, str(file), says, document.texts("skills"), tuple(ignored))


def usual_kind_places(directory: Path | None = None) -> list[Path]:
    """Return the directories with kinds: of installed packages, of the user, and of a workspace.

    Those of a workspace begin at the root of its repository. ``directory``: the workspace.
    """
    from ikigai_actors.tools.skills.folders import places_below

    return places_below(KIND_GROUP, KIND_PLACES, directory)


def _numbers(document: FrontMatter) -> dict[str, Any]:
    says: dict[str, Any] = {}
    if steps := document.text("maxTurns"):
        if not steps.isdecimal() or not 0 < int(steps) < 2**31:
            raise BadInput(f"expected maxTurns to be a whole number, 1 or more; got {steps!r:.100}.")
        says["max_steps"] = int(steps)
    if budget := document.text("budget"):
        parse_budget(budget)
        says["budget"] = budget
    return says


def _choices(document: FrontMatter) -> dict[str, Any]:
    says: dict[str, Any] = {}
    if output := document.text("output"):
        from ikigai_actors.records.messages.outputs import expected

        try:
            schema = json.loads(output)
        except ValueError as error:
            raise BadInput(f"expected output to be a JSON schema: {error}.") from error
        if not isinstance(schema, dict) or len(output) > LONGEST_SCHEMA:
            raise BadInput(f"expected output to be a JSON schema of at most {LONGEST_SCHEMA:,} characters.")
        says["output"] = expected(schema).stored()
    for key, values in (("history", ("inherit", "none")), ("restart", tuple(map(str, RestartType)))):
        if value := document.text(key):
            if value not in values:
                raise BadInput(f"expected {key} to be {' or '.join(values)}; got {value!r:.100}.")
            says |= {key: value} if value != "none" else {}
    return says


def _files(place: Path, troubles: list[str]) -> Iterator[Path]:
    """The Markdown files at or below a place. Links are not followed."""
    if place.is_file():
        yield place
        return
    count = 0
    for path, directories, names in os.walk(place):
        directories[:] = sorted(name for name in directories if not name.startswith("."))
        for name in sorted(names):
            file = Path(path) / name
            if file.suffix != ".md" or file.is_symlink():
                continue
            count += 1
            if count > _MOST_FILES:
                troubles.append(f"Below {place} are more than {_MOST_FILES} files: the rest was not looked at.")
                return
            yield file
