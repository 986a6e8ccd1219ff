"""G as statements: from covers to a gap or a risk. The values are the formulas of `calculus.gap`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from boundcalc.base.errors import Refusal
from boundcalc.base.statement import Statement
from boundcalc.base.system import Number, NumberSystem
from boundcalc.setting import Setting
from boundcalc.statements import gap
from boundcalc.statements.network import loss_lipschitz
from boundcalc.statements.premise import no_member
from boundcalc.statements.slots import largest_margin


def _complexity(ns: NumberSystem, scales: Sequence[Number], counts: Sequence[Number], m: Number) -> Number:
    """Scales are e_0, ..., e_J; counts log N_1, ..., log N_J."""
    return scales[-1] + gap.chain_sum(ns, scales, counts, m)


def _gap(
    ns: NumberSystem,
    scales: Sequence[Number],
    counts: Sequence[Number],
    log_inverse_delta: Number,
    m: Number,
    ghosts: int | None = None,
    uniform: bool = False,
) -> Number:
    links = gap.chain_sum(ns, scales, counts, m)
    factor = gap.chain_factor(ns, ghosts, uniform=uniform)
    return gap.gap_chain(ns, scales[-1], links, factor, log_inverse_delta, m)


def _refined(
    ns: NumberSystem, scales: Sequence[Number], counts: Sequence[Number], log_inverse_delta: Number, m: Number
) -> Number:
    links = sum(gap.refined_links(ns, scales, counts, m), start=ns.number(0))
    return gap.gap_chain(ns, scales[-1], links, ns.number(1), log_inverse_delta, m)


def _sparse(ns: NumberSystem, s: int, seq_len: Number) -> Mapping[str, Number]:
    return {"log class size": gap.sparse_class_size(ns, s, seq_len), "label floor": gap.support_floor(ns, s, seq_len)}


def _fits(s: int, seq_len: int) -> Refusal | None:
    if 0 < s <= seq_len:
        return None
    return Refusal("G8", f"s = {s} of T = {seq_len}", "1 <= s <= T relevant positions")


def _falling(scales: Sequence[float]) -> Refusal | None:
    """Whether e_0, ..., e_J can be chained."""
    if not scales or scales[0] > 1 / 2 or any(a < b for a, b in pairwise(scales)):
        return Refusal("G1", f"scales {[float(f'{e:.3g}') for e in scales]}", "falling scales from e_0 <= 1/2")
    return None


def _needs_ramp(setting: Setting) -> Refusal | None:
    if setting.sample.lipschitz is not None:
        return Refusal(
            "a risk bound by margins", "the Lipschitz constant of another loss", "the ramp loss and a margin"
        )
    return None


def _stored(
    ns: NumberSystem, weights: Number, bits: int, log_inverse_delta: Number, m: Number, train_error: Number, mu: Number
) -> Mapping[str, Number]:
    count = gap.stored_count(ns, weights, bits)
    risk = gap.risk_uniform(ns, train_error, count, log_inverse_delta, m, mu)
    return {"log N": count, "gap": gap.deviation(ns, count + log_inverse_delta, m), "risk": risk}


def _says_bits(setting: Setting) -> Refusal | None:
    if setting.architecture.bits is None:
        return Refusal("G13", "weights of which nobody said how many bits they have", "bits", "Use --bits 16.")
    return None


GAP = (
    Statement("G0", compute=loss_lipschitz),
    Statement("G0e", compute=largest_margin, applies=no_member),
    Statement("G1", compute=_complexity, applies=_falling),
    Statement("G2", compute=_gap, applies=_falling),
    Statement("G3", compute=gap.risk_uniform, applies=_needs_ramp),
    Statement("G7", compute=gap.occam_risk),
    Statement("G11", compute=gap.risk_noise, applies=_needs_ramp),
    Statement("G12", compute=_refined, applies=_falling),
    Statement("G13", compute=_stored, applies=_says_bits),
    Statement("G8", compute=_sparse, applies=_fits),
)
