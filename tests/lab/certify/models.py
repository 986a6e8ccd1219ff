"""Twelve models as their users write them: layouts of tutorials, and things that nothing describes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional

VOCABULARY, ROWS, D = 11, 8, 16


def perceptron(between: nn.Module, *after: nn.Module, wide: int = 4 * D) -> nn.Sequential:
    return nn.Sequential(nn.Linear(D, wide), between, nn.Linear(wide, D), *after)


class Head(nn.Module):
    """A head of its own, as in lectures; its mask is a buffer called tril."""

    def __init__(self, size: int, mask: str) -> None:
        super().__init__()
        self.key, self.query, self.value = (nn.Linear(D, size, bias=False) for _ in range(3))
        self.register_buffer(mask, torch.tril(torch.ones(ROWS, ROWS)))
        self.mask, self.dropout = mask, nn.Dropout(0.1)

    def forward(self, x: Any) -> Any:
        rows = x.shape[1]
        k, q = self.key(x), self.query(x)
        scores = q @ k.transpose(-2, -1) * k.shape[-1] ** -0.5
        scores = scores.masked_fill(getattr(self, self.mask)[:rows, :rows] == 0, float("-inf"))
        return self.dropout(functional.softmax(scores, dim=-1)) @ self.value(x)


class ManyHeads(nn.Module):
    def __init__(self, count: int, mask: str) -> None:
        super().__init__()
        self.heads = nn.ModuleList([Head(D // count, mask) for _ in range(count)])
        self.proj, self.dropout = nn.Linear(D, D), nn.Dropout(0.1)

    def forward(self, x: Any) -> Any:
        return self.dropout(self.proj(torch.cat([head(x) for head in self.heads], dim=-1)))


class Block(nn.Module):
    def __init__(self, attention: nn.Module, mlp: nn.Module, norm: Callable[[], nn.Module]) -> None:
        super().__init__()
        self.sa, self.ffwd, self.ln1, self.ln2 = attention, mlp, norm(), norm()

    def forward(self, x: Any) -> Any:
        x = x + self.sa(self.ln1(x))
        return x + self.ffwd(self.ln2(x))


class LectureGPT(nn.Module):
    """The GPT of a well-known lecture: heads in a ModuleList, (logits, loss)."""

    def __init__(self, mask: str = "tril") -> None:
        super().__init__()
        self.token_embedding_table, self.position_embedding_table = nn.Embedding(VOCABULARY, D), nn.Embedding(ROWS, D)
        self.blocks = nn.Sequential(*(self.block(mask) for _ in range(2)))
        self.ln_f, self.lm_head = self.norm(), nn.Linear(D, VOCABULARY)

    def norm(self) -> nn.Module:
        return nn.LayerNorm(D)

    def block(self, mask: str) -> Block:
        return Block(ManyHeads(4, mask), perceptron(nn.ReLU(), nn.Dropout(0.1)), self.norm)

    def forward(self, idx: Any, targets: Any = None) -> Any:
        x = self.token_embedding_table(idx) + self.position_embedding_table(torch.arange(idx.shape[1]))
        return self.lm_head(self.ln_f(self.blocks(x))), None


class Sinusoidal(nn.Module):
    def __init__(self, longest: int) -> None:
        super().__init__()
        place, speed = torch.arange(longest)[:, None], torch.exp(torch.arange(0, D, 2) * (-math.log(10000.0) / D))
        pe = torch.zeros(1, longest, D)
        pe[0, :, 0::2], pe[0, :, 1::2] = torch.sin(place * speed), torch.cos(place * speed)
        self.register_buffer("pe", pe)

    def forward(self, x: Any) -> Any:
        return x + self.pe[:, : x.shape[1]]  # type: ignore[index]


class TutorialTransformer(nn.Module):
    """torch's own tutorial: sinusoidal positions in a buffer, nn.TransformerEncoder; rows are averaged for a
    classifier."""

    def __init__(self) -> None:
        super().__init__()
        self.pos_encoder, self.embedding = Sinusoidal(ROWS), nn.Embedding(VOCABULARY, D)
        layer = nn.TransformerEncoderLayer(D, 4, 2 * D, batch_first=True)
        self.transformer_encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.linear = nn.Linear(D, 2)

    def forward(self, src: Any) -> Any:
        return self.linear(self.transformer_encoder(self.pos_encoder(self.embedding(src) * math.sqrt(D))).mean(1))


class MlpHead(nn.Module):
    """The same body with a head of two maps."""

    def __init__(self) -> None:
        super().__init__()
        self.tok, self.pos = nn.Embedding(VOCABULARY, D), nn.Embedding(ROWS, D)
        layer = nn.TransformerEncoderLayer(D, 4, 2 * D, batch_first=True, norm_first=True, activation="gelu")
        self.encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.head = nn.Sequential(nn.Linear(D, D), nn.Tanh(), nn.Linear(D, 2))

    def forward(self, x: Any) -> Any:
        return self.head(self.encoder(self.tok(x) + self.pos(torch.arange(x.shape[1])))[:, 0])


class PreNorm(nn.Module):
    def __init__(self, inner: Any) -> None:
        super().__init__()
        self.norm, self.fn = nn.LayerNorm(D), inner

    def forward(self, x: Any) -> Any:
        return self.fn(self.norm(x))


class WebAttention(nn.Module):
    def __init__(self, heads: int = 2) -> None:
        super().__init__()
        self.heads, self.attend, self.to_qkv = heads, nn.Softmax(dim=-1), nn.Linear(D, 3 * D, bias=False)
        self.to_out = nn.Sequential(nn.Linear(D, D), nn.Dropout(0.0))

    def forward(self, x: Any) -> Any:
        n, rows, _ = x.shape
        q, k, v = (y.view(n, rows, self.heads, -1).transpose(1, 2) for y in self.to_qkv(x).chunk(3, dim=-1))
        mixed = self.attend(q @ k.transpose(-1, -2) * (D // self.heads) ** -0.5) @ v
        return self.to_out(mixed.transpose(1, 2).reshape(n, rows, D))


class Cut(nn.Module):
    def forward(self, x: Any) -> Any:
        n, channels = x.shape[:2]
        return x.reshape(n, channels, 4, 2, 4, 2).permute(0, 2, 4, 3, 5, 1).reshape(n, 16, 4 * channels)


class WebViT(nn.Module):
    """The ViT that most tutorials copy: patches cut and mapped in a Sequential, a class token, PreNorm around
    sublayers."""

    def __init__(self) -> None:
        super().__init__()
        self.to_patch_embedding = nn.Sequential(Cut(), nn.Linear(4, D))
        self.pos_embedding, self.cls_token = nn.Parameter(torch.randn(1, 17, D)), nn.Parameter(torch.randn(1, 1, D))
        blocks = [[PreNorm(WebAttention()), PreNorm(perceptron(nn.GELU(), wide=2 * D))] for _ in range(2)]
        self.transformer = nn.ModuleDict({"layers": nn.ModuleList(map(nn.ModuleList, blocks))})
        self.mlp_head = nn.Sequential(nn.LayerNorm(D), nn.Linear(D, 10))

    def forward(self, images: Any) -> Any:
        x = self.to_patch_embedding(images)
        x = torch.cat([self.cls_token.expand(len(x), -1, -1), x], 1) + self.pos_embedding
        for attention, forward in self.transformer["layers"]:  # type: ignore[union-attr]
            x = attention(x) + x
            x = forward(x) + x
        return self.mlp_head(x[:, 0])


class Recurrent(nn.Module):
    """An LSTM, which no Transformer bound is about."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.lstm, self.out = nn.Embedding(VOCABULARY, D), nn.LSTM(D, D, batch_first=True), nn.Linear(D, 2)

    def forward(self, tokens: Any) -> Any:
        return self.out(self.lstm(self.table(tokens))[0][:, -1])


