"""Formulas from the same lowering that gives the numbers. Importing this package imports sympy; `eval` never does."""

from boundcalc.symbolic.allocation import Allocation as Allocation
from boundcalc.symbolic.allocation import allocation as allocation
from boundcalc.symbolic.closed import ClosedForm as ClosedForm
from boundcalc.symbolic.closed import closed_form as closed_form
from boundcalc.symbolic.formula import Definition as Definition
from boundcalc.symbolic.formula import Formula as Formula
