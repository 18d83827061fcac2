"""The steps of a release, by name: see `tests.release`."""

import argparse
import re
import sys
import tomllib
from pathlib import Path

import tests.release
from tests.release.bare import try_wheel
from tests.release.build import build, digests
from tests.release.ready import FIRST_RELEASED, Tree, problems

ROOT = Path(__file__).parents[2]
MIGRATIONS, SCHEMA = ROOT / "ikigai_actors" / "store" / "migrations.py", ROOT / "schema.sql"
RELEASED = ROOT / "tests" / "store" / "released"
"""Where the schema of each release is kept, by its version."""


def read() -> Tree:
    """What the checkout says."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    steps = MIGRATIONS.read_text(encoding="utf-8")
    [first] = re.findall(r"^FIRST = (\d+)$", steps, re.M)
    versions = [int(version) for version in re.findall(r"^    Migration\(\s*(\d+)", steps, re.M)]
    return Tree(
        version=str(project["version"]),
        changelog=(ROOT / "CHANGELOG.md").read_text(encoding="utf-8"),
        first=int(first),
        newest=max([int(first), *versions]),
        schema=SCHEMA.read_text(encoding="utf-8"),
        released={int(path.stem): path.read_text(encoding="utf-8") for path in RELEASED.glob("*.sql")},
        repository=str(project.get("urls", {}).get("Repository", "")),
    )


def keep_schema() -> str:
    """Give the schema its number at the first release, and keep its text; say under which version."""
    if read().first < FIRST_RELEASED:
        text = MIGRATIONS.read_text(encoding="utf-8")
        MIGRATIONS.write_text(re.sub(r"^FIRST = \d+$", f"FIRST = {FIRST_RELEASED}", text, flags=re.M), encoding="utf-8")
    kept = RELEASED / f"{read().newest}.sql"
    if kept.exists() and kept.read_text(encoding="utf-8") != read().schema:
        raise SystemExit(f"Version {kept.stem} was released with another schema: write a migration to the next one.")
    RELEASED.mkdir(exist_ok=True)
    kept.write_text(read().schema, encoding="utf-8")
    return f"The schema is version {kept.stem}."


def main() -> int:
    """Take one step; the exit status is 1 when something does not hold."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.release", description=tests.release.__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("step", choices=["check", "schema", "build", "try", "site", "llms"])
    parser.add_argument("what", nargs="?", default="", help="a tag, a folder or a wheel")
    options = parser.parse_args()
    if options.step == "check":
        complaints = problems(read(), options.what)
        print(*(complaints or [f"{options.what} can be released."]), sep="\n")
        return int(bool(complaints))
    if options.step == "schema":
        print(keep_schema())
    elif options.step == "build":
        target = Path(options.what or "dist")
        for name in (path.name for path in build(ROOT, target)):
            print(digests(target)[name], name)
    elif options.step == "try":
        try_wheel(Path(options.what))
    else:
        from tests.release import site

        print(site.write_list() if options.step == "llms" else site.build())
    return 0


if __name__ == "__main__":
    sys.exit(main())
