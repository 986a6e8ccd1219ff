"""Norms on the command line: `--norm W_V=op:2.5,21:8`, and the template that lists what a setting reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from boundcalc.base.errors import InvalidSetting
from boundcalc.base.schema import read, write
from boundcalc.base.validate import hint
from boundcalc.cli.values import number, pairs
from boundcalc.layers.base import Weight, weights_of
from boundcalc.layers.products import products_of
from boundcalc.setting import Budget, Norms, Setting
from boundcalc.setting.norms import JSON_NAMES

_EXAMPLE = "W_V=op:2.5,21:8"
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


def parse(words: Sequence[str]) -> dict[str, Budget]:
    """--norm KIND=NORM:VALUE,..., repeated."""
    budgets: dict[str, Budget] = {}
    for kind, rest in pairs("--norm", words, _EXAMPLE).items():
        word, limits = f"{kind}={rest}", dict[str, Any]()
        for part in rest.split(","):
            name, colon, text = part.strip().partition(":")
            if name not in TORCH:
                raise InvalidSetting(f"--norm {word}: no norm is called {name!r}{hint(name, TORCH)}; {_listed()}")
            if name in limits:
                raise InvalidSetting(f"--norm {word}: {name} is given twice")
            limits[name] = _value(word, name, text if colon else "")
        budgets[kind] = read(Budget, limits, f"--norm {kind}")
    return budgets


def _listed() -> str:
    return f"norms are {', '.join(TORCH)} (`boundcalc eval --norms-template` says what each is)"


def _value(word: str, name: str, text: str) -> Any:
    values = [number(part) for part in text.split(":")]
    if len(values) != (2 if name == "Sp" else 1) or any(v is None or isinstance(v, complex) for v in values):
        form = "Sp:P:SUM, such as Sp:0.5:12" if name == "Sp" else f"{name}:VALUE"
        raise InvalidSetting(f"--norm {word}: need {form}; got {name}:{text}")
    if name == "rank":
        return values[0]
    return [float(v) for v in values if v is not None] if name == "Sp" else float(values[0] or 0.0)


def joined(start: Norms, words: Sequence[str]) -> Norms:
    """Norms with those of --norm; where a kind has a budget already, the new one takes its place."""
    budgets = {**start.budgets, **parse(words)}
    return Norms(start.C, budgets, start.measured, start.failure)


def template(setting: Setting) -> dict[str, Any]:
    """A norms file with every kind that a setting reads, at the value of the knob (or 1) or of its budget."""
    knob = 1.0 if setting.norms.C is None else setting.norms.C
    entries: dict[str, Any] = {}
    for weight in weights_of(setting.architecture.stages, setting.architecture.seq_len):
        for part in weight.read(setting.norms):
            budget = setting.norms.budgets.get(part.kind)
            entries.setdefault(part.kind, dict.fromkeys(_asked(part), knob) if budget is None else write(budget))
    return {"budgets": entries}


def _asked(weight: Weight) -> tuple[str, ...]:
    """The norms that a kind of weight is usually given by: what the knob sets of those a bound can use."""
    usual = {"gain": ("sup",), "rows": ("row",), "vector": ("op",), "factor vector": ("op",)}
    return usual.get(weight.role, ("op", "21"))


def legend(setting: Setting) -> list[str]:
    """What the norms in a template are, in words and in torch's."""
    stages, seq_len = setting.architecture.stages, setting.architecture.seq_len
    products = list(products_of(stages, seq_len))
    weights = [w for top in weights_of(stages, seq_len) for w in top.all] + products
    usable = {field for weight in weights for field in weight.limits}
    rows = [(name, *TORCH[name]) for name, field in JSON_NAMES.items() if name in TORCH and field in usable]
    lines = [f"{name:>4}  {words}: {code}" for name, words, code in rows]
    named = ", ".join(
        f"{w.kind} ({', '.join(name for name, field in JSON_NAMES.items() if field in w.limits)})" for w in products
    )
    return [
        *lines,
        *([f"products may have budgets besides those of their factors: {named}"] if named else []),
        "a budget for one block is W_V[3], for one head W_V[3,0]; of W - M, M fixed before the data, 'distance': "
        "{'op': 1}",
        "save this as norms.json, fill in your values, then: boundcalc eval --norms norms.json",
    ]
