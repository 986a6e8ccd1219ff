"""A floor as a certificate: a construction with parameters, from which the number is derived again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from boundcalc.base.errors import CertificateError
from boundcalc.base.intervals import INTERVAL, lower_float
from boundcalc.base.validate import shown
from boundcalc.proof.certificate import read_statement, write_statement
from boundcalc.setting import Setting
from boundcalc.statements.floors.base import Construction, Room, refusal
from boundcalc.statements.floors.counting import gap_floor, risk_floor

FORMAT = "boundcalc-floor/1"
WAYS: Mapping[str, str] = {
    "F1": "ramp loss on the law less its mean on the sample",
    "F2": "ramp loss on the law less its mean on the sample",
    "F3": "ramp loss on the law less its mean on the sample",
    "F1-errors": "chance of an error less the mean ramp loss on the sample",
    "F3-errors": "chance of an error less the mean ramp loss on the sample",
    "R1": "chance of an error, where no margin on the sample is gamma or less",
}
"""Statements that count a construction, and what each floor is of: a gap, or the risk."""
_TOLERANCE = 1e-12


@dataclass(frozen=True)
class Floor:
    """A number that every distribution-free bound of a setting reaches.

    Attributes:
        setting: class, sample and margin.
        construction: the members.
        by: a key of `WAYS`.
        value: the floor, rounded down.
    """

    setting: Setting
    construction: Construction
    by: str
    value: float

    @property
    def of(self) -> str:
        """What it is of: which gap, or the risk."""
        return WAYS[self.by]

    def to_json(self) -> dict[str, Any]:
        """The JSON object of its file, with nothing left to defaults."""
        return write_statement(self, FORMAT)


def check_floor(setting: Setting, construction: Construction, by: str) -> Floor:
    """The floor of a construction, derived in interval arithmetic and rounded down."""
    if by not in WAYS:
        raise CertificateError(f"a floor is by {', '.join(WAYS)}, not by {shown(by)}")
    try:
        room = Room(INTERVAL, setting)
        problem = refusal(setting) or construction.unfit(room)
        if problem is not None:
            raise CertificateError(problem)
        value = risk_floor(room, construction) if by == "R1" else gap_floor(room, construction, by)
    except (ArithmeticError, ValueError) as error:
        raise CertificateError(f"the floor cannot be evaluated: {error}") from None
    if value is None or not value.is_finite():
        raise CertificateError(f"construction {construction.name} gives no floor by {by}")
    return Floor(setting, construction, by, max(0.0, lower_float(value)))


def read_floor(data: object) -> Floor:
    """A floor from its JSON object; refuses a value that does not follow."""
    claimed = read_statement(Floor, data, FORMAT, "floor")
    floor = check_floor(claimed.setting, claimed.construction, claimed.by)
    if not 0 <= claimed.value <= floor.value * (1 + _TOLERANCE):
        what = shown(claimed.value)
        raise CertificateError(f"a floor of {what} is claimed, the construction gives {floor.value:.12g}")
    return claimed
