"""The untrusted search for a rule and its proof: bits that matter, their function, slopes, cuts, domains."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from boundcalc.base.errors import BoundcalcError
from boundcalc.predictors.data import Array
from boundcalc.predictors.rules import code
from boundcalc.predictors.rules.check import Bit, Leaf, Node, Proof, Proved, inputs_of, prove
from boundcalc.predictors.rules.code import Fixed, Rule
from boundcalc.predictors.rules.fails import Counterexample, counterexample
from boundcalc.predictors.rules.slopes import Part, ascend, attracting
from boundcalc.predictors.rules.tables import FloatTables, Tables
from boundcalc.predictors.statements import G15

_SAMPLE = 4096
"""Bits of the inputs whose flips say which positions matter."""
_MOST_READ = 5
_CANDIDATES = 2
_CHAIN = 12
_WINDOWS = (None, code.MAIN_WINDOW, 4)
"""All inputs, the code's main window, and a narrow one."""
_NEAR = -4.0
"""Least values above it may rise above 0 by cuts."""
_MOST_CUTS = 4
_CUTS = 16
"""Of all leaves together."""
_STARTS = 5
"""Of searches for a counterexample, per leaf without a proof."""
Cost = tuple[float, float]


@dataclass
class Found:
    """A rule and what is known of it.

    Attributes:
        rule: what the network computes, or seems to compute.
        proof: the tree of cuts and slopes; None where nothing is proved.
        proved: margin and reach of the proof, from the checker.
        counterexample: an input on which the network does not answer as the rule's function.
        doubtful: leaves of the rule for which floats see no proof on all inputs.
        seconds: processor time of the search, without the checker's.
    """

    rule: Rule
    proof: Proof | None = None
    proved: Proved | None = None
    counterexample: Counterexample | None = None
    doubtful: tuple[Fixed, ...] = ()
    seconds: float = 0.0


@dataclass
class _Work:
    """One network under search."""

    tables: Tables
    seconds: float
    progress: Callable[[str], None] | None
    x: Array | None = None
    y: Array | None = None
    cuts: int = _CUTS
    best: Cost = (math.inf, math.inf)
    random: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))
    started: float = field(default_factory=time.process_time)

    def say(self, text: str) -> None:
        if self.progress is not None:
            self.progress(text)

    def cost(self, rule: Rule, errors: int) -> Cost:
        """What its certificate says, and then about what each error would cost in bits."""
        bits = rule.price()[1]
        facts = None if self.y is None else {"errors": errors, "n": len(self.y), "bits": bits}
        return 1.0 if facts is None else G15.risk(facts, 0.05), bits + 12.0 * errors

    @property
    def late(self) -> bool:
        return time.process_time() > self.started + self.seconds

    def leaves(self, rule: Rule, cubes: Sequence[Fixed], answer: int) -> list[tuple[Leaf, float]]:
        """A leaf for each of these inputs of the rule, and the least value that floats see on it."""
        return leaves_of(self.tables.floats, [_part(rule, fixed, answer) for fixed in cubes])

    def attack(self, rule: Rule, leaves: Sequence[Fixed], starts: int) -> Counterexample | None:
        """An input in these leaves on which the network is not the rule."""
        return counterexample(self.tables, rule, self.random, leaves, starts=starts)


def explain(
    tables: Tables,
    x: Array | None = None,
    y: Array | None = None,
    *,
    seconds: float = 3.0,
    progress: Callable[[str], None] | None = None,
) -> Found:
    """The rule of fewest errors and bits that is proved of the network, or the best guess and where it fails."""
    work = _Work(tables, seconds, progress, x, y)
    rows = _rows(tables.T)
    sample = work.random.integers(0, 2, (rows, tables.T)) if x is None else np.asarray(x)[:rows]
    read = [read_off(tables.floats, positions, work.random) for positions in candidates(tables.floats, sample)]
    guesses = list({_function(rule): rule for rule in reversed(read)}.values())[::-1]
    best, checking = Found(guesses[0]), 0.0
    for proposal in _proposals(work, guesses):
        errors = 0 if x is None or y is None else proposal.rule.errors(x, y)
        cost = work.cost(proposal.rule, errors)
        if proposal.proof is not None and cost <= work.best:
            before = time.process_time()
            _check(work, proposal)
            checking += time.process_time() - before
        if proposal.proved is not None and cost <= work.best:
            best, work.best = proposal, cost
        elif best.proof is None and not best.doubtful:
            best.doubtful = proposal.doubtful
        if work.late or (best.proved is not None and not best.rule.silent):
            break
    if best.doubtful:
        work.say("an input where the network is not the rule")
        whole = replace(guesses[0] if best.rule.silent else best.rule, window=None)
        best.counterexample = work.attack(whole, best.doubtful, _STARTS)
    best.seconds = time.process_time() - work.started - checking
    return best


def follow(tables: Tables, rule: Rule, *, seconds: float = 3.0, progress: Callable[[str], None] | None = None) -> Found:
    """A proof that the network follows this very rule, on all inputs or on the rule's own."""
    work, candidate = _Work(tables, seconds, progress), Found(rule)
    for candidate in _whole(work, rule, (None, rule.window)):
        _check(work, candidate)
        if candidate.proved is not None:
            break
    if candidate.doubtful:
        candidate.counterexample = work.attack(replace(rule, window=None), candidate.doubtful, 13)
    return candidate


