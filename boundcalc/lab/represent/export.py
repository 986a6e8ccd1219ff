"""Weights as files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from boundcalc.base.errors import InvalidSetting
from boundcalc.base.npz import plain_arrays
from boundcalc.base.output import write_bytes, writing
from boundcalc.lab.represent.encoding import Encoding
from boundcalc.lab.represent.network import Block, Network
from boundcalc.lab.represent.positions import Positions

_LARGEST = 5 * 10**8
"""Numbers in a file; beyond, the arrays are better made anew from the expression."""


_SIGNS = "encoding.signs"
"""The table of compact positions, as signs: position t is its row t times the encoding's scale."""


def save(path: Path | str, network: Network, about: dict[str, Any], *, force: bool = False) -> Path:
    """Write the weights: .safetensors (needs safetensors; `boundcalc.lab.train.model.load` reads it) or .npz.

    The file is complete: beside the weights it holds what makes rows of bits (the signs of compact positions, and the
    encoding as JSON), the architecture, and what the caller says about the function and its certificate.
    """
    target = Path(path)
    weights: dict[str, Any] = {name: np.ascontiguousarray(a, np.float64) for name, a in network.weights().items()}
    signs = network.encoding.positions.signs
    if signs is not None:
        weights[_SIGNS] = np.ascontiguousarray(signs, np.int8)
    numbers = sum(array.size for array in weights.values())
    if numbers > _LARGEST:
        raise InvalidSetting(
            f"the weights are {numbers:.3g} numbers, too many for a file: choose --compact or a smaller T"
        )
    metadata = {
        "architecture": json.dumps(network.architecture.to_json()),
        "encoding": json.dumps(network.encoding.to_json()),
        "represents": json.dumps(about),
    }
    if target.suffix == ".safetensors":
        from safetensors.numpy import save as as_bytes

        write_bytes(target, as_bytes(weights, {"format": "boundcalc-model/1", **metadata}), force=force)
    elif target.suffix == ".npz":
        texts: dict[str, Any] = {name: np.array(text) for name, text in metadata.items()}
        with writing(target, force=force) as part:
            np.savez(part, **weights, **texts)
    else:
        raise InvalidSetting(f"weights are written to a file named *.safetensors or *.npz, got {target.name!r}")
    return target


def load(path: Path | str) -> Network:
    """The network of such a file, with its encoding: nothing but the file is needed."""
    source = Path(path)
    if source.suffix == ".npz":
        with plain_arrays(source, writer="`boundcalc represent --out`") as file:
            arrays = {name: file[name] for name in file.files}
        encoding = arrays.get("encoding")
    else:
        from safetensors import safe_open

        with safe_open(str(source), framework="numpy") as file:
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a mapping
            encoding = (file.metadata() or {}).get("encoding")
    if encoding is None:
        raise InvalidSetting(
            f"{source} does not say how bits become rows: `boundcalc represent --out` writes files that do"
        )
    blocks = [
        Block(arrays[f"W_Q[{i}]"][..., 0], arrays[f"W_K[{i}]"][..., 0], arrays[f"W_V[{i}]"], arrays[f"W_1[{i}]"])
        for i in range(sum(name.startswith("W_Q[") for name in arrays))
    ]
    return Network(_encoding(json.loads(str(encoding)), arrays.get(_SIGNS)), tuple(blocks), arrays["readout"][:, 0])


def _encoding(data: dict[str, Any], signs: np.ndarray | None) -> Encoding:
    positions = Positions(data["T"], signs, data["coherence"])
    return Encoding(positions, data["shared"], data["place"], data["bit"], data["constant"])
