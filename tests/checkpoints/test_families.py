"""Families: every tensor has a place, and every norm is that of the map it names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from boundcalc import Architecture, Sample, Setting, compare, evaluate
from boundcalc.base.errors import InvalidSetting, NotFinite
from boundcalc.checkpoints import CheckpointError, Options, audit
from boundcalc.checkpoints.audit import open_model
from tests.cases.families import maps_of
from tests.checkpoints import handmade
from tests.laws.kinds.families import misfit

Floats = NDArray[np.float64]


def tensors_of(name: str) -> tuple[dict[str, handmade.Array], dict[str, Any]]:
    return handmade.SMALL[name](np.random.default_rng(0))


def test_distances_from_a_reference(tmp_path: Path) -> None:
    t, config = tensors_of("bert")
    rng = np.random.default_rng(5)
    moved = {k: v + 0.01 * rng.standard_normal(v.shape) if v.dtype.kind == "f" else v for k, v in t.items()}
    before = handmade.save(tmp_path / "before", t, config, "float64")
    found = audit(handmade.save(tmp_path / "after", moved, config, "float64"), reference=before)
    was, now = (maps_of(open_model(tmp_path / when)) for when in ("before", "after"))
    assert misfit(found.distances, {k: now[k] - was[k] for k in was if k != "W_QK[1,1]"}) is None
    joint = now["W_QK[1,1]"] - was["W_QK[1,1]"]
    op = np.linalg.svd(joint, compute_uv=False)[0]
    assert op <= (found.distances["W_QK[1,1]"].op or 0) <= op * (1 + 1e-9)
    norms = found.norms()
    assert all(budget.distance is not None for budget in norms.budgets.values())
    assert set(found.distances) == set(found.measured)
    near = Setting(found.architecture, norms, Sample(n_train=10**8))
    plain = Setting(found.architecture, audit(tmp_path / "after").norms(), Sample(n_train=10**8))
    assert compare(near, ["parameters"])[0].log10 < compare(plain, ["parameters"])[0].log10


def test_a_reference_of_another_shape_is_refused(tmp_path: Path) -> None:
    t, config = tensors_of("gpt2")
    small, _ = handmade.gpt2(np.random.default_rng(0), vocab_size=7)
    with pytest.raises(CheckpointError, match="reference has an array of shape"):
        audit(handmade.save(tmp_path / "a", t, config), reference=handmade.save(tmp_path / "b", small, config))


_LAYER = "bert.encoder.layer.1."


@pytest.mark.parametrize(
    ("tensors", "config", "message"),
    [
        ({f"{_LAYER}attention.self.key.weight": None}, {}, r"has no encoder.layer.1.attention.self.key.weight"),
        (
            {f"{_LAYER}intermediate.dense.weight": np.ones((5, 8))},
            {},
            r"W_1 should be \(8, 12\), the file has \(8, 5\)",
        ),
        ({f"{_LAYER}intermediate.dense.weight": np.full((12, 8), np.nan)}, {}, "96 entries that are NaN"),
        ({}, {"num_attention_heads": 3}, "8 outputs do not make 3 heads"),
        ({}, {"hidden_act": "tropical"}, "activation 'tropical' has no Lipschitz constant"),
        ({}, {"num_attention_heads": None}, "comes without the number of heads"),
        ({}, {"model_type": "hyena"}, "type 'hyena', and families read only .*with a mapping"),
    ],
)
def test_incomplete_and_contradictory_checkpoints(tensors: Any, config: Any, message: str, tmp_path: Path) -> None:
    good, own = tensors_of("bert")
    changed = {name: values for name, values in (good | tensors).items() if values is not None}
    with pytest.raises((CheckpointError, InvalidSetting, NotFinite), match=message) as caught:
        audit(handmade.save(tmp_path / "m", changed, own | config))
    assert "\n" not in str(caught.value)


def test_a_checkpoint_without_config(tmp_path: Path) -> None:
    t, config = tensors_of("bert")
    path = handmade.save(tmp_path / "m", t)
    with pytest.raises(CheckpointError, match=r"without a config\.json.*--family"):
        audit(path)
    said = Options(heads=4, settings={"hidden_act": "gelu"})
    assert audit(path, family="bert", options=said).norms() == audit(handmade.save(tmp_path / "n", t, config)).norms()
    with pytest.raises(InvalidSetting, match="did you mean 'roberta'"):
        audit(path, family="robert")


def test_shorter_sequences_leave_positions_unread(tmp_path: Path) -> None:
    t, config = tensors_of("bert")
    path = handmade.save(tmp_path / "m", t, config)
    found = audit(path, options=Options(seq_len=4))
    assert found.architecture.seq_len == 4
    assert found.account.balanced
    used = np.linalg.norm(t["bert.embeddings.position_embeddings.weight"][:4], axis=1).max()
    assert found.measured["positions"].row == pytest.approx(used)
    with pytest.raises(CheckpointError, match="T = 7 is more than the 6 positions"):
        audit(path, options=Options(seq_len=7))


def test_wide_blocks_are_probed_and_say_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from boundcalc.norms import _spectral as spectral

    monkeypatch.setattr(spectral, "EXACT_SIDE", 4)
    t, config = tensors_of("bert")
    path = handmade.save(tmp_path / "m", t, config)
    found = audit(path, seed=3)
    assert 0 < found.failure < 1e-11
    assert found.norms().failure == found.failure
    assert audit(path, seed=3).norms() == found.norms()
    assert audit(path, seed=4).norms() != found.norms()
    monkeypatch.undo()
    assert audit(path).failure == 0


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
    pytest.importorskip("torch")
    pytest.importorskip("safetensors")
    from boundcalc.lab.train.model import draw_weights
    from boundcalc.predictors.rules.certify import StoredNetwork

    architecture = Architecture(depth=2, d=8, seq_len=6, **KINDS[kind])
    weights = draw_weights(architecture)
    path = tmp_path / "model.safetensors"
    StoredNetwork.of((architecture, weights)).save(path)
    found = audit(path)
    assert found.architecture == architecture
    assert found.account.balanced
    assert found.account.unknown == []
    assert found.account.total == sum(w.numel() for w in weights.values())
    value = evaluate(Setting(architecture, found.norms(), Sample(n_train=10**8)))
    assert value.kind == "a_posteriori"
    arrays = {name: weight.double().numpy() for name, weight in weights.items()}
    heads = {f"{k[:-1]},{h}]": w for k, own in arrays.items() if "[" in k for h, w in enumerate(own)}
    want = {key: w for key, w in (arrays | heads).items() if key in found.measured}
    assert len(want) > architecture.depth
    assert misfit(found.measured, want) is None
    assert all(misfit(found.measured, {key: 1.01 * w}) for key, w in want.items() if w.any())  # the negative control