class BookNorm(nn.Module):
    """A LayerNorm written out, as a well-known book does; its weights have names of their own."""

    def __init__(self) -> None:
        super().__init__()
        self.scale, self.shift = nn.Parameter(torch.ones(D)), nn.Parameter(torch.zeros(D))

    def forward(self, x: Any) -> Any:
        mean, spread = x.mean(dim=-1, keepdim=True), x.var(dim=-1, keepdim=True, unbiased=False)
        return self.scale * ((x - mean) / torch.sqrt(spread + 1e-5)) + self.shift


class BookGelu(nn.Module):
    def forward(self, x: Any) -> Any:
        root = torch.sqrt(torch.tensor(2.0 / torch.pi))
        return 0.5 * x * (1 + torch.tanh(root * (x + 0.044715 * torch.pow(x, 3))))


class BookAttention(nn.Module):
    def __init__(self, heads: int = 4) -> None:
        super().__init__()
        self.num_heads, self.head_dim = heads, D // heads
        self.W_query, self.W_key, self.W_value = (nn.Linear(D, D, bias=False) for _ in range(3))
        self.out_proj, self.dropout = nn.Linear(D, D), nn.Dropout(0.1)
        self.register_buffer("mask", torch.triu(torch.ones(ROWS, ROWS), diagonal=1))

    def forward(self, x: Any) -> Any:
        n, rows, _ = x.shape
        maps = (self.W_query, self.W_key, self.W_value)
        q, k, v = (linear(x).view(n, rows, self.num_heads, self.head_dim).transpose(1, 2) for linear in maps)
        scores = (q @ k.transpose(2, 3)).masked_fill(self.mask.bool()[:rows, :rows], -torch.inf)  # type: ignore[index]
        mixed = self.dropout(torch.softmax(scores / self.head_dim**0.5, dim=-1)) @ v
        return self.out_proj(mixed.transpose(1, 2).contiguous().view(n, rows, D))


