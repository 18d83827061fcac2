"""The page and the terminal have the same colours, by the same names."""

import re

import pytest

from ikigai_actors.shell.app.theme import DARK, LIGHT, Palette
from tests.kit.databases import ROOT

CSS = (ROOT / "ikigai_actors/sight/page/observe.css").read_text(encoding="utf-8")


@pytest.mark.parametrize(("selector", "palette"), [(":root", DARK), (':root[data-theme="light"]', LIGHT)])
def test_the_page_has_the_colours_of_the_terminal(selector: str, palette: Palette) -> None:
    rules = CSS.partition(f"\n{selector} {{")[2].partition("}")[0]
    colours = dict(re.findall(r"--(\w+): (#\w+);", rules))
    assert {name: colours[name] for name in palette._asdict()} == palette._asdict()
