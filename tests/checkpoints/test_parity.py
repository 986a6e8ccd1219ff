"""The forward check holds what is described against what is run, and refuses all else with the layer where they
part."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from boundcalc import Architecture
from boundcalc.checkpoints import CheckpointError, audit
from boundcalc.checkpoints.audit import open_model
from boundcalc.checkpoints.describe import describe
from boundcalc.checkpoints.families import Model
from boundcalc.checkpoints.families.read import family_of, read_mapping
from boundcalc.checkpoints.forward import Network
from boundcalc.checkpoints.parity import ROUNDING, SINGLE, compare
from boundcalc.checkpoints.readers import open_checkpoint
from boundcalc.checkpoints.traced import example_inputs
from boundcalc.lab.train.model import draw_weights, through
from boundcalc.setting import LayerNorm, Normaliser
from tests.checkpoints.layouts import NanoGPT, made
from tests.checkpoints.live import torch
from tests.checkpoints.zoo import ZOO

pytestmark = pytest.mark.filterwarnings("ignore")


def test_a_model_that_was_never_saved_is_not_taken_for_another_head() -> None:
    """Its config names no class yet, and the description once pooled one row where it averages."""
    model = ZOO["modernbert"].make()
    model.config.architectures = None
    seen = open_model(model)
    assert compare(model, seen).row is None


class Washed(torch.nn.Module):
    """A constant before the last normalisation, which washes it out; the parts under the names that the file has."""

    def __init__(self, inner: NanoGPT, factor: float) -> None:
        super().__init__()
        self.transformer, self.lm_head, self.factor = inner.transformer, inner.lm_head, factor
        inner.transformer["ln_f"].eps = 1e-30

    def forward(self, tokens: Any) -> Any:
        t = self.transformer
        x = t["wte"](tokens) + t["wpe"](torch.arange(tokens.shape[1]))
        for block in t["h"]:
            x = block(x)
        return self.lm_head(t["ln_f"](self.factor * x))


@pytest.mark.parametrize("factor", [1.0, 3.0])
def test_errors_that_wash_out_at_the_outputs_are_found_inside(factor: float) -> None:
    inner = made("nanoGPT")
    module, checkpoint = Washed(inner, factor), open_checkpoint(inner)
    seen = Model(checkpoint, read_mapping(describe(made("nanoGPT"), checkpoint)[0]))
    found = seen.architecture
    last = replace(next(x for x in found.stages if isinstance(x, LayerNorm) and x.kind == "norm_final"), eps=1e-30)
    found = replace(found, layers=tuple(last if getattr(x, "kind", "") == "norm_final" else x for x in found.stages))
    seen.architecture = found
    tokens = example_inputs(seen)
    theirs = module.double()(torch.tensor(tokens)).detach().numpy()
    ours = Network(seen)(tokens, every_row=True)
    assert np.abs(ours - theirs).max() < 1e-12  # at the outputs nothing shows
    if factor == 1:
        assert compare(module, seen).places
    else:
        with pytest.raises(CheckpointError, match="differ in what enters norm_final"):
            compare(module, seen)


def test_single_precision_in_a_module_is_said() -> None:
    class Narrow(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = ZOO["gpt2"].make()
            self.config = self.inner.config

        def forward(self, tokens: Any) -> Any:
            out = self.inner(tokens).logits
            return torch.from_numpy(out.numpy().astype(np.float32)) * 1.0  # no cast that could be made wider

    module = Narrow()
    seen = open_model(module.inner)
    found = compare(module, seen)
    assert found.tolerance == SINGLE
    assert ROUNDING < found.worst < SINGLE
    assert "single precision" in found.compared.text


_EDELMAN: dict[str, Any] = {"style": "edelman", "normalisation": "ball"}
_BLOCKS: dict[str, Any] = {"heads": 2, "bias": True, "residual": True, "normalisation": "layernorm"}


@pytest.mark.parametrize(
    "fields",
    [_EDELMAN, {**_BLOCKS, "style": "pre", "causal": True}, {**_BLOCKS, "style": "post", "gated": True}],
    ids=["edelman", "pre", "post"],
)
@pytest.mark.parametrize("normaliser", ["softmax", "softmax1", "sigmoid", "linear"])
def test_what_runs_a_checkpoint_agrees_with_what_trains(fields: dict[str, Any], normaliser: str) -> None:
    """One forward pass on arrays of a file, and on torch tensors."""
    shape = {"depth": 2, "d": 8, "seq_len": 6, "vocabulary": 5, "positions": "learned"}
    architecture = Architecture(**shape, normaliser=Normaliser(normaliser), **fields)
    torch.manual_seed(0)
    drawn = {name: value.double() for name, value in draw_weights(architecture).items()}
    weights = {name: value + 0.3 * torch.randn_like(value) for name, value in drawn.items()}
    seen = Model(open_checkpoint(weights), family_of(architecture))
    tokens = np.random.default_rng(1).integers(0, 5, (3, 6))
    ours = Network(seen)(tokens)
    theirs = through(architecture.stages, weights, torch.tensor(tokens), 0)[:, 0].numpy()
    assert np.abs(ours - theirs).max() < 1e-12


def test_offsets_of_keys_count_where_the_normaliser_does_not_forget_them() -> None:
    """A joint score has them as one more column; they were once left out of its norms."""
    architecture = Architecture(
        depth=1, d=6, seq_len=4, vocabulary=5, style="pre", heads=2, bias=True, normalisation="none",
        normaliser=Normaliser("sigmoid"),
    )  # fmt: skip
    weights = {name: value.double() for name, value in draw_weights(architecture).items()}
    torch.manual_seed(1)
    for name in ("b_Q[0]", "b_K[0]"):
        weights[name] = torch.randn_like(weights[name])
    found = audit(weights, family=family_of(architecture))
    for head in range(2):
        q = torch.cat([weights["W_Q[0]"][head], weights["b_Q[0]"][head][None]])
        k = torch.cat([weights["W_K[0]"][head], weights["b_K[0]"][head][None]])
        exact = float(torch.linalg.matrix_norm(q @ k.T, 2))
        assert exact <= (found.measured[f"W_QK[0,{head}]"].op or 0) <= exact * (1 + 1e-8)


def test_the_module_itself_is_left_as_it_was() -> None:
    model = NanoGPT().train()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    describe(model, open_checkpoint(model))
    assert model.training
    assert all(value.dtype == torch.float32 for value in model.state_dict().values())
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    assert torch.get_default_dtype() == torch.float32
