"""Formulas from the same lowering that gives the numbers. Importing this package imports sympy; `eval` never does."""

from boundcalc.formulas.symbolic.closed import ClosedForm as ClosedForm
from boundcalc.formulas.symbolic.closed import closed_form as closed_form
from boundcalc.formulas.symbolic.formula import Definition as Definition
from boundcalc.formulas.symbolic.formula import Formula as Formula
