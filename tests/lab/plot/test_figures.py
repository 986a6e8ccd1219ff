"""Figures say what they are: kinds, intervals, vacuous stretches, axes; and every check can fail."""

from __future__ import annotations

import math
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("matplotlib")

from boundcalc import evaluate
from boundcalc.base.confidence import clopper_pearson
from boundcalc.base.errors import InvalidSetting
from boundcalc.engine.tightness import ladder
from boundcalc.formulas.theorems import BOUNDS
from boundcalc.lab.plot import breakdown, canvas, gap, provenance, render
from boundcalc.lab.plot.alt import alt_text
from boundcalc.lab.plot.data import FigureData, Series, contradictions, normalised, refuse_mixture
from boundcalc.lab.plot.registry import FIGURES
from boundcalc.lab.plot.spec import Spec
from boundcalc.lab.plot.style import LOOKS, SIZES, house_style
from boundcalc.lab.plot.words import short
from boundcalc.setting import Setting
from tests.lab.plot import looks, trials

SETTING = Setting.of("edelman", depth=1, seq_len=64)
VALUES = {
    "gap-vs-m": (100.0, 1e4, 1e6, 1e8),
    "gap-vs-T": (16.0, 64.0, 256.0),
    "gap-vs-depth": (1.0, 2.0, 3.0),
    "gap-vs-C": (0.5, 1.0, 2.0),
    "breakdown": (1.0, 2.0),
    "sample-complexity": (32.0, 64.0),
    "gap-slopes": (250.0, 500.0),
    "norms-vs-s": (1.0, 2.0, 3.0, 4.0),
    "posterior-contraction": (4.0, 64.0, 256.0),
    "attention-error": (8.0, 64.0, 128.0, 256.0),
    "attention-smooth": (8.0, 64.0, 256.0),
    "minimality": (1.0, 20.0),
    "desired": (30.0, 100.0),
    "pretext": (20.0,),
    "attention-mass": (20.0,),
}


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("stores")
    parity = [trials.record("parity", T=8, m=0, seed=s, wrong=1) for s in range(4)]
    return {
        "m": trials.write(folder / "m.json", trials.over_m()),
        "certified": trials.write(folder / "certified.json", trials.certified()),
        "T": trials.write(folder / "T.json", trials.over_lengths()),
        "parity": trials.write(folder / "parity.json", parity),
        "growth": trials.write(folder / "growth.json", trials.over_parities()),
        "laws": trials.write(folder / "laws.json", trials.over_laws()),
        "L": trials.write(folder / "L.json", trials.over_inputs()),
        "steps": trials.write(folder / "steps.json", trials.over_steps()),
    }


def spec_of(name: str, stores: dict[str, str], **changes: Any) -> Spec:
    stored = {
        "parity": "parity",
        "parity-growth": "growth",
        "sample-laws": "laws",
        "attention": "T",
        "norms": "T",
        "sample-complexity": "T",
        "tightness": "m",
    }
    store = (stored | {"gap-vs-L": "L", "overlay": "certified"}).get(name)
    given: dict[str, Any] = {"values": VALUES.get(name, ()), "bounds": ("best", "published"), "repetitions": 20}
    if store is not None:
        given |= {"store": stores[store], "values": (1e4, 1e6, 1e8) if name == "overlay" else ()}
    if name == "gap-slopes":  # trains as it is made
        given["repetitions"] = 10
    if name == "breakdown":  # shows one bound
        given["bounds"] = ("best",)
    read = {field: value for field, value in given.items() if field in FIGURES[name].fields}
    return Spec(name, **(read | changes))


@pytest.fixture(scope="module")
def collected(stores: dict[str, str]) -> dict[str, tuple[Spec, FigureData]]:
    """Every figure's data, computed once."""
    found = {name: spec_of(name, stores) for name in FIGURES}
    return {name: (spec, render.collect(spec)) for name, spec in found.items()}


@pytest.mark.parametrize("name", FIGURES)
@pytest.mark.parametrize("size", SIZES)
def test_nothing_is_clipped_or_covered_and_every_label_says_its_kind(
    name: str, size: str, collected: dict[str, tuple[Spec, FigureData]]
) -> None:
    spec, data = collected[name]
    figure = render.draw(spec.but(size=size), data)
    assert figure.get_size_inches()[0] == pytest.approx(SIZES[size][0])
    assert looks.misplaced(figure) == []
    assert looks.unnamed_kinds(figure) == []
    assert looks.mislabelled(figure) == []
    assert looks.too_small(figure) == []
    assert looks.in_the_band(figure) == []
    assert all(axes.get_xlabel() for axes in figure.axes)
    assert render.caption(spec, data)


