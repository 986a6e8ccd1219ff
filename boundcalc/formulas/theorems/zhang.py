"""Zhang, Liu, Cai, Wang, Wang 2022: a learning error that does not depend on the input size."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from boundcalc.base.sources import ZHANG2022
from boundcalc.formulas.theorems.counting import NETWORK, network
from boundcalc.formulas.theorems.policies import VOLUMES
from boundcalc.formulas.theorems.theorem import Forms, Theorem

if TYPE_CHECKING:
    from boundcalc.formulas.symbolic.formula import Formula
    from boundcalc.setting import Setting


def _published() -> Formula:
    import sympy

    from boundcalc.base import symbols as s
    from boundcalc.formulas.symbolic.formula import Formula

    return Formula("gap", s.c * s.d / sympy.sqrt(s.m), (), r"\mathrm{gap}", "le", kind="proxy")


def _uniform(setting: Setting) -> tuple[Any, Forms]:
    from boundcalc.formulas.symbolic.uniform import UniformForm

    form = UniformForm(setting)
    return form, {
        "gap": lambda: form.gap,
        "covering_number": lambda: form.covering_number,
        "excess": lambda: form.excess,
    }


def _forms() -> tuple[Any, Forms]:
    return _uniform(network())


zhang2022 = Theorem(
    name="zhang2022",
    title="learning error independent of the input size (X5)",
    source=ZHANG2022,
    statement="All covers are uniform, so no sequence length enters: an empirical minimiser's risk exceeds the best "
    "of the "
    "class by a term of order $m^{-1/2}$ that depends on widths, depth and norms alone.",
    assumptions=(
        *NETWORK,
        "positions, if any, are fixed (learned positions would make $Td$ further parameters)",
        "for masked pre-training a sample is a (sequence, mask) pair and losses are averaged over masked tokens",
    ),
    published_note="the paper's constant hides widths, depth and norms; only the absence of $T$ and the rate are "
    "compared",
    compares="gap",
    differs={
        "depth": "hidden in the paper's constant",
        "heads": "hidden in the paper's constant",
        "C": "hidden in the paper's constant",
        "gamma": "hidden in the paper's constant",
        "delta": "hidden in the paper's constant",
        "m": r"a factor $\sqrt{\log m}$ more, for the scale $1/m$ of the one cover; chaining would remove it",
    },
    also=("the paper covers a Lipschitz parametrisation of attention; here every matrix is covered by volume (T4)",),
    uses=("T4", "L1", "L2", "L3", "L4", "L6", "L7", "L8", "S3", "A0", "A2", "G0", "G2", "X5"),
    statement_name="X5",
    lemmas=VOLUMES | {"T5"},
    fixed_positions=True,
    published_form=_published,
    forms=_forms,
)


# -- masked tokens


def _masked_forms() -> tuple[Any, Forms]:
    from boundcalc.base import symbols as s

    return _uniform(network().but(classes=s.vocabulary, lipschitz=s.L_s))


zhang2022_masked = Theorem(
    name="zhang2022_masked",
    title="masked pre-training, independent of the input size (X5)",
    source=ZHANG2022,
    statement="A sample is a sequence with its mask, and the loss the mean over masked tokens: covers that serve every "
    "row serve their mean, so neither the sequence length nor the number of masked tokens enters.",
    assumptions=(
        "$m$ (sequence, mask) pairs are drawn independently; tokens of one sequence need not be independent",
        *NETWORK[1:-2],
        "ReLU between the projections; spectral norms at most $C$; a read-out of $V$ logits at every masked row",
        r"the loss of a token lies in $[0, 1]$ and is $L_s$-Lipschitz in the $\ell_2$ norm of its logits",
        "positions, if any, are fixed (learned positions would make $Td$ further parameters)",
    ),
    published_note="the paper's constant hides widths, depth and norms; only the absence of $T$ and the rate are "
    "compared",
    compares="gap",
    differs={
        "depth": "hidden in the paper's constant",
        "heads": "hidden in the paper's constant",
        "C": "hidden in the paper's constant",
        "L_s": "hidden in the paper's constant",
        "delta": "hidden in the paper's constant",
        "vocabulary": "the read-out has $dV$ parameters; hidden in the paper's constant",
        "m": r"a factor $\sqrt{\log m}$ more, for the scale $1/m$ of the one cover; chaining would remove it",
    },
    also=("the paper covers a Lipschitz parametrisation of attention; here every matrix is covered by volume (T4)",),
    uses=("T4", "L1", "L2", "L3", "L4", "L6", "L7", "L8", "S3", "A0", "A2", "G2", "X5"),
    lemmas=VOLUMES | {"T5"},
    fixed_positions=True,
    published_form=_published,
    forms=_masked_forms,
)
