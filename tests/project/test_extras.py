"""Extras: who needs one says how to install it, a page does so too, and the tests have it."""

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from ikigai_actors import BadInput
from ikigai_actors.extras import NeedsExtra
from tests.kit.program import completed
from tests.kit.zygote import PYTHON

ROOT = Path(__file__).parents[2]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
NEEDED = {
    extra
    for path in (ROOT / "ikigai_actors").rglob("*.py")
    for extra in re.findall(r'with NeedsExtra\(\s*"([^"]+)"', path.read_text(encoding="utf-8"))
}


def test_an_extra_that_is_needed_exists_and_is_there_when_tests_run() -> None:
    assert NEEDED
    [faces] = [line for line in EXTRAS["dev"] if line.startswith("ikigai-actors[")]
    assert {extra for extra in NEEDED if extra not in EXTRAS} == set()
    assert NEEDED - set(re.findall(r"[\w-]+", faces.partition("[")[2])) == set()


@pytest.mark.parametrize("extra", sorted(NEEDED))
def test_a_page_says_how_to_install_an_extra(extra: str) -> None:
    pages = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "docs").rglob("*.md"))
    assert extra in {name for names in re.findall(r"ikigai-actors\[([\w,-]+)\]", pages) for name in names.split(",")}


def test_a_missing_package_is_an_error_that_says_how_to_install_it_and_a_broken_one_says_why() -> None:
    with pytest.raises(BadInput) as missing, NeedsExtra("otel", "This"):
        import nobody_has_this_package  # type: ignore[import-not-found]  # noqa: F401
    assert str(missing.value) == "This needs the extra otel: pip install 'ikigai-actors[otel]'"
    with pytest.raises(BadInput) as broken, NeedsExtra("otel", "This"):
        from email import nobody_has_this_name  # type: ignore[attr-defined]  # noqa: F401
    assert str(broken.value).startswith("This needs the extra otel: pip install 'ikigai-actors[otel]' (cannot import")


def without(package: str, *words: str) -> "subprocess.CompletedProcess[str]":
    """What the program does where a package is not installed."""
    script = (
        f"import sys; sys.modules[{package!r}] = None\nfrom ikigai_actors.shell.cli.main import main; sys.exit(main())"
    )
    return completed([*PYTHON, "-c", script, *words], fresh=True)


DOORS = {
    "acp": ("acp", ("acp",)),
    "mcp": ("mcp", ("mcp",)),
    "otel": ("opentelemetry.proto", ("trace", "export", "--to", "http://127.0.0.1:1")),
}
"""The package of each extra, and a command that needs it."""


@pytest.mark.thorough("a program without a package; each extra is missed by hand before a release")
@pytest.mark.parametrize("extra", DOORS)
def test_a_command_without_its_extra_says_what_to_install(extra: str, tmp_path: Path) -> None:
    package, words = DOORS[extra]
    completed([*PYTHON, "-m", "ikigai_actors", "--database", str(tmp_path / "a.db"), "--provider", "offline"])
    done = without(package, "--database", str(tmp_path / "a.db"), *words)
    assert (done.returncode, done.stdout) == (1, "")
    assert f" needs the extra {extra}: pip install 'ikigai-actors[{extra}]'" in done.stderr
    assert "Traceback" not in done.stderr
