"""The example scripts and the notebook run from top to bottom, and each script needs nothing but its own imports."""

import os
import runpy
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.py"))


@pytest.mark.parametrize("script", EXAMPLES, ids=lambda script: script.stem)
def test_example(script, tmp_path, monkeypatch, capsys, quick_synthesis, repeatable_noise):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [str(script)])
    runpy.run_path(str(script), run_name="__main__")
    assert capsys.readouterr().out.strip()


def test_the_notebook_runs_from_top_to_bottom(tmp_path, monkeypatch):
    """In a real kernel, with the progress bars, summaries and plots that it shows."""
    import nbclient
    import nbformat

    notebook = nbformat.read(Path(__file__).parent.parent / "examples" / "notebook.ipynb", 4)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(cell.outputs == [] and cell.execution_count is None for cell in cells)  # outputs may hold data
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    nbclient.NotebookClient(notebook, timeout=600, resources={"metadata": {"path": tmp_path}}).execute()
    shown = [data for cell in cells for data in (output.get("data", {}) for output in cell.outputs)]
    pages = "\n".join(data.get("text/html", "") for data in shown)
    assert pages.count("<svg") == 3 and "Private data: do not share" in pages  # trajectories, release, synthesis
    assert '<progress value="1.000"' in pages and "drawing trajectories: 100%" in pages
    assert "low_90" in pages and "density_500" in pages and "LINESTRING" in pages
    assert sum("image/png" in data for data in shown) == 2
    said = "\n".join(output.get("text", "") for cell in cells for output in cell.outputs)
    assert "The promise" in said and (tmp_path / "data-sheet.html").exists()


def test_there_are_four():
    assert {script.stem for script in EXAMPLES} >= {"pandas_user", "map_user", "rules_user", "user_level"}
