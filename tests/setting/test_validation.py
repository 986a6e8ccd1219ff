"""Settings that describe nothing are refused in one line that says what was got; nothing else is ever raised."""

from __future__ import annotations

import copy
import itertools
import json
import random
import re
from typing import Any

import numpy as np
import pytest

from boundcalc.base.errors import InvalidSetting, Unsupported
from boundcalc.base.schema import specs
from boundcalc.base.validate import letter
from boundcalc.engine.evaluate import evaluate
from boundcalc.setting import (
    Activation,
    Architecture,
    Attention,
    Budget,
    Embedding,
    LayerNorm,
    Linear,
    Norms,
    Pool,
    Residual,
    Sample,
    Setting,
)
from tests.laws.settings import settings
from tests.proof.test_fuzz import mutated

NAN, INF, HUGE = float("nan"), float("inf"), 10**400


def refusal(**values: Any) -> str:
    """The one line a setting is refused with."""
    with pytest.raises(InvalidSetting) as caught:
        Setting.of(**values)
    text = str(caught.value)
    assert "\n" not in text
    assert len(text) < 500
    return text


DECLARED = {**specs(Architecture), **specs(Sample), "C": specs(Norms)["C"]}
ZERO = {"vocabulary", "d_patch", "own_row", "eps", "variance_floor", "position_radius", "train_error"}
UNSET = {"d_head", "d_ff", "kv_heads", "own_row", "bits", "lipschitz", "C"}
WRONG: dict[type, tuple[Any, ...]] = {
    int: (-1, 1.5, NAN, INF, -INF, HUGE, "3", True, [1], {}),
    float: (-1e-9, NAN, INF, -INF, HUGE, "1", True, [1.0]),
    bool: (0, 1, "yes", []),
    str: ("?", 3, True, []),
}
SAYS = {int: "whole number|lie between", float: "must be|must lie", bool: "true or false", str: "must be one of"}


@pytest.mark.parametrize("name", DECLARED)
def test_values_that_a_field_cannot_have_are_refused_by_its_name(name: str) -> None:
    kind = DECLARED[name].kind
    wrong = list(WRONG[kind]) + [None] * (name not in UNSET) + [0] * (kind in (int, float) and name not in ZERO)
    wrong += {"delta": [1, 1.5], "train_error": [1.5], "heads": [10**6], "depth": [10**6], "bits": [129]}.get(name, [])
    for start in ({}, {"style": "pre"}):
        for value in wrong:
            text = refusal(**(start | {name: value}))
            assert re.search(SAYS[kind], text), (value, text)
            assert name in text or letter(name) in text


def test_a_normalisation_needs_eps_or_a_floor() -> None:
    assert "unbounded" in refusal(normalisation="layernorm", eps=0)
    Setting.of(normalisation="layernorm", eps=0, variance_floor=0.1)


def test_unknown_fields_and_presets() -> None:
    assert "did you mean 'seq_len'?" in refusal(seq_length=3)
    assert "did you mean 'layernorm'?" in refusal(normalisation="layer_norm")
    assert "did you mean 'bert'?" in refusal(preset="berty")


def test_widths_and_heads_fit() -> None:
    assert "not divisible by heads = 3" in refusal(d=64, heads=3)
    assert "multiple of kv_heads" in refusal(d=64, heads=4, kv_heads=3)
    assert "not both" in refusal(vocabulary=3, d_patch=3)
    for name in ("residual", "gated", "rope", "bias"):
        assert "--style pre" in refusal(**{name: True})
    assert Setting.of(d=np.int64(8), heads=2.0, n_train=1e6) == Setting.of(d=8, heads=2, n_train=10**6)


@pytest.mark.parametrize(("small", "large"), [*itertools.combinations(("op", "fro", "two_one", "one_one"), 2)])
def test_budgets_that_contradict_themselves(small: str, large: str) -> None:
    with pytest.raises(InvalidSetting, match="contradict"):
        Budget(**{small: 2.0, large: 1.0})  # type: ignore[arg-type]
    Budget(**{small: 1.0, large: 1.0})  # type: ignore[arg-type]


LAYERS = (Linear("W_in", 3, 4), Residual((LayerNorm("norm", 4),)), Attention(4, 2, d_value=2, combine="concat"))


@pytest.mark.parametrize(
    ("layers", "why"),
    [
        ((*LAYERS, Linear("readout", 5, 1)), "width 5"),
        ((Linear("W", 3, 4), Residual((Linear("V", 4, 5),)), Linear("readout", 5, 1)), "residual"),
        ((*LAYERS, Linear("readout", 4, 10)), "classes = 1"),
        ((), "at least one"),
        (("linear",), "of type Layer"),
        ((Linear("readout", 4, 1), LayerNorm("norm", 2)), "width 2"),
        ((Residual((Linear("W", 5, 1),)),), "residual adds rows of width 1 to rows of width 5"),
        ((Activation(), Residual((Activation(), Linear("W", 5, 1)))), "residual adds rows of width 1"),
        ((Residual((Embedding(10, 3),)), Linear("readout", 3, 1)), "residual adds rows of width 3 to tokens"),
        ((Residual((Linear("W", 5, 5),), ((Linear("V", 4, 4),),)), Linear("readout", 5, 1)), "not of width 5 and 4"),
        ((Residual((Activation(),), ((Linear("V", 4, 3),),)), Linear("readout", 3, 1)), "width 3 to rows of width 4"),
        ((Residual((Pool(),), ((Linear("V", 4, 4),),)), Linear("readout", 3, 1)), "rows of width 3"),
        ((Linear("W", 4, 7), Embedding(10, 3), Linear("readout", 3, 1)), "tokens, so it stands first"),
    ],
)
def test_layers_that_do_not_fit_together(layers: Any, why: str) -> None:
    with pytest.raises(InvalidSetting, match=why):
        Architecture(layers=layers)


