"""X5, the learning gap of a setting: one uniform cover of every piece at scale 1/m, so that T does not enter."""

from __future__ import annotations

from boundcalc.base.errors import Refusal, Unsupported
from boundcalc.base.intervals import INTERVAL, certainly_le, upper_float
from boundcalc.base.numbers import Number
from boundcalc.base.value import Value
from boundcalc.lab.latent import formulas
from boundcalc.setting import Setting
from boundcalc.statements import gap
from boundcalc.statements.covers import LEMMAS
from boundcalc.statements.network import Network, Piece
from boundcalc.statements.targets import Target

_COVERS = ("T4", "T5", "T8", "T9", "T10")
"""Volumetric and low-rank covers, and those of offsets, gains and token tables."""


def learning_bound(setting: Setting, *, excess: bool = False) -> Value:
    """The generalization gap of every model of the setting, or (`excess`) an empirical minimiser's excess risk.

    The loss is in [0, 1]: the setting's ramp, or one with its Lipschitz constant; for masked tokens its mean over them.
    """
    lowered = Network(setting, INTERVAL)
    m = INTERVAL.number(setting.sample.n_train)
    count = INTERVAL.number(0)
    for piece in lowered.pieces:
        count = count + _cost(piece, 1 / (len(lowered.pieces) * m * piece.gain))
    log_inverse_delta = INTERVAL.log(1 / INTERVAL.number(setting.sample.delta))
    value = gap.gap_uniform_single(INTERVAL, 1 / m, count, log_inverse_delta, m)
    quantity = "generalization gap"
    if excess:
        value = formulas.excess_risk(INTERVAL, value, log_inverse_delta, m)
        quantity = "excess risk of an empirical minimiser, with probability 1 - 2 delta"
    inputs = {"m": setting.sample.n_train, "T": setting.architecture.seq_len, "delta": setting.sample.delta}
    chosen = {"entropy": upper_float(count), "pieces": float(len(lowered.pieces))}
    seen = setting.norms.measured or setting.sample.measured  # not corrected for here
    kind = "estimate" if seen else "bound"
    form = "excess" if excess else "gap"
    return Value.of("X5", quantity, kind, upper_float(value), form, inputs, chosen, 1.0)


def _cost(piece: Piece, eps: Number) -> Number:
    total = INTERVAL.number(0)
    for member in piece.members:
        if piece.key.startswith("positions"):
            raise Unsupported(
                Refusal(
                    "X5",
                    "learned positions, whose number grows with T",
                    "fixed positions, or none",
                    _FIX,
                )
            )
        costs = [cost for target in member.targets for cost in _covers(target, eps)]
        if not costs:
            raise Unsupported(Refusal("X5", f"a piece {piece.key} without a uniform cover", "a spectral norm budget"))
        total = total + member.multiplicity * INTERVAL.minimum(*costs)
    return total


_FIX = "Use positions='fixed' or 'none'."


def _covers(target: Target, eps: Number) -> list[Number]:
    counts: list[Number] = []
    for name in _COVERS:
        lemma = LEMMAS[name]
        if lemma.uniform and lemma.applies(target) is None:
            y = lemma.reach(target) / eps
            covered = certainly_le(y, 1)
            counts.append(INTERVAL.number(0) if covered else lemma.closed(INTERVAL, y, target, INTERVAL.number(1)))
    return counts
