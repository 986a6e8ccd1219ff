"""R4: the sign of a network is right on all 2^T inputs, shown in closed form and in interval arithmetic.

Only the arrays are read. Scores must not depend on the bits; then the masses are known numbers, and what a hidden
unit sees is a known number, plus what each of the s bits adds, plus what the T - s others add: at worst the sum of the
absolute values. Two ways to go through the s bits:

- levels: the value matrix depends on the bits through one vector (a hint, checked here up to rounding), so units are
  functions of one number U, and the sum N over units is piecewise linear in U. When h literals are true U lies in an
  interval. Between points where N turns, N is affine and max(1, |y|) convex, so where N > 0 their ratio is
  quasi-concave: it is least at an end of the interval or where N turns. s + 1 cases.
- patterns: all 2^s patterns, each unit off by the worst the other bits can do to it.

The projection before the ReLU only divides by max(1, |y|), the one after W_1 only by max(1, |.|).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from flint import arb, arb_mat

from boundcalc.base.errors import CertificateError
from boundcalc.base.intervals import lower_float, upper_float
from boundcalc.lab.represent._network import Network
from boundcalc.lab.represent.functions import SparseFunction


@dataclass(frozen=True)
class Hint:
    """A claim that hidden unit j depends on the bits as slope_j times what `reader` reads; checked, not trusted."""

    slope: np.ndarray
    reader: np.ndarray


@dataclass(frozen=True)
class Certified:
    """What was shown of all 2^T inputs.

    Attributes:
        margin: sign(f) F is at least this on every input.
        leak: upper bound of the attention that is not on the chosen positions (eta).
        cases: number of cases that were gone through.
        method: "levels" or "patterns".
        worst: the case of least margin.
        seq_len: T.
    """

    margin: float
    leak: float
    cases: int
    method: str
    worst: str
    seq_len: int

    def require(self, margin: float) -> Certified:
        """Itself, if the margin is at least so large."""
        if self.margin >= margin:
            return self
        what = "the sign may be wrong" if self.margin <= 0 else f"the margin is only {self.margin:.6g}"
        raise CertificateError(
            f"not certified: a margin of {margin:g} on all 2^{self.seq_len} inputs was claimed, but with {self.worst} "
            f"{what} (attention leaks {self.leak:.3g}); a larger beta or W_1 is needed"
        )

    def to_json(self) -> dict[str, Any]:
        """The JSON object."""
        data = asdict(self)
        return data | {"T": data.pop("seq_len")}


def certify(network: Network, function: SparseFunction, hint: Hint | None = None) -> Certified:
    """The least of min(1, N / max(1, |y|)), counted positive on the side of the function, over all inputs."""
    cases, leak = sums(network, function, hint)
    least, worst = float("inf"), ""
    for name, low in cases:
        margin = max(-1.0, min(lower_float(low), 1.0))
        if margin < least:
            least, worst = margin, name
    method = "patterns" if hint is None else "levels"
    return Certified(least, upper_float(leak), len(cases), method, worst, network.seq_len)


def sums(network: Network, function: SparseFunction, hint: Hint | None) -> tuple[list[tuple[str, arb]], arb]:
    """Of every case its name and a lower bound of N / max(1, |y|) on the function's side, and the leak."""
    rows, cls = _masses(network)
    inside = set(function.variables)
    leak = sum((mass for t, mass in enumerate(rows) if t not in inside), start=cls)
    base = _base(network, rows, cls)
    weights = [arb(float(weight)) for weight in network.w_1[:, 0]]
    if hint is not None:
        return list(_by_levels(network, rows, base, weights, function, hint)), leak
    return list(_by_patterns(network, rows, base, weights, function)), leak


def _masses(network: Network) -> tuple[list[arb], arb]:
    """The attention of [CLS] to every bit and to itself; refuses scores that depend on bits."""
    encoding, w_k = network.encoding, network.w_k
    if np.any(w_k[encoding.bit_block]):
        raise CertificateError("scores depend on the bits, which this certificate does not cover")
    query = arb(float(network.w_q[encoding.cls_index]))
    offset = arb(encoding.constant) * float(w_k[encoding.constant_index])
    raw = [(query * (arb(float(key)) * encoding.place + offset)).exp() for key in w_k[encoding.place_block]]
    cls = (query * float(w_k[encoding.cls_index])).exp()
    total = sum(raw, start=cls)
    return [value / total for value in raw], cls / total


def _base(network: Network, rows: Sequence[arb], cls: arb) -> list[arb]:
    """What every unit sees whatever the bits are."""
    encoding, w_v = network.encoding, network.w_v
    places = w_v[encoding.place_block]
    used = [t for t in range(len(places)) if np.any(places[t])]
    constant = (1 - cls) * encoding.constant
    base: list[arb] = []
    for j in range(w_v.shape[1]):
        total = constant * float(w_v[encoding.constant_index, j]) + cls * float(w_v[encoding.cls_index, j])
        base.append(sum((rows[t] * encoding.place * float(places[t, j]) for t in used), start=total))
    return base


