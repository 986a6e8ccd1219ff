"""The sample, the loss and the confidence asked for."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from boundcalc.base.errors import InvalidSetting
from boundcalc.setting import validate

MARGIN = 0.12
"""The default gamma: with every norm at most 1 a network of the first paper with one or two blocks has larger margins on inputs
of both labels, so that a risk bound at a small training error is about networks that exist (G0e)."""


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
            then pay for them.
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
            for name, default in (("margin", MARGIN), ("train_error", 0.0)):
                if getattr(self, name) != default:
                    self.refuse_unread(name)
        if not isinstance(self.measured, tuple | list):
            raise InvalidSetting(f"measured is a list of margin, train_error; got {validate.shown(self.measured)}")
        names = tuple(validate.choice("measured", name, ("margin", "train_error")) for name in self.measured)
        object.__setattr__(self, "measured", tuple(dict.fromkeys(names)))
        for name in self.measured:
            self.refuse_unread(name)

    def __repr__(self) -> str:
        from boundcalc.setting.brief import of_sample

        return f"Sample({of_sample(self)})"

    def refuse_unread(self, name: str) -> None:
        """Refuses what belongs to the ramp loss where the loss is another one."""
        if self.lipschitz is not None and name in ("margin", "train_error", "measured"):
            raise InvalidSetting(
                f"{name} = {validate.shown(getattr(self, name))} would change nothing: margins belong to the ramp "
                f"loss, and the loss is another one, {validate.shown(self.lipschitz)}-Lipschitz; leave out one of them"
            )

    def with_fields(self, **values: Any) -> Sample:
        """The same sample with some fields changed; what is given and not read is refused."""
        fresh: dict[str, Any] = {f.name: getattr(self, f.name) for f in fields(self)}
        if values.get("lipschitz") is not None:
            fresh |= {"margin": MARGIN, "train_error": 0.0, "measured": ()}
        new = Sample(**(fresh | values))
        for name, value in values.items():
            if value:
                new.refuse_unread(name)
        return new
