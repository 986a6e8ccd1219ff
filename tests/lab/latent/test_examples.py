"""The examples at tiny scale: what they predict lies above what they measure."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

FOLDER = Path(__file__).resolve().parents[3] / "examples"


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def held(predicted: dict[object, float], measured: dict[object, float]) -> bool:
    return predicted.keys() == measured.keys() and all(predicted[key] >= measured[key] for key in measured)


def test_inference() -> None:
    example = load("latent_inference")
    assert example.identity() < 1e-10
    predicted, measured = example.main("tiny")
    assert len(predicted) == 7 * 6
    assert held(predicted, measured)
    assert not held({key: 0.1 * value for key, value in predicted.items()}, measured)


def test_transfer() -> None:
    predicted, measured = load("latent_transfer").main("tiny")
    assert len(predicted) == 7
    assert held(predicted, measured)
    assert not held({key: 0.05 * value for key, value in predicted.items()}, measured)


def test_learning(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    predicted, measured = load("latent_learning").main("tiny", tmp_path)
    assert len(set(predicted.values())) == 1
    assert held(predicted, measured)
