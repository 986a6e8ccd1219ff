"""The examples about explicit weights keep their promises, and what they rest on can fail."""

from __future__ import annotations

import importlib.util
import math
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).resolve().parents[3] / "examples"


def module_of(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(Path(name).name, FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["represent_and", "edelman2022/sparse", "edelman2022/deep"])
def test_what_is_promised_is_kept(name: str, tmp_path: Path) -> None:
    module = module_of(name)
    first, second = module.main("tiny", tmp_path)
    assert first.keys() == second.keys()
    assert first
    assert module.PROMISES == "below"
    assert all(first[place] <= second[place] for place in first)


def test_norms_grow_exponentially_for_any_function_and_polynomially_for_symmetric_ones() -> None:
    module = module_of("edelman2022/sparse")
    found = module.growth("full", 64)
    assert 2.0 < module.fitted(found["any function"], exponential=True) < 3.0
    assert 2.2 < module.fitted(found["symmetric"], exponential=False) < 3.0
    assert 1.3 < module.fitted(found["threshold"], exponential=False) < 2.0
    assert found["symmetric"][28.0] < math.prod(module.norms(module.by_corners(10, 64)))
    keys = [module.norms(module.by_corners(3, T))[0] for T in (64, 512, 4096)]
    assert 0.5 < (keys[2] - keys[1]) / (keys[1] - keys[0]) < 1.1  # log T, not a power: each factor of 8 adds as much


def test_blocks_whose_attention_leaks_compute_other_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    module = module_of("edelman2022/deep")
    assert module.least(module.TREES[4.0], 8) > 0.9
    monkeypatch.setattr(module, "LEAK", 2.0)
    assert module.least(module.TREES[4.0], 8) < 0
