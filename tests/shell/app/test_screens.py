"""The main screens look as they are kept in ``screens`` beside this file, in windows of three sizes.

``pytest tests/shell/app/test_screens.py --new-screens`` keeps them as they look now. ``python -m
tests.kit.screenshots`` makes the pictures in docs/use/keys.md of the same scenes.
"""

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.kit.scenes import SCENES, SIZES, Shown, play
from tests.kit.screenshots import LIGHT, PICTURES, TAKEN

KEPT = Path(__file__).parent / "screens"


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> dict[str, Shown]:
    """All scenes, in windows of the sizes that the run asks for."""
    new = request.config.getoption("--new-screens")
    kept = {} if new else {path.stem: path.read_text(encoding="utf-8") for path in KEPT.glob("*.txt")}
    names = {item.name for item in request.session.items if item.path == Path(__file__)}
    sizes = [size for size in SIZES if new or size == SIZES[0] or any(f"-{size[0]}]" in name for name in names)]
    screens = play(tmp_path_factory.mktemp("scenes"), kept, sizes)
    if new:
        for name, screen in screens.items():
            (KEPT / f"{name}.txt").write_text(screen.text, encoding="utf-8")
    return screens


@pytest.mark.sample(len(SCENES), "sizes")
@pytest.mark.parametrize("name", [f"{name}-{columns}" for name in SCENES for columns, _ in SIZES])
def test_a_screen_looks_as_it_is_kept(name: str, shown: dict[str, Shown]) -> None:
    assert shown[name].text == (KEPT / f"{name}.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", TAKEN)
def test_a_picture_loads_nothing_from_elsewhere(name: str, shown: dict[str, Shown]) -> None:
    for svg in (shown[f"{name}-80"].svg, (PICTURES / f"{name}.svg").read_text(encoding="utf-8")):
        assert set(re.findall(r"\w+://[^\s\"')]*", svg)) == {"http://www.w3.org/2000/svg"}
        assert not re.search(r"@import|@font-face|href|<script|url\((?!#)", svg)
        ElementTree.fromstring(svg)


def test_the_page_of_keys_shows_each_picture() -> None:
    page = (PICTURES.parent / "use" / "keys.md").read_text(encoding="utf-8")
    assert set(re.findall(r"screens/(\w+)\.svg", page)) == {*TAKEN, *(f"{name}_light" for name in LIGHT)}
    assert {path.stem for path in PICTURES.glob("*.svg")} == {*TAKEN, *(f"{name}_light" for name in LIGHT)}
