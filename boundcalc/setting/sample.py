"""The sample, the loss and the confidence asked for."""

from __future__ import annotations

from dataclasses import dataclass

from boundcalc.base.errors import InvalidSetting
from boundcalc.setting import validate

MARGIN = 0.5
"""gamma where nobody says: half of the largest margin a network of the first paper has when every norm is at most 1,
so that a risk bound at a small training error is about networks that exist (G0e)."""


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
        measured: which of "margin" and "train_error" were seen on the sample before they were chosen: a bound must
            then pay P1 for them.
    """

    n_train: int = 10**6
    delta: float = 0.05
    margin: float = MARGIN
    train_error: float = 0.0
    lipschitz: float | None = None
    measured: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        validate.set_size(self, "n_train", "m")
        validate.fraction("delta", self.delta, ends=False)
        validate.positive("gamma", self.margin)
        validate.fraction("train error", self.train_error, ends=True)
        if self.lipschitz is not None:
            validate.positive("loss Lipschitz constant", self.lipschitz)
        if not isinstance(self.measured, tuple | list):
            raise InvalidSetting(f"measured is a list of margin, train_error; got {validate.shown(self.measured)}")
        names = tuple(validate.choice("measured", name, ("margin", "train_error")) for name in self.measured)
        object.__setattr__(self, "measured", tuple(dict.fromkeys(names)))
