"""The sample, the loss and the failure probability."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from boundcalc.base.schema import ClosedShare, Described, Positive, Share, Size, check_fields, declare
from boundcalc.base.validate import choice, shown

MARGIN = 0.12
"""The default gamma: with every norm at most 1 a network of the first paper with one or two blocks has larger margins
on inputs of both labels, so that a risk bound at a small training error is about networks that exist (G0e)."""
_OF_MARGINS = ("margin", "train_error", "measured")
"""Fields that belong to the ramp loss."""


@dataclass(frozen=True, slots=True, repr=False)
class Sample(Described):
    """m sequences drawn independently, a loss in [0, 1], and the failure probability.

    `lipschitz` is the Lipschitz constant of another [0, 1] loss in the read-out, instead of the ramp: risk bounds by
    margins then do not apply. `measured`: which of "margin" and "train_error" were seen on the sample before they were
    chosen, so that a bound must correct for that.
    """

    SHOWN: ClassVar = ("n_train", "delta", "margin", "train_error")

    n_train: Size = declare(
        10**6, "number of training sequences", latex="m", help="Training sequences.", typical=(10, 10**7)
    )
    delta: Share = declare(
        0.05, "failure probability", latex=r"\delta", help="Failure probability.", typical=(0.001, 0.5)
    )
    margin: Positive = declare(
        MARGIN, "margin of the ramp loss", latex=r"\gamma", help="Margin of the ramp loss.", typical=(0.2, 2.0)
    )
    train_error: ClosedShare = declare(
        0.0,
        "share of training sequences with margin at most gamma",
        help="Share of training margins at most gamma, for risk bounds.",
    )
    lipschitz: Positive | None = declare(
        None, "Lipschitz constant of a [0, 1] loss other than the ramp", label="loss Lipschitz constant"
    )
    measured: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_fields(self)
        for name in self.measured:
            choice("measured", name, ("margin", "train_error"))
        object.__setattr__(self, "measured", tuple(dict.fromkeys(self.measured)))
        self.refuse_unread()

    def unread(self, name: str) -> str | None:
        if self.lipschitz is None or name not in _OF_MARGINS:
            return None
        other = f"the loss is another one, {shown(self.lipschitz)}-Lipschitz; leave out one of them"
        return f"margins belong to the ramp loss, and {other}"