def _check(work: _Work, candidate: Found) -> None:
    """Keep a proof that the checker takes."""
    if candidate.proof is None:
        return
    work.say("proof")
    try:
        candidate.proved = prove(work.tables, candidate.rule, candidate.proof, progress=work.say)
    except BoundcalcError as error:
        work.say(str(error))
        candidate.proof = None


def _proposals(work: _Work, guesses: Sequence[Rule]) -> Iterator[Found]:
    """Rules with what may be their proofs: guesses on all inputs, in windows, in parts."""
    for guess in guesses:
        yield from _whole(work, guess, _WINDOWS)
    for guess in guesses:
        yield _in_parts(work, guess)


def _rows(T: int) -> int:
    """Inputs of which every bit is flipped."""
    return max(_SAMPLE // T, 16)


def _function(rule: Rule) -> object:
    """What two rules share that answer alike."""
    return rule.table or rule.tree


def influences(floats: FloatTables, sample: Array) -> Array:
    """How much each bit moves the output, in the mean over a sample."""
    start, sample = floats.forward(sample), sample.astype(np.int64)
    moves = [np.abs(floats.flips(row) - output) for row, output in zip(sample, start, strict=True)]
    return np.mean(np.nan_to_num(moves), axis=0)


def candidates(floats: FloatTables, sample: Array) -> list[tuple[int, ...]]:
    """Sets of positions that seem to matter: those before the largest falls of influence."""
    flips = influences(floats, sample)
    order = np.argsort(-flips, kind="stable")
    ranked = np.maximum(flips[order], 1e-6)
    most = min(_MOST_READ, len(order) - 1)
    sizes = sorted(range(1, most + 1), key=lambda s: -ranked[s - 1] / ranked[s])[:_CANDIDATES]
    return [tuple(sorted(order[:s].tolist())) for s in sizes or [1]]


def read_off(floats: FloatTables, positions: tuple[int, ...], random: np.random.Generator) -> Rule:
    """The rule of these positions that the network follows on most random inputs."""
    T, table = floats.e.shape[1], list[int]()
    for pattern in itertools.product((0, 1), repeat=len(positions)):
        inputs = random.integers(0, 2, (64, T))
        inputs[:, list(positions)] = pattern
        table.append(int((floats.forward(inputs) > 0).mean() > 0.5))
    return Rule.of_table(T, positions, tuple(table))


def _whole(work: _Work, guess: Rule, windows: Sequence[int | None]) -> Iterator[Found]:
    """The rule on all inputs; where that fails, in windows; what is settled on more inputs stays so."""
    settled: dict[int, tuple[code.Tree, Node | None] | None] = {}
    doubtful: tuple[Fixed, ...] = ()
    for window in windows:
        rule = replace(guess, window=window)
        work.say(f"{guess} on inputs with {rule.ones[0]} to {rule.ones[1]} ones")
        todo = [i for i in range(len(guess.paths)) if settled.get(i) is None]
        cubes = [(dict(guess.paths[i][0]), guess.paths[i][1]) for i in todo]
        leaves = leaves_of(work.tables.floats, [_part(rule, *cube) for cube in cubes])
        failed, far = False, False
        for i, cube, leaf in sorted(zip(todo, cubes, leaves, strict=True), key=lambda item: item[2][1]):
            settled[i] = _settle(work, rule, *cube, leaf)
            failed, far = settled[i] is None, leaf[1] < 2 * _NEAR
            if failed:
                break
        doubtful = doubtful or tuple(dict(guess.paths[i][0]) for i in todo if settled.get(i) is None)
        trees = [] if failed else [item[1] for _, item in sorted(settled.items()) if item]
        proof = None if failed else Proof(*rule.ones, _assembled(guess.tree, trees))
        yield Found(rule if window is not None else guess, proof, doubtful=doubtful)
        if work.late or (failed and window is not None and far):
            return


def _in_parts(work: _Work, guess: Rule) -> Found:
    """The rule in its window without an answer on some of its inputs."""
    work.say(f"{guess} on some inputs")
    parts = [_settle(work, guess, dict(path), answer, None, partial=True) for path, answer in guess.paths]
    trees, proofs = ([part[i] for part in parts if part is not None] for i in (0, 1))
    rule = replace(guess, tree=_rebuilt(guess.tree, trees))
    doubtful = tuple(dict(path) for path, answer in rule.paths if answer < 0)
    answered = any(answer >= 0 for _, answer in rule.paths)
    return Found(rule, Proof(*rule.ones, _assembled(guess.tree, proofs)) if answered else None, doubtful=doubtful)


def _rebuilt(tree: code.Tree, leaves: list[Any]) -> code.Tree:
    """The tree with others in the place of its leaves, from left to right."""
    return leaves.pop(0) if isinstance(tree, int) else (tree[0], _rebuilt(tree[1], leaves), _rebuilt(tree[2], leaves))


def _assembled(tree: code.Tree, proofs: Sequence[Any]) -> Node | None:
    """The proof that cuts as the rule's tree does, with the proofs of its leaves from left to right."""
    order = iter(proofs)

    def build(node: code.Tree) -> Node | None:
        return next(order) if isinstance(node, int) else Bit(node[0], (build(node[1]), build(node[2])))

    return build(tree)


def _settle(
    work: _Work, rule: Rule, fixed: Fixed, answer: int, leaf: tuple[Leaf, float] | None, *, partial: bool = False
) -> tuple[code.Tree, Node | None] | None:
    """The rule's answer on these inputs and its proof: one leaf, one for each value of other bits, or cuts.

    Where that fails: None, or, for a rule in parts, a tree that is silent on what is left.
    """
    if answer < 0 or (partial and work.late):
        return -1, None
    shown, value = leaf or work.leaves(rule, [fixed], answer)[0]
    if value > 0:
        return answer, shown
    unread = [t for t in rule.positions if t not in fixed]
    if unread and len(rule.positions) <= _MOST_READ:
        cubes = [{**fixed, unread[0]: bit} for bit in (0, 1)]
        sides: list[tuple[code.Tree, Node | None]] = []
        leaves = work.leaves(rule, cubes, answer)
        order = sorted((0, 1), key=lambda bit: leaves[bit][1])
        for bit in order:
            side = _settle(work, rule, cubes[bit], answer, leaves[bit], partial=partial)
            if side is None:
                return None
            sides.append(side)
        (low, first), (high, second) = (sides[order.index(bit)] for bit in (0, 1))
        return low if low == high else (unread[0], low, high), Bit(unread[0], (first, second))
    if partial:
        return _chain(work, rule, fixed, answer)
    if value <= _NEAR or work.attack(rule, [fixed], 3) is not None:
        return None
    tree = _by_cuts(work, _part(rule, fixed, answer), value, _MOST_CUTS)
    return None if tree is None else (answer, tree)


def _part(rule: Rule, fixed: Fixed, answer: int) -> Part:
    return Part(inputs_of(rule.T, fixed, *rule.ones), 1 if answer else -1)


def leaves_of(floats: FloatTables, parts: Sequence[Part]) -> list[tuple[Leaf, float]]:
    """A leaf for each set of inputs, and the least value that floats see on it (infinite where no input meets it)."""
    best: list[tuple[Leaf, float]] = [(Leaf((0.0,) * len(floats.g), ()), math.inf)] * len(parts)
    groups: dict[int, list[int]] = {}
    for i, part in enumerate(parts):
        if not part.inputs.empty:
            groups.setdefault(len(part.inputs.fixed), []).append(i)
    for group in groups.values():
        for i, leaf in zip(group, ascend(floats, [parts[i] for i in group]), strict=True):
            best[i] = leaf
    return best


def _by_cuts(work: _Work, part: Part, value: float, depth: int) -> Node | None:
    """A proof by cuts of further bits; None where it is not found."""
    work.cuts -= 1
    if depth == 0 or work.late or work.cuts < 0 or not part.inputs.free:
        return None
    t = attracting(work.tables.floats, part)
    sides = [replace(part, inputs=part.inputs.showing(t, c)) for c in (0, 1)]
    leaves = leaves_of(work.tables.floats, sides)
    if min(v for _, v in leaves) <= value:
        return None
    first, second = (
        leaf if v > 0 else _by_cuts(work, side, v, depth - 1) for side, (leaf, v) in zip(sides, leaves, strict=True)
    )
    return None if first is None or second is None else Bit(t, (first, second))


def _chain(work: _Work, rule: Rule, fixed: Fixed, answer: int) -> tuple[code.Tree, Node | None]:
    """Fix the positions that draw most weight one after the other; what is left over has no answer."""
    kept: list[tuple[int, int, Leaf]] = []
    here, tree = dict(fixed), -1
    for _ in range(_CHAIN):
        part = _part(rule, here, answer)
        if work.late or not part.inputs.free:
            return -1, None
        t = attracting(work.tables.floats, part)
        leaves = work.leaves(rule, [{**here, t: c} for c in (0, 1)], answer)
        good = [c for c in (0, 1) if leaves[c][1] > 0]
        if not good:
            return -1, None
        kept.append((t, good[0], leaves[good[0]][0]))
        here[t] = 1 - good[0]
        if len(good) == 2:
            return answer, _linked(kept, leaves[1][0])
        if work.x is None or len(kept) < 3:
            continue
        if not bool(np.all([work.x[:, s] == c for s, c in here.items()], axis=0).any()):
            for s, c, _ in reversed(kept):
                tree = (s, answer, tree) if c == 0 else (s, tree, answer)
            return tree, _linked(kept, None)
    return -1, None


def _linked(kept: Sequence[tuple[int, int, Leaf]], last: Node | None) -> Node | None:
    """Cuts one after the other: each has a proved side, and goes on in the other."""
    for t, c, leaf in reversed(kept):
        last = Bit(t, (leaf, last) if c == 0 else (last, leaf))
    return last
