"""Models of the transformers library, made from configs: every format, every parameter, attacks on the lowered model.

Skipped where torch or transformers is not installed; the same readers and families are tested without them elsewhere.
"""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from boundcalc import Budget, Sample, Setting
from boundcalc.calculus.compose import Piece, lower
from boundcalc.numbers import FLOAT
from boundcalc.weights import Audit, Options, audit

os.environ.setdefault("HF_HUB_OFFLINE", "1")
torch = pytest.importorskip("torch")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    hf = pytest.importorskip("transformers")

pytestmark = pytest.mark.filterwarnings("ignore")
SMALL: dict[str, Any] = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 24,
    "vocab_size": 31,
    "max_position_embeddings": 12,
}
DISTIL: dict[str, Any] = {
    "dim": 16,
    "n_layers": 2,
    "n_heads": 4,
    "hidden_dim": 24,
    "vocab_size": 31,
    "max_position_embeddings": 12,
}
GPT2: dict[str, Any] = {"n_embd": 16, "n_layer": 2, "n_head": 4, "n_positions": 12, "vocab_size": 31, "pad_token_id": 0}
VIT: dict[str, Any] = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 24,
    "image_size": 8,
    "patch_size": 4,
}
GROUPED = SMALL | {"num_key_value_heads": 2}
EPS: dict[str, Any] = {"layer_norm_eps": 0.5}


def seeded(make: Callable[[], Any]) -> Any:
    torch.manual_seed(0)
    model = make().eval()
    with torch.no_grad():  # biases start at 0, gains at 1: weights as after training, that hide nothing
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return model


MAKERS: dict[str, Callable[[], Any]] = {
    "BertModel": lambda: hf.BertModel(hf.BertConfig(**SMALL)),
    "BertForSequenceClassification": lambda: hf.BertForSequenceClassification(hf.BertConfig(**SMALL, num_labels=3)),
    "BertForMaskedLM": lambda: hf.BertForMaskedLM(hf.BertConfig(**SMALL)),
    "RobertaForSequenceClassification": lambda: hf.RobertaForSequenceClassification(hf.RobertaConfig(**SMALL)),
    "RobertaForMaskedLM": lambda: hf.RobertaForMaskedLM(hf.RobertaConfig(**SMALL)),
    "DistilBertForSequenceClassification": lambda: hf.DistilBertForSequenceClassification(
        hf.DistilBertConfig(**DISTIL)
    ),
    "DistilBertForMaskedLM": lambda: hf.DistilBertForMaskedLM(hf.DistilBertConfig(**DISTIL)),
    "GPT2Model": lambda: hf.GPT2Model(hf.GPT2Config(**GPT2)),
    "GPT2LMHeadModel": lambda: hf.GPT2LMHeadModel(hf.GPT2Config(**GPT2)),
    "GPT2ForSequenceClassification": lambda: hf.GPT2ForSequenceClassification(hf.GPT2Config(**GPT2)),
    "LlamaForCausalLM": lambda: hf.LlamaForCausalLM(hf.LlamaConfig(**GROUPED)),
    "MistralForCausalLM": lambda: hf.MistralForCausalLM(hf.MistralConfig(**GROUPED)),
    "Qwen2ForCausalLM": lambda: hf.Qwen2ForCausalLM(hf.Qwen2Config(**GROUPED)),
    "Qwen2 tied": lambda: hf.Qwen2ForCausalLM(hf.Qwen2Config(**GROUPED, tie_word_embeddings=True)),
    "LlamaForSequenceClassification": lambda: hf.LlamaForSequenceClassification(
        hf.LlamaConfig(**GROUPED, pad_token_id=0)
    ),
    "ViTModel": lambda: hf.ViTModel(hf.ViTConfig(**VIT)),
    "ViTForImageClassification": lambda: hf.ViTForImageClassification(hf.ViTConfig(**VIT, num_labels=5)),
}


