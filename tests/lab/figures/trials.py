"""Made-up trials with the shape of real ones: torch is not needed to draw figures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from boundcalc.base.answers import clopper_pearson
from boundcalc.lab.train.certify import Issued
from boundcalc.lab.train.store import Store
from boundcalc.lab.train.tasks import task_from_json
from boundcalc.lab.train.trial import Optimisation, Request, Trial, canonical, model_for

KINDS = ("W_QK[0]", "W_V[0]", "W_O[0]", "W_1[0]", "W_2[0]")


def record(
    task: str = "conjunction",
    T: int = 16,
    m: int = 24,
    seed: int = 0,
    *,
    wrong: int = 50,
    lr: float = 1e-3,
    depth: int = 1,
    n: int = 500,
    size: float = 2.0,
    s: int = 3,
    d: int = 8,
    **law_of: Any,
) -> dict[str, Any]:
    """A trial's record; `wrong` of its `n` test examples, all training examples right with margins above 1."""
    law = task_from_json({"task": task, "T": T, "s": s, **law_of})
    model = model_for(law, d=d, heads=2, d_ff=2 * d, depth=depth)
    trial = Trial(law, model, m=m, seed=seed, n_test=n, optimisation=Optimisation(lr=lr))
    margins = {"0": 1.5, "0.5": 3.0, "1": 6.0}
    budgets: dict[str, Any] = {
        f"{kind[:-3]}[{block}]": {"op": size, "F": 1.5 * size, "21": 3 * size, "21T": 3 * size}
        for kind in KINDS
        for block in range(depth)
    }
    for block in range(depth):
        budgets |= {f"b_{name}[{block}]": {"op": 0.5} for name in ("V", "O", "1", "2")}
    budgets |= {f"W_2_to_readout[{depth - 1}]": {"op": 2 * size}}  # of a product, as trained networks have them
    budgets |= {"readout": {"op": size, "F": size, "21": size}, "b_readout": {"op": 0.1}}
    budgets |= {"embedding": {"row": 1.0}, "positions": {"row": 1.0}}
    result = {
        "status": "done",
        "reason": "training loss reached",
        "steps": 100,
        "train": {"n": max(m, 1), "loss": 0.004, "error": 0.0, "wrong": 0, "interval": [0, 0.1], "margins": margins},
        "test": {
            "n": n,
            "loss": 0.3,
            "error": wrong / n,
            "wrong": wrong,
            "interval": list(clopper_pearson(wrong, n)),
            "margins": margins,
        },
        "gap": wrong / n,
        "curves": [
            {"step": s, "train_loss": 0.7 - 0.0023 * s, "train_error": 0, "test_loss": 0.7 - 0.002 * s, "test_error": e}
            for s, e in ((0, 0.5), (100, 0.5), (200, 0.2), (250 + seed, 0.001))
        ],
        "norms": {"budgets": budgets, "measured": True},
        "attention": [{"best_head": 0.9, "mean": 0.3 + 0.01 * seed}],
    }
    config, text = canonical(trial.to_json()), canonical(result)
    return {
        "hash": trial.hash,
        "config": json.loads(config),
        "result": json.loads(text),
    }


def over_m(**fixed: Any) -> list[dict[str, Any]]:
    """Trials whose error falls with m and vanishes."""
    errors = {12: (200, 180), 24: (60, 40), 48: (3, 2), 96: (0, 0)}
    return [record(m=m, seed=s, wrong=w, **fixed) for m, pair in errors.items() for s, w in enumerate(pair)]


def store(path: Path, records: list[dict[str, Any]], sweep: str = "made-up") -> str:
    """A store of the trials, as a sweep of this name."""
    with Store(path) as opened:
        for made_up in records:
            opened.add(Trial.from_json(made_up["config"]), made_up["result"])
            for stored in made_up.get("certificates", ()):
                opened.add_certificate(Issued(Request(**stored["asked"]), None, stored["entry"]), made_up["hash"])
        opened.enrol(sweep, [record["hash"] for record in records])
    return str(path)


def certified(**fixed: Any) -> list[dict[str, Any]]:
    """Trials with certificates of three methods; one is refused."""
    trials = over_m(**fixed)
    for trial in trials:
        m, seed = trial["config"]["m"], trial["config"]["seed"]
        entries = [
            {"method": name, "risk": min(1.0, c * (1 + seed / 9) / m), "test_error": 0.5 / m, "cpu_seconds": 1.5 + seed}
            for name, c in (("holdout", 3.0), ("p2l", 9.0))
        ]
        refused = {"method": "occam", "risk": None, "refused": "too many bits"}
        trial["certificates"] = [_stored(trial["hash"], entry) for entry in (*entries, refused)]
    return trials


def _stored(key: str, entry: dict[str, Any]) -> dict[str, Any]:
    request, content = {"method": entry["method"], "delta": 0.05, "prefix": 0.0}, {"entry": entry, "certificate": None}
    return {"asked": request, **content}
