"""Products of trained weights: measured from above, of the row that is read, and what they are worth."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

from boundcalc.checkpoints._products import measured_products as measure
from boundcalc.engine.solve import solve
from boundcalc.lab.train.bounds import setting_of
from boundcalc.lab.train.measure import measured_norms
from boundcalc.lab.train.model import draw_weights
from boundcalc.lab.train.parameters import CLS
from boundcalc.lab.train.tasks import task_from_json
from boundcalc.lab.train.trial import Trial, model_for
from boundcalc.layers.merged import is_product, products_of
from boundcalc.setting import Budget, Sample
from boundcalc.setting.norms import place_named
from tests.proof import alone

TASK = task_from_json({"task": "conjunction", "T": 12, "s": 2})


def trial(**model: object) -> Trial:
    return Trial(TASK, m=16, architecture=model_for(TASK, d=8, heads=2, d_ff=32, **model))


def arrays(of: Trial) -> dict[str, np.ndarray]:
    weights = draw_weights(of.architecture)
    rng = np.random.default_rng(1)
    return {name: rng.standard_normal(value.shape).astype(np.float32) for name, value in weights.items()}


def measured_products(of: Trial, w: dict[str, np.ndarray]) -> dict[str, Budget]:
    def read(kind: str, block: int | None) -> np.ndarray:
        return w[place_named(kind, block)].astype(float)

    return measure(of.model, read)


def exact(w: dict[str, np.ndarray]) -> dict[str, dict[str, float]]:
    """The same norms in extended precision, from the definitions of A7."""
    x = {name: value.astype(np.longdouble) for name, value in w.items()}
    row = x["embedding"][CLS] + x["positions"][0]
    asked = np.einsum("d,hde->he", row, x["W_Q[0]"]) + x["b_Q[0]"]
    q = np.einsum("he,hde->hd", asked, x["W_K[0]"]) / np.sqrt(np.longdouble(4))
    found: dict[str, dict[str, float]] = {}

    def size(a: np.ndarray) -> float:
        return float(np.sqrt((a**2).sum()))

    for side, table in (("token", x["embedding"]), ("position", x["positions"])):
        scores = table @ q.T
        values = np.einsum("td,hde->the", table, x["W_V[0]"])
        longest = float(np.sqrt((values**2).sum(-1).max(0).sum()))
        found[f"{side}_scores"] = {"sup": float(abs(scores).max()), "fro": size(scores)}
        found[f"{side}_values"] = {"heads": longest, "fro": size(values)}
        for kind, matrix in (("scores", scores), ("values", values.reshape(len(values), -1))):
            found[f"{side}_{kind}"]["nuclear"] = float(np.linalg.svd(matrix.astype(float), compute_uv=False).sum())
    found["first_row[0]"] = {"op": size(row + x["b_V[0]"].reshape(-1) @ x["W_O[0]"] + x["b_O[0]"])}
    found["W_2_to_readout[0]"] = {"op": size(x["W_2[0]"] @ x["readout"])}
    return found


def test_products_are_measured_from_above_and_closely() -> None:
    of = trial()
    w = arrays(of)
    found, truth = measured_products(of, w), exact(w)
    assert set(found) == set(truth)
    for key, sizes in truth.items():
        for name, size in sizes.items():
            assert size * (1 - 1e-14) <= getattr(found[key], name) <= size * (1 + 1e-9)


def test_what_is_measured_follows_from_the_architecture() -> None:
    for of in (trial(), trial(depth=2), trial(normalisation="layernorm"), trial(readout="mean"), trial(causal=True)):
        known = of.model
        names = {w.kind for w in products_of(known.stages, known.seq_len)}
        measured = measured_products(of, arrays(of))
        assert {key.partition("[")[0] for key in measured} == names
    assert trial(depth=2).model == trial(depth=2).architecture


@pytest.mark.parametrize("bias", [True, False])
def test_measured_products_pay_and_are_checked_twice(bias: bool) -> None:
    of = trial(bias=bias)
    known = of.model
    result: dict[str, Any] = {"norms": measured_norms(known, draw_weights(of.architecture)).to_json()}
    result["train"] = {"n": 16, "margins": {"0.0": 9.0}}
    told = setting_of(of, result)
    assert {w.kind for w in products_of(known.stages, known.seq_len)} <= {
        key.partition("[")[0] for key in told.norms.budgets
    }
    budgets = {key: each for key, each in told.norms.budgets.items() if not is_product(key.partition("[")[0])}
    plain = replace(told, norms=replace(told.norms, budgets=budgets))
    sample = Sample(1000, margin=0.01, measured=("train_error",))
    needs = [solve(replace(s, sample=sample), "m", 0.5, quantity="risk") for s in (told, plain)]
    assert needs[0].value <= needs[1].value
    certificate = needs[0].bound.risk_certificate
    assert certificate is not None
    assert certificate.measured is not None
    assert needs[0].bound.log_risk == pytest.approx(float(alone.log_value(certificate)), abs=1e-9)