def test_the_checks_of_looks_can_fail(collected: dict[str, tuple[Spec, FigureData]]) -> None:
    spec, data = collected["gap-vs-m"]
    figure = render.draw(spec, data)
    figure.text(1.1, 0.5, "far away")
    assert any("leaves" in text for text in looks.misplaced(figure))
    figure = render.draw(spec, data)
    figure.axes[0].legend(["no kind"])
    figure.legends.append(figure.axes[0].get_legend())
    assert looks.unnamed_kinds(figure) == ["no kind"]
    figure = render.draw(spec, data)
    assert looks.mislabelled(figure) == []
    name = next(t for t in figure.axes[0].texts if t.get_gid() == "name:least of all proofs")
    name.set_gid("name:published constants")
    name.set_fontsize(6)
    assert len(looks.mislabelled(figure)) == 1
    assert len(looks.too_small(figure)) == 1
    figure.axes[0].plot([1e3, 1e6], [1.1, 1.1], gid="gap:best:bound")
    assert looks.in_the_band(figure) == ["gap:best:bound"]
    figure.legends[0].set_title("a\nlegend\nof\nmany\nlines\nthat\ntakes\nmuch")
    assert any("of the height" in text for text in looks.misplaced(figure))
    figure.axes[0].legend(["no kind"])
    figure.legends.append(figure.axes[0].get_legend())
    assert "the legend covers an axis" in looks.misplaced(figure)


@pytest.mark.parametrize("name", ["gap-vs-m", "gap-vs-T", "gap-vs-depth", "gap-vs-C"])
@pytest.mark.parametrize("quantity", ["gap", "risk"])
@pytest.mark.parametrize("uncapped", [False, True])
def test_numbers_drawn_are_those_of_evaluate(name: str, quantity: str, uncapped: bool) -> None:
    values = VALUES[name][:3]
    spec = Spec(name, SETTING, values, ("best", "closed"), (quantity,), uncapped=uncapped)
    data = render.collect(spec)
    figure = render.draw(spec, data)
    field = gap.AXES[name].field
    for series in data.series:
        shown = looks.drawn(figure, series)
        for x in values:
            value = evaluate(SETTING.but(**{field: x if field == "C" else round(x)}), series.key)
            empty = value.vacuous if quantity == "gap" else value.risk_refusal is not None or value.risk_vacuous
            if empty and not uncapped:  # the band that says nothing
                assert x not in shown
                continue
            if value.trivial if quantity == "gap" else value.risk_refusal is not None or value.risk_trivial:
                assert x not in shown
                continue
            capped = value.gap if quantity == "gap" else value.risk
            log10 = value.log10 if quantity == "gap" else value.log_risk / math.log(10)
            expected = 10**log10 if uncapped and log10 > 0 else capped
            assert shown[x] == pytest.approx(expected, rel=1e-12)


def test_vacuous_stretches_are_dashed_uncapped_and_the_check_can_fail() -> None:
    spec = Spec("gap-vs-m", SETTING, VALUES["gap-vs-m"], ("closed", "published"), uncapped=True)
    data = render.collect(spec)
    assert any(any(s.vacuous) and not all(s.vacuous) for s in data.series)
    figure = render.draw(spec, data)
    assert looks.solid_where_vacuous(figure, data) == []
    rest = looks.by_gid(figure)["gap:closed:bound:vacuous"][0]
    assert rest.is_dashed()
    line = looks.by_gid(figure)["gap:closed:bound"][0]
    line.set_ydata([0.5] * len(line.get_xdata()))  # drawn through
    (closed,) = [s for s in data.series if s.key == "closed"]
    drawn_through = [f"closed at {x:g}" for x, vacuous in zip(closed.x, closed.vacuous, strict=True) if vacuous]
    assert looks.solid_where_vacuous(figure, data) == drawn_through != []


