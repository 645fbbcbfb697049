"""The example that chooses access points runs."""

import runpy
from pathlib import Path


def test_the_example_runs(tmp_path, capsys):
    example = Path(__file__).parents[3] / "examples" / "cellfree_select.py"
    runpy.run_path(str(example))["main"](str(tmp_path / "map.png"), places=20_000)
    said = capsys.readouterr().out
    assert "of the ceiling" in said and "bits about who serves" in said
    assert (tmp_path / "map.png").exists()
