"""The search for a rule and its proof: bits that matter, their function, slopes, windows, removed cubes. It is not trusted."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from boundcalc.base.errors import BoundcalcError
from boundcalc.predictors.data import Array
from boundcalc.predictors.rules.check import Leaf, Proof, Proved, inputs_of, prove
from boundcalc.predictors.rules.code import Cube, Rule
from boundcalc.predictors.rules.fails import Counterexample, counterexample
from boundcalc.predictors.rules.quotients import largest
from boundcalc.predictors.rules.support import Inputs
from boundcalc.predictors.rules.tables import FloatTables, Tables, float_phi

_MOST_READ = 5
_CANDIDATES = 2
_EXACT_HEADS = 3
_STEPS = 40
_AT_LEAST = 6
_LOOK = 10
"""Steps after which an ascent that hardly rises is given up."""
_HOPELESS = -25.0
"""No ascent comes back from here."""
_GRID = np.linspace(0, 1, 33)
_CHAIN = 12
_WINDOWS = (8, 4, 7, 6, 5)
"""The code's main window, then the narrowest: where that fails, so do the others."""
_STARTS = 5
"""Of searches for a counterexample, per pattern without a proof."""
_DIGITS = 5


@dataclass
class Found:
    """A rule and what is known of it.

    Attributes:
        rule: what the network seems to compute.
        proof: leaves, if they seem to prove it.
        doubtful: patterns for which floats see no proof on all inputs.
        proved: what the checker says of them.
        counterexample: where the network does not answer so, on all inputs.
        seconds: processor time of the search, without the checker's.
    """

    rule: Rule
    proof: Proof | None = None
    doubtful: tuple[tuple[int, ...], ...] = ()
    proved: Proved | None = None
    counterexample: Counterexample | None = None
    seconds: float = 0.0


@dataclass
class _Work:
    """One network under search."""

    tables: Tables
    ends: float
    say: Callable[[str], None]
    floats: FloatTables = field(init=False)

    def __post_init__(self) -> None:
        self.floats = self.tables.floats

    @property
    def late(self) -> bool:
        return time.process_time() > self.ends


def explain(
    tables: Tables,
    x: Array | None = None,
    y: Array | None = None,
    *,
    seconds: float = 30.0,
    names: bool = True,
    progress: Callable[[str], None] | None = None,
) -> Found:
    """The rule of fewest errors and bits that is proved of the network, or the best guess and where it fails."""
    work = _Work(tables, time.process_time() + seconds, progress or (lambda _: None))
    started = time.process_time()
    random = np.random.Generator(np.random.PCG64(0))
    sample = random.integers(0, 2, (64, tables.shape.T)) if x is None else np.asarray(x)[:32]
    guesses: dict[Rule, None] = {}
    for positions in candidates(work.floats, sample):
        guess = read_off(work.floats, positions, random)
        guesses |= dict.fromkeys((essential(guess), guess))
    best = Found(next(iter(guesses)))
    for way in (_whole, _in_parts):
        for guess in guesses:
            found = way(work, guess, x)
            if _cost(found, x, y, names) < _cost(best, x, y, names) or guess == best.rule:
                best = found
            if best.proof is not None or work.late:
                break
        if best.proof is not None or work.late:
            break
    if best.doubtful:
        work.say("an input where the network is not the rule")
        whole = replace(best.rule, window=None, removed=())
        best.counterexample = counterexample(tables, whole, random, best.doubtful, starts=_STARTS)
    best.seconds = time.process_time() - started
    if best.proof is not None:
        _check(work, best, best.proof)
    return best


def follow(
    tables: Tables, rule: Rule, *, seconds: float = 30.0, progress: Callable[[str], None] | None = None
) -> Found:
    """A proof that the network follows this very rule, on all inputs or on the rule's own."""
    work = _Work(tables, time.process_time() + seconds, progress or (lambda _: None))
    patterns = [Cube(pattern) for pattern in rule.patterns]
    found = Found(rule)
    leaves, values = prove_leaves(work.floats, rule, patterns, *_all(rule))
    reach = _all(rule)
    if not bool((values > 0).all()):
        found.doubtful = tuple(cube.pattern for cube, value in zip(patterns, values, strict=True) if not value > 0)
        reach = rule.ones
        leaves, values = _again(work, rule, leaves, values, *reach)
        whole = replace(rule, window=None, removed=())
        found.counterexample = counterexample(tables, whole, np.random.Generator(np.random.PCG64(0)), found.doubtful)
    if bool((values > 0).all()):
        _check(work, found, Proof(*reach, tuple(leaves)))
    return found


