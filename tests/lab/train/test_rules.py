"""Rules of networks that come out of training: proved, certified, refused where they fail, attacked where they hold."""

from __future__ import annotations

import itertools
import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

import torch
from click.testing import CliRunner

from boundcalc import explain_network
from boundcalc.base.errors import CertificateError
from boundcalc.cli import main
from boundcalc.lab.train._data import Examples
from boundcalc.lab.train.certify import examples_of, trained_network
from boundcalc.lab.train.model import plain
from boundcalc.lab.train.stack import with_read_row
from boundcalc.lab.train.sweep import PRESETS, sweep_from_json
from boundcalc.predictors.certificate import PredictorCertificate, verify_predictor
from boundcalc.predictors.rules.certify import StoredNetwork, certificate_of
from boundcalc.predictors.rules.check import Proof, prove
from boundcalc.predictors.rules.fails import descend
from boundcalc.predictors.rules.search import explain
from boundcalc.predictors.rules.tables import tables_of
from tests.examples.scripts import quick


@cache
def network(seed: int) -> tuple[Any, StoredNetwork, Any]:
    """A default model as trained, and its examples."""
    trial = sweep_from_json({**PRESETS["conjunction"], "grid": {"T": 128, "m": 211}, "seeds": [seed]}).trials[0]
    return trial, trained_network(trial), examples_of(trial)[0]


def outputs(trial: Any, stored: StoredNetwork, x: Any) -> Any:
    """By the library's own forward pass, in float64."""
    weights = {name: torch.as_tensor(value).double() for name, value in stored.weights.items()}
    return plain(trial.architecture, weights, with_read_row(torch.as_tensor(x)))[:, 0].numpy()


def test_a_trained_network_is_proved_to_be_its_task():
    trial, stored, data = network(40)
    found = explain_network((stored.architecture, stored.weights), data)
    assert found.certificate is not None
    assert found.proved is not None
    assert found.proved.everywhere
    assert sorted(found.rule.positions) == sorted(Examples(trial).world["coordinates"])
    assert str(found).startswith(f"computes {found.rule} on every input (proved from the weights, least margin ")
    named = "(<= 0.0999 by the name AND, 27.71 bits)"
    assert str(found).endswith(f"; risk <= 0.121 with probability 0.95, as a truth table of 34.71 bits {named}")
    assert found.proved.rounding is not None
    assert found.proved.rounding < found.proved.margin
    assert len(json.dumps(found.certificate.to_json())) <= 200_000


def test_where_a_network_is_not_the_rule_the_input_is_the_answer():
    """Seed 53 errs on no example, and fails where nearly all other bits are 1: it is the conjunction in its window
    only."""
    trial, stored, data = network(53)
    tables = tables_of(stored.architecture, stored.weights)
    found = explain(tables, data.x)
    assert found.proof is not None
    assert found.counterexample is not None
    assert found.rule.window == 8
    x = np.array(found.counterexample.x)
    assert (outputs(trial, stored, x[None])[0] > 0) != found.counterexample.answer
    assert "every input with 19 to 109 ones of 128" in str(explain_network(stored))
    with pytest.raises(CertificateError, match="not shown"):
        prove(tables, found.rule, Proof(0, 128, found.proof.tree))
    assert certificate_of(stored, found, data, 0.05).evidence.proof == found.proof


def test_scores_eight_times_as_large_do_not_deceive_the_checker():
    """Layers of weight e^-1000 and less: what is then proved is still true of every input that is tried."""
    trial, stored, _ = network(53)
    queries = {name: np.float32(8) * stored.weights[name] for name in ("W_Q[0]", "b_Q[0]")}
    sharp = StoredNetwork(stored.architecture, {**stored.weights, **queries})
    tables = tables_of(sharp.architecture, sharp.weights)
    task = explain(tables_of(stored.architecture, stored.weights)).rule
    found = explain(tables, rule=task)
    assert found.proved is None or not found.proved.everywhere
    random = np.random.default_rng(0)
    for (path, answer), count in itertools.product(task.paths, (19, 64, 109)):
        x, value = descend(tables.floats, task, dict(path), answer, count, random, 20)
        if found.proved is not None:
            assert min(value, (2 * answer - 1) * outputs(trial, sharp, x[None])[0]) > 0
    assert outputs(trial, sharp, np.ones((1, 128), dtype=np.int64))[0] < 0  # where the conjunction says 1


