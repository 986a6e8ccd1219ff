"""Laws of the tasks: what holds of every one, and what each says of its own law, by counting."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

from boundcalc.base.errors import InvalidSetting
from boundcalc.lab.train.source import Source, substream
from boundcalc.lab.train.tasks import (
    TASKS,
    ArraysTask,
    BooleanTask,
    GaussianLinearTask,
    MaskedTokenTask,
    Task,
    task_from_json,
)

N = 40_000


def drawn(task: Task, n: int = N, seed: int = 1) -> tuple[dict[str, Any], Any, Any]:
    """The world, inputs and answers, as NumPy arrays."""
    world = task.world(Source(seed))
    if isinstance(task, ArraysTask):
        x, y, *_ = task.split(world, Source(seed + 1), n, n)
    else:
        x, y = task.sample(world, Source(seed + 1), n)
    return world, np.asarray(x), np.asarray(y)


# ------------------------------------------------------------------------ what holds of every task

FIELDS: dict[str, list[dict[str, Any]]] = {
    "boolean": [{"T": 9, "s": 3}, {"T": 8, "s": 2, "noise": 0.2}, {"T": 7, "function": "x0 & ~x1 | x2"}],
    "gaussian-linear": [{"L": 12, "p": 3, "sigma": 0.4}],
    "masked-token": [{"L": 20, "V": 6}, {"L": 12, "V": 4, "alpha": 1.5, "blur": 0.3}],
    "arrays": [{"path": "tokens.npz"}, {"path": "rows.npz"}],
}
REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"task": "boolean", "T": 4, "s": 5}, "choose s <= T"),
    ({"task": "boolean", "T": 4, "noise": 0.7}, "1/2"),
    ({"task": "boolean", "law": "fair"}, "law"),
    ({"task": "gaussian-linear", "sigma": -1.0}, "sigma"),
    ({"task": "masked-token", "V": 1}, "V"),
    ({"task": "masked-token", "alpha": 0.3}, "multiple of 1/2"),
    ({"task": "masked-token", "V": 5, "blur": 0.1}, "choose an even V"),
    ({"task": "arrays"}, "needs the path"),
    ({"task": "arrays", "path": "tokens.npz", "sha256": "0" * 64}, "has changed"),
]


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 200)
    np.savez("tokens.npz", x=rng.integers(0, 7, (200, 5)), y=y)
    np.savez("rows.npz", x=rng.standard_normal((200, 4, 2)), y=y % 2)


@pytest.mark.parametrize(("name", "fields"), [(name, fields) for name in TASKS for fields in FIELDS[name]])
def test_a_task_survives_json_says_its_shape_and_follows_from_its_seed(
    files: None, name: str, fields: dict[str, Any]
) -> None:
    task = TASKS[name](**fields)
    assert task_from_json(task.to_json()) == task
    shape = task.shape
    (world, x, y), again, other = (drawn(task, 50, seed) for seed in (3, 3, 8))
    sizes = {"bits": (shape.rows - 1,), "tokens": (shape.rows,), "rows": (shape.rows, shape.width)}
    assert x.shape == (50, *sizes[shape.inputs])
    assert y.shape == (50,)
    if shape.inputs != "rows":
        assert 0 <= x.min() <= x.max() < (2 if shape.inputs == "bits" else shape.vocabulary)
    if shape.answer != "real":
        assert 0 <= y.min() <= y.max() < (2 if shape.answer == "binary" else shape.classes)
    assert world == again[0]
    assert (x == again[1]).all()
    assert (y == again[2]).all()
    assert (x != other[1]).any()


@pytest.mark.parametrize(("fields", "words"), REFUSED, ids=str)
def test_a_task_that_makes_no_sense_is_refused(files: None, fields: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidSetting, match=words):
        task_from_json(fields)


@pytest.mark.parametrize("path", ["tokens.npz", "rows.npz"])
def test_every_example_of_a_file_is_trained_on_or_tested_on(files: None, path: str) -> None:
    task = ArraysTask(path=path)
    x, y, x_test, y_test = task.split(task.world(Source(5)), Source(6), 120, 200)

    def rows(x: Any, y: Any) -> list[Any]:
        return [(np.ravel(row).tolist(), int(answer)) for row, answer in zip(x, y, strict=True)]

    assert len(y) == 120
    assert sorted(rows(x, y) + rows(x_test, y_test)) == sorted(rows(task.data[0].astype(x.numpy().dtype), task.data[1]))


def test_streams_are_told_apart() -> None:
    seeds = {substream(seed, label, k) for seed in range(20) for label in ("train", "test") for k in range(20)}
    assert len(seeds) == 800
    assert max(seeds) < 2**63


# ------------------------------------------------------------------------ what each law is


def row_of_table(world: dict[str, Any], x: Any) -> Any:
    """The row of the truth table that each sequence shows on the hidden bits."""
    return np.sum([x[:, c].astype(int) << i for i, c in enumerate(world["coordinates"])], axis=0)


BOOLEAN = [
    BooleanTask(T=9, s=3),
    BooleanTask(T=9, s=3, law="natural"),
    BooleanTask(T=7, s=2, function="parity"),
    BooleanTask(T=8, s=3, function="majority", law="natural"),
    BooleanTask(T=12, function="x0 & ~x5 | x9"),
    BooleanTask(T=6, function="0110"),
    BooleanTask(T=13, s=11, function="majority", law="natural"),  # more bits than a byte counts
    BooleanTask(T=8, s=2, noise=0.2),
]


@pytest.mark.parametrize("task", BOOLEAN, ids=lambda t: f"{t.function}-{t.law}-{t.s}")
def test_boolean_laws(task: BooleanTask) -> None:
    world, x, y = drawn(task)
    assert len(set(world["coordinates"])) == task.table.arity
    rows, sigma = row_of_table(world, x), 0.5 / math.sqrt(N)
    clean = np.array(task.table.table)[rows]
    assert abs((y != clean).mean() - task.noise) <= 10 * task.noise * sigma
    off = [t for t in range(task.T) if t not in world["coordinates"]]
    assert np.abs(x[:, off].mean(0) - 0.5).max() < 5 * sigma
    positive = 0.5 if task.law == "balanced" else len(task.rows_of(1)) / len(task.table.table)
    assert abs(clean.mean() - positive) < 5 * sigma
    for label in (0, 1):  # given the label, rows of the truth table are equally likely
        shares = np.array([(rows[clean == label] == row).mean() for row in task.rows_of(label)])
        assert np.abs(shares - 1 / len(shares)).max() < 5 * 0.5 / math.sqrt((clean == label).sum())


def test_the_check_of_laws_rejects_a_biased_law() -> None:
    """Negative control: a law that forgets to balance is seen."""
    _, _, y = drawn(BooleanTask(T=9, s=3, law="natural"))
    assert abs(y.mean() - 0.5) > 5 * 0.5 / math.sqrt(N)


def test_values_are_linear_in_keys_with_a_latent_of_its_own_for_every_sequence() -> None:
    """The posterior mean (ridge regression with the noise's precision) errs by the posterior variance, in the mean."""
    task = GaussianLinearTask(L=12, p=3, sigma=0.4)
    _, x, y = drawn(task, 20_000)
    keys, values = x[:, 1:, :3].astype(float), x[:, 1:, 3].astype(float)
    covariance = np.linalg.inv(np.eye(3) + np.einsum("nlp,nlq->npq", keys, keys) / task.sigma**2)
    mean = np.einsum("npq,nlq,nl->np", covariance, keys, values) / task.sigma**2
    errors = ((mean * x[:, 0, :3]).sum(-1) - y) ** 2
    risk = task.sigma**2 + np.trace(covariance, axis1=1, axis2=2).mean() / 3
    assert abs(errors.mean() - risk) < 5 * errors.std() / math.sqrt(len(y))


@pytest.mark.parametrize(("alpha", "blur"), [(0.5, 0.0), (1.5, 0.0), (0.5, 0.3)])
def test_masked_tokens_are_those_of_a_dirichlet_law(alpha: float, blur: float) -> None:
    task = MaskedTokenTask(L=20, V=6, alpha=alpha, blur=blur)
    _, x, y = drawn(task)
    assert (x[:, 0] == 0).all()
    assert x[:, 1:].min() == 1
    assert np.abs(np.bincount(y, minlength=6) / N - 1 / 6).max() < 0.01
    if not blur:
        for one, other in ((x[:, 1], x[:, 2]), (x[:, 7], y + 1)):  # Polya's urn: two tokens agree so often
            assert abs((one == other).mean() - (alpha + 1) / (6 * alpha + 1)) < 0.013
    said = task.posterior_mean(x) @ task.channel.T
    assert np.allclose(said.sum(1), 1)
    own = said[np.arange(N), y]
    assert abs(own.mean() - np.square(said).sum(1).mean()) < 0.01  # calibrated: E h_y = E sum h^2


def test_longer_masked_inputs_tell_more_about_the_law() -> None:
    """docs/latent.md says so of the masked task: its Bayes risk falls at every length, and how far."""
    risks: list[float] = []
    for length in (2, 8, 32, 128, 512):
        task = MaskedTokenTask(L=length)
        risks.append(float((1 - task.posterior_mean(drawn(task, 4000)[1]).max(1)).mean()))
    for shorter, longer in itertools.pairwise(risks):
        assert longer < shorter
    assert risks[1:] == pytest.approx([0.78, 0.74, 0.72, 0.72], abs=0.01)
