"""docs/tutorials/own-vit.md: a timm-like ViT on scikit-learn's digits."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.tutorials.walk import run, walk

torch = pytest.importorskip("torch")
pytest.importorskip("sklearn")
pytest.importorskip("matplotlib")
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def test_the_digits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    printed = walk("own-vit.md", tmp_path)
    text = printed["python digits.py"]
    assert "compared with a forward pass" in text
    found = re.search(r"H: (\d+) errors? of 597", text)
    assert found is not None
    risk = float(re.search(r"^held-out +([0-9.]+)", text, re.MULTILINE)[1])  # type: ignore[index]
    assert int(found[1]) / 597 < risk < int(found[1]) / 597 + 0.05 < 0.5
    mapping = json.loads((tmp_path / "vit.json").read_text())
    assert mapping["architecture"]["heads"] == 4
    assert mapping["architecture"]["eps"] == 1e-6
    wrong = mapping | {"architecture": mapping["architecture"] | {"eps": 1e-5}}  # which files do not say either
    (tmp_path / "wrong.json").write_text(json.dumps(wrong))
    text = run("boundcalc norms vit.pt --mapping wrong.json --compare vit.py:ViT", tmp_path, code=1)
    assert "eps 1e-05" in text
