"""A wheel in an environment that has nothing else, as a stranger installs it."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

PROGRAM = """
from ikigai_actors import ActorSystem

with ActorSystem.open("a.db", provider="offline") as system:
    if not system.root.children():
        system.root.prompt("a ship").get(timeout=60)
        system.root.fork("the mast", name="mast")
    [child] = system.root.children()
    print(child.reply(timeout=60).text)
"""
"""A program that is run twice, the second time on what the first one left."""

MODULES = "ikigai_actors, ikigai_actors.testing, ikigai_actors.tools, ikigai_actors.behaviour, supervisors"


def try_wheel(wheel: Path) -> None:
    """Install a wheel with what it needs, from wheels alone, and use it. A step that fails raises its error."""
    with tempfile.TemporaryDirectory() as folder:
        bare, home = Path(folder) / "venv", Path(folder) / "home"
        home.mkdir()
        python = bare / "bin" / "python"
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "IKIGAI"))}
        subprocess.run([sys.executable, "-m", "venv", str(bare)], check=True)

        def run(*command: str) -> str:
            print("$", *(word if len(word) < 60 else "…" for word in command), flush=True)
            environment = {**clean, "HOME": str(home)}
            done = subprocess.run(command, check=False, cwd=home, env=environment, capture_output=True, text=True)
            if done.returncode or done.stderr:
                raise SystemExit(f"exit status {done.returncode}\n{done.stdout}\n{done.stderr}")
            return done.stdout

        # The settings of pip on this machine hold for this step alone: what follows has a HOME of its own.
        install = [str(python), "-m", "pip", "install", "-q", "--only-binary", ":all:", str(wheel.resolve())]
        subprocess.run(install, check=True, stderr=subprocess.DEVNULL)
        run(str(python), "-m", "pip", "check")
        run(str(python), "-W", "error", "-c", f"import {MODULES}; from ikigai_actors import *")
        run(str(bare / "bin" / "ikigai"), "--version")
        run(str(bare / "bin" / "ikigai"), "demo")
        said = [run(str(python), "-W", "error", "-c", PROGRAM) for _ in range(2)]
        if said[0] != said[1] or "the mast" not in said[0]:
            raise SystemExit(f"The program printed {said[0]!r}, and on what it had left {said[1]!r}.")
