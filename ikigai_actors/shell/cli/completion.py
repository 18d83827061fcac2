"""``ikigai completion``: the script by which bash, zsh or fish completes the command line at the Tab key."""

import os
from pathlib import Path

import click
from click.shell_completion import get_completion_class

from ikigai_actors.verbs.text.harmless import harmless

COMPLETION_VARIABLE = "_IKIGAI_COMPLETE"
"""The environment variable by which a completion script calls this program; click derives its name."""


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.option("--install", is_flag=True, help="Put it where the shell reads it, instead of printing it.")
@click.pass_context
def completion(context: click.Context, shell: str, install: bool) -> None:
    """Print the script that completes commands and options at the Tab key, or install it.

    With --install, fish gets a file in its folder of completions. For bash and zsh the script is a file in the folder
    of ikigai, and one line at the end of .bashrc or .zshrc reads it. Installed again it is replaced.
    """
    script = _script(shell, context.find_root().command)
    if not install:
        click.echo(script)
        return
    for written in _install(shell, script):
        click.echo(harmless(f"Wrote {written}."))
    click.echo("The next shell that you open completes ikigai.")


def _script(shell: str, command: click.Command) -> str:
    made = get_completion_class(shell)
    assert made is not None  # click knows each of the choices
    return made(command, {}, "ikigai", COMPLETION_VARIABLE).source()


def _install(shell: str, script: str) -> list[Path]:
    """Write the script, and the line that reads it if the shell needs one; return the files that have changed.

    The script comes first: a line without it would be an error in every shell that is opened.
    """
    if shell == "fish":
        file = _folder("XDG_CONFIG_HOME", ".config") / "fish" / "completions" / "ikigai.fish"
        _write(file, script)
        return [file]
    file = _folder("XDG_DATA_HOME", ".local/share") / "ikigai" / f"completion.{shell}"
    _write(file, script)
    start = Path.home() / ".bashrc" if shell == "bash" else Path(os.environ.get("ZDOTDIR") or Path.home()) / ".zshrc"
    return [file, start] if _append(start, _line(shell, file)) else [file]


def _folder(variable: str, usual: str) -> Path:
    return Path(os.environ.get(variable) or Path.home() / usual)


def _line(shell: str, file: Path) -> str:
    import shlex

    needs = "(( $+functions[compdef] )) || { autoload -Uz compinit && compinit; }; " if shell == "zsh" else ""
    return f"{needs}source {shlex.quote(str(file))}  # completion of ikigai\n"


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


def _append(file: Path, line: str) -> bool:
    """Add a line to the end of a file unless it contains the line; return whether it was added."""
    before = file.read_bytes() if file.exists() else b""
    if line.encode() in before:
        return False
    with file.open("ab") as opened:
        opened.write((b"\n" if before and not before.endswith(b"\n") else b"") + line.encode())
    return True