def test_a_curve_vacuous_everywhere_is_named_in_the_band_alone() -> None:
    spec = Spec("gap-vs-m", SETTING, (10.0, 1e7), ("best", "published"))
    figure = render.draw(spec, render.collect(spec))
    (band,) = [text for text in figure.axes[0].texts if text.get_gid() == "band"]
    assert " ".join(band.get_text().split()) == "says nothing (everywhere: published constants)"
    said = [text.get_text() for legend in figure.legends for text in legend.get_texts()]
    assert not any("published" in text for text in said)
    uncapped = render.draw(spec.but(uncapped=True, values=(10.0,), bounds=("published",)), render.collect(spec))
    assert looks.by_gid(uncapped)["gap:published:bound"][0].is_dashed()


@pytest.mark.parametrize("m", [10.0, 1e8])
def test_a_lone_point_has_a_mark(m: float) -> None:
    """No line shows it; vacuous ones are hollow, and drawn uncapped alone."""
    spec = Spec("gap-vs-m", SETTING, (m,), ("closed",), uncapped=m == 10)
    artists = looks.by_gid(render.draw(spec, render.collect(spec)))
    drawn = artists["gap:closed:bound:vacuous" if m == 10 else "gap:closed:bound"][0]
    assert drawn.get_marker() not in (None, "None", "")
    assert drawn.get_markevery() == [0]
    assert (drawn.get_markerfacecolor() == "white") == (m == 10)


def test_the_band_that_says_nothing_begins_at_1(collected: dict[str, tuple[Spec, FigureData]]) -> None:
    spec, data = collected["gap-vs-m"]
    figure = render.draw(spec, data)
    artists = looks.by_gid(figure)
    assert list(artists["trivial"][0].get_ydata()) == [1.0, 1.0]
    (band,) = artists["says nothing"]
    top = figure.axes[0].get_ylim()[1]
    assert (band.get_y(), band.get_y() + band.get_height()) == pytest.approx((1, top))
    low = figure.axes[0].get_ylim()[0]
    share = math.log(top) / math.log(top / low)
    assert 0.05 < share < 0.25  # quiet: no space is wasted on it


def test_measured_gaps_are_those_of_the_store(stores: dict[str, str]) -> None:
    spec = Spec("gap-vs-m", values=(12.0, 1e6), bounds=("best",), store=stores["m"], norms="runs")
    data = render.collect(spec)
    (seen,) = data.of(kind="measured")
    assert seen.x == (12, 24, 48, 96)
    assert seen.y == pytest.approx((380 / 1000, 100 / 1000, 5 / 1000, 0))
    assert seen.count == (2, 2, 2, 2)
    assert (seen.low[1], seen.high[1]) == pytest.approx(clopper_pearson(100, 1000))
    assert len(data.trials) == 8
    figure = render.draw(spec, data)
    artists = looks.by_gid(figure)
    assert list(artists["gap:measured:measured"][0].get_ydata()) == pytest.approx(seen.y[:3])
    bars = figure.axes[0].containers[0].lines[2][0].get_segments()
    assert [bar[0, 1] for bar in bars] == pytest.approx(seen.low[:3])
    assert [bar[1, 1] for bar in bars] == pytest.approx(seen.high[:3])
    none = artists["gap:measured:measured:none"][0]  # nothing seen at m = 96: the upper end, pointing down
    assert (none.get_marker(), list(none.get_ydata())) == ("v", pytest.approx([clopper_pearson(0, 1000)[1]]))


def test_bounds_at_trained_norms_are_marks_of_their_own(stores: dict[str, str]) -> None:
    spec = Spec("gap-vs-m", values=(12.0, 1e6), bounds=("best",), store=stores["m"], norms="runs")
    data = render.collect(spec)
    (paid,) = data.of(kind="a_posteriori")
    figure = render.draw(spec, data)
    artists = looks.by_gid(figure)
    assert "gap:closed:a_posteriori:vacuous" not in artists  # which would be on 1, or in the band
    apart = looks.by_gid(render.draw(spec.but(uncapped=True), data))
    hollow = apart["gap:closed:a_posteriori:vacuous"][0]
    assert (hollow.get_linestyle(), hollow.get_marker(), hollow.get_markerfacecolor()) == ("None", "d", "white")
    assert artists["gap:best:bound"][0].get_marker() != "d"
    assert all(paid.vacuous)  # a dozen examples prove nothing
    telling = replace(paid, y=(0.5,) * 4, log10=(-0.3,) * 4)
    other = replace(data, series=tuple(telling if s is paid else s for s in data.series))
    full = looks.by_gid(render.draw(spec, other))["gap:closed:a_posteriori"][0]
    assert full.get_markerfacecolor() != "white"


