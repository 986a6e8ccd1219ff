"""How to add a figure from outside: a module with `collect`, `draw` and `caption` (this one), and a line in `FIGURES`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

pytest.importorskip("matplotlib")

from boundcalc import Setting, evaluate
from boundcalc.cli import main
from boundcalc.lab.plot import canvas
from boundcalc.lab.plot.data import FigureData, Series
from boundcalc.lab.plot.registry import FIGURES, Entry
from boundcalc.lab.plot.spec import Spec

DEPTHS = (1.0, 2.0)


def collect(spec: Spec) -> FigureData:
    """The gap at some depths."""
    setting = spec.setting or Setting.of(n_train=10**8)
    gaps = tuple(evaluate(setting.but(depth=int(depth))).gap for depth in DEPTHS)
    return FigureData((Series("best", "best", "bound", "gap", DEPTHS, gaps),), {"setting": setting.to_json()}, ())


def draw(spec: Spec, data: FigureData) -> Any:
    """One line."""
    figure = canvas.new_figure(spec.size or "column", 0.8)
    axes = figure.subplots()
    (series,) = data.series
    axes.plot(
        list(series.x),
        [float(y) for y in series.y if y is not None],
        marker="o",
        label=f"{series.label} ({series.kind})",
    )
    axes.set(xlabel="depth", ylabel="gap")
    axes.legend()
    return figure


def caption(spec: Spec, data: FigureData) -> str:
    """What the reader should conclude."""
    del spec
    low, high = data.series[0].y[0], data.series[0].y[-1]
    return f"The bound of the gap goes from {low:.3g} to {high:.3g} with a second block."


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    FIGURES["two-depths"] = Entry("tests.recipes.test_figure", "The gap at two depths.", "none", "setting")
    yield
    del FIGURES["two-depths"]


def test_the_command_draws_it_with_its_data(tmp_path: Path) -> None:
    image = tmp_path / "two.svg"
    result = CliRunner().invoke(main, ["plot", "two-depths", "-o", str(image)])
    assert result.exit_code == 0, result.output
    assert "<svg" in image.read_text(encoding="utf-8")[:2000]
    beside = json.loads((tmp_path / "two.json").read_text(encoding="utf-8"))
    assert "two-depths" in json.dumps(beside)


def test_what_it_does_not_read_is_refused(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["plot", "two-depths", "--repetitions", "20", "-o", str(tmp_path / "two.svg")])
    assert result.exit_code != 0
    assert "two-depths" in result.output
