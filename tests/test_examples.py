"""The example scripts and the notebook run from top to bottom, and each script needs nothing but its own imports."""

import json
import runpy
import shlex
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.py"))


@pytest.mark.parametrize("script", EXAMPLES, ids=lambda script: script.stem)
def test_example(script, tmp_path, monkeypatch, capsys, quick_synthesis):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [str(script)])
    runpy.run_path(str(script), run_name="__main__")
    assert capsys.readouterr().out.strip()


def test_the_notebook_runs_from_top_to_bottom(tmp_path, monkeypatch, capsys, quick_synthesis):
    import matplotlib

    from wayveil.cli.main import main

    notebook = json.loads((Path(__file__).parent.parent / "examples" / "notebook.ipynb").read_text(encoding="utf-8"))
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in cells)  # outputs may hold data
    matplotlib.use("Agg")
    monkeypatch.chdir(tmp_path)
    names = {}
    for cell in cells:
        source = "".join(cell["source"])
        if source.startswith("!wayveil "):
            monkeypatch.setattr(sys, "argv", shlex.split(source[1:].replace("\\\n", " ")))
            with pytest.raises(SystemExit) as stop:
                main()
            assert stop.value.code == 0, source
        else:
            exec(compile(source, "notebook.ipynb", "exec"), names)
    said = capsys.readouterr().out
    assert "The promise" in said and "density_500" in said and len(names["people"]["traj_id"].unique()) == 200
    assert (tmp_path / "data-sheet.html").exists()


def test_there_are_four():
    assert {script.stem for script in EXAMPLES} >= {"pandas_user", "map_user", "rules_user", "user_level"}
