"""Take the pictures of the screens that docs/shell.md shows: ``python -m tests.kit.screenshots [DIRECTORY]``."""

import sys
import tempfile
from pathlib import Path

from tests.kit.scenes import play

PICTURES = Path(__file__).parents[2] / "docs" / "screens"


def take(directory: Path) -> list[Path]:
    """Play the scenes, and write a picture of each."""
    directory.mkdir(parents=True, exist_ok=True)
    written = []
    with tempfile.TemporaryDirectory() as empty:
        for name, shown in play(Path(empty), {}).items():
            written.append(directory / f"{name}.svg")
            written[-1].write_text(shown.svg, encoding="utf-8")
    return written


if __name__ == "__main__":
    for path in take(Path(sys.argv[1]) if len(sys.argv) > 1 else PICTURES):
        print(path)
