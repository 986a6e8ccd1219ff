"""Sweeps from Python: columns, refusals, and the closed form over arrays."""

from __future__ import annotations

import numpy as np
import pytest

from boundcalc import Norms, Setting, evaluate
from boundcalc.base.errors import InvalidSetting
from boundcalc.engine.arrays import FIELDS, closed_gap
from boundcalc.engine.sweep import RESULT_COLUMNS, sweep
from boundcalc.setting import Normaliser

SETTINGS = {
    "edelman": Setting.of(depth=2),
    "heads": Setting.of(depth=3, heads=4, d=32, activation="gelu", readout="mean", classes=5),
    "deep": Setting.of(depth=40),
    "sigmoid": Setting.of(depth=1, normaliser=Normaliser("sigmoid")),
    "pre": Setting.of(style="pre", depth=2, causal=True, d_head=16, heads=4, bias=True, normalisation="rmsnorm"),
    "tokens": Setting.of(style="post", depth=1, vocabulary=100, positions="learned", normalisation="layernorm"),
    "gated": Setting.of(style="pre", depth=1, gated=True, activation="silu", rope=True, d_head=16, heads=4),
}


def _points(seed: int) -> dict[str, np.ndarray]:
    random = np.random.default_rng(seed)
    return {
        "n_train": np.floor(10 ** random.uniform(2, 14, 6)),
        "seq_len": np.floor(10 ** random.uniform(0.5, 6, 6)),
        "C": random.uniform(0.3, 4, 6),
        "margin": random.uniform(0.1, 4, 6),
        "delta": random.uniform(0.001, 0.9, 6),
    }


@pytest.mark.parametrize("name", SETTINGS)
def test_arrays_are_the_checked_closed_form_from_above(name: str) -> None:
    setting = SETTINGS[name]
    points = _points(len(name))
    values = closed_gap(setting, **points)
    for i, value in enumerate(values):
        checked = evaluate(setting.but(**{field: column[i].item() for field, column in points.items()}), "closed")
        assert 1 <= value / 10**checked.log10 < 1 + 1e-7


@pytest.mark.parametrize("field", FIELDS)
def test_one_axis_at_a_time_and_broadcasting(field: str) -> None:
    setting = SETTINGS["edelman"]
    column = _points(3)[field]
    alone = closed_gap(setting, **{field: column})
    other = "delta" if field != "delta" else "margin"
    grid = closed_gap(setting, **{field: column[:, None], other: np.array([getattr(setting.sample, other)] * 3)})
    assert grid.shape == (6, 3)
    np.testing.assert_allclose(grid, np.repeat(alone[:, None], 3, axis=1), rtol=1e-12)


def test_an_axis_may_pass_through_a_default() -> None:
    lengths = np.array([8, 512, 4096])
    found = closed_gap(Setting.of(depth=1), seq_len=lengths)
    assert [closed_gap(Setting.of(depth=1, seq_len=int(T)), n_train=[10**6])[0] for T in lengths] == pytest.approx(
        found
    )


@pytest.mark.parametrize("block", [1, 3, 7, 100])
def test_blocks_do_not_show(monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    points = {"n_train": np.geomspace(1e3, 1e9, 50).round()[:, None], "C": np.linspace(0.5, 2, 40)}
    whole = closed_gap(SETTINGS["edelman"], **points)
    monkeypatch.setattr("boundcalc.engine.arrays.BLOCK", block)
    np.testing.assert_allclose(closed_gap(SETTINGS["edelman"], **points), whole, rtol=1e-13)


@pytest.mark.parametrize("shape", [(), (1,), (4, 1), (2, 3, 4), (1, 5, 1)])
def test_axes_of_any_shape(shape: tuple[int, ...]) -> None:
    """Points of any shape, beside an axis of their own for T: each is what it is alone."""
    random = np.random.default_rng(len(shape))
    m, C = np.floor(10 ** random.uniform(2, 9, shape)), random.uniform(0.5, 2, shape[-1:])
    T = np.array([8.0, 512.0])[(...,) + (None,) * max(1, len(shape))]
    found = closed_gap(SETTINGS["edelman"], n_train=m, C=C, seq_len=T)
    alone = np.vectorize(lambda m, C, T: closed_gap(SETTINGS["edelman"], n_train=m, C=C, seq_len=T).item())
    assert found.shape == np.broadcast_shapes(shape, C.shape, T.shape)
    np.testing.assert_allclose(found, alone(m, C, T), rtol=1e-13)


def test_values_beyond_floats_are_infinite_not_wrong() -> None:
    assert closed_gap(Setting.of(depth=300), C=np.array([1.0, 50.0])).tolist()[1] == np.inf


@pytest.mark.parametrize(
    ("values", "needle"),
    [
        ({"n_train": [10, 0]}, "m must lie"),
        ({"n_train": [1.5]}, "whole numbers"),
        ({"delta": [0.1, np.nan]}, "delta"),
        ({"C": [-1.0]}, "C must be"),
        ({"margin": []}, "not empty"),
        ({"depth": [1, 2]}, "n_train, seq_len, C, margin, delta"),
        ({"C": ["1"]}, "array of numbers"),
    ],
)
def test_arrays_of_nonsense_are_refused(values: dict[str, list[float]], needle: str) -> None:
    with pytest.raises(InvalidSetting, match=needle):
        closed_gap(Setting.of(), **values)


def test_arrays_refuse_what_they_cannot_do() -> None:
    with pytest.raises(InvalidSetting, match="measured"):
        closed_gap(Setting.of(norms=Norms(C=1.0, measured=True)), n_train=[10])


def test_columns_are_what_evaluate_says() -> None:
    seen: list[tuple[int, int]] = []
    found = sweep(
        Setting.of(depth=1),
        {"seq_len": np.array([8, 64]), "C": [1.0, 2.0]},
        ["T-free", "closed"],
        progress=lambda done, total: seen.append((done, total)),
    )
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert tuple(found.columns) == ("seq_len", "C", *RESULT_COLUMNS)
    assert len(found) == 8
    assert {len(column) for column in found.columns.values()} == {8}
    for row in found.records():
        setting = Setting.of(depth=1, seq_len=row["seq_len"], C=row["C"])
        assert row["log10_gap"] == evaluate(setting, row["name"]).log10
        assert isinstance(row["seq_len"], int)


def test_points_that_make_no_setting_are_refused_rows() -> None:
    found = sweep(Setting.of(), {"heads": [1, 3]}, ["closed"])
    assert found.columns["refusal"][0] is None
    assert "not divisible" in found.columns["refusal"][1]
    assert found.columns["gap"][1] is None


@pytest.mark.parametrize(
    ("axes", "needle"),
    [
        ({}, "at least one axis"),
        ({"n_train": []}, "no values"),
        ({"n_trian": [1]}, "did you mean 'n_train'"),
        ({"n_train": range(1, 2000), "seq_len": range(1, 2000)}, "10\\^6 points"),
        ({"delta": [0.1, 3]}, "delta must lie"),
    ],
)
def test_absurd_sweeps_are_refused(axes: dict[str, list[float]], needle: str) -> None:
    with pytest.raises(InvalidSetting, match=needle):
        sweep(Setting.of(), axes)