def layer(label: str, **fields: Any) -> dict[str, Any]:
    return {"architecture": {"layers": [{"layer": label, **fields}]}}


def heads(**fields: Any) -> dict[str, Any]:
    return layer("attention", d=4, **fields)


def split(**fields: Any) -> dict[str, Any]:
    return heads(qk="split", d_head=2, **fields)


def normaliser(**fields: Any) -> dict[str, Any]:
    return {"architecture": {"normaliser": fields}}


def budget(**limits: Any) -> dict[str, Any]:
    return {"norms": {"budgets": {"W_V": limits}}}


@pytest.mark.parametrize(
    ("data", "why"),
    [
        *((normaliser(name=name), "independent of T") for name in ("sparsemax", "entmax", "hardmax", "sigmoid-logT")),
        (normaliser(name="softmaxx"), "did you mean 'softmax'"),
        (normaliser(name=["softmax"]), "must be one of"),
        (normaliser(name="custom", c=1.0), "mu"),
        (normaliser(name="custom", c=1.0, mu=NAN), "mu"),
        (normaliser(name="softmax", c=1.0), "c"),
        (normaliser(name="softmax", temperature=0.0), "temperature"),
        (budget(F=NAN), "F"),
        (budget(row=HUGE), "row"),
        (budget(sup="1"), "sup"),
        (budget(rank=1.5), "whole number"),
        (budget(nuclear=-1.0), "nuclear"),
        (budget(**{"211": 4}), "did you mean '21'"),
        (budget(op=4, distance={"ran": 1}), "did you mean 'rank'"),
        ({"sample": {"gamma": 1, "margin": 1}}, "gives margin twice"),
        (layer("linear", kind="W", d_in=1, d_out=1) | {"architecture": {"layers": [], "d": 8}}, "at least one"),
        (layer("linear", kind="W V", d_in=1, d_out=1), "kind"),
        (layer("linear", kind="W", d_in=1), "d_out"),
        (layer("ball", radius=-1.0), "radius"),
        (layer("layernorm", kind="n", d=4, eps=0), "eps"),
        (layer("residual", branches=[]), "branch"),
        (layer("residual", branch=[], beside=[{"layer": "ball"}]), "beside"),
        (layer("convolution"), "convolution"),
        ({"architecture": {"layers": ["linear", None]}}, "layer"),
        (heads(qk="both"), "qk"),
        (heads(qk="split"), "d_head"),
        (heads(heads=3, kv_heads=2), "kv_heads"),
        (heads(normaliser="softmax"), "normaliser"),
        (heads(qk_norm="head", qk_eps=0.1), "qk_norm"),
        (split(qk_norm="head"), "qk_eps"),
        (split(qk_norm="head", qk_eps=0.0), "qk_eps"),
        (split(qk_eps=0.1), "qk_eps"),
        (split(qk_norm="width", qk_eps=0.1), "width"),
        (heads(offsets="learned"), "buckets"),
        (heads(offsets="fixed", buckets=3), "buckets"),
        (heads(offsets="learned", buckets=3, normaliser={"name": "sigmoid"}), "offsets"),
    ],
)
def test_json_of_a_setting_that_is_none_is_refused_in_one_line(data: Any, why: str) -> None:
    with pytest.raises((InvalidSetting, Unsupported), match=why) as caught:
        Setting.from_json(data)
    assert "\n" not in str(caught.value)


def test_parts_of_the_wrong_type() -> None:
    for values in ({"architecture": "bert"}, {"norms": {"C": 1}}, {"sample": Norms(C=1.0)}):
        with pytest.raises(InvalidSetting, match="of type"):
            Setting(**values)  # type: ignore[arg-type]
    with pytest.raises(InvalidSetting, match="must be of type Budget"):
        Norms(C=1.0, budgets={"W_V": 1.0})  # type: ignore[dict-item]
    Setting(Architecture(), Norms(C=1.0), Sample())


def test_no_budget_at_all_says_what_to_type() -> None:
    with pytest.raises(InvalidSetting, match="--C 1"):
        evaluate(Setting.of(norms=Norms()))


def complaint(data: Any) -> str | None:
    """What is wrong with how JSON of a setting is taken, or None."""
    try:
        back = Setting.from_json(data)
        assert Setting.from_json(json.loads(json.dumps(back.to_json()))) == back
    except (InvalidSetting, Unsupported) as error:
        text = str(error)
        return None if "\n" not in text and 0 < len(text) < 1000 else f"not one line: {text[:200]!r}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


def test_random_changes_are_refused_or_make_another_setting() -> None:
    rng = random.Random(3)
    documents = [setting.to_json() for setting in settings(31, 60)]
    for document in documents[:20]:
        listed = copy.deepcopy(document)
        layers = Setting.from_json(document).architecture
        listed["architecture"] = Architecture(layers=layers.stages, classes=layers.classes).to_json()
        documents.append(listed)
    found = (complaint(mutated(rng.choice(documents), rng)) for _ in range(4000))
    assert [text for text in found if text] == []
