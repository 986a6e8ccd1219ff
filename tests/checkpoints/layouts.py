"""Small modules written as well-known projects lay Transformers out, in names and in order.

And one with names of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")
nn: Any = torch.nn
functional: Any = torch.nn.functional


def heads_of(x: Any, heads: int) -> Any:
    n, rows, d = x.shape
    return x.view(n, rows, heads, d // heads).transpose(1, 2)


def attend(maps: Any, heads: int, causal: bool) -> Any:
    q, k, v = (heads_of(x, heads) for x in maps)
    y = functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
    return y.transpose(1, 2).flatten(2)


def tanh_gelu(x: Any) -> Any:
    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


class _Attention(nn.Module):
    def __init__(self, d: int, heads: int, bias: bool, causal: bool, mask: int = 0) -> None:
        super().__init__()
        self.c_attn, self.c_proj = nn.Linear(d, 3 * d, bias=bias), nn.Linear(d, d, bias=bias)
        self.n_head, self.causal = heads, causal
        if mask:
            self.register_buffer("bias", torch.tril(torch.ones(mask, mask)).view(1, 1, mask, mask))

    def forward(self, x: Any) -> Any:
        return self.c_proj(attend(self.c_attn(x).chunk(3, -1), self.n_head, self.causal))


class _Mlp(nn.Module):
    def __init__(self, d: int, bias: bool, act: Callable[[Any], Any]) -> None:
        super().__init__()
        self.c_fc, self.c_proj, self.act = nn.Linear(d, 4 * d, bias=bias), nn.Linear(4 * d, d, bias=bias), act

    def forward(self, x: Any) -> Any:
        return self.c_proj(self.act(self.c_fc(x)))


class _Block(nn.Module):
    def __init__(self, d: int, heads: int, bias: bool, act: Callable[[Any], Any], mask: int) -> None:
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(d, bias=bias), nn.LayerNorm(d, bias=bias)
        self.attn, self.mlp = _Attention(d, heads, bias, True, mask), _Mlp(d, bias, act)

    def forward(self, x: Any) -> Any:
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class NanoGPT(nn.Module):
    """Fused Linear, tied read-out without an offset; returns logits and a loss."""

    def __init__(
        self, bias: bool = True, tied: bool = True, act: Callable[[Any], Any] = functional.gelu, mask: int = 0
    ) -> None:
        super().__init__()
        d, vocabulary, rows = 16, 11, 10
        parts = {"wte": nn.Embedding(vocabulary, d), "wpe": nn.Embedding(rows, d)}
        blocks = nn.ModuleList([_Block(d, 4, bias, act, mask) for _ in range(2)])
        self.transformer = nn.ModuleDict({**parts, "h": blocks, "ln_f": nn.LayerNorm(d, bias=bias)})
        self.lm_head = nn.Linear(d, vocabulary, bias=False)
        if tied:
            self.lm_head.weight = self.transformer["wte"].weight

    def forward(self, tokens: Any) -> Any:
        t = self.transformer
        x = t["wte"](tokens) + t["wpe"](torch.arange(tokens.shape[1]))
        for block in t["h"]:
            x = block(x)
        return self.lm_head(t["ln_f"](x)[:, [-1], :]), None


class _OldAttention(nn.Module):
    def __init__(self, d: int, heads: int) -> None:
        super().__init__()
        self.key, self.query, self.value = (nn.Linear(d, d) for _ in range(3))
        self.proj, self.n_head = nn.Linear(d, d), heads
        self.register_buffer("mask", torch.tril(torch.ones(10, 10)).view(1, 1, 10, 10))

    def forward(self, x: Any) -> Any:
        return self.proj(attend((self.query(x), self.key(x), self.value(x)), self.n_head, True))


class _OldBlock(nn.Module):
    def __init__(self, d: int) -> None:
        super().__init__()
        self.ln1, self.ln2, self.attn = nn.LayerNorm(d), nn.LayerNorm(d), _OldAttention(d, 2)
        self.mlp = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d), nn.Dropout(0.1))

    def forward(self, x: Any) -> Any:
        x = x + self.attn(self.ln1(x))
        return x + self.mlp(self.ln2(x))


class MinGPT(nn.Module):
    """The first edition: separate maps, positions as one parameter, blocks in a Sequential."""

    def __init__(self) -> None:
        super().__init__()
        self.tok_emb, self.pos_emb = nn.Embedding(11, 16), nn.Parameter(torch.zeros(1, 10, 16))
        self.blocks = nn.Sequential(*[_OldBlock(16) for _ in range(3)])
        self.ln_f, self.head = nn.LayerNorm(16), nn.Linear(16, 11, bias=False)

    def forward(self, tokens: Any) -> Any:
        return self.head(self.ln_f(self.blocks(self.tok_emb(tokens) + self.pos_emb[:, : tokens.shape[1]])))


class _Inner(nn.Module):
    def __init__(self, d: int) -> None:
        super().__init__()
        self.to_q, self.to_k, self.to_v = (nn.Linear(d, d, bias=False) for _ in range(3))
        self.to_out, self.heads = nn.Linear(d, d, bias=False), 2

    def forward(self, x: Any) -> Any:
        return self.to_out(attend((self.to_q(x), self.to_k(x), self.to_v(x)), self.heads, True))


class _Table(nn.Module):
    def __init__(self, rows: int, d: int) -> None:
        super().__init__()
        self.emb = nn.Embedding(rows, d)


class _Feed(nn.Module):
    def __init__(self, d: int) -> None:
        super().__init__()
        self.ff = nn.Sequential(nn.Sequential(nn.Linear(d, 4 * d), nn.GELU()), nn.Dropout(0.0), nn.Linear(4 * d, d))

    def forward(self, x: Any) -> Any:
        return self.ff(x)


class _Layers(nn.Module):
    def __init__(self, d: int) -> None:
        super().__init__()
        layers = [
            nn.ModuleList([nn.ModuleList([nn.LayerNorm(d)]), part(d)]) for _ in range(2) for part in (_Inner, _Feed)
        ]
        self.layers, self.final_norm = nn.ModuleList(layers), nn.LayerNorm(d)

    def forward(self, x: Any) -> Any:
        for (norm,), part in self.layers:
            x = x + part(norm(x))
        return self.final_norm(x)


class XTransformer(nn.Module):
    """Sublayers numbered one by one; positions times d^(-1/2)."""

    def __init__(self) -> None:
        super().__init__()
        self.token_emb, self.pos_emb = _Table(11, 16), _Table(10, 16)
        self.attn_layers, self.to_logits = _Layers(16), nn.Linear(16, 11, bias=False)

    def forward(self, tokens: Any) -> Any:
        positions = self.pos_emb.emb(torch.arange(tokens.shape[1])) * 16**-0.5
        return self.to_logits(self.attn_layers(self.token_emb.emb(tokens) + positions))


class TorchTransformer(nn.Module):
    """torch.nn.TransformerEncoder between an embedding and a head; rows are averaged."""

    def __init__(self, first: bool = False) -> None:
        super().__init__()
        self.embed, self.positions = nn.Embedding(11, 16), nn.Embedding(10, 16)
        layer = nn.TransformerEncoderLayer(16, 2, 24, batch_first=True, norm_first=first)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(16, 3)

    def forward(self, tokens: Any) -> Any:
        x = self.embed(tokens) + self.positions(torch.arange(tokens.shape[1]))
        return self.head(self.encoder(x).mean(1))


class _ViTAttention(nn.Module):
    def __init__(self, d: int, heads: int) -> None:
        super().__init__()
        self.num_heads, self.qkv, self.proj = heads, nn.Linear(d, 3 * d), nn.Linear(d, d)

    def forward(self, x: Any) -> Any:
        return self.proj(attend(self.qkv(x).chunk(3, -1), self.num_heads, False))


class _ViTMlp(nn.Module):
    def __init__(self, d: int) -> None:
        super().__init__()
        self.fc1, self.act, self.fc2 = nn.Linear(d, 2 * d), nn.GELU(), nn.Linear(2 * d, d)

    def forward(self, x: Any) -> Any:
        return self.fc2(self.act(self.fc1(x)))


class _ViTBlock(nn.Module):
    def __init__(self, d: int, heads: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(d, eps=1e-6), nn.LayerNorm(d, eps=1e-6)
        self.attn, self.mlp = _ViTAttention(d, heads), _ViTMlp(d)

    def forward(self, x: Any) -> Any:
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class _Patches(nn.Module):
    def __init__(self, channels: int, d: int, side: int) -> None:
        super().__init__()
        self.proj = nn.Conv2d(channels, d, side, side)

    def forward(self, x: Any) -> Any:
        return self.proj(x).flatten(2).transpose(1, 2)


class TimmViT(nn.Module):
    """Patches by a convolution, a class token, fused queries, keys and values."""

    def __init__(
        self, image: int = 8, side: int = 4, channels: int = 1, d: int = 16, depth: int = 2, heads: int = 2
    ) -> None:
        super().__init__()
        count = (image // side) ** 2
        self.cls_token = nn.Parameter(torch.zeros(1, 1, d))
        self.pos_embed = nn.Parameter(0.02 * torch.randn(1, count + 1, d))
        self.patch_embed = _Patches(channels, d, side)
        self.blocks = nn.Sequential(*[_ViTBlock(d, heads) for _ in range(depth)])
        self.norm, self.head = nn.LayerNorm(d, eps=1e-6), nn.Linear(d, 10)

    def forward(self, images: Any) -> Any:
        x = self.patch_embed(images)
        x = torch.cat([self.cls_token.expand(len(x), -1, -1), x], 1) + self.pos_embed
        return self.head(self.norm(self.blocks(x))[:, 0])


class _ByHead(nn.Module):
    """Queries, keys and values of one head after the other."""

    def __init__(self, d: int) -> None:
        super().__init__()
        self.mix, self.back, self.many = nn.Linear(d, 3 * d), nn.Linear(d, d), 4

    def forward(self, x: Any) -> Any:
        n, rows, d = x.shape
        q, k, v = self.mix(x).view(n, rows, self.many, 3, d // self.many).unbind(3)
        flat = (y.reshape(n, rows, d) for y in (q, k, v))
        return self.back(attend(flat, self.many, True))


class _Floor(nn.Module):
    def __init__(self, d: int) -> None:
        super().__init__()
        self.calm, self.look, self.rest = nn.LayerNorm(d), _ByHead(d), nn.LayerNorm(d)
        self.think = nn.Sequential(nn.Linear(d, 3 * d), nn.SiLU(), nn.Linear(3 * d, d))

    def forward(self, x: Any) -> Any:
        x = self.calm(x + self.look(x))
        return self.rest(x + self.think(x))


class Tower(nn.Module):
    """Names of its own, normalisation after sublayers, an offset-free read-out of the last row."""

    def __init__(self) -> None:
        super().__init__()
        self.letters, self.places = nn.Embedding(11, 16), nn.Embedding(10, 16)
        self.floors, self.say = nn.ModuleList([_Floor(16) for _ in range(2)]), nn.Linear(16, 5, bias=False)

    def forward(self, tokens: Any) -> Any:
        x = self.letters(tokens) + self.places.weight[: tokens.shape[1]]
        for floor in self.floors:
            x = floor(x)
        return self.say(x[:, -1])


LAYOUTS: dict[str, Callable[[], Any]] = {
    "nanoGPT": NanoGPT,
    "nanoGPT without offsets": lambda: NanoGPT(bias=False),
    "nanoGPT untied": lambda: NanoGPT(tied=False),
    "minGPT": lambda: NanoGPT(act=tanh_gelu, tied=False, mask=10),
    "minGPT, first edition": MinGPT,
    "x-transformers": XTransformer,
    "torch.nn.Transformer": TorchTransformer,
    "torch.nn.Transformer, normalised first": lambda: TorchTransformer(first=True),
    "timm ViT": TimmViT,
    "names of its own": Tower,
}


def made(name: str) -> Any:
    """A model with weights that hide nothing: offsets and gains are not where they start."""
    torch.manual_seed(0)
    model = LAYOUTS[name]().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return model
