"""Figures about sparse functions and latent variables: their numbers are those of the modules they are about."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("matplotlib")

from boundcalc.base.errors import InvalidSetting, NoSolution
from boundcalc.formulas.theorems.attention_bounds import cme_bound
from boundcalc.lab.latent.experiments.infer import InferPlan, errors_at
from boundcalc.lab.latent.experiments.transfer import TransferPlan, transfer
from boundcalc.lab.plot import growth, render
from boundcalc.lab.plot.data import contradictions
from boundcalc.lab.plot.spec import Spec
from tests.lab.plot import looks, trials


def test_the_fit_tells_an_exponential_from_a_power() -> None:
    s = [3.0, 4.0, 6.0, 8.0]
    base = growth._fit("any", s, [7 * 2.5**v for v in s])
    degree = growth._fit("symmetric", s, [7 * v**2.5 for v in s])
    assert base is not None
    assert degree is not None
    assert (base[0], degree[0]) == pytest.approx((2.5, 2.5))
    assert growth._fit("any", [1.0, 2.0, 3.0], [1.0, 2.0, 3.0]) is None  # one place from s = 3 on


def test_errors_of_attention_are_those_of_the_experiment_and_lie_below_their_bounds() -> None:
    import numpy as np

    spec = Spec("attention-error", values=(8, 64, 128), repetitions=40)
    data = render.collect(spec)
    plan = InferPlan(lengths=(8, 64, 128), repetitions=40, taus=(1.0, 0.2, 0.05))
    seen = next(s for s in data.of(panel="ridge") if s.kind == "measured")
    errors = errors_at(plan, 64)["CME, ridge of the bound"][0]
    assert seen.y[1] == pytest.approx(float(np.quantile(errors, 0.95)))
    bound = next(s for s in data.of(panel="ridge") if s.kind == "bound")
    own = cme_bound(64, source=plan.source, smoothness=1.5, kappa=1.0, most=plan.most, delta=plan.delta)
    assert bound.y[1] == own.value
    assert contradictions(data) == []
    lowered = tuple(replace(s, y=tuple(0.01 for _ in s.y)) if s.kind == "bound" else s for s in data.series)
    found = contradictions(replace(data, series=lowered))
    assert {c.bound for c in found} == {s.label for s in data.of(kind="bound")}  # the check can fail
    assert "No bound was exceeded" in render.caption(spec, data)


def test_posteriors_narrow_and_say_how_far_off_they_are() -> None:
    data = render.collect(Spec("posterior-contraction", values=(64, 128, 256), repetitions=100))
    for own in data.of(panel="L", kind="computed"):
        assert own.y[0] == pytest.approx(2 * (own.y[2] or 0), rel=0.1)  # L^-1/2
        seen = next(s for s in data.of(panel="L", kind="measured") if s.key == own.key)
        for deviation, error in zip(own.y, seen.y, strict=True):
            assert error == pytest.approx(deviation, rel=0.3)
    for one in data.of(panel="z"):  # the middle 80% of Beta(1 + ones, 1 + zeros), which closes in on what drew it
        assert all(low < y < high for low, y, high in zip(one.low, one.y, one.high, strict=True))  # type: ignore[operator]
        assert (one.high[-1] or 1) - (one.low[-1] or 0) == pytest.approx(
            2 * 1.2816 * (0.3 * 0.7 / 1024) ** 0.5, rel=0.05
        )


def test_downstream_errors_are_those_of_the_experiment() -> None:
    spec = Spec("kappa", repetitions=10)
    data = render.collect(spec)
    rows = transfer(TransferPlan(repetitions=10))
    induced = next(s for s in data.of(kind="bound") if s.key == "first")
    assert list(induced.y) == [row.bound for row in rows if row.bound is not None]
    assert data.facts["beyond"][0]["bound"] == rows[-1].best_bound
    assert contradictions(data) == []
    figure = render.draw(spec, data)
    assert looks.by_gid(figure)["downstream error:second:bound"][0].get_linestyle() == "-"
    assert "kappa is infinite" in render.caption(spec, data)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("latent")


def test_gaps_over_the_input_size_beside_bounds_with_and_without_log_t(store: Path) -> None:
    spec = Spec("gap-vs-L", store=trials.write(store / "flat.json", trials.over_inputs()))
    data = render.collect(spec)
    flat, grows = data.of(kind="bound")  # of another loss than the errors measured: they have a panel of their own
    assert {flat.panel, grows.panel} == {"growth"}
    assert len(set(flat.log10)) == 1  # X5 does not know L
    assert list(grows.log10) == sorted(set(grows.log10), key=lambda log: log or 0)
    assert [s.x for s in data.of(kind="measured")] == [(8, 32, 64)] * 2
    assert "does not grow" in render.caption(spec, data)
    figure = render.draw(spec, data)
    assert [axes.get_ylabel() for axes in figure.axes] == ["generalization gap"] * 2 + ["bound / its first value"]
    rising = Spec("gap-vs-L", store=trials.write(store / "rising.json", trials.over_inputs(rise=0.1)))
    assert "it grows" in render.caption(rising, render.collect(rising))  # and is not called flat


def test_bounds_that_do_not_hold_for_unbounded_rows_are_proxies_on_an_axis_of_their_own(store: Path) -> None:
    path = trials.write(store / "supervised.json", trials.over_inputs("supervised"))
    spec = Spec("gap-vs-L", store=path, runs={"task": "gaussian-linear"})
    data = render.collect(spec)
    assert data.of(kind="bound") == []
    assert {s.panel for s in data.of(kind="proxy")} == {"growth"}
    figure = render.draw(spec, data)
    last = figure.axes[-1]
    assert last.get_ylabel() == "proxy / its first value"
    assert {artist.axes for name, lines in looks.by_gid(figure).items() if "proxy" in name for artist in lines} == {
        last
    }
    assert looks.by_gid(figure)["ramp gap:zhang2022:proxy"][0].get_ydata() == pytest.approx([1, 1, 1])
    both = trials.write(store / "both.json", trials.over_inputs() + trials.over_inputs("supervised"))
    with pytest.raises(InvalidSetting, match="mix task = "):
        render.collect(Spec("gap-vs-L", store=both, runs={"m": 64}))
    other = trials.write(store / "other.json", trials.over_m())
    with pytest.raises(NoSolution, match="boundcalc latent learn"):
        render.collect(Spec("gap-vs-L", store=other))
    with pytest.raises(NoSolution, match="boundcalc latent learn"):
        render.collect(Spec("gap-vs-L", store=other, runs={"task": "conjunction"}))


@pytest.mark.parametrize("figure", ["attention", "norms"])
def test_over_training_and_layer_by_layer(figure: str, store: Path) -> None:
    spec = Spec(figure, store=trials.write(store / "steps.json", trials.over_steps()))
    data = render.collect(spec)
    assert data.facts["letter"] == "steps"
    assert {s.x for s in data.series if s.panel in ("axis", "op")} == {(1, 10, 100)}
    drawn = render.draw(spec, data)
    assert drawn.axes[0].get_xlabel() == "training steps"
    assert looks.misplaced(drawn) == []
    if figure == "norms":
        deep = [trials.record(depth=3, m=64, seed=seed, size=2.0 + seed) for seed in range(3)]
        data = render.collect(Spec(figure, store=trials.write(store / "deep.json", deep)))
        assert data.facts["letter"] == "block"
        (keys,) = [s for s in data.of(panel="op") if "QK" in s.label]
        assert (keys.x, keys.y, keys.count) == ((1, 2, 3), (3.0,) * 3, (3,) * 3)
        assert not any(s.label == "readout" for s in data.series)  # which is of no block
    mixed = trials.write(store / "mixed.json", [*trials.over_steps(), trials.record(T=32, m=64)])
    with pytest.raises(InvalidSetting, match="differ in T and in steps: choose one, such as --runs steps=1"):
        render.collect(Spec(figure, store=mixed))


def test_thresholds_of_every_law_and_width(tmp_path: Path) -> None:
    store = trials.write(tmp_path / "laws.json", trials.over_laws())
    spec = Spec("sample-laws", store=store, target=0.1)
    data = render.collect(spec)
    assert {(s.panel, s.label) for s in data.series if s.panel in ("natural", "balanced")} == {
        (law, f"s = {s}") for law in ("natural", "balanced") for s in (2, 3)
    }
    by = {(s.panel, s.label): s for s in data.series}
    for law in ("natural", "balanced"):
        few, many = (by[law, f"s = {s}"] for s in (2, 3))
        assert all((a or 0) < (b or 0) for a, b in zip(few.y, many.y, strict=True))
        assert data.facts["growth"][f"{law}, s = 2"] > 0
    seen = next(s for s in data.of(panel="width") if s.kind == "measured")
    assert seen.x == (4.0, 8.0, 16.0)
    assert len({s.y for s in (seen,)}) == 1
    assert seen.y[0] == pytest.approx(seen.y[2], rel=0.05)  # the width changes nothing in these trials
    best = next(s for s in data.of(panel="width") if s.key == "best")
    assert all((a or 0) < (b or 0) for a, b in zip(seen.y, best.y, strict=True))
    assert contradictions(data) == []
    assert "times as many" in render.caption(spec, data)
    narrowed = render.collect(spec.but(runs={"law": "natural", "s": 2}))
    assert {s.panel for s in narrowed.series} == {"natural"}


def test_steps_until_parity_is_learned(tmp_path: Path) -> None:
    spec = Spec("parity-growth", store=trials.write(tmp_path / "p.json", trials.over_parities()))
    data = render.collect(spec)
    two, three = data.of(kind="measured")
    assert (two.x, three.x) == ((8.0, 16.0), (8.0, 16.0))  # nothing is drawn where no seed learns
    assert two.y == (251.0, 251.0)
    assert two.high == (253.0, 253.0)
    assert three.high[1] == 253.0  # a seed that never learns counts as the latest step there is
    text = render.caption(spec, data)
    assert "none by the median at s = 3, T = 32 (0 of 4 learn)" in text
    assert "(2 of 4 seeds learn)" in text


def test_late_generalisation_is_told_from_training_errors(tmp_path: Path) -> None:
    late = trials.write(tmp_path / "late.json", [trials.record("parity", T=8, m=40, seed=s) for s in range(3)])
    spec = Spec("parity", store=late, runs={"m": 40})
    data = render.collect(spec)
    assert data.facts["fitted"] == [0, 0, 0]
    assert {s.quantity for s in data.of(panel="error")} == {"test_error", "train_error"}
    assert render.draw(spec, data).axes[1].get_ylabel() == "error"
    assert "3 trials had no training error left before that" in render.caption(spec, data)
    assert "generalise 250 to 252 steps later" in render.caption(spec, data)
