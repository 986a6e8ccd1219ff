"""The first block of a function of functions: sparse functions with a head each, their values side by side in the row of [CLS].

Every head writes to hidden units of its own, and W_1 gives every function a coordinate of its own. Scales are such
that no row leaves the unit ball, so projections do nothing. A further block (boundcalc.lab.represent.deep) reads the
row of [CLS] itself: it is found by a marker, a unit of the first head that is on only where attention is selective.
Rows other than [CLS] ask no query (their [CLS] coordinate is 0), so they attend to all rows alike, and there the
marker is off.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from flint import arb

from boundcalc.base.errors import CertificateError, InvalidSetting, NoSolution
from boundcalc.base.intervals import lower_float, upper_float
from boundcalc.lab.represent.certify import Attended, Hint, cases
from boundcalc.lab.represent.construct import make_tuner, usable
from boundcalc.lab.represent.encoding import Encoding
from boundcalc.lab.represent.functions import SparseFunction
from boundcalc.lab.represent.network import Block, Network
from boundcalc.lab.represent.positions import orthonormal
from boundcalc.lab.represent.selection import Readers, Selected, Selection, short
from boundcalc.lab.represent.tune import Choice
from boundcalc.lab.represent.units import MOST_FITTED
from boundcalc.setting.validate import size

_EVENNESS = 1.02
"""Values of an inner function stay within this factor of each other."""


@dataclass(frozen=True)
class Features:
    """k functions as the first k coordinates of one block's output, +-value each, and the marker as the last.

    Attributes:
        functions: what is computed.
        network: one block; its read-out reads the first function.
        hints: one per head.
    """

    functions: tuple[SparseFunction, ...]
    network: Network
    hints: tuple[Hint | None, ...]

    def certify(self, block: Block) -> Ranges:
        """What holds on all inputs behind this or another first block; refuses signs that may be wrong."""
        return projected(_ranges(self.network.encoding, block, self.functions, self.hints))


@dataclass(frozen=True)
class Ranges:
    """What is known of a block's output.

    Attributes:
        features: (low, high) of every function's coordinate at [CLS], counted positive on the side of its value.
        mark: the marker's coordinate there; 0 of a block without.
        size: at least the norm of what the ReLUs see at [CLS], before the projection.
        elsewhere: at most the marker of any other row; it is never negative.
        leak: at most the attention of [CLS] to other rows.
        worst: the pattern of the least value.
    """

    features: tuple[tuple[float, float], ...]
    mark: arb
    size: float
    elsewhere: float = 0.0
    leak: float = 0.0
    worst: str = ""


def projected(found: Ranges) -> Ranges:
    """Behind the projections before the ReLU and after W_1, which only shrink."""
    if min(low for low, _ in found.features) <= 0:
        raise CertificateError("the sign of a feature may be wrong")
    squares = sum((arb(high) ** 2 for _, high in found.features), start=found.mark.upper() ** 2)
    over = arb(found.size).max(arb(1)) * squares.sqrt().max(arb(1))
    kept = tuple((lower_float(arb(low) / over), high) for low, high in found.features)
    return replace(found, features=kept, mark=(found.mark / over).union(found.mark))


def features(functions: Sequence[SparseFunction], seq_len: int) -> Features:
    """Weights for several functions of T bits as coordinates of one block's output, at orthonormal positions."""
    T = size("T", seq_len)
    if not functions:
        raise InvalidSetting("give at least one function")
    smallest = tuple(usable(function, T) for function in functions)
    views: list[Selected] = []
    choices: list[Choice] = []
    for function in smallest:
        kind = "signed mean" if function.symmetric is not None else "corners"
        if kind == "corners" and function.arity > MOST_FITTED:
            raise InvalidSetting(f"a feature that is not symmetric may have {MOST_FITTED} bits, got {function.arity}")
        selection = Selection(orthonormal(T), function.variables)
        view, tuner = make_tuner(function, selection, kind, most=_EVENNESS)
        views.append(view)
        choices.append(tuner.best())
    leading = max(choices, key=lambda choice: choice.capacity)
    encoding = Encoding.of(orthonormal(T), False, leading.place, leading.bit, leading.constant)
    return _assemble(encoding, smallest, views, choices)


def _assemble(
    encoding: Encoding, functions: tuple[SparseFunction, ...], views: Sequence[Selected], choices: Sequence[Choice]
) -> Features:
    heads = len(functions)
    widths = [choice.units.count for choice in choices]
    total = sum(widths) + 1
    w_q, w_k = np.zeros((heads, encoding.width)), np.zeros((heads, encoding.width))
    w_v = np.zeros((heads, encoding.width, total))
    w_1 = np.zeros((total, heads + 1))
    hints: list[Hint | None] = []
    start = 0
    for h, (view, choice, count) in enumerate(zip(views, choices, widths, strict=True)):
        beta = max(choice.beta, 1.0)
        units = choice.units.scaled(1 / math.sqrt(heads + 1))
        readers = Readers.of(encoding, view.selection, beta, view.signs)
        mine = slice(start, start + count)
        alpha, theta = np.zeros((len(readers.bits), total)), np.zeros(total)
        alpha[:, mine], theta[mine] = short(units.alpha), short(units.theta)
        w_q[h, encoding.cls_index] = 1.0
        w_k[h, encoding.place_block] = beta / encoding.place * view.selection.total
        w_v[h, encoding.bit_block] = readers.bits.T @ alpha
        w_v[h, encoding.place_block] = np.outer(readers.place, theta)
        w_v[h, encoding.constant_index] = readers.constant * theta
        w_1[mine, h] = units.weight
        hints.append(Hint(alpha[0], readers.bits[0]) if view.by_mean else None)
        start += count
    _mark(encoding, views[0], w_v[0], w_1)
    block, hints = _fitted(encoding, Block(w_q, w_k, w_v, w_1), functions, hints)
    readout = np.zeros(w_1.shape[1])
    readout[0] = 1.0
    return Features(functions, Network(encoding, (block,), readout), tuple(hints))


