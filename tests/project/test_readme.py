"""The README and docs/ cannot rot: their code runs, their transcripts are played, their commands and links exist."""

import doctest
import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from ikigai_actors import ActorSystem, OfflineProvider
from ikigai_actors.shell.cli.main import cli
from tests.kit.databases import ROOT
from tests.kit.program import completed, run
from tests.kit.transcripts import PAGES, Transcript, differs, play, transcripts
from tests.kit.zygote import PYTHON

pytestmark = pytest.mark.slow("every page is played")

README, INDEX = ROOT / "README.md", ROOT / "docs" / "README.md"
DEFAULT, SERVER = "~/.local/share/ikigai/ikigai.db", "postgresql:///team"
"""How the pages call the default database, and one of a server."""


def name(page: Path) -> str:
    return "index" if page == INDEX else page.stem


@pytest.mark.sample(5, "pages with code")
@pytest.mark.parametrize("page", [page for page in PAGES if ">>> " in page.read_text("utf-8")], ids=name)
def test_the_code_of_a_page_runs_as_printed(page: Path) -> None:
    failed, tried = doctest.testfile(str(page), module_relative=False, encoding="utf-8")
    assert tried > 0
    assert failed == 0


def test_all_python_of_the_pages_is_run() -> None:
    for page in PAGES:
        for block in re.findall(r"^```python\n(.*?)^```$", page.read_text("utf-8"), re.M | re.S):
            assert page == README or block.startswith(">>> "), f"{page.name}: {block}"


def test_the_program_of_the_readme_runs_as_it_stands_twice(tmp_path: Path) -> None:
    [program] = re.findall(r"^```python\n(.*?)^```$", README.read_text("utf-8"), re.M | re.S)
    [printed] = re.findall(r"^```text\n(.*?)^…\n```$", README.read_text("utf-8"), re.M | re.S)
    assert len(program.splitlines()) <= 15
    (tmp_path / "ship.py").write_text(program, encoding="utf-8")
    for _ in range(2):
        done = completed([*PYTHON, "ship.py"], cwd=tmp_path)
        assert (done.returncode, done.stderr, len(done.stdout.splitlines())) == (0, "", 3)
        assert done.stdout.startswith(printed)


def test_the_program_of_the_readme_that_is_killed_in_its_first_prompt_says_each_sentence_once(tmp_path: Path) -> None:
    [program] = re.findall(r"^```python\n(.*?)^```$", README.read_text("utf-8"), re.M | re.S)
    killed = "import os\nfrom ikigai_actors import FunctionProvider\n" + program.replace(
        '"offline"', "FunctionProvider(lambda request: os.kill(os.getpid(), 9))"
    )
    (tmp_path / "killed.py").write_text(killed, encoding="utf-8")
    (tmp_path / "ship.py").write_text(program, encoding="utf-8")
    assert [completed([*PYTHON, name], cwd=tmp_path).returncode for name in ("killed.py", "ship.py")] == [-9, 0]
    with ActorSystem.open(str(tmp_path / "ship.db"), OfflineProvider()) as system:
        said = [message.content for each in system.agents() for message in system.handle(each.uuid).history()]
        mine = [line for line in said if line.startswith(("We are", "Plan the"))]
        assert (len(system.agents()), mine.count("We are building a ship for the North Sea.")) == (4, 4)  # 3 inherit it
        assert sorted(line for line in mine if line.startswith("Plan")) == [
            "Plan the keel.",
            "Plan the mast.",
            "Plan the sail.",
        ]


