"""E as a statement."""

from __future__ import annotations

from boundcalc.base.sources import EDELMAN2022
from boundcalc.base.statement import Statement
from boundcalc.statements import general

GENERAL = (
    Statement(
        "E",
        "general attention",
        r"\log N(\varepsilon)\le\inf_{0<t<1}\ \log N_{\mathrm{score}}\Big(\frac{t\varepsilon}{c\,L_{"
        r"\mathrm{out}}B_{\mathrm{in}}}\Big)+\log N_{\mathrm{in}}\Big(\frac{(1-t)\varepsilon}{\mu\,L_{"
        r"\mathrm{out}}}\Big)",
        "y = phi_out( sum_t Norm(Score(x_t, z))_t phi_in(x_t) ), phi_out fixed and L_out-Lipschitz, |phi_in| <= "
        "B_in, normaliser (c, mu) as in L2 (mu also for approximate scores). N_score in the sup metric over all "
        "pairs (x_t, z), N_in in the largest l2 distance of a row, on the rows x_t (for linear phi_in the pooled "
        "rows will do).",
        "|sum_t (a_t - a'_t) phi(x_t) + a'_t (phi - phi')(x_t)| <= |a - a'|_1 B_in + mu max_t |(phi - "
        "phi')(x_t)|, the first at most c times the score error; phi_out multiplies both by L_out. Every pair of "
        "centres gives one element of the cover.",
        "constants unspecified where published",
        EDELMAN2022,
        compute=general.log_count,
        applies=general.applies,
    ),
)
