"""Every example runs at tiny scale, and what it promises holds; a broken promise is seen."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

pytest.importorskip("matplotlib")

from boundcalc.lab.plot.registry import FIGURES

EXAMPLES = Path(__file__).parents[3] / "examples"
NEED_NO_TRIALS = ("gap_vs_C", "breakdown", "constants")
NAMES = sorted(name.replace("-", "_") for name in FIGURES)


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"examples_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def broken(promises: str, predicted: dict[float, float], measured: dict[float, float]) -> list[float]:
    """Places where a promise is broken."""
    sign = {"above": 1, "below": -1, "": 0}[promises]
    return [at for at in predicted if at in measured and sign * (predicted[at] - measured[at]) < 0]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder, so that examples share the trials they need."""
    return tmp_path_factory.mktemp("examples")


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n in NEED_NO_TRIALS else pytest.mark.slow) for n in NAMES]
)
def test_an_example_keeps_its_promise(name: str, folder: Path) -> None:
    if name not in NEED_NO_TRIALS:
        pytest.importorskip("torch")
    module = load(name)
    predicted, measured = module.main("tiny", folder)
    assert predicted
    assert set(predicted) & set(measured)
    assert broken(module.PROMISES, predicted, measured) == []
    if module.PROMISES:  # the check can fail
        wrong = -1 if module.PROMISES == "above" else 1
        lied = {at: measured[at] + wrong for at in predicted if at in measured}
        assert broken(module.PROMISES, lied, measured)


def test_there_is_an_example_for_every_figure() -> None:
    assert [name for name in NAMES if not (EXAMPLES / f"{name}.py").exists()] == []
