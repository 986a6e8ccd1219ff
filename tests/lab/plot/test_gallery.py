"""The gallery in figures/: what stands there is what the code draws, says and computes."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from click.testing import CliRunner

from boundcalc.cli import main
from boundcalc.lab.plot import canvas, gallery, lettering, minimality, provenance, render
from boundcalc.lab.plot.data import FigureData, contradictions, refuse_mixture
from boundcalc.lab.plot.spec import Spec

FIGURES = Path(__file__).parents[3] / "figures"
README = FIGURES.parent / "README.md"
NAMES = sorted(path.stem for path in FIGURES.glob("*.json"))
REDRAWN = "is not what the code draws from its JSON: `boundcalc plot --from figures/NAME.json` draws it again"


def pixels(path: Path) -> Any:
    from PIL import Image

    with Image.open(path) as image:
        return np.asarray(image.convert("RGB"), dtype=np.int16)


def changed(a: Any, b: Any) -> float:
    """The share of pixels that differ visibly."""
    return 1.0 if a.shape != b.shape else float((np.abs(a - b).max(-1) > 12).mean())


def read(name: str) -> tuple[Spec, FigureData, str]:
    return provenance.read(FIGURES / f"{name}.json")


def drawn_alike(name: str) -> bool:
    """Whether this matplotlib is the one the gallery was drawn with: another sets text a little differently."""
    held = json.loads((FIGURES / f"{name}.json").read_text(encoding="utf-8"))
    return held["versions"]["matplotlib"] == provenance.versions()["matplotlib"]


def redraw(name: str, folder: Path) -> Path:
    spec, data, command = read(name)
    return render.save(spec, data, folder / f"{name}.png", command).image


@pytest.mark.parametrize("name", NAMES)
def test_every_picture_is_what_the_code_draws(name: str, tmp_path: Path) -> None:
    if not drawn_alike(name):
        pytest.skip("drawn with another matplotlib")
    image = redraw(name, tmp_path)
    assert changed(pixels(image), pixels(FIGURES / f"{name}.png")) < 1e-5, f"figures/{name}.png {REDRAWN}"


def _other_line(monkeypatch: pytest.MonkeyPatch) -> None:
    own = canvas.draw_curve

    def dotted(axes: Any, *given: Any, **named: Any) -> None:
        own(axes, *given, **named)
        axes.lines[-1].set_linestyle(":")

    monkeypatch.setattr(canvas, "draw_curve", dotted)


def _no_intervals(monkeypatch: pytest.MonkeyPatch) -> None:
    own = canvas.draw_measured
    monkeypatch.setattr(
        canvas, "draw_measured", lambda axes, one, *rest: own(axes, replace(one, low=(), high=()), *rest)
    )


def _names_swapped(monkeypatch: pytest.MonkeyPatch) -> None:
    own = canvas.ends
    swapped = {"least of all proofs": "parameter counting", "parameter counting": "least of all proofs"}

    def named(axes: Any, one: Any, *rest: Any) -> None:
        own(axes, replace(one, label=swapped.get(one.label, one.label)), *rest)

    monkeypatch.setattr(canvas, "ends", named)


def _no_shade(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lettering, "SHADE", "#FFFFFF")


@pytest.mark.parametrize("change", [None, _other_line, _no_intervals, _names_swapped, _no_shade])
def test_a_visible_change_is_seen(change: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: the picture changes by more than is allowed, for each of some small changes of the drawing."""
    name = (
        "overlay" if change is _no_intervals else "gap-vs-m"
    )  # lines, labels and shades of bounds; intervals of trials
    before = pixels(redraw(name, tmp_path))
    if change is not None:
        change(monkeypatch)
    (tmp_path / "after").mkdir()
    share = changed(before, pixels(redraw(name, tmp_path / "after")))
    assert share == 0 if change is None else share > 1e-5


def test_from_draws_the_same_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = "constants"
    again = tmp_path / f"{name}.png"
    words = ["plot", "--from", str(FIGURES / f"{name}.json"), "-o", str(again)]
    monkeypatch.setattr(sys, "argv", ["boundcalc", *words])
    assert CliRunner().invoke(main, words).exit_code == 0
    held = json.loads((FIGURES / f"{name}.json").read_text(encoding="utf-8"))
    if held["versions"] != provenance.versions():
        pytest.skip("drawn with other versions")
    assert again.read_bytes() == (FIGURES / f"{name}.png").read_bytes()
    assert json.loads(again.with_suffix(".json").read_text(encoding="utf-8")) == held


@pytest.mark.parametrize("name", NAMES)
def test_what_is_said_and_promised_follows_from_the_data(name: str) -> None:
    spec, data, command = read(name)
    page = (FIGURES / "README.md").read_text(encoding="utf-8")
    text = render.caption(spec, data)
    assert f"({name}.png)" in page
    assert text in page
    assert command.startswith("boundcalc gallery")
    assert contradictions(data) == []
    for panel in {s.panel for s in data.series if s.kind == "proxy"}:
        refuse_mixture(data.of(panel=panel))


