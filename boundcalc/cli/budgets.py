"""Norms on the command line: `--norm W_V=op:2.5,21:8`, and the template that lists what a setting reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from boundcalc.base.errors import InvalidSetting
from boundcalc.base.schema import read, write
from boundcalc.base.validate import hint
from boundcalc.cli.options import number, pairs
from boundcalc.layers.base import weights_of
from boundcalc.layers.products import products_of
from boundcalc.setting import Budget, Norms, Setting
from boundcalc.setting.norms import JSON_NAMES

TORCH: Mapping[str, tuple[str, str]] = {
    "op": ("largest singular value (of a vector, its length)", "torch.linalg.matrix_norm(w, 2), or b.norm()"),
    "F": ("root of the sum of squares", "w.norm()"),
    "21": (
        "sum over the columns of x -> xW of their lengths; the rows of the weight of a torch Linear, which is (out, "
        "in); of an Embedding, dim=0",
        "w.norm(dim=1).sum()",
    ),
    "21T": ("the same for the other side", "w.norm(dim=0).sum()"),
    "11": ("sum of absolute values", "w.abs().sum()"),
    "rank": ("rank", "torch.linalg.matrix_rank(w)"),
    "Sp": ("p and the sum of the p-th powers of the singular values, Sp:P:SUM", "torch.linalg.svdvals(w).pow(p).sum()"),
    "sup": ("largest absolute value of a gain", "g.abs().max()"),
    "row": ("longest row of a table of tokens or positions", "embedding.weight.norm(dim=1).max()"),
    "heads": (
        "values v (tokens or positions, heads, width): the longest of each head, as one vector",
        "v.norm(dim=2).amax(0).norm()",
    ),
}
"""What each norm is, and how torch computes it of `weight` = w (of an offset b, of a gain g)."""
NORM_HELP = (
    "Norms of one kind of weight, such as W_V=op:2.5,21:8 (repeatable). op: largest singular value; 21: summed lengths "
    "of the columns of x -> xW, weight.norm(dim=1).sum() of a torch weight; `eval --norms-template` lists all."
)
_USUAL = {"gain": ("sup",), "rows": ("row",), "vector": ("op",), "factor vector": ("op",)}
"""The norms that a kind of weight is usually given by, besides op and 21."""


def parse(words: Sequence[str]) -> dict[str, Budget]:
    """--norm KIND=NORM:VALUE,..., repeated."""
    budgets: dict[str, Budget] = {}
    for kind, rest in pairs("--norm", words, "W_V=op:2.5,21:8").items():
        where, limits = f"--norm {kind}={rest}", dict[str, Any]()
        for part in rest.split(","):
            name, _, text = part.strip().partition(":")
            if name not in TORCH:
                raise InvalidSetting(
                    f"{where}: no norm is called {name!r}{hint(name, TORCH)}; norms are {', '.join(TORCH)}"
                )
            if name in limits:
                raise InvalidSetting(f"{where}: {name} is given twice")
            values = [number(word) for word in text.split(":")]
            if None in values or len(values) != 1 + (name == "Sp"):
                form = "Sp:P:SUM, such as Sp:0.5:12" if name == "Sp" else f"{name}:VALUE"
                raise InvalidSetting(f"{where}: need {form}; got {name}:{text}")
            limits[name] = values if name == "Sp" else values[0]
        budgets[kind] = read(Budget, limits, f"--norm {kind}")
    return budgets


def joined(start: Norms, words: Sequence[str]) -> Norms:
    """Norms with those of --norm; where a kind has a budget already, the new one takes its place."""
    return Norms(start.C, {**start.budgets, **parse(words)}, start.measured, start.failure)


def template(setting: Setting) -> dict[str, Any]:
    """A norms file with every kind that a setting reads, at the value of the knob (or 1) or of its budget."""
    knob = 1.0 if setting.norms.C is None else setting.norms.C
    entries: dict[str, Any] = {}
    for weight in weights_of(setting.architecture.stages, setting.architecture.seq_len):
        for part in weight.read(setting.norms):
            budget = setting.norms.budgets.get(part.kind)
            usual = dict.fromkeys(_USUAL.get(part.role, ("op", "21")), knob)
            entries.setdefault(part.kind, usual if budget is None else write(budget))
    return {"budgets": entries}


def legend(setting: Setting) -> list[str]:
    """What the norms in a template are, in words and in torch's."""
    stages, seq_len = setting.architecture.stages, setting.architecture.seq_len
    products = list(products_of(stages, seq_len))
    usable = {field for w in (*weights_of(stages, seq_len), *products) for part in w.all for field in part.limits}
    names = [name for name, field in JSON_NAMES.items() if name in TORCH and field in usable]
    return [
        *(f"{name:>4}  {TORCH[name][0]}: {TORCH[name][1]}" for name in names),
        *(f"a product that may have a budget besides its factors: {product.kind}" for product in products),
        "a budget for one block is W_V[3], for one head W_V[3,0]; of W - M, M fixed before the data, 'distance': "
        "{'op': 1}",
        "save this as norms.json, fill in your values, then: boundcalc eval --norms norms.json",
    ]
