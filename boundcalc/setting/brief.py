"""Settings in one line, for whoever meets one at a prompt; what is as it is by default is left out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from boundcalc.setting.architecture import Architecture
    from boundcalc.setting.norms import Norms
    from boundcalc.setting.sample import Sample
    from boundcalc.setting.setting import Setting

_ALWAYS = ("style", "depth", "seq_len", "d", "heads")
_LETTERS = {"seq_len": "T", "n_train": "m", "margin": "gamma"}
_NAMED = 6
"""Layers, and kinds of weights, that are listed."""


def of_architecture(architecture: Architecture) -> str:
    """The sizes, and all else that is not as by default."""
    layers = architecture.layers
    changed = {
        field.name: getattr(architecture, field.name)
        for field in fields(architecture)
        if field.name != "layers"
        and (getattr(architecture, field.name) != field.default or (layers is None and field.name in _ALWAYS))
    }
    if layers is None:
        return _said({name: changed.pop(name) for name in _ALWAYS} | changed)
    listed = _first([layer.label for layer in layers])
    return f"{len(layers)} layers ({listed}), {_said({'seq_len': architecture.seq_len} | changed)}"


def of_norms(norms: Norms) -> str:
    """The knob, and which weights have budgets of their own."""
    parts = [] if norms.C is None else [f"C {norms.C}"]
    if norms.budgets:
        listed = _first([*dict.fromkeys(key.partition("[")[0] for key in norms.budgets)])
        parts.append(
            f"{len(norms.budgets)} budget{'s' * (len(norms.budgets) > 1)} ({listed}){', measured' * norms.measured}"
        )
    return ", ".join(parts) or "no budgets"


def of_sample(sample: Sample) -> str:
    """All numbers of it."""
    said = _said({name: getattr(sample, name) for name in ("n_train", "delta", "margin", "train_error")})
    said += "" if sample.lipschitz is None else f", lipschitz {sample.lipschitz}"
    return said + (f", measured {' and '.join(sample.measured)}" if sample.measured else "")


def of_setting(setting: Setting) -> str:
    """Its three parts."""
    parts = of_architecture(setting.architecture), of_norms(setting.norms), of_sample(setting.sample)
    return f"Setting({'; '.join(parts)})"


def _said(values: Mapping[str, Any]) -> str:
    return ", ".join(
        name if value is True else f"{_LETTERS.get(name, name)} {getattr(value, 'name', value)}"
        for name, value in values.items()
    )


def _first(names: list[str]) -> str:
    more = f", and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more
