"""Kinds of agents: finds the kinds on the disk, and pins the ones that a program or a person approves.

system.kinds.find("src/.claude/agents")              # what there is; changes nothing
system.root.use_kinds("src/.claude/agents", only=["reviewer"])
system.root.fork("Review src/door.py.", kind="reviewer")
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ikigai_actors.errors import BadInput
from ikigai_actors.records.messages.kinds import LONGEST_KIND, kind_length, pinned_kind, with_kinds
from ikigai_actors.system.kind_files import FoundKind, FoundKinds, find_kinds, usual_kind_places
from ikigai_actors.system.skills import PathLike, check_place

SkillTexts = Callable[[Sequence[str]], Sequence[Mapping[str, Any]]]
"""A function that returns the texts of an agent's skills, given their names."""


class Kinds:
    """Finds kinds of agents on the disk of this process. See `ActorSystem.kinds`."""

    def find(self, *places: PathLike) -> FoundKinds:
        """Find the kinds in files. Reads the disk, and may take a moment.

        Args:
            places: files, or directories below which they are. Without one: those of installed packages and of the
                user, and those of the current directory and of its repository.

        Raises:
            BadInput: one of them does not exist.
        """
        return find_kinds([check_place(place) for place in places] or usual_kind_places(Path.cwd()))


class ListedKind(NamedTuple):
    """A kind that an agent has, or that a file offers."""

    name: str
    state: str
    """``in use``, ``refused``, ``changed``, or ``new``: for the last two somebody has to say whether it is used."""
    description: str
    sha256: str
    source: str


def kinds_listed(settings: Mapping[str, Any], listing: FoundKinds) -> list[ListedKind]:
    """Return the pinned kinds of an agent, and the kinds found in files, sorted by name."""
    entries = {kind["name"]: kind for kind in settings.get("kinds") or ()}
    there = {kind.name: kind for kind in listing.kinds}
    return [_listed(entries.get(name), there.get(name)) for name in sorted({*entries, *there})]


def undecided_kinds(settings: Mapping[str, Any], directory: Path) -> list[str]:
    """Return the names of kinds in files that are neither pinned nor refused, or that have changed since.

    ``directory``: the workspace.
    """
    listing = find_kinds(usual_kind_places(directory))
    return [kind.name for kind in kinds_listed(settings, listing) if kind.state in ("new", "changed")]


def pin_kinds(
    settings: Mapping[str, Any],
    listing: FoundKinds,
    only: Sequence[str] | None,
    place: object,
    off: bool,
    texts: SkillTexts,
) -> dict[str, Any]:
    """Return the settings that pin kinds, or that refuse them if ``off``.

    Raises `BadInput` if a kind is missing, if there are no kinds, or if a kind needs a skill that the agent lacks.
    """
    names = [kind.name for kind in listing.kinds]
    if missing := sorted(set(only or ()) - set(names)):
        raise BadInput(f"There is no kind {', '.join(missing)} in {place}. Kinds: {', '.join(names) or 'none'}.")
    picked = [kind for kind in listing.kinds if only is None or kind.name in only]
    if not picked:
        raise BadInput(f"There are no kinds of agents in {place}. {' '.join(listing.troubles)}".rstrip())
    return {"kinds": with_kinds(settings, [_entry(kind, off, texts) for kind in picked])}


def _entry(kind: FoundKind, off: bool, texts: SkillTexts) -> dict[str, Any]:
    manifest = kind.manifest
    if kind.skills and not off:
        manifest["skills"] = [dict(text) for text in texts(kind.skills)]
    if (length := kind_length(manifest)) > LONGEST_KIND:
        raise BadInput(
            f"The text of kind {kind.name} and those of its skills have {length:,} characters; {LONGEST_KIND:,} are "
            "the most. Have it load the skills itself."
        )
    return pinned_kind(manifest, kind.source) | ({"off": True} if off else {})


def _listed(entry: Mapping[str, Any] | None, kind: FoundKind | None) -> ListedKind:
    if kind is None:
        assert entry is not None
        state = "refused" if entry.get("off") else "in use"
        return ListedKind(entry["name"], state, entry["description"], entry["sha256"], entry["from"])
    state = "new"
    if entry is not None and _says_the_same(entry, kind):
        state = "refused" if entry.get("off") else "in use"
    elif entry is not None and not entry.get("off"):
        state = "changed"
    return ListedKind(kind.name, state, kind.description, kind.sha256, kind.source)


def _says_the_same(entry: Mapping[str, Any], kind: FoundKind) -> bool:
    said = {key: value for key, value in entry.items() if key not in ("sha256", "from", "off", "skills")}
    named = tuple(skill["name"] for skill in entry.get("skills", ()))
    return said == kind.manifest and (bool(entry.get("off")) or named == kind.skills)