def test_the_text_beside_the_overlay() -> None:
    """Two sentences that say how far apart what is proved and what is seen are, with numbers that can be checked."""
    spec, data, _ = read("overlay")
    text = render.caption(spec, data)
    assert text in " ".join(README.read_text(encoding="utf-8").split())
    assert text.replace("0.1", "").count(". ") == 1
    assert "orders of magnitude" in text
    assert spec.runs["sweep"] == gallery.sweep_name("overlay", quick=False)
    assert (data.facts["task"]["T"], min(data.facts["task"]["m"])) == ([128], 16)
    best = next(s for s in data.of(kind="bound", quantity="risk") if s.key == "best")
    assert (best.x[0], best.x[-1]) == (16, 1e8)
    needed = data.facts["needs"]["best"]
    above = [y for x, y in zip(best.x, best.y, strict=True) if x < needed]
    below = [y for x, y in zip(best.x, best.y, strict=True) if x >= needed]
    assert min(y for y in above if y is not None) > 0.1 >= max(y for y in below if y is not None)
    drawn = {s.key: s for s in data.of(kind="certificate")}
    assert set(drawn) == {"holdout", "p2l", "occam", "pac-bayes", "norms"}
    for held in data.facts["certificates"]:
        assert f"({held['method']}" in text or f"{held['method']}," in text or f"{held['method']})" in text
        for risks, tests in zip(held["risks"], held["test_errors"], strict=True):
            assert len(risks) == 5
            assert all(test <= risk for risk, test in zip(risks, tests, strict=True))
    least = {name: min(one.known().values()) for name, one in drawn.items()}
    assert min(least, key=lambda name: least[name]) == "holdout"


def test_the_gallery_is_whole() -> None:
    plates = {plate.name: plate for plate in gallery.PLATES}
    assert set(NAMES) == set(plates), "figures/ and the gallery differ: `boundcalc gallery` makes what is missing"
    for name, plate in plates.items():
        spec, data, _ = read(name)
        if plate.sweep:
            assert spec.runs["sweep"] == gallery.sweep_name(plate.sweep, quick=False), f"{name} is of another sweep"
            assert data.trials
    readme = README.read_text(encoding="utf-8")
    assert readme.index("figures/overlay.png") < readme.index("## ")  # before anything else


@pytest.mark.parametrize(
    ("name", "place", "options"),
    [
        ("gap-vs-m", 1e6, ["--depth", "1", "--T", "128", "--m"]),
        ("gap-vs-T", 1024.0, ["--m", "1e8", "--T"]),
        ("gap-vs-depth", 4.0, ["--depth"]),
        ("gap-vs-C", 2.0, ["--C"]),
        ("overlay", 1e7, ["--m"]),
    ],
)
def test_numbers_in_the_gallery_are_those_of_eval(name: str, place: float, options: list[str], tmp_path: Path) -> None:
    _, data, _ = read(name)
    if name == "overlay":  # the class of the trials, as the figure holds it
        setting = tmp_path / "setting.json"
        setting.write_text(json.dumps(data.facts["setting"]), encoding="utf-8")
        options = ["--setting", str(setting), *options]
    words = ["eval", *options, f"{place:g}", "--format", "json"]
    outcome = CliRunner().invoke(main, words)
    assert outcome.exit_code == 0, outcome.output
    rows = {row["name"]: row for row in json.loads(outcome.stdout)["results"]}
    quantity = "risk" if name == "overlay" else "gap"
    drawn = data.of(kind="bound", quantity=quantity)
    assert drawn
    for one in drawn:
        at = one.x.index(place)
        value = rows[one.key][quantity]
        if one.y[at] is None:  # trivial: nothing is drawn
            assert rows[one.key][f"{quantity}_trivial" if quantity == "risk" else "trivial"]
            continue
        stale = f"figures/{name}.json: `{one.key}` is another number now: `boundcalc gallery` draws it again"
        same = one.y[at] is None if value is None else one.y[at] == pytest.approx(value, rel=1e-9)
        assert same, stale


def test_a_share_of_nothing_is_drawn_where_it_is() -> None:
    """On an axis from 0 nothing measured is left out, and intervals end where they end."""
    spec, data, _ = read("minimality")
    (axes,) = minimality.draw(spec, data).axes
    lines = {line.get_gid(): line for line in axes.lines}
    measured = data.of(kind="measured")
    assert any(0.0 in one.y for one in measured)
    for one in measured:
        assert list(lines[canvas.gid(one)].get_ydata()) == list(one.y)
    ends = {round(float(y), 9) for bars in axes.collections for y in bars.get_segments()[0][:, 1]}
    assert {round(one.low[0] or 0.0, 9) for one in measured} <= ends