def _mark(encoding: Encoding, view: Selected, w_v: np.ndarray, w_1: np.ndarray) -> None:
    """The last unit: mass on the chosen positions less as much of the others' as makes even attention count below 0."""
    if encoding.seq_len == view.s:
        raise NoSolution("the first function reads all T bits: nothing tells [CLS] from the other rows; add a bit to T")
    weight = view.s / (encoding.seq_len - view.s) * (1 + 1e-9)
    w_v[encoding.place_block, -1] = (view.selection.total - weight * view.selection.others) / encoding.place
    w_1[-1, -1] = 1.0


def _fitted(
    encoding: Encoding, block: Block, functions: Sequence[SparseFunction], hints: Sequence[Hint | None]
) -> tuple[Block, list[Hint | None]]:
    """Scaled so that the row of [CLS] does not leave the unit ball, before the ReLU and after W_1.

    The value matrix is scaled by a power of 2, so that its products with the hints stay exact.
    """
    found = _ranges(encoding, block, functions, hints)
    shrink = 2.0 ** -math.ceil(math.log2(found.size * (1 + 1e-6)))
    highs = [*(high for _, high in found.features), upper_float(found.mark)]
    w_1 = block.w_1.copy()
    for j, high in enumerate(highs):
        w_1[:, j] /= high * shrink * math.sqrt(w_1.shape[1]) * (1 + 1e-6)
    scaled = [None if hint is None else Hint(hint.slope * shrink, hint.reader) for hint in hints]
    return replace(block, w_v=block.w_v * shrink, w_1=w_1), scaled


def _ranges(
    encoding: Encoding, block: Block, functions: Sequence[SparseFunction], hints: Sequence[Hint | None]
) -> Ranges:
    """What is known before the projections."""
    heads = len(functions)
    if block.w_1.shape[1] != heads + 1:
        raise CertificateError(f"{heads} functions have {heads} coordinates and a marker, got {block.w_1.shape[1]}")
    lows, highs, sizes, marks = [math.inf] * heads, [0.0] * heads, list[float](), list[arb]()
    for h, (function, hint) in enumerate(zip(functions, hints, strict=True)):
        mine = np.flatnonzero(np.any(block.w_v[h], axis=0))
        others = [j for g in range(heads) if g != h for j in np.flatnonzero(np.any(block.w_v[g], axis=0))]
        if set(mine.tolist()) & set(others):
            raise CertificateError("two heads share a hidden unit, which this certificate does not cover")
        foreign = [j for j in range(heads) if j != h]
        if np.any(block.w_1[mine][:, foreign]):
            raise CertificateError("a hidden unit of one function counts for another, which is not covered")
        found, masses = cases(encoding, block, function, head=h, hint=hint)
        for case in found:
            lows[h] = min(lows[h], lower_float(case.signed(h)))
            highs[h] = max(highs[h], upper_float(case.high[h] if case.value else -case.low[h]))
        sizes.append(max(upper_float(case.size) for case in found))
        if h == 0:
            marks.append(_marker(encoding, block, masses))
            if any(not bool(arb(case.low[-1]) >= marks[0].lower() - 1e-9) for case in found):
                raise CertificateError("the marker depends on the bits")
        elif np.any(block.w_1[mine, -1]):
            raise CertificateError("the marker must belong to the first head")
    reach = upper_float(sum((arb(x) ** 2 for x in sizes), start=arb(0)).sqrt())
    return Ranges(tuple(zip(lows, highs, strict=True)), marks[0], reach)


def _marker(encoding: Encoding, block: Block, masses: Attended) -> arb:
    """The marker's coordinate at [CLS]; refuses a marker that sees bits or is not off at the other rows."""
    w_v, count = block.w_v[0][:, -1], encoding.seq_len + 1
    if np.any(w_v[encoding.bit_block]) or w_v[encoding.cls_index] or np.count_nonzero(block.w_1[:, -1]) != 1:
        raise CertificateError("the marker must not see bits")
    if any(np.any(np.delete(w_q, encoding.cls_index)) for w_q in block.w_q):
        raise CertificateError("rows other than [CLS] must ask no query")
    if not encoding.positions.exact:
        raise CertificateError("the marker is certified at orthonormal positions")
    place, constant = w_v[encoding.place_block], arb(float(w_v[encoding.constant_index])) * encoding.constant
    here = (1 - masses.cls) * constant
    even = constant * encoding.seq_len / count
    for t in np.flatnonzero(place):
        here += masses.rows[t] * float(place[t]) * encoding.place
        even += arb(float(place[t])) * encoding.place / count
    if not bool(even <= 0):
        raise CertificateError("the marker is on where attention is even")
    return here.max(arb(0)) * float(block.w_1[-1, -1])
