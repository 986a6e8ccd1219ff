"""boundcalc: generalization bounds for Transformers with every constant explicit, re-verified by a small checker.

Names are imported when they are first used, so that the checker can run without the search.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from boundcalc.base.value import Value as Value
    from boundcalc.engine.bound import BoundValue as BoundValue
    from boundcalc.engine.evaluate import compare as compare
    from boundcalc.engine.evaluate import evaluate as evaluate
    from boundcalc.engine.solve import solve as solve
    from boundcalc.engine.sweep import sweep as sweep
    from boundcalc.lab.certify import certify as certify
    from boundcalc.lab.train.pickers import ModuleLearner as ModuleLearner
    from boundcalc.predictors.certificate import PredictorCertificate as PredictorCertificate
    from boundcalc.predictors.certificate import verify_predictor as verify_predictor
    from boundcalc.predictors.data import Data as Data
    from boundcalc.predictors.picking import pick_to_learn as pick_to_learn
    from boundcalc.predictors.rules.search import explain_network as explain_network
    from boundcalc.proof.certificate import Certificate as Certificate
    from boundcalc.proof.checker import verify as verify
    from boundcalc.setting import Architecture as Architecture
    from boundcalc.setting import Budget as Budget
    from boundcalc.setting import Norms as Norms
    from boundcalc.setting import Sample as Sample
    from boundcalc.setting import Setting as Setting
    from boundcalc.theorems.closed import closed_form as closed_form
    from boundcalc.theorems.own import Bound as Bound

__version__ = "0.1.0"

_HOMES = {
    "boundcalc.base.value": ("Value",),
    "boundcalc.proof.certificate": ("Certificate",),
    "boundcalc.proof.checker": ("verify",),
    "boundcalc.engine.evaluate": ("compare", "evaluate"),
    "boundcalc.engine.bound": ("BoundValue",),
    "boundcalc.engine.solve": ("solve",),
    "boundcalc.engine.sweep": ("sweep",),
    "boundcalc.theorems.closed": ("closed_form",),
    "boundcalc.theorems.own": ("Bound",),
    "boundcalc.lab.certify": ("certify",),
    "boundcalc.lab.train.pickers": ("ModuleLearner",),
    "boundcalc.predictors.certificate": ("PredictorCertificate", "verify_predictor"),
    "boundcalc.predictors.data": ("Data",),
    "boundcalc.predictors.picking": ("pick_to_learn",),
    "boundcalc.predictors.rules.search": ("explain_network",),
    "boundcalc.setting": ("Architecture", "Budget", "Norms", "Sample", "Setting"),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}
_NEEDS_TORCH = {"ModuleLearner"} if find_spec("torch") is None else set[str]()
# pyright: reportUnsupportedDunderAll=false
__all__ = ["__version__", *(name for name in _HOME if name not in _NEEDS_TORCH)]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME])
