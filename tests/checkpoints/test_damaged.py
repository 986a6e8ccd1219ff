"""Random damage and wrong shapes: each checkpoint is read, or refused with one clear line; none ends in a traceback.

BOUNDCALC_FUZZ=5000 tries as many of each kind.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from boundcalc.base.errors import BoundcalcError
from boundcalc.checkpoints import Options, audit
from boundcalc.checkpoints.readers import open_checkpoint, sound
from tests.checkpoints import handmade

TRIES = int(os.environ.get("BOUNDCALC_FUZZ", "120"))
LONGEST = 600


FORMATS: dict[str, Callable[[dict[str, Any]], bytes]] = {
    "safetensors": handmade.safetensors,
    "pt": handmade.torch_zip,
    "old.pt": handmade.torch_pickles,
}


def damaged(content: bytes, rng: np.random.Generator) -> bytes:
    """Some flipped bits, other bytes, cuts, insertions or swaps; more in the first part, where headers are."""
    bad = bytearray(content)

    def place() -> int:
        return int(rng.integers(min(len(bad), 9000) if rng.random() < 0.6 else len(bad)))

    kind = rng.integers(6)
    if kind == 5:
        return bytes(bad[: place()])
    for _ in range(int(rng.integers(1, 8))):
        at, size = place(), int(rng.integers(1, 20))
        if kind == 0:
            bad[at] ^= 1 << int(rng.integers(8))
        elif kind == 1:
            bad[at] = int(rng.integers(256))
        elif kind == 2:
            del bad[at : at + size]
        elif kind == 3:
            bad[at:at] = rng.bytes(size)
        else:
            other = place()
            bad[at : at + 8], bad[other : other + 8] = bad[other : other + 8], bad[at : at + 8]
    return bytes(bad)


def outcome(path: Path, family: str, config: dict[str, Any]) -> str:
    """ "read", or the refusal, which must be one line."""
    try:
        found = audit(path, family=family, options=Options(settings=config), seed=0)
        json.dumps(found.to_json())
        assert found.account.balanced
        found.norms()
    except BoundcalcError as error:
        text = str(error)
        assert text.isprintable()
        assert len(text) < LONGEST
        return text
    return "read"


@pytest.mark.parametrize("form", FORMATS)
def test_damaged_weights(form: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(sum(map(ord, form)))
    models = {name: make(np.random.default_rng(0)) for name, make in handmade.SMALL.items()}
    path = tmp_path / f"w.{form}"
    refused = 0
    for attempt in range(TRIES):
        family = list(models)[attempt % len(models)]
        tensors, config = models[family]
        path.write_bytes(damaged(FORMATS[form](tensors), rng))
        refused += outcome(path, family, config) != "read"
    assert refused > TRIES / 2
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


STRANGE: tuple[Any, ...] = (None, -1, 0, 2.5, 10**9, 10**30, "x", "", [], {}, True, float("nan"), [[1]], "\n", {"a": 1})


@pytest.mark.parametrize("family", handmade.SMALL)
def test_strange_settings(family: str, tmp_path: Path) -> None:
    """Every value of config.json replaced by everything else."""
    tensors, config = handmade.SMALL[family](np.random.default_rng(0))
    handmade.save(tmp_path, tensors)
    refused = 0
    for key in (*config, "num_key_value_heads", "rms_norm_eps", "layer_norm_epsilon", "pad_token_id"):
        for value in STRANGE:
            (tmp_path / "config.json").write_text(json.dumps(config | {key: value}))
            refused += outcome(tmp_path, family, {}) != "read"
    assert refused > len(config)


def test_rows_of_stride_zero_are_not_expanded(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    torch.save({"t": torch.ones(4).expand(1 << 40, 4)}, tmp_path / "w.pt")
    with pytest.raises(BoundcalcError, match="larger than its storage"):
        open_checkpoint(tmp_path / "w.pt")


@pytest.mark.parametrize("size", [1e30, 1e150, 1e200, 1e308, 1e-308])
@pytest.mark.parametrize("family", handmade.SMALL)
def test_weights_of_absurd_size(family: str, size: float, tmp_path: Path) -> None:
    tensors, config = handmade.SMALL[family](np.random.default_rng(0))
    tensors = {name: np.sign(t) * size if t.dtype.kind == "f" else t for name, t in tensors.items()}
    text = outcome(handmade.save(tmp_path, tensors, config, "float64"), family, config)
    largest = 1e300 if family == "llama" else 1e160  # whose queries and keys are measured apart, without a product
    assert text == "read" if size < largest else "larger than every float" in text


def test_names_stay_on_one_line(tmp_path: Path) -> None:
    path = tmp_path / "w.safetensors"
    path.write_bytes(handmade.safetensors({"a\nb\x1b[2J": np.ones((2, 2))}))
    with pytest.raises(BoundcalcError, match="not a name") as caught:
        open_checkpoint(path)
    assert str(caught.value).isprintable()


def test_only_damage_is_reported_as_damage() -> None:
    """The negative control: an interruption is none, and a refusal keeps its own words."""
    with pytest.raises(KeyboardInterrupt), sound(Path("w"), "file"):
        raise KeyboardInterrupt
    with pytest.raises(BoundcalcError, match=r"^own words$"), sound(Path("w"), "file"):
        raise BoundcalcError("own words")
    with pytest.raises(BoundcalcError, match="not a whole file"), sound(Path("w"), "file"):
        raise ZeroDivisionError


SHAPES = {
    "flat": lambda w: w.ravel(),
    "turned": lambda w: w.T.copy(),
    "one more row": lambda w: np.concatenate([w, w[:1]]) if w.ndim else w[None],
    "no rows": lambda w: w[:0] if w.ndim else w,
    "a number": lambda w: np.array(1.0),
    "one more dimension": lambda w: w[None, None],
}


@pytest.mark.parametrize("model", handmade.SMALL)
@pytest.mark.parametrize("shape", SHAPES)
def test_misshapen_tensors(model: str, shape: str, tmp_path: Path) -> None:
    whole, config = handmade.SMALL[model](np.random.default_rng(0))
    good = {name: value for name, value in whole.items() if ".1." not in name}  # one block
    assert outcome(handmade.save(tmp_path, good, config), model, config) == "read"
    changed = (handmade.save(tmp_path, good | {name: SHAPES[shape](good[name])}, config) for name in good)
    assert {outcome(path, model, config) for path in changed} - {"read"}
