"""Zhang, Liu, Cai, Wang, Wang 2022: a learning error that does not depend on the input size."""

from __future__ import annotations

from typing import Any

from boundcalc.base.sources import ZHANG2022
from boundcalc.formulas.theorems.network import HIDDEN, LIPSCHITZ, NETWORK, network
from boundcalc.formulas.theorems.policies import VOLUMES
from boundcalc.formulas.theorems.theorem import Forms, Theorem, shape


def _forms(**changes: Any) -> tuple[Any, Forms]:
    from boundcalc.formulas.symbolic.uniform import UniformForm

    form = UniformForm(network().but(**changes))
    return form, form.formulas


_FIXED_POSITIONS = "positions, if any, are fixed (learned positions would make $Td$ further parameters)"
_RATE = r"a factor $\sqrt{\log m}$ more, for the scale $1/m$ of the one cover; chaining would remove it"


zhang2022 = Theorem(
    name="zhang2022",
    title="learning error independent of the input size (X5)",
    source=ZHANG2022,
    statement="All covers are uniform, so no sequence length enters: an empirical minimiser's risk exceeds the best of the "
    "class by a term of order $m^{-1/2}$ that depends on widths, depth and norms alone.",
    assumptions=(
        *NETWORK,
        _FIXED_POSITIONS,
        "for masked pre-training a sample is a (sequence, mask) pair and losses are averaged over masked tokens",
    ),
    published_note="the paper's constant hides widths, depth and norms; only the absence of $T$ and the rate are compared",
    compares="gap",
    differs={
        **dict.fromkeys(("depth", "heads", "C", "gamma", "delta"), HIDDEN),
        "m": _RATE,
    },
    also=("the paper covers a Lipschitz parametrisation of attention; here every matrix is covered by volume (T4)",),
    uses=("T4", *LIPSCHITZ, "S3", "A0", "A2", "G0", "G2", "X5"),
    statement_name="X5",
    lemmas=VOLUMES | {"T5"},
    fixed_positions=True,
    published_form=shape("gap", lambda s, sympy: s.c * s.d / sympy.sqrt(s.m)),
    forms=_forms,
)