def _check(work: _Work, found: Found, proof: Proof) -> None:
    """Keep a proof that the checker takes."""
    work.say("proof")
    try:
        found.proved = prove(work.tables, found.rule, proof, progress=work.say)
        found.proof = proof
    except BoundcalcError as error:
        work.say(str(error))
        found.proof = None


def _all(rule: Rule) -> tuple[int, int]:
    return 0, rule.T - len(rule.positions)


def _cost(found: Found, x: Array | None, y: Array | None, names: bool) -> tuple[bool, float]:
    """Unproved last; else about what the bound of its risk is: bits, and a dear price per error."""
    errors = 0 if x is None or y is None else found.rule.errors(x, y)
    return found.proof is None, found.rule.bits(names=names) + 12.0 * errors


def candidates(floats: FloatTables, sample: Array) -> list[tuple[int, ...]]:
    """Sets of positions that seem to matter: those before the largest falls of influence."""
    flips = np.zeros(sample.shape[1])
    start = floats.forward(sample)
    for t in range(sample.shape[1]):
        other = sample.copy()
        other[:, t] = 1 - other[:, t]
        flips[t] = np.abs(floats.forward(other) - start).mean()
    order = np.argsort(-flips, kind="stable")
    ranked = np.maximum(flips[order], 1e-6)
    most = min(_MOST_READ, len(order) - 1)
    sizes = sorted(range(1, most + 1), key=lambda s: -ranked[s - 1] / ranked[s])[:_CANDIDATES]
    return [tuple(sorted(order[:s].tolist())) for s in sizes or [1]]


def essential(rule: Rule) -> Rule:
    """The rule without the positions that its answers do not depend on."""
    for place, position in enumerate(rule.positions):
        halves = [[a for b, a in zip(rule.patterns, rule.table, strict=True) if b[place] == c] for c in (0, 1)]
        if halves[0] == halves[1]:
            left = tuple(t for t in rule.positions if t != position)
            return essential(Rule(rule.T, left, tuple(halves[0]), rule.window))
    return rule


def read_off(floats: FloatTables, positions: tuple[int, ...], random: np.random.Generator) -> Rule:
    """The rule of these positions that the network follows on most random inputs."""
    T, s = floats.e.shape[1], len(positions)
    table: list[int] = []
    for k in range(2**s):
        inputs = random.integers(0, 2, (64, T))
        inputs[:, list(positions)] = [k >> (s - 1 - i) & 1 for i in range(s)]
        table.append(int((floats.forward(inputs) > 0).mean() > 0.5))
    return Rule(T, positions, tuple(table))


def _whole(work: _Work, guess: Rule, x: Array | None) -> Found:
    """The rule on all inputs; where that fails, in its window; else in a narrower one."""
    work.say(f"{guess} on all inputs")
    leaves, values = prove_leaves(work.floats, guess, [Cube(pattern) for pattern in guess.patterns], *_all(guess))
    if bool((values > 0).all()):
        return Found(guess, Proof(*_all(guess), tuple(leaves)))
    doubtful = tuple(leaf.cube.pattern for leaf, value in zip(leaves, values, strict=True) if not value > 0)
    best = Found(guess, None, doubtful)
    for window in _WINDOWS if x is not None else _WINDOWS[:1]:
        rule = replace(guess, window=window)
        some, reached = _again(work, rule, leaves, values, *rule.ones)
        held = bool((reached > 0).all())
        if held:
            best = Found(rule, Proof(*rule.ones, tuple(some)), doubtful)
        if work.late or held == (window != _WINDOWS[1]):
            break
    return best


def _in_parts(work: _Work, guess: Rule, x: Array | None) -> Found:
    """The rule in its window without some cubes."""
    work.say(f"{guess} on some inputs")
    low, high = guess.ones
    patterns = [Cube(pattern) for pattern in guess.patterns]
    leaves, values = prove_leaves(work.floats, guess, patterns, low, high)
    removed, kept = list[Cube](), list[Leaf]()
    for cube, leaf, value in zip(patterns, leaves, values, strict=True):
        more, cut = ([leaf], []) if value > 0 else _chain(work, guess, cube, low, high, x)
        kept += more
        removed += cut
    proof = Proof(low, high, tuple(kept)) if kept else None
    doubtful = tuple(cube.pattern for cube, value in zip(patterns, values, strict=True) if not value > 0)
    return Found(replace(guess, removed=tuple(removed)), proof, doubtful)


