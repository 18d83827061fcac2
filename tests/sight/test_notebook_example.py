"""The notebook of the examples: its cells run one after another, and show what a notebook draws."""

import ast
import asyncio
import json
from typing import Any

import pytest

from tests.kit.databases import ROOT

NOTEBOOK = ROOT / "examples" / "notebook.ipynb"


def cells() -> list[str]:
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]


async def run(sources: list[str]) -> list[Any]:
    """The values of the last lines of the cells, each run as a notebook does: within a loop, and with ``await``."""
    names: dict[str, Any] = {}
    shown: list[Any] = []
    for source in sources:
        *body, last = ast.parse(source).body
        assert isinstance(last, ast.Expr)
        for part, mode in ((ast.Module(body, []), "exec"), (ast.Expression(last.value), "eval")):
            made = eval(compile(part, "cell", mode, ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), names)
            value = await made if asyncio.iscoroutine(made) else made
        shown.append(value)
    return shown


def test_the_cells_of_the_notebook_run_and_show_trees_and_reports() -> None:
    *_, replies, system, report, link, _ = asyncio.run(run(cells()))
    assert len(replies) == 3
    assert "text/html" not in system._repr_mimebundle_()  # it is closed now
    assert report._repr_html_() is None
    assert link.startswith("http://127.0.0.1:")


def test_a_report_is_drawn_in_a_frame_in_which_nothing_runs() -> None:
    *before, _, _ = cells()
    shown = asyncio.run(run([*before, "replay(recorded(parts[0]))._repr_html_()", "system.close()"]))
    html = shown[-2]
    assert html.startswith("<iframe sandbox srcdoc=")
    assert html.count("<") == 2  # of the frame alone


@pytest.mark.thorough("starts a kernel of Jupyter")
def test_jupyter_runs_the_notebook() -> None:
    client = pytest.importorskip("nbclient", reason="Jupyter is not installed")
    pytest.importorskip("ipykernel", reason="Jupyter is not installed")
    notebook = pytest.importorskip("nbformat").read(NOTEBOOK, as_version=4)
    client.NotebookClient(notebook, timeout=60).execute()
    drawn = [output["data"] for cell in notebook.cells for output in cell.get("outputs", ()) if "data" in output]
    assert sum("text/html" in data for data in drawn) == 2
