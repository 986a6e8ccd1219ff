"""Parameter counting: one volumetric cover per matrix; the plain baseline."""

from __future__ import annotations

from typing import Any

from boundcalc.base.sources import HERE
from boundcalc.formulas.theorems.network import LIPSCHITZ, NETWORK, network
from boundcalc.formulas.theorems.policies import POLICIES
from boundcalc.formulas.theorems.theorem import Forms, Theorem, shape


def _published(s: Any, sympy: Any) -> Any:
    return s.c * sympy.sqrt(s.depth * s.d**2 * (1 + s.heads) * sympy.log(s.m) / s.m)


def _forms() -> tuple[Any, Forms]:
    from boundcalc.formulas.symbolic.uniform import UniformForm

    form = UniformForm(network())
    return form, form.formulas


parameters = Theorem(
    name="parameters",
    title="parameter counting",
    source=HERE,
    statement=r"A network with $p$ parameters has a gap of about $\sqrt{p\log(m)/m}$, whatever $T$ is.",
    assumptions=NETWORK,
    published_note=r"folklore: $\sqrt{p\log(m)/m}$ up to a constant, $p = Dd^2(1+2H)$ parameters",
    compares="gap",
    differs={
        "depth": r"every block also multiplies the accuracy the earlier ones need by $r$: $p$ gets log terms $D^2\log r$",
        "heads": "$p$ counts two matrices per head, and $r$ and the gains carry $H$ inside logarithms; the shape writes "
        "$1+H$",
        "C": "inside logarithms; folklore leaves it out",
        "gamma": "inside logarithms; folklore leaves it out",
        "delta": "not in the shape",
    },
    also=(),
    uses=("T4", *LIPSCHITZ, "S3", "A0", "A2", "G0", "G2", "X5"),
    published_form=shape("gap", _published),
    forms=_forms,
    lemmas=POLICIES["parameters"].lemmas,
)
