"""The sample, the loss and the confidence asked for."""

from __future__ import annotations

from dataclasses import dataclass

from boundcalc.setting import validate


@dataclass(frozen=True, slots=True)
class Sample:
    """m sequences drawn independently, a loss in [0, 1], and how sure to be.

    Attributes:
        n_train: m, how many training sequences.
        delta: failure probability.
        margin: gamma of the ramp loss.
        train_error: share of training sequences with margin at most gamma, for risk bounds.
        lipschitz: Lipschitz constant of another [0, 1] loss in the read-out, instead of the ramp; risk
            bounds by margins then do not apply.
    """

    n_train: int = 10**6
    delta: float = 0.05
    margin: float = 1.0
    train_error: float = 0.0
    lipschitz: float | None = None

    def __post_init__(self) -> None:
        validate.set_size(self, "n_train", "m")
        validate.fraction("delta", self.delta, ends=False)
        validate.positive("gamma", self.margin)
        validate.fraction("train error", self.train_error, ends=True)
        if self.lipschitz is not None:
            validate.positive("loss Lipschitz constant", self.lipschitz)
