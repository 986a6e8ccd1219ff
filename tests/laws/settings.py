"""Random settings over every preset and option, small enough to evaluate by the hundred."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from boundcalc.base.errors import InvalidSetting
from boundcalc.base.intervals import INTERVAL
from boundcalc.setting import Architecture, Budget, Normaliser, Norms, Sample, Setting
from boundcalc.statements.network import Network

KNOBS = (0.05, 0.3, 0.7, 1.0, 1.5, 4.0)
NORMALISERS = ("softmax", "softmax", "softmax1", "sigmoid", "linear", "custom")
MATRICES = ("W_QK", "W_Q", "W_K", "W_V", "W_O", "W_1", "W_2", "W_3", "W_pool", "W_patch", "readout", "embedding")
"""Kinds that are matrices; of these a setting has some."""


def settings(seed: int | str, number: int, *, budgets: bool = True) -> Iterator[Setting]:
    """So many settings, the same ones for the same seed."""
    rng = random.Random(seed)
    for _ in range(number):
        yield setting(rng, budgets=budgets)


def setting(rng: random.Random, *, budgets: bool = True) -> Setting:
    """One setting: a small network of any style, with common or particular budgets."""
    architecture = transformer(rng)
    norms = Norms(C=rng.choice(KNOBS))
    sample = Sample(
        n_train=rng.choice((30, 10**4, 10**6, 10**9)),
        delta=rng.choice((0.5, 0.05, 1e-6)),
        margin=rng.choice((0.2, 1.0, 3.0)),
        train_error=rng.choice((0.0, 0.0, 0.02)),
    )
    plain = Setting(architecture, norms, sample)
    if not met(plain):
        plain = plain.but(variance_floor=0.0)
    full = replace(plain, norms=particular(rng, plain)) if budgets else plain
    return full if met(full) else full.but(variance_floor=0.0)


def met(plain: Setting) -> bool:
    """Whether some network has the variance that the setting asks for."""
    try:
        Network(plain, INTERVAL)
    except InvalidSetting:
        return False
    return True


def transformer(rng: random.Random) -> Architecture:
    """An architecture of any style; every option is taken now and then."""
    heads = rng.choice((1, 1, 2, 4))
    d = heads * rng.choice((1, 2, 4, 8))
    style = rng.choice(("edelman", "edelman", "post", "pre"))
    values: dict[str, Any] = {
        "depth": rng.choice((1, 1, 2, 3)),
        "seq_len": rng.choice((1, 3, 64, 2048)),
        "d": d,
        "heads": heads,
        "style": style,
        "activation": rng.choice(("relu", "gelu", "silu", "tanh")),
        "normaliser": normaliser(rng),
        "normalisation": rng.choice(("ball", "layernorm", "rmsnorm", "none")),
        "eps": rng.choice((1e-5, 0.1, 1.0)),
        "variance_floor": rng.choice((0.0, 0.0, 0.5)),
        "causal": rng.random() < 0.5,
        "readout": rng.choice(("cls", "mean")),
        "classes": rng.choice((1, 1, 10)),
        "pooler": rng.random() < 0.2,
        "positions": rng.choice(("none", "none", "fixed", "learned")),
        "position_radius": 0.5,
        "embedding_norm": rng.random() < 0.2,
        "input_radius": rng.choice((0.5, 1.0, 3.0)),
    }
    if rng.random() < 0.3:
        values["vocabulary"] = rng.choice((5, 1000))
    elif rng.random() < 0.3:
        values["d_patch"] = 6
    if rng.random() < 0.3 and heads > 1:
        values["kv_heads"] = heads // 2
    if style != "edelman":
        values |= {name: rng.random() < 0.5 for name in ("residual", "gated", "rope", "bias")}
        values["d_ff"] = 2 * d
    elif rng.random() < 0.3:
        values["d_head"] = rng.choice((1, 2))
    return Architecture(**without_idle(values))


def without_idle(values: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of an architecture (as a JSON object has them) without those that change nothing, which are refused."""
    if "layers" in values:
        return dict(values)
    read = Architecture.from_defaults({name: value for name, value in values.items() if name != "normaliser"}, {})
    return {name: value for name, value in values.items() if read.unread(name) is None}


def normaliser(rng: random.Random) -> Normaliser:
    """Any normaliser, at its own temperature now and then."""
    name = rng.choice(NORMALISERS)
    temperature = rng.choice((None, None, 2.0))
    return Normaliser(name, temperature, 1.5, 0.8) if name == "custom" else Normaliser(name, temperature)