def test_the_class_of_the_trials_holds_each_of_them(stores: dict[str, str]) -> None:
    from boundcalc.lab.plot import measured, runs

    spec = Spec("gap-vs-m", store=stores["m"], norms="runs")
    records = runs.read(spec)
    setting = measured.setting_of(records, spec, SETTING)
    assert not setting.norms.measured
    for record in records:
        for key, budget in record.result["norms"]["budgets"].items():
            kind, _, place = key.partition("[")
            held = setting.norms.find(kind, int(place[0]) if place else None)
            assert held.op is None or held.op >= budget["op"]


def _series(kind: str, label: str, y: tuple[float, ...] = (0.5, 0.2), quantity: str = "gap") -> Series:
    return Series(label, label, kind, quantity, (1.0, 2.0), y, tuple(math.log10(v) for v in y), panel=quantity)


def test_proxies_share_no_absolute_axis_with_bounds() -> None:
    bound, proxy, seen = _series("bound", "b"), _series("proxy", "p", (1e9, 1e12)), _series("measured", "s")
    refuse_mixture([bound, seen])  # the control: without a proxy nothing is wrong
    refuse_mixture([proxy])
    for other in (bound, seen, _series("a_posteriori", "a")):
        with pytest.raises(InvalidSetting, match="cannot share an absolute axis"):
            refuse_mixture([proxy, other])
    with house_style():
        figure = canvas.new_figure("column", 0.8)
        with pytest.raises(InvalidSetting, match="cannot share"):
            canvas.draw_all(figure.subplots(), [bound, proxy], canvas.Heights())


def test_a_proxy_gets_a_normalised_axis_of_its_own() -> None:
    data = FigureData((_series("bound", "best"), _series("proxy", "p", (1e9, 1e12))))
    figure = render.draw(Spec("gap-vs-m", SETTING), data)
    left, right = figure.axes
    assert "proxy" in right.get_ylabel()
    assert list(looks.by_gid(figure)["gap:p:proxy"][0].get_ydata()) == pytest.approx([1, 1000])
    assert looks.by_gid(figure)["gap:p:proxy"][0].axes is right
    assert looks.by_gid(figure)["gap:best:bound"][0].axes is left
    assert any("proxy, ~" in text.get_text() for text in figure.legends[0].get_texts())
    assert normalised(_series("proxy", "p", (2e300, 4e300))).y == pytest.approx((1, 2))


def test_different_quantities_share_no_axis() -> None:
    with pytest.raises(InvalidSetting, match="different quantities"):
        refuse_mixture([_series("bound", "a"), _series("bound", "b", quantity="risk")])
    spec = Spec("gap-vs-m", SETTING, (1e5, 1e6), ("best",), ("gap", "risk"))
    assert [axes.get_ylabel() for axes in render.draw(spec, render.collect(spec)).axes] == list(gap.YLABELS.values())


def test_values_beyond_floats_are_drawn_as_exponents() -> None:
    series = Series("best", "best", "bound", "gap", (1.0, 2.0), (1.0, 1.0), (5.0, 800.0), panel="gap")
    figure = render.draw(Spec("gap-vs-depth", SETTING, uncapped=True), FigureData((series,)))
    assert looks.drawn(figure, series) == {1.0: 5.0, 2.0: 800.0}
    figure.draw_without_rendering()
    assert any("10^{" in label.get_text() for label in figure.axes[0].get_yticklabels())
    capped = render.draw(Spec("gap-vs-depth", SETTING), FigureData((series,)))
    assert looks.drawn(capped, series) == {}


def test_constants_are_the_ladder() -> None:
    spec = Spec("constants", SETTING)
    data = render.collect(spec)
    rungs = list(ladder(SETTING))
    artists = looks.by_gid(render.draw(spec, data))
    for row in range(1, len(rungs) - 1):
        bar = artists[f"rung:{row}"][0]
        ends = sorted((bar.get_x(), bar.get_x() + bar.get_width()))
        assert ends == pytest.approx(sorted((10 ** rungs[row].log10, 10 ** rungs[row - 1].log10)))
    (risk,) = artists[f"rung:{len(rungs) - 1}"]  # another quantity, on an axis of its own
    assert (risk.axes.get_xlabel(), list(risk.get_xdata())) == (
        "risk bound at training error 0",
        pytest.approx([10 ** rungs[-1].log10]),
    )


