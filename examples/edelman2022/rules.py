"""What trained networks provably compute, and the risk that follows (G15), on sparse Boolean tasks.

    python examples/edelman2022/rules.py      (networks that rules.json does not have: 25 minutes for all)

Computed: the certified risk; measured: the error on 100,000 fresh examples; by task, m and seed.

Networks are trained in the ordinary way on all m examples. For each, the rule that it follows is searched, proved from
its weights, and certified. Each proof is attacked: local searches for an input on which the network is not the rule, by
flips, joint flips and swaps, from 13 starts, within the inputs of the leaf of least proved value (where none may be
found) and on inputs that the rule does not answer (where there should be some).
"""

from __future__ import annotations

import json
import math
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from common import Values, preset, run

QUICK = {"quick": True}
SEEDS = range(100, 120)
"""Untouched: code, checker and search were fixed before any network of these was looked at."""
FRESH = 100_000
STARTS = 13
PAIRS = 200
ROWS = Path(__file__).with_suffix(".json")


class Part(NamedTuple):
    """A task, the sizes of its samples with the number of networks, and what differs in training and model."""

    task: dict[str, Any]
    sizes: dict[int, int]
    train: dict[str, Any]
    model: dict[str, Any]


PARTS = {
    "conjunction": Part({}, {211: 20, 512: 20, 1000: 20}, {}, {}),
    "disjunction": Part({"task": "disjunction"}, {300: 10}, {}, {}),
    "natural law": Part({"law": "natural"}, {300: 10}, {}, {}),
    "conjunction of 5": Part({"s": 5}, {1000: 10}, {}, {}),
    "every tenth label wrong": Part({"noise": 0.1}, {1000: 10}, {"steps": 400}, {}),
    "majority": Part({"task": "majority"}, {300: 10, 1000: 10}, {}, {}),
    "conjunction, T = 1024": Part({"T": 1024}, {300: 10, 1000: 10}, {}, {}),
    "parity of 2 of 20": Part({"T": 20, "s": 2, "task": "parity"}, {3000: 5}, {}, {}),
    **{
        f"{name}, {style}": Part({}, {512: 5}, {}, {"style": style, "normalisation": norm})
        for name, norm in (("LayerNorm", "layernorm"), ("RMSNorm", "rmsnorm"))
        for style in ("pre", "post")
    },
    "conjunction, more m": Part({}, {300: 20, 3000: 20, 100: 20, 10_000: 20}, {}, {}),
}


def trials(part: Part, m: int, seeds: Sequence[int], fresh: int) -> list[Any]:
    """Trials of one part and size."""
    from boundcalc.lab.train.sweep import sweep_from_json

    data = preset("conjunction", model=part.model, m=m, n_test=fresh, seeds=list(seeds), grid={})
    data["task"] |= {"T": 128, **part.task}
    data["train"] |= part.train
    return list(sweep_from_json(data).trials)


def measure(name: str, part: Part, m: int, seeds: Sequence[int], fresh: int) -> list[dict[str, Any]]:
    """One row for every seed: the rule, what is proved, the certified risk, the test error, the attacks."""
    import torch

    from boundcalc.lab.train.certify import examples_of
    from boundcalc.lab.train.trainer import train
    from boundcalc.predictors.rules.certify import StoredNetwork

    torch.set_num_threads(1)
    rows: list[dict[str, Any]] = []
    for outcome in train(trials(part, m, seeds, fresh)):
        trial = outcome.trial
        network = StoredNetwork.of((trial.model, outcome.weights))
        data = examples_of(trial.but(n_test=1))[0]
        row = {"task": name, "T": part.task.get("T", 128), "m": m, "seed": trial.seed, **certified(network, data)}
        rows.append(row | {f"{which}_error": outcome.result[which]["error"] for which in ("test", "train")})
    return rows


def certified(network: Any, data: Any) -> dict[str, Any]:
    """What one network provably computes."""
    from boundcalc.predictors.rules.certify import certificate_of, facts_of_rule
    from boundcalc.predictors.rules.check import prove
    from boundcalc.predictors.rules.search import explain
    from boundcalc.predictors.rules.tables import tables_of

    tables = tables_of(network.architecture, network.weights)
    explanation = explain(tables, data.x)
    failing = explanation.counterexample
    row: dict[str, Any] = {
        "rule": str(explanation.rule),
        "positions": list(explanation.rule.positions),
        "proved": proved_on(explanation),
        "risk": 1.0,
        "risk_unnamed": 1.0,
        "counterexample": None if failing is None else sum(failing.x),  # its ones
        "seconds_search": round(explanation.seconds, 2),
        "rounding": None if explanation.proved is None else explanation.proved.rounding,
    }
    if explanation.proved is None or explanation.proof is None:
        return row
    started = time.process_time()
    prove(tables_of(network.architecture, network.weights), explanation.rule, explanation.proof)
    row["seconds_verify"] = round(time.process_time() - started, 2)
    certificate = certificate_of(network, explanation, data, 0.05)
    more = {name: certificate.facts[name] for name in ("errors", "bits")} | facts_of_rule(certificate)
    row |= {n: more[n] for n in ("errors", "bits", "margin", "function", "unnamed", "bits_unnamed", "risk_unnamed")}
    row |= {"risk": certificate.risk, "bytes": len(json.dumps(certificate.to_json()))}
    return row | attacked(tables, explanation)


