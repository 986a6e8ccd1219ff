"""Attacks on lowered models: real torch modules in float64 try to exceed the radii, Lipschitz factors and sensitivities
claimed for them, by random search and by gradients. What the attacks reach also breaks claims that are too small.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest

from boundcalc import Budget, Sample, Setting
from boundcalc.base.numbers import FLOAT
from boundcalc.checkpoints import Audit, audit
from boundcalc.statements.network import Network, Piece
from tests.checkpoints.live import DISTIL, GPT2, GROUPED, SMALL, VIT, hf, seeded, torch

pytestmark = pytest.mark.filterwarnings("ignore")
EPS: dict[str, Any] = {"layer_norm_eps": 0.5}
ATTACKED: dict[str, Callable[[], Any]] = {
    "bert": lambda: hf.BertForSequenceClassification(hf.BertConfig(**SMALL, **EPS, num_labels=3)),
    "distilbert": lambda: hf.DistilBertForSequenceClassification(hf.DistilBertConfig(**DISTIL, num_labels=3)),
    "roberta": lambda: hf.RobertaForSequenceClassification(hf.RobertaConfig(**SMALL, **EPS, num_labels=3)),
    "gpt2": lambda: hf.GPT2LMHeadModel(hf.GPT2Config(**GPT2, layer_norm_epsilon=0.5)),
    "llama": lambda: hf.LlamaForCausalLM(hf.LlamaConfig(**GROUPED, rms_norm_eps=0.5)),
    "mistral": lambda: hf.MistralForCausalLM(hf.MistralConfig(**GROUPED, rms_norm_eps=0.5)),
    "qwen2": lambda: hf.Qwen2ForCausalLM(hf.Qwen2Config(**GROUPED, rms_norm_eps=0.5)),
}
"""A large eps makes the factors of normalisations moderate, so that the rest of the claim is tested. DistilBERT's is
fixed at 1e-12."""
TOO_SMALL = 0.1
"""Norms times this are the claims that the same attacks must break."""


@dataclass(frozen=True)
class Target:
    """A live model, its audit, and its setting."""

    model: Any
    found: Audit
    setting: Setting

    @property
    def row(self) -> float:
        """Radius of embedded rows, before positions."""
        return self.found.measured["embedding"].row or 0.0

    def claims(self, factor: float = 1.0) -> Any:
        """What is claimed of the model when its norms are taken to be `factor` times what they are."""
        return Network(self.setting.but(norms=self.setting.norms.scaled(factor)), FLOAT)

    def logits(self, rows: Any) -> Any:
        """What is read of one sequence, from its embedded rows."""
        mask = torch.ones(rows.shape[:2], dtype=torch.long)
        out = self.model(inputs_embeds=rows, attention_mask=mask).logits
        return out[:, -1] if out.dim() == 3 else out


@cache
def target(name: str, calm: bool = False) -> Target:
    """`calm`: weights a tenth as large, where the claims are nearer to the truth."""
    torch.set_num_threads(1)
    model = seeded(ATTACKED[name]).double()
    model.config._attn_implementation = "eager"
    if calm:
        with torch.no_grad():
            for key, tensor in model.named_parameters():
                if tensor.dim() == 2 and "embed" not in key and "wte" not in key and "wpe" not in key:
                    tensor.mul_(0.1)
    found = audit(model)
    read_out = {"readout": Budget(op=1.0, two_one=1.0)} if found.missing else {}
    return Target(model, found, Setting(found.architecture, found.norms(extra=read_out), Sample(lipschitz=1.0)))


def into_ball(radius: float) -> Callable[[Any], Any]:
    def project(x: Any) -> Any:
        lengths = x.norm(dim=-1, keepdim=True)
        return x * torch.clamp(radius / (lengths + 1e-300), max=1.0)

    return project


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


@cache
def length_reached(name: str) -> float:
    """Largest |logits| found."""
    t = target(name)
    torch.manual_seed(1)
    starts = (torch.randn(1, 8, 16, dtype=torch.float64) for _ in range(4))
    return max(ascend(lambda x: t.logits(x).norm(), start, into_ball(t.row)) for start in starts)


@cache
def slope_reached(name: str, calm: bool = False) -> float:
    """Largest change of the logits per change of an embedded row."""
    t = target(name, calm)
    torch.manual_seed(2)

    def slope(x: Any) -> Any:
        change = (x[0] - x[1]).norm(dim=-1).max()
        return (t.logits(x[0]) - t.logits(x[1])).norm() / (change + 1e-9)

    best = 0.0
    for size in (0.02, 0.1, 0.5, 2.0):  # rows near 0, where normalisations are steepest, and at the rim
        start = torch.randn(2, 1, 8, 16, dtype=torch.float64) * size
        start[1] = start[0] + 0.05 * start[1]
        best = max(best, ascend(slope, start, into_ball(t.row)))
    return best


@pytest.mark.parametrize("name", ATTACKED)
def test_radii_are_never_exceeded(name: str) -> None:
    reached = length_reached(name)
    assert 0.1 < reached / float(target(name).claims().radius) <= 1
    assert reached > float(target(name).claims(TOO_SMALL).radius)


@pytest.mark.parametrize("calm", [False, True])
@pytest.mark.parametrize("name", ATTACKED)
def test_lipschitz_factors_are_never_exceeded(name: str, calm: bool) -> None:
    reached = slope_reached(name, calm)
    assert reached <= float(target(name, calm).claims().amplification)
    if name != "distilbert":  # whose eps of 1e-12 makes any claim enormous
        assert reached > float(target(name, calm).claims(TOO_SMALL).amplification)


# -- sensitivities


@dataclass(frozen=True)
class Spot:
    """Where a kind of weight lies in a module: its name there, whether as Conv1D stores it, and which third."""

    name: str
    conv: bool = False
    third: int | None = None

    def view(self, tensor: Any) -> Any:
        """(outputs, inputs), as torch.nn.Linear has it."""
        if self.conv and tensor.dim() == 2:
            tensor = tensor.T
        if self.third is None:
            return tensor
        return tensor.reshape(3, -1, *tensor.shape[1:])[self.third]


def spots(kinds: dict[str, str], prefix: str) -> dict[str, Spot]:
    return {kind: Spot(prefix + name) for kind, name in kinds.items()}


_BERT = {
    "W_1": "intermediate.dense.weight",
    "W_2": "output.dense.weight",
    "W_O": "attention.output.dense.weight",
    "b_1": "intermediate.dense.bias",
    "b_V": "attention.self.value.bias",
    "W_V": "attention.self.value.weight",
    "W_QK": "attention.self.query.weight",
    "norm_ffn.gain": "output.LayerNorm.weight",
    "norm_attention.offset": "attention.output.LayerNorm.bias",
}
_LLAMA = {
    "W_1": "mlp.gate_proj.weight",
    "W_3": "mlp.up_proj.weight",
    "W_2": "mlp.down_proj.weight",
    "W_O": "self_attn.o_proj.weight",
    "W_Q": "self_attn.q_proj.weight",
    "W_K": "self_attn.k_proj.weight",
    "W_V": "self_attn.v_proj.weight",
    "norm_attention.gain": "input_layernorm.weight",
}
_QWEN = _LLAMA | {"b_Q": "self_attn.q_proj.bias", "b_K": "self_attn.k_proj.bias", "b_V": "self_attn.v_proj.bias"}
_DISTIL = {
    "W_1": "ffn.lin1.weight",
    "W_2": "ffn.lin2.weight",
    "W_O": "attention.out_lin.weight",
    "W_V": "attention.v_lin.weight",
    "W_QK": "attention.q_lin.weight",
    "norm_ffn.gain": "output_layer_norm.weight",
}
SPOTS: dict[str, dict[str, Spot]] = {
    "bert": spots(_BERT, "bert.encoder.layer.{}."),
    "roberta": spots(_BERT, "roberta.encoder.layer.{}."),
    "distilbert": spots(_DISTIL, "distilbert.transformer.layer.{}."),
    "llama": spots(_LLAMA, "model.layers.{}."),
    "qwen2": spots(_QWEN, "model.layers.{}."),
    "gpt2": {
        "W_1": Spot("transformer.h.{}.mlp.c_fc.weight", conv=True),
        "W_2": Spot("transformer.h.{}.mlp.c_proj.weight", conv=True),
        "W_O": Spot("transformer.h.{}.attn.c_proj.weight", conv=True),
        "W_QK": Spot("transformer.h.{}.attn.c_attn.weight", conv=True, third=0),
        "W_V": Spot("transformer.h.{}.attn.c_attn.weight", conv=True, third=2),
        "b_V": Spot("transformer.h.{}.attn.c_attn.bias", third=2),
        "norm_attention.gain": Spot("transformer.h.{}.ln_1.weight"),
    },
}


def keys_of(name: str, state: dict[str, Any], spot: Spot, block: int) -> Any:
    """The key map that belongs to a query map."""
    if name == "gpt2":
        return Spot(spot.name, conv=True, third=1).view(state[spot.name.format(block)])
    return state[spot.name.format(block).replace("query", "key").replace("q_lin", "k_lin")]


def moved(piece: Piece, delta: Any, keys: Any) -> float:
    """How far a change of a tensor moves the map on the points where it is covered, at most."""
    aim = piece.members[0].targets[0]
    if aim.kind == "gain":
        return float(delta.abs().max()) * float(aim.radius)
    if aim.kind == "vector":
        return float(delta.norm()) if delta.numel() == aim.k else float(delta.reshape(-1, aim.k).norm(dim=1).max())
    if piece.key.startswith("W_QK"):  # scores change by x dQ K^T y
        heads = zip(delta.reshape(4, -1, delta.shape[1]), keys.reshape(4, -1, keys.shape[1]), strict=True)
        return max(float(torch.linalg.matrix_norm(d.T @ k, 2)) for d, k in heads) * float(aim.radius)
    heads = len(delta) // aim.k if piece.key.startswith(("W_V", "W_Q", "W_K")) else 1
    parts = delta.reshape(heads, -1, delta.shape[1])
    return max(float(torch.linalg.matrix_norm(part, 2)) for part in parts) * float(aim.radius)


def changes(t: Target, tensor: Any, spot: Spot, rows: Any) -> Iterator[tuple[Any, float]]:
    """Small changes of a tensor, and what they do to the logits: power iteration on the derivative."""
    before = t.logits(rows)
    direction = before / before.norm()
    size = 1e-3 * tensor.detach().norm()
    for _ in range(4):
        (slope,) = torch.autograd.grad((t.logits(rows) * direction.detach()).sum(), tensor)
        kept = torch.zeros_like(slope)
        spot.view(kept).copy_(spot.view(slope))
        delta = size * kept / (kept.norm() + 1e-300)
        with torch.no_grad():
            tensor.add_(delta)
            change = t.logits(rows) - before
            tensor.sub_(delta)
        yield delta, float(change.norm())
        direction = change / (change.norm() + 1e-300)


@cache
def excess(name: str, block: int, factor: float) -> dict[str, float]:
    """By kind: the largest change of the logits over the change that norms times `factor` allow."""
    t = target(name)
    pieces = {piece.key: piece for piece in t.claims(1.05 * factor).pieces}
    state = dict(t.model.named_parameters())
    out: dict[str, float] = {}
    for kind, spot in SPOTS[name].items():
        tensor, piece = state[spot.name.format(block)], pieces[f"{kind}[{block}]"]
        keys = keys_of(name, state, spot, block).detach() if kind == "W_QK" else None
        torch.manual_seed(3)
        for size in (0.3, 1.0, 5.0):
            rows = into_ball(t.row)(torch.randn(1, 8, 16, dtype=torch.float64) * size)
            for delta, change in changes(t, tensor, spot, rows):
                allowed = float(piece.gain) * moved(piece, spot.view(delta), keys)
                out[kind] = max(out.get(kind, 0.0), change / allowed)
    return out


@pytest.mark.parametrize("name", SPOTS)
@pytest.mark.parametrize("block", [0, 1])
def test_sensitivities_are_never_exceeded(name: str, block: int) -> None:
    """A small change of one tensor moves the logits by no more than gain * (how far it moves that map)."""
    ratios = excess(name, block, 1.0)
    assert len(ratios) == len(SPOTS[name])
    assert max(ratios.values()) <= 1
    assert min(ratios.values()) > 0
    if name != "distilbert":
        assert max(excess(name, block, TOO_SMALL).values()) > 1


def test_vit_radius_and_class_token() -> None:
    """Pixels in [-1, 1], attacked; and the folded class token is exactly the model's row 0."""
    model = seeded(lambda: hf.ViTForImageClassification(hf.ViTConfig(**VIT, **EPS, num_labels=5))).double()
    found = audit(model)
    setting = Setting(found.architecture, found.norms(), Sample(lipschitz=1.0))
    claimed = float(Network(setting, FLOAT).radius)
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