def _carried(network: Network, reader: np.ndarray, rows: Sequence[arb]) -> list[arb]:
    """What each bit +-1 adds, through one column of the bit block."""
    amounts = np.broadcast_to(reader, len(rows))
    return [mass * (arb(float(amount)) * network.encoding.bit) for mass, amount in zip(rows, amounts, strict=True)]


def _others(carried: Sequence[arb], chosen: Sequence[int]) -> arb:
    """Upper bound of what the bits that are not chosen add, in absolute value."""
    inside = set(chosen)
    return sum((abs(value) for t, value in enumerate(carried) if t not in inside), start=arb(0))


def _by_levels(
    network: Network,
    rows: Sequence[arb],
    base: list[arb],
    weights: list[arb],
    function: SparseFunction,
    hint: Hint,
) -> Iterator[tuple[str, arb]]:
    symmetric = function.symmetric
    if symmetric is None:
        raise CertificateError("levels are for functions that are symmetric in their literals")
    carried = _carried(network, hint.reader, rows)
    slopes = [arb(float(slope)) for slope in hint.slope]
    base = [b + miss for b, miss in zip(base, _misses(network, hint), strict=True)]
    signed = [
        -carried[v] if negated else carried[v]
        for v, negated in zip(symmetric.variables, symmetric.negated, strict=True)
    ]
    one = signed[0]
    for value in signed[1:]:
        one = one.union(value)
    others, s = _others(carried, function.variables), function.arity
    for h, value in enumerate(symmetric.profile):
        middle = one * h - one * (s - h)
        ends = [middle - others, middle + others]
        turns = [_turn(b, slope, ends) for b, slope in zip(base, slopes, strict=True)]
        points = ends + [turn for turn in turns if turn is not None]
        seen = [[b + slope * point for b, slope in zip(base, slopes, strict=True)] for point in points]
        yield f"{h} of {s} literals true", _least(value, seen, weights)


def _turn(base: arb, slope: arb, ends: Sequence[arb]) -> arb | None:
    """Where a unit switches on or off, if that may be between the ends."""
    if bool(slope == 0):
        return None
    turn = -base / slope
    return None if bool(turn < ends[0]) or bool(turn > ends[1]) else turn


def _misses(network: Network, hint: Hint) -> list[arb]:
    """How far, at worst, the units may be from what the hint says: |rows - reader * slope| summed (masses sum to 1)."""
    bit_rows = network.w_v[network.encoding.bit_block]
    if (len(hint.reader), len(hint.slope)) != bit_rows.shape:
        raise CertificateError(f"the hint has {hint.reader.shape} and {hint.slope.shape} for {bit_rows.shape}")
    total = [arb(0)] * len(hint.slope)
    for t in np.flatnonzero(bit_rows.any(1) | (hint.reader != 0)):
        pairs = zip(hint.slope, bit_rows[t], strict=True)
        gaps = [abs(arb(float(hint.reader[t])) * float(slope) - float(value)) for slope, value in pairs]
        total = [missed + gap for missed, gap in zip(total, gaps, strict=True)]
    return [arb(0, upper_float(missed * network.encoding.bit)) for missed in total]


def _by_patterns(
    network: Network, rows: Sequence[arb], base: list[arb], weights: list[arb], function: SparseFunction
) -> Iterator[tuple[str, arb]]:
    if not function.table:
        raise CertificateError("patterns need a truth table")
    s, k = function.arity, len(base)
    columns = [_carried(network, column, rows) for column in network.w_v[network.encoding.bit_block].T]
    wobble = [arb(0, upper_float(_others(column, function.variables))) for column in columns]
    onto = arb_mat(s, k, [column[v] for v in function.variables for column in columns])
    signs = 2 * ((np.arange(1 << s)[:, None] >> np.arange(s)) & 1) - 1
    seen = arb_mat(1 << s, k, [b + w for _ in range(1 << s) for b, w in zip(base, wobble, strict=True)])
    seen += arb_mat(1 << s, s, [int(v) for v in signs.ravel()]) * onto
    for row, values in enumerate(seen.tolist()):
        yield f"bits {row:0{s}b}", _least(function.table[row], [values], weights)


def _least(value: int, seen: Sequence[Sequence[arb]], weights: Sequence[arb]) -> arb:
    """Lower bound of the sum over units after the first projection, from what units see at all points that matter."""
    least = arb(float("inf"))
    for values in seen:
        on = [(j, y.max(arb(0))) for j, y in enumerate(values) if not bool(y <= 0)]
        total = sum((weights[j] * y for j, y in on), start=arb(0))
        signed = (total if value else -total).lower()
        if bool(signed > 0):  # upper ends: the square of a ball around 0 may dip below 0
            size = sum((abs(y).upper() ** 2 for y in values), start=arb(0)).sqrt()
            signed = (signed / arb(upper_float(size)).max(arb(1))).lower()
        if not signed.is_finite():
            raise CertificateError("the sum over hidden units has no finite enclosure")
        if bool(signed < least):
            least = signed
    return least
