"""What a forward check found, as reports say it and files keep it: a fact on record, which no checker can prove."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, cast

from boundcalc.base.errors import CertificateError
from boundcalc.base.rounding import up

NOT_COMPARED = "architecture as described, not compared with a forward pass"
ROUNDING = 1e-9
"""What may lie between two double-precision passes, of the largest entry."""


@dataclass(frozen=True, slots=True)
class Compared:
    """An architecture was held against a forward pass, and the two agreed.

    Attributes:
        module: what ran beside it.
        largest: the largest difference anywhere, of the largest entry there.
        allowed: what was allowed.
        inputs: sequences that ran through both.
        rows: of each.
        places: inside the module, where rows were compared.
        outputs: whether outputs were.
    """

    module: str
    largest: float
    allowed: float
    inputs: int
    rows: int
    places: int
    outputs: bool

    @property
    def text(self) -> str:
        """One line."""
        steps = "" if self.allowed == ROUNDING else " (the module takes steps in single precision)"
        inner = f"{self.places} places inside" if self.places else "no place inside, which the module does not show"
        where = f"the outputs and at {inner}" if self.outputs else f"{inner}; its read-out is not described"
        return (
            f"compared with a forward pass of {self.module}: {self.inputs} inputs of {self.rows} rows in double precision "
            f"agree to {up(self.largest, 1)} at {where}{steps}"
        )

    def to_json(self) -> dict[str, Any]:
        """As files have it."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: object) -> Compared:
        """Read strictly."""
        kinds = {field.name: field.type for field in fields(cls)}
        if not isinstance(data, Mapping) or set(cast("Mapping[str, Any]", data)) != set(kinds):
            raise CertificateError(f"forward_check is null (not compared), or says {', '.join(kinds)}")
        raw = cast("Mapping[str, Any]", data)
        for name, kind in kinds.items():
            if type(raw[name]).__name__ != kind:
                raise CertificateError(f"{name} of forward_check is of type {kind}, got {raw[name]!r}")
        found = cls(**raw)
        if not (0 <= found.largest <= found.allowed < 1 and found.inputs > 0 and found.rows > 0 and found.places >= 0):
            raise CertificateError(
                "forward_check records a comparison that agreed: sizes above 0, and a largest difference within what was "
                "allowed"
            )
        if not found.module or not found.module.isprintable():
            raise CertificateError("forward_check names the module that ran, in one line")
        return found


def said(compared: Compared | None) -> str:
    """Whether there was a comparison, in words."""
    return NOT_COMPARED if compared is None else compared.text
