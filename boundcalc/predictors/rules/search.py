"""The untrusted search for a rule and its proof: bits that matter, their function, slopes, cuts, domains."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from boundcalc.base.errors import CertificateError
from boundcalc.predictors.certificate import PredictorCertificate
from boundcalc.predictors.data import Array, Data
from boundcalc.predictors.rules.certify import StoredNetwork, certificate_of, in_words, risk_in_words
from boundcalc.predictors.rules.check import Bit, Leaf, Node, Proof, Proved, prove
from boundcalc.predictors.rules.code import MAIN_WINDOW, Fixed, Rule, Tree
from boundcalc.predictors.rules.fails import Counterexample, counterexample
from boundcalc.predictors.rules.heads import Inputs
from boundcalc.predictors.rules.slopes import attracting, leaves_of
from boundcalc.predictors.rules.tables import BallTables, tables_of

_SAMPLE = 4096
"""Bits of the inputs whose flips say which positions matter."""
_MOST_READ = 5
_WINDOWS = (None, MAIN_WINDOW, 4)
"""All inputs, the code's main window, and a narrow one."""
_CUTS = (4, 12)
"""Bits besides the rule's own that a leaf is cut by, one after the other: at most, where the rule answers everywhere,
and where it may be silent."""
_NEAR = -4.0
"""A least value that may rise above 0 by cuts."""


@dataclass
class Explanation:
    """What a network provably computes, and the bound of its risk where examples were given and a proof was found.

    Attributes:
        rule: what the network computes, or seems to compute.
        proof: the tree of cuts and slopes; None where nothing is proved.
        proved: margin and reach of the proof, from the checker.
        counterexample: an input on which the network does not answer as the rule's function.
        seconds: processor time of the search, without the checker's.
        certificate: the bound.
    """

    rule: Rule
    proof: Proof | None = None
    proved: Proved | None = None
    counterexample: Counterexample | None = None
    seconds: float = 0.0
    certificate: PredictorCertificate | None = None

    @property
    def margin(self) -> float | None:
        """What the network's output exceeds in size wherever the proof reaches; None where nothing is proved."""
        return None if self.proved is None else self.proved.margin

    def __str__(self) -> str:
        if self.proof is None or self.proved is None:
            what = "a network that was not shown to follow a rule"
            return f"{what}; it differs from {self.rule} at {self.counterexample}" if self.counterexample else what
        text = in_words(self.rule, self.proof, self.proved.margin)
        return text if self.certificate is None else f"{text}; {risk_in_words(self.certificate)}"


def explain_network(
    model: Any,
    data: Any = None,
    *,
    delta: float = 0.05,
    seconds: float = 3.0,
    progress: Callable[[str], None] | None = None,
) -> Explanation:
    """The rule that a network provably computes, its proof and margin; with training examples also its risk.

    Args:
        model: the path of a model's file, or (architecture, weights).
        data: the examples it was trained on (`Data`, or a pair of arrays), or None.
        delta: failure probability of the bound.
        seconds: processor time of the search.
        progress: receives what is being done.

    Returns:
        The rule with what was proved; where nothing was, the best guess and an input on which it fails.
    """
    network = StoredNetwork.of(model)
    examples = None if data is None else data if isinstance(data, Data) else Data(*map(np.asarray, data))
    tables = tables_of(network.architecture, network.weights)
    if examples is not None:
        Rule(tables.T, 0).errors(examples.x, examples.y)  # refuses what is no row of bits with a label
    explanation = explain(tables, None if examples is None else examples.x, seconds=seconds, progress=progress)
    if examples is not None and explanation.proved is not None:
        explanation.certificate = certificate_of(network, explanation, examples, delta)
    return explanation


def explain(
    tables: BallTables,
    x: Array | None = None,
    *,
    rule: Rule | None = None,
    seconds: float = 3.0,
    progress: Callable[[str], None] | None = None,
) -> Explanation:
    """The rule that is proved of the network, silent where it must be, or the best guess and where it fails.

    Args:
        tables: of the network.
        x: inputs of the examples, which say which bits matter, and where silence costs nothing.
        rule: to prove this very rule, on all inputs or on its own.
        seconds: processor time of the search.
        progress: receives what is being done.
    """
    search = _Search(tables, x, seconds, progress or (lambda _: None))
    if rule is None:
        guess, attempts = search.guess(), [*((window, False) for window in _WINDOWS), (MAIN_WINDOW, True)]
    else:
        guess, attempts = rule, [(None, False), (rule.window, False)]
    tried = (search.attempt(guess, *attempt) for attempt in attempts)
    explanation = next(filter(None, tried), Explanation(guess))
    if explanation.proved is None or not explanation.proved.everywhere:
        explanation.counterexample = search.failing(replace(guess, window=None))
    explanation.seconds = time.process_time() - search.started - search.checking
    return explanation


