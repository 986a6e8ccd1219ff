"""Derivations: the steps that lead to a formula, each with its statement, checked and printed."""

from boundcalc.derivation.build import derive as derive
from boundcalc.derivation.step import Derivation as Derivation
from boundcalc.derivation.step import DerivationError as DerivationError
from boundcalc.derivation.step import Step as Step
