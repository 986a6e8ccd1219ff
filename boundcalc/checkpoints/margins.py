"""Margins of a trained model on its training sample: of its outputs, counted on the grid of P1."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from boundcalc.base.answers import count_wrong
from boundcalc.base.errors import InvalidSetting
from boundcalc.checkpoints.errors import CheckpointError
from boundcalc.engine.bound import BoundValue
from boundcalc.engine.evaluate import evaluate
from boundcalc.norms.matrix import Floats
from boundcalc.setting import Setting


@dataclass(frozen=True)
class Margins:
    """y f(x), or the logit of the label less the largest other one, for every training sequence."""

    values: Floats

    def error(self, margin: float) -> float:
        """Share of margins at most `margin`: not strict, as in G0; rounded up."""
        wrong, n = count_wrong(self.values, len(self.values), margin), len(self.values)
        return wrong / n if wrong in (0, n) else math.nextafter(wrong / n, 1)

    def grid(self) -> list[int]:
        """The k of the grid 2^-k worth trying: from the largest margin down to about the smallest above 0."""
        positive = self.values[self.values > 0]
        if not len(positive):
            return []
        high = int(np.floor(np.log2(float(positive.max()))))
        low = int(np.floor(np.log2(float(np.quantile(positive, 0.001)))))
        return [-exponent for exponent in range(max(low, high - 40), high + 1)]


def margins_of(outputs: Floats, labels: NDArray[np.int64], slack: float = 0.0) -> Margins:
    """Y f(x) of one score, or the logit of the label less the largest other, less what rounding may have added."""
    n = len(labels)
    if outputs.shape[0] != n or outputs.ndim > 2:
        raise CheckpointError(f"{n} labels, but outputs of shape {outputs.shape}: need one score or row of logits each")
    scores = outputs.reshape(n, -1)
    if not np.isfinite(scores).all():
        raise CheckpointError("the model answers with NaN or Inf: there are no margins")
    classes = max(scores.shape[1], 2)
    if labels.min() < 0 or labels.max() >= classes:
        raise CheckpointError(
            f"labels from {labels.min()} to {labels.max()}, but the model answers with {scores.shape[1]} numbers: "
            f"labels are 0 to {classes - 1}"
        )
    if scores.shape[1] == 1:
        if scores.any() and scores.min() >= 0 and scores.max() <= 1 and labels.min() < labels.max():
            raise CheckpointError(
                "the model answers with one number between 0 and 1, and the sign of one number is its answer: of a "
                "probability give a module that answers with its logit"
            )
        ahead = scores[:, 0] * (2 * labels - 1)
    else:
        own = scores[np.arange(n), labels]
        others = scores.copy()
        others[np.arange(n), labels] = -np.inf
        ahead = own - others.max(1)
    return Margins(ahead - slack)


def best_margin(setting: Setting, margins: Margins) -> tuple[Setting, BoundValue]:
    """The margin on the grid whose risk bound is smallest, and that bound: corrected for that choice (P1)."""
    grid = [(gamma := math.ldexp(1.0, -k), margins.error(gamma)) for k in margins.grid()]
    trials = [setting.but(margin=gamma, train_error=error) for gamma, error in grid]
    bounds = [(trial, evaluate(trial, "best")) for trial in trials]
    if not bounds:
        raise InvalidSetting("no margin is positive: the model errs on every training sequence")
    proved = [pair for pair in bounds if pair[1].risk_refusal is None]
    if not proved:
        raise InvalidSetting(f"the margins are not of this model: {bounds[-1][1].risk_refusal}")
    return min(proved, key=lambda pair: pair[1].log_risk)
