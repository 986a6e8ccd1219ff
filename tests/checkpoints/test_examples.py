"""The examples run; they need torch, and one of them transformers."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.slow
@pytest.mark.parametrize(("name", "needs"), [("audit_checkpoint", "transformers"), ("norms_over_training", "torch")])
def test_an_example_runs(name: str, needs: str, tmp_path: Path) -> None:
    for library in (needs, "torch"):
        if importlib.util.find_spec(library) is None:
            pytest.skip(f"needs {library}")
    environment = dict(os.environ) | {"PYTHONPATH": str(EXAMPLES.parent), "HF_HUB_OFFLINE": "1"}
    words = [sys.executable, str(EXAMPLES / f"{name}.py")]
    outcome = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert outcome.returncode == 0, outcome.stderr
    assert ("best (a_posteriori): gap <= 10^-" if name == "audit_checkpoint" else "step0200") in outcome.stdout
