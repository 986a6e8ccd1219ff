"""From trained weights to few bits: rounded to steps of powers of two, coarser and coarser, as long as the bound falls.

Any search will do, for the code alone is paid. This one trains nothing: it knows weights and what a network answers
with others in their place.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from boundcalc.base.answers import count_wrong
from boundcalc.predictors.certificate import Certified, equal_shares
from boundcalc.predictors.data import Array, Data
from boundcalc.predictors.occam import Code, Message, Network, Update, certify_message, float_risk

MOST = 2 * 10**6
"""Numbers of a network of which a rounding is looked for."""
_MOST_WRITTEN = 2**14
"""Numbers other than 0 in a message."""
_TRIES, _MOVES, _SCREEN = 32, 24, 1000
"""Roundings whose errors are counted, changes of single tensors after that, and examples they are counted on."""
_VACUOUS = 0.999
"""Bounds from here on are not searched below."""


@dataclass(frozen=True)
class _Rounding:
    """Exponents of two of the steps of some tensors; entries below `least` are left out."""

    code: int
    exponents: Mapping[str, int]
    least: float = 0.0


@dataclass
class _Search:
    network: Network
    codes: Sequence[Code]
    moved: list[dict[str, Array]]
    data: Data
    share: float
    some: Data
    counted: int = 0

    def message(self, rounding: _Rounding) -> Message | None:
        """What is written; None where it is too long."""
        updates: dict[str, Update] = {}
        for name, exponent in rounding.exponents.items():
            far = self.moved[rounding.code][name].ravel()
            steps = np.rint(np.ldexp(far, -exponent))
            steps[np.abs(far) < rounding.least] = 0
            places = np.flatnonzero(steps)
            if sum(len(update.numbers) for update in updates.values()) + len(places) > _MOST_WRITTEN:
                return None
            if len(places) and np.abs(steps).max() < 2**62:
                numbers = steps[places].astype(np.int64)
                updates[name] = Update(exponent, dict(zip(places.tolist(), numbers.tolist(), strict=True)))
        return Message(0, updates)

    def bound(self, errors: int, bits: float) -> float:
        """About the bound of so many errors and bits."""
        return float_risk(errors, len(self.data), bits, self.share)

    def risk(self, rounding: _Rounding, least: float) -> float:
        """About the bound, its errors counted on some examples; `least` where even no errors would not lower it."""
        code, message = self.codes[rounding.code], self.message(rounding)
        if message is None or self.bound(0, bits := code.bits(message)) >= least:
            return least
        self.counted += 1
        scores = self.network.scores(code.weights(message, self.network.checkpoint), self.some)
        return self.bound(round(count_wrong(scores, len(self.some)) / len(self.some) * len(self.data)), bits)


def shorten(
    network: Network, codes: Sequence[Code], trained: Mapping[str, Array], data: Data, delta: float
) -> Certified:
    """The certificate of a rounding of trained weights: the shortest that was found, whose bound may be vacuous.

    Args:
        network: answers with any weights.
        codes: fixed before the data, one for each reference; they share delta.
        trained: weights, in the order and shapes of the codes.
        data: the training examples.
        delta: failure probability.
    """
    places = np.random.default_rng(0).permutation(len(data))[:_SCREEN]
    some = data if len(data) <= _SCREEN else data.take(places)
    moved: list[dict[str, Array]] = []
    for code in codes:
        start = code.reference.weights(0, network.checkpoint)
        moved.append({name: np.asarray(trained[name], np.float64) - start[name] for name in code.reference.laws})
    run = _Search(network, codes, moved, data, equal_shares(delta, len(codes)), some)
    best = _finer(run, *_coarse(run))
    others = [code for i, code in enumerate(codes) if i != best.code]
    return certify_message(network, codes[best.code], run.message(best) or Message(0), data, delta, others=others)


def _coarse(run: _Search) -> tuple[float, _Rounding]:
    """The best of roundings of all tensors alike; the shortest where all are vacuous."""
    candidates: list[tuple[float, int, _Rounding]] = []
    for i, rounding in enumerate(_alike(run)):
        if (message := run.message(rounding)) is not None:
            candidates.append((run.codes[rounding.code].bits(message), i, rounding))
    candidates.sort()
    # the longest that can still say something, and as many as are tried between it and the shortest
    useful = max(1, sum(run.bound(0, bits) < _VACUOUS for bits, _, _ in candidates))
    best = (2.0, _Rounding(0, {}))
    for place in sorted({round(i) for i in np.linspace(0, useful - 1, _TRIES)}):
        rounding = candidates[place][2]
        if (risk := run.risk(rounding, best[0])) < best[0]:
            best = risk, rounding
    return best


def _alike(run: _Search) -> Iterator[_Rounding]:
    """Steps in proportion to how far tensors moved, one step for all, and the largest entries alone."""
    for code, moved in enumerate(run.moved):
        far = {name: value for name, value in moved.items() if value.any()}
        if not far:
            yield _Rounding(code, {})
            continue
        typical = {name: math.floor(math.log2(float(np.sqrt((value**2).mean())))) for name, value in far.items()}
        for finer in range(-3, 5):
            yield _Rounding(code, {name: exponent - finer for name, exponent in typical.items()})
        largest = max(typical.values())
        for finer in range(-3, 8):
            yield _Rounding(code, dict.fromkeys(far, largest - finer))
        sizes = np.sort(np.concatenate([np.abs(value).ravel() for value in far.values()]))[::-1]
        tops = {name: math.floor(math.log2(float(np.abs(value).max()))) for name, value in far.items()}
        for count in (2**i for i in range(2, 14) if 2**i <= len(sizes) and sizes[2**i - 1] > 0):
            for finer in range(3):
                steps = {name: top - finer for name, top in tops.items()}
                yield _Rounding(code, steps, float(sizes[count - 1]))


def _finer(run: _Search, risk: float, best: _Rounding) -> _Rounding:
    """Steps of single tensors, changed as long as the bound falls."""
    last, falling = run.counted + _MOVES, True
    while falling:
        falling = False
        for name in sorted(best.exponents, key=lambda name: -run.moved[best.code][name].size):
            others = {key: value for key, value in best.exponents.items() if key != name}
            for exponent in (None, best.exponents[name] + 1, best.exponents[name] - 1):
                exponents = others if exponent is None else {**others, name: exponent}
                changed = _Rounding(best.code, exponents, best.least)
                value = run.risk(changed, risk) if run.counted < last else risk
                if value < risk:
                    risk, best, falling = value, changed, True
                    break
    return best
