"""The registry of what can be asked for by name: policies of `eval`, and theorems as objects.

Importing it is light: a theorem's formulas import sympy when they are first asked for.
"""

from boundcalc.theorems.counting import parameters as parameters
from boundcalc.theorems.edelman import edelman2022 as edelman2022
from boundcalc.theorems.edelman import edelman2022_attention as edelman2022_attention
from boundcalc.theorems.edelman import edelman2022_head as edelman2022_head
from boundcalc.theorems.edelman import edelman2022_multihead as edelman2022_multihead
from boundcalc.theorems.policies import POLICIES as POLICIES
from boundcalc.theorems.policies import Policy as Policy
from boundcalc.theorems.sakai import sakai2026 as sakai2026
from boundcalc.theorems.sparse import sparse_boolean as sparse_boolean
from boundcalc.theorems.theorem import Theorem as Theorem
from boundcalc.theorems.trauger import trauger2024 as trauger2024
from boundcalc.theorems.truong import truong2024 as truong2024
from boundcalc.theorems.zhang import zhang2022 as zhang2022

THEOREMS: dict[str, Theorem] = {
    theorem.name: theorem
    for theorem in (
        edelman2022,
        edelman2022_head,
        edelman2022_multihead,
        edelman2022_attention,
        trauger2024,
        zhang2022,
        truong2024,
        sakai2026,
        parameters,
        sparse_boolean,
    )
}
"""Every theorem by name; registering one enrols it in the command line, the README table and the law tests."""
