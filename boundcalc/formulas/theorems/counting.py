"""Parameter counting: one volumetric cover per matrix; the plain baseline."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from boundcalc.base.sources import HERE
from boundcalc.formulas.theorems.policies import POLICIES
from boundcalc.formulas.theorems.theorem import Forms, Theorem

if TYPE_CHECKING:
    from boundcalc.formulas.symbolic.formula import Formula
    from boundcalc.setting import Setting

SAMPLE = ("$m$ sequences are drawn independently", "every budget is fixed before the sample is drawn")
ROWS = (
    r"rows of the input have $\ell_2$ norm at most 1, and activations are projected onto the unit ball twice per block"
)
READ_OUT = "ReLU between the projections; the output is read from one row ([CLS])"
RAMP = r"the loss is the ramp at margin $\gamma$ (any $[0, 1]$ loss that is $1/\gamma$-Lipschitz will do)"
NETWORK = (
    *SAMPLE,
    ROWS,
    "ReLU between the projections; spectral norms at most $C$; the output is read from one row ([CLS])",
    RAMP,
)


def network() -> Setting:
    """Preset edelman2022 with every number a symbol."""
    from boundcalc.base import symbols as s
    from boundcalc.setting import Setting

    return Setting.of(
        C=s.C, depth=s.depth, seq_len=s.T, n_train=s.m, d=s.d, heads=s.heads, delta=s.delta, margin=s.gamma
    )


def _published() -> Formula:
    import sympy

    from boundcalc.base import symbols as s
    from boundcalc.formulas.symbolic.formula import Formula

    expr = s.c * sympy.sqrt(s.depth * s.d**2 * (1 + s.heads) * sympy.log(s.m) / s.m)
    return Formula("gap", expr, (), r"\mathrm{gap}", "le", kind="proxy")


def _forms() -> tuple[Any, Forms]:
    from boundcalc.formulas.symbolic.uniform import UniformForm

    form = UniformForm(network())
    return form, {
        "gap": lambda: form.gap,
        "covering_number": lambda: form.covering_number,
        "excess": lambda: form.excess,
    }


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
    uses=("T4", "L1", "L2", "L3", "L4", "L6", "L7", "L8", "S3", "A0", "A2", "G0", "G2", "X5"),
    published_form=_published,
    forms=_forms,
    lemmas=POLICIES["parameters"].lemmas,
)
