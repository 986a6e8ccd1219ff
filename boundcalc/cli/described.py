"""A setting value by value, as it is shown."""

from __future__ import annotations

from typing import Any, NamedTuple

from boundcalc.cli.setting import BY_FIELD, Question
from boundcalc.cli.values import shown
from boundcalc.setting import Setting

_ALWAYS = ("depth", "seq_len", "d", "heads", "activation", "normaliser", "normalisation", "readout", "input_radius")
_WHEN_SET = (
    *("d_head", "d_ff", "kv_heads", "temperature", "residual", "bias", "gated", "rope", "causal", "vocabulary"),
    *("d_patch", "positions", "position_radius", "embedding_norm", "pooler", "variance_floor", "classes"),
    "bits",
)
_SAMPLE = ("n_train", "delta", "margin", "train_error", "lipschitz")
_MOST_NAMED = 4
"""Budgets that are listed by name."""


class _Described(NamedTuple):
    """A value of the setting as it is shown."""

    field: str
    label: str
    value: str
    assumed: bool


def described(question: Question) -> list[_Described]:
    """Every value that matters, with whether it is a default."""
    setting = question.setting
    architecture = setting.architecture
    out: list[_Described] = []
    if architecture.layers is not None:
        out.append(_Described("layers", "layers", f"{len(architecture.layers)} listed", False))
        names: tuple[str, ...] = ("seq_len", "input_radius", "classes", *(("bits",) if architecture.bits else ()))
        names = tuple(name for name in names if architecture.unread(name) is None)
    else:
        assumed = question.assumed("style") and question.assumed("preset")
        out.append(_Described("style", "style", architecture.style, assumed))
        names = (*_ALWAYS, *(name for name in _WHEN_SET if _is_set(question, name)))
        if architecture.normalisation in ("layernorm", "rmsnorm"):
            names = (*names, "eps")
        if architecture.vocabulary:
            names = tuple(name for name in names if name != "input_radius")
    for name in names:
        out.append(_describe(question, name, _field(setting, name)))
    if setting.norms.C is not None:
        out.append(_describe(question, "C", setting.norms.C))
    if setting.norms.budgets:
        keys = list(setting.norms.budgets)
        of = f"{len(keys)} given" if len(keys) > _MOST_NAMED else f"of {' '.join(keys)}"
        measured = ", measured" if setting.norms.measured else ""
        rest = "; C for the rest" if setting.norms.C is not None else ""
        out.append(_Described("budgets", "norm budgets", f"{of}{measured}{rest}", False))
    for name in _SAMPLE:
        value = getattr(setting.sample, name)
        if value is not None:
            out.append(_describe(question, name, value))
    if setting.sample.measured:
        seen = " and ".join(name.replace("_", " ") for name in setting.sample.measured)
        out.append(_Described("measured", "chosen from the data:", seen, False))
    return out


def _describe(question: Question, name: str, value: Any) -> _Described:
    return _Described(name, BY_FIELD[name].label, shown(value), question.assumed(name))


def _field(setting: Setting, name: str) -> Any:
    if name == "normaliser":
        normaliser = setting.architecture.normaliser
        custom = f" (c = {shown(normaliser.c)}, mu = {shown(normaliser.mu)})" if normaliser.name == "custom" else ""
        return normaliser.name + custom
    if name == "temperature":
        return setting.architecture.normaliser.temperature
    return getattr(setting.architecture, name)


def _is_set(question: Question, name: str) -> bool:
    value = _field(question.setting, name)
    plain = (None, False, 0, "none") if name != "classes" else (1,)
    return value not in plain or not question.assumed(name)
