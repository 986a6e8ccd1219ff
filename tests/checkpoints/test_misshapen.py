"""Every tensor misshapen in turn, every setting made absurd: one clear line or a sound audit, never anything else."""

from __future__ import annotations

import sys
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from boundcalc.base.errors import BoundcalcError
from boundcalc.checkpoints import audit
from boundcalc.checkpoints.readers.base import Checkpoint
from tests.checkpoints import handmade


def outcome(tensors: dict[str, handmade.Array], config: dict[str, Any]) -> str:
    """ "audited", or "refused" with one line; anything else that is raised fails the test."""
    try:
        found = audit_of(handmade.checkpoint(tensors, config))
    except BoundcalcError as error:
        return "refused" if "\n" not in str(error) else "several lines"
    return "audited" if found.account.balanced else "unbalanced"


def audit_of(found: Checkpoint) -> Any:
    with patch.object(sys.modules["boundcalc.checkpoints.audit"], "open_checkpoint", lambda _: found):
        return audit("m", seed=0)


SHAPES = {
    "flat": lambda w: w.ravel(),
    "turned": lambda w: w.T.copy(),
    "one more row": lambda w: np.concatenate([w, w[:1]]) if w.ndim else w[None],
    "no rows": lambda w: w[:0] if w.ndim else w,
    "a number": lambda w: np.array(1.0),
    "one more dimension": lambda w: w[None, None],
}


@pytest.mark.parametrize("model", handmade.SMALL)
@pytest.mark.parametrize("shape", SHAPES)
def test_misshapen_tensors(model: str, shape: str) -> None:
    good, config = handmade.SMALL[model](np.random.default_rng(0), depth=1)
    assert outcome(good, config) == "audited"
    seen: set[str] = set()
    for name in good:
        result = outcome(good | {name: SHAPES[shape](good[name])}, config)
        assert result in ("audited", "refused"), f"{name}: {result}"
        seen.add(result)
    assert "refused" in seen


@pytest.mark.parametrize("model", handmade.SMALL)
def test_every_missing_tensor_is_missed_or_optional(model: str) -> None:
    good, config = handmade.SMALL[model](np.random.default_rng(0), depth=1)
    for name in good:
        result = outcome({k: v for k, v in good.items() if k != name}, config)
        assert result in ("audited", "refused"), f"{name}: {result}"
        if name.endswith(("query.weight", "c_attn.weight", "o_proj.weight", "layernorm_before.weight")):
            assert result == "refused"


@pytest.mark.parametrize("value", ["x", 0, -1, 10**9, 0.5, float("nan"), [1], {}, True])
@pytest.mark.parametrize("model", handmade.SMALL)
def test_absurd_settings(model: str, value: object) -> None:
    good, config = handmade.SMALL[model](np.random.default_rng(0), depth=1)
    for key in (*config, "num_key_value_heads", "layer_norm_eps", "rms_norm_eps", "layer_norm_epsilon", "pad_token_id"):
        result = outcome(good, config | {key: value})
        assert result in ("audited", "refused"), f"{key}: {result}"
