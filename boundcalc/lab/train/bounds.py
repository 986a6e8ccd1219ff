"""The bounds that apply to a trained model: its architecture, its measured norms, its sample."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from boundcalc.lab.train.trial import Trial
from boundcalc.setting import Budget, Norms, Sample, Setting


def setting_of(trial: Trial, result: Mapping[str, Any], *, margin: float = 1.0, delta: float = 0.05) -> Setting:
    """The setting that `boundcalc.compare` needs: norms and training error as measured; a margin fixed before.

    Training examples that were too many to be measured count as errors.
    """
    share = min(1.0, result["train"]["n"] / trial.m)
    train_error = share * margin_error(result, margin) + 1 - share
    sample = Sample(n_train=trial.m, delta=delta, margin=margin, train_error=train_error, measured=("train_error",))
    return Setting(trial.model, Norms.from_json(result["norms"]), sample)


def largest(norms: Norms, name: Callable[[str], str]) -> dict[str, Budget]:
    """The budgets of norms by the name of their place, the largest where several places have one name."""
    budgets: dict[str, Budget] = {}
    for place, budget in norms.budgets.items():
        key = name(place)
        budgets[key] = budgets[key].join(budget) if key in budgets else budget
    return budgets


def by_block(result: Mapping[str, Any]) -> dict[str, Budget]:
    """The measured budgets of a result, of the heads of a block the largest."""
    return largest(Norms.from_json(result["norms"]), lambda place: place.partition(",")[0] + "]" * ("," in place))


def margin_error(result: Mapping[str, Any], margin: float) -> float:
    """An upper value of the share of the examples measured with a margin of at most `margin`.

    It is the level of the least recorded quantile above the margin.
    """
    quantiles = sorted((float(level), value) for level, value in result["train"]["margins"].items())
    return next((level for level, value in quantiles if value > margin), 1.0)
