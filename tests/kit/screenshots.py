"""Take the pictures of the screens that docs/use/keys.md shows: ``python -m tests.kit.screenshots [DIRECTORY]``."""

import sys
import tempfile
from pathlib import Path

from tests.kit.scenes import SIZES, play

TAKEN = ("talk", "menu", "question", "tree", "agents", "mail", "documents", "find")
"""The scenes that the page shows."""

LIGHT = ("talk", "question")
"""The scenes that the page shows on a light ground, too."""

PICTURES = Path(__file__).parents[2] / "docs" / "screens"


def take(directory: Path) -> list[Path]:
    """Play the scenes, and write a picture of each."""
    directory.mkdir(parents=True, exist_ok=True)
    written = []
    for theme, names, ending in (("dark", TAKEN, ""), ("light", LIGHT, "_light")):
        with tempfile.TemporaryDirectory() as empty:
            shown = play(Path(empty), {}, SIZES[:1], theme)
        for name in names:
            written.append(directory / f"{name}{ending}.svg")
            written[-1].write_text(shown[f"{name}-{SIZES[0][0]}"].svg, encoding="utf-8")
    return written


if __name__ == "__main__":
    for path in take(Path(sys.argv[1]) if len(sys.argv) > 1 else PICTURES):
        print(path)
