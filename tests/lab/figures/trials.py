"""Made-up trials with the shape of real ones: torch is not needed to draw figures."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from boundcalc.base.answers import clopper_pearson
from boundcalc.lab.train.certify import Issued
from boundcalc.lab.train.store import Store
from boundcalc.lab.train.tasks import BooleanTask
from boundcalc.lab.train.trial import Request, Trial, model_for

N = 500
Made = tuple[Trial, dict[str, Any]]


def record(T: int = 16, m: int = 24, seed: int = 0, *, wrong: int = 50, size: float = 2.0) -> Made:
    """A trial and its result; `wrong` of `N` test examples, all training examples right with margins above 1."""
    task = BooleanTask(T=T)
    model = model_for(task, d=8, heads=2, d_ff=16)
    budgets: dict[str, Any] = {
        f"{kind}[0]": {"op": size, "F": 1.5 * size, "21": 3 * size, "21T": 3 * size}
        for kind in ("W_QK", "W_V", "W_O", "W_1", "W_2")
    }
    budgets |= {f"b_{name}[0]": {"op": 0.5} for name in ("V", "O", "1", "2")}
    budgets |= {"W_2_to_readout[0]": {"op": 2 * size}}  # of a product, as trained networks have them
    budgets |= {"readout": {"op": size, "F": size, "21": size}, "b_readout": {"op": 0.1}}
    budgets |= {"embedding": {"row": 1.0}, "positions": {"row": 1.0}}
    result = {
        "status": "done",
        "train": {"n": m, "error": 0.0, "margins": {"0": 1.5, "0.5": 3.0, "1": 6.0}},
        "test": {"n": N, "error": wrong / N, "interval": list(clopper_pearson(wrong, N))},
        "gap": wrong / N,
        "norms": {"budgets": budgets, "measured": True},
    }
    return Trial(task, model, m, seed, N), result


def over_m(**fixed: Any) -> list[Made]:
    """Trials whose error falls with m and vanishes."""
    errors = {12: (200, 180), 24: (60, 40), 48: (3, 2), 96: (0, 0)}
    return [record(m=m, seed=seed, wrong=w, **fixed) for m, pair in errors.items() for seed, w in enumerate(pair)]


def store(path: Path, trials: Iterable[Made], *, certified: bool = False) -> Path:
    """A store of the trials as a sweep, with certificates of three methods, of which one is refused, if `certified`."""
    with Store(path) as opened:
        for trial, result in trials:
            opened.add(trial, result)
            opened.enrol("overlay", [trial.hash])
            for method, scale in (("holdout", 3.0), ("p2l", 9.0), ("occam", None)) if certified else ():
                risk = None if scale is None else min(1.0, scale * (1 + trial.seed / 9) / trial.m)
                opened.add_certificate(Issued(Request(method), None, {"method": method, "risk": risk}), trial.hash)
    return path
