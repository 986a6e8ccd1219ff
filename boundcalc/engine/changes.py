"""What of a setting can be changed by a factor: sizes, and every kind of norm that is read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from boundcalc.setting import Norms, Setting

_Changer = Callable[[float], Setting]


def changers(setting: Setting) -> dict[str, _Changer]:
    """How to multiply each number of a setting by a factor: sizes, and every kind of norm that is read."""
    sample, architecture = setting.sample, setting.architecture
    found: dict[str, _Changer] = {
        "m": lambda f: setting.but(n_train=max(1, round(sample.n_train * f))),
        "gamma": lambda f: setting.but(margin=sample.margin * f),
        "delta": lambda f: setting.but(delta=sample.delta * f),
        "T": lambda f: setting.but(seq_len=max(1, round(architecture.seq_len * f))),
    }
    if architecture.layers is None:
        found["depth"] = lambda f: setting.but(depth=max(1, round(architecture.depth * f)))
        found["d"] = lambda f: setting.but(
            d=architecture.heads * max(1, round(architecture.d * f / architecture.heads))
        )
    norms = setting.norms
    for kind in dict.fromkeys(weight.kind for weight, _ in setting.lookups()):
        found[f"norm {kind}"] = lambda f, kind=kind: replace(setting, norms=_scaled_kind(setting, kind, f))
    found["every norm"] = lambda f: replace(setting, norms=norms.scaled(f))
    return found


def _scaled_kind(setting: Setting, kind: str, factor: float) -> Norms:
    """All budgets of one kind times a factor, those that the knob C gives too."""
    norms = setting.norms
    own = {key: budget for key, budget in norms.budgets.items() if key.partition("[")[0] == kind}
    for weight, key in setting.lookups():
        if weight.kind == kind and key is None:
            own[kind] = weight.usable(norms.find(kind))
    scaled = Norms(None, own).scaled(factor).budgets
    return replace(norms, budgets={**norms.budgets, **scaled})


def value_of(setting: Setting, name: str) -> float | None:
    """What a number of the setting has become; None for norms, which are several."""
    sample, architecture = setting.sample, setting.architecture
    return {
        "m": sample.n_train,
        "gamma": sample.margin,
        "delta": sample.delta,
        "T": architecture.seq_len,
        "depth": architecture.depth,
        "d": architecture.d,
    }.get(name)
