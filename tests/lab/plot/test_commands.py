"""`boundcalc plot` and `boundcalc gallery` as commands: what they write, what they refuse, what they import."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("matplotlib")

from click.testing import CliRunner, Result

from boundcalc import evaluate
from boundcalc.cli import main
from boundcalc.lab.plot import gallery
from boundcalc.lab.plot.registry import FIGURES
from boundcalc.lab.train.store import Store
from boundcalc.lab.train.trial import Trial
from boundcalc.setting import Setting
from tests.lab.plot import trials


def run(*words: str) -> Result:
    return CliRunner().invoke(main, list(words), prog_name="boundcalc")


def refusal(*words: str, code: int = 2) -> str:
    """The one line of an error."""
    outcome = run(*words)
    assert outcome.exit_code == code, outcome.output
    (line,) = outcome.stderr.splitlines()
    assert "Traceback" not in line
    return line


def test_a_figure_and_its_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    image = tmp_path / "T.png"
    words = ["plot", "gap-vs-T", "--sweep", "T=64,256", "--bound", "best", "--depth", "1", "-o", str(image)]
    monkeypatch.setattr(sys, "argv", ["boundcalc", *words])
    outcome = run(*words)
    assert outcome.exit_code == 0, outcome.stderr
    held = json.loads(image.with_suffix(".json").read_text(encoding="utf-8"))
    assert held["command"] == "boundcalc " + " ".join(words)
    assert held["spec"]["bounds"] == ["best"]
    assert {"boundcalc", "matplotlib", "numpy", "python"} <= set(held["versions"])
    (series,) = held["data"]["series"]
    setting = Setting.of("edelman", depth=1)
    assert series["y"] == [evaluate(setting.but(seq_len=T)).gap for T in (64, 256)]
    assert held["caption"].split() == " ".join(outcome.stdout.split("\n")[1:]).split()


def test_specification_files_and_options_over_them(tmp_path: Path) -> None:
    spec = {"figure": "gap-vs-C", "values": [0.5, 1], "bounds": ["best"], "setting": "edelman"}
    pytest.importorskip("yaml")
    for name, text in (
        ("a.json", json.dumps(spec)),
        ("a.yaml", "figure: gap-vs-C\nvalues: [0.5, 1]\nbounds: [best]\nsetting: edelman\n"),
        ("a.toml", 'figure = "gap-vs-C"\nvalues = [0.5, 1]\nbounds = ["best"]\nsetting = "edelman"\n'),
    ):
        (tmp_path / name).write_text(text, encoding="utf-8")
        image = tmp_path / f"{name}.png"
        assert run("plot", str(tmp_path / name), "--depth", "3", "-o", str(image)).exit_code == 0
        held = json.loads(image.with_suffix(".json").read_text(encoding="utf-8"))
        assert held["spec"]["setting"]["architecture"] == {"depth": 3}


def test_options_change_the_setting_of_a_specification(tmp_path: Path) -> None:
    """They once replaced all of it: its other fields were dropped without a word."""
    setting = {"architecture": {"heads": 2}, "norms": {"C": 1.5}, "sample": {"delta": 0.01}}
    (tmp_path / "own.json").write_text(json.dumps({"figure": "gap-vs-m", "values": [1e4], "setting": setting}))
    image = tmp_path / "drawn.png"
    assert run("plot", str(tmp_path / "own.json"), "--T", "8", "--bound", "closed", "-o", str(image)).exit_code == 0
    held = json.loads(image.with_suffix(".json").read_text(encoding="utf-8"))["spec"]["setting"]
    assert held["architecture"] == {"heads": 2, "seq_len": 8}
    assert (held["norms"]["C"], held["sample"]["delta"]) == (1.5, 0.01)


def test_data_are_drawn_in_another_size_without_computing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = tmp_path / "a.png"
    assert run("plot", "gap-vs-C", "--sweep", "C=1,2", "-o", str(first)).exit_code == 0
    from boundcalc.lab.plot import render

    def never(_: Any) -> None:
        raise AssertionError("computed")

    monkeypatch.setattr(render, "collect", never)
    record = first.with_suffix(".json")
    wide = tmp_path / "b.svg"
    words = ("plot", "--from", str(record), "--size", "wide", "--uncapped", "-o", str(wide))
    assert run(*words).exit_code == 0
    assert 'width="486pt"' in wide.read_text(encoding="utf-8")
    one, two = (json.loads(p.with_suffix(".json").read_text(encoding="utf-8")) for p in (first, wide))
    assert one["digest"] == two["digest"]
    assert run("plot", "--from", str(record), "-o", str(tmp_path / "c.png")).exit_code == 0
    assert (tmp_path / "c.png").stat().st_size > 0


def test_refusals_before_anything_is_computed(tmp_path: Path) -> None:
    out = str(tmp_path / "x.png")
    assert "did you mean 'gap-vs-m'" in refusal("plot", "gap-vs-n", "-o", out)
    assert "did you mean 'log-T'" in refusal("plot", "gap-vs-m", "--bound", "log-t", "-o", out)
    assert "did you mean 'column'" in refusal("plot", "gap-vs-m", "--size", "colum", "-o", out)
    assert ".png, .pdf, .svg, .pgf" in refusal("plot", "gap-vs-m", "-o", str(tmp_path / "x.gif"))
    assert "there is no directory" in refusal("plot", "gap-vs-m", "-o", str(tmp_path / "none" / "x.png"))
    for text in ('{"figure": "gap-vs-m"}', "[]", "no JSON"):
        (tmp_path / "spec.json").write_text(text)
        assert "spec.json exists" in refusal("plot", "gap-vs-m", "-o", str(tmp_path / "spec.png"))
        assert (tmp_path / "spec.json").read_text() == text
    (tmp_path / "spec.json").unlink()
    assert "runs over m" in refusal("plot", "gap-vs-m", "--sweep", "T=1,2", "-o", out)
    assert "norms-vs-s runs over s" in refusal("plot", "norms-vs-s", "--sweep", "L=1,2", "-o", out)
    assert "L must be a whole number" in refusal("plot", "attention-error", "--sweep", "L=1.5,2", "-o", out)
    assert "at most" in refusal("plot", "posterior-contraction", "--sweep", "L=1e9", "-o", out)
    assert "kappa has no use for store (--store)" in refusal("plot", "kappa", "--store", "runs.db", "-o", out)
    assert "boundcalc latent learn --store runs.db" in refusal("plot", "gap-vs-L", "-o", out)
    assert "boundcalc sweep parity --store runs.db" in refusal("plot", "parity", "-o", out)
    assert "between 10 and" in refusal("plot", "kappa", "--repetitions", "3", "-o", out)
    assert "no axis of its own" in refusal("plot", "constants", "--sweep", "T=1,2", "-o", out)
    assert "--store" in refusal("plot", "parity", "-o", out)
    assert "name a figure" in refusal("plot", "-o", out)
    assert "NAME=VALUE" in refusal("plot", "gap-vs-m", "--runs", "T", "-o", out)
    assert "runs has no 'taks'" in refusal("plot", "gap-vs-m", "--runs", "taks=parity", "-o", out)
    assert "beside it only -o" in refusal("plot", "--from", "a.json", "--bound", "best")
    assert "boundcalc: " in refusal("plot", "--from", str(tmp_path / "none.json"), code=1)
    text = tmp_path / "text.json"
    text.write_text("{]", encoding="utf-8")
    assert "is not JSON" in refusal("plot", str(text), "-o", out)
    text.write_text("{}", encoding="utf-8")
    assert "needs 'figure'" in refusal("plot", str(text), "-o", out)
    assert "is no figure's JSON" in refusal("plot", "--from", str(text))
    assert list(tmp_path.iterdir()) == [text]


def test_refusals_about_trials_say_which_command_makes_them(tmp_path: Path) -> None:
    out = str(tmp_path / "x.png")
    none = refusal("plot", "gap-vs-m", "--store", str(tmp_path / "none.db"), "-o", out, code=1)
    assert f"boundcalc sweep conjunction --store {tmp_path / 'none.db'}" in none
    empty = trials.write(tmp_path / "empty.json", [])
    assert "boundcalc sweep parity" in refusal("plot", "parity", "--store", empty, "-o", out, code=1)
    store = trials.write(tmp_path / "mixed.json", [trials.record(), trials.record("majority")])
    assert "mix task = conjunction, majority" in refusal("plot", "gap-vs-m", "--store", store, "-o", out)
    store = trials.write(tmp_path / "lengths.json", [trials.record(), trials.record(T=32)])
    assert "choose one, such as --runs T=16" in refusal("plot", "gap-vs-m", "--store", store, "-o", out)
    store = trials.write(tmp_path / "rates.json", [trials.record(), trials.record(lr=0.01)])
    assert "mix lr = 0.001, 0.01" in refusal("plot", "gap-vs-m", "--store", store, "-o", out)
    only = ("--runs", "lr=0.01", "--sweep", "m=16,1e6", "--bound", "best")
    assert run("plot", "gap-vs-m", "--store", store, *only, "-o", str(tmp_path / "y.png")).exit_code == 0
    missing = refusal("plot", "gap-vs-m", "--store", store, "--runs", "T=77", "-o", out, code=1)
    assert "has no trials with" in missing
    store = trials.write(tmp_path / "unlearned.json", [trials.record(wrong=200)])
    assert "no trial reaches test accuracy" in refusal("plot", "attention", "--store", store, "-o", out, code=1)


def test_refusals_name_the_sweeps_of_a_store(tmp_path: Path) -> None:
    store, out = tmp_path / "runs.db", str(tmp_path / "x.png")
    with Store(store) as runs:
        for name, steps in (("a", 1), ("b", 10)):
            held = next(r for r in trials.over_steps() if r["config"]["optimisation"]["steps"] == steps)
            held["config"]["optimisation"] |= {"optimiser": "sgd"} if name == "b" else {}
            held["config"]["optimisation"]["steps"] = 1
            runs.add(Trial.from_json(held["config"]), held["result"], sweep=name)
    assert "--runs sweep=NAME (a, b)" in refusal("plot", "gap-vs-m", "--store", str(store), "-o", out)
    missing = refusal("plot", "gap-vs-m", "--store", str(store), "--runs", "sweep=c", "-o", out, code=1)
    assert "has no sweep 'c', it has a, b" in missing


def test_latex_is_asked_for_and_missed_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import shutil

    words = ("plot", "gap-vs-C", "--sweep", "C=0.5,1", "--bound", "best")
    monkeypatch.setattr(shutil, "which", lambda _: None)
    pgf = refusal(*words, "-o", str(tmp_path / "a.pgf"), code=1)
    assert "pgf files need pdflatex" in pgf
    tex = refusal(*words, "--usetex", "-o", str(tmp_path / "a.pdf"), code=1)
    assert "--usetex needs latex" in tex
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("said", "advice"),
    [
        ("! LaTeX Error: File `type1ec.sty' not found.", "LaTeX has no type1ec.sty: install cm-super"),
        ("Package matplotlib-support Error: Missing cm-super package", "LaTeX has no cm-super: install cm-super"),
        ("Failed to process string with tex because dvipng could not be found", "PNG needs dvipng"),
        ("! Undefined control sequence. more", "LaTeX cannot set the text: Undefined control sequence. more"),
    ],
)
def test_what_latex_complains_about_is_one_line(
    said: str, advice: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from boundcalc.lab.plot import gap, render

    monkeypatch.setattr(render.shutil, "which", lambda _: "/usr/bin/latex")

    def fails(*_: Any) -> None:
        raise RuntimeError(f"latex was not able to process the following string:\n{said}")

    monkeypatch.setattr(gap, "draw", fails)
    words = ("plot", "gap-vs-C", "--sweep", "C=0.5,1", "--bound", "best", "-o", str(tmp_path / "a.pdf"))
    assert advice in refusal(*words, "--usetex", code=1)
    assert list(tmp_path.iterdir()) == []


def test_labels_for_latex() -> None:
    from boundcalc.lab.plot.style import latex

    assert latex("measured gap, 95%") == r"measured gap, 95\%"
    assert latex("W_1 of $W_1$, R² (proxy, ~)") == r"W\_1 of $W_1$, R$^2$ (proxy, $\sim$)"
    assert latex("÷5 & more") == r"$\div$5 \& more"


def test_plotting_imports_neither_torch_nor_sympy_nor_matplotlib() -> None:
    modules = ", ".join(f"boundcalc.lab.plot.{entry.module}" for entry in FIGURES.values())
    code = (
        f"import sys, {modules}, boundcalc.lab.plot.gallery, boundcalc.lab.plot.render, boundcalc.lab.plot.measured\n"
        "print([name for name in ('torch', 'sympy', 'matplotlib') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_gallery_without_training(tmp_path: Path) -> None:
    outcome = run("gallery", "--predicted", "--quick", "-o", str(tmp_path / "figures"))
    assert outcome.exit_code == 0, outcome.stderr
    made = [plate.name for plate in gallery.PLATES if not plate.sweep]
    for name in made:
        assert (tmp_path / "figures" / f"{name}.png").stat().st_size < 400_000
        assert (tmp_path / "figures" / f"{name}.json").exists()
    page = (tmp_path / "figures" / "README.md").read_text(encoding="utf-8")
    assert all(f"({name}.png)" in page for name in made)
    assert "all of these plates show trials" in refusal("gallery", "--predicted", "--only", "parity")
    assert "did you mean 'parity'" in refusal("gallery", "--only", "paritty")
    gone = refusal("gallery", "--no-train", "--store", str(tmp_path / "no.db"), "-o", str(tmp_path / "figures"), code=1)
    assert "there is no store" in gone
    assert "boundcalc gallery --store" in gone


def test_every_sweep_of_the_gallery_can_be_read() -> None:
    from boundcalc.lab.train.sweep import sweep_from_json

    for quick in (False, True):
        found = gallery.sweeps(quick=quick)
        assert {plate.sweep for plate in gallery.PLATES} - {""} <= set(found)
        for name, data in found.items():
            assert sweep_from_json({"name": name, **data}, device="cpu").trials


def test_a_plate_of_the_quick_gallery_end_to_end(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    words = ("gallery", "--quick", "--only", "overlay", "-o", str(tmp_path / "figures"))
    outcome = run(*words)
    assert outcome.exit_code == 0, outcome.stderr
    assert json.loads((tmp_path / "figures" / "overlay.json").read_text(encoding="utf-8"))["data"]["trials"]
    assert ", 0 to train" in run(*words, "--force").stdout


@pytest.mark.slow
def test_the_quick_gallery_end_to_end(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    outcome = run("gallery", "--quick", "-o", str(tmp_path / "figures"))
    assert outcome.exit_code == 0, outcome.stderr
    for plate in gallery.PLATES:
        held = json.loads((tmp_path / "figures" / f"{plate.name}.json").read_text(encoding="utf-8"))
        assert bool(held["data"]["trials"]) is bool(plate.sweep)
    again = run(
        "gallery", "--quick", "--only", "parity", "--only", "overlay", "-o", str(tmp_path / "figures"), "--force"
    )
    swept = [plate for plate in gallery.PLATES if plate.name in ("parity", "overlay")]
    sweeps = sum(1 + len(plate.certified) for plate in swept)
    assert again.stdout.count(", 0 to train") == sweeps > 2