@pytest.mark.parametrize("name", MAKERS)
def test_every_parameter_is_accounted_for_in_every_format(name: str, tmp_path: Path) -> None:
    model = seeded(MAKERS[name])
    model.save_pretrained(tmp_path / "whole")
    model.save_pretrained(tmp_path / "parts", max_shard_size="8KB")
    assert len(list((tmp_path / "parts").glob("*.safetensors"))) > 1
    found = audit(tmp_path / "whole")
    account = found.account
    assert account.balanced
    assert account.unknown == []
    assert account.total == sum(p.numel() for p in model.parameters())
    assert all(line.reason for line in account.lines if line.unused)
    want = found.norms().to_json()
    assert audit(tmp_path / "parts").norms().to_json() == want
    assert audit(model).norms().to_json() == want  # the live module
    torch.save(model.state_dict(), tmp_path / "w.pt")
    saved = audit(tmp_path / "w.pt", family=found.family, options=Options(settings=model.config.to_dict()))
    assert saved.norms().to_json() == want


@pytest.mark.parametrize(
    "name", ["BertForMaskedLM", "GPT2LMHeadModel", "LlamaForCausalLM", "ViTForImageClassification"]
)
def test_bfloat16(name: str, tmp_path: Path) -> None:
    model = seeded(MAKERS[name]).to(torch.bfloat16)
    model.save_pretrained(tmp_path / "narrow", max_shard_size="8KB")
    found = audit(tmp_path / "narrow")
    assert audit(model).norms() == found.norms()
    wide = audit(model.to(torch.float64))  # the same numbers
    for key, m in wide.measured.items():
        assert m.fro is None or found.measured[key].fro == pytest.approx(m.fro, rel=1e-12)


def test_torch_encoder_module() -> None:
    layer = torch.nn.TransformerEncoderLayer(16, 4, 24, norm_first=True, activation="gelu", batch_first=True)
    model = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    found = audit(model, options=Options(seq_len=7))
    assert found.family == "torch-encoder"
    assert found.account.balanced
    assert found.account.total == sum(p.numel() for p in model.parameters())
    assert sum("norm_attention.gain" in key for key in found.measured) == 2


# -- attacks on the lowered model


def read_out(found: Audit) -> dict[str, Budget]:
    return {"readout": Budget(op=1.0, two_one=1.0)} if found.missing else {}


def logits(model: Any, rows: Any) -> Any:
    """What is read of one sequence, from its embedded rows (before positions)."""
    name = type(model).__name__
    if name.startswith("ViT"):
        raise NotImplementedError
    mask = torch.ones(rows.shape[:2], dtype=torch.long)
    out = model(inputs_embeds=rows, attention_mask=mask).logits
    return out[:, -1] if out.dim() == 3 else out


ATTACKED: dict[str, Callable[[], Any]] = {
    "bert": lambda: hf.BertForSequenceClassification(hf.BertConfig(**SMALL, **EPS, num_labels=3)),
    "distilbert": lambda: hf.DistilBertForSequenceClassification(hf.DistilBertConfig(**DISTIL, num_labels=3)),
    "roberta": lambda: hf.RobertaForSequenceClassification(hf.RobertaConfig(**SMALL, **EPS, num_labels=3)),
    "gpt2": lambda: hf.GPT2LMHeadModel(hf.GPT2Config(**GPT2, layer_norm_epsilon=0.5)),
    "llama": lambda: hf.LlamaForCausalLM(hf.LlamaConfig(**GROUPED, rms_norm_eps=0.5)),
    "qwen2": lambda: hf.Qwen2ForCausalLM(hf.Qwen2Config(**GROUPED, rms_norm_eps=0.5)),
}
EMBEDDING = ("embedding", "positions", "segments")


def prepare(name: str) -> tuple[Any, Audit, Setting]:
    model = seeded(ATTACKED[name]).double()
    model.config._attn_implementation = "eager"
    found = audit(model)
    setting = Setting(found.architecture, found.norms(extra=read_out(found)), Sample(lipschitz=1.0))
    return model, found, setting


def ascend(value: Callable[[Any], Any], start: Any, project: Callable[[Any], Any], steps: int = 30) -> float:
    """Gradient ascent with a normalised step, back to the admissible set after each."""
    best, x = -math.inf, project(start.clone())
    for step in range(steps):
        x = x.detach().requires_grad_(True)
        y = value(x)
        best = max(best, float(y))
        (slope,) = torch.autograd.grad(y, x)
        size = 0.3 / (1 + step / 10)
        x = project((x + size * slope / (slope.norm() + 1e-300) * x.norm()).detach())
    return best