def test_breakdown_stacks_what_the_checker_confirmed() -> None:
    spec = Spec("breakdown", SETTING.but(n_train=10**7), (1, 3))
    data = render.collect(spec)
    figure = render.draw(spec, data)
    value = evaluate(SETTING.but(n_train=10**7, depth=3))
    tops = [bar.get_y() + bar.get_height() for bars in figure.axes[0].containers for bar in bars.patches]
    assert max(tops) == pytest.approx(100)
    for series in data.of(panel="block"):
        for block, share in zip(series.x, series.y, strict=True):
            assert share == pytest.approx(value.pieces[f"{series.key}[{round(block) - 1}]"])
    parts = value.breakdown
    assert data.facts["values"][-1]["gap"] == pytest.approx(float(parts.value), rel=1e-6)
    assert breakdown.setting_of(Spec("breakdown")).sample.n_train == 10**8


def test_sample_complexity_and_what_it_stands_between(collected: dict[str, tuple[Spec, FigureData]]) -> None:
    spec, data = collected["sample-complexity"]
    (seen,) = data.of(kind="measured")
    floor = next(s for s in data.series if s.key == "floor")
    best = next(s for s in data.series if s.key == "best")
    for i in range(len(seen.x)):
        assert (floor.y[i] or 0) < (seen.y[i] or 0) < (best.y[i] or 0)
    m, T = round(best.y[0] or 0), round(best.x[0])
    setting = Setting.from_json(data.facts["setting"]).but(seq_len=T + 1, delta=1 - spec.share, train_error=0.0)
    assert evaluate(setting.but(n_train=m)).risk <= spec.target < evaluate(setting.but(n_train=round(0.98 * m))).risk
    assert {s.key for s in data.of(kind="fit")} == {"second", "third", "fourth"}


def test_tightness_is_samples_asked_for_over_samples_used(collected: dict[str, tuple[Spec, FigureData]]) -> None:
    spec, data = collected["tightness"]
    setting = Setting.from_json(data.facts["setting"])
    (seen,) = data.of(kind="measured")
    used = {y: m for m, y in seen.known().items()}
    best = next(s for s in data.of(panel="ratio") if s.key == "best")
    assert set(best.x) == {380 / 1000, 100 / 1000, 5 / 1000}  # where no error was seen there is no gap to promise
    for value, ratio in best.known().items():
        m = round(ratio * used[value])
        assert evaluate(setting.but(n_train=m)).gap <= value < evaluate(setting.but(n_train=round(0.98 * m))).gap
        assert ratio > 1
    assert "samples" in render.caption(spec, data)
    assert all(label in data.of(panel="ratio")[0].label for label in ["least of all proofs"])


def test_what_a_figure_shows_is_told_in_words(collected: dict[str, tuple[Spec, FigureData]], tmp_path: Path) -> None:
    import json

    for name in ("gap-vs-m", "parity", "constants"):
        spec, data = collected[name]
        made = render.save(spec, data, tmp_path / f"{name}.png", "boundcalc plot")
        alt = json.loads(made.record.read_text(encoding="utf-8"))["alt"]
        assert FIGURES[name].about in alt
        assert render.caption(spec, data) in alt
    spec, data = collected["gap-vs-m"]
    best = next(s for s in data.series if s.key == "best")
    alt = alt_text(spec, data, "")
    assert f"least of all proofs from {short(best.y[0] or 0)} at {short(best.x[0])}" in alt or best.y[0] is None
    assert "published constants says nothing" in alt or any(s.telling for s in data.series if s.key == "published")


def test_text_of_an_svg_is_text(collected: dict[str, tuple[Spec, FigureData]], tmp_path: Path) -> None:
    made = render.save(*collected["gap-vs-m"], tmp_path / "a.svg", "boundcalc plot gap-vs-m")
    text = made.image.read_text(encoding="utf-8")
    assert "<text" in text
    assert "training samples m" in text


def test_ticks_that_run_into_each_other_are_seen(collected: dict[str, tuple[Spec, FigureData]]) -> None:
    figure = render.draw(*collected["gap-vs-T"])
    assert looks.misplaced(figure) == []
    many = (16, 20, 24, 28, 32, 40, 48, 56, 80, 128, 192, 256)
    figure.axes[0].set_xticks(many, [f"{m}.0000" for m in many])
    assert any("overlap" in text for text in looks.misplaced(figure))


