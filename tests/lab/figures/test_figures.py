"""Figures: the numbers are those of `eval`, the drawing is honest, and a JSON file draws the same image again."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

pytest.importorskip("matplotlib")

from matplotlib.image import imread

from boundcalc import Setting, evaluate
from boundcalc.base.errors import InvalidSetting, NoSolution
from boundcalc.cli import main
from boundcalc.cli._plot import _trials_wanted, drawing
from boundcalc.lab.figures import canvas, gap, names, overlay, runs, trials
from boundcalc.lab.figures.data import Figure, Series, contradictions, read
from boundcalc.lab.train.store import Store
from tests.examples.scripts import load
from tests.lab.figures import trials as made

SCRIPTS = load("", "gallery").SCRIPTS
FOLDER = Path(__file__).parents[3] / "figures"
ONE = Setting.of("edelman", depth=1, seq_len=16)


def run(*words: str) -> Result:
    return CliRunner().invoke(main, ["plot", *words])


def draw(figure: Figure) -> Any:
    with canvas.house_style():
        return drawing(figure)(figure)


def lines(axes: Any) -> dict[str, Any]:
    """Artists by the name that the drawing gave them."""
    return {line.get_gid(): line for line in axes.lines if line.get_gid()}


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return made.store(tmp_path / "runs.db", made.over_m(), certified=True)


# ------------------------------------------------------------------------------------------- what is drawn


@pytest.mark.parametrize(
    ("letter", "values"),
    [
        *(("m", (1e5, 1e7)), ("T", (16.0, 64.0)), ("depth", (1.0, 2.0)), ("C", (0.5, 1.0)), ("d", (8.0, 16.0))),
        *(("heads", (1.0, 4.0)), ("gamma", (0.3, 0.6)), ("delta", (0.01, 0.1))),
    ],
)
def test_bounds_are_those_of_evaluate_on_every_axis(letter: str, values: tuple[float, ...]) -> None:
    setting, field = Setting.of("edelman", depth=1, seq_len=64, n_train=10**8), gap.AXES[letter].field
    drawn = gap.collect(letter, setting, values, ("best", "closed"))
    for one in drawn.series:
        for x, y in one.known().items():
            change: Any = x if letter in ("C", "gamma", "delta") else round(x)
            there = setting.but(**{field: change})
            floor = evaluate(there).floor
            value = floor.value if floor and one.key == "gap-floor" else 10 ** evaluate(there, one.key).log10
            assert y == pytest.approx(value)
    assert {one.key for one in drawn.series if one.known()} == {"best", "closed", "gap-floor"}


def test_vacuous_bounds_are_named_in_the_band_and_not_drawn() -> None:
    figure = gap.collect("m", ONE, (1e2, 1e9), ("best", "published"))
    assert not figure.of(key="published")[0].informative
    assert figure.of(key="published")[0].known()  # its size is in the JSON
    (axes,) = draw(figure).axes
    drawn = lines(axes)
    assert "gap:published:bound" not in drawn
    assert max(drawn["gap:best:bound"].get_ydata()) < 1
    (band,) = [text.get_text() for text in axes.texts if "vacuous" in text.get_text()]
    assert "published constants" in band
    assert "best" not in band


def test_a_title_claims_what_the_numbers_say() -> None:
    flat = gap.collect("T", ONE.but(n_train=10**8), (16.0, 256.0), ("best",))
    assert flat.title == "T = 16 to 256: the best bound stays the same"
    growing = gap.collect("C", ONE.but(n_train=10**8), (0.5, 1.0), ("best",))
    low, high = (value for _, value in growing.series[0].informative)
    assert f"grows {high / low:.3g}-fold" in growing.title
    vacuous = gap.collect("T", ONE.but(n_train=100), (16.0, 256.0), ("published",))
    assert vacuous.title == "Every bound drawn is vacuous, whatever T is"


def test_every_run_is_a_dot_and_runs_without_error_are_hollow_at_their_upper_limit() -> None:
    some = [runs.Run({"m": 10.0}, 0.0, test, 100, True, "") for test in (0.0, 0.1, 0.2)]
    (axes,) = draw(gap.collect("m", ONE, (1e8,), ("best",), some)).axes
    drawn = lines(axes)
    assert sorted(drawn["gap:run:measured:seen"].get_ydata()) == [0.1, 0.2]
    hollow = drawn["gap:run:measured:none"]
    assert hollow.get_ydata()[0] == pytest.approx(some[0].interval(0.05 / 3)[1])
    assert hollow.get_markerfacecolor() == "white"
    assert drawn["gap:median:measured"].get_ydata()[0] == 0.1


def test_a_bound_below_a_run_is_a_contradiction_and_a_proxy_is_not() -> None:
    seen = Series("run", "measured", "gap", (10.0, 20.0), (0.5, 0.2), (0.4, 0.1), (0.6, 0.3))
    false = Series("mine", "bound", "gap", (10.0, 20.0), (0.3, 0.3))
    (text,) = contradictions([seen, false])
    assert "mine at 10" in text
    assert contradictions([seen, Series("mine", "proxy", "gap", (10.0,), (0.3,))]) == []
    assert contradictions([seen, Series("mine", "bound", "risk", (10.0,), (0.3,))]) == []


# ------------------------------------------------------------------------------------------- trials of a store


def test_trials_are_chosen_and_mixtures_refused(tmp_path: Path) -> None:
    path = made.store(tmp_path / "runs.db", [*made.over_m(), made.record(T=8, m=24)])
    every = trials.select(path, {})
    with pytest.raises(InvalidSetting, match="--runs T=16"):
        trials.refuse_mixture(every, "m")
    chosen = trials.select(path, {"T": 16})
    trials.refuse_mixture(chosen, "m")
    assert len(chosen) == 8
    with pytest.raises(NoSolution, match="overlay"):
        trials.select(path, {"task": "parity"})
    with pytest.raises(NoSolution, match="boundcalc sweep"):
        trials.select(tmp_path / "none.db", {})


def test_values_that_choose_trials_are_numbers_where_they_can_be() -> None:
    wanted = _trials_wanted(["T=16", "noise=0", "lr=0.5", "task=0", "name=a"])
    assert wanted == {"T": 16, "noise": 0, "lr": 0.5, "task": "0", "name": "a"}


def test_the_class_of_trials_holds_every_one_of_them(tmp_path: Path) -> None:
    path = made.store(tmp_path / "runs.db", made.over_m(size=3.14159))
    found = trials.class_of(trials.select(path, {}), ONE)
    for kind in ("W_QK", "W_V", "W_1"):
        budget = found.norms.budgets[kind]
        assert budget.op == pytest.approx(3.2)  # two digits, upwards
        assert budget.op is not None
        assert budget.op >= 3.14159


def test_the_overlay_shows_medians_of_certificates_and_says_whose_class_it_is(store: Path) -> None:
    with Store(store, create=False) as opened:
        records = list(opened.records())
    figure = overlay.collect(records, records, ONE, values=(1e5, 1e7))
    by_key = {one.key: one for one in figure.series}
    assert by_key["holdout"].x == (12.0, 24.0, 48.0, 96.0)
    risks = [3.0 * (1 + seed / 9) / 96 for seed in (0, 1)]
    assert by_key["holdout"].y[-1] == pytest.approx(sum(risks) / 2)
    assert (by_key["holdout"].low[-1], by_key["holdout"].high[-1]) == pytest.approx(risks)
    assert set(by_key["occam"].y) == {1.0}  # refused
    assert figure.facts["needs"]["best"] > 1e4
    assert by_key["best"].informative
    (axes,) = draw(figure).axes
    assert any("chosen after" in text.get_text() for text in axes.texts)
    assert "risk:occam:certificate" not in lines(axes)
    with pytest.raises(NoSolution, match="--certify"):
        overlay.collect(records, [], ONE)


def test_a_risk_is_bounded_where_a_trained_network_meets_its_premise(store: Path) -> None:
    """Their smallest training margin is 1.5: at gamma = 2 none is known whose training error at gamma is 0."""
    records = trials.select(store, {})
    for gamma, met in ((1.0, True), (2.0, False)):
        setting = trials.class_of(records, ONE.but(margin=gamma))
        assert (setting.sample.measured == ("train_error",)) == met
        (best,) = gap.curves(setting, "n_train", (1e9,), ("best",), "risk")
        assert (best.y[0] is not None) == met
        assert best.promises


# ------------------------------------------------------------------------------------------- files and the command


@pytest.mark.parametrize("suffix", [".png", ".pdf", ".svg"])
def test_a_json_draws_the_same_file_again(suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("gap-vs-C", "--sweep", "C=0.5,1", "--bound", "best", "-o", f"a{suffix}").exit_code == 0
    assert run("--from", "a.json", "-o", f"b{suffix}").exit_code == 0
    assert Path(f"a{suffix}").read_bytes() == Path(f"b{suffix}").read_bytes()
    assert not Path("b.json").exists()


def test_measured_trials_stand_beside_bounds_of_their_class(store: Path, tmp_path: Path) -> None:
    image = tmp_path / "a.png"
    words = ("--store", str(store), "--sweep", "m=1e3,1e8", "--bound", "best", "-o", str(image))
    assert run("gap-vs-m", *words, "--norms-from", "runs").exit_code == 0
    found = read(image.with_suffix(".json"))
    assert found.of(key="median")[0].x == (12.0, 24.0, 48.0, 96.0)
    assert "chosen after training" in found.facts["note"]
    outcome = run("overlay", *words[:4], "-o", str(tmp_path / "b.png"))
    assert outcome.exit_code == 0, outcome.output


# ------------------------------------------------------------------------------------------- figures/


@pytest.mark.parametrize("name", list(SCRIPTS))
def test_committed_pictures_are_what_the_code_draws(name: str, tmp_path: Path) -> None:
    figure = read(FOLDER / f"{name}.json")
    folder, script = SCRIPTS[name][0].removesuffix(".py").split("/")
    canvas.save(figure, load(folder, script).draw, tmp_path / "again.png")
    again, kept = imread(tmp_path / "again.png"), imread(FOLDER / f"{name}.png")
    assert again.shape == kept.shape, f"python examples/gallery.py --redraw --only {name} draws it again"
    assert abs(again - kept).mean() < 0.01
    assert contradictions(figure.series) == []


def differing(kept: Figure, again: Figure) -> list[str]:
    """Where numbers that were computed again, perhaps at fewer places, are not those that were kept."""
    found = [f"{one.key} {one.panel}" for one in again.series if not kept.of(key=one.key, panel=one.panel)]
    for one in again.series:
        for before in kept.of(key=one.key, panel=one.panel):
            known = before.known()
            found += [
                f"{one.key} at {x:g}" for x, y in one.known().items() if known.get(x) != pytest.approx(y, rel=1e-6)
            ]
    steps = [[10 ** step[2] for step in figure.facts.get("steps", [])] for figure in (kept, again)]
    return found + ["steps"] * (steps[0] != pytest.approx(steps[1], rel=1e-6))


@pytest.mark.parametrize("name", ["both-sides", "constants", "length", "norms"])
def test_committed_bounds_are_what_the_library_proves_today(name: str) -> None:
    kept = read(FOLDER / f"{name}.json")
    folder, script = SCRIPTS[name][0].removesuffix(".py").split("/")
    again = load(folder, script).collect(quick=name != "constants")
    assert again.series or again.facts["steps"]
    assert differing(kept, again) == []
    if name != "constants":
        (one, *_) = again.series
        worse = one.__class__(**{**vars(one), "y": tuple((y or 0) * 1.001 for y in one.y)})
        assert differing(kept, again.but(series=(worse,))) != []


@pytest.mark.parametrize("name", list(SCRIPTS))
def test_committed_pictures_are_described(name: str) -> None:
    """A claim of at most nine words, a caption of at most 60, two sentences for who does not see the picture."""
    figure = read(FOLDER / f"{name}.json")
    assert 3 <= len(figure.title.split()) <= 9
    assert 15 <= len(figure.caption.split()) <= 60
    assert 1 <= len(re.findall(r"[.](?: |$)", figure.alt)) <= 2
    assert len({one.key for one in figure.series if one.kind in ("bound", "certificate")}) <= 5
    page = (FOLDER / "README.md").read_text(encoding="utf-8")
    for text in (f"## {figure.title}\n", f"![{figure.alt}]({name}.png)", figure.caption, f"`{figure.command}`"):
        assert text in page, "python examples/gallery.py --redraw writes the page again"
    assert SCRIPTS[name][0] in figure.command


def test_every_file_of_the_folder_belongs_to_a_figure() -> None:
    assert {path.stem for path in FOLDER.iterdir()} == {*SCRIPTS, "README"}


def test_colours_are_legible_and_have_light_counterparts() -> None:
    """4.5 to 1 on white, and in a dark theme on its paper."""

    def light(colour: str) -> float:
        parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
        r, g, b = (part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
        return 0.2126 * r + 0.7152 * g + 0.0722 * b

    for look in names.LOOKS.values():
        assert 1.05 / (light(look.colour) + 0.05) >= 4.5, look
        dark = names.dark_theme(look.colour)
        assert (light(dark) + 0.05) / (light("#16181B") + 0.05) >= 4.5, (look, dark)


def test_a_vector_image_follows_a_dark_theme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("gap-vs-C", "--sweep", "C=0.5,1", "--bound", "best", "-o", "a.svg").exit_code == 0
    light, dark = Path("a.svg").read_text("utf-8").split("@media (prefers-color-scheme: dark)")[::-1]
    assert f"stroke: {names.BROWN.lower()}" in light
    assert "{" not in dark
    for colour in (names.BROWN.lower(), "#ffffff"):
        assert f'{colour}"]{{' in light
    assert names.dark_theme("#ffffff") == "#000000"
