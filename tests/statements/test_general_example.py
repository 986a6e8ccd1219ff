"""The example of general attention: its constant, its covers, and its bound above what members show."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from boundcalc.base.numbers import FLOAT

pytest.importorskip("torch")
pytest.importorskip("matplotlib")


@pytest.fixture(scope="module")
def example() -> ModuleType:
    path = Path(__file__).resolve().parents[2] / "examples" / "general_attention.py"
    spec = importlib.util.spec_from_file_location("general_attention", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_constant_is_right_and_tight(example: ModuleType) -> None:
    found = example.largest_ratio(3000, seed=3)
    assert found <= example.POWER * (1 + 1e-9)
    assert found > 0.97 * example.POWER  # a constant 3% smaller would be false, and seen to be


def test_covers_of_the_matrix_cover_the_scores(example: ModuleType) -> None:
    """What `score_cost` says of a tolerance: matrices this near give scores this near, and hardly nearer."""
    rng = np.random.default_rng(0)
    worst = 0.0
    inside = 1 + example.C_A
    for _ in range(3000):
        eps = 10 ** rng.uniform(-3, 1)
        near = eps * example.TAU / (inside + np.sqrt(inside**2 + eps * example.TAU))
        z = rng.standard_normal(example.D)
        z /= np.linalg.norm(z)
        a = rng.standard_normal((example.D, example.D))
        a *= example.C_A / np.linalg.norm(a, 2)
        if rng.random() < 0.5:  # the worst there is: all in one direction
            a = example.C_A * np.outer(z, z)
        other = a + near * np.outer(z, z @ a / np.linalg.norm(z @ a))
        x = -(z @ a) / np.linalg.norm(z @ a)
        moved = abs(np.square(x - z @ a).sum() - np.square(x - z @ other).sum()) / example.TAU
        worst = max(worst, moved / eps)
        assert moved <= eps * (1 + 1e-9)
    assert worst > 0.99
    assert example.score_cost(FLOAT, 0.1) > example.score_cost(FLOAT, 0.2) > 0


def test_the_bound_lies_above_members_of_the_class(example: ModuleType, tmp_path: Path) -> None:
    predicted, measured = example.main("tiny", tmp_path)
    assert predicted.keys() == measured.keys()
    assert all(predicted[m] >= measured[m] for m in measured)
    assert predicted[100] > predicted[1000] > example.bound(10**5) > example.bound(10**7)
    assert example.bound(10**5) < 0.1  # and it says something
    assert (tmp_path / "general_attention.png").stat().st_size > 10_000


def test_softmax_tends_to_the_largest_score_as_the_temperature_falls(example: ModuleType) -> None:
    found = example.cooling()
    assert all(away <= most for _, away, most in found)
    assert [away for _, away, _ in found] == sorted((away for _, away, _ in found), reverse=True)
    assert found[-1][1] < 0.01
