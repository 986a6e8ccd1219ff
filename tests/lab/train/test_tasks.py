"""Laws of the tasks: checked by counting, with NumPy alone; the torch source must obey the same law."""

from __future__ import annotations

import importlib.util
import itertools
import math
from typing import Any

import numpy as np
import pytest

from boundcalc.lab.train.source import NumpySource, TorchSource, substream
from boundcalc.lab.train.tasks import BooleanTask, MaskedTokenTask

SOURCES = ["numpy", *(["torch"] if importlib.util.find_spec("torch") else [])]
N = 40_000


def source(kind: str, seed: int) -> Any:
    return NumpySource(seed) if kind == "numpy" else TorchSource(seed)


def drawn(task: Any, kind: str, n: int = N, seed: int = 1) -> tuple[dict[str, Any], Any, Any]:
    world = task.world(source(kind, seed))
    x, y = task.sample(world, source(kind, seed + 1), n)
    return world, np.asarray(x), np.asarray(y)


def truth(task: BooleanTask, world: dict[str, Any], x: Any) -> Any:
    rows = np.stack([x[:, c].astype(int) << i for i, c in enumerate(world["coordinates"])]).sum(axis=0)
    return np.array(task.table.table)[rows]


BOOLEAN = [
    BooleanTask(T=9, s=3),
    BooleanTask(T=9, s=3, law="natural"),
    BooleanTask(T=7, s=2, function="parity"),
    BooleanTask(T=8, s=3, function="majority", law="natural"),
    BooleanTask(T=12, function="x0 & ~x5 | x9"),
    BooleanTask(T=6, function="0110"),
    BooleanTask(T=13, s=11, function="majority", law="natural"),  # more bits than a byte counts
]


@pytest.mark.parametrize("kind", SOURCES)
@pytest.mark.parametrize("task", BOOLEAN, ids=lambda t: f"{t.function}-{t.law}")
def test_boolean_laws(task: BooleanTask, kind: str) -> None:
    world, x, y = drawn(task, kind)
    assert set(np.unique(x)) == {0, 1}
    assert len(set(world["coordinates"])) == task.table.arity
    assert (y == truth(task, world, x)).all()
    off = [t for t in range(task.T) if t not in world["coordinates"]]
    sigma = 0.5 / math.sqrt(N)
    assert np.abs(x[:, off].mean(0) - 0.5).max() < 5 * sigma
    positive = 0.5 if task.law == "balanced" else len(task.rows_of(1)) / len(task.table.table)
    assert abs(y.mean() - positive) < 5 * sigma
    # given the label, rows of the truth table are equally likely
    rows = np.sum([x[:, c].astype(int) << i for i, c in enumerate(world["coordinates"])], axis=0)
    for label, table_rows in ((1, task.rows_of(1)), (0, task.rows_of(0))):
        shares = np.array([(rows[y == label] == row).mean() for row in table_rows])
        assert np.abs(shares - 1 / len(table_rows)).max() < 5 * 0.5 / math.sqrt((y == label).sum())


def test_the_check_of_laws_rejects_a_biased_law() -> None:
    """Negative control: a law that forgets to balance is seen."""
    _, _, y = drawn(BooleanTask(T=9, s=3, law="natural"), "numpy")
    assert abs(y.mean() - 0.5) > 5 * 0.5 / math.sqrt(N)


def test_streams_are_told_apart() -> None:
    seeds = {substream(seed, label, k) for seed in range(20) for label in ("train", "test") for k in range(20)}
    assert len(seeds) == 800
    assert max(seeds) < 2**63


@pytest.mark.parametrize("kind", SOURCES)
@pytest.mark.parametrize("alpha", [0.5, 1.5])
def test_masked_tokens_are_those_of_a_dirichlet_law(kind: str, alpha: float) -> None:
    task = MaskedTokenTask(L=20, V=6, alpha=alpha)
    _, x, y = drawn(task, kind, 8000)
    assert (x[:, 0] == 0).all()
    assert x[:, 1:].min() == 1
    assert x.max() == 6
    assert np.abs(np.bincount(y, minlength=6) / 8000 - 1 / 6).max() < 0.02
    for one, other in ((x[:, 1], x[:, 2]), (x[:, 7], y + 1)):  # Polya's urn: two tokens agree so often
        assert abs((one == other).mean() - (alpha + 1) / (6 * alpha + 1)) < 0.025
    h = task.posterior_mean(x)
    assert np.allclose(h.sum(1), 1)
    own = h[np.arange(len(y)), y]
    assert abs(own.mean() - np.square(h).sum(1).mean()) < 0.015  # calibrated: E h_y = E sum h^2
    assert abs((h.argmax(1) != y).mean() - task.bayes_risk().value) < 0.02


def test_longer_masked_inputs_tell_more_about_the_law() -> None:
    """docs/latent.md says so of the masked task: its Bayes risk falls at every length, and how far."""
    risks = [MaskedTokenTask(L=L).bayes_risk() for L in (2, 8, 32, 128, 512)]
    for shorter, longer in itertools.pairwise(risks):
        assert longer.value < shorter.value - 3 * math.hypot(shorter.error, longer.error) / 2
    assert [round(risk.value, 2) for risk in risks[1:]] == [0.78, 0.74, 0.72, 0.72]
