"""What a forward check found, as reports say it and files keep it: a fact on record, which no checker can prove."""

from __future__ import annotations

from dataclasses import dataclass

from boundcalc.base.errors import InvalidSetting
from boundcalc.base.rounding import up

_NOT_COMPARED = "architecture as described, not compared with a forward pass"
ROUNDING = 1e-9
"""What may lie between two double-precision passes, of the largest entry."""


@dataclass(frozen=True, slots=True)
class Compared:
    """An architecture was compared with a forward pass of `module`, and the two agreed.

    `largest`: the largest difference anywhere, of the largest entry there, and `allowed` what was allowed, on so many
    `inputs` of so many `rows`; `places`: inside the module, where rows were compared; `outputs`: whether outputs were.
    """

    module: str
    largest: float
    allowed: float
    inputs: int
    rows: int
    places: int
    outputs: bool

    def __post_init__(self) -> None:
        if not (0 <= self.largest <= self.allowed < 1 and self.inputs > 0 and self.rows > 0 and self.places >= 0):
            raise InvalidSetting("a comparison that agreed has sizes above 0, and differences within their limit")
        if not self.module or not self.module.isprintable():
            raise InvalidSetting("a comparison names the module that ran, in one line")

    @property
    def text(self) -> str:
        """One line."""
        steps = "" if self.allowed == ROUNDING else " (the module takes steps in single precision)"
        inner = f"{self.places} places inside" if self.places else "no place inside, which the module does not show"
        where = f"the outputs and at {inner}" if self.outputs else f"{inner}; its read-out is not described"
        return (
            f"compared with a forward pass of {self.module}: {self.inputs} inputs of {self.rows} rows in double "
            f"precision agree to {up(self.largest, 1)} at {where}{steps}"
        )


def describe_comparison(compared: Compared | None) -> str:
    """Whether there was a comparison, in words."""
    return _NOT_COMPARED if compared is None else compared.text
