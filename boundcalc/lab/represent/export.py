"""Weights as files and as a torch module."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from boundcalc.base.errors import InvalidSetting
from boundcalc.lab.represent.network import Network

if TYPE_CHECKING:
    from torch import nn

LARGEST = 5 * 10**8
"""Numbers in a file; beyond, the arrays are better made anew from the expression."""


def save(path: Path | str, network: Network, about: dict[str, Any]) -> Path:
    """Write the weights: .safetensors (needs safetensors; `boundcalc.lab.train.model.load` reads it) or .npz.

    The architecture and what the caller says about the function, encoding and certificate travel along as JSON.
    """
    target = Path(path)
    weights = network.weights()
    numbers = sum(array.size for array in weights.values())
    if numbers > LARGEST:
        raise InvalidSetting(
            f"the weights are {numbers:.3g} numbers, too many for a file: choose --compact or a smaller T"
        )
    metadata = {"architecture": json.dumps(network.architecture.to_json()), "represents": json.dumps(about)}
    if target.suffix == ".safetensors":
        from safetensors.numpy import save_file

        arrays = {name: np.ascontiguousarray(array, dtype=np.float64) for name, array in weights.items()}
        save_file(arrays, str(target), {"format": "boundcalc-model/1", **metadata})
    elif target.suffix == ".npz":
        texts: dict[str, Any] = {name: np.array(text) for name, text in metadata.items()}
        np.savez(target, **weights, **texts)
    else:
        raise InvalidSetting(f"weights are written to a file named *.safetensors or *.npz, got {target.name!r}")
    return target


def torch_module(network: Network) -> nn.Module:
    """A torch module from bits (n, T) to scores (n,): the encoding is fixed, the weights are parameters (float64)."""
    import torch
    from torch import nn

    class Representation(nn.Module):
        """Pi_1(relu(Pi_1(attention)) W_1), block after block; [CLS] is read."""

        def __init__(self) -> None:
            super().__init__()
            zero, one = (network.encoding.rows(np.full((1, network.seq_len), bit)) for bit in (0, 1))
            self.register_buffer("zero", torch.from_numpy(zero[0]))
            self.register_buffer("change", torch.from_numpy((one - zero)[0, 1:]))
            self.blocks = nn.ModuleList()
            for block in network.blocks:
                arrays = {"w_q": block.w_q, "w_k": block.w_k, "w_v": block.w_v, "w_1": block.w_1}
                holder = nn.Module()
                for name, array in arrays.items():
                    holder.register_parameter(name, nn.Parameter(torch.from_numpy(array.copy())))
                self.blocks.append(holder)
            self.readout = nn.Parameter(torch.from_numpy(network.readout.copy()))

        def forward(self, bits: torch.Tensor) -> torch.Tensor:
            """Scores of sequences of bits."""
            zero, change = self.get_buffer("zero"), self.get_buffer("change")
            rows = zero.expand(len(bits), *zero.shape).clone()
            rows[:, 1:] += bits.to(change.dtype).unsqueeze(-1) * change
            for block in self.blocks:
                w_q, w_k, w_v, w_1 = (block.get_parameter(name) for name in ("w_q", "w_k", "w_v", "w_1"))
                queries, keys = rows @ w_q.T, rows @ w_k.T  # (n, rows, heads)
                scores = torch.einsum("nqh,nkh->nhqk", queries, keys)
                values = torch.einsum("nkd,hde->nhke", rows, w_v)
                rows = _project((scores.softmax(-1) @ values).sum(1))
                rows = _project(rows.relu() @ w_1)
            return rows[:, 0] @ self.readout

    def _project(rows: torch.Tensor) -> torch.Tensor:
        return rows / rows.norm(dim=-1, keepdim=True).clamp(min=1.0)

    return Representation()