def test_parity_shows_every_seed_and_its_transition(collected: dict[str, tuple[Spec, FigureData]]) -> None:
    spec, data = collected["parity"]
    figure = render.draw(spec, data)
    assert len(looks.by_gid(figure)["test_error:test_error:measured"]) == 4
    assert data.facts["learned"] == [250, 251, 252, 253]
    assert "4 of 4 trials reach 99%" in render.caption(spec, data)


def test_predictions_lie_above_measurements_and_the_check_can_fail(stores: dict[str, str]) -> None:
    spec = Spec("gap-vs-m", values=(12.0, 24.0, 48.0), bounds=("best",), store=stores["m"], norms="runs")
    data = render.collect(spec)
    assert contradictions(data) == []
    lying = tuple(replace(s, y=tuple(0.05 for _ in s.y)) if s.kind == "bound" else s for s in data.series)
    found = contradictions(replace(data, series=lying))
    assert [c.x for c in found] == [12, 24]
    assert "above the 0.05001 predicted" in str(found[0])
    honest = tuple(replace(s, kind="reference") if s.kind == "bound" else s for s in lying)
    assert contradictions(replace(data, series=honest)) == []  # a reference promises nothing


def test_every_bound_has_a_look_of_its_own_also_in_grey() -> None:
    marks = [LOOKS[name].mark for name in BOUNDS]
    assert len(set(marks)) == len(marks)
    for name in LOOKS:
        red, green, blue = (int(LOOKS[name].colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
        assert 0.2126 * red + 0.7152 * green + 0.0722 * blue < 0.68, f"{name} is too pale on white"


@pytest.mark.parametrize("suffix", [".png", ".pdf", ".svg"])
def test_same_data_same_file_and_from_draws_it_again(
    suffix: str, tmp_path: Path, collected: dict[str, tuple[Spec, FigureData]]
) -> None:
    spec, data = collected["gap-vs-C"]
    first = render.save(spec, data, tmp_path / f"a{suffix}", "boundcalc plot gap-vs-C")
    again = render.save(*provenance.read(first.record)[:2], tmp_path / f"b{suffix}", "boundcalc plot gap-vs-C")
    assert first.image.read_bytes() == again.image.read_bytes()
    other = replace(data, series=data.series[:1])
    changed = render.save(spec, other, tmp_path / f"c{suffix}", "boundcalc plot gap-vs-C")
    assert first.image.read_bytes() != changed.image.read_bytes()


def test_data_that_were_changed_are_refused(tmp_path: Path, collected: dict[str, tuple[Spec, FigureData]]) -> None:
    made = render.save(*collected["gap-vs-C"], tmp_path / "a.png", "boundcalc plot gap-vs-C")
    text = made.record.read_text(encoding="utf-8")
    value = next(y for y in collected["gap-vs-C"][1].series[0].y if y is not None)
    made.record.write_text(text.replace(repr(value), "0.001", 1), encoding="utf-8")
    with pytest.raises(InvalidSetting, match="were changed"):
        provenance.read(made.record)


def test_metadata_inside_the_images(tmp_path: Path, collected: dict[str, tuple[Spec, FigureData]]) -> None:
    from PIL import Image

    spec, data = collected["constants"]
    made = render.save(spec, data, tmp_path / "a.png", "boundcalc plot constants")
    with Image.open(made.image) as image:
        assert "boundcalc plot constants" in image.info["Description"]
    digest = provenance.digest(provenance.record(spec, data, "", "", "")["data"])
    assert digest in render.save(spec, data, tmp_path / "a.svg", "x").image.read_text(encoding="utf-8")
    assert b"/Subject" in render.save(spec, data, tmp_path / "a.pdf", "x").image.read_bytes()
    if shutil.which("pdflatex") is not None:  # pgf carries no metadata, its JSON does
        drawn = render.save(spec, data, tmp_path / "a.pgf", "x").image.read_text(encoding="utf-8")
        assert len(drawn) > 1000
        assert r"\providecommand{\mathdefault}" in drawn  # so that it compiles in any article
    fonts = (tmp_path / "a.pdf").read_bytes()
    assert b"/Type3" not in fonts  # embedded as outlines that editors keep
