"""The documentation as a site: its pages, with links that hold there; a page for each module of the API; llms.txt."""

import importlib
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from posixpath import relpath

ROOT = Path(__file__).parents[2]
DOCS, LIST = ROOT / "docs", ROOT / "docs" / "llms.txt"
SETTINGS = ROOT / "zensical.toml"
SITE = ROOT / ".site"

MODULES = ("", "errors", "providers", "tools", "budgets", "events", "types", "behaviour", "cluster", "sight",
           "testing", "shell")  # fmt: skip
"""The public modules, of which the first one is the package."""

ROOT_PAGES = {
    "README.md": "readme.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security-policy.md",
    "CHANGELOG.md": "changelog.md",
    "tests/README.md": "rooms/tests.md",
    "docs/README.md": "index.md",
}
"""Pages beside those of docs/, and their places on the site."""

CSS = """.md-typeset table:not([class]) { display: table; }
.md-typeset table:not([class]) td:first-child code { white-space: nowrap; }
.md-grid { max-width: 72rem; }
"""

_LINK = re.compile(r"(?<=\]\()([^)\s]+)(?=\))")
_LIST_AFTER_TEXT = re.compile(r"^([^\s#|>-].*)\n(?=- )", re.M)
"""A line of a paragraph with a list right after it, which the site would show as a part of the paragraph."""

_SENTENCE = re.compile(r"^.*?[.?!](?=\s|$)", re.S)


class NoPlace(Exception):
    """A link to a file that is not on the site."""


def place(path: str) -> str:
    """The place on the site of a file of the repository. Raises `NoPlace` where it has none."""
    if path in ROOT_PAGES:
        return ROOT_PAGES[path]
    parts = PurePosixPath(path).parts
    if parts[0] == "docs":
        return str(PurePosixPath(*parts[1:]))
    if parts[0] == "examples" and len(parts) == 2:
        return path
    if parts[-1] == "README.md" and (parts[0] == "supervisors" or parts[0] == "ikigai_actors"):
        return f"rooms/{parts[-2]}.md"
    raise NoPlace(path)


def moved(text: str, path: str) -> str:
    """The text of a page of the repository, with its links and its lists as they hold on the site."""

    def link(match: re.Match[str]) -> str:
        target, _, anchor = match[0].partition("#")
        if not target or re.match(r"\w+:", target):
            return match[0]
        within = relpath(str(PurePosixPath(path).parent / target), ".")
        on_site = relpath(place(within), str(PurePosixPath(place(path)).parent))
        return f"{on_site}#{anchor}" if anchor else on_site

    return _outside_code(text, lambda part: _LIST_AFTER_TEXT.sub(r"\1\n\n", _LINK.sub(link, part)))


def _outside_code(text: str, change: Callable[[str], str]) -> str:
    parts = re.split(r"(^```.*?^```$)", text, flags=re.M | re.S)
    return "".join(part if part.startswith("```") else change(part) for part in parts)


def sources() -> list[str]:
    """The pages of the repository that the site has, by their paths."""
    pages = [*DOCS.rglob("*.md"), *(ROOT / "ikigai_actors").glob("*/README.md"), ROOT / "supervisors" / "README.md"]
    return sorted({*ROOT_PAGES, *(page.relative_to(ROOT).as_posix() for page in pages)})


def pages() -> dict[str, str]:
    """Each page of the site but those of the API, and its text."""
    return {place(path): moved((ROOT / path).read_text(encoding="utf-8"), path) for path in sources()}


def api() -> Iterator[tuple[str, str]]:
    """A page for each public module: its docstring, and what it hands on, each name on one page alone."""
    seen: set[object] = set()
    for name in MODULES:
        module = importlib.import_module(f"ikigai_actors.{name}".rstrip("."))
        lines = [f"# {module.__name__}", "", _SENTENCE.findall(module.__doc__ or "")[0], ""]
        for export in getattr(module, "__all__", [export for export in vars(module) if export[0] != "_"]):
            value = getattr(module, export)
            name_there = getattr(value, "__qualname__", export)  # a decorated function's may be that of its wrapper
            home = f"{getattr(value, '__module__', '')}.{export if '<' in name_there else name_there}"
            if home.startswith("ikigai_actors.") and value not in seen:
                seen.add(value)
                lines += [f"::: {home}", ""]
        yield f"api/{name or 'index'}.md", "\n".join(lines)


def lay(target: Path) -> None:
    """Lay what the site is made of into a folder."""
    shutil.copytree(DOCS, target, ignore=shutil.ignore_patterns("*.md"))
    shutil.copytree(ROOT / "examples", target / "examples", ignore=shutil.ignore_patterns("__*"))
    (target / "site.css").write_text(CSS, encoding="utf-8")
    for path, text in (*pages().items(), *api()):
        (target / path).parent.mkdir(parents=True, exist_ok=True)
        (target / path).write_text(text, encoding="utf-8")


def build() -> str:
    """Build the site strictly: a link or an anchor that leads nowhere ends it. Return where it lies."""
    shutil.rmtree(SITE, ignore_errors=True)
    lay(SITE / "docs")
    command = [sys.executable, "-m", "zensical", "build", "--strict", "--clean"]
    if status := subprocess.run(command, cwd=ROOT, check=False).returncode:
        raise SystemExit(status)
    return str(SITE / "html")


def described(text: str) -> tuple[str, str]:
    """The title of a page, and the first sentence after it."""
    title, _, rest = text.partition("\n")
    prose = (part for part in rest.strip().split("\n\n") if re.match(r"[\w*\[]|`(?!`)", part.strip()))
    sentence = next((sentences[0] for part in prose if (sentences := _SENTENCE.findall(part))), "")
    return title.lstrip("# "), re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", " ".join(sentence.split()))


def list_of_pages() -> str:
    """The text of ``docs/llms.txt``: every page by subject, for programs that read for a model."""
    settings = tomllib.loads(SETTINGS.read_text(encoding="utf-8"))["project"]
    by_place = {place(path): path for path in sources()}
    lines = [f"# {settings['site_name']}", "", f"> {settings['site_description']}", ""]
    for section in settings["nav"]:
        [(title, entries)] = section.items()
        if not (paths := [by_place[entry] for entry in entries if entry in by_place]):  # the API is made from the code
            continue
        lines += [f"## {title}", ""]
        for path in paths:
            name, sentence = described((ROOT / path).read_text(encoding="utf-8"))
            lines.append(f"- [{name}]({relpath(path, 'docs')}): {sentence}")
        lines.append("")
    return "\n".join(lines)


def write_list() -> str:
    """Write ``docs/llms.txt``; return its name."""
    LIST.write_text(list_of_pages(), encoding="utf-8")
    return str(LIST)
