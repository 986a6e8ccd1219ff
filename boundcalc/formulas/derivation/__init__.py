"""Derivations: the steps that lead to a formula, each with its statement, checked and printed."""

from boundcalc.formulas.derivation.build import derive as derive
from boundcalc.formulas.derivation.step import Derivation as Derivation
from boundcalc.formulas.derivation.step import DerivationError as DerivationError
from boundcalc.formulas.derivation.step import Step as Step