class _Search:
    """One network under search."""

    def __init__(self, tables: BallTables, x: Array | None, seconds: float, say: Callable[[str], None]) -> None:
        self.tables, self.floats, self.x, self.say = tables, tables.floats, x, say
        self.random = np.random.default_rng(0)
        self.seen: dict[tuple[Any, int], tuple[tuple[int, int], Leaf, float]] = {}
        self.started, self.checking, self.seconds = time.process_time(), 0.0, seconds

    @property
    def late(self) -> bool:
        return time.process_time() > self.started + self.seconds

    def guess(self) -> Rule:
        """The rule of the positions that seem to matter, which the network follows on most random inputs.

        Their influence on the output is that before its largest fall.
        """
        T = self.tables.T
        rows = max(_SAMPLE // T, 16)
        sample = np.asarray(self.random.integers(0, 2, (rows, T)) if self.x is None else self.x)[:rows].astype(np.int64)
        moves = [np.abs(self.floats.flips(row) - f) for row, f in zip(sample, self.floats.forward(sample), strict=True)]
        flips = np.mean(np.nan_to_num(moves), axis=0)
        order = np.argsort(-flips, kind="stable")
        ranked = np.maximum(flips[order], 1e-6)
        size = max(range(1, min(_MOST_READ, T - 1) + 1), key=lambda s: ranked[s - 1] / ranked[s], default=1)
        positions, table = tuple(sorted(order[:size].tolist())), list[int]()
        for pattern in itertools.product((0, 1), repeat=size):
            inputs = self.random.integers(0, 2, (64, T))
            inputs[:, list(positions)] = pattern
            table.append(int((self.floats.forward(inputs) > 0).mean() > 0.5))
        return Rule.of_table(T, positions, tuple(table))

    def attempt(self, guess: Rule, window: int | None, partial: bool) -> Explanation | None:
        """The rule on a window, with what the checker says of its proof, where it takes that."""
        if self.late and not partial:
            return None
        rule = replace(guess, window=window)
        self.say(f"{guess} on inputs with {rule.ones[0]} to {rule.ones[1]} ones")
        self.look(rule, [(dict(path), answer) for path, answer in rule.paths if answer >= 0])
        tree, node = self.settle(rule, {}, rule.tree, partial) or (None, None)
        if node is None:
            return None
        proof = Proof(*rule.ones, node)
        # a rule that is proved on all inputs is named at the price of its own window
        rule = replace(rule, tree=tree) if partial else guess if window is None else rule
        self.say("proof")
        before = time.process_time()
        try:
            return Explanation(rule, proof, prove(self.tables, rule, proof))
        except CertificateError as error:
            self.say(str(error))
            return None
        finally:
            self.checking += time.process_time() - before

    def failing(self, rule: Rule) -> Counterexample | None:
        """An input on which the network is not the rule, among those that floats did not see it on."""
        self.say("an input where the network is not the rule")
        doubtful = [dict(path) for path, answer in rule.paths if not self.holds(path, answer, rule.ones)]
        return counterexample(self.floats, rule, self.random, doubtful)

    def settle(
        self, rule: Rule, fixed: Fixed, tree: Tree, partial: bool, cuts: int = 0
    ) -> tuple[Tree, Node | None] | None:
        """The rule's tree on these inputs and its proof: one leaf, or cuts by the rule's bits and then by others.

        Other bits are fixed one after the other, those that draw most weight first, as long as one side is proved.
        Where that fails: None, or for a partial rule no answer, also on inputs that no example shows.
        """
        failed: tuple[Tree, Node | None] | None = (-1, None) if partial else None
        if isinstance(tree, int):
            if tree < 0:
                return -1, None
            ((leaf, value),) = self.look(rule, [(fixed, tree)])
            if value > 0:
                return tree, leaf
            inputs = Inputs(rule.T, fixed, *rule.ones)
            t = next((t for t in rule.positions if t not in fixed), None)
            if t is None:
                spent = cuts == _CUTS[partial] or not inputs.free or (not partial and value < _NEAR)
                if self.late or spent or (partial and cuts > 2 and self.unseen(fixed)):
                    return failed
                cuts, t = cuts + 1, attracting(self.floats, inputs)
            sides = self.look(rule, [({**fixed, t: bit}, tree) for bit in (0, 1)])
            if cuts and max(value for _, value in sides) <= 0:
                return failed
            tree = (t, tree, tree)
        t, *trees = tree
        both = [self.settle(rule, {**fixed, t: bit}, trees[bit], partial, cuts) for bit in (0, 1)]
        if None in both:
            return None
        (low, first), (high, second) = filter(None, both)
        open_side = next((bit for bit, side in enumerate((low, high)) if side == -1), None)
        if low == high == -1 or (cuts and open_side is not None and not self.unseen({**fixed, t: open_side})):
            return -1, None
        return low if low == high else (t, low, high), Bit(t, (first, second))

    def look(self, rule: Rule, cubes: Sequence[tuple[Fixed, int]]) -> list[tuple[Leaf, float]]:
        """A leaf for each set of the rule's inputs and the least value that floats see on it.

        What is above 0 on more inputs stays so.
        """
        keys = [(tuple(sorted(fixed.items())), answer) for fixed, answer in cubes]
        old = {key for key in keys if self.holds(*key, rule.ones) or self.seen.get(key, (None,))[0] == rule.ones}
        new = [key for key in dict.fromkeys(keys) if key not in old]
        parts = [(Inputs(rule.T, dict(fixed), *rule.ones), 2 * answer - 1) for fixed, answer in new]
        self.seen |= {key: (rule.ones, *leaf) for key, leaf in zip(new, leaves_of(self.floats, parts), strict=True)}
        return [self.seen[key][1:] for key in keys]

    def holds(self, path: Sequence[tuple[int, int]], answer: int, ones: tuple[int, int]) -> bool:
        """Whether floats saw the answer on all inputs that show these bits, with so many ones or more."""
        (low, high), _, value = self.seen.get((tuple(sorted(path)), answer), ((1, 0), None, 0.0))
        return value > 0 and low <= ones[0] and ones[1] <= high

    def unseen(self, fixed: Fixed) -> bool:
        """Whether no example shows these bits."""
        return self.x is not None and not np.all([self.x[:, t] == c for t, c in fixed.items()], axis=0).any()