def into_ball(radius: float) -> Callable[[Any], Any]:
    def project(x: Any) -> Any:
        lengths = x.norm(dim=-1, keepdim=True)
        return x * torch.clamp(radius / (lengths + 1e-300), max=1.0)

    return project


def radius_ratio(name: str) -> float:
    """Largest |logits| found, over the radius claimed."""
    model, found, setting = prepare(name)
    claimed = float(lower(setting, FLOAT).radius)
    row = found.measured["embedding"].row or 0.0
    torch.manual_seed(1)
    best = 0.0
    for _ in range(4):
        start = torch.randn(1, 8, 16, dtype=torch.float64)
        best = max(best, ascend(lambda x: logits(model, x).norm(), start, into_ball(row)))
    return best / claimed


def lipschitz_ratio(name: str) -> float:
    """Largest change of the logits per change of an embedded row, over the factor claimed."""
    model, found, setting = prepare(name)
    claimed = float(lower(setting, FLOAT).amplification)
    row = found.measured["embedding"].row or 0.0
    torch.manual_seed(2)
    best = 0.0
    for _ in range(4):
        start = torch.randn(2, 1, 8, 16, dtype=torch.float64)

        def project(x: Any) -> Any:
            return into_ball(row)(x)

        def slope(x: Any) -> Any:
            change = (x[0] - x[1]).norm(dim=-1).max()
            return (logits(model, x[0]) - logits(model, x[1])).norm() / (change + 1e-9)

        start[1] = start[0] + 0.05 * start[1]
        best = max(best, ascend(slope, start, project))
    return best / claimed


@pytest.mark.parametrize("name", ATTACKED)
def test_radii_are_never_exceeded(name: str) -> None:
    ratio = radius_ratio(name)
    assert 1e-4 < ratio <= 1


@pytest.mark.parametrize("name", ATTACKED)
def test_lipschitz_factors_are_never_exceeded(name: str) -> None:
    assert 0 < lipschitz_ratio(name) <= 1


TENSORS: dict[str, dict[str, str]] = {
    "bert": {
        "W_1": "bert.encoder.layer.{}.intermediate.dense.weight",
        "W_2": "bert.encoder.layer.{}.output.dense.weight",
        "W_O": "bert.encoder.layer.{}.attention.output.dense.weight",
        "b_1": "bert.encoder.layer.{}.intermediate.dense.bias",
        "b_V": "bert.encoder.layer.{}.attention.self.value.bias",
        "W_V": "bert.encoder.layer.{}.attention.self.value.weight",
        "W_QK": "bert.encoder.layer.{}.attention.self.query.weight",
        "norm_ffn.gain": "bert.encoder.layer.{}.output.LayerNorm.weight",
    },
    "llama": {
        "W_1": "model.layers.{}.mlp.gate_proj.weight",
        "W_3": "model.layers.{}.mlp.up_proj.weight",
        "W_2": "model.layers.{}.mlp.down_proj.weight",
        "W_O": "model.layers.{}.self_attn.o_proj.weight",
        "W_Q": "model.layers.{}.self_attn.q_proj.weight",
        "W_K": "model.layers.{}.self_attn.k_proj.weight",
        "W_V": "model.layers.{}.self_attn.v_proj.weight",
        "norm_attention.gain": "model.layers.{}.input_layernorm.weight",
    },
}


def shift_of(piece: Piece, delta: Any, key_of: Callable[[], float]) -> float:
    """How far a change of a tensor moves the map on the points where it is covered, at most."""
    target = piece.members[0].targets[0]
    if target.kind == "gain":
        return float(delta.abs().max()) * float(target.radius)
    if target.kind == "vector":
        return (
            float(delta.norm()) if delta.numel() == target.k else float(delta.reshape(-1, target.k).norm(dim=1).max())
        )
    if piece.key.startswith("W_QK"):  # scores change by x dQ K^T y
        return key_of()
    heads = len(delta) // target.k if piece.key.startswith(("W_V", "W_Q", "W_K")) else 1
    parts = delta.reshape(heads, -1, delta.shape[1])
    return max(float(torch.linalg.matrix_norm(part, 2)) for part in parts) * float(target.radius)