def proved_on(explanation: Any) -> str:
    """All inputs, the main window, a narrower one, a part of it, or none."""
    if explanation.proved is None:
        return "none"
    if explanation.proved.everywhere:
        return "all"
    if explanation.rule.silent:
        return "part"
    return "window" if explanation.rule.window == 8 else "narrower window"


def attacked(tables: Any, explanation: Any) -> dict[str, Any]:
    """How close searches come to the least proved value, and whether they find errors where the rule is silent."""
    from boundcalc.predictors.rules.fails import descend
    from boundcalc.predictors.rules.heads import Inputs

    rule, proof, random = explanation.rule, explanation.proof, np.random.default_rng(1)
    inside = replace(rule, window=None if explanation.proved.everywhere else rule.window)
    leaves = [
        fixed
        for fixed, leaf in proof.leaves
        if leaf is not None and not Inputs(rule.T, fixed, proof.low, proof.high).empty
    ]
    values = explanation.proved.values
    leaf = leaves[int(np.argmin(values)) if len(leaves) == len(values) else 0]
    answer = max(inside.answers_on(leaf))
    reached, searches = math.inf, 0
    for count in starts(inside):
        x, value = descend(tables.floats, inside, leaf, answer, count, random)
        if math.isfinite(value):
            x, value = joint(tables.floats, inside, leaf, answer, x, value, random)
            searches += 1
            reached = min(reached, value)
    wrong, silent = 0, [dict(path) for path, says in rule.paths if says < 0]
    for fixed in silent:
        # where the rule does not answer: the answer of the rule without its last position
        *above, (last, bit) = fixed.items()
        nearby = max(rule.answers_on({**dict(above), last: 1 - bit}))
        whole = replace(rule, tree=max(nearby, 0))
        tried = (descend(tables.floats, whole, fixed, whole.tree, k, random, until=0.0)[1] for k in starts(whole))
        wrong += any(value < 0 for value in tried)
    return {
        "searches": searches,
        "nearest": None if math.isinf(reached) else reached - min(values),
        "removed": len(silent),
        "removed_with_counterexample": wrong,
    }


def starts(rule: Any) -> list[int]:
    """Numbers of ones among the bits not read that searches start from."""
    low, high = rule.ones
    return np.linspace(low, high, STARTS).round().astype(int).tolist()


def joint(f: Any, rule: Any, fixed: Any, answer: int, x: Any, value: float, random: Any) -> tuple[Any, float]:
    """Go on by random swaps and joint flips of two bits of the others."""
    from boundcalc.predictors.rules.fails import descend

    others = np.setdiff1d(np.arange(rule.T), list(fixed))
    for _ in range(3):
        near = np.repeat(x[None], PAIRS, 0)
        pairs = random.choice(others, (PAIRS, 2))
        near[np.arange(PAIRS), pairs[:, 0]] ^= 1
        near[np.arange(PAIRS), pairs[:, 1]] ^= 1
        near = near[rule.answers(near) == answer]
        values = (1 if answer else -1) * f.forward(near) if len(near) else np.array([math.inf])
        if not values.min() < value - 1e-9:
            break
        x, value = descend(f, rule, fixed, answer, 0, random, start=near[int(values.argmin())])
    return x, value


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """The rows by task and m, as docs/certificates.md shows them."""
    from boundcalc.base.rounding import up

    lines = [
        "| task | m | networks | proved on all inputs / in the window / in a narrower one / with silent leaves / "
        "nothing | risk as a table or tree, median | by name: median (least, largest) | float32 | test error at most | "
        "search, s: median (most) | verify, s |",
        "| --- | ---: | ---: | --- | ---: | --- | ---: | ---: | --- | --- |",
    ]
    for task, m in sorted({(row["task"], row["m"]) for row in rows}, key=_order):
        some = [row for row in rows if (row["task"], row["m"]) == (task, m)]
        counts = " / ".join(
            str(sum(row["proved"] == what for row in some))
            for what in ("all", "window", "narrower window", "part", "none")
        )
        risks = [row["risk"] for row in some]
        named = [up(risk, 3) for risk in (statistics.median(risks), min(risks), max(risks))]
        spelled = up(statistics.median(row["risk_unnamed"] for row in some), 3)
        kept = sum((row["rounding"] or math.inf) < row.get("margin", 0) for row in some)
        worst = max(row["test_error"] for row in some)
        times = [_times(some, f"seconds_{what}") for what in ("search", "verify")]
        cells = [
            task,
            m,
            len(some),
            counts,
            spelled,
            f"{named[0]} ({named[1]}, {named[2]})",
            kept,
            f"{worst:.5f}",
            *times,
        ]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


