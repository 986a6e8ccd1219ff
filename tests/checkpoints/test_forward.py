"""The architecture read from a checkpoint computes what the library's model computes: logits against logits."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from boundcalc import Sample, Setting, evaluate
from boundcalc.base.numbers import FLOAT
from boundcalc.checkpoints import Audit, CheckpointError, audit
from boundcalc.statements.compose import lower
from tests.checkpoints.live import torch
from tests.checkpoints.zoo import ZOO, logits, ours

pytestmark = pytest.mark.filterwarnings("ignore")
CLOSE = 1e-6
"""The library takes some softmax and normalisations in float32, whatever the weights are."""


@pytest.mark.parametrize("name", ZOO)
def test_logits_are_those_of_the_library(name: str, tmp_path: Path) -> None:
    kind = ZOO[name]
    model = kind.make()
    model.save_pretrained(tmp_path)
    want = logits(kind, model)
    assert np.abs(want).max() > 0.01
    for source in (tmp_path, model):
        assert np.abs(ours(kind, source, model) - want).max() < CLOSE * max(1, np.abs(want).max())
        found = audit(source)
        assert found.account.doubts == ()
        assert found.account.unknown == []
        assert found.account.balanced


YARN: dict[str, dict[str, Any]] = {
    "yarn, its own factor": {"rope_type": "yarn", "factor": 16.0},
    "yarn, a given factor": {"rope_type": "yarn", "factor": 4.0, "attention_factor": 5.0},
    "yarn, two scales": {"rope_type": "yarn", "factor": 8.0, "mscale": 0.7, "mscale_all_dim": 0.4},
    "longrope": {"rope_type": "longrope", "factor": 32.0, "short_factor": [1.0, 2.0], "long_factor": [3.0, 4.0]},
    "longrope, a given factor": {
        "rope_type": "longrope",
        "factor": 4.0,
        "attention_factor": 0.5,
        "short_factor": [1.0, 1.0],
        "long_factor": [3.0, 4.0],
    },
    "linear": {"rope_type": "linear", "factor": 4.0},
    "dynamic": {"rope_type": "dynamic", "factor": 4.0},
    "llama3": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0},
}
_ORIGINAL = {"original_max_position_embeddings": 6}


@pytest.mark.parametrize(
    ("family", "name", "layout"),
    [("llama", name, layout) for name in YARN for layout in ("new", "old", "oldest")]
    + [
        (family, name, "new") for family in ("mistral", "qwen2", "granite") for name in ("longrope", "yarn, two scales")
    ],
)
def test_factors_of_rotations(family: str, name: str, layout: str, tmp_path: Path) -> None:
    """In each spelling of config.json; the angles are the library's, the factor is read."""
    kind = ZOO[family]
    needs = _ORIGINAL if YARN[name]["rope_type"] in ("yarn", "longrope", "llama3") else {}
    model = kind.make(rope_parameters=YARN[name] | needs | {"rope_theta": 10000.0})
    model.save_pretrained(tmp_path)
    path = tmp_path / "config.json"
    config = json.loads(path.read_text())
    if layout != "new":
        given = config.pop("rope_parameters")
        config["rope_theta"] = given.pop("rope_theta")
        if layout == "oldest":
            given["type"] = given.pop("rope_type")
        config["rope_scaling"] = given
        path.write_text(json.dumps(config))
    want = logits(kind, model)
    assert np.abs(ours(kind, tmp_path, model) - want).max() < CLOSE
    if model.model.rotary_emb.attention_scaling > 1:  # negative control: without the factor it is another function
        path.write_text(json.dumps({k: v for k, v in config.items() if not k.startswith("rope_")}))
        with pytest.raises(CheckpointError, match="the rotations of the module multiply by"):
            ours(kind, tmp_path, model)


def _value(found: Audit) -> tuple[float, float]:
    norms = replace(found.norms(), measured=False)
    setting = Setting(found.architecture, norms, Sample(n_train=10**6))
    return float(lower(setting, FLOAT).amplification), evaluate(setting).log10


def test_a_factor_of_rotations_is_the_same_as_larger_queries() -> None:
    """cases.md F1: the same function had two bounds, of which the smaller was false."""
    kind, given = ZOO["llama"], YARN["yarn, a given factor"] | _ORIGINAL
    stretched = kind.make(rope_parameters=given | {"rope_theta": 10000.0})
    plain = kind.make()
    with torch.no_grad():
        for name, tensor in plain.named_parameters():
            if "q_proj" in name:
                tensor.mul_(25)
    first, second = _value(audit(stretched)), _value(audit(plain))
    assert first == pytest.approx(second, rel=1e-9)
    assert math.isclose(audit(plain).architecture.stages[1].branch[1].normaliser.temperature, 2.0)  # type: ignore[union-attr]
    assert first[0] > _value(audit(kind.make()))[0]
