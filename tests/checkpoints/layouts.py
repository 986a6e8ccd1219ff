"""Small modules put together as well-known projects put Transformers together, and one with names of its own."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")
nn: Any = torch.nn
functional: Any = torch.nn.functional


def tanh_gelu(x: Any) -> Any:
    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


class Attention(nn.Module):
    """Maps of queries, keys and values in one tensor, one after the other or head by head, or in three."""

    def __init__(self, d: int, heads: int, kind: str = "fused", bias: bool = True, causal: bool = True) -> None:
        super().__init__()
        self.heads, self.kind, self.causal = heads, kind, causal
        if kind == "apart":
            self.query, self.key, self.value = (nn.Linear(d, d, bias=bias) for _ in range(3))
        else:
            self.fused = nn.Linear(d, 3 * d, bias=bias)
        self.proj = nn.Linear(d, d, bias=bias)

    def forward(self, x: Any) -> Any:
        n, rows, d = x.shape
        if self.kind == "by head":
            maps = self.fused(x).view(n, rows, self.heads, 3, d // self.heads).unbind(3)
        elif self.kind == "fused":
            maps = self.fused(x).chunk(3, -1)
        else:
            maps = self.query(x), self.key(x), self.value(x)
        q, k, v = (y.reshape(n, rows, self.heads, d // self.heads).transpose(1, 2) for y in maps)
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return self.proj(y.transpose(1, 2).flatten(2))


class Mlp(nn.Module):
    def __init__(self, d: int, width: int, act: Callable[[Any], Any], bias: bool = True) -> None:
        super().__init__()
        self.up, self.act, self.down = nn.Linear(d, width, bias=bias), act, nn.Linear(width, d, bias=bias)

    def forward(self, x: Any) -> Any:
        return self.down(self.act(self.up(x)))


class Block(nn.Module):
    """Normalised before each part, or after it."""

    def __init__(self, attn: Any, mlp: Any, d: int = 16, first: bool = True, **norm: Any) -> None:
        super().__init__()
        self.ln1, self.attn, self.ln2, self.mlp = nn.LayerNorm(d, **norm), attn, nn.LayerNorm(d, **norm), mlp
        self.first = first

    def forward(self, x: Any) -> Any:
        for norm, part in ((self.ln1, self.attn), (self.ln2, self.mlp)):
            x = x + part(norm(x)) if self.first else norm(x + part(x))
        return x


class NanoGPT(nn.Module):
    """Fused Linear, tied read-out without an offset; returns logits and a loss."""

    def __init__(
        self, bias: bool = True, tied: bool = True, act: Callable[[Any], Any] = functional.gelu, mask: int = 0
    ) -> None:
        super().__init__()
        d, vocabulary, rows = 16, 11, 10
        blocks = [Block(Attention(d, 4, bias=bias), Mlp(d, 4 * d, act, bias), bias=bias) for _ in range(2)]
        parts = {"wte": nn.Embedding(vocabulary, d), "wpe": nn.Embedding(rows, d), "h": nn.ModuleList(blocks)}
        self.transformer = nn.ModuleDict(parts | {"ln_f": nn.LayerNorm(d, bias=bias)})
        self.lm_head = nn.Linear(d, vocabulary, bias=False)
        if mask:
            self.register_buffer("bias", torch.tril(torch.ones(mask, mask)).view(1, 1, mask, mask))
        if tied:
            self.lm_head.weight = self.transformer["wte"].weight

    def forward(self, tokens: Any) -> Any:
        t = self.transformer
        x = t["wte"](tokens) + t["wpe"](torch.arange(tokens.shape[1]))
        for block in t["h"]:
            x = block(x)
        return self.lm_head(t["ln_f"](x)[:, [-1], :]), None


class MinGPT(nn.Module):
    """The first edition: separate maps, positions as one parameter, blocks in a Sequential."""

    def __init__(self) -> None:
        super().__init__()
        self.tok_emb, self.pos_emb = nn.Embedding(11, 16), nn.Parameter(torch.zeros(1, 10, 16))
        self.blocks = nn.Sequential(*[Block(Attention(16, 2, "apart"), Mlp(16, 64, nn.GELU())) for _ in range(3)])
        self.ln_f, self.head = nn.LayerNorm(16), nn.Linear(16, 11, bias=False)

    def forward(self, tokens: Any) -> Any:
        return self.head(self.ln_f(self.blocks(self.tok_emb(tokens) + self.pos_emb[:, : tokens.shape[1]])))


class XTransformer(nn.Module):
    """Positions times d^(-1/2)."""

    def __init__(self) -> None:
        super().__init__()
        self.token_emb, self.pos_emb, self.norm = nn.Embedding(11, 16), nn.Embedding(10, 16), nn.LayerNorm(16)
        blocks = [Block(Attention(16, 2, "apart", bias=False), Mlp(16, 64, nn.GELU())) for _ in range(2)]
        self.layers, self.to_logits = nn.Sequential(*blocks), nn.Linear(16, 11, bias=False)

    def forward(self, tokens: Any) -> Any:
        positions = self.pos_emb(torch.arange(tokens.shape[1])) * 16**-0.5
        return self.to_logits(self.norm(self.layers(self.token_emb(tokens) + positions)))


class TimmViT(nn.Module):
    """Patches by a convolution, a class token, fused queries, keys and values."""

    def __init__(
        self, image: int = 8, side: int = 4, channels: int = 1, d: int = 16, depth: int = 2, heads: int = 2
    ) -> None:
        super().__init__()
        self.cls_token = nn.Parameter(torch.zeros(1, 1, d))
        self.pos_embed = nn.Parameter(0.02 * torch.randn(1, (image // side) ** 2 + 1, d))
        self.patches = nn.Conv2d(channels, d, side, side)
        blocks = [Block(Attention(d, heads, causal=False), Mlp(d, 2 * d, nn.GELU()), d, eps=1e-6) for _ in range(depth)]
        self.blocks, self.norm, self.head = nn.Sequential(*blocks), nn.LayerNorm(d, eps=1e-6), nn.Linear(d, 10)

    def forward(self, images: Any) -> Any:
        x = self.patches(images).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls_token.expand(len(x), -1, -1), x], 1) + self.pos_embed
        return self.head(self.norm(self.blocks(x))[:, 0])


class Tower(nn.Module):
    """Names of its own, normalisation after sublayers, an offset-free read-out of the last row."""

    def __init__(self) -> None:
        super().__init__()
        self.letters, self.places, self.say = nn.Embedding(11, 16), nn.Embedding(10, 16), nn.Linear(16, 5, bias=False)
        floors = [Block(Attention(16, 4, "by head"), Mlp(16, 48, nn.SiLU()), first=False) for _ in range(2)]
        self.floors = nn.Sequential(*floors)

    def forward(self, tokens: Any) -> Any:
        return self.say(self.floors(self.letters(tokens) + self.places.weight[: tokens.shape[1]])[:, -1])


LAYOUTS: dict[str, Callable[[], Any]] = {
    "nanoGPT": NanoGPT,
    "nanoGPT without offsets": lambda: NanoGPT(bias=False),
    "nanoGPT untied": lambda: NanoGPT(tied=False),
    "minGPT": lambda: NanoGPT(act=tanh_gelu, tied=False, mask=10),
    "minGPT, first edition": MinGPT,
    "x-transformers": XTransformer,
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
