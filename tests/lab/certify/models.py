"""Twelve models as their users write them: layouts of tutorials, and things that nothing describes."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import nn
from torch.nn import functional

VOCABULARY, ROWS, D = 11, 8, 16


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


class FeedForward(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(D, 4 * D), nn.ReLU(), nn.Linear(4 * D, D), nn.Dropout(0.1))

    def forward(self, x: Any) -> Any:
        return self.net(x)


class LectureBlock(nn.Module):
    def __init__(self, mask: str) -> None:
        super().__init__()
        self.sa, self.ffwd = ManyHeads(4, mask), FeedForward()
        self.ln1, self.ln2 = nn.LayerNorm(D), nn.LayerNorm(D)

    def forward(self, x: Any) -> Any:
        x = x + self.sa(self.ln1(x))
        return x + self.ffwd(self.ln2(x))


class LectureGPT(nn.Module):
    """The GPT of a well-known lecture: heads in a ModuleList, (logits, loss)."""

    def __init__(self, mask: str = "tril") -> None:
        super().__init__()
        self.token_embedding_table, self.position_embedding_table = nn.Embedding(VOCABULARY, D), nn.Embedding(ROWS, D)
        self.blocks = nn.Sequential(*[LectureBlock(mask) for _ in range(2)])
        self.ln_f, self.lm_head = nn.LayerNorm(D), nn.Linear(D, VOCABULARY)

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
    """torch's own tutorial: sinusoidal positions in a buffer, nn.TransformerEncoder; rows are averaged for a classifier."""

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
    """The ViT that most tutorials copy: patches cut and mapped in a Sequential, a class token, PreNorm around sublayers."""

    def __init__(self) -> None:
        super().__init__()
        self.to_patch_embedding = nn.Sequential(Cut(), nn.Linear(4, D))
        self.pos_embedding, self.cls_token = nn.Parameter(torch.randn(1, 17, D)), nn.Parameter(torch.randn(1, 1, D))
        blocks = [
            nn.ModuleList(
                [PreNorm(WebAttention()), PreNorm(nn.Sequential(nn.Linear(D, 2 * D), nn.GELU(), nn.Linear(2 * D, D)))]
            )
            for _ in range(2)
        ]
        self.transformer = nn.ModuleDict({"layers": nn.ModuleList(blocks)})
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
