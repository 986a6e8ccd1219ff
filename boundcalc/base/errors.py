"""The ways boundcalc says no: each message tells what was got, what is needed and what to do."""

from __future__ import annotations

from dataclasses import dataclass


class BoundcalcError(Exception):
    """Base of every error this package raises on purpose."""


class InvalidSetting(BoundcalcError, ValueError):
    """A setting that describes nothing: a bad size, an unknown name, contradictory norms."""


class CertificateError(BoundcalcError):
    """A certificate that is malformed, or whose claim does not follow."""


class NotFinite(BoundcalcError, ValueError):
    """Weights that are no numbers: training blew up."""


class NoSolution(BoundcalcError):
    """A question whose answer does not exist in the range searched."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a statement or policy, `what`, does not apply: what the setting has, what it would need, what to change."""

    what: str
    got: str
    needs: str
    fix: str = ""

    def __str__(self) -> str:
        text = f"{self.what} needs {self.needs}; got {self.got}"
        return f"{text}. {self.fix}" if self.fix else text


class Unsupported(BoundcalcError):
    """A setting outside what a statement covers; carries its `Refusal`."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(str(refusal))
        self.refusal = refusal