def summary(rows: Sequence[Mapping[str, Any]]) -> str:
    """What all rows together show, in the words of docs/certificates.md."""
    proved, partly = ([row for row in rows if row["proved"] != what] for what in ("none", "all"))
    below = sum(row["risk"] < row["test_error"] for row in rows)
    searches, removed, wrong = (
        sum(row.get(what, 0) for row in rows) for what in ("searches", "removed", "removed_with_counterexample")
    )
    nearest = sorted(row["nearest"] for row in proved if row.get("nearest") is not None)
    deeper, closest, middle = (
        sum(distance < 0 for distance in nearest),
        f"{nearest[0]:.2g}",
        f"{statistics.median(nearest):.2g}",
    )
    shown = sum(row["counterexample"] is not None for row in partly)
    rounding = sorted(row["rounding"] for row in proved if row["rounding"] is not None)
    low, half, high = (f"{error:.2g}" for error in (rounding[0], statistics.median(rounding), rounding[-1]))
    kept = sum((row["rounding"] or math.inf) < row["margin"] for row in proved)
    search, verify = _times(rows, "seconds_search"), _times(proved, "seconds_verify")
    size = f"{max(row['bytes'] for row in proved) / 1000:.0f} kB"
    return f"""\
Of {len(rows)} certified risks {below} lie below the test error. Of {searches} local searches on the leaves of least
proved value (13 starts, flips, swaps, joint flips) {deeper} come below that value. The nearest ends {closest} above it,
the median one {middle}. Of {removed} leaves without an answer {wrong} hold an input on which the network is wrong.
Of {len(partly)} networks that are not proved on all inputs, {shown} have such an input outside of the proof.
The search takes {search} s of one core and `verify` {verify} s, in the median (at most).
A certificate has at most {size}. The proved rounding error of the float32 pass is {low} to {high},
in the median {half}; {kept} of {len(rows)} proofs hold for that pass too."""


def _order(key: tuple[str, int]) -> tuple[int, int]:
    names = list(dict.fromkeys(name.removesuffix(", more m") for name in PARTS))
    return names.index(key[0]), key[1]


def _times(rows: Sequence[Mapping[str, Any]], what: str) -> str:
    """Median and largest."""
    seconds = [row[what] for row in rows if what in row]
    return f"{statistics.median(seconds):.1f} ({max(seconds):.1f})" if seconds else "-"


def keep(rows: Sequence[Mapping[str, Any]]) -> None:
    """Write the rows, one on each line."""
    lines = ",\n".join(json.dumps(row) for row in rows)
    ROWS.write_text(f'{{"seeds": {list(SEEDS)}, "fresh": {FRESH}, "rows": [\n{lines}\n]}}\n', encoding="utf-8")


def known() -> list[dict[str, Any]]:
    """The rows on file."""
    return json.loads(ROWS.read_text(encoding="utf-8"))["rows"] if ROWS.exists() else []


def main(quick: bool = False, store: Path | None = None) -> tuple[Values, Values]:
    """Certified risks and measured test errors, by task, m and seed."""
    del store  # rows lie next to this file
    if quick:
        rows = measure("conjunction", Part({"T": 24}, {}, {}, {}), 200, SEEDS[:2], 2000)
        rows += measure("disjunction", Part({"T": 24, "task": "disjunction"}, {}, {}, {}), 200, SEEDS[:2], 2000)
    else:
        rows = known()
        for name, part in PARTS.items():
            for m, count in part.sizes.items():
                task = name.removesuffix(", more m")
                done = {row["seed"] for row in rows if (row["task"], row["m"]) == (task, m)}
                left = [seed for seed in SEEDS[:count] if seed not in done]
                if not left:
                    continue
                rows += measure(task, part, m, left, FRESH)
                keep(rows)
        print(table(rows), summary(rows), sep="\n\n")
    keys = [(row["task"], f"m = {row['m']}", f"seed {row['seed']}") for row in rows]
    risks = dict(zip(keys, (row["risk"] for row in rows), strict=True))
    return risks, dict(zip(keys, (row["test_error"] for row in rows), strict=True))


if __name__ == "__main__":
    run(main, words=("certified risk", "test error"))