@pytest.mark.empty
@pytest.mark.sample(1, "programs at a terminal for each")
@pytest.mark.parametrize("transcript", transcripts(), ids=str)
def test_a_transcript_is_what_comes(transcript: Transcript, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    places = {DEFAULT: str(tmp_path / "home" / "ikigai.db"), "offline:slow": "offline:0.05"}  # a person needs more time
    if any(SERVER in line for line in transcript.lines):
        places[SERVER] = request.getfixturevalue("new_postgres")()
    here = tmp_path / "here"
    here.mkdir()
    assert not differs(transcript.lines, play(transcript.lines, here, places))


def test_a_transcript_that_is_not_what_comes_is_told() -> None:
    shown = ["brave-otter> /agents", "* brave-otter  idle", "1 running, …"]
    assert not differs(shown, "leafy-cello> /agents\n* leafy-cello  idle\n1 running, 0 dead\n")
    assert differs(shown, "leafy-cello> /agents\n* sunny-lynx  idle\n1 running, 0 dead\n").startswith("after 1 lines")
    assert differs(shown, "leafy-cello> /agents\n* leafy-cello  idle\n").startswith("after 2 lines")
    assert differs(shown[:2], "leafy-cello> /agents\n* leafy-cello  idle\nmore\n").startswith("after 2 lines")


def test_the_pages_show_what_must_not_be_missing() -> None:
    """A tree that is killed hard; a crash, a restart, a cascade and a kill from elsewhere; a question; mail."""
    every = transcripts()
    typed = {page: " ".join(" ".join(each.lines) for each in every if each.page == page) for page in PAGES}
    assert all(word in typed[ROOT / "docs" / "start" / "first-hour.md"] for word in ("Killed", "/resume"))
    supervision = typed[ROOT / "docs" / "build" / "supervision.md"]
    assert all(word in supervision for word in ("crashes", "ikigai --database tea.db kill", "--cascade"))
    assert "/approve" in typed[ROOT / "docs" / "use" / "shell.md"]
    assert "/read-mail" in typed[ROOT / "docs" / "build" / "mail.md"]


SCRIPTS = [
    (page, script)
    for page in PAGES
    for script in re.findall(r"^ikigai --provider offline <<'END'\n(.*?)^END$", page.read_text("utf-8"), re.M | re.S)
]


@pytest.mark.thorough("a program for each; every run has the code of some pages")
@pytest.mark.parametrize("then", ["@then ", ""], ids=["reply by reply", "in one reply"])
def test_the_fan_out_that_a_reader_can_paste_works(then: str) -> None:
    [script] = {script for _, script in SCRIPTS}
    assert {page.stem for page, _ in SCRIPTS} == {"mail"}
    done = run("--provider", "offline", lines=script.replace("@then ", then))
    assert done.returncode == 0
    assert [len(re.findall(rf"^\[{name}: ", done.stdout, re.M)) for name in ("fork", "wait", "read_mail")] == [3, 1, 1]
    answer = done.stdout[done.stdout.index("read_mail gave: ") :].splitlines()
    assert {"of oak", "of pine", "of elm"} <= set(answer)


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_the_commands_of_a_page_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    typed = [line for block in re.findall(r"^```sh\n(.*?)^```$", text, re.M | re.S) for line in block.splitlines()]
    typed += re.findall(r"^\$ (.*)", text, re.M)
    for line in typed:
        if line.startswith("ikigai "):
            words = shlex.split(re.split(r" {2,}← | [|<]", line)[0])[1:]
            asked = CliRunner().invoke(cli, [*words, "--help"])
            assert asked.exit_code == 0, f"{line}: {asked.output}"


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_the_links_of_a_page_lead_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for place, anchor in re.findall(r"\]\(([^)#:]*)(?:#([\w-]+))?\)", text):
        target = page if not place else (page.parent / place)
        assert target.exists(), place
        if anchor:
            titles = re.findall(r"^#+ (.*)", target.read_text("utf-8"), re.M)
            assert anchor in {re.sub(r"[^\w -]", "", title).lower().replace(" ", "-") for title in titles}


def test_the_index_leads_to_every_page() -> None:
    linked = {(INDEX.parent / place).resolve() for place in re.findall(r"\]\(([^)#:]+)", INDEX.read_text("utf-8"))}
    assert {*PAGES} - {INDEX} <= linked


def test_the_readme_leads_to_the_index_and_is_read_in_five_minutes() -> None:
    text = README.read_text(encoding="utf-8")
    assert "](docs/README.md)" in text
    assert len(text.split()) <= 900


def test_continuous_integration_runs_the_readmes_test_command() -> None:
    [command] = [
        line for line in README.read_text(encoding="utf-8").splitlines() if "-m tests" in line and "venv" in line
    ]
    assert command in (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
