"""One trained network, read: where its heads look, the rule it provably follows, and an input on which another one
fails.

    python examples/edelman2022/explained.py -o figures/explained.png      (2 networks: seconds)

Computed: the proved least value of the output's size for each pattern of the bits that the rule reads; measured: the
least that local searches find there; by network and pattern.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from common import Values, preset, run

from boundcalc.lab.figures.canvas import note, sheet
from boundcalc.lab.figures.data import Figure
from boundcalc.lab.figures.names import BLUE, BROWN, GREEN, GREY, INK
from boundcalc.lab.train.certify import examples_of, trained_network
from boundcalc.lab.train.sweep import sweep_from_json
from boundcalc.predictors.rules.check import least_value
from boundcalc.predictors.rules.code import Rule
from boundcalc.predictors.rules.fails import descend
from boundcalc.predictors.rules.heads import Inputs
from boundcalc.predictors.rules.search import Explanation, explain
from boundcalc.predictors.rules.slopes import leaves_of
from boundcalc.predictors.rules.tables import BallTables, tables_of

QUICK = {"quick": True}
SEEDS = (40, 53)
"""The first network is the conjunction on all inputs; the second errs on no example, and on the input of ones."""


def networks(quick: bool) -> list[tuple[Any, BallTables, Explanation]]:
    """Networks as trained, their tables, what was found of them."""
    torch.set_num_threads(1)
    explanations = []
    for seed in SEEDS:
        sweep = preset("conjunction", seeds=[seed], grid={"T": 24 if quick else 128, "m": 200 if quick else 211})
        trial = sweep_from_json(sweep).trials[0]
        stored, data = trained_network(trial), examples_of(trial)[0]
        tables = tables_of(stored.architecture, stored.weights)
        explanations.append((data, tables, explain(tables, data.x)))
    return explanations


def patterns(rule: Rule) -> list[dict[int, int]]:
    """All patterns of the bits that the rule reads."""
    return [dict(zip(rule.positions, p, strict=True)) for p in itertools.product((0, 1), repeat=len(rule.positions))]


def ranges(tables: BallTables, rule: Rule, low: int, high: int) -> list[tuple[float, float]]:
    """For each pattern, numbers that the output provably lies between."""
    inputs = [Inputs(rule.T, pattern, low, high) for pattern in patterns(rule)]
    ends = []
    for sign in (1, -1):
        leaves = leaves_of(tables.floats, [(region, sign) for region in inputs])
        values = [least_value(tables, leaf, sign, region) for (leaf, _), region in zip(leaves, inputs, strict=True)]
        ends.append([sign * value for value in values])
    return list(zip(*ends, strict=True))


def attention(tables: BallTables, x: Any) -> list[list[float]]:
    """The mean attention of each head, on the row that is read and on every bit."""
    rows, T = [], tables.T
    for *e, own in tables.floats.sums[..., -1]:
        mass = np.where(x > 0, e[T:], e[:T])
        whole = mass.sum(1, keepdims=True) + own
        rows.append(np.round([(own / whole).mean(), *(mass / whole).mean(0)], 4).tolist())
    return rows


def collect(quick: bool = False, store: Path | None = None) -> Figure:
    """Everything the figure shows."""
    del store  # two networks are trained in seconds
    shown = []
    for data, tables, explanation in networks(quick):
        rule, proved = explanation.rule, explanation.proved
        low, high = rule.ones if explanation.proof is None else (explanation.proof.low, explanation.proof.high)
        outputs = tables.floats.forward(data.x)
        names = ["".join(map(str, pattern.values())) for pattern in patterns(rule)]
        index = [names.index("".join(map(str, row))) for row in data.x[:, list(rule.positions)].tolist()]
        failing = explanation.counterexample
        shown.append(
            {
                "rule": str(rule),
                "positions": list(rule.positions),
                "patterns": names,
                "answers": [max(rule.answers_on(pattern)) for pattern in patterns(rule)],
                "ones": [low, high],
                "everywhere": proved is not None and proved.everywhere,
                "margin": None if proved is None else proved.margin,
                "ranges": ranges(tables, rule, low, high),
                "examples": [
                    [round(float(v), 3) for v, k in zip(outputs, index, strict=True) if k == i]
                    for i in range(len(names))
                ],
                "attention": attention(tables, data.x),
                "counterexample": None
                if failing is None
                else {"x": "".join(map(str, failing.x)), "output": failing.output, "rule": failing.answer},
            }
        )
    T, examples = len(shown[0]["attention"][0]) - 1, sum(map(len, shown[0]["examples"]))
    return Figure(
        "explained",
        f"Proved: it computes {shown[0]['rule']}",
        f"conjunction of 3 of {T} bits; one block, width 64, 16 heads, trained on {examples} examples",
        "Left: mean attention of each head on each position. Middle: for each pattern of the three bits, the proved "
        "range of the output over all inputs (blue: the rule says 1, brown: 0), and training examples as dots. Right: "
        f"another network, and an input, of 2^{T}, on which it fails.",
        "Left, a heat map with three bright columns. Middle, eight proved intervals of the output, of which only that "
        "of the pattern 111 lies above zero; right, the same for a network with one input on the wrong side.",
        facts={"networks": shown},
    )


def main(quick: bool = False, store: Path | None = None) -> tuple[Values, Values]:
    """Proved least sizes of the output, and the least that searches find."""
    del store
    computed: Values = {}
    measured: Values = {}
    random = np.random.default_rng(0)
    for number, (_, tables, explanation) in enumerate(networks(quick), 1):
        rule = replace(
            explanation.rule,
            window=None if explanation.proof and explanation.proof.low == 0 else explanation.rule.window,
        )
        low, high = rule.ones
        for (least, most), pattern in zip(ranges(tables, rule, low, high), patterns(rule), strict=True):
            answer = max(rule.answers_on(pattern))
            starts = np.linspace(low, high, 5).round().astype(int).tolist()
            reached = [descend(tables.floats, rule, pattern, answer, k, random)[1] for k in starts]
            key = (f"network {number}", "".join(map(str, pattern.values())))
            computed[key], measured[key] = (least if answer else -most), min(reached)
    return computed, measured


def draw(figure: Figure) -> Any:
    """Attention of the first network; ranges of both."""
    from matplotlib.colors import PowerNorm

    first, second = figure.facts["networks"]
    drawn, (heads, left, right) = sheet(figure, 3, size=(9.5, 3.3), width_ratios=[1.5, 1, 1])
    image = heads.imshow(
        first["attention"], aspect="auto", cmap="Greens", norm=PowerNorm(0.4, 0, 1), interpolation="nearest"
    )
    heads.set_xlabel("position (0: the row that is read)")
    heads.set_ylabel("head")
    read = [position + 1 for position in first["positions"]]
    heads.set_xticks([0, *read], ["0", *(f"x{position - 1}" for position in read)], rotation=90)
    heads.set_yticks([0, 5, 10, 15])
    drawn.colorbar(image, ax=heads, label="mean attention", fraction=0.04, pad=0.02)
    for axes, network in ((left, first), (right, second)):
        names = ", ".join(f"x{position}" for position in network["positions"])
        reach = (
            "every input" if network["everywhere"] else f"if {network['ones'][0]} to {network['ones'][1]} bits are 1"
        )
        axes.set_title(f"{network['rule']}: {reach}", fontsize=7.5, color=INK)
        for i, (low, high) in enumerate(network["ranges"]):
            colour = BLUE if network["answers"][i] else BROWN
            axes.barh(i, high - low, left=low, height=0.55, color=colour, alpha=0.35, lw=0)
            axes.plot(network["examples"][i], [i] * len(network["examples"][i]), ".", color=GREEN, ms=2)
        axes.axvline(0, color=GREY, lw=0.8)
        axes.set_yticks(range(len(network["patterns"])), network["patterns"])
        axes.set_ylabel(names)
        axes.set_xlabel("output")
        failing = network["counterexample"]
        if failing is not None:
            pattern = "".join(failing["x"][position] for position in network["positions"])
            row = network["patterns"].index(pattern)
            axes.plot([failing["output"]], [row], "X", color="#A13D57", ms=6, zorder=5)
            axes.annotate(
                f"{sum(map(int, failing['x']))} bits 1:\noutput {failing['output']:.3g}",
                (failing["output"], row),
                xytext=(-6, 0),
                textcoords="offset points",
                **{"ha": "right", "va": "center"},
                color="#A13D57",
            )
    note(
        drawn,
        "Bars: proved from the weights (blue: rule 1, brown: rule 0). Dots: training examples. Cross: outside of the "
        "proof.",
    )
    return drawn


if __name__ == "__main__":
    run(main, collect, draw, ("proved at least", "found at least"))
