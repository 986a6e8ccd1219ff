"""One model, one bound: whoever asks, norms are measured by one routine and P1 is paid by one rule."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from boundcalc.cli import main
from boundcalc.setting import Norms

torch = pytest.importorskip("torch")

MODELS = {
    "full scores": "--set model.style=edelman --heads 1 --set model.activation=relu --gamma 1",
    "pre-norm, two layers": "--set model.style=pre --set model.normalisation=layernorm --depth 2 --heads 2 --gamma 1",
    "steep": "--heads 2 --set train.lr=0.02 --gamma 0.25",
}
TASK = ["conjunction", "--T", "6", "--m", "48", "--d", "8", "--steps", "60", "--set", "n_test=64"]


def run(*words: object) -> dict[str, Any]:
    result = CliRunner().invoke(main, [*map(str, words), "--format", "json"])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.fixture(scope="module", params=MODELS)
def roads(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What `train` says of a model, and the files it leaves for the other roads."""
    home: Path = tmp_path_factory.mktemp("roads")
    weights, store = home / "model.safetensors", home / "runs.db"
    words = MODELS[request.param].split()
    trained = run("train", *TASK, *words, "--out", weights, "--store", store)
    return {"trained": trained, "weights": weights, "store": store, "gamma": float(words[-1])}


def certified(roads: dict[str, Any], m: int, error: float, *bounds: str) -> dict[str, Any]:
    """The results of `certify` on the saved file (how they grow aside, which `train` does not ask)."""
    found = run(
        *("certify", roads["weights"], "--m", m, "--gamma", roads["gamma"]),
        *("--train-error", error, "--no-solve", *(word for name in bounds for word in ("--bound", name))),
    )
    return {value["name"]: {k: v for k, v in value.items() if k != "growth"} for value in found["results"]}


def test_certify_measures_what_train_stored(roads: dict[str, Any], tmp_path: Path) -> None:
    """The norms themselves: every limit of every place, to the last digit."""
    out = tmp_path / "norms.json"
    run("norms", roads["weights"], "--out", out)
    assert json.loads(out.read_text()) == roads["trained"]["result"]["norms"]
    stored = Norms.from_json(roads["trained"]["result"]["norms"])
    assert stored.measured
    assert stored.budgets


def test_bounds_that_are_not_trivial_agree_too(roads: dict[str, Any]) -> None:
    """Had the sample been larger: what `train` would say, and what `certify` says."""
    from boundcalc.engine.evaluate import compare
    from boundcalc.lab.train.bounds import setting_of
    from boundcalc.lab.train.store import Store

    m = 10**11
    with Store(roads["store"], create=False) as store:
        (stored,) = store.records()
    record = replace(stored, config={**stored.config, "m": m})
    setting = setting_of(record.trial, roads["trained"]["result"], margin=roads["gamma"])
    setting = setting.but(measured=("margin", *setting.sample.measured))  # `certify` takes it to be chosen
    (value,) = compare(setting, ["best"])
    assert value.kind == "a_posteriori"
    assert not value.trivial
    assert value.to_json() == certified(roads, m, setting.sample.train_error, "best")["best"]