@pytest.mark.parametrize("name", TENSORS)
@pytest.mark.parametrize("block", [0, 1])
def test_sensitivities_are_never_exceeded(name: str, block: int) -> None:
    """A small change of one tensor moves the logits by no more than gain * (how far it moves that map)."""
    model, found, setting = prepare(name)
    pieces = {piece.key: piece for piece in lower(setting.but(norms=setting.norms.scaled(1.05)), FLOAT).pieces}
    row = found.measured["embedding"].row or 0.0
    state = dict(model.named_parameters())
    ratios: dict[str, float] = {}
    for kind, pattern in TENSORS[name].items():
        tensor = state[pattern.format(block)]
        piece = pieces[f"{kind}[{block}]"]
        torch.manual_seed(3)
        for attempt in range(3):
            rows = into_ball(row)(torch.randn(1, 8, 16, dtype=torch.float64) * (0.3, 1.0, 5.0)[attempt])
            before = logits(model, rows)
            (slope,) = torch.autograd.grad(before.norm(), tensor)
            size = 1e-3 * tensor.detach().norm()
            delta = size * (slope / (slope.norm() + 1e-300) + 0.1 * torch.randn_like(tensor) / tensor.numel() ** 0.5)

            def scores(delta: Any = delta, piece: Piece = piece, pattern: str = pattern) -> float:
                keys = state[pattern.format(block).replace("query", "key")].reshape(4, 4, 16)
                ops = [
                    float(torch.linalg.matrix_norm(d.T @ k, 2))
                    for d, k in zip(delta.reshape(4, 4, 16), keys, strict=True)
                ]
                return max(ops) * float(piece.members[0].targets[0].radius)

            moved = shift_of(piece, delta, scores)
            with torch.no_grad():
                tensor.add_(delta)
                after = logits(model, rows)
                tensor.sub_(delta)
            ratios[f"{kind} {attempt}"] = float((after - before).detach().norm()) / (float(piece.gain) * moved)
    assert max(ratios.values()) <= 1
    assert min(ratios.values()) > 0


def test_the_attacks_break_a_claim_that_is_too_small() -> None:
    """The negative control: with norms a tenth of the true ones, radius and Lipschitz factor are broken."""
    model, found, setting = prepare("bert")
    row = found.measured["embedding"].row or 0.0
    small = lower(setting.but(norms=setting.norms.scaled(0.1)), FLOAT)
    torch.manual_seed(1)
    start = torch.randn(1, 8, 16, dtype=torch.float64)
    reached = ascend(lambda x: logits(model, x).norm(), start, into_ball(row))
    assert reached > float(small.radius)
    other = start + 1e-3 * torch.randn_like(start)
    change = float((logits(model, start) - logits(model, other)).norm() / (start - other).norm(dim=-1).max())
    assert change > float(small.amplification)


def test_vit_radius_and_class_token() -> None:
    """Pixels in [-1, 1], attacked; and the folded class token is exactly the model's row 0."""
    model = seeded(lambda: hf.ViTForImageClassification(hf.ViTConfig(**VIT, **EPS, num_labels=5))).double()
    found = audit(model)
    setting = Setting(found.architecture, found.norms(), Sample(lipschitz=1.0))
    claimed = float(lower(setting, FLOAT).radius)
    torch.manual_seed(0)
    best = 0.0
    for _ in range(3):
        start = torch.randn(1, 3, 8, 8, dtype=torch.float64)
        best = max(best, ascend(lambda x: model(pixel_values=x).logits.norm(), start, lambda x: x.clamp(-1, 1)))
    assert 1e-4 < best / claimed <= 1
    e = model.vit.embeddings
    row0 = (e(torch.zeros(1, 3, 8, 8, dtype=torch.float64))[0, 0] - e.patch_embeddings.projection.bias).detach().numpy()
    rows = [np.linalg.norm(row0)]
    rows += [float(np.linalg.norm(r)) for r in e.position_embeddings[0, 1:].detach().numpy()]
    assert found.measured["positions"].row == pytest.approx(max(rows), rel=1e-12)
