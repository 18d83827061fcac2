"""Packages of npm, in the cache of pytest: installed once, and found there without a network from then on."""

import shutil
import subprocess
from pathlib import Path

import pytest


def installed(package: str, cache: pytest.Cache) -> Path:
    """Where ``node`` finds a package such as ``@ag-ui/client@1.0.0``; skips the test where it cannot be installed."""
    if shutil.which("npm") is None or shutil.which("node") is None:
        pytest.skip("node and npm are not installed")
    home = cache.mkdir("npm-" + package.strip("@").replace("/", "-").replace("@", "-"))
    name = package.rpartition("@")[0]
    if not (home / "node_modules" / name / "package.json").exists():
        command = ["npm", "install", "--prefix", str(home), "--no-save", "--no-package-lock", "--ignore-scripts"]
        done = subprocess.run(
            [*command, "--no-audit", "--no-fund", package], capture_output=True, text=True, timeout=120
        )
        if done.returncode != 0:
            pytest.skip(f"npm cannot install {package}: {done.stderr[-300:]}")
    return home
