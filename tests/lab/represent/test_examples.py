"""The examples keep their promises."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[3] / "examples"


@pytest.mark.parametrize("name", ["represent_and", "sparse_sample_complexity"])
def test_what_is_promised_is_kept(name: str, tmp_path: Path) -> None:
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    first, second = module.main("tiny", tmp_path)
    assert first.keys() == second.keys()
    assert first
    assert module.PROMISES == "below"
    assert all(first[place] <= second[place] for place in first)
