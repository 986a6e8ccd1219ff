"""Functions of functions of functions, to any depth: one block for each level, all in the row of [CLS].

The first block computes functions of the bits and a marker (boundcalc.lab.represent.features). In every further block
[CLS] finds itself by the marker: scores are beta times marker times marker. It attends to itself up to a leak, the features
in its row act as bits with slack, and every function of them has hidden units and a coordinate of its own. Symmetric functions
have ramps that are flat within the slack, so that slack does not add up over levels.

The marker must outlive its block. Behind the first it is exactly 0 at the other rows; from then on it is copied, and other
rows get some of it: with b the product of the query's and the key's weight and u the marker of [CLS], a row whose marker is
at most o gives [CLS] a mass of at most e^(b o u)/(e^(b o u) + T), as scores are never negative. So its next marker is at most
a copy of o plus that mass times u. This is all that is carried from level to level: ranges of the features, and of the
marker at [CLS] and elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np
from flint import arb

from boundcalc.base.errors import CertificateError, InvalidSetting, NoSolution
from boundcalc.base.intervals import lower_float, upper_float
from boundcalc.lab.represent.certify import Certified
from boundcalc.lab.represent.construct import usable
from boundcalc.lab.represent.features import Features, Ranges, features, projected
from boundcalc.lab.represent.functions import SparseFunction
from boundcalc.lab.represent.network import Block, Network
from boundcalc.lab.represent.units import MOST_FITTED, Units, fit_bits, fit_mean

_LEAK = 1e-4
"""What a block may attend to besides [CLS]."""
_EVEN = (1.02, 1.05, 1.1, 1.2, 1.4)
"""Sums of a level stay within such a factor of each other, where they can."""
_MOST_FEATURES = 8
"""Of a level: all their patterns are gone through."""
_HAIR = 1 + 1e-6


@dataclass(frozen=True)
class Deep:
    """A function of the bits in as many blocks as it has levels.

    Attributes:
        levels: functions of the bits, then of the functions before, at last one function.
        inner: the first block.
        network: all blocks.
    """

    levels: tuple[tuple[SparseFunction, ...], ...]
    inner: Features
    network: Network

    def values(self, bits: np.ndarray) -> np.ndarray:
        """Values 0 and 1 on sequences of bits (n, T)."""
        found = np.asarray(bits)
        for level in self.levels:
            found = np.stack([function.values(found) for function in level], axis=-1)
        return found[..., 0]

    def certify(self, margin: float | None = None) -> Certified:
        """What can be shown of all 2^T inputs; refuses a margin below the one asked for."""
        self.network.require(len(self.inner.functions), *(1,) * (len(self.levels) - 1))
        if self.network.readout.shape != (1,) or not self.network.readout[0] >= 0:
            raise CertificateError("the last block must have one output, read by a number of at least 0")
        state, T = self.inner.certify(self.network.blocks[0]), self.network.seq_len
        leak = 0.0
        for level, block in zip(self.levels[1:-1], self.network.blocks[1:-1], strict=True):
            state = projected(_passed(state, block, level, T))
            leak = max(leak, state.leak)
        last = _passed(state, self.network.blocks[-1], self.levels[-1], T)
        low = arb(last.features[0][0])
        reached = (low / arb(last.size).max(arb(1))).lower() if last.features[0][0] > 0 else low
        least = lower_float(arb(max(-1.0, min(1.0, lower_float(reached)))) * float(self.network.readout[0]))
        cases = sum(1 << len(level) for level in self.levels[:-1])
        found = Certified(least, max(leak, last.leak), cases, "patterns of features", last.worst, T)
        return found if margin is None else found.require(margin)


def deep(levels: Sequence[Sequence[SparseFunction]], seq_len: int) -> Deep:
    """Weights for functions of functions: what a level's functions read decides how many of the level before are built.

    Args:
        levels: functions of the bits first; variable i of the others is function i of the level before; at last one function.
        seq_len: T.

    Returns:
        The network, of a block per level, and the functions it computes, of which those that nothing reads are left out.
    """
    if len(levels) < 2 or len(levels[-1]) != 1:
        counts = " and ".join(str(len(level)) for level in levels) or "none"
        raise InvalidSetting(
            f"deep functions have two levels or more, the last of one function; got {counts} of them by level"
        )
    first, *made = _read(levels)
    inner = features(first, seq_len)
    T, state = inner.network.seq_len, inner.certify(inner.network.blocks[0])
    blocks = [inner.network.blocks[0]]
    for index, level in enumerate(made):
        last = index == len(made) - 1
        blocks.append(_fitted(state, _drawn(state, level, T, marker=not last), level, T, last=last))
        if not last:
            state = projected(_passed(state, blocks[-1], level, T))
    network = Network(inner.network.encoding, tuple(blocks), np.ones(1))
    return Deep((inner.functions, *made), inner, network)


def _read(levels: Sequence[Sequence[SparseFunction]]) -> list[tuple[SparseFunction, ...]]:
    """The levels without functions that nothing reads; further ones as tables of what they depend on."""
    kept: list[tuple[SparseFunction, ...]] = []
    level = tuple(levels[-1])
    for before in reversed(levels[:-1]):
        if len(before) > _MOST_FEATURES:
            raise InvalidSetting(f"a level may have {_MOST_FEATURES} functions, got {len(before)}")
        for function in level:
            if any(v >= len(before) for v in function.variables) or not 1 <= function.arity <= MOST_FITTED:
                which = "which is x0" if len(before) == 1 else f"which are x0 to x{len(before) - 1}"
                raise InvalidSetting(
                    f"a function of a level reads 1 to {MOST_FITTED} of the {len(before)} before, {which}; "
                    f"got {function.describe()}"
                )
        tables = [usable(function.tabulated(), len(before)) for function in level]
        read = sorted({v for function in tables for v in function.variables})
        kept.append(tuple(replace(f, variables=tuple(read.index(v) for v in f.variables)) for f in tables))
        level = tuple(before[v] for v in read)
    return [level, *reversed(kept)]


def _drawn(state: Ranges, level: Sequence[SparseFunction], T: int, *, marker: bool) -> Block:
    """Units of the features as of bits, side by side, and one that copies the marker; not yet scaled."""
    k, level_of = len(state.features), float(state.mark.mid())
    if state.elsewhere >= level_of:
        raise NoSolution("the marker of [CLS] is lost among the other rows: T is too short for so many levels")
    beta = math.log(T * (1 - _LEAK) / _LEAK) / (level_of * (level_of - state.elsewhere))
    middles = np.array([(low + high) / 2 for low, high in state.features])
    reader = 1 / ((1 - _LEAK) * middles)
    spread = max((high - low) / (high + low) for low, high in state.features)
    spread += float(state.mark.rad()) / level_of  # constants are read off the marker
    slack = spread + _LEAK / (1 - _LEAK) / float(middles.min())
    sizes = (float(reader.max()), 1 / level_of)
    fitted = [_even(function, slack, sizes) for function in level]
    total = sum(units.count for units in fitted) + marker
    w_v, w_1 = np.zeros((1, k + 1, total)), np.zeros((total, len(level) + marker))
    start = 0
    for j, (function, units) in enumerate(zip(level, fitted, strict=True)):
        mine = slice(start, start + units.count)
        rows = np.asarray(function.variables)
        w_v[0, rows, mine] = reader[rows, None] * units.alpha
        w_v[0, k, mine] = units.theta / ((1 - _LEAK) * level_of)
        w_1[mine, j] = units.weight
        start += units.count
    if marker:
        w_v[0, k, -1] = w_1[-1, -1] = 1.0
    w_q, w_k = np.zeros((1, k + 1)), np.zeros((1, k + 1))
    w_q[0, k] = w_k[0, k] = math.sqrt(beta)
    return Block(w_q, w_k, w_v, w_1)


def _even(function: SparseFunction, slack: float, sizes: tuple[float, float]) -> Units:
    """Units whose sums have sizes as alike as the slack allows, so that the next level has little of it.

    Symmetric functions have ramps that are flat within the slack, so they begin anew; others pass some of it on.
    """
    symmetric = function.symmetric
    if symmetric is not None:
        with suppress(NoSolution):
            mean = fit_mean(symmetric.profile, slack, sizes, _EVEN[0])
            signs = dict(zip(symmetric.variables, np.where(symmetric.negated, -1.0, 1.0), strict=True))
            share = np.array([signs[v] for v in function.variables]) / function.arity
            return Units(np.outer(share, mean.alpha[0]), mean.theta, mean.weight)
    for most in _EVEN:
        with suppress(NoSolution):
            return fit_bits(function.table, slack, sizes, most)
    return fit_bits(function.table, slack, sizes)


def _fitted(state: Ranges, block: Block, level: Sequence[SparseFunction], T: int, *, last: bool) -> Block:
    """Scaled so that the row of [CLS] does not leave the ball; the last block so that the margin is 1."""
    size = _passed(state, block, level, T).size
    scaled = replace(block, w_v=block.w_v / (size * _HAIR))
    passed = _passed(state, scaled, level, T)
    if min(low for low, _ in passed.features) <= 0:
        raise NoSolution("the levels could not be certified: those before leave too little room")
    if last:
        return replace(scaled, w_1=scaled.w_1 * (1 + 1e-8) / passed.features[0][0])
    highs = [*(high for _, high in passed.features), upper_float(passed.mark)]
    return replace(scaled, w_1=scaled.w_1 / (np.array(highs) * math.sqrt(len(highs)) * _HAIR))


def _passed(state: Ranges, block: Block, level: Sequence[SparseFunction], T: int) -> Ranges:
    """All patterns of the features, each anywhere in its range; the other rows, of norm at most 1, at worst."""
    k, outputs = len(state.features), block.w_1.shape[1]
    if outputs not in (len(level), len(level) + 1):
        raise CertificateError(f"{len(level)} functions have as many coordinates, or a marker more, got {outputs}")
    if np.any(block.w_q[0][:k]) or np.any(block.w_k[0][:k]):
        raise CertificateError("scores of a further block must depend on the marker alone")
    product = arb(float(block.w_q[0][k])) * float(block.w_k[0][k])
    if not bool(product >= 0):
        raise CertificateError("queries and keys must have the same sign, so that scores are never negative")
    zero, mark = arb(0), state.mark
    ahead = product * mark * mark
    near = product * mark * arb(0).union(arb(state.elsewhere))  # the score of another row
    others = (arb(T) * (near - ahead).exp()).union(arb(T) * (-ahead).exp())
    own, leak = 1 / (1 + others), upper_float(others / (1 + others))
    columns = [[arb(float(v)) for v in column] for column in block.w_v[0].T]
    stray = [_astray(column, leak) for column in columns]
    weights = [[arb(float(v)) for v in column] for column in block.w_1.T]
    lows, highs, size, worst = [math.inf] * len(level), [-math.inf] * len(level), 0.0, ""
    sides = [arb(low).union(arb(high)) for low, high in state.features]
    marks: list[arb] = []
    for row in range(1 << k):
        inputs = [side if (row >> i) & 1 else -side for i, side in enumerate(sides)]
        seen = [
            own * (sum((x * v for x, v in zip(inputs, column[:k], strict=True)), start=zero) + mark * column[k]) + off
            for column, off in zip(columns, stray, strict=True)
        ]
        size = max(size, upper_float(sum((abs(y).upper() ** 2 for y in seen), start=zero).sqrt()))
        total = [_total(weight, seen, columns, [*inputs, mark], own, leak) for weight in weights]
        for j, function in enumerate(level):
            value = function.table[sum(((row >> v) & 1) << i for i, v in enumerate(function.variables))]
            signed = total[j] if value else -total[j]
            if lower_float(signed) < lows[j]:
                lows[j], worst = lower_float(signed), f"features {row:0{k}b}"
            highs[j] = max(highs[j], upper_float(signed))
        if outputs > len(level):
            marks.append(total[-1])
    found = tuple(zip(lows, highs, strict=True))
    if not marks:
        return Ranges(found, zero, size, leak=leak, worst=worst)
    return Ranges(found, reduce(arb.union, marks), size, _elsewhere(state, block, T, product), leak, worst)


def _astray(column: Sequence[arb], leak: float) -> arb:
    """What rows of norm at most 1 add to a unit, at the mass they get."""
    return arb(0, upper_float(leak * sum((v**2 for v in column), start=arb(0)).sqrt()))


def _total(
    weights: Sequence[arb],
    seen: Sequence[arb],
    columns: Sequence[Sequence[arb]],
    inputs: Sequence[arb],
    own: arb,
    leak: float,
) -> arb:
    """The weighted sum of units. Those that are on for certain are one linear map of the row, whose slack may cancel."""
    total, zero = arb(0), arb(0)
    joint = [zero] * len(inputs)
    for weight, y, column in zip(weights, seen, columns, strict=True):
        if bool(weight == 0) or bool(y <= 0):
            continue
        if bool(y >= 0):
            joint = [a + weight * v for a, v in zip(joint, column, strict=True)]
        else:
            total += weight * y.max(zero)
    return total + own * sum((x * v for x, v in zip(inputs, joint, strict=True)), start=zero) + _astray(joint, leak)


def _elsewhere(state: Ranges, block: Block, T: int, product: arb) -> float:
    """At most the marker that other rows get: what they copy, and the mass they may give [CLS] times its marker."""
    w_v, k = block.w_v[0], len(state.features)
    (units,) = np.nonzero(block.w_1[:, -1])
    if len(units) != 1 or np.any(block.w_1[units[0], :-1]) or np.any(w_v[:k, units[0]]) or w_v[k, units[0]] < 0:
        raise CertificateError(
            "the marker must be copied by one unit that sees nothing else and counts for nothing else"
        )
    if block.w_1[units[0], -1] < 0:
        raise CertificateError("the marker must be copied with a weight that is not negative")
    pull = (product * state.elsewhere * state.mark.upper()).exp()
    given = pull / (pull + T) * state.mark.upper() + state.elsewhere
    return upper_float(given * float(w_v[k, units[0]]) * float(block.w_1[units[0], -1]))
