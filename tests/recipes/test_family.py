"""How to add a family of checkpoints from outside: a table of its tensors and of the fields that it reads."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from boundcalc.checkpoints import audit
from boundcalc.checkpoints.families import FAMILIES, Family
from boundcalc.testing import Cases
from tests.cases import families
from tests.laws.kinds.families import FamilyExample, check_family

GPT2 = FAMILIES["gpt2"]
MINE = replace(
    GPT2,
    name="mine",
    model_types=("mine",),
    tensors={pattern.replace("attn.c_proj", "attn.joined"): role for pattern, role in GPT2.tensors.items()},
)
"""GPT-2's blocks under names of one's own; a family with other blocks brings its own `architecture`."""


def example() -> FamilyExample:
    """GPT-2's small model with the other names; some of its maps, of which one is cut out of a larger tensor."""
    (gpt2,) = families.cases("gpt2").examples
    saved = {name.replace("attn.c_proj", "attn.joined"): array for name, array in gpt2.tensors.items()}
    maps = {
        "W_O[0]": saved["transformer.h.0.attn.joined.weight"].astype(float),
        "W_1[1]": saved["transformer.h.1.mlp.c_fc.weight"].astype(float),
        "W_V[1,3]": saved["transformer.h.1.attn.c_attn.weight"][:, 44:].astype(float),
    }
    return FamilyExample(saved, {**gpt2.config, "model_type": "mine"}, maps)


def turned() -> Family:
    """The negative control: a table in which one matrix is transposed."""
    tensors = {pattern: "W_1.T" if role == "W_1" else role for pattern, role in MINE.tensors.items()}
    return replace(MINE, tensors=tensors)


def cases() -> Cases:
    """A model, another activation, and the negative control."""
    here = example()
    return Cases([here], [(here.but(activation_function="relu2"), "relu2")], {"transposed": turned()})


@pytest.fixture
def registered() -> Iterator[None]:
    FAMILIES.register(MINE)
    yield
    FAMILIES.remove(MINE.name)


@pytest.mark.usefixtures("registered")
def test_its_laws_hold_and_a_wrong_table_is_seen() -> None:
    assert check_family(MINE, cases()) == []


@pytest.mark.usefixtures("registered")
def test_a_checkpoint_finds_it_by_its_type(tmp_path: Path) -> None:
    here = example()
    arrays = {name: np.ascontiguousarray(tensor) for name, tensor in here.tensors.items()}
    save_file(arrays, tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text(json.dumps(here.config))
    assert audit(tmp_path / "model.safetensors").family == "mine"
