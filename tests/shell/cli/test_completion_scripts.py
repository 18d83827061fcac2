"""The completion of the command line in bash, zsh and fish: what the scripts ask, and where they are put."""

import shutil
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from ikigai_actors.shell.cli.completion import COMPLETION_VARIABLE
from ikigai_actors.shell.cli.main import cli

SHELLS = pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
SCRIPTS = {
    "bash": ".local/share/ikigai/completion.bash",
    "zsh": ".local/share/ikigai/completion.zsh",
    "fish": ".config/fish/completions/ikigai.fish",
}


def call(*words: str, home: Path, **variables: str | None) -> Result:
    """Run the program for a person with this home."""
    alone = {"HOME": str(home), "XDG_DATA_HOME": None, "XDG_CONFIG_HOME": None, "ZDOTDIR": None, **variables}
    return CliRunner().invoke(cli, [*words], prog_name="ikigai", env=alone, catch_exceptions=False)


def completed(line: str, home: Path) -> list[str]:
    """What a shell offers at the end of a line, as the script for bash asks."""
    words = line.split(" ")
    asked = {COMPLETION_VARIABLE: "bash_complete", "COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
    return call(home=home, **asked).stdout.split()


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("ikigai prom", ["plain,prompt"]),
        ("ikigai pag", []),
        ("ikigai prompt --wa", ["plain,--wait"]),
        ("ikigai doc wr", ["plain,write"]),
        ("ikigai completion f", ["plain,fish"]),
        ("ikigai help reg", ["plain,regress"]),
        ("ikigai help al", ["plain,all"]),
    ],
)
def test_a_shell_is_offered_commands_and_options(line: str, offered: list[str], tmp_path: Path) -> None:
    assert completed(line, tmp_path) == offered


@SHELLS
def test_a_script_is_printed_and_asks_this_program(shell: str, tmp_path: Path) -> None:
    script = call("completion", shell, home=tmp_path).stdout
    assert f"{COMPLETION_VARIABLE}={shell}_complete" in script
    assert [*tmp_path.iterdir()] == []


@SHELLS
def test_a_script_is_installed_once(shell: str, tmp_path: Path) -> None:
    printed = call("completion", shell, home=tmp_path).stdout.rstrip()
    rc = tmp_path / f".{shell}rc"
    if shell != "fish":
        rc.write_text("alias tea=coffee")  # no newline at its end
    first, second = (call("completion", shell, "--install", home=tmp_path) for _ in range(2))
    script = tmp_path / SCRIPTS[shell]
    assert script.read_text().rstrip() == printed
    assert f"Wrote {script}." in first.stdout
    assert rc.exists() == (shell != "fish")
    if rc.exists():
        alias, line = rc.read_text().splitlines()
        assert alias == "alias tea=coffee"
        assert f"source {script}" in line
        assert str(rc) in first.stdout
        assert str(rc) not in second.stdout


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash here")
def test_bash_reads_what_was_installed(tmp_path: Path) -> None:
    call("completion", "bash", "--install", home=tmp_path)
    shell = ["bash", "--norc", "-c", ". ./.bashrc && complete -p ikigai"]
    done = subprocess.run(shell, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.split()[-1] == "ikigai"
    assert done.stderr == ""


def test_the_folders_that_a_person_has_chosen_are_used(tmp_path: Path) -> None:
    chosen = {"XDG_DATA_HOME": str(tmp_path / "data"), "ZDOTDIR": str(tmp_path)}
    call("completion", "zsh", "--install", home=tmp_path / "nowhere", **chosen)
    assert (tmp_path / "data" / "ikigai" / "completion.zsh").exists()
    assert "compinit" in (tmp_path / ".zshrc").read_text()