def _again(work: _Work, rule: Rule, leaves: list[Leaf], values: Array, low: int, high: int) -> tuple[list[Leaf], Array]:
    """Leaves for fewer inputs: only those that failed are made again."""
    failed = np.flatnonzero(~(values > 0))
    made, reached = prove_leaves(work.floats, rule, [leaves[i].cube for i in failed], low, high)
    leaves, values = list(leaves), values.copy()
    for i, leaf, value in zip(failed, made, reached, strict=True):
        leaves[i], values[i] = leaf, value
    return leaves, values


def _chain(work: _Work, rule: Rule, cube: Cube, low: int, high: int, x: Array | None) -> tuple[list[Leaf], list[Cube]]:
    """Fix the positions that draw most weight one after the other; what is left over is removed."""
    kept, here = list[Leaf](), cube
    for _ in range(_CHAIN):
        inputs = inputs_of(rule, here, low, high)
        if work.late or not inputs.free:
            break
        position = _attracting(work.floats, inputs)
        sides = [Cube(cube.pattern, (*here.positions, position), (*here.values, c)) for c in (0, 1)]
        leaves, values = prove_leaves(work.floats, rule, sides, low, high)
        if bool((values > 0).all()):
            return [*kept, *leaves], []
        if not bool((values > 0).any()):
            break
        good = int(values.argmax())
        kept.append(leaves[good])
        here = sides[1 - good]
        if x is not None and len(here.positions) >= 3 and not bool(here.contains(x[:, list(rule.positions)], x).any()):
            return kept, [here]
    return [], [cube]


def _attracting(f: FloatTables, inputs: Inputs) -> int:
    """The free position of largest weight in the head that can move the output most."""
    half = _boxes(f, [inputs])[1]
    moves = np.einsum("hij,hi,j->h", np.abs(f.M), half[0], np.abs(f.g))
    return inputs.free[int(f.e[int(moves.argmax())][inputs.free].max(1).argmax())]


def prove_leaves(
    floats: FloatTables, rule: Rule, cubes: Sequence[Cube], low: int, high: int
) -> tuple[list[Leaf], Array]:
    """A leaf for each cube, and the least value that floats see on it (infinite where no input meets it)."""
    signs = [1.0 if rule.table[rule.patterns.index(cube.pattern)] else -1.0 for cube in cubes]
    inputs = [inputs_of(rule, cube, low, high) for cube in cubes]
    values = np.full(len(cubes), math.inf)
    heads: list[tuple[int, ...]] = [()] * len(cubes)
    slopes: list[Array] = [np.zeros(len(floats.g))] * len(cubes)
    groups: dict[int, list[int]] = {}
    for i, each in enumerate(inputs):
        if not each.empty:
            groups.setdefault(len(each.fixed), []).append(i)
    for group in groups.values():
        found, chosen, exact = _ascend(floats, [inputs[i] for i in group], np.array([signs[i] for i in group]))
        values[group] = found
        for i, row in zip(group, chosen, strict=True):
            slopes[i], heads[i] = row, exact
    rounded = [tuple(float(f"{a:.{_DIGITS}g}") for a in row) for row in slopes]
    return [Leaf(cube, row, exact) for cube, row, exact in zip(cubes, rounded, heads, strict=True)], values


def _terms(f: FloatTables, inputs: Sequence[Inputs]) -> tuple[Array, Array, Array, Array, Array, Array]:
    """For sets with equally many fixed positions: e (sets, heads, n, 2), v, numerator and denominator, counts."""
    e = np.stack([f.e[:, each.free] for each in inputs])
    v = np.stack([f.v[:, each.free] for each in inputs])
    num = np.repeat((f.own_e[:, None] * f.own_v)[None], len(inputs), 0)
    den = np.repeat(f.own_e[None], len(inputs), 0)
    for i, each in enumerate(inputs):
        for t, c in each.fixed:
            num[i] += f.e[:, t, c, None] * f.v[:, t, c]
            den[i] += f.e[:, t, c]
    counts = np.array([each.counts for each in inputs])
    return e, v, num, den, counts[:, 0], counts[:, 1]