class BookGPT(LectureGPT):
    """The GPT of a well-known book: a mask in a buffer, a LayerNorm and a GELU of its own; logits alone."""

    def norm(self) -> nn.Module:
        return BookNorm()

    def block(self, mask: str) -> Block:
        return Block(BookAttention(), perceptron(BookGelu()), self.norm)

    def forward(self, idx: Any, targets: Any = None) -> Any:
        return LectureGPT.forward(self, idx)[0]


class RotaryNorm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(D))

    def forward(self, x: Any) -> Any:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * self.weight


class RotaryBlock(nn.Module):
    def __init__(self, heads: int = 4) -> None:
        super().__init__()
        self.heads = heads
        self.wq, self.wk, self.wv, self.wo = (nn.Linear(D, D, bias=False) for _ in range(4))
        self.w1, self.w2, self.w3 = (nn.Linear(*shape, bias=False) for shape in ((D, 24), (24, D), (D, 24)))
        self.attention_norm, self.ffn_norm = RotaryNorm(), RotaryNorm()

    def turned(self, x: Any, cos: Any, sin: Any) -> Any:
        a, b = x[..., ::2], x[..., 1::2]
        return torch.stack([a * cos - b * sin, a * sin + b * cos], -1).flatten(-2)

    def forward(self, x: Any, cos: Any, sin: Any) -> Any:
        n, rows, _ = x.shape
        h = self.attention_norm(x)
        q, k, v = (linear(h).view(n, rows, self.heads, -1).transpose(1, 2) for linear in (self.wq, self.wk, self.wv))
        q, k = self.turned(q, cos, sin), self.turned(k, cos, sin)
        x = x + self.wo(
            functional.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(n, rows, D)
        )
        h = self.ffn_norm(x)
        return x + self.w2(functional.silu(self.w1(h)) * self.w3(h))


class RotaryGPT(nn.Module):
    """A small Llama: rotary positions from buffers, RMSNorm written out, gated MLPs, a tied read-out."""

    def __init__(self) -> None:
        super().__init__()
        self.tok_embeddings = nn.Embedding(VOCABULARY, D)
        self.layers, self.norm = nn.ModuleList([RotaryBlock() for _ in range(2)]), RotaryNorm()
        self.output = nn.Linear(D, VOCABULARY, bias=False)
        self.output.weight = self.tok_embeddings.weight
        angles = torch.outer(torch.arange(ROWS), 10000.0 ** (-torch.arange(0, 4, 2) / 4))
        self.register_buffer("cos", angles.cos(), persistent=False)
        self.register_buffer("sin", angles.sin(), persistent=False)

    def forward(self, tokens: Any) -> Any:
        x, rows = self.tok_embeddings(tokens), tokens.shape[1]
        for layer in self.layers:
            x = layer(x, self.cos[:rows], self.sin[:rows])  # type: ignore[index]
        return self.output(self.norm(x)[:, [-1]])
