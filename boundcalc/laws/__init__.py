"""The laws of every kind of thing that can be added: checks that return what they find as data."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from boundcalc.laws.report import Cases as Cases
from boundcalc.laws.report import Complaint as Complaint
from boundcalc.laws.report import LawBroken as LawBroken
from boundcalc.laws.report import Report as Report

if TYPE_CHECKING:
    from boundcalc.laws.families import FamilyExample as FamilyExample
    from boundcalc.laws.families import check_family as check_family
    from boundcalc.laws.layer_example import LayerExample as LayerExample
    from boundcalc.laws.layers import check_layer as check_layer
    from boundcalc.laws.lemmas import LemmaExample as LemmaExample
    from boundcalc.laws.lemmas import check_lemma as check_lemma
    from boundcalc.laws.predictors import PredictorExample as PredictorExample
    from boundcalc.laws.predictors import World as World
    from boundcalc.laws.predictors import check_predictor as check_predictor
    from boundcalc.laws.strategies import COINS as COINS
    from boundcalc.laws.strategies import Coins as Coins
    from boundcalc.laws.strategies import check_strategy as check_strategy
    from boundcalc.laws.tasks import TaskExample as TaskExample
    from boundcalc.laws.tasks import check_task as check_task
    from boundcalc.laws.theorems import check_theorem as check_theorem

_HOMES = {
    "families": ("FamilyExample", "check_family"),
    "layer_example": ("LayerExample",),
    "layers": ("check_layer",),
    "lemmas": ("LemmaExample", "check_lemma"),
    "predictors": ("PredictorExample", "World", "check_predictor"),
    "strategies": ("COINS", "Coins", "check_strategy"),
    "tasks": ("TaskExample", "check_task"),
    "theorems": ("check_theorem",),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}
__all__ = ["Cases", "Complaint", "LawBroken", "Report", *_HOME]  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
