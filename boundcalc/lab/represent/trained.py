"""Norms that training found for a function, beside those of its construction.

Trained networks have longer rows, other margins and often other layers than the constructed one, so besides spectral norms
two numbers are given that do not change when scale is moved from one matrix to another: how far apart scores can be,
and how much a row is stretched per unit of margin. They describe; they bound nothing.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from boundcalc.lab.represent.functions import SparseFunction
from boundcalc.lab.represent.network import Network

_KINDS = ("W_QK", "W_V", "W_O", "W_1", "W_3", "W_2", "readout")
COLUMNS = ("rows", *_KINDS, "margin", "scores", "stretch")
_MOST_RENAMED = 6


@dataclass(frozen=True)
class Norms:
    """Norms of one network, or of several of one architecture.

    Attributes:
        name: which networks.
        trials: how many; None for the construction.
        median: by column. `rows` is the longest row, a matrix stands for its spectral norm (the largest over heads and blocks),
            `margin` for the least on the training sample; `scores` is rows^2 |W_QK|, `stretch` rows times the other
            spectral norms over the margin. Absent where there is none.
        low: tenth percentiles.
        high: ninetieth percentiles.
    """

    name: str
    trials: int | None
    median: Mapping[str, float]
    low: Mapping[str, float]
    high: Mapping[str, float]

    def to_json(self) -> dict[str, Any]:
        """The numbers: [median, low, high] by column."""
        columns = {key: [value, self.low[key], self.high[key]] for key, value in self.median.items()}
        return {"networks": self.name, "trials": self.trials, "norms": columns}


def constructed(network: Network, margin: float) -> Norms:
    """Those of a construction, whose rows have norm at most 1."""
    norms = {key: budget.op or 0.0 for key, budget in network.norms.budgets.items()}
    found = _columns(norms, 1.0, margin, stretches=True)
    return Norms("this construction", None, found, found, found)


def trained(records: Iterable[Mapping[str, Any]], most_error: float) -> list[Norms]:
    """Those of stored trials that fit their sample and err at most so often, one entry per architecture."""
    groups: dict[str, list[dict[str, float]]] = {}
    for record in records:
        result = record["result"]
        if result["status"] != "done" or result["train"]["error"] > 0 or result["test"]["error"] > most_error:
            continue
        groups.setdefault(_architecture(record["config"]["architecture"]), []).append(_of_record(record))
    return [_summary(name, found) for name, found in sorted(groups.items())]


def alike(one: SparseFunction, other: SparseFunction) -> bool:
    """Whether two functions are the same but for the places of their bits (beyond 6 bits, in their order)."""
    a, b = one.minimised(), other.minimised()
    if a.arity != b.arity:
        return False
    if a.symmetric is not None and b.symmetric is not None:
        return bool({_shape(a.symmetric)} & {_shape(b.symmetric), _shape(_mirrored(b.symmetric))})
    return bool(a.table) and bool(b.table) and _least_table(a) == _least_table(b)


def _shape(f: SparseFunction) -> tuple[tuple[int, ...], int]:
    return f.profile, sum(f.negated)


def _mirrored(f: SparseFunction) -> SparseFunction:
    return SparseFunction(f.variables, (), f.profile[::-1], tuple(not b for b in f.negated))


def _least_table(f: SparseFunction) -> tuple[int, ...]:
    if f.arity > _MOST_RENAMED:
        return f.table
    table = np.asarray(f.table).reshape((2,) * f.arity)
    return min(tuple(table.transpose(p).ravel().tolist()) for p in itertools.permutations(range(f.arity)))


def _architecture(config: Mapping[str, Any]) -> str:
    words = [str(config.get("style", "edelman")), f"depth {config.get('depth', 2)}"]
    heads = config.get("heads", 1)
    words += [f"{heads} head" + "s" * (heads != 1), f"d {config.get('d', 64)}"]
    return ", ".join(words)


def _of_record(record: Mapping[str, Any]) -> dict[str, float]:
    config, budgets = record["config"]["architecture"], record["result"]["norms"]["budgets"]
    norms = {key: float(budget["op"]) for key, budget in budgets.items() if "op" in budget}
    rows = sum(float(budgets[key]["row"]) for key in ("embedding", "positions") if "row" in budgets.get(key, {}))
    plain = config.get("style", "edelman") == "edelman" or config.get("normalisation") == "none"
    margin = float(record["result"]["train"]["margins"]["0"])
    return _columns(norms, rows if plain else 0.0, margin, stretches=plain)


def _columns(norms: Mapping[str, float], rows: float, margin: float, *, stretches: bool) -> dict[str, float]:
    found: dict[str, float] = {"rows": rows, "margin": margin}
    for kind in _KINDS:
        sizes = [value for key, value in norms.items() if key.partition("[")[0] == kind]
        if sizes:
            found[kind] = max(sizes)
    if "W_QK" in found:
        found["scores"] = rows**2 * found["W_QK"]
    if stretches and margin > 0:
        product = math.prod(
            value for key, value in norms.items() if (kind := key.partition("[")[0]) in _KINDS and kind != "W_QK"
        )
        found["stretch"] = rows * product / margin
    return {key: value for key, value in found.items() if value > 0}


def _summary(name: str, found: Sequence[Mapping[str, float]]) -> Norms:
    columns = [key for key in COLUMNS if all(key in one for one in found)]
    cuts = {key: np.quantile([one[key] for one in found], (0.5, 0.1, 0.9)).tolist() for key in columns}
    median, low, high = ({key: values[i] for key, values in cuts.items()} for i in range(3))
    return Norms(name, len(found), median, low, high)
