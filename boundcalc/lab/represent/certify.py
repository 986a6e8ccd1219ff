"""R4: the sign of a network is right on all 2^T inputs, shown in closed form and in interval arithmetic.

Only the arrays are looked at. Scores must not depend on the bits; then the masses are known numbers, and what a hidden
unit sees is a known number, plus what each of the s bits adds, plus what the T - s others add: at worst the sum of the
absolute values. Two ways to go through the s bits:

- levels: the value matrix depends on the bits through one vector (a hint, checked here up to rounding), so units are
  functions of one number U, and the sum N over units is piecewise linear in U. When h literals are true U lies in an
  interval. Between points where N turns, N is affine and max(1, |y|) convex, so where N > 0 their ratio is quasi-concave:
  it is least at an end of the interval or where N turns. s + 1 cases.
- patterns: all 2^s patterns, each unit off by the worst the other bits can do to it.

The projection before the ReLU only divides by max(1, |y|), the one after W_1 only by max(1, |.|).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from flint import arb, arb_mat

from boundcalc.base.errors import CertificateError
from boundcalc.base.intervals import lower_float, upper_float
from boundcalc.lab.represent.encoding import Encoding
from boundcalc.lab.represent.functions import SparseFunction
from boundcalc.lab.represent.network import Block

_ROUND = 2.0**-50


@dataclass(frozen=True)
class Case:
    """What holds whenever the s bits are in one pattern (or level): enclosures.

    Attributes:
        name: which pattern.
        value: of the function, 0 or 1.
        low: the weighted sum of units before any projection is at least this, one number per column of W_1,
        high: and at most this.
        size: at least |y|.
        least: after the first projection, the sum counted positive on the side of the value is at least this.
    """

    name: str
    value: int
    low: tuple[arb, ...]
    high: tuple[arb, ...]
    size: arb
    least: tuple[arb, ...]

    def signed(self, column: int = 0) -> arb:
        """At least the weighted sum before projections, counted positive on the side of the value."""
        return self.low[column] if self.value else -self.high[column]


@dataclass(frozen=True)
class Hint:
    """A claim that hidden unit j depends on the bits as slope_j times what `reader` reads; checked, not trusted."""

    slope: np.ndarray
    reader: np.ndarray


@dataclass(frozen=True)
class Attended:
    """The attention of [CLS] in one head: enclosed masses."""

    rows: list[arb]
    cls: arb
    leak: arb


def _attend(encoding: Encoding, w_q: np.ndarray, w_k: np.ndarray, chosen: Sequence[int]) -> Attended:
    """Softmax masses; refuses scores that depend on bits."""
    if np.any(w_k[encoding.bit_block]):
        raise CertificateError("scores depend on the bits, which this certificate does not cover")
    query = arb(float(w_q[encoding.cls_index]))
    offset = arb(encoding.constant) * float(w_k[encoding.constant_index])
    products = encoding.positions.enclosed_products(w_k[encoding.place_block])
    raw = [(query * (product * encoding.place + offset)).exp() for product in products]
    cls = (query * float(w_k[encoding.cls_index])).exp()
    total = sum(raw, start=cls)
    rows = [value / total for value in raw]
    inside = set(chosen)
    leak = sum((mass for t, mass in enumerate(rows) if t not in inside), start=cls / total)
    return Attended(rows, cls / total, leak)


def cases(
    encoding: Encoding, block: Block, function: SparseFunction, *, head: int = 0, hint: Hint | None = None
) -> tuple[list[Case], Attended]:
    """All cases of the hidden units that one head feeds (those its value matrix touches)."""
    masses = _attend(encoding, block.w_q[head], block.w_k[head], function.variables)
    w_v = block.w_v[head]
    base = _base(encoding, w_v, masses)
    outputs = [[arb(float(g)) for g in column] for column in block.w_1.T]
    if hint is not None:
        found = list(_by_levels(encoding, w_v, masses, base, outputs, function, hint))
    else:
        found = list(_by_patterns(encoding, w_v, masses, base, outputs, function))
    return found, masses


def _base(encoding: Encoding, w_v: np.ndarray, masses: Attended) -> list[arb]:
    """What every unit sees whatever the bits are."""
    mixture = encoding.positions.enclosed_mixture(masses.rows)
    rows = w_v[encoding.place_block]
    used = [i for i in range(len(rows)) if np.any(rows[i])]
    constant = (1 - masses.cls) * encoding.constant
    out: list[arb] = []
    for j in range(w_v.shape[1]):
        total = constant * float(w_v[encoding.constant_index, j]) + masses.cls * float(w_v[encoding.cls_index, j])
        for i in used:
            total += mixture[i] * encoding.place * float(rows[i, j])
        out.append(total)
    return out


def _carried(encoding: Encoding, reader: np.ndarray, masses: Attended) -> list[arb]:
    """What each bit +-1 adds, through one column of the bit block."""
    if encoding.shared:
        amount = arb(float(reader[0])) * encoding.bit
        return [mass * amount for mass in masses.rows]
    products = encoding.positions.enclosed_products(reader)
    return [mass * product * encoding.bit for mass, product in zip(masses.rows, products, strict=True)]


def _off(carried: Sequence[arb], chosen: Sequence[int]) -> arb:
    """At most what the bits that are not chosen add, in absolute value."""
    inside = set(chosen)
    return sum((abs(value) for t, value in enumerate(carried) if t not in inside), start=arb(0))


def _by_levels(
    encoding: Encoding,
    w_v: np.ndarray,
    masses: Attended,
    base: list[arb],
    outputs: list[list[arb]],
    function: SparseFunction,
    hint: Hint,
) -> Iterator[Case]:
    symmetric = function.symmetric
    if symmetric is None:
        raise CertificateError("levels are for functions that are symmetric in their literals")
    carried = _carried(encoding, hint.reader, masses)
    slopes = [arb(float(a)) for a in hint.slope]
    base = [b + _ball(miss) for b, miss in zip(base, _misses(encoding, w_v[encoding.bit_block], hint), strict=True)]
    one = None
    for variable, negated in zip(symmetric.variables, symmetric.negated, strict=True):
        this = -carried[variable] if negated else carried[variable]
        one = this if one is None else one.union(this)
    assert one is not None  # noqa: S101 - a function of no bits is refused before
    off = _off(carried, function.variables)
    s = function.arity
    for h, value in enumerate(symmetric.profile):
        middle = one * h - one * (s - h)
        ends = [middle - off, middle + off]
        points = ends + [
            turn for b, slope in zip(base, slopes, strict=True) if (turn := _turn(b, slope, ends)) is not None
        ]
        seen = [[b + slope * point for b, slope in zip(base, slopes, strict=True)] for point in points]
        yield _case(f"{h} of {s} literals true", value, seen, outputs)


def _turn(base: arb, slope: arb, ends: Sequence[arb]) -> arb | None:
    """Where a unit switches on or off, if that may be between the ends."""
    if bool(slope == 0):
        return None
    turn = -base / slope
    if bool(turn < ends[0]) or bool(turn > ends[1]):
        return None
    return turn


def _misses(encoding: Encoding, bit_rows: np.ndarray, hint: Hint) -> list[float]:
    """How far, at worst, the units may be from what the hint says: |rows - reader * slope| summed (masses sum to 1)."""
    said = np.outer(hint.reader, hint.slope)
    if said.shape != bit_rows.shape:
        raise CertificateError(f"the hint has shape {said.shape}, the value matrix {bit_rows.shape}")
    gap = np.abs(bit_rows - said) * (1 + _ROUND) + np.abs(said) * 2.0**-52 + np.where(said != bit_rows, 1e-300, 0.0)
    exact = (bit_rows == said) & _short(hint.reader)[:, None] & _short(hint.slope)[None, :]
    gap = np.where(exact, 0.0, gap)
    return [float(x) * encoding.bit * (1 + _ROUND * len(gap)) for x in gap.sum(0)]


def _short(x: np.ndarray) -> np.ndarray:
    """Which numbers have at most 26 bits, so that products of two are exact."""
    mantissa = np.frexp(x)[0] * 2.0**26
    return mantissa == np.round(mantissa)


def _by_patterns(
    encoding: Encoding,
    w_v: np.ndarray,
    masses: Attended,
    base: list[arb],
    outputs: list[list[arb]],
    function: SparseFunction,
) -> Iterator[Case]:
    if not function.table:
        raise CertificateError("patterns need a truth table")
    s, k = function.arity, w_v.shape[1]
    bit_rows = w_v[encoding.bit_block]
    columns = [
        _carried(encoding, bit_rows[:, j], masses) if np.any(bit_rows[:, j]) else [arb(0)] * encoding.seq_len
        for j in range(k)
    ]
    wobble = [_ball(upper_float(_off(column, function.variables))) for column in columns]
    onto = arb_mat(s, k, [column[v] for v in function.variables for column in columns])
    signs = 2 * ((np.arange(1 << s)[:, None] >> np.arange(s)) & 1) - 1
    seen = arb_mat(1 << s, k, [b + w for _ in range(1 << s) for b, w in zip(base, wobble, strict=True)])
    seen += arb_mat(1 << s, s, [int(v) for v in signs.ravel()]) * onto
    for row, values in enumerate(seen.tolist()):
        yield _case(f"bits {row:0{s}b}", function.table[row], [values], outputs)


def _case(name: str, value: int, seen: Sequence[Sequence[arb]], outputs: Sequence[Sequence[arb]]) -> Case:
    """From what the units see at all points that matter (each an enclosure)."""
    one = arb(1)
    totals = [_totals(values, outputs) for values in seen]
    sizes = [arb(upper_float(_norm(values))) for values in seen]
    low = tuple(_extreme([total.lower() for total in column], -1) for column in zip(*totals, strict=True))
    high = tuple(_extreme([total.upper() for total in column], 1) for column in zip(*totals, strict=True))
    projected: list[list[arb]] = []
    for total, size in zip(totals, sizes, strict=True):
        signed = [(x if value else -x).lower() for x in total]
        projected.append([(x / size.max(one)).lower() if bool(x > 0) else x for x in signed])
    least = tuple(_extreme(column, -1) for column in zip(*projected, strict=True))
    return Case(name, value, low, high, _extreme(sizes, 1), least)


def _extreme(values: Sequence[arb], side: int) -> arb:
    """The least (-1) or greatest (1) of exact numbers."""
    found = values[0]
    for value in values[1:]:
        if bool(value > found) if side > 0 else bool(value < found):
            found = value
    return found


def _totals(values: Sequence[arb], outputs: Sequence[Sequence[arb]]) -> list[arb]:
    """Weighted sums of ReLUs."""
    zero = arb(0)
    on = [(j, value.max(zero)) for j, value in enumerate(values) if not bool(value <= 0)]
    return [sum((column[j] * value for j, value in on), start=zero) for column in outputs]


def _norm(values: Sequence[arb]) -> arb:
    """At least the l2 norm (of upper ends: the square of a ball around 0 may dip below 0)."""
    return sum((abs(value).upper() ** 2 for value in values), start=arb(0)).sqrt()


def _ball(radius: float) -> arb:
    return arb(0, radius)


@dataclass(frozen=True)
class Certified:
    """What was shown of all 2^T inputs.

    Attributes:
        margin: sign(f) F is at least this on every input.
        leak: at most the attention that is not on the chosen positions (eta).
        cases: how many were gone through.
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
        return {
            "margin": self.margin,
            "leak": self.leak,
            "cases": self.cases,
            "method": self.method,
            "worst": self.worst,
            "T": self.seq_len,
        }


def settle(found: Sequence[Case], masses: Attended, readout: float, method: str, seq_len: int) -> Certified:
    """The least margin over cases of one scalar output: readout * min(1, total / max(1, |y|))."""
    if not readout >= 0:
        raise CertificateError(f"this certificate is for read-outs of at least 0, got {readout!r}: negate W_1 instead")
    least, worst = float("inf"), ""
    for case in found:
        low = lower_float(case.least[0])
        margin = lower_float(arb(max(-1.0, min(low, 1.0))) * readout)
        if margin < least:
            least, worst = margin, case.name
    return Certified(least, upper_float(masses.leak), len(found), method, worst, seq_len)
