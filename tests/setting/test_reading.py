"""Every field of an architecture or a sample that is given changes something, or is refused by name."""

from __future__ import annotations

import random
from dataclasses import fields, replace
from typing import Any

import pytest

from boundcalc.base.errors import InvalidSetting
from boundcalc.base.schema import specs
from boundcalc.layers.base import TOKENS
from boundcalc.layers.embedding import Embedding
from boundcalc.layers.linear import Linear
from boundcalc.layers.merged import beginning
from boundcalc.layers.rows import Pool
from boundcalc.setting import PRESETS, Architecture, Normaliser, Sample, Setting
from tests.laws.settings import transformer

OTHERS: dict[str, tuple[Any, ...]] = {
    name: (True, False) if spec.kind is bool else spec.choices[:2] or ((0.2, 0.3) if spec.kind is float else (3, 5))
    for name, spec in specs(Architecture).items()
}
OTHERS |= dict.fromkeys(("depth", "heads", "kv_heads"), (1, 2)) | {"d": (16, 32), "input_radius": (2.0, 3.0)}
OTHERS |= {"own_row": (0, 1), "normaliser": (Normaliser(), Normaliser("linear"))}
"""Two values of every field: at least one is not what it was."""


def meaning(architecture: Architecture) -> object:
    """What a bound can know of an architecture: layers, their weights and bits, the radius of rows that are no
    tokens."""
    stages = architecture.stages
    tokens = stages[0].widths()[0] == TOKENS
    weights = [layer.weights(architecture.seq_len) for layer in stages]
    radius = None if tokens else architecture.input_radius
    return stages, weights, architecture.seq_len, architecture.bits, radius


def forced(architecture: Architecture, name: str, value: Any) -> Architecture:
    """The architecture with a field changed behind the checks."""
    changed = object.__new__(Architecture)
    for f in fields(Architecture):
        object.__setattr__(changed, f.name, value if f.name == name else getattr(architecture, f.name))
    return changed


def on_tokens(rng: random.Random) -> Architecture:
    """An architecture that may look its first scores and values up (A7)."""
    made = transformer(rng)
    values = {f.name: getattr(made, f.name) for f in fields(made)} | {"d_patch": 0}
    given = {"style": rng.choice(("post", "pre")), "residual": True, "positions": "learned", "vocabulary": 3}
    return Architecture.from_defaults(values, given)


def test_every_field_has_values_to_try() -> None:
    assert {f.name for f in fields(Architecture)} == {*OTHERS, "layers"}


@pytest.mark.parametrize("name", [name for name in OTHERS if name != "own_row"])
def test_a_field_is_refused_exactly_where_it_changes_nothing(name: str) -> None:
    rng = random.Random(name)
    seen: set[bool] = set()
    for _ in range(150):
        architecture = transformer(rng)
        before = meaning(architecture)
        changes = False
        for value in OTHERS[name]:
            try:
                changes |= meaning(forced(architecture, name, value)) != before
            except InvalidSetting as error:  # a layer may refuse it itself
                changes |= f"{name.replace('_', ' ')} = {value} would change nothing" not in str(error)
        if name in ("residual", "gated", "rope", "bias") and architecture.style == "edelman":
            changes = False  # the paper's block has none, whatever layers could be made
        seen.add(changes)
        assert changes == (architecture.unread(name) is None), (name, architecture)
        if not changes:
            with pytest.raises(InvalidSetting, match=f"{name} = .* would change nothing"):
                replace(architecture, **{name: OTHERS[name][0]})
            with pytest.raises(InvalidSetting, match=f"{name} = .* would change nothing"):
                Setting(architecture).but(**{name: OTHERS[name][0]})
    assert True in seen


def test_a_row_without_data_is_read_just_where_it_is_of_use() -> None:
    """What the fields say of it is what the layers say."""
    rng = random.Random(5)
    seen: set[bool] = set()
    for _ in range(300):
        made = on_tokens(rng)
        first, *rest = made.stages
        assert isinstance(first, Embedding)
        of_use = beginning((replace(first, own_row=1), *rest)) is not None
        assert of_use == (made.unread("own_row") is None), made
        seen.add(of_use)
        if not of_use:
            with pytest.raises(InvalidSetting, match="own_row = 1 would change nothing"):
                replace(made, own_row=1)
    assert seen == {True, False}


def test_presets_set_nothing_idle() -> None:
    for values in PRESETS.values():
        assert all(Architecture(**values).unread(name) is None for name in values)


def test_what_came_before_goes_with_what_read_it() -> None:
    bert = Setting.of("bert")
    assert bert.but(normalisation="none").architecture.eps == Architecture().eps
    assert not bert.but(style="edelman", normalisation="ball").architecture.residual
    with pytest.raises(InvalidSetting, match="eps = 1e-12 would change nothing"):
        bert.but(normalisation="none", eps=1e-12)
    with pytest.raises(InvalidSetting, match=r"eps = 1e-05 would change nothing"):  # the default, given by name
        Setting.of(eps=1e-5)


def test_saying_that_something_is_left_out_is_no_mistake() -> None:
    assert Setting.of(gated=False, variance_floor=0, d_ff=None) == Setting.of()


def test_layers_one_by_one() -> None:
    tokens = (Embedding(5, 4), Pool("cls"), Linear("readout", 4, 1))
    with pytest.raises(InvalidSetting, match=r"input_radius = 2.0 would change nothing: the input is tokens"):
        Architecture(layers=tokens, input_radius=2.0)
    with pytest.raises(InvalidSetting, match=r"heads = 2 would change nothing: .* one by one"):
        Architecture(layers=tokens, heads=2)
    with pytest.raises(InvalidSetting, match=r"position radius = 1.0 would change nothing"):
        Embedding(5, 4, position_radius=1.0)


@pytest.mark.parametrize("given", [{"margin": 2.0}, {"train_error": 0.1}, {"measured": ("margin",)}])
def test_margins_belong_to_the_ramp_loss(given: dict[str, Any]) -> None:
    with pytest.raises(InvalidSetting, match="would change nothing: margins belong to the ramp loss"):
        Sample(lipschitz=2.0, **given)
    with pytest.raises(InvalidSetting, match="would change nothing: margins belong to the ramp loss"):
        Setting.of(lipschitz=2.0, **given)
    with pytest.raises(InvalidSetting, match="would change nothing: margins belong to the ramp loss"):
        Setting.of(lipschitz=2.0).but(**given)