def run(*words: str) -> Any:
    return CliRunner().invoke(main, list(words))


def certified(monkeypatch: pytest.MonkeyPatch, folder: Path, m: int, *words: str) -> Any:
    """What training with a certificate by a rule prints; its files lie in the folder, which becomes the current one."""
    monkeypatch.chdir(folder)
    train = ["train", "conjunction", "--T", "24", "--m", str(m), "--certify", "rule", *words]
    printed = run(*train, "--certificates", ".", "--format", "json").stdout
    assert run("verify", "rule.json").exit_code == 0
    return json.loads(printed)["certificates"][0]


def test_train_certify_and_verify(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    entry = certified(monkeypatch, tmp_path, 200)
    assert (entry["method"], entry["statement"]) == ("rule", "G15")
    assert entry["test_error"] <= entry["risk"] < entry["risk_unnamed"] < 0.25
    assert explain_network("rule.safetensors").margin == entry["margin"]
    with_data = " ".join(run("verify", "rule.json", "--data", "examples.npz").output.split())
    assert "errors of the rule counted again" in with_data
    assert "for the real-number function of the stored weights and for its float32 pass" in with_data
    # one altered weight: of a position that the rule reads
    position = PredictorCertificate.load("rule.json").evidence.rule.positions[0]
    stored = StoredNetwork.load("rule.safetensors")
    weights = {name: value.copy() for name, value in stored.weights.items()}
    weights["positions"][position + 1] = weights["positions"][0]
    StoredNetwork(stored.architecture, weights).save("altered.safetensors")
    refused = run("verify", "rule.json", "--model", "altered.safetensors")
    assert refused.exit_code == 1
    assert "sha256 of its weights differs" in refused.output
    Path("rule.safetensors").unlink()
    again = run("verify", "rule.json")  # without the file the network is trained again
    assert again.exit_code == 0
    assert "proved from the weights" in " ".join(again.output.split())


def test_a_rule_read_off_a_prefix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    entry = certified(monkeypatch, tmp_path, 160, "--prefix", "0.5")
    assert (entry["statement"], entry["n"], "bits" in entry) == ("G15p", 80, False)
    assert entry["risk"] < 0.1


@pytest.mark.parametrize("style", ["pre", "post"])
@pytest.mark.parametrize("normalisation", ["layernorm", "rmsnorm"])
def test_networks_with_normalisation_are_proved_too(style: str, normalisation: str):
    preset = PRESETS["conjunction"]
    model = {"style": style, "normalisation": normalisation}
    trial = sweep_from_json({**preset, "model": model, "grid": {"T": 32, "m": 300}, "seeds": [42]}).trials[0]
    stored, data = trained_network(trial), examples_of(trial)[0]
    found = explain_network(stored, data)
    assert found.certificate is not None
    assert sorted(found.rule.positions) == sorted(Examples(trial).world["coordinates"])
    told = verify_predictor(found.certificate, data, lambda _: stored).established or ""
    assert "not for a float32 pass" in told


def test_the_scripts_keep_their_promises():
    risks, errors = quick("edelman2022", "rules")
    assert len(risks) == 4
    assert all(errors[key] < risks[key] < 0.1 for key in risks)
    proved, reached = quick("edelman2022", "explained")
    assert len(proved) == 16
    assert all(proved[key] <= reached[key] for key in proved)
    assert sum(value > 0 for value in proved.values()) >= 8