def _boxes(f: FloatTables, inputs: Sequence[Inputs]) -> tuple[Array, Array, tuple[Array, ...]]:
    """Middle and half width of every pooled coordinate, (sets, heads, d_head), and the terms."""
    terms = _terms(f, inputs)
    width = f.u.shape[1]
    unit = np.concatenate([np.eye(width), -np.eye(width)])
    both = np.stack([_support(terms, np.broadcast_to(w, (*terms[3].shape, width)))[0] for w in unit], -1)
    up, down = both[..., :width], both[..., width:]
    return (up - down) / 2, (up + down) / 2, terms


def _support(terms: tuple[Array, ...], w: Array) -> tuple[Array, Array]:
    """For a direction per set and head: the largest <w, p> as floats see it, and the p that has it."""
    e, v, num, den, low, high = terms
    sets, heads, n = e.shape[:3]
    y = np.einsum("shnci,shi->shnc", v, w).reshape(sets * heads, n, 2)
    flat = e.reshape(sets * heads, n, 2)
    at = (np.einsum("shi,shi->sh", num, w).ravel(), den.ravel())
    found = largest(flat, y, *at, np.repeat(low, heads), np.repeat(high, heads))
    chosen = np.where(found.ones, flat[..., 1], flat[..., 0]).reshape(sets, heads, n)
    rows = np.where(found.ones.reshape(sets, heads, n)[..., None], v[..., 1, :], v[..., 0, :])
    p = (num + np.einsum("shn,shni->shi", chosen, rows)) / found.mass.reshape(sets, heads)[..., None]
    return found.value.reshape(sets, heads), p


def _ascend(f: FloatTables, inputs: Sequence[Inputs], signs: Array) -> tuple[Array, Array, tuple[int, ...]]:
    """The best slopes of some steps of a supergradient ascent, for several sets of inputs at once."""
    middle, half, terms = _boxes(f, inputs)
    moves = np.einsum("hij,shi,j->sh", np.abs(f.M), half, np.abs(f.g))
    exact = tuple(sorted(np.argsort(-moves.max(0))[:_EXACT_HEADS].tolist()))
    low = f.zeta + np.zeros((len(inputs), 1))
    high = low.copy()
    for h in range(len(f.u)):
        if h in exact:
            up, down = _both_sides(tuple(part[:, h] if part.ndim > 1 else part for part in terms), f.M[h])
            low, high = low - down, high + up
        else:
            at, spread = middle[:, h] @ f.M[h], half[:, h] @ np.abs(f.M[h])
            low, high = low + at - spread, high + at + spread
    g = signs[:, None] * f.g
    width = np.maximum(high - low, 1e-9)
    a = g * (float_phi(f.activation, high) - float_phi(f.activation, low)) / width
    best, slopes = np.full(len(inputs), -np.inf), a.copy()
    before = best
    z = low[..., None] + width[..., None] * _GRID
    lines = g[..., None] * float_phi(f.activation, z)
    for step in range(_STEPS):
        below = lines - a[..., None] * z
        place = below.argmin(2)[..., None]
        offset = np.take_along_axis(below, place, 2)[..., 0].sum(1)
        w = signs[:, None, None] * f.u + np.einsum("hij,sj->shi", f.M, a)
        values, p = _support(terms, -w)
        total = signs * f.c_0 + offset + a @ f.zeta - values.sum(1)
        better = total > best
        best, slopes = np.where(better, total, best), np.where(better[:, None], a, slopes)
        if step >= _AT_LEAST and bool(((best > 0) | (best < _HOPELESS)).all()):
            break
        if step % _LOOK == 0:
            if bool(((best > 0) | (best < before + 0.05 * np.abs(best))).all()):
                break
            before = best
        reached = f.zeta + np.einsum("shi,hij->sj", p, f.M)
        nearest = np.take_along_axis(z, place, 2)[..., 0]
        a = a + (0.3 / (1 + step / 10)) * np.abs(g) * (reached - nearest) / width
    return best, slopes, exact


def _both_sides(terms: tuple[Array, ...], matrix: Array) -> tuple[Array, Array]:
    """Largest <M_j, p> and <-M_j, p> of one head for every hidden unit j, (sets, units)."""
    e, v, num, den, low, high = terms
    rows = np.concatenate([matrix.T, -matrix.T])
    found = [
        largest(
            e[i], np.einsum("nci,ri->rnc", v[i], rows), rows @ num[i], np.full(len(rows), den[i]), low[i], high[i]
        ).value
        for i in range(len(e))
    ]
    both = np.stack(found)
    return both[:, : matrix.shape[1]], both[:, matrix.shape[1] :]
