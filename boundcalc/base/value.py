"""`Value`: an upper bound of something named, with its kind.

Whatever prints a bound as a number prints one of these.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from boundcalc.base.rounding import log10_up, log_up, value_up

Kind = Literal["bound", "a_posteriori", "proxy", "estimate"]
VACUOUS_MARGIN = 1e-3
"""Bounds within a thousandth (in logs) of the trivial bound are vacuous, too: the one notion of vacuous, and what
'below 1' asks for."""


@dataclass(frozen=True)
class Value:
    """An upper bound of a named quantity.

    Attributes:
        name: the policy, theorem or statement that gives it.
        quantity: what is bounded.
        kind: "bound", "a_posteriori" (corrected for measured norms), "proxy" or "estimate".
        log_value: natural logarithm, uncapped: never below that of the formula's exact value.
        form: the variant; for a bound of the gap or the risk, the theorem that gives it.
        inputs: the inputs of the formula.
        parameters: what a search chose (any choice is valid).
        always: the largest value that the quantity can have, where that is known.
        trivial: whether the proof covers no network but the zero network; the number is then no statement.
        saturates: whether the excess over `always` does not measure how far the bound is from being useful.
        proof: a `Checked` proof, or the certificate of a predictor.
        number: the value itself, where it was not computed as a logarithm.
    """

    name: str
    quantity: str
    kind: str
    log_value: float
    form: str = ""
    inputs: Mapping[str, Any] = field(default_factory=dict[str, Any])
    parameters: Mapping[str, float] = field(default_factory=dict[str, float])
    always: float | None = None
    trivial: bool = False
    saturates: bool = False
    proof: Any = field(default=None, repr=False, compare=False)
    number: float | None = None

    @classmethod
    def of(cls, name: str, quantity: str, kind: str, number: float, *rest: Any, **fields: Any) -> Value:
        """One computed as a number, with other fields."""
        log = log_up(math.log(number)) if number > 0 else -math.inf
        return cls(name, quantity, kind, log, *rest, number=number, **fields)

    @property
    def value(self) -> float:
        """The bound as a float: as it was found, or of its logarithm, at most 1."""
        return value_up(self.log_value) if self.number is None else self.number

    @property
    def log10(self) -> float:
        """Base-10 logarithm for print."""
        log10 = log10_up(self.log_value)
        return min(log10, 0.0) if self.saturates else log10

    @property
    def vacuous(self) -> bool:
        """Whether it is trivial, or within a thousandth of the largest value that is possible."""
        if self.trivial or self.always is None:
            return self.trivial
        return self.log_value > math.log(self.always) - VACUOUS_MARGIN

    def to_json(self) -> dict[str, Any]:
        """The value and all it is based on."""
        names = ("name", "form", "kind", "quantity", "value", "vacuous")
        more = {"inputs": dict(self.inputs), "parameters": dict(self.parameters)}
        return {name: getattr(self, name) for name in names} | more