def budget(rng: random.Random) -> Budget:
    """The budget of a matrix: some norms, perhaps a rank, a spectrum and a distance from a reference."""
    op = rng.choice((0.2, 0.7, 1.3))
    fro = op * rng.choice((1.0, 1.4))
    values: dict[str, Any] = {"op": op}
    if rng.random() < 0.5:
        values["fro"] = fro
    if rng.random() < 0.5:
        values["two_one"] = fro * rng.choice((1.0, 2.0))
    if rng.random() < 0.3:
        values["one_one"] = fro * 4
    if rng.random() < 0.2:
        values["rank"] = rng.choice((0, 1, 2))
    if rng.random() < 0.2:
        values["nuclear"] = rng.choice((0.5, 1.0, 2.0)) * rng.choice((0.5, 2.0))
    if rng.random() < 0.2:
        values["distance"] = Budget(op=rng.choice((0.0, 0.1, 0.5)))
    return Budget(**values)


def kinds(plain: Setting) -> list[str]:
    """The matrices of a setting, found by asking it."""
    known: list[str] = []
    for kind in MATRICES:
        try:
            replace(plain, norms=Norms(C=1.0, budgets={kind: Budget(op=1.0)}))
        except ValueError:
            continue
        known.append(kind)
    return known


def particular(rng: random.Random, plain: Setting) -> Norms:
    """Budgets for some kinds, blocks and heads beside the knob."""
    architecture = plain.architecture
    given: dict[str, Budget] = {}
    for kind in kinds(plain):
        chance = rng.random()
        inside = kind in ("W_QK", "W_V", "W_1", "W_O")
        if chance < 0.3:
            drawn = budget(rng)
            if kind in ("W_Q", "W_K") and not architecture.rope:  # what is covered is their product
                drawn = replace(drawn, distance=None)
            given[kind] = with_rows(drawn) if kind == "embedding" else drawn
        elif chance < 0.4 and inside:
            given[f"{kind}[{rng.randrange(architecture.depth)}]"] = budget(rng)
        elif chance < 0.5 and kind in ("W_QK", "W_V") and architecture.kv_heads is None:
            given[f"{kind}[0,{rng.randrange(architecture.heads)}]"] = budget(rng)
    if any(key.startswith("W_QK") for key in given):  # a product has a budget of its own, or its factors have
        given = {key: budget for key, budget in given.items() if key.partition("[")[0] not in ("W_Q", "W_K")}
    return replace(plain.norms, budgets=given)


def with_rows(given: Budget) -> Budget:
    """A table's budget, with the norm of its rows."""
    part = None if given.distance is None else replace(given.distance, row=given.distance.op)
    return replace(given, row=given.op, distance=part)


def small(preset: str, **changes: Any) -> Setting:
    """A preset in small widths, at its own depth unless another is given."""
    own = {"edelman": {}, "vit": {"d_patch": 6, "classes": 10}}.get(preset, {"vocabulary": 9})
    return Setting.of(preset, **{"C": 1.0, "d": 8, "heads": 2, "seq_len": 5, **own, **changes})


def edelman(rng: random.Random, **changes: Any) -> Setting:
    """A setting of the first paper's architecture on vectors, of any sample, often with norms of its own."""
    fields: dict[str, Any] = {
        "depth": rng.choice((1, 1, 2, 2, 3, 4)),
        "d": rng.choice((4, 8, 18, 64, 200, 768)),
        "seq_len": round(math.exp(rng.uniform(0.7, 7))),
        "heads": rng.choice((1, 1, 1, 2)),
        "readout": rng.choice(("cls", "cls", "mean")),
        "normalisation": rng.choice(("ball", "ball", "none")),
        "input_radius": rng.choice((1.0, 1.0, 0.5, 2.0)),
    }
    return with_norms(rng, Setting.of(**fields | changes), ("W_QK", "W_V", "W_1", "readout"))


def with_norms(rng: random.Random, about: Setting, kinds: Sequence[str]) -> Setting:
    """With a sample of any size, and norms of their own for some matrices."""
    budgets: dict[str, Budget] = {}
    for kind in rng.sample(kinds, rng.randint(0, 3)):
        op = math.exp(rng.uniform(-2, 1.5))
        fro, transposed = rng.choice((None, op * rng.uniform(1, 2))), rng.choice((None, 3 * op))
        budgets[kind] = Budget(op=op, fro=fro, two_one=op * rng.uniform(2, 3), two_one_t=transposed)
    sample = Sample(round(10 ** rng.uniform(1, 9)), rng.choice((0.05, 0.01, 0.3)), margin=10 ** rng.uniform(-3, 0.4))
    return replace(about, norms=Norms(C=math.exp(rng.uniform(-2, 1.5)), budgets=budgets), sample=sample)
