"""A release: the conditions of its tag, equal builds, workflows without credentials, and a site of good links."""

import re
from pathlib import Path, PurePosixPath
from posixpath import normpath

import pytest

from ikigai_actors.store.migrations import FIRST, newest
from tests.kit.databases import ROOT
from tests.release import site
from tests.release.__main__ import read
from tests.release.build import build
from tests.release.ready import FIRST_RELEASED, Tree, problems

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))

GOOD = Tree(
    version="0.1.0",
    changelog="## 0.1.0 (2026-12-01)\n",
    first=FIRST_RELEASED,
    newest=FIRST_RELEASED,
    schema="CREATE …",
    released={FIRST_RELEASED: "CREATE …"},
    repository="https://example.com/project",
)

UNDATED = GOOD._replace(changelog="## 0.1.0 (unreleased)\n")
UNNUMBERED = GOOD._replace(first=31, newest=31)
CHANGED = GOOD._replace(schema="CREATE ANOTHER")
MIGRATED = CHANGED._replace(newest=101)


@pytest.mark.parametrize(
    ("tree", "tag", "words"),
    [
        (GOOD, "v0.1.0", []),
        (GOOD, "v0.2.0", ["The tag is v0.2.0"]),
        (UNDATED, "v0.1.0", ["(YYYY-MM-DD)"]),
        (UNNUMBERED, "v0.1.0", ["FIRST", "version 31 is not kept"]),
        (CHANGED, "v0.1.0", ["version 100 is not kept"]),
        (MIGRATED, "v0.1.0", ["version 101 is not kept"]),
        (MIGRATED._replace(released={100: GOOD.schema, 101: CHANGED.schema}), "v0.1.0", []),
        (GOOD._replace(repository=""), "v0.1.0", ["[project.urls]"]),
    ],
    ids=["good", "tag", "date", "number", "schema", "migration", "kept", "urls"],
)
def test_a_tag_needs_its_version_a_date_and_the_schema_that_was_kept(tree: Tree, tag: str, words: list[str]) -> None:
    complaints = problems(tree, tag)
    assert len(complaints) == len(words)
    assert all(word in line for word, line in zip(words, complaints, strict=True))


def test_what_is_read_of_a_checkout_is_what_the_program_has() -> None:
    tree = read()
    assert (tree.first, tree.newest) == (FIRST, newest())
    assert f"## {tree.version} " in tree.changelog


@pytest.mark.thorough("clones the repository and builds it twice")
def test_two_builds_of_a_commit_are_equal_byte_for_byte(tmp_path: Path) -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("an unpacked sdist has no commit")
    assert [path.suffix for path in build(ROOT, tmp_path, isolated=False)] == [".whl", ".gz"]


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.stem)
def test_a_workflow_pins_its_actions_and_gives_each_job_its_rights(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    used = re.findall(r"uses: (.*)", text)
    assert used
    assert [
        action for action in used if not re.fullmatch(r"[\w.-]+/[\w.-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", action)
    ] == []
    assert re.search(r"^permissions: \{\}$", text, re.M)
    jobs = re.split(r"^  (?=\w+:$)", text.partition("\njobs:\n")[2], flags=re.M)[1:]
    assert [job.partition(":")[0] for job in jobs if "\n    permissions:" not in job] == []
    assert [job.partition(":")[0] for job in jobs if "\n    timeout-minutes:" not in job] == []
    for word in (
        "pull_request_target",
        "secrets.",
        "cache:",
        "actions/cache",
        "workflow_run",
        "github.event.",
        "|| true",
    ):
        assert word not in text
    assert text.count("actions/checkout@") == text.count("persist-credentials: false")


def test_only_the_last_jobs_of_a_release_can_sign_publish_or_write() -> None:
    rights = {
        (file.stem, job.partition(":")[0], right)
        for file in WORKFLOWS
        for job in re.split(r"^  (?=\w+:$)", file.read_text(encoding="utf-8"), flags=re.M)
        for right in re.findall(r"^      ([\w-]+): write(?: *#.*)?$", job, re.M)
    }
    assert rights == {
        ("release", "attest", "attestations"),
        ("release", "attest", "id-token"),
        ("release", "publish", "id-token"),
        ("release", "notes", "contents"),
    }
    publish = (ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8").partition("  publish:")[2]
    assert "needs: attest" in publish
    assert "environment: release" in publish


def test_the_tests_run_on_each_python_that_the_package_names() -> None:
    named = re.findall(r'"Programming Language :: Python :: (3\.\d+)"', (ROOT / "pyproject.toml").read_text("utf-8"))
    tried = (ROOT / ".github" / "workflows" / "test.yml").read_text(encoding="utf-8")
    released = (ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8")
    assert [version for version in named if f'python: "{version}"' not in tried or f'"{version}"' not in released] == []


def test_every_link_of_the_site_leads_to_a_page_or_a_file_of_it() -> None:
    pages = site.pages()
    files = {path.relative_to(site.DOCS).as_posix() for path in site.DOCS.rglob("*") if path.suffix != ".md"}
    files |= {path.relative_to(ROOT).as_posix() for path in (ROOT / "examples").iterdir()}
    targets = {(page, match[1]) for page, text in pages.items() for match in re.finditer(r"\]\(([^)#:\s]+)[)#]", text)}
    within = {(page, normpath(str(PurePosixPath(page).parent / target))) for page, target in targets}
    assert len(within) > 100
    assert {(page, target) for page, target in within if target not in files | set(pages)} == set()


def test_a_link_out_of_the_site_is_refused_and_code_is_left_as_it_is() -> None:
    page = "[us](../README.md#limits) [it](#a) [x](https://x.y)\n```\n[us](../README.md)\n```\n"
    assert site.moved(page, "docs/shell.md") == page.replace("../README.md#", "readme.md#")
    assert site.moved("[a](../../docs/mail.md)", "ikigai_actors/store/README.md") == "[a](../mail.md)"
    assert site.moved("**A.**\n- b\n  c\n- d\n", "docs/shell.md") == "**A.**\n\n- b\n  c\n- d\n"
    with pytest.raises(site.NoPlace, match=r"setup\.py"):
        site.moved("[a](../setup.py)", "docs/shell.md")


def test_the_menu_of_the_site_has_every_page_of_it_once() -> None:
    menu = re.findall(r'"([\w/-]+\.md)"', site.SETTINGS.read_text(encoding="utf-8"))
    assert sorted(menu) == sorted([*site.pages(), *(page for page, _ in site.api())]), "name the page in zensical.toml"


def test_the_list_for_programs_is_that_of_the_pages() -> None:
    assert site.LIST.read_text(encoding="utf-8") == site.list_of_pages(), "run 'python -m tests.release llms'"


def test_the_pages_of_the_api_have_every_public_name_once() -> None:
    named = [line for _, text in site.api() for line in text.splitlines() if line.startswith("::: ")]
    assert len(named) == len({*named}) > 200
    assert {"::: ikigai_actors.system.system.ActorSystem", "::: ikigai_actors.errors.AgentDead"} <= {*named}
