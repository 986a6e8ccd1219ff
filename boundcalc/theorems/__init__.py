"""The registry of what can be asked for by name."""

from boundcalc.theorems.policies import POLICIES as POLICIES
from boundcalc.theorems.policies import Policy as Policy
