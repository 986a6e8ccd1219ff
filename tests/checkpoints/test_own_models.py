"""Models as boundcalc's own training saves them. Skipped without torch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from boundcalc import Architecture, Sample, Setting, evaluate
from boundcalc.checkpoints import audit

torch = pytest.importorskip("torch")
pytest.importorskip("safetensors")

_BLOCKS: dict[str, Any] = {"residual": True, "bias": True, "normalisation": "layernorm", "heads": 2}
KINDS: dict[str, dict[str, Any]] = {
    "one head of full rank": {"vocabulary": 5, "positions": "learned"},
    "pre": {**_BLOCKS, "style": "pre", "vocabulary": 5, "positions": "fixed", "position_radius": 1.0},
    "post and gated": {**_BLOCKS, "style": "post", "gated": True, "vocabulary": 3, "d_head": 4, "pooler": True},
    "vectors": {"style": "pre", "residual": True, "normalisation": "rmsnorm", "d_patch": 7, "classes": 3},
    "grouped": {**_BLOCKS, "style": "pre", "heads": 4, "kv_heads": 2, "vocabulary": 4},
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_trained_model_is_audited_as_it_was_saved(kind: str, tmp_path: Path) -> None:
    from boundcalc.lab.train.model import Transformer, save

    architecture = Architecture(depth=2, d=8, seq_len=6, **KINDS[kind])
    model = Transformer(architecture)
    path = tmp_path / "model.safetensors"
    save(path, architecture, model.weights)
    found = audit(path)
    assert found.architecture == architecture
    assert found.account.balanced
    assert found.account.unknown == []
    assert found.account.total == sum(p.numel() for p in model.parameters())
    value = evaluate(Setting(architecture, found.norms(), Sample(n_train=10**8)))
    assert value.kind == "a_posteriori"
    for name, weight in model.weights.items():
        if name.startswith("W_1"):
            exact = float(torch.linalg.matrix_norm(weight.detach().double(), 2))
            assert exact <= (found.measured[name].op or 0) <= exact * (1 + 1e-10)
